"""Which column holds the path and which the label, where the user did not say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import parse_qs, unquote, urlsplit

from auditor.ground.errors import ImportRefusedError
from auditor.ground.wording import did_you_mean
from auditor.pictures.sources.layout import is_split
from auditor.pictures.sources.rows import IMAGE_SUFFIXES, SourceInfo, SourceOptions, printable

PATH_NAMES = (
    *(
        "filepath",
        "file_path",
        "filename",
        "file_name",
        "image_path",
        "img_path",
        "path",
        "file",
        "image",
        "img",
    ),
    *("filepaths", "fname"),
    *("image_file", "image_filename", "relative_path", "image_name", "img_name", "imagename", "image_index"),
    *("image_url", "image_uri", "imagegcsuri", "source-ref", "url", "uri"),
)
ID_NAMES = ("image_id", "img_id", "imageid", "isic_id", "id_code", "uuid", "id", "key", "name")
"""Columns whose cells may be the names of images without their suffix."""
LABEL_NAMES = (
    *(
        "given_label",
        "label",
        "class",
        "class_name",
        "target",
        "category",
        "labels",
        "noisy_label",
        "class_label",
    ),
    *("classname", "choice", "annotation", "y", "dx", "diagnosis", "breed", "species", "finding_labels"),
    *("label_name", "labelname", "class_label_name", "class_id", "label_id", "class_index", "class_idx"),
)
GIVEN = ("given_label", "noisy_label")
"""Columns that say that they are the labels, whatever other columns there are."""
SPLIT_NAMES = (
    "split",
    "data_split",
    "dataset_split",
    "subset",
    "data_set",
    "dataset",
    "set",
    "partition",
    "usage",
)
ANNOTATOR_NAMES = (
    "annotator",
    "annotator_id",
    "rater",
    "reader",
    "labeler",
    "labeller",
    "worker",
    "worker_id",
)
ANNOTATOR = re.compile(
    r"(annotators?|raters?|readers?|labell?ers?|workers?|experts?|coders?|users?)[_\- ]?\w{1,2}"
)
"""Columns of several annotators: ``annotator1``, ``Rater B``."""
_OF_A_MODEL = re.compile(
    r"(?:[a-z0-9]{1,20}_)?(?:pred|preds|predict|predicted|predictions?|y_?pred|y_?hat|inferred|inference|argmax|"
    r"top_?1|pseudo)(?:_?(?:labels?|class|classes|classname|class_name|category|name|id|idx|index|y))?"
)
_REVISED = re.compile(
    r"(?:corrected|fixed|final|new|updated|revised|adjudicated|reviewed|old|original)_?"
    r"(?:labels?|class|category|class_name)"
)
"""Columns of labels beside others, of which only a person knows which ones count."""
_NUMBER = re.compile(r"(?<=[a-z])[ ._-]?[0-9]$", re.IGNORECASE)
DATA_AS_HEADER = "its first row looks like data; add a header row such as filepath,label"
TRUE_WORDS = frozenset(["1", "1.0", "true", "yes", "y", "t", "x"])
FALSE_WORDS = frozenset(["", "0", "0.0", "false", "no", "n", "f"])
"""What a column ``trusted`` may say; pandas writes 1 and 0 as 1.0 and 0.0 where other cells are empty."""
IMAGE_NAMES = ("image", "img", "picture", "photo", "pixels", "image_bytes", "bytes")


LOCAL_FILES, UPLOADS = "/data/local-files/", "/data/upload/"
"""How Label Studio calls images of its machine, and those that were uploaded."""


class NoColumnError(ImportRefusedError):
    """No column is called as what is looked for."""


def path_on_disk(text: str) -> str:
    """The path of an image that Label Studio's server names; any other text as it is."""
    parts = urlsplit(text) if text.startswith((LOCAL_FILES, UPLOADS)) else None
    if parts is None:
        return text
    if parts.path.startswith(LOCAL_FILES):
        return unquote(parse_qs(parts.query).get("d", [""])[0])
    return unquote(parts.path.removeprefix(UPLOADS))


def find_column(columns: Iterable[str], usual: Sequence[str]) -> str | None:
    """The first of the usual names that occurs, whatever its case."""
    by_name = {column.strip().lower().replace(" ", "_"): column for column in reversed(list(columns))}
    return next((by_name[name] for name in usual if name in by_name), None)


