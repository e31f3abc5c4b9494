"""The arrays that an audit left on disk, and the evidence on one sample put together from them.

Layout below ``home/audits/<audit>/<engine>/``: ``pred_probs.npy`` (N, K) float32, ``trust_score.npy`` (N,)
float32, ``embeddings.npy`` (N, D) float32, ``signal_<name>.npy`` (N,) float32, ``history_<name>.npy`` (E, N)
float16 and ``map.npy`` (N, 2) float32; the audit's first engine also ``neighbours.npy`` (N, 8) int32. Where there
are features of a backbone, map and neighbours are made from these and lie below ``features``. They are
opened as memory maps: one sample's story reads a few pages, never the file. Only where an audit of an earlier
version left no ``neighbours.npy`` does a story look through all embeddings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sqlmodel import Session

from auditor.backbones import features
from auditor.backbones.features import FeatureSource
from auditor.catalog import audits, datasets, folders, reading, scores
from auditor.catalog.db import ask, session
from auditor.catalog.records import Audit, EngineRun, Sample
from auditor.ground.errors import NotFoundError
from auditor.ground.files import load_array, load_arrays, load_json, written_whole
from auditor.results import own_models
from auditor.statistics import CrossFit, Pool, engine_sentence, headline
from auditor.work import NUM_NEIGHBOURS, PUT_IT_BACK, RESULT_FILE, nearest_neighbors

RANKS = "ranks.npz"
POOLS = "pools.npz"
FEATURES = "features"
REDUCED = "reduced"
"""Folder of an audit's features as all that reads them sees them."""
"""Instead of an engine's name: what the backbone saw, or the user's own features."""
ON = "_on_"
"""Between an engine and what it looked at, in the name of a second run of the engine that speaks."""
IMAGES = "images"
MOST_DUPLICATES = 60
"""Samples with the same picture that a story names: a placeholder may be in a dataset any number of times."""
TOP_CLASSES = 9


def warnings_of(run: EngineRun) -> list[str]:
    """Return what the engine says makes its own result doubtful, one sentence each; empty where nothing does."""
    return [str(warning) for warning in run.provenance.get("notes", {}).get("warnings", [])]


@dataclass(frozen=True)
class EngineVerdict:
    """What one witness says about one sample: an engine, or the user's own predictions."""

    engine: str
    title: str
    predicted_label: int
    trust: float
    """NaN for own predictions: their place among all samples would need all of them."""
    signals: Mapping[str, float]
    history: Mapping[str, list[float]]
    """By signal, one value a recorded epoch."""
    sentence: str


@dataclass(frozen=True)
class Evidence:
    """Everything that helps a person to judge one sample."""

    sample_id: int
    filepath: str
    given_label: int
    suggested_label: int
    suggested_probability: float
    error_probability: float
    trust_score: float
    top_classes: list[tuple[int, float]]
    """(class, mean probability as the suggestion has it), the likeliest first, at most nine."""
    verdicts: list[EngineVerdict]
    neighbours: list[int]
    """The samples that look most alike."""
    neighbours_in: str
    """Where they do: ``FEATURES``, or an engine's name."""
    duplicates: list[int]
    """The first ``MOST_DUPLICATES`` other samples with the same picture."""
    headline: str
    """What the witnesses together say, in one sentence."""


def ranks(trust: NDArray[np.floating]) -> NDArray[np.int64]:
    """(N,) 0 = least trusted; what has no trust (NaN) comes last, ties keep the order of the source."""
    order = np.argsort(np.where(np.isnan(trust), 2.0, trust), kind="stable")
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order))
    return found


def ranked_at(audit: Audit) -> str | None:
    """Return when its ranking was made: changes whenever its scores do."""
    return audit.summary.ranked_at or audit.summary.settled_at


def keep_ranks(audit_id: int, rank: NDArray[np.integer], ranked_at: str) -> None:
    """Keep the ranking beside the arrays: the worst of a region of millions are then found without the catalog."""
    with written_whole(folders.of_audit(audit_id) / RANKS) as path, path.open("wb") as file:
        np.savez(file, rank=rank.astype(np.int32), settled_at=ranked_at)


