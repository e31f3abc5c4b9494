"""Write an audit into FiftyOne: the dataset is made, or brought up to date where it exists.

Samples are found again by ``sample_index``, so that a second push and a push that goes on after a kill add
nothing twice. Fields are written in bulk, several thousand samples a request. What a person did there is left
alone: tags, fields, views and samples of their own, and decisions that wait to be pulled.
"""

from __future__ import annotations

import json
import random
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from auditor.catalog.records import Dataset
from auditor.errors import FiftyOneError
from auditor.fiftyone_bridge import database, fields, processes
from auditor.fiftyone_bridge import views as fiftyone_views
from auditor.fiftyone_bridge.fields import BASE, DECISION_FIELDS, DESCRIPTIONS, INDEX, MARK, Columns
from auditor.fiftyone_bridge.merge import Base, decision_tags, has_changed, wanted_label, wanted_tags
from auditor.fiftyone_bridge.samples import Here, base_of, classification, read_samples, tag_changes, updates
from auditor.pictures import cache
from auditor.progress import OnProgress, Ticker

NAME_FILE = "fiftyone.json"
"""In the dataset's folder: the FiftyOne dataset it was pushed to."""
ISSUE_TAG = "label_issue"
ADD_ROWS = 2_500
WRITE_ROWS = 5_000


@dataclass(frozen=True)
class Pushed:
    """What a push did."""

    name: str
    num_samples: int
    num_added: int
    num_waiting: int
    """Samples with decisions in FiftyOne that wait to be pulled; those were left as they are."""
    num_foreign: int
    """Samples that a person added in FiftyOne and that the audit does not know."""
    views: list[str]
    seconds: float
    notes: list[str]


def push(
    name: str, *, to: str | None = None, replace: bool = False, progress: OnProgress | None = None
) -> Pushed:
    """Create or update the FiftyOne dataset with the newest finished audit of ``name``.

    ``to`` names another FiftyOne dataset than that of the same name; ``replace`` drops one of an earlier
    import that is there.

    Raises:
        NotFoundError: no such dataset, or no finished audit.
        FiftyOneError: FiftyOne or MongoDB cannot be used, or the name belongs to a dataset of somebody's own.
    """
    began = time.monotonic()
    columns = fields.load(name)
    fiftyone = database.connect()
    with database.explained(), processes.alone(f"push-{columns.dataset.id}"):
        target = open_or_create(
            fiftyone, columns.dataset, to or remembered_name(columns.dataset), replace=replace
        )
        declare_fields(fiftyone, target, columns)
        paths = list(_counted(fields.image_paths(columns.dataset), columns.num_samples, progress))
        num_added = _add_missing(fiftyone, target, columns, paths, progress)
        here = read_samples(target)
        waiting = _write(fiftyone, target, columns, paths, here, progress)
        last = Ticker(progress, "writing views and the map", 1)
        notes = fiftyone_views.write(fiftyone, target, columns, here)
        _remember(target, columns)
        last.at(1)
    return Pushed(
        name=target.name,
        num_samples=columns.num_samples,
        num_added=num_added,
        num_waiting=waiting,
        num_foreign=here.num_foreign,
        views=list(target.info[MARK].get("views", [])),
        seconds=time.monotonic() - began,
        notes=notes,
    )


# --- The dataset and its schema -------------------------------------------------------------------------


