"""What people decide about masks, in the one log of decisions.

``relabel`` of a mask changes regions of the audit that the row names. ``labels`` has the number of each that takes
its suggestion; of one for which a person named another class, ``NAMED`` times one more than that class is added.
``keep``, ``exclude`` and ``unsure`` are as for classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from auditor.catalog import audits, datasets
from auditor.catalog.db import ask
from auditor.catalog.records import Dataset, Review
from auditor.ground.errors import NotFoundError, ReviewError
from auditor.ground.vocabulary import EXCLUDE, KEEP, RELABEL
from auditor.labels.masks import pixels
from auditor.labels.masks.results import given_masks, mask_verdicts
from auditor.pictures.masks import IGNORED
from auditor.review import decisions, verifying

NAMED = 1_000
"""More than there are regions of a mask."""


def decide(
    dataset_id: int,
    sample_id: int,
    decision: str,
    *,
    audit_id: int,
    reviewer: str,
    regions: Sequence[int] | None = None,
    classes: Mapping[int, int] | None = None,
) -> tuple[str, list[int] | None]:
    """Record one decision (``decisions.decide``); returns it and the ``labels`` that it keeps.

    ``regions``: numbers of those that change, as ``regions_of`` lists them; None = all. Who changes none keeps the
    mask. ``classes``: by number of such a region what it is, where it is not what is suggested.

    Raises:
        ReviewError: an unknown decision, region or class, or no reviewer.
        NotFoundError: no such sample or finished audit.
    """
    dataset = ask(datasets.by_id, dataset_id)
    ask(audits.require_finished, dataset, audit_id)
    taken = None
    if decision == RELABEL:
        there = {one.number: one.suggested for one in regions_of(dataset, audit_id, sample_id)}
        chosen = set(there if regions is None else regions)
        if unknown := chosen - set(there):
            raise ReviewError(f"Sample {sample_id} has no region {min(unknown)}; it has {len(there)}.")
        named = {one: label for one, label in (classes or {}).items() if label != there.get(one)}
        taken = sorted(one + NAMED * (1 + named.get(one, -1)) for one in chosen) or None
        decision = decision if taken else KEEP
    decisions.decide(dataset_id, sample_id, decision, labels=taken, audit_id=audit_id, reviewer=reviewer)
    return decision, taken


def regions_of(dataset: Dataset, audit_id: int, sample_id: int) -> list[pixels.Region]:
    """The regions that an audit doubts in one mask, the largest first.

    Raises:
        NotFoundError: the audit's arrays, or the sample, are gone.
    """
    given, found = given_masks(dataset), mask_verdicts(audit_id)
    if not 0 <= sample_id < len(given):
        raise NotFoundError(f"Dataset {dataset.name!r} has no sample {sample_id}; it has {len(given):,}.")
    trust = 1 - np.asarray(found.doubt[sample_id]).astype(np.float32) / 255
    return pixels.regions(np.asarray(given[sample_id]), np.asarray(found.suggested[sample_id]), trust)


def changes(dataset: Dataset, row: Review) -> list[pixels.Region]:
    """The regions of a mask that a decision changes; what is ``suggested`` of each is what a person said."""
    if row.decision != RELABEL or row.audit_id is None:
        return []
    return changed(dataset, row.audit_id, row.sample_id, row.labels or [])


def changed(dataset: Dataset, audit_id: int, sample_id: int, labels: Sequence[int]) -> list[pixels.Region]:
    """The regions that the ``labels`` of a decision change, see ``changes``."""
    said = classes_of(labels)
    there = [one for one in regions_of(dataset, audit_id, sample_id) if one.number in said]
    named = [said[one.number] for one in there]
    return [
        one if label is None else replace(one, suggested=label)
        for one, label in zip(there, named, strict=True)
    ]


def classes_of(labels: Sequence[int]) -> dict[int, int | None]:
    """By number of a region the class that a person named for it; None where the suggestion was taken."""
    return {one % NAMED: one // NAMED - 1 if one // NAMED else None for one in labels}


def in_words(dataset: Dataset, labels: Sequence[int]) -> list[str]:
    """Of each region its number, and the class that a person named, as ``3=tree``."""
    names = dataset.class_names
    return [
        str(number) if label is None else f"{number}={names[label]}"
        for number, label in classes_of(labels).items()
    ]


def is_only_wrong(row: Review) -> bool:
    """Return whether a mask was found wrong, on a random draw, and nobody has said yet what it should be."""
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
