"""What the schema of a Parquet file says: which column holds images, and what the class numbers mean."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from auditor.ground.errors import ImportRefusedError
from auditor.pictures.sources.addresses import opened
from auditor.pictures.sources.arrow_files import ArrowFile
from auditor.pictures.sources.columns import IMAGE_NAMES, PATH_NAMES, choose_column, find_column, listed
from auditor.pictures.sources.rows import printable

LOCATION = re.compile(r"(.*?)#([0-9]{1,18})(?::(.*))?", re.DOTALL)


def open_columns(file: Path | str, below: Path | str | None = None) -> pq.ParquetFile | ArrowFile:
    """Open a Parquet file, here or at an address, or an Arrow stream of ``save_to_disk``; ``below`` as ``opened``.

    Raises:
        ImportRefusedError: it is not there, of neither kind, or damaged.
    """
    return ArrowFile(file, below) if str(file).endswith(".arrow") else open_parquet(file, below)


def open_parquet(file: Path | str, below: Path | str | None = None) -> pq.ParquetFile:
    """Open a Parquet file, here or at an address; ``below`` as ``opened``.

    Raises:
        ImportRefusedError: it is not there, no Parquet, or damaged.
    """
    try:
        found = pq.ParquetFile(opened(file, below))
        assert found.schema_arrow.names is not None  # which fails where they are no text
        return found
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ImportRefusedError(
            f"{file} cannot be read as Parquet ({printable(str(error), 100)}); write it again."
        ) from error


def split_location(location: str) -> tuple[str, int, str | None]:
    """(file, row, column) of ``FILE#ROW:COLUMN``, where the file and the column may be missing.

    Raises:
        ValueError: it names no row.
    """
    found = LOCATION.fullmatch(location)
    if found is None:
        raise ValueError(f"{printable(location)} names no row of a Parquet file")
    return found[1], int(found[2]), found[3]


def image_column(file: str, schema: pa.Schema, wanted: str | None) -> str:
    """The column with images or paths: the one named, else bytes, else a path column.

    Raises:
        ImportRefusedError: there is none.
    """
    if wanted is not None:
        return choose_column(file, schema.names, "path", wanted, ())
    structs = [f.name for f in schema if pa.types.is_struct(f.type) and f.type.get_field_index("bytes") >= 0]
    binaries = [f.name for f in schema if _is_binary(f.type)]
    texts = [f.name for f in schema if _is_string(f.type)]
    found = find_column(structs, IMAGE_NAMES) or next(iter(structs), None)
    found = found or find_column(binaries, IMAGE_NAMES) or find_column(texts, PATH_NAMES)
    if found is None:
        raise ImportRefusedError(
            f"{file} has no column with images or paths; name the right one. {listed(schema.names)}",
            field="path_column",
        )
    return found


def layout_of(schema: pa.Schema, column: str) -> str:
    """``struct`` (bytes and path), ``binary`` (bytes) or ``path`` (text).

    Raises:
        ImportRefusedError: the column holds something else.
    """
    kind = schema.field(column).type
    if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        return "struct"
    if _is_binary(kind):
        return "binary"
    if _is_string(kind):
        return "path"
    raise ImportRefusedError(
        f"column {column!r} holds {printable(str(kind), 60)}; encoded images (bytes) or paths are needed. "
        f"{listed(schema.names)}"
    )


def declared_classes(file: str, schema: pa.Schema, column: str) -> tuple[str, ...] | None:
    """Class names by number from the schema: Hugging Face's ``ClassLabel`` or the metadata key ``classes``.

    Raises:
        ImportRefusedError: a name is empty or occurs twice.
    """
    metadata = schema.metadata or {}
    names: list[str] | None = None
    feature = _hugging_face_feature(metadata.get(b"huggingface", b"{}"), column)
    if feature is not None:
        names = feature
    elif b"classes" in metadata and pa.types.is_integer(schema.field(column).type):
        names = _listed_classes(metadata[b"classes"].decode("utf-8", "replace"))
    if names is None:
        return None
    stripped = [name.strip() for name in names]
    for number, name in enumerate(stripped):
        if not name:
            raise ImportRefusedError(
                f"{file}: class {number} has an empty name; name it in the schema's classes."
            )
        if stripped.index(name) != number:
            raise ImportRefusedError(f"{file}: two classes are named {printable(name, 60)!r}; rename one.")
    return tuple(stripped)


def _listed_classes(text: str) -> list[str]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    return [str(name) for name in parsed] if isinstance(parsed, list) else text.split(",")


def _hugging_face_feature(text: bytes, column: str) -> list[str] | None:
    try:
        feature = json.loads(text)["info"]["features"][column]
        feature = feature[0] if isinstance(feature, list) else feature.get("feature", feature)  # of a list
        names = feature["names"] if feature.get("_type") == "ClassLabel" else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names
    return None


def _is_binary(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _is_string(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def is_text_like(kind: pa.DataType) -> bool:
    """Return whether a cell is one plain value."""
    return not (pa.types.is_nested(kind) or _is_binary(kind))