def keep_pools(audit_id: int, fits: CrossFit, settled_at: str) -> None:
    """Keep the fitted pools beside the arrays: how each sample's probabilities come about."""
    with written_whole(folders.of_audit(audit_id) / POOLS) as beside, beside.open("wb") as file:
        np.savez(
            file,
            names=list(fits.names),
            parts=fits.parts,
            weights=[pool.weights for pool in fits.pools],
            bias=[pool.bias for pool in fits.pools],
            transition=[pool.transition for pool in fits.pools],
            settled_at=settled_at,
        )


def _pooled_opinion(
    audit: Audit, opinions: Mapping[str, NDArray[np.floating]], sample_id: int, given: int
) -> NDArray[np.float64]:
    """(K,) probability of each class of one sample, as its suggestion has it.

    The plain mean where the pools of the last settling hear none of ``opinions``, or were not kept before a kill.
    """
    fits = pools(audit)
    if fits is None or not set(fits.names) <= set(opinions):
        return np.mean(list(opinions.values()), axis=0, dtype=np.float64)
    heard = [opinions[name][None] for name in fits.names]
    return fits.pools[fits.parts[sample_id]].opinion(heard, given)


def pools(audit: Audit) -> CrossFit | None:
    """As the audit's last settling kept them, told of later verdicts; None where a kill came before that."""
    path = folders.of_audit(audit.id) / POOLS
    if not path.exists():
        return None
    columns = ("names", "parts", "weights", "bias", "transition", "settled_at")
    names, parts, weights, bias, transition, settled_at = load_arrays(path, *columns, remedy=PUT_IT_BACK)
    if str(settled_at) != audit.summary.settled_at:
        return None
    pools = tuple(Pool(*one) for one in zip(weights, bias, transition, strict=True))
    return CrossFit(tuple(names.tolist()), pools, parts)


def is_out_of_sample(audit_id: int, engine: str) -> bool:
    """Every sample was judged by a model that never learned from its label."""
    path = _folder_of(audit_id, engine) / RESULT_FILE
    told = load_json(path, remedy=PUT_IT_BACK) if path.exists() else {}
    return bool(told.get("provenance", {}).get("is_out_of_sample"))


def worst_of(audit: Audit, sample_ids: NDArray[np.integer], *, most: int) -> pd.DataFrame:
    """sample_id and rank of the most suspicious of some samples, at most ``most``, the worst first."""
    path = folders.of_audit(audit.id) / RANKS
    if path.exists():
        rank, at = load_arrays(path, "rank", "settled_at", remedy=PUT_IT_BACK)
        if str(at) == ranked_at(audit):
            found = rank[sample_ids]
            chosen = np.argpartition(found, most)[:most] if len(found) > most else np.arange(len(found))
            table = pd.DataFrame({"sample_id": sample_ids[chosen], "rank": found[chosen].astype(np.int64)})
            return table.sort_values("rank", ignore_index=True)
    # Its settling was killed just before they were kept.
    return ask(scores.in_order, audit.id, sample_ids, most=most)


def engine_folder(audit_id: int, engine: str) -> Path:
    """Return where an engine's arrays lie."""
    return folders.of_audit(audit_id) / engine


@dataclass(frozen=True)
class Run:
    """One run of an engine that speaks in an audit's consensus."""

    name: str
    """Of the witness: the engine, or ``ENGINE_on_MODEL`` where another run of the engine has that name."""
    engine: str
    model: str
    """What it looked at: ``images``, a backbone's or own features, or a backbone that it trained further."""
    audit_id: int


def speaking_runs(audit_id: int, *, alone: bool | None = None) -> list[Run]:
    """The runs that speak in this audit's consensus: its own, then the latest before it of every engine and model.

    Only runs whose arrays are complete. An engine on images and the same engine on features are two runs, and both
    speak. A person who wants an audit to speak for itself says so when it is planned or later (``settle.hear``).
    This is the one place where it is chosen who speaks.

    ``alone``: whether only its own are heard; None = as a person chose.
    """
    found: list[Run] = []
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        of_audits = [audit]
        if not (audit.options.alone if alone is None else alone):
            of_audits += [
                one
                for one in audits.of_dataset(open_session, audit.dataset_id)
                if one.id < audit_id and one.status == "finished"
            ]
        for one in of_audits:
            for run in audits.runs(open_session, one.id):
                model = model_of(one, run.engine)
                heard = {(other.engine, other.model) for other in found}
                if (run.engine, model) in heard or not _is_complete(one.id, run.engine):
                    continue
                is_named = run.engine in {other.engine for other in found}
                name = f"{run.engine}{ON}{re.sub(r'[^0-9A-Za-z]+', '_', model)}" if is_named else run.engine
                found.append(Run(name, run.engine, model, one.id))
    return found


