"""One piece of work as plain values: what to train or embed, on which files, and the folder of the result.

A ``TaskSpec`` holds paths, a config, a seed and a device, so that any process that sees these files can do it, and
the same spec gives the same result wherever it runs: also its threads are fixed, because the number of threads
changes the order in which floats are added. A task knows no catalog. It says how far it is by ``Event``s, and its
result lies whole in its folder or not at all: arrays, and ``result.json`` with small plain values.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from auditor.bridges import backbone_bridge, engine_bridge
from auditor.ground.files import load_array, load_arrays, new_folder_beside
from auditor.ground.vocabulary import CLASSIFICATION, REGRESSION, SEGMENTATION
from auditor.statistics import trust_in_given
from auditor.work import embedding

if TYPE_CHECKING:
    from auditor.bridges.engine_bridge import EpochRecord

RESULT = "result.json"
EMBEDDING = "embedding"
"""In place of an engine: a backbone's features of some rows."""
LAYOUT = "layout"
"""In place of an engine: the map and the neighbours of features."""
NEIGHBOURS = 8
AGAIN = "put it back from a backup, or audit again"


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """One engine to train, rows to embed or features to lay out. Every field is a plain value that JSON holds."""

    name: str
    """Of its own in its graph; people read it."""
    engine: str
    config: Mapping[str, Any]
    """Every field that differs from the engine's defaults."""
    num_classes: int
    inputs: str
    """``.npz`` with ``trusted`` (N,) bool, and the labels to train on: ``labels`` (N,) int64 with perhaps
    ``trusted_weight`` (N,) float32; ``masks`` (N, S, S) uint8; or ``numbers`` (N,) float64."""
    out: str
    """Folder of the result."""
    checkpoint: str
    """File of the engine's state."""
    images: str | None = None
    """``.npy`` of (N, C, H, W) uint8; exactly one of this and ``features`` is given."""
    features: str | None = None
    """``.npy`` of (N, V, D) float16 or float32."""
    given: str | None = None
    """``.npy`` of the labels that trust is about: (N,) int64, where they differ from those to train on;
    (N, S, S) uint8 masks; (N,) float64 numbers."""
    task: str = CLASSIFICATION
    """What the labels are, one of ``vocabulary.TASKS``."""
    truth: str | None = None
    """``.npy`` of (N,) int64 true labels, which only the curves of epochs know."""
    draws: str | None = None
    """``umap`` or ``pca``: how the map of the embeddings is laid out; None = no map."""
    finds_neighbours: bool = False
    seed: int = 0
    device: str = "cpu"
    """A resolved one: ``cpu``, ``cuda`` or ``cuda:<n>``."""
    threads: int | None = None
    """What one process of this task computes with; None = whatever the process has."""
    after: tuple[str, ...] = ()
    """Tasks whose results this one reads."""
    reads: Mapping[str, str] = field(default_factory=dict)
    """Files that it reads besides, by name."""

    def as_json(self) -> str:
        """Text from which ``of_json`` builds it again."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def of_json(cls, text: str) -> TaskSpec:
        """Return what ``as_json`` wrote."""
        values = json.loads(text)
        return cls(**values | {"after": tuple(values["after"])})


@dataclass(frozen=True)
class Event:
    """One epoch of one task."""

    task: str
    stage: str
    epoch: int
    num_epochs: int
    progress: float
    """Share of the task's whole work that is done, in (0, 1]."""
    seconds: float
    losses: Mapping[str, float]
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Outcome:
    """How one attempt at a task ended."""

    task: str
    result: Mapping[str, Any] | None = None
    """What ``result.json`` holds: ``provenance``; None where it failed."""
    error: str | None = None
    """Why it failed, in one line."""
    is_explained: bool = False
    """The line says what a person can do; another attempt would end the same way."""
    is_cancelled: bool = False
    is_lost: bool = False
    """The machine of a cluster that did it is gone."""


class Listener(Protocol):
    """Hears what happens, in the thread that called ``run``. What its methods raise stops all tasks."""

    def started(self, task: str) -> None:
        """An attempt at the task begins."""

    def heard(self, event: Event) -> None:
        """An epoch is done."""

    def ended(self, outcome: Outcome) -> None:
        """The task is done, or failed for good."""

    def tick(self) -> None:
        """Called several times a second while nothing else happens."""


Say = Callable[[Event], None]
"""Hears of each epoch; what it raises stops the task, which keeps its checkpoint."""