def is_label_name(column: str) -> bool:
    """Return whether a column is called as labels are, also ``label2``, ``label.1`` and ``corrected_label``; ``y``
    may be a place as well.
    """
    plain = _NUMBER.sub("", column.strip()).lower()
    is_revised = _REVISED.fullmatch(re.sub(r"[ .-]+", "_", plain)) is not None
    return is_revised or (plain != "y" and find_column([plain], LABEL_NAMES) is not None)


def is_of_model(column: str) -> bool:
    """Return whether a column is called as what a model says: ``predicted_label``, ``y_pred``."""
    return _OF_A_MODEL.fullmatch(re.sub(r"[ .-]+", "_", column.strip().lower())) is not None


def choose_column(
    file: str, columns: Sequence[str], role: str, wanted: str | None, usual: Sequence[str]
) -> str:
    """The column that the user named, or the first usual one.

    Raises:
        ImportRefusedError: there is none; the text lists the columns and the option.
    """
    if wanted is not None:
        if wanted in columns:
            return wanted
        raise ImportRefusedError(
            f"{file} has no column {wanted!r}; {did_you_mean(wanted, columns, listed(columns))}"
        )
    found = find_column(columns, usual)
    if found is None and looks_like_data(columns):
        raise ImportRefusedError(
            f"{file} has no column that is clearly the {role}: {DATA_AS_HEADER}. {listed(columns)}"
        )
    if found is None:
        people = [name for name in columns if role == "label" and ANNOTATOR.fullmatch(name.strip().lower())]
        if len(people) > 1:
            raise ImportRefusedError(
                f"{file} has no column that is clearly the label; name the right one, or the annotators whose "
                f"answers they are ({printable(', '.join(people), 100)}).",
                field="annotators",
            )
        said = next(filter(is_of_model, columns), None) if role == "label" else None
        why = f": {printable(said, 40)} is called as what a model says" if said else ""
        raise NoColumnError(
            f"{file} has no column that is clearly the {role}{why}; name the right one. {listed(columns)}",
            field=f"{role}_column",
        )
    return found


def split_in(cells: Mapping[str, object], column: str | None) -> str | None:
    """The split that a row names in that column, one of ``SPLIT_NAMES``.

    Under ``split`` stands one whatever it is called; under the others, names that splits usually have alone.
    """
    if column is None or not isinstance(said := cells.get(column), str):
        return None
    name = said.strip()
    return name if name and (column.strip().lower() == "split" or is_split(name)) else None


def is_trusted(cell: object) -> bool:
    """Return whether a cell of the column ``trusted`` vouches for its label; a missing value does not.

    Raises:
        ValueError: it says neither yes nor no; the text says what to write.
    """
    is_missing = cell is None or (isinstance(cell, float) and cell != cell)
    word = "" if is_missing else str(cell).strip().lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise ValueError(f"trusted is {printable(word, 40)!r}; write true or false, or leave it empty")
    return word in TRUE_WORDS


def looks_like_data(columns: Sequence[str]) -> bool:
    """Return whether a header names an image: the file then has none, and its first sample would be lost for it."""
    return any(name.strip().lower().endswith(IMAGE_SUFFIXES) for name in columns)


def listed(columns: Sequence[str]) -> str:
    """The columns in words."""
    return f"Its columns are: {printable(', '.join(columns))}."


def columns_taken(info: SourceInfo) -> str:
    """Return which columns of a table hold images and labels, and what else the labels could be; empty
    without a table.
    """
    if info.label_column is None:
        return ""
    label = f"labels from the column {printable(info.label_column)!r}"
    images = f"images from the column {printable(info.path_column)!r}, " if info.path_column else ""
    taken = (info.label_column, info.true_label_column)
    other = [name for name in info.columns if is_label_name(name) and name not in taken]
    sentence = f"{images}{label}."
    if other and not info.is_own_export:
        sentence += f" Not used: {printable(', '.join(other))}; name another column of labels to use it."
    return sentence[0].upper() + sentence[1:]


def refuse_columns(source: str, why: str, options: SourceOptions) -> None:
    """Refuse columns that are named where there is no table.

    Raises:
        ImportRefusedError: one was named.
    """
    named = {
        "label_column": options.label_column,
        "path_column": options.path_column,
        "true_label_column": options.true_label_column,
    }
    for field, column in named.items():
        if column is not None:
            raise ImportRefusedError(
                f"{source} has no column {printable(column, 60)!r}: {why}; leave it out, or import a table.",
                field=field,
            )
