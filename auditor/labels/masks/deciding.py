"""What people decide about masks, in the one log of decisions.

``relabel`` of a mask takes the suggestion of the audit that the row names: the regions that ``labels`` numbers.
``keep``, ``exclude`` and ``unsure`` are as for classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.catalog import audits, datasets, reviews
from auditor.catalog.db import session
from auditor.catalog.records import Dataset, NewReview, Review, now
from auditor.ground.errors import NotFoundError, ReviewError
from auditor.ground.vocabulary import EXCLUDE, KEEP, RELABEL, SEGMENTATION, UNSURE
from auditor.labels.masks import pixels
from auditor.labels.masks.results import given_masks, verdicts
from auditor.pictures.masks import IGNORED
from auditor.review import decisions, verifying

OFFERED = (KEEP, RELABEL, EXCLUDE, UNSURE)
"""The decisions on a mask."""


def decide(
    dataset_id: int,
    sample_id: int,
    decision: str,
    *,
    audit_id: int,
    reviewer: str,
    regions: Sequence[int] | None = None,
    source: str = "app",
) -> Review:
    """Record one decision; it is in the database when this returns. Said again it changes nothing.

    ``regions``: numbers of the regions whose suggestion is taken, as ``regions_of`` lists them; None = all.

    Raises:
        ReviewError: an unknown decision or region, no reviewer, or labels that are no masks.
        NotFoundError: no such sample or finished audit.
    """
    if decision not in OFFERED:
        raise ReviewError(f"{decision!r} is no decision on a mask; use one of {', '.join(OFFERED)}.")
    if not reviewer.strip():
        raise ReviewError("A decision needs the reviewer's name.")
    with session() as open_session:
        dataset = datasets.by_id(open_session, dataset_id)
        audits.require_finished(open_session, dataset, audit_id)
        datasets.sample(open_session, dataset_id, sample_id)
    if dataset.task != SEGMENTATION:
        raise ReviewError(f"The labels of {dataset.name} are no masks.")
    taken = None
    if decision == RELABEL:
        there = [one.number for one in regions_of(dataset, audit_id, sample_id)]
        taken = sorted(set(there if regions is None else regions))
        if unknown := set(taken) - set(there):
            raise ReviewError(f"Sample {sample_id} has no region {min(unknown)}; it has {len(there)}.")
        if not taken:
            decision, taken = KEEP, None
    new = NewReview(
        dataset_id=dataset_id,
        sample_id=sample_id,
        decision=decision,
        labels=taken,
        reviewer=reviewer.strip(),
        source=source,
        audit_id=audit_id,
        created_at=now(),
    )
    with session() as open_session:
        datasets.lock(open_session, dataset_id)
        before = reviews.standing(open_session, dataset_id, sample_id)
        said = (new.decision, new.labels, new.reviewer, new.audit_id)
        if before is not None and (before.decision, before.labels, before.reviewer, before.audit_id) == said:
            return before
        return reviews.append(open_session, new)


def regions_of(dataset: Dataset, audit_id: int, sample_id: int) -> list[pixels.Region]:
    """The regions that an audit doubts in one mask, the largest first.

    Raises:
        NotFoundError: the audit's arrays, or the sample, are gone.
    """
    given, found = given_masks(dataset), verdicts(audit_id)
    if not 0 <= sample_id < len(given):
        raise NotFoundError(f"Dataset {dataset.name!r} has no sample {sample_id}; it has {len(given):,}.")
    trust = 1 - np.asarray(found.doubt[sample_id]).astype(np.float32) / 255
    return pixels.regions(np.asarray(given[sample_id]), np.asarray(found.suggested[sample_id]), trust)


def changes(dataset: Dataset, row: Review) -> list[pixels.Region]:
    """The regions of a mask that a decision changes; none unless it takes a suggestion."""
    if row.decision != RELABEL or row.audit_id is None:
        return []
    taken = set(row.labels or [])
    return [one for one in regions_of(dataset, row.audit_id, row.sample_id) if one.number in taken]


def is_only_wrong(row: Review) -> bool:
    """Whether a mask was found wrong, on a random draw, and nobody has said yet what it should be."""
    return row.decision == RELABEL and not row.labels


def masks_to_train_on(
    dataset: Dataset, given: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
    """(N, S, S) masks, (N,) labels and (N,) trusted of the next audit.

    Masks have the regions that people took. A label is 0, or -1 where nothing is trained on: the mask was excluded,
    or only found wrong. What a person kept or corrected is trusted. The calibrating half of every random draw
    enters as it was given, untrusted (``decisions.labels_to_train_on``).
    """
    masks, trusted = np.array(given), np.zeros(len(given), np.bool_)
    labels = np.zeros(len(given), np.int64)
    calibrating = set(verifying.calibrating_ids(dataset.id).tolist())
    for sample_id, row in decisions.outcomes(dataset.id).items():
        if sample_id in calibrating:
            continue
        if row.decision == EXCLUDE or is_only_wrong(row):
            masks[sample_id], labels[sample_id] = IGNORED, -1
        elif row.decision in (KEEP, RELABEL):
            trusted[sample_id] = True
            for region in changes(dataset, row):
                masks[sample_id][region.pixels] = region.suggested
    return masks, labels, trusted
