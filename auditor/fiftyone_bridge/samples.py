"""Samples of a FiftyOne dataset of ours: read in one request, written in bulk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from auditor.catalog.records import Review
from auditor.fiftyone_bridge.fields import BASE, GIVEN, INDEX, MARK
from auditor.fiftyone_bridge.labels import Labels
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
    """Return where the given labels are: a field of the user's own in a dataset that was imported from FiftyOne."""
    return str((samples.info or {}).get(MARK, {}).get("label_field", GIVEN))


def read_samples(samples: Any, labels: Labels) -> Here:
    """Read what a push or pull needs to know, in one request."""
    given, part = label_field(samples), labels.part
    # A mask of the user's own does not say what it was made of.
    says_label = samples.has_field(f"{given}.{part}")
    label_path = f"{given}.{part}" if says_label else f"{given}.id"
    fields = [INDEX, "id", "tags", label_path, f"{given}.id", f"suggested.{part}", BASE]
    fields += ["is_label_issue", "filepath", "last_modified_at"]
    # A dataset of the user's own has no such field before the first push.
    fields += [f"cleaned.{part}"] if samples.has_field("cleaned") else []
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
        here.ids[index], here.tags[index] = own_id, tags or []
        here.labels[index] = labels.text(label) if says_label else None
        here.suggested[index] = labels.text(suggestion)
        here.cleaned[index] = labels.text(cleaned[0]) if cleaned else None
        here.bases[index], here.paths[index], here.modified[index] = base, path, _aware(modified)
        if truth is not None:
            here.has_truth.add(index)
        if flagged:
            here.flagged.add(index)
    return Here(**{**here.__dict__, "num_foreign": foreign})


def base_of(standing: Review | None, label: str | None, cleaned: str | None) -> Base:
    """Return what is remembered on a sample that shows the current decision."""
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


def _aware(time_: Any) -> datetime:
    if time_ is None:
        return datetime.now(tz=UTC)
    found: datetime = time_
    return found if found.tzinfo else found.replace(tzinfo=UTC)
