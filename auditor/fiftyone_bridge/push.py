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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from auditor import columns as columns_of_export
from auditor.bridges import engine_bridge, fiftyone_door
from auditor.catalog import reading
from auditor.catalog.records import Dataset
from auditor.fiftyone_bridge import fields, processes
from auditor.fiftyone_bridge import views as fiftyone_views
from auditor.fiftyone_bridge.fields import (
    BASE,
    DESCRIPTIONS,
    GIVEN,
    INDEX,
    MARK,
    MAX_LOGITS,
    REVIEW_FIELDS,
    SHARED,
    Columns,
)
from auditor.fiftyone_bridge.labels import MaskLabels
from auditor.fiftyone_bridge.merge import DECISION_TAGS, Base, decision_tags, has_changed, wanted_tags
from auditor.fiftyone_bridge.samples import Here, base_of, read_samples, tag_changes, updates
from auditor.ground.errors import FiftyOneError
from auditor.ground.progress import OnProgress, Ticker
from auditor.ground.wording import plural
from auditor.pictures import cache
from auditor.pictures.sources import fiftyone_sets
from auditor.results import arrays

NAME_FILE = "fiftyone.json"
"""In the dataset's folder: the FiftyOne dataset it was pushed to."""
ISSUE_TAG = "label_issue"
DOUBT = "doubt"
"""Of masks: the heat map of an audit's doubt."""
TINY = float(np.finfo(np.float32).tiny)
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


def push_audit(
    name: str,
    *,
    to: str | None = None,
    audit_id: int | None = None,
    replace: bool = False,
    progress: OnProgress | None = None,
) -> Pushed:
    """Write the newest finished audit of ``name``, or ``audit_id``, into FiftyOne.

    A dataset that was imported from FiftyOne gets our fields on its own samples, found by their ids; another one
    becomes a FiftyOne dataset of its name. ``to`` names another one. ``replace`` drops what an earlier import left:
    a dataset that we made, or our fields on one of the user's own.

    Raises:
        NotFoundError: no such dataset, or no such finished audit.
        FiftyOneError: FiftyOne or MongoDB cannot be used, or the name belongs to a dataset of somebody's own.
    """
    began = time.monotonic()
    columns = fields.load(name, audit_id)
    dataset = columns.dataset
    fiftyone = fiftyone_door.connect()
    with fiftyone_door.explained(), processes.alone(f"push-{dataset.id}"):
        target = open_or_create(fiftyone, dataset, to or _usual_name(fiftyone, dataset), replace=replace)
        is_theirs = bool(target.info[MARK].get("is_theirs"))
        declare_fields(fiftyone, target, columns)
        if is_theirs:
            paths, num_added = None, 0
            _number(target, dataset)
        else:
            paths = list(_counted(fields.image_paths(dataset), columns.num_samples, progress))
            num_added = _add_missing(fiftyone, target, columns, paths, progress)
        here = read_samples(target, columns.labels)
        waiting = _write(fiftyone, target, columns, paths, here, progress)
        last = Ticker(progress, "writing views and the map", 1)
        notes = fiftyone_views.write(fiftyone, target, columns, here)
        _remember(target, columns)
        last.at(1)
    gone = columns.num_samples - sum(i < columns.num_samples for i in here.ids)
    if gone:
        notes.append(
            f"{plural(gone, 'sample')} of the import {'is' if gone == 1 else 'are'} no longer in FiftyOne's "
            f"dataset."
        )
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
    """The dataset of that name: the one that this import came from, or one of ours.

    Raises:
        FiftyOneError: a dataset of that name is somebody's own, or belongs to an import that is gone; or it belongs
            to this one and was to be replaced.
    """
    is_origin = name == origin(dataset)
    if not fiftyone.dataset_exists(name):
        if is_origin:
            raise FiftyOneError(
                f"FiftyOne has no dataset {name!r} any more, from which {dataset.name} came; another name "
                "makes a new one.",
                field="to",
            )
        return _created(fiftyone, dataset, name)
    target = fiftyone.load_dataset(name)
    mark = target.info.get(MARK)
    if mark is None and is_origin:
        _refuse_fields_of_theirs(target, dataset)
        label = dataset.label_column or GIVEN
        return _marked(target, dataset, label_field=label, is_theirs=True)
    if mark is None:
        raise FiftyOneError(
            f"FiftyOne has a dataset {name!r} that was not made by us; push under another name.",
            field="to",
        )
    if mark.get("key") == _key(dataset):
        if replace:
            # It may hold decisions that were not pulled; nothing is gained by dropping them.
            option = "" if name == remembered_name(dataset) else f" --as {shlex.quote(name)}"
            raise FiftyOneError(
                f"FiftyOne's dataset {name!r} belongs to this import: a push that does not replace it updates it, "
                f"and `auditor fiftyone {shlex.quote(dataset.name)} pull{option}` brings the decisions in it."
            )
        return target
    if not replace:
        raise FiftyOneError(
            f"FiftyOne's dataset {name!r} belongs to an earlier import; to replace it drops what that one wrote, "
            "with the decisions in it, another name keeps it.",
            field="replace",
        )
    if not mark.get("is_theirs"):
        fiftyone.delete_dataset(name)
        return _created(fiftyone, dataset, name)
    _strip(target, mark)
    if not is_origin:
        raise FiftyOneError(
            f"FiftyOne's dataset {name!r} is not ours to replace; use another name.", field="to"
        )
    return _marked(target, dataset, label_field=dataset.label_column or GIVEN, is_theirs=True)


