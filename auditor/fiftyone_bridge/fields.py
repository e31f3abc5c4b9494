"""What an audit says about every sample, as columns for FiftyOne. Needs no FiftyOne."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import engine_bridge
from auditor.audits import arrays
from auditor.catalog import audits, datasets, reviews, scores
from auditor.catalog.db import session
from auditor.catalog.records import Audit, Dataset, Review
from auditor.errors import NotFoundError
from auditor.pictures import cache
from auditor.vocabulary import KEEP

MARK = "label_auditor"
"""Key of ``dataset.info`` by which we know our own datasets."""
INDEX = "sample_index"
"""Our sample_id on every sample: the key that both sides share."""
BASE = "audit_base"
"""What stood here when we last wrote; see ``fiftyone_merge.Base``."""
DECISION_FIELDS = {"decision": "str", "decided_label": "str", "reviewer": "str", "decided_at": "date"}

DESCRIPTIONS = {
    INDEX: "The sample's place in the audited dataset; do not change it",
    BASE: "What Label Auditor wrote here last; do not change it",
    "given_label": "The label as it was imported",
    "split": "The split of the data set that it is in",
    "trust_score": "All engines together: 1 = the given label looks right, 0 = it looks wrong",
    "error_probability": "How likely the given label is wrong",
    "suspicion_rank": "0 = the most suspicious sample of the dataset",
    "is_label_issue": "The audit flags this label",
    "engines_against": "How many engines predict another label than the given one",
    "engines_disagree": "Spread of the engines' trust, 0 = they agree, 1 = they are opposed",
    "duplicate_group": "Samples with the same number show the same picture",
    "duplicate_conflict": "A copy or near copy of this picture has another label: look at both",
    "verified_label": "What a person saw on a random draw, without a suggestion; not read back from here",
    "decision": "What a person decided",
    "decided_label": "The corrected label",
    "reviewer": "Who decided",
    "decided_at": "When it was decided",
    "umn_epsilon": "UMN's label confidence: cannot tell wrong labels by itself",
    "l2b_alpha": "L2B's weight of the given label: also low for hard samples",
    "l2b_beta": "L2B's weight of the model's own label",
    "coteaching_selected": "Share of epochs in which Co-teaching kept the sample",
    "choicenet_rho": "ChoiceNet's correlation of the label with the clean one",
}


@dataclass(frozen=True, eq=False)
class Columns:
    """One value a sample and field; None where there is none."""

    dataset: Dataset
    audit: Audit
    values: dict[str, list[Any]]
    kinds: dict[str, str]
    """Field -> ``float``, ``int``, ``bool`` or ``str``."""
    engines: list[str]
    given: list[str | None]
    suggested: list[str | None]
    confidence: list[float | None]
    decisions: dict[int, Review]

    @property
    def num_samples(self) -> int:
        """N, the number of samples."""
        return self.dataset.num_samples


def load(name: str) -> Columns:
    """Columns of the dataset's newest finished audit.

    Raises:
        NotFoundError: no such dataset, or none of its audits has finished.
    """
    with session() as open_session:
        dataset = datasets.get(open_session, name)
        audit = audits.require_finished(open_session, dataset)
        given = datasets.given_labels(open_session, dataset.id)
        splits = datasets.splits(open_session, dataset.id).tolist()
        table = scores.table(open_session, audit.id)
        copies = datasets.duplicates(open_session, dataset.id)
        conflicts = set(datasets.conflicts(open_session, dataset.id).sample_id)
        decisions = reviews.decisions(open_session, dataset.id)
        verdicts = {i: row for (_, i), row in reviews.verdicts(open_session, dataset.id).items()}
    names = dataset.class_names
    group = dict(zip(copies.sample_id, copies.duplicate_group, strict=True))
    given_names = [names[label] if label >= 0 else None for label in given]
    columns: dict[str, tuple[str, list[Any]]] = {
        "given_label": ("str", given_names),
        "trust_score": ("float", _floats(table.trust_score.to_numpy(dtype=float))),
        "error_probability": ("float", _floats(table.error_probability.to_numpy(dtype=float))),
        "suspicion_rank": ("int", table["rank"].tolist()),
        "is_label_issue": ("bool", table.is_label_issue.astype(bool).tolist()),
        "engines_against": ("int", table.agreement.tolist()),
        "engines_disagree": ("float", _floats(table.disagreement.to_numpy(dtype=float))),
        "verified_label": ("str", [_seen(verdicts.get(i), given_names[i], names) for i in range(len(given))]),
        "duplicate_group": ("int", [_int(group.get(i)) for i in range(len(given))]),
        "duplicate_conflict": ("bool", [i in conflicts for i in range(len(given))]),
    }
    if any(splits):
        columns["split"] = ("str", splits)
    engines = arrays.engines_of(audit.id)
    for engine in engines:
        columns[f"{engine}_trust"] = ("float", _floats(arrays.trust(audit.id, engine)))
    for field, (engine, signal) in engine_bridge.signal_columns().items():
        if engine in engines and signal in arrays.signal_names(audit.id, engine):
            columns[field] = ("float", _floats(arrays.signal(audit.id, engine, signal)))
    suggested = table.suggested_label.to_numpy(dtype=np.int64)
    return Columns(
        dataset=dataset,
        audit=audit,
        values={field: values for field, (_, values) in columns.items()},
        kinds={field: kind for field, (kind, _) in columns.items()},
        engines=engines,
        given=given_names,
        suggested=[names[label] if label >= 0 else None for label in suggested],
        confidence=_floats(table.suggested_probability.to_numpy(dtype=float)),
        decisions=decisions,
    )


def image_paths(dataset: Dataset) -> Iterator[str]:
    """Path of every sample's image file, in order; images inside a zip or Parquet are taken out once.

    Raises:
        NotFoundError: an image is not where it was.
    """
    with session() as open_session:
        for sample in datasets.iterate_samples(open_session, dataset.id):
            yield str(cache.extracted_path(dataset, sample))


def decision_values(standing: Review | None, class_names: list[str]) -> dict[str, Any]:
    """The fields that show the current decision."""
    if standing is None:
        return dict.fromkeys(DECISION_FIELDS)
    labels = [standing.label] if standing.label is not None else list(standing.labels or [])
    return {
        "decision": standing.decision,
        "decided_label": " | ".join(class_names[label] for label in labels) or None,
        "reviewer": standing.reviewer,
        "decided_at": standing.created_at,
    }


def map_and_embeddings(
    columns: Columns,
) -> tuple[str, NDArray[np.float32], NDArray[np.float32]] | None:
    """What they come from, for people, a map (N, 2) and embeddings (N, D): of the features, or the first engine."""
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


def _seen(verdict: Review | None, given: str | None, class_names: list[str]) -> str | None:
    """The class that was seen, or the verdict that is none: ``exclude``, ``unsure``."""
    if verdict is None:
        return None
    if verdict.decision == KEEP:
        return given
    return verdict.decision if verdict.label is None else class_names[verdict.label]


def _int(value: Any) -> int | None:
    return None if value is None else int(value)