def runs_that_speak(audit_id: int) -> dict[str, int]:
    """By name of the witness, the audit whose run it is; see ``speaking_runs``."""
    return {run.name: run.audit_id for run in speaking_runs(audit_id)}


def engine_of(name: str) -> str:
    """The engine of a witness that ``speaking_runs`` named."""
    return name.partition(ON)[0]


def model_of(audit: Audit, engine: str) -> str:
    """Return what an engine of the audit looked at."""
    source = features_of(audit)
    if source is None:
        return IMAGES
    if engine in audit.options.further:
        return f"{source.each[0].name}, trained further"
    return source.name


def _is_complete(audit_id: int, engine: str) -> bool:
    return (engine_folder(audit_id, engine) / "pred_probs.npy").exists()


def heard_in_words(audit: Audit) -> str:
    """Return which runs spoke when the audit was settled, and of which audits; empty where only its own did."""
    runs = {name: one for name, one in audit.summary.runs.items() if one != audit.id}
    numbers = ask(audits.numbers, audit.dataset_id) if runs else {}
    borrowed = [f"{name} (audit {numbers.get(one, one)})" for name, one in runs.items()]
    return f"Also used, from earlier audits: {', '.join(borrowed)}." if borrowed else ""


def _folder_of(audit_id: int, name: str) -> Path:
    """Return where the arrays of a witness lie: in the audit itself, or in that of the run which speaks by
    this name.
    """
    if _is_complete(audit_id, name) or name == FEATURES:
        return engine_folder(audit_id, name)
    return engine_folder(runs_that_speak(audit_id).get(name, audit_id), engine_of(name))


def array(audit_id: int, engine: str, name: str) -> NDArray[Any]:
    """One array as a read-only memory map.

    Raises:
        NotFoundError: the engine did not finish or has no such array.
    """
    path = _folder_of(audit_id, engine) / f"{name}.npy"
    if not path.exists():
        raise NotFoundError(f"Audit {audit_id} has no {name} of engine {engine}; did that engine finish?")
    return load_array(path, remedy=PUT_IT_BACK)


def pred_probs(audit_id: int, engine: str) -> NDArray[np.float32]:
    """(N, K) float32, rows sum to 1; K is the number of classes that the engine knew, or of all where some
    were merged since.
    """
    return reading.dataset_of_audit(audit_id).sums_of_today(array(audit_id, engine, "pred_probs"))


def of_all_classes(probs: NDArray[np.float32], num_classes: int) -> NDArray[np.float32]:
    """``probs`` (N, k) as (N, num_classes): nothing for classes that came later, and none that was taken back."""
    later = num_classes - probs.shape[1]
    if later >= 0:
        return np.pad(probs, ((0, 0), (0, later))) if later else probs
    kept = probs[:, :num_classes]
    return np.asarray(kept / np.maximum(kept.sum(axis=1, keepdims=True), np.float32(1e-12)))


def trust(audit_id: int, engine: str) -> NDArray[np.float32]:
    """(N,) float32 in [0, 1], NaN where unlabeled; 1 = the given label looks right."""
    return array(audit_id, engine, "trust_score")


def signal(audit_id: int, engine: str, name: str) -> NDArray[np.float32]:
    """(N,) float32: one published signal in its own orientation."""
    return array(audit_id, engine, f"signal_{name}")


def history(audit_id: int, engine: str, name: str) -> NDArray[np.float16]:
    """(E, N) float16: a signal by recorded epoch."""
    return array(audit_id, engine, f"history_{name}")


def embeddings(audit_id: int, engine: str) -> NDArray[np.floating]:
    """(N, D) float32: what the engine learned about each image. Of ``FEATURES`` the first view."""
    if engine != FEATURES:
        return array(audit_id, engine, "embeddings")
    return load_array(reduced_file(audit_id), remedy=PUT_IT_BACK)[:, 0]


def reduced_file(audit_id: int) -> Path:
    """The audit's features as all that reads them sees them: ``.npy``, (N, V, d) float32.

    Raises:
        NotFoundError: it has none.
    """
    path = engine_folder(audit_id, REDUCED) / "features.npy"
    if not path.exists():
        raise NotFoundError(f"Audit {audit_id} has no features.")
    return path