def attempt(spec: TaskSpec, say: Say) -> Outcome:
    """Do the task; errors become an ``Outcome``. What somebody asked to stop is said as cancelled."""
    try:
        return Outcome(spec.name, run(spec, say))
    except BaseException as error:
        if engine_bridge.is_cancelled(error):
            return Outcome(spec.name, error="Cancelled.", is_cancelled=True)
        if not isinstance(error, Exception):
            raise
        text = engine_bridge.remedy(error)
        if text is None:
            traceback.print_exc()
            return Outcome(spec.name, error=f"{type(error).__name__}: {error}")
        return Outcome(spec.name, error=text, is_explained=True)


def run(spec: TaskSpec, say: Say) -> dict[str, Any]:
    """Do the task, or read what an attempt before left; returns what ``result.json`` holds.

    Raises:
        EngineError: the data or config cannot be trained on.
        DamagedError: a file that it reads is damaged.
        TrainingCancelled: ``say`` stopped it.
    """
    if (done := finished(spec)) is not None:
        return done
    with engine_bridge.threads(spec.threads):
        return _run(spec, say)


def finished(spec: TaskSpec) -> dict[str, Any] | None:
    """The result that the task left, or None where it has none yet."""
    try:
        found = json.loads((Path(spec.out) / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def layout_of(features: Path, out: Path, draws: str) -> TaskSpec:
    """The task that looks at features by their first view, with all cores of the machine that does it.

    It leaves ``map.npy``, (N, 2) float32, and ``neighbours.npy``, (N, ``NEIGHBOURS``) int.
    """
    return TaskSpec(
        name=LAYOUT,
        engine=LAYOUT,
        config={},
        num_classes=0,
        inputs=str(features),
        out=str(out),
        checkpoint=f"{out}.checkpoint",
        features=str(features),
        draws=draws,
    )


def _lay_out(spec: TaskSpec) -> None:
    found = _mapped(spec.features)
    assert found is not None
    points = found[:, 0]  # of a file on disk: both read it in pieces where it is large
    near = embedding.neighbor_table(points, num_neighbors=NEIGHBOURS)
    drawn = embedding.map_2d(points, quick=spec.draws == "pca")
    store(Path(spec.out), {"map": drawn, "neighbours": near}, {})


def _embed(spec: TaskSpec, say: Say) -> None:
    images = _mapped(spec.images)
    assert images is not None
    start, end = spec.config["rows"]
    found = backbone_bridge.embed_array(
        images[start:end],
        name=spec.config["backbone"],
        weights=Path(spec.reads["weights"]),
        side=spec.config["side"],
        views=spec.config["views"],
        device=spec.device,
        on_rows=lambda done: say(
            Event(spec.name, EMBEDDING, start + done, end, done / (end - start), 0.0, {}, {})
        ),
    )
    store(Path(spec.out), {"features": found}, {})


def _run(spec: TaskSpec, say: Say) -> dict[str, Any]:
    if spec.engine == EMBEDDING:
        _embed(spec, say)
        return {}
    if spec.engine == LAYOUT:
        _lay_out(spec)
        return {}
    checkpoint = engine_bridge.FileCheckpoint(Path(spec.checkpoint))
    values, provenance = _TRAIN[spec.task](spec, _common(spec, say, checkpoint))
    plain = {"provenance": provenance}
    store(Path(spec.out), values, plain)
    checkpoint.remove()
    return plain


Arrays = dict[str, NDArray[Any]]


def _train_classes(spec: TaskSpec, common: dict[str, Any]) -> tuple[Arrays, dict[str, Any]]:
    inputs = _classes(spec)
    result = engine_bridge.train(spec.engine, **inputs, **common)
    labels, given = inputs["labels"], _read(spec.given)
    arrays: Arrays = {
        "pred_probs": result.pred_probs,
        "trust_score": trust_in_given(
            result.trust_score, result.pred_probs, labels if given is None else given, labels
        ),
        "embeddings": result.embeddings,
    }
    if spec.draws is not None:
        arrays["map"] = embedding.map_2d(result.embeddings, quick=spec.draws == "pca")
    if spec.finds_neighbours:
        arrays["neighbours"] = embedding.neighbor_table(result.embeddings, num_neighbors=NEIGHBOURS)
    if result.features is not None:
        arrays["features"] = result.features
    arrays |= {f"signal_{key}": values for key, values in result.signals.items()}
    arrays |= {f"history_{key}": values for key, values in result.signal_history.items()}
    return arrays, _provenance(result)


def _train_masks(spec: TaskSpec, common: dict[str, Any]) -> tuple[Arrays, dict[str, Any]]:
    masks, trusted = load_arrays(Path(spec.inputs), "masks", "trusted", remedy=AGAIN)
    images, judged = _mapped(spec.images), _mapped(spec.given)
    assert images is not None
    assert judged is not None
    result = engine_bridge.train_masks(
        spec.engine,
        images,
        masks,
        spec.num_classes,
        judged=judged,
        trusted=trusted,
        **common,
    )
    arrays: Arrays = {
        "predicted": result.predicted,
        "predicted_prob": result.predicted_prob,
        "given_prob": result.given_prob,
        "embeddings": result.embeddings,
    }
    return arrays, _provenance(result)


def _train_numbers(spec: TaskSpec, common: dict[str, Any]) -> tuple[Arrays, dict[str, Any]]:
    numbers, trusted = load_arrays(Path(spec.inputs), "numbers", "trusted", remedy=AGAIN)
    judged = _mapped(spec.given)
    assert judged is not None
    result = engine_bridge.train_numbers(
        spec.engine,
        _mapped(spec.images),
        numbers,
        features=_mapped(spec.features),
        judged=judged,
        trusted=trusted,
        **common,
    )
    arrays: Arrays = {
        "predicted": result.predicted,
        "deviation": result.deviation,
        "embeddings": result.embeddings,
    }
    return arrays | {f"signal_{key}": values for key, values in result.signals.items()}, _provenance(result)


_TRAIN = {CLASSIFICATION: _train_classes, SEGMENTATION: _train_masks, REGRESSION: _train_numbers}


def _common(spec: TaskSpec, say: Say, checkpoint: engine_bridge.FileCheckpoint) -> dict[str, Any]:
    """Return what every training takes."""
    labels, truth = None, _read(spec.truth)
    if truth is not None:
        (labels,) = load_arrays(Path(spec.inputs), "labels", remedy=AGAIN)
    return {
        "config": spec.config,
        "seed": spec.seed,
        "device": spec.device,
        "on_epoch": lambda record: say(_event(spec.name, record, labels, truth)),
        "checkpoint": checkpoint,
    }


def _classes(spec: TaskSpec) -> dict[str, Any]:
    """Return what a training on classes takes besides."""
    labels, trusted = load_arrays(Path(spec.inputs), "labels", "trusted", remedy=AGAIN)
    with np.load(spec.inputs, allow_pickle=False) as stored:
        weight = stored.get("trusted_weight", None)
    return {
        "images": _mapped(spec.images),
        "labels": labels,
        "num_classes": spec.num_classes,
        "trusted": trusted,
        "trusted_weight": weight,
        "features": _mapped(spec.features),
    }


def _provenance(result: Any) -> dict[str, Any]:
    return engine_bridge.plain(result.provenance) | {"is_out_of_sample": result.is_out_of_sample}


def store(folder: Path, arrays: Mapping[str, NDArray[Any]], plain: Mapping[str, Any] | None = None) -> None:
    """Write arrays, and ``plain`` as ``result.json``, all together or not at all; an older set is replaced."""
    with new_folder_beside(folder) as building:
        for name, values in arrays.items():
            np.save(building / f"{name}.npy", values)
        if plain is not None:
            (building / RESULT).write_text(json.dumps(plain), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        building.rename(folder)


def _event(
    task: str, record: EpochRecord, labels: NDArray[np.int64] | None, truth: NDArray[np.int64] | None
) -> Event:
    metrics = {key: float(value) for key, value in record.metrics.items()}
    if truth is not None and labels is not None and "selected" in record.signals:
        kept = np.nan_to_num(np.asarray(record.signals["selected"], dtype=np.float64))
        if kept.sum() > 0:
            metrics["label_precision"] = float((kept * (labels == truth)).sum() / kept.sum())
    return Event(
        task=task,
        stage=record.stage,
        epoch=record.epoch,
        num_epochs=record.num_epochs,
        progress=record.progress,
        seconds=record.seconds,
        losses={key: float(value) for key, value in record.losses.items()},
        metrics=metrics,
    )


def _mapped(path: str | None) -> NDArray[Any] | None:
    return None if path is None else load_array(Path(path), remedy=AGAIN)


def _read(path: str | None) -> NDArray[np.int64] | None:
    return None if path is None else load_array(Path(path), remedy=AGAIN, mapped=False)
