"""The three kinds of tasks: train an engine, embed rows with a backbone, lay out the map of features."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from auditor.bridges import backbone_bridge, engine_bridge
from auditor.ground.files import load_array, load_arrays
from auditor.ground.vocabulary import CLASSIFICATION, MULTILABEL, REGRESSION, SEGMENTATION
from auditor.statistics import trust_in_given
from auditor.work import embedding
from auditor.work.tasks import PUT_IT_BACK, Event, Say, Task, store_arrays

if TYPE_CHECKING:
    from auditor.bridges.engine_bridge import EpochRecord

EMBEDDING, LAYOUT = "embedding", "layout"
NUM_NEIGHBOURS = 8

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Embed(Task):
    """A backbone's features of some rows, in ``features.npy``: (n, V, D) float16. Those begun begin anew."""

    images: str
    """``.npy`` of (N, C, H, W) uint8."""
    weights: str
    """The backbone's file."""
    backbone: str
    side: int | None
    """Pixels that the network sees; None = its own."""
    views: int
    rows: tuple[int, int]
    """The first one and the one after the last."""

    READS: ClassVar = ("images", "weights")

    def work(self, say: Say) -> dict[str, Any]:
        """See ``Task``."""
        start, end = self.rows
        found = backbone_bridge.embed_array(
            _mapped(self.images)[start:end],
            name=self.backbone,
            weights=Path(self.weights),
            side=self.side,
            views=self.views,
            device=self.device,
            on_rows=lambda done: say(
                Event(self.name, EMBEDDING, start + done, end, done / (end - start), 0.0, {}, {})
            ),
        )
        store_arrays(Path(self.out), {"features": found}, {})
        return {}


@dataclass(frozen=True, kw_only=True)
class Layout(Task):
    """``map.npy``, (N, 2) float32, and ``neighbours.npy``, (N, ``NEIGHBOURS``) int, by the features' first view.

    With all cores of the machine that does it.
    """

    name: str = LAYOUT
    features: str
    """``.npy`` of (N, V, D) float16 or float32."""
    draws: str
    """``umap`` or ``pca``: how the map is laid out."""

    READS: ClassVar = ("features",)

    def work(self, say: Say) -> dict[str, Any]:
        """See ``Task``; it says nothing on the way."""
        del say
        points = _mapped(self.features)[:, 0]  # of a file on disk: both read it in pieces where it is large
        near = embedding.neighbor_table(points, num_neighbors=NUM_NEIGHBOURS)
        drawn = embedding.map_2d(points, quick=self.draws == "pca")
        store_arrays(Path(self.out), {"map": drawn, "neighbours": near}, {})
        return {}


@dataclass(frozen=True, kw_only=True)
class Train(Task):
    """One engine on one set."""

    engine: str
    config: Mapping[str, Any]
    """Every field that differs from the engine's defaults."""
    num_classes: int
    inputs: str
    """``.npz`` with ``trusted`` (N,) bool, and the labels to train on: ``labels`` (N,) int64 with perhaps
    ``trusted_weight`` (N,) float32; ``masks`` (N, S, S) uint8; ``numbers`` (N,) float64; or ``sets`` (N, K)
    int8."""
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

    READS: ClassVar = ("inputs", "images", "features", "given", "truth")

    def moved(self, place: Path, files: Mapping[str, str]) -> Self:
        """See ``Task``."""
        return dataclasses.replace(super().moved(place, files), checkpoint=str(place / "checkpoint"))

    def work(self, say: Say) -> dict[str, Any]:
        """See ``Task``; of it is said the ``provenance`` of what was found."""
        checkpoint = engine_bridge.FileCheckpoint(Path(self.checkpoint))
        values, provenance = _TRAIN[self.task](self, _common(self, say, checkpoint))
        plain = {"provenance": provenance}
        store_arrays(Path(self.out), values, plain)
        checkpoint.remove()
        return plain


KINDS: dict[str, type[Task]] = {kind.__name__: kind for kind in (Train, Embed, Layout)}


def of_json(text: str) -> Task:
    """Return what ``Task.as_json`` wrote."""
    values = json.loads(text)
    lists = {key: tuple(value) for key, value in values.items() if isinstance(value, list)}
    return KINDS[values.pop("kind")](**values | lists)


