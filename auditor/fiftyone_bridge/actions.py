"""Keep, take the suggestion, exclude and undo for samples that are selected in FiftyOne's App.

The same as in our app: the decision is immediately a review in the catalog, all samples of one action are one
batch. What was tagged or edited by hand on these samples is pulled first, so that nothing of it is lost.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from typing import Any

from auditor.catalog import audits, datasets, reading, reviews, scores
from auditor.catalog.db import ask, session
from auditor.catalog.records import Dataset
from auditor.fiftyone_bridge import fields
from auditor.fiftyone_bridge import labels as labelling
from auditor.fiftyone_bridge.fields import INDEX, MARK
from auditor.fiftyone_bridge.pull import SOURCE, mirror, pull_samples
from auditor.ground.errors import FiftyOneError
from auditor.ground.vocabulary import CLASSIFICATION, EXCLUDE, KEEP, RELABEL, UNDO
from auditor.ground.wording import plural
from auditor.review import decisions

REVIEWER = "AUDITOR_REVIEWER"
"""Environment of the App's process: who decides there."""
DONE = {KEEP: "kept", RELABEL: "took the suggestion for", EXCLUDE: "excluded"}


def reviewer_of_app() -> str:
    """Return who decides in the App: whom ``open`` named, else the login name."""
    return os.environ.get(REVIEWER) or getpass.getuser()


def act(target: Any, own_ids: Sequence[str], action: str, *, reviewer: str) -> str:
    """Do ``keep``, ``relabel`` (take the suggestion), ``exclude`` or ``undo``; returns what was done.

    ``own_ids`` are FiftyOne's ids of the selected samples. ``undo`` without any takes back the reviewer's
    latest step.

    Raises:
        FiftyOneError: the dataset is not ours, or nothing is selected.
    """
    dataset = _dataset_of(target)
    if not own_ids and action != UNDO:
        raise FiftyOneError("Select samples first.")
    if not own_ids:
        changed = _undo_latest(dataset.id, reviewer)
        mirror(target, dataset, changed)
        return f"Took back {_samples(len(changed))}." if changed else "There is no decision to undo."
    selected = target.select(list(own_ids))
    pull_samples(target, selected, dataset, reviewer=reviewer)
    indices = [int(i) for i in selected.values(INDEX) if i is not None and i < dataset.num_samples]
    if action == UNDO:
        changed = _undo_selected(dataset.id, indices, reviewer)
        mirror(target, dataset, changed)
        return f"Took back {_samples(len(changed))}." if changed else "Nothing was decided on these."
    rows = _rows(dataset, indices, action)
    if rows and dataset.task != CLASSIFICATION:
        _decide_others(dataset, rows, reviewer)
    elif rows:
        decisions.decide_many(
            dataset.id, rows, reviewer=reviewer, source=SOURCE, audit_id=target.info[MARK].get("audit")
        )
    mirror(target, dataset, [i for i, _, _ in rows])
    left = len(indices) - len(rows)
    text = f"{reviewer} {DONE[action]} {_samples(len(rows))}."
    return f"{text} {_samples(left)} without another suggestion left as they are." if left else text


def _dataset_of(target: Any) -> Dataset:
    mark = (target.info or {}).get(MARK)
    if mark is None:
        raise FiftyOneError(
            f"{target.name!r} is not an audited dataset; `auditor fiftyone NAME push` makes one."
        )
    return reading.dataset(str(mark["dataset"]))


def _decide_others(dataset: Dataset, rows: Sequence[tuple[int, str, Any]], reviewer: str) -> None:
    """Record decisions on numbers or masks in one batch."""
    labels = labelling.of(dataset)
    said = [
        {"sample_id": i, "decision": action, "label": None, "labels": None}
        | {"reviewer": reviewer}
        | labels.columns(value)
        for i, action, value in rows
    ]
    ask(decisions.apply_rows, dataset.id, said, source=SOURCE)


def _rows(dataset: Dataset, sample_ids: Sequence[int], action: str) -> list[tuple[int, str, Any]]:
    """Sample, decision, and the ``labels.Value`` to take."""
    if action != RELABEL:
        return [(i, action, None) for i in sample_ids]
    if dataset.task != CLASSIFICATION:
        columns = fields.load(dataset.name)
        known, given, suggested = columns.labels.known, columns.given, columns.suggested
        return [
            (i, RELABEL, known[said])
            for i in sample_ids
            if (said := suggested[i]) is not None and said != given[i]
        ]
    audit = ask(audits.require_finished, dataset)
    found = ask(scores.of_samples, audit.id, sample_ids)
    return [
        (i, RELABEL, found[i].suggested_label)
        for i in sample_ids
        if i in found and found[i].suggested_label >= 0 and found[i].suggested_label != found[i].given_label
    ]


def _undo_selected(dataset_id: int, sample_ids: Sequence[int], reviewer: str) -> list[int]:
    changed = []
    with session() as open_session:
        datasets.lock(open_session, dataset_id)
        for i in sample_ids:
            standing = reviews.standing(open_session, dataset_id, i)
            if standing is not None:
                reviews.undo(open_session, standing, reviewer, source=SOURCE)
                changed.append(i)
    return changed


def _undo_latest(dataset_id: int, reviewer: str) -> list[int]:
    """Take back the reviewer's newest step: all samples of its batch."""
    latest = ask(reviews.latest_of, dataset_id, reviewer)
    if latest is None:
        return []
    rows = ask(reviews.of_batch, dataset_id, latest.batch) if latest.batch else [latest]
    if latest.batch:
        decisions.undo_batch(dataset_id, latest.batch, reviewer)
    else:
        decisions.undo_last(dataset_id, reviewer)
    return sorted({row.sample_id for row in rows})


def _samples(count: int) -> str:
    return plural(count, "sample")
