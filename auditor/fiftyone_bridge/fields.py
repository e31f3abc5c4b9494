"""What an audit says about every sample, as columns for FiftyOne. Needs no FiftyOne."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.bridges import engine_bridge
from auditor.catalog import datasets, folders, reading, reviews, scores
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset, Review
from auditor.fiftyone_bridge import labels as labelling
from auditor.fiftyone_bridge.labels import FIGURES, Labels, MaskLabels
from auditor.ground.errors import NotFoundError
from auditor.labels.numbers import suggested_numbers
from auditor.pictures import cache
from auditor.results import arrays

MARK = "label_auditor"
"""Key of ``dataset.info`` by which we know our own datasets."""
INDEX = "sample_index"
"""Our sample_id on every sample: the key that both sides share."""
BASE = "audit_base"
"""What stood here when we last wrote; see ``merge.Base``."""
GIVEN = "ground_truth"
"""The given labels in a dataset that we made."""
REVIEW_FIELDS = {
    "decision": "str",
    "label": "str",
    "kind": "str",
    "reviewer": "str",
    "time": "date",
    "blind": "str",
}
"""Parts of the embedded document ``review``."""
MAX_LOGITS = 10_000_000
"""Of one engine, N * K: with more, predictions carry their confidence alone."""

DESCRIPTIONS = {
    INDEX: "The sample's place in the audited dataset; do not change it",
    BASE: "What Label Auditor wrote here last; do not change it",
    "split": "The split of the data set that it is in",
    "error_probability": "How likely the given label is wrong; empty until verified labels say so",
    "suspicion_rank": "1 = the most suspicious sample of the dataset",
    "engines_against": "How many engines predict another label than the given one",
    "engines_disagree": "Spread of the engines' trust, 0 = they agree, 1 = they are opposed",
    "duplicate_group": "Samples with the same number show the same picture",
    "duplicate_conflict": "A copy or near copy of this picture has another label: look at both",
    GIVEN: "The given label; it stays as it was delivered",
    "doubt": "How far the audit doubts each pixel of the given mask, 0 to 255",
    "weakest_class": "The class of the mask that the audit trusts least",
    "changed_share": "Share of the mask's pixels that the suggestion changes",
    "suggested_low": "Lower end of the interval around the suggested number",
    "suggested_high": "Upper end of the interval around the suggested number",
    "cleaned": "The label that the export would write; edit it to correct, then pull",
    "suggested": "The label to use instead, with a confidence once verified labels say one",
    "review": "What a person decided",
    "review.decision": "What a person decided",
    "review.label": "The corrected label",
    "review.kind": "How it came about",
    "review.reviewer": "Who decided",
    "review.time": "When it was decided",
    "review.blind": "What a person saw on a random draw, without a suggestion; not read back from here",
    "mistakenness": "Brain's mistakenness of the given label, from the logits of the field that the run names",
    "hardness": "Brain's hardness, from the logits of the field that the run names",
}
"""What the fields mean that are no columns of an export."""
SHARED = ("given_label", "trust_score", "is_label_issue")
"""Columns of an export that are fields for every audit; those of its engines are too."""


@dataclass(frozen=True, eq=False)
class Columns:
    """One value a sample and field; None where there is none."""

    dataset: Dataset
    labels: Labels
    audit: Audit
    values: dict[str, list[Any]]
    kinds: dict[str, str]
    """Field -> ``float``, ``int``, ``bool`` or ``str``."""
    engines: list[str]
    given: list[str | None]
    imported: list[str | None]
    """As ``given``, whatever classes were changed since."""
    suggested: list[str | None]
    confidence: list[float | None]
    decisions: dict[int, Review]
    """The latest look at a suspect, blind verdicts apart: what tags say."""
    reviews: list[dict[str, Any] | None]
    """The document ``review``, from what counts now, blind verdicts included."""
    cleaned: list[str | None]
    probs: dict[str, NDArray[np.float32]]
    """Engine -> (N, K) class probabilities."""
    predicted: dict[str, list[str | None]]
    """Engine -> the number or the mask that it predicts."""

    @property
    def num_samples(self) -> int:
        """N, the number of samples."""
        return self.dataset.num_samples


@folders.checked_once()
def load(name: str, audit_id: int | None = None) -> Columns:
    """Columns of the dataset's newest finished audit, or of ``audit_id``.

    Raises:
        NotFoundError: no such dataset, or none of its audits has finished.
    """
    dataset, audit = reading.audited(name, audit_id)
    labels = labelling.of(dataset)
    given = ask(datasets.given_labels, dataset.id)
    given_names, imported_names = labels.given(dataset.id), labels.as_imported(dataset.id)
    splits = ask(datasets.splits, dataset.id).tolist()
    table = ask(scores.table, audit.id)
    copies = ask(datasets.duplicates, dataset.id)
    conflicts = set(ask(datasets.conflicts, dataset.id).sample_id)
    decisions = ask(reviews.decisions, dataset.id)
    counting = ask(reviews.outcomes, dataset.id)
    verdicts = {i: row for (_, i), row in ask(reviews.verdicts, dataset.id).items()}
    group = dict(zip(copies.sample_id, copies.duplicate_group, strict=True))
    is_masks = isinstance(labels, MaskLabels)
    columns: dict[str, tuple[str, list[Any]]] = {}
    if not is_masks:
        kind = "float" if labels.is_numeric else "str"
        columns["given_label"] = (kind, [labels.stored(one) for one in imported_names])
    # Numbers that nothing verified backs are no probabilities: FiftyOne would print them as such.
    unknown: list[float | None] = [None] * len(given)
    is_known = not audit.summary.error_probability_is_guess
    wrong = _floats(table.error_probability.to_numpy(dtype=float)) if is_known else unknown
    of_suggestion = (
        _floats(table.suggested_probability.to_numpy(dtype=float))
        if audit.summary.suggestion_is_calibrated
        else unknown
    )
    columns |= {
        "trust_score": ("float", _floats(table.trust_score.to_numpy(dtype=float))),
        "error_probability": ("float", wrong),
        "suspicion_rank": ("int", (table["rank"] + 1).tolist()),
        "is_label_issue": ("bool", table.is_label_issue.astype(bool).tolist()),
        "engines_against": ("int", table.agreement.tolist()),
        "engines_disagree": ("float", _floats(table.disagreement.to_numpy(dtype=float))),
        "duplicate_group": ("int", [_int(group.get(i)) for i in range(len(given))]),
        "duplicate_conflict": ("bool", [i in conflicts for i in range(len(given))]),
    }
    if any(splits):
        columns["split"] = ("str", splits)
    # Of masks and numbers no earlier run speaks.
    engines = list(audit.engines) if labels.is_numeric or is_masks else arrays.engines_of(audit.id)
    for engine in [] if labels.is_numeric or is_masks else engines:
        columns[f"{engine}_trust"] = ("float", _floats(arrays.trust(audit.id, engine)))
    for field, (engine, signal) in engine_bridge.signal_columns().items():
        if engine in engines and signal in arrays.signal_names(audit.id, engine):
            columns[field] = ("float", _floats(arrays.signal(audit.id, engine, signal)))
    probs: dict[str, NDArray[np.float32]] = {}
    predicted: dict[str, list[str | None]] = {}
    if isinstance(labels, MaskLabels):
        predicted = {engine: labels.predicted(audit.id, engine) for engine in engines}
        suggested = labels.suggested(audit.id)
        weakest = table.given_label.to_numpy(dtype=np.int64)
        columns["weakest_class"] = ("str", [dataset.class_names[one] for one in weakest])
        share = table.suggested_probability.to_numpy(dtype=float)
        columns["changed_share"] = ("float", _floats(share))
    elif labels.is_numeric:
        predicted = {
            engine: _rounded(labels, arrays.array(audit.id, engine, "predicted")) for engine in engines
        }
        together = suggested_numbers(audit)
        for end in ("suggested_low", "suggested_high"):
            columns[end] = ("float", _floats(together[end].to_numpy()))
        suggested = _rounded(labels, together.suggested.to_numpy())
    else:
        probs = {engine: arrays.pred_probs(audit.id, engine) for engine in engines}
        found = table.suggested_label.to_numpy(dtype=np.int64)
        suggested = [labels.names[label] if label >= 0 else None for label in found]
    if probs:
        hardness, mistakenness = brain_scores(probs[engines[0]], np.asarray(given))
        columns["mistakenness"] = ("float", _floats(mistakenness))
        columns["hardness"] = ("float", _floats(hardness))
    num = len(given)
    return Columns(
        dataset=dataset,
        labels=labels,
        audit=audit,
        values={field: values for field, (_, values) in columns.items()},
        kinds={field: kind for field, (kind, _) in columns.items()},
        engines=engines,
        given=given_names,
        imported=imported_names,
        suggested=suggested,
        confidence=of_suggestion,
        decisions=decisions,
        reviews=[
            review_document(counting.get(i), verdicts.get(i), given_names[i], labels) for i in range(num)
        ],
        cleaned=[labels.cleaned(counting.get(i), given_names[i]) for i in range(num)],
        probs=probs,
        predicted=predicted,
    )


def image_paths(dataset: Dataset) -> Iterator[str]:
    """Path of every sample's image file, in order; images inside a zip or Parquet are taken out once.

    Raises:
        NotFoundError: an image is not where it was.
    """
    for sample in reading.samples(dataset.id):
        yield str(cache.extracted_path(dataset, sample))


def review_document(
    counting: Review | None, verdict: Review | None, given: str | None, labels: Labels
) -> dict[str, Any] | None:
    """Return what a person decided as FiftyOne keeps it, ``verdict`` being the blind one; None where nobody did."""
    if counting is None and verdict is None:
        return None
    found: dict[str, Any] = {"_cls": "DynamicEmbeddedDocument", **dict.fromkeys(REVIEW_FIELDS)}
    if counting is not None:
        found |= {
            "decision": counting.decision,
            "label": labels.decided(counting),
            "kind": counting.kind,
            "reviewer": counting.reviewer,
            "time": counting.created_at,
        }
    return found | {"blind": labels.seen(verdict, given)}


def brain_scores(
    probs: NDArray[np.floating], given: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(N,) hardness and mistakenness as FiftyOne's Brain defines them on logits, in one go.

    Hardness is the entropy of the prediction in nats. Mistakenness is (1 + m exp(-entropy)) / 2 with m = -1 where
    the given label is predicted and 1 elsewhere; NaN where no label is given. Brain's own loop saves every sample,
    which would also change when a person is taken to have decided there.
    """
    safe = np.clip(np.asarray(probs, dtype=np.float64), np.finfo(np.float32).tiny, 1.0)
    hardness = -(safe * np.log(safe)).sum(axis=1)
    sign = np.where(safe.argmax(axis=1) == given, -1.0, 1.0)
    mistakenness = np.where(given >= 0, (sign * np.exp(-hardness) + 1.0) / 2.0, np.nan)
    return hardness, mistakenness


def map_and_embeddings(
    columns: Columns,
) -> tuple[str, NDArray[np.float32], NDArray[np.float32]] | None:
    """Return what they come from, for people, a map (N, 2) and embeddings (N, D): of the features, or the
    first engine.
    """
    for name in arrays.maps_of(columns.audit.id):
        is_features = name == arrays.FEATURES
        called = arrays.features_title(columns.audit) if is_features else f"the engine {name}"
        try:
            points = arrays.map_points(columns.audit.id, name)
            found = np.asarray(arrays.embeddings(columns.audit.id, name), dtype=np.float32)
            return called, points, found
        except NotFoundError:
            continue
    return None


def _floats(values: NDArray[Any]) -> list[float | None]:
    rounded = np.round(np.asarray(values, dtype=np.float64), 6).tolist()
    return [None if value != value else value for value in rounded]


def _rounded(labels: Labels, predicted: NDArray[np.floating]) -> list[str | None]:
    """Numbers (N,) as they are shown."""
    return labels.numbers([float(f"{value:.{FIGURES}g}") for value in predicted])


def _int(value: Any) -> int | None:
    return None if value is None else int(value)