def nearness_of(audit_id: int) -> str:
    """In what samples are near one another: ``FEATURES``, else the first engine; "" where there is neither."""
    if (engine_folder(audit_id, FEATURES) / "neighbours.npy").exists():
        return FEATURES
    return next(iter(engines_of(audit_id)), "")


def map_points(audit_id: int, engine: str) -> NDArray[np.float32]:
    """(N, 2) float32: the embedding of an engine, or ``FEATURES``, laid out on a plane."""
    return array(audit_id, engine, "map")


def maps_of(audit_id: int) -> list[str]:
    """Return what has a map: ``FEATURES`` where there are some, then engines that trained on images."""
    names = [FEATURES, *engines_of(audit_id)]
    return [name for name in names if (_folder_of(audit_id, name) / "map.npy").exists()]


def features_of(audit: Audit) -> FeatureSource | None:
    """The features that the audit's engines look at (all of them, or where they train the backbone further those
    that need features); None where they train on the images from scratch."""
    stored = audit.options.features
    return None if stored is None else FeatureSource.of_dict(stored)


def features_title(audit: Audit) -> str:
    """Return how people call the audit's features: ``what the networks saw`` or ``your own features F``.

    Raises:
        NotFoundError: it has none.
    """
    source = features_of(audit)
    if source is None:
        raise NotFoundError(f"Audit {audit.id} has no features.")
    own = source.name.removeprefix(features.OWN)
    seen = "what the networks saw" if source.parts else "what the network saw"
    return seen if source.weights is not None else f"your own features {own}"


def signal_names(audit_id: int, engine: str) -> list[str]:
    """The signals that the engine left."""
    return _names(audit_id, engine, "signal_")


def history_names(audit_id: int, engine: str) -> list[str]:
    """The signals whose history the engine left."""
    return _names(audit_id, engine, "history_")


def engines_of(audit_id: int) -> list[str]:
    """Names of the runs that speak in the consensus, the audit's own in their order, then earlier ones."""
    return list(runs_that_speak(audit_id))