def origin(dataset: Dataset) -> str | None:
    """The FiftyOne dataset that this one was imported from."""
    return dataset.source.removeprefix("fiftyone:") if dataset.source_kind == "fiftyone" else None


def _created(fiftyone: Any, dataset: Dataset, name: str) -> Any:
    return _marked(fiftyone.Dataset(name, persistent=True), dataset)


def _marked(target: Any, dataset: Dataset, **more: Any) -> Any:
    target.info[MARK] = {"key": _key(dataset), "dataset": dataset.name, **more}
    target.save()
    return target


def _refuse_fields_of_theirs(target: Any, dataset: Dataset) -> None:
    """Refuse to write into fields that the user filled."""
    ours = {
        INDEX,
        BASE,
        *DESCRIPTIONS,
        *SHARED,
        *engine_bridge.trust_columns(),
        *engine_bridge.signal_columns(),
    }
    ours |= {f"pred_{engine}" for engine in engine_bridge.trust_columns().values()}
    taken = sorted((ours - {GIVEN}) & set(target.get_field_schema()))
    if taken:
        raise FiftyOneError(
            f"FiftyOne's dataset {target.name!r} has fields of its own named {', '.join(taken)}; rename them, or "
            f"push {dataset.name} under another name.",
            field="to",
        )


def _strip(target: Any, mark: dict[str, Any]) -> None:
    """Take what another import of ours wrote off a dataset of the user's own."""
    target.untag_samples([ISSUE_TAG, *DECISION_TAGS])
    there = set(target.get_field_schema())
    target.delete_sample_fields([name for name in mark.get("fields", []) if name in there])
    for view in mark.get("views", []):
        if target.has_saved_view(view):
            target.delete_saved_view(view)