def _train_classes(task: Train, common: dict[str, Any]) -> tuple[Arrays, dict[str, Any]]:
    inputs = _classes(task)
    result = engine_bridge.train(task.engine, **inputs, **common)
    labels, given = inputs["labels"], _read(task.given)
    arrays: Arrays = {
        "pred_probs": result.pred_probs,
        "trust_score": trust_in_given(
            result.trust_score, result.pred_probs, labels if given is None else given, labels
        ),
        "embeddings": result.embeddings,
    }
    if task.draws is not None:
        arrays["map"] = embedding.map_2d(result.embeddings, quick=task.draws == "pca")
    if task.finds_neighbours:
        arrays["neighbours"] = embedding.neighbor_table(result.embeddings, num_neighbors=NUM_NEIGHBOURS)
    if result.features is not None:
        arrays["features"] = result.features
    arrays |= {f"signal_{key}": values for key, values in result.signals.items()}
    arrays |= {f"history_{key}": values for key, values in result.signal_history.items()}
    return arrays, _provenance(result)


def _train_masks(task: Train, common: dict[str, Any]) -> tuple[Arrays, dict[str, Any]]:
    masks, trusted = load_arrays(Path(task.inputs), "masks", "trusted", remedy=PUT_IT_BACK)
    images, judged = _mapped_if(task.images), _mapped_if(task.given)
    assert images is not None
    assert judged is not None
    result = engine_bridge.train_masks(
        task.engine,
        images,
        masks,
        task.num_classes,
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


def _train_numbers(task: Train, common: dict[str, Any]) -> tuple[Arrays, dict[str, Any]]:
    numbers, trusted = load_arrays(Path(task.inputs), "numbers", "trusted", remedy=PUT_IT_BACK)
    judged = _mapped_if(task.given)
    assert judged is not None
    result = engine_bridge.train_numbers(
        task.engine,
        _mapped_if(task.images),
        numbers,
        features=_mapped_if(task.features),
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


def _train_sets(task: Train, common: dict[str, Any]) -> tuple[Arrays, dict[str, Any]]:
    sets, trusted = load_arrays(Path(task.inputs), "sets", "trusted", remedy=PUT_IT_BACK)
    assert task.features is not None
    result = engine_bridge.train_sets(task.engine, _mapped(task.features), sets, trusted=trusted, **common)
    return {"probs": result.probs}, _provenance(result)


_TRAIN = {
    CLASSIFICATION: _train_classes,
    SEGMENTATION: _train_masks,
    REGRESSION: _train_numbers,
    MULTILABEL: _train_sets,
}


def _common(task: Train, say: Say, checkpoint: engine_bridge.FileCheckpoint) -> dict[str, Any]:
    """Return what every training takes."""
    labels, truth = None, _read(task.truth)
    if truth is not None:
        (labels,) = load_arrays(Path(task.inputs), "labels", remedy=PUT_IT_BACK)
    return {
        "config": task.config,
        "seed": task.seed,
        "device": task.device,
        "on_epoch": lambda record: say(_event(task.name, record, labels, truth)),
        "checkpoint": checkpoint,
    }


def _classes(task: Train) -> dict[str, Any]:
    """Return what a training on classes takes besides."""
    labels, trusted = load_arrays(Path(task.inputs), "labels", "trusted", remedy=PUT_IT_BACK)
    with np.load(task.inputs, allow_pickle=False) as stored:
        weight = stored.get("trusted_weight", None)
    return {
        "images": _mapped_if(task.images),
        "labels": labels,
        "num_classes": task.num_classes,
        "trusted": trusted,
        "trusted_weight": weight,
        "features": _mapped_if(task.features),
    }


def _provenance(result: Any) -> dict[str, Any]:
    return engine_bridge.plain(result.provenance) | {"is_out_of_sample": result.is_out_of_sample}


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


def _mapped(path: str) -> NDArray[Any]:
    return load_array(Path(path), remedy=PUT_IT_BACK)


def _mapped_if(path: str | None) -> NDArray[Any] | None:
    return None if path is None else _mapped(path)


def _read(path: str | None) -> NDArray[np.int64] | None:
    return None if path is None else load_array(Path(path), remedy=PUT_IT_BACK, mapped=False)
