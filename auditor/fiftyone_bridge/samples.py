"""Samples of a FiftyOne dataset of ours: read in one request, written in bulk."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.catalog.records import Review
from auditor.fiftyone_bridge.fields import BASE, GIVEN, INDEX, MARK
from auditor.fiftyone_bridge.merge import Base, wanted_tags


@dataclass(frozen=True)
class Here:
    """The samples as they are in FiftyOne, by our sample_id."""

    ids: dict[int, str]
    tags: dict[int, list[str]]
    labels: dict[int, str | None]
    """The given label as it stands there."""
    has_truth: set[int]
    cleaned: dict[int, str | None]
    suggested: dict[int, str | None]
    bases: dict[int, str | None]
    flagged: set[int]
    paths: dict[int, str]
    modified: dict[int, datetime]
    num_foreign: int
    doubled: list[int]


def label_field(samples: Any) -> str:
    """Where the given labels are: a field of the user's own in a dataset that was imported from FiftyOne."""
    return str((samples.info or {}).get(MARK, {}).get("label_field", GIVEN))


def read_samples(samples: Any) -> Here:
    """Read what a push or pull needs to know, in one request."""
    given = label_field(samples)
    fields = [INDEX, "id", "tags", f"{given}.label", f"{given}.id", "suggested.label", BASE]
    fields += ["is_label_issue", "filepath", "last_modified_at"]
    # One that an earlier version pushed has no such field yet.
    fields += ["cleaned.label"] if samples.has_field("cleaned") else []
    rows = zip(*samples.values(fields), strict=True)
    here = Here({}, {}, {}, set(), {}, {}, {}, set(), {}, {}, 0, [])
    foreign = 0
    for index, own_id, tags, label, truth, suggestion, base, flagged, path, modified, *cleaned in rows:
        if index is None:
            foreign += 1
            continue
        if index in here.ids:
            here.doubled.append(index)
            continue
        here.ids[index], here.tags[index], here.labels[index] = own_id, tags or [], label
        here.suggested[index], here.cleaned[index] = suggestion, cleaned[0] if cleaned else None
        here.bases[index], here.paths[index], here.modified[index] = base, path, _aware(modified)
        if truth is not None:
            here.has_truth.add(index)
        if flagged:
            here.flagged.add(index)
    return Here(**{**here.__dict__, "num_foreign": foreign})


def base_of(standing: Review | None, label: str | None, cleaned: str | None) -> Base:
    """What is remembered on a sample that shows the current decision."""
    return Base(wanted_tags(standing), label, None if standing is None else standing.id, cleaned)


def tag_changes(current: Sequence[str], wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """Tags to add and to take off."""
    return [tag for tag in wanted if tag not in current], [tag for tag in current if tag not in wanted]


def updates(
    own_id: str, values: dict[str, Any], added: Sequence[str] = (), removed: Sequence[str] = ()
) -> list[Any]:
    """Requests that set fields and change tags of one sample, whatever else happens to it meanwhile."""
    from bson import ObjectId
    from pymongo import UpdateOne

    which = {"_id": ObjectId(own_id)}
    change: dict[str, Any] = {"$set": values}
    if added:
        change["$addToSet"] = {"tags": {"$each": list(added)}}
    found = [UpdateOne(which, change)]
    if removed:
        found.append(UpdateOne(which, {"$pull": {"tags": {"$in": list(removed)}}}))
    return found


def classification(
    fiftyone: Any,
    label: str | None,
    confidence: float | None = None,
    logits: NDArray[np.floating] | None = None,
) -> dict[str, Any] | None:
    """A label as MongoDB keeps it, with an id of its own; ``logits`` (K,) of a prediction."""
    if label is None:
        return None
    from bson import ObjectId

    found = dict(_template(fiftyone)) | {"_id": ObjectId(), "label": label, "confidence": confidence}
    if logits is not None:
        # As FiftyOne's VectorField keeps an array; making a document takes five times as long.
        found["logits"] = fiftyone.core.utils.serialize_numpy_array(logits)
    return found


@functools.cache
def _template(fiftyone: Any) -> dict[str, Any]:
    document: dict[str, Any] = fiftyone.Classification(label="", confidence=0.0).to_dict()
    return document


def _aware(time_: Any) -> datetime:
    if time_ is None:
        return datetime.now(tz=UTC)
    found: datetime = time_
    return found if found.tzinfo else found.replace(tzinfo=UTC)
