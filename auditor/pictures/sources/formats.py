"""A file of labels: which format of annotations it has, or a table."""

from __future__ import annotations

import errno
import json
import re
from dataclasses import replace
from pathlib import Path

from auditor.ground.errors import ImportRefusedError
from auditor.ground.files import text_of
from auditor.ground.vocabulary import MULTILABEL
from auditor.pictures.sources.annotations import (
    AnnotationSource,
    Coco,
    Cvat,
    Format,
    ImageList,
    LabelStudio,
)
from auditor.pictures.sources.boxes import CocoBoxes
from auditor.pictures.sources.columns import refuse_columns
from auditor.pictures.sources.json_records import SOURCE, GroundTruth, JsonLines, json_format, json_lines
from auditor.pictures.sources.labelbox import Labelbox, is_labelbox
from auditor.pictures.sources.roots import images_at
from auditor.pictures.sources.rows import IMAGE_SUFFIXES, Source, SourceOptions
from auditor.pictures.sources.tables import open_table
from auditor.pictures.sources.trees import Images

TABLES = (".csv", ".tsv", ".txt", ".xlsx")
LINES = (".jsonl", ".ndjson", ".manifest")
SPLIT_LIST = re.compile(r"partition|split", re.IGNORECASE)
EXTRA = "Extra data"
"""What Python says of a second object in a file of JSON."""
MOST_BYTES = 2**31
"""Of a document."""


def open_labels(file: Path, options: SourceOptions, images: Images | None = None) -> Source | None:
    """Open a file of annotations or a table; None where it is neither. ``images``: where its paths lead, if known.

    Raises:
        ImportRefusedError: it cannot be read, or an option is not for it.
    """
    found = annotation_format(file, options)
    if options.boxes and (found is None or found.kind != "coco_boxes"):
        raise ImportRefusedError(f"{file} is no COCO file with boxes; leave boxes out.", field="boxes")
    if found is not None:
        if found.path_column is None:  # at most the question can be named
            asked = options if found.label_column is None else replace(options, label_column=None)
            refuse_columns(str(file), "it is no table", asked)
        return AnnotationSource(found, file, options, images)
    if file.suffix.lower() in TABLES:
        return open_table(file, images or images_at(options.root, file.parent), options)
    return None


def annotation_format(file: Path, options: SourceOptions) -> Format | None:
    """The format of a file of annotations; None if it is none.

    Raises:
        ImportRefusedError: a ``.json``, ``.jsonl`` or ``.xml`` that cannot be read or is of no known format.
    """
    suffix, are_sets = file.suffix.lower(), options.task == MULTILABEL
    if suffix in LINES:
        return _of_lines(file, options)
    if suffix == ".xml":
        return Cvat(file, are_sets=are_sets)
    if suffix == ".txt":
        if not _is_image_list(file):
            return None
        if SPLIT_LIST.search(file.stem):
            raise ImportRefusedError(
                f"{file} is called as a list of splits; if its numbers are classes, give it another name."
            )
        return ImageList(file)
    if suffix != ".json":
        return None
    try:
        value = json.loads(text_of(file, most_bytes=MOST_BYTES))
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError) and _has_lines(error):
            return _of_lines(file, options)
        raise ImportRefusedError(f"{file} is no JSON ({error}); export it again.") from error
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        raise ImportRefusedError(f"{file} cannot be read ({error.strerror}); split it.") from error
    if isinstance(value, dict) and all(
        isinstance(value.get(k), list) for k in ("images", "annotations", "categories")
    ):
        return CocoBoxes(file, value) if options.boxes else Coco(file, value, are_sets=are_sets)
    if isinstance(value, list) and value and _is_create_ml(value[0]):
        raise ImportRefusedError(
            f"{file} holds boxes as CreateML has them; write boxes as COCO and import that file with boxes."
        )
    if isinstance(value, list) and (not value or _is_task(value[0])):
        return LabelStudio(file, value, options)
    found = json_format(file, value, options)
    if found is None:
        raise ImportRefusedError(
            f"{file} is neither COCO (images, annotations, categories), nor a list of Label Studio's tasks or of "
            "objects with a path and a label each; pandas writes one by to_json(orient='records')."
        )
    return found


def _has_lines(error: json.JSONDecodeError) -> bool:
    """Return whether a file of JSON goes on with another object on a line of its own."""
    return error.msg == EXTRA and "\n" in error.doc[: error.pos]


def _is_create_ml(value: object) -> bool:
    return isinstance(value, dict) and "image" in value and isinstance(value.get("annotations"), list)


def _is_task(value: object) -> bool:
    """Return whether it is one of Label Studio's tasks, or nothing that is known."""
    if not isinstance(value, dict) or "annotations" in value or "completions" in value:
        return True
    return isinstance(value.get("data"), dict) or value.keys() == {"data"}


def _of_lines(file: Path, options: SourceOptions) -> Format:
    if is_labelbox(file):
        return Labelbox(file, options)
    is_manifest = SOURCE in next(json_lines(file), (0, {}))[1]
    return (GroundTruth if is_manifest else JsonLines)(file, options)


def _is_image_list(file: Path) -> bool:
    with file.open("rb") as stream:
        words = stream.readline(1 << 16).decode("utf-8-sig", "replace").rsplit(None, 1)
    return len(words) == 2 and words[0].strip().lower().endswith(IMAGE_SUFFIXES)