def find(fiftyone: Any, dataset: Dataset, name: str | None = None) -> Any:
    """The dataset of that name, which must have been pushed.

    Raises:
        FiftyOneError: it was never pushed.
    """
    name = name or _usual_name(fiftyone, dataset)
    is_there = fiftyone.dataset_exists(name)
    if not is_there or (MARK not in fiftyone.load_dataset(name).info and name == origin(dataset)):
        what = "was not pushed to" if is_there else "is not in"
        raise FiftyOneError(
            f"{name!r} {what} {fiftyone_door.place_of(fiftyone)}; `auditor fiftyone "
            f"{shlex.quote(dataset.name)} push` does it."
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
    runs = arrays.runs_that_speak(columns.audit.id)
    for field, kind in {INDEX: "int", BASE: "str", **columns.kinds}.items():
        if field not in schema:
            target.add_sample_field(field, types[kind])
        if target.get_field(field).description != (about := _about(field, columns, runs)):
            _describe(target, field, about)
    labels = ["cleaned", "suggested", *(f"pred_{engine}" for engine in columns.engines)]
    labels += [] if target.info[MARK].get("is_theirs") else [GIVEN]
    for field in labels:
        if field not in schema:
            target.add_sample_field(
                field,
                fiftyone.EmbeddedDocumentField,
                embedded_doc_type=columns.labels.document_type(fiftyone),
            )
        _describe(target, field, _about(field, columns, runs))
    if isinstance(columns.labels, MaskLabels):
        _declare_masks(fiftyone, target, columns.labels, labels)
        labels.append(DOUBT)
        _describe(target, DOUBT, _about(DOUBT, columns, runs))
    if "review" not in schema:
        target.add_sample_field(
            "review",
            fiftyone.EmbeddedDocumentField,
            embedded_doc_type=fiftyone.DynamicEmbeddedDocument,
            description=DESCRIPTIONS["review"],
        )
    for part, kind in REVIEW_FIELDS.items():
        if not target.has_field(f"review.{part}"):
            about = DESCRIPTIONS[f"review.{part}"]
            target.add_sample_field(f"review.{part}", types[kind], description=about)
    mark = dict(target.info[MARK])
    mark.setdefault("label_field", GIVEN)
    mark["fields"] = sorted({*mark.get("fields", []), INDEX, BASE, *columns.kinds, *labels, "review"})
    target.info[MARK] = mark
    target.save()
    given = [] if mark.get("is_theirs") and DOUBT in labels else [mark["label_field"]]
    for path in (INDEX, "trust_score", *(f"{field}.{columns.labels.part}" for field in given)):
        target.create_index(path)


def _declare_masks(fiftyone: Any, target: Any, labels: MaskLabels, fields: Sequence[str]) -> None:
    """Declare what is special about masks: their origin, what their values mean, and doubt as a heat map."""
    for field in fields:
        if not target.has_field(f"{field}.{labels.part}"):
            about = "What the mask was made of; do not change it"
            target.add_sample_field(f"{field}.{labels.part}", fiftyone.StringField, description=about)
    if not target.has_field(DOUBT):
        target.add_sample_field(DOUBT, fiftyone.EmbeddedDocumentField, embedded_doc_type=fiftyone.Heatmap)
    target.mask_targets = {**target.mask_targets, **dict.fromkeys(fields, labels.targets)}
    target.save()


def _about(field: str, columns: Columns, runs: Mapping[str, int]) -> str:
    """Return what a field means, and of which audit its values are: ``runs`` names that of each engine."""
    about = DESCRIPTIONS.get(field) or columns_of_export.description(field)
    if field in (INDEX, BASE, GIVEN, "given_label", "split", "cleaned") or field.startswith("duplicate_"):
        return about
    engine = field.removeprefix("pred_").removesuffix("_trust")
    engine = engine_bridge.signal_columns().get(field, (engine, ""))[0]
    if field.startswith("pred_"):
        about = f"What the engine {engine} predicts"
    return f"{about} (audit {runs.get(engine, columns.audit.id)})"


def _describe(target: Any, field: str, about: str) -> None:
    found = target.get_field(field)
    if found.description != about:
        found.description = about
        found.save()


def remembered_name(dataset: Dataset) -> str:
    """The FiftyOne dataset that it was last pushed to; before that, the one it came from, or that of its name."""
    try:
        return str(json.loads((cache.folder(dataset) / NAME_FILE).read_text())["name"])
    except (OSError, ValueError, KeyError):
        return origin(dataset) or dataset.name


def _usual_name(fiftyone: Any, dataset: Dataset) -> str:
    """``remembered_name``, where that one was not deleted since; else as before the first push."""
    name = remembered_name(dataset)
    return name if fiftyone.dataset_exists(name) else origin(dataset) or dataset.name


def _key(dataset: Dataset) -> str:
    """Tells this import from an earlier one of the same name, wherever the home is."""
    return dataset.created_at.astimezone(UTC).isoformat()


def _remember(target: Any, columns: Columns) -> None:
    target.info[MARK] = {
        **target.info[MARK],
        "audit": columns.audit.id,
        "pushed_at": datetime.now(tz=UTC).isoformat(),
        "classes": list(columns.dataset.classes.values()) if columns.labels.names else [],
    }
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


def _number(target: Any, dataset: Dataset) -> None:
    """Give the samples that an import of ours read their ``sample_index``, found by FiftyOne's own ids."""
    from bson import ObjectId
    from pymongo import UpdateOne

    there = dict(zip(*target.values(["id", INDEX]), strict=True))
    wanted = {
        str((sample.extra or {}).get(fiftyone_sets.ID_COLUMN)): sample.sample_id
        for sample in reading.samples(dataset.id)
    }
    new = {own: i for own, i in wanted.items() if own in there and there[own] != i}
    if new:
        operations = [UpdateOne({"_id": ObjectId(own)}, {"$set": {INDEX: i}}) for own, i in new.items()]
        target._bulk_write(operations, ids=list(new))


def _write(
    fiftyone: Any,
    target: Any,
    columns: Columns,
    paths: Sequence[str] | None,
    here: Here,
    progress: OnProgress | None,
) -> int:
    """Bring every sample up to date; returns how many have decisions that wait to be pulled.

    ``paths``: of the images in a dataset that we made; None in one of the user's own.
    """
    ids = sorted(i for i in here.ids if i < columns.num_samples)
    waiting = 0
    for part in _parts(ids, WRITE_ROWS, Ticker(progress, "writing fields", len(ids))):
        operations: list[Any] = []
        for i in part:
            found, is_waiting = _operations(fiftyone, columns, here, i, None if paths is None else paths[i])
            operations += found
            waiting += is_waiting
        target._bulk_write(operations, ids=[here.ids[i] for i in part])
    return waiting


def _operations(
    fiftyone: Any, columns: Columns, here: Here, i: int, path: str | None
) -> tuple[list[Any], bool]:
    """Updates of one sample, and whether a person's decision on it waits to be pulled."""
    labels, given, standing = columns.labels, columns.imported[i], columns.decisions.get(i)
    base = Base.from_text(here.bases[i], given)
    tags = decision_tags(here.tags[i])
    # The given label is written once, where it is missing in a dataset of ours, and then never again.
    is_first = path is not None and here.bases[i] is None
    label = given if is_first else here.labels[i]
    if here.bases[i] is None and path is None:
        base = Base(
            label=label
        )  # whatever stands there now in a dataset of the user's own was there before us
    values = {field: column[i] for field, column in columns.values.items()}
    values |= {"review": columns.reviews[i]} | _predictions(fiftyone, columns, i)
    if isinstance(labels, MaskLabels):
        values[DOUBT] = labels.heat(fiftyone, columns.audit.id, i)
    if path is not None and here.paths[i] != path:
        values["filepath"] = path
    is_waiting = has_changed(base, tags, label, here.cleaned[i])
    if here.suggested[i] is None:
        values["suggested"] = labels.document(fiftyone, columns.suggested[i], columns.confidence[i])
    elif isinstance(labels, MaskLabels):
        if not is_waiting and columns.suggested[i] != here.suggested[i]:
            values["suggested"] = labels.document(fiftyone, columns.suggested[i])
    elif not is_waiting:  # whoever tagged it relabel meant the suggestion that they saw
        values[f"suggested.{labels.part}"] = labels.stored(columns.suggested[i])
        values["suggested.confidence"] = columns.confidence[i]
    added: list[str] = []
    removed: list[str] = []
    if is_waiting:
        values[BASE] = base.to_text()
    else:
        added, removed = tag_changes(tags, wanted_tags(standing))
        cleaned = columns.cleaned[i]
        values[BASE] = base_of(standing, label, cleaned).to_text()
        if cleaned != here.cleaned[i]:
            values["cleaned"] = labels.document(fiftyone, cleaned)
    if is_first and i not in here.has_truth:
        values[GIVEN] = labels.document(fiftyone, given)
    is_issue = columns.values["is_label_issue"][i]
    if is_issue and ISSUE_TAG not in here.tags[i]:
        added.append(ISSUE_TAG)
    if not is_issue and i in here.flagged:  # ours to take off; one that a person set is theirs
        removed.append(ISSUE_TAG)
    return updates(here.ids[i], values, added, removed), is_waiting


def _predictions(fiftyone: Any, columns: Columns, i: int) -> dict[str, Any]:
    labels = columns.labels
    found = {
        f"pred_{engine}": labels.document(fiftyone, predicted[i])
        for engine, predicted in columns.predicted.items()
    }
    for engine, probs in columns.probs.items():
        row = np.asarray(probs[i], dtype=np.float32)
        best = int(row.argmax())
        logits = np.log(np.clip(row, TINY, 1.0)) if probs.size <= MAX_LOGITS else None
        name = labels.names[best]
        found[f"pred_{engine}"] = labels.document(fiftyone, name, round(float(row[best]), 6), logits)
    return found


def _parts(rows: Sequence[int], size: int, ticker: Ticker) -> Iterator[Sequence[int]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
        ticker.at(min(start + size, len(rows)))


def _counted(paths: Iterable[str], total: int, progress: OnProgress | None) -> Iterator[str]:
    ticker = Ticker(progress, "finding images", total)
    for done, path in enumerate(paths, start=1):
        yield path
        ticker.at(done)