def open_or_create(fiftyone: Any, dataset: Dataset, name: str, *, replace: bool = False) -> Any:
    """Our dataset of that name.

    Raises:
        FiftyOneError: a dataset of that name is not ours, or belongs to an import that is gone; or it belongs to
            this one and was to be replaced.
    """
    if replace and fiftyone.dataset_exists(name):
        mark = fiftyone.load_dataset(name).info.get(MARK)
        if mark is None:
            raise FiftyOneError(
                f"FiftyOne's dataset {name!r} was not made by us; use --as to name another one."
            )
        if mark.get("key") == _key(dataset):
            # It may hold decisions that were not pulled; nothing is gained by dropping them.
            option = "" if name == remembered_name(dataset) else f" --as {shlex.quote(name)}"
            raise FiftyOneError(
                f"FiftyOne's dataset {name!r} belongs to this import: a push without --replace updates it, and "
                f"`auditor fiftyone {shlex.quote(dataset.name)} pull{option}` brings the decisions in it."
            )
        fiftyone.delete_dataset(name)
    if not fiftyone.dataset_exists(name):
        target = fiftyone.Dataset(name, persistent=True)
        target.info[MARK] = {"key": _key(dataset), "dataset": dataset.name}
        target.save()
        return target
    target = fiftyone.load_dataset(name)
    mark = target.info.get(MARK)
    if mark is None:
        raise FiftyOneError(
            f"FiftyOne has a dataset {name!r} that was not made by us; push under another name with --as."
        )
    if mark.get("key") != _key(dataset):
        raise FiftyOneError(
            f"FiftyOne's dataset {name!r} belongs to an earlier import; --replace deletes it with the tags "
            "in it, --as NAME keeps it."
        )
    return target


def find(fiftyone: Any, dataset: Dataset, name: str | None = None) -> Any:
    """Our dataset of that name, which must be there.

    Raises:
        FiftyOneError: it was never pushed.
    """
    name = name or remembered_name(dataset)
    if not fiftyone.dataset_exists(name):
        raise FiftyOneError(
            f"FiftyOne has no dataset {name!r} in {database.named(fiftyone)}; `auditor fiftyone "
            f"{shlex.quote(dataset.name)} push` makes it, FIFTYONE_DATABASE_URI names another database."
        )
    return open_or_create(fiftyone, dataset, name)


def declare_fields(fiftyone: Any, target: Any, columns: Columns) -> None:
    """Add the fields that are not there yet, with what they mean."""
    types = {
        "float": fiftyone.FloatField,
        "int": fiftyone.IntField,
        "bool": fiftyone.BooleanField,
        "str": fiftyone.StringField,
        "date": fiftyone.DateTimeField,
    }
    schema = target.get_field_schema()
    kinds = {INDEX: "int", BASE: "str", **columns.kinds, **DECISION_FIELDS}
    for field, kind in kinds.items():
        if field in schema:
            continue
        engine = field.removesuffix("_trust")
        about = DESCRIPTIONS.get(field) or f"Trust of the engine {engine}: 1 = the given label looks right"
        target.add_sample_field(field, types[kind], description=about)
    for field, about in (
        ("ground_truth", "The given label; edit it to correct"),
        ("suggested", "The label to use instead"),
    ):
        if field not in schema:
            target.add_sample_field(
                field,
                fiftyone.EmbeddedDocumentField,
                embedded_doc_type=fiftyone.Classification,
                description=about,
            )
    for path in (INDEX, "trust_score", "ground_truth.label"):
        target.create_index(path)


def remembered_name(dataset: Dataset) -> str:
    """The FiftyOne dataset that it was last pushed to; that of its own name before the first push."""
    try:
        return str(json.loads((cache.folder(dataset) / NAME_FILE).read_text())["name"])
    except (OSError, ValueError, KeyError):
        return dataset.name


def _key(dataset: Dataset) -> str:
    """Tells this import from an earlier one of the same name, wherever the home is."""
    return dataset.created_at.astimezone(UTC).isoformat()


def _remember(target: Any, columns: Columns) -> None:
    mark = dict(target.info[MARK])
    ours = set(mark.get("fields", [])) | set(columns.values)
    mark |= {
        "audit": columns.audit.id,
        "pushed_at": datetime.now(tz=UTC).isoformat(),
        "fields": sorted(ours),
        "classes": list(columns.dataset.class_names),
    }
    target.info[MARK] = mark
    place = cache.folder(columns.dataset)
    place.mkdir(parents=True, exist_ok=True)
    (place / NAME_FILE).write_text(json.dumps({"name": target.name}))
    target.save()


# --- The samples ----------------------------------------------------------------------------------------