def trained_labels(audit_id: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The labels (N,) and the trusted mask (N,) that the audit trained on."""
    path = folders.of_audit(audit_id) / "inputs.npz"
    labels, trusted = load_arrays(path, "labels", "trusted", remedy=PUT_IT_BACK)
    return labels, trusted


@folders.checked_once()
def evidence(audit_id: int, sample_id: int) -> Evidence:
    """Put together what the audit knows about one sample.

    Raises:
        NotFoundError: no such audit, sample or score.
    """
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        score = scores.of_samples(open_session, audit_id, [sample_id]).get(sample_id)
        if score is None:
            raise NotFoundError(f"Audit {audit_id} has no score for sample {sample_id}.")
        sample = datasets.sample(open_session, audit.dataset_id, sample_id)
        dataset = datasets.by_id(open_session, audit.dataset_id)
        same_picture = _duplicates(open_session, sample)
    engines = engines_of(audit_id)
    verdicts = [
        _verdict(audit, engine, sample_id, score.given_label, dataset.class_names) for engine in engines
    ]
    opinions = {engine: pred_probs(audit_id, engine)[sample_id] for engine in engines}
    for name, own in own_models.heard_by(audit).items():
        if predicted_label(own[sample_id]) >= 0:
            opinions[name] = own[sample_id]
            verdicts.append(_own_verdict(name, own[sample_id], score.given_label, dataset.class_names))
    votes = [(verdict.title, verdict.predicted_label) for verdict in verdicts]
    probs = _pooled_opinion(audit, opinions, sample_id, score.given_label)
    order = [label for label in np.argsort(-probs, kind="stable").tolist() if label in dataset.classes]
    alike_in = nearness_of(audit_id)
    return Evidence(
        sample_id=sample_id,
        filepath=sample.filepath,
        given_label=score.given_label,
        suggested_label=score.suggested_label,
        suggested_probability=score.suggested_probability,
        error_probability=float("nan") if score.error_probability is None else score.error_probability,
        trust_score=float("nan") if score.trust_score is None else score.trust_score,
        top_classes=[(label, float(probs[label])) for label in order[:TOP_CLASSES]],
        verdicts=verdicts,
        neighbours=_neighbours(audit_id, alike_in, sample_id) if alike_in else [],
        neighbours_in=alike_in,
        duplicates=same_picture,
        headline=headline(score.given_label, votes, dataset.class_names, score.suggested_label),
    )


@folders.checked_once()
def headlines(
    audit: Audit, labels: Mapping[int, tuple[int, int]], class_names: Sequence[str]
) -> dict[int, str]:
    """Return what the witnesses together say about each of some samples, in words.

    Args:
        audit: a finished one.
        labels: by sample_id, (given, suggested) label, -1 = none.
        class_names: by class.
    """
    said = votes(audit, list(labels))
    return {i: headline(given, said[i], class_names, suggested) for i, (given, suggested) in labels.items()}


@folders.checked_once()
def votes(audit: Audit, samples: Sequence[int]) -> dict[int, list[tuple[str, int]]]:
    """By sample, (title, class that it predicts, -1 = none) of every engine and model that speaks in an audit.

    Raises:
        NotFoundError: an engine's arrays are gone.
    """
    voters = [
        (describe(audit.id, name)["title"], pred_probs(audit.id, name)) for name in engines_of(audit.id)
    ]
    voters += own_models.heard_by(audit).items()
    return {i: [(name, predicted_label(probs[i])) for name, probs in voters] for i in samples}


def _verdict(audit: Audit, engine: str, sample_id: int, given: int, class_names: list[str]) -> EngineVerdict:
    about = describe(audit.id, engine)
    probs = pred_probs(audit.id, engine)[sample_id]
    signals = {
        name: float(signal(audit.id, engine, name)[sample_id]) for name in signal_names(audit.id, engine)
    }
    story = {
        name: [float(value) for value in history(audit.id, engine, name)[:, sample_id]]
        for name in history_names(audit.id, engine)
    }
    predicted = int(np.argmax(probs))
    trust_score = float(trust(audit.id, engine)[sample_id])
    sentence = engine_sentence(
        given=class_names[given] if given >= 0 else None,
        predicted=class_names[predicted],
        probability=float(probs[predicted]),
        history=story,
    )
    return EngineVerdict(engine, about["title"], predicted, trust_score, signals, story, sentence)


def _own_verdict(name: str, probs: NDArray[np.float32], given: int, class_names: list[str]) -> EngineVerdict:
    predicted = predicted_label(probs)
    sentence = engine_sentence(
        given=class_names[given] if given >= 0 else None,
        predicted=class_names[predicted],
        probability=float(probs[predicted]),
        history={},
    )
    return EngineVerdict(name, name, predicted, float("nan"), {}, {}, sentence)


def predicted_label(probs: NDArray[np.floating]) -> int:
    """The likeliest class of one sample's (K,) probabilities, -1 where the witness has no opinion."""
    return int(np.argmax(probs)) if np.isfinite(probs).all() else -1


def describe(audit_id: int, engine: str) -> dict[str, Any]:
    """Title, paper and the signals' meanings of an engine as the audit recorded them (needs no torch)."""
    folder = _folder_of(audit_id, engine)
    path = folder.with_name(f"{folder.name}.json")
    if not path.exists():
        return {"title": engine, "paper": "", "signals": {}}
    about = load_json(path, remedy=PUT_IT_BACK)
    if ON not in engine:
        return about
    (model,) = [run.model for run in speaking_runs(audit_id) if run.name == engine]
    return about | {"title": f"{about['title']}, on {model}"}


def _neighbours(audit_id: int, engine: str, sample_id: int) -> list[int]:
    if (_folder_of(audit_id, engine) / "neighbours.npy").exists():
        return [int(i) for i in array(audit_id, engine, "neighbours")[sample_id]]
    ids, _ = nearest_neighbors(
        embeddings(audit_id, engine), np.array([sample_id]), num_neighbors=NUM_NEIGHBOURS
    )
    return [int(i) for i in ids[0]]


def _duplicates(open_session: Session, sample: Sample) -> list[int]:
    if sample.duplicate_group is None:
        return []
    group = datasets.group_members(
        open_session, sample.dataset_id, sample.duplicate_group, limit=MOST_DUPLICATES + 1
    )
    return [one for one in group if one != sample.sample_id][:MOST_DUPLICATES]


def _names(audit_id: int, engine: str, prefix: str) -> list[str]:
    folder = _folder_of(audit_id, engine)
    files = sorted(folder.glob(f"{prefix}*.npy"))
    return [path.stem.removeprefix(prefix) for path in files]
