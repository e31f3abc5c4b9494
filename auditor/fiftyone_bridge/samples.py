"""Samples of a FiftyOne dataset of ours: read in one request, written in bulk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from auditor.catalog.records import Review
from auditor.fiftyone_bridge.fields import BASE, INDEX
from auditor.fiftyone_bridge.merge import Base, wanted_tags


@dataclass(frozen=True)
class Here:
    """The samples as they are in FiftyOne, by our sample_id."""

    ids: dict[int, str]
    tags: dict[int, list[str]]
    labels: dict[int, str | None]
    has_truth: set[int]
    suggested: dict[int, str | None]
    bases: dict[int, str | None]
    flagged: set[int]
    paths: dict[int, str]
    modified: dict[int, datetime]
    num_foreign: int
    doubled: list[int]


def read_samples(target: Any) -> Here:
    """Read what a push or pull needs to know, in one request."""
    fields = [INDEX, "id", "tags", "ground_truth.label", "ground_truth.id", "suggested.label", BASE]
    fields += ["is_label_issue", "filepath", "last_modified_at"]
    rows = zip(*target.values(fields), strict=True)
    here = Here({}, {}, {}, set(), {}, {}, set(), {}, {}, 0, [])
    foreign = 0
    for index, own_id, tags, label, truth, suggestion, base, flagged, path, modified in rows:
        if index is None:
            foreign += 1
            continue
        if index in here.ids:
            here.doubled.append(index)
            continue
        here.ids[index], here.tags[index], here.labels[index] = own_id, tags or [], label
        here.suggested[index] = suggestion
        here.bases[index], here.paths[index], here.modified[index] = base, path, _aware(modified)
        if truth is not None:
            here.has_truth.add(index)
        if flagged:
            here.flagged.add(index)
    return Here(**{**here.__dict__, "num_foreign": foreign})


def base_of(standing: Review | None, label: str | None) -> Base:
    """What is remembered on a sample that shows the current decision."""
    return Base(wanted_tags(standing), label, None if standing is None else standing.id)


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
    fiftyone: Any, label: str | None, confidence: float | None = None
) -> dict[str, Any] | None:
    """A label as MongoDB keeps it, with an id of its own."""
    if label is None:
        return None
    from bson import ObjectId

    document = dict(_template(fiftyone))
    return document | {"_id": ObjectId(), "label": label, "confidence": confidence}


_templates: dict[str, dict[str, Any]] = {}


def _template(fiftyone: Any) -> dict[str, Any]:
    if "classification" not in _templates:
        _templates["classification"] = fiftyone.Classification(label="", confidence=0.0).to_dict()
    return _templates["classification"]


def _aware(time_: Any) -> datetime:
    if time_ is None:
        return datetime.now(tz=UTC)
    found: datetime = time_
    return found if found.tzinfo else found.replace(tzinfo=UTC)