def _add_missing(
    fiftyone: Any, target: Any, columns: Columns, paths: Sequence[str], progress: OnProgress | None
) -> int:
    there = set(target.values(INDEX))
    missing = [i for i in range(columns.num_samples) if i not in there]
    template: dict[str, Any] = {}
    for part in _parts(missing, ADD_ROWS, Ticker(progress, "adding samples", len(missing))):
        if not template:
            first, part = part[0], part[1:]
            target.add_samples(
                [fiftyone.Sample(filepath=paths[first], **{INDEX: first})], dynamic=False, progress=False
            )
            template = target._sample_collection.find_one({INDEX: first})
            del template["_id"]
        # Copies of the document that FiftyOne made of the first one: a Sample object each is ten times slower.
        if part:
            target._sample_collection.insert_many(
                [
                    template | {"filepath": paths[i], INDEX: i, "_rand": 0.999 + 0.001 * random.random()}
                    for i in part
                ]
            )
    return len(missing)


def _write(
    fiftyone: Any,
    target: Any,
    columns: Columns,
    paths: Sequence[str],
    here: Here,
    progress: OnProgress | None,
) -> int:
    """Bring every sample up to date; returns how many have decisions that wait to be pulled."""
    stale = set(target.info[MARK].get("fields", [])) - set(columns.values)
    cleared = dict.fromkeys(stale & set(target.get_field_schema()))
    ids = sorted(i for i in here.ids if i < columns.num_samples)
    waiting = 0
    for part in _parts(ids, WRITE_ROWS, Ticker(progress, "writing fields", len(ids))):
        operations: list[Any] = []
        for i in part:
            found, is_waiting = _operations(fiftyone, columns, here, i, paths[i], cleared)
            operations += found
            waiting += is_waiting
        target._bulk_write(operations, ids=[here.ids[i] for i in part])
    return waiting


def _operations(
    fiftyone: Any, columns: Columns, here: Here, i: int, path: str, cleared: dict[str, None]
) -> tuple[list[Any], bool]:
    """Updates of one sample, and whether a person's decision on it waits to be pulled."""
    given, standing = columns.given[i], columns.decisions.get(i)
    base = Base.from_text(here.bases[i], given)
    tags = decision_tags(here.tags[i])
    label = here.labels[i] if i in here.has_truth else given
    values = {field: column[i] for field, column in columns.values.items()}
    values |= cleared | fields.decision_values(standing, columns.dataset.class_names)
    if here.paths[i] != path:
        values["filepath"] = path
    is_waiting = has_changed(base, tags, label)
    if here.suggested[i] is None:
        values["suggested"] = classification(fiftyone, columns.suggested[i], columns.confidence[i])
    elif not is_waiting:  # whoever tagged it relabel meant the suggestion that they saw
        values["suggested.label"] = columns.suggested[i]
        values["suggested.confidence"] = columns.confidence[i]
    added: list[str] = []
    removed: list[str] = []
    if is_waiting:
        values[BASE] = base.to_text()
    else:
        label = wanted_label(label, given, standing, columns.dataset.class_names)
        added, removed = tag_changes(tags, wanted_tags(standing))
        values[BASE] = base_of(standing, label).to_text()
    if label is not None and i not in here.has_truth:
        values["ground_truth"] = classification(fiftyone, label)
    elif not is_waiting and label != here.labels[i]:
        values["ground_truth.label" if label is not None else "ground_truth"] = label
    is_issue = columns.values["is_label_issue"][i]
    if is_issue and ISSUE_TAG not in here.tags[i]:
        added.append(ISSUE_TAG)
    if not is_issue and i in here.flagged:  # ours to take off; one that a person set is theirs
        removed.append(ISSUE_TAG)
    return updates(here.ids[i], values, added, removed), is_waiting


def _parts(rows: Sequence[int], size: int, ticker: Ticker) -> Iterator[Sequence[int]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
        ticker.at(min(start + size, len(rows)))


def _counted(paths: Iterable[str], total: int, progress: OnProgress | None) -> Iterator[str]:
    ticker = Ticker(progress, "finding images", total)
    for done, path in enumerate(paths, start=1):
        yield path
        ticker.at(done)
