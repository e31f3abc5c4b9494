"""Every kind of source behind one door: ``open_source`` finds out what the user named."""

from __future__ import annotations

import errno
import shutil
import tempfile
import weakref
from dataclasses import replace
from pathlib import Path

from auditor.ground.errors import ImportRefusedError
from auditor.ground.vocabulary import MULTILABEL, REGRESSION, SEGMENTATION
from auditor.pictures.sources.addresses import fetch, is_folder, is_remote, path_of
from auditor.pictures.sources.annotations import NamedSource, numbers_of
from auditor.pictures.sources.answers import NO_PLACE
from auditor.pictures.sources.array_files import ArraySource, is_array
from auditor.pictures.sources.columns import columns_taken
from auditor.pictures.sources.exports import classes_named, review_time, several_labels
from auditor.pictures.sources.formats import annotation_format, open_labels
from auditor.pictures.sources.kept_apart import open_apart
from auditor.pictures.sources.kinds import PARQUET, open_kind
from auditor.pictures.sources.layout import SPLITS, tree_lines
from auditor.pictures.sources.parquet import ParquetSource
from auditor.pictures.sources.reading import (
    UnreadableError,
    is_beginning,
    local_file,
    read_bytes,
    read_each,
)
from auditor.pictures.sources.remote import RemoteTree
from auditor.pictures.sources.roots import remarks
from auditor.pictures.sources.rows import (
    MASKS_ON,
    Payload,
    Problem,
    Rewritable,
    Source,
    SourceInfo,
    SourceOptions,
    SourceRow,
    ordered_class_names,
    printable,
)
from auditor.pictures.sources.segmentation import open_masks, read_mask, split_lists, split_turn
from auditor.pictures.sources.sets import SHOWN, read_list, read_set, set_text, sign_of
from auditor.pictures.sources.shared import sets_of
from auditor.pictures.sources.tars import TarTree, is_tar
from auditor.pictures.sources.trees import ZipTree, folder_tree, is_repository

__all__ = [
    "NO_PLACE",
    "SHOWN",
    "SPLITS",
    "Payload",
    "Problem",
    "Rewritable",
    "Source",
    "SourceInfo",
    "SourceOptions",
    "SourceRow",
    "UnreadableError",
    "annotation_format",
    "classes_named",
    "columns_taken",
    "fiftyone_sets",
    "is_beginning",
    "is_remote",
    "local_file",
    "open_here",
    "open_source",
    "ordered_class_names",
    "printable",
    "read_bytes",
    "read_each",
    "read_list",
    "read_mask",
    "read_set",
    "remarks",
    "review_time",
    "set_text",
    "several_labels",
    "sign_of",
    "split_lists",
    "split_turn",
    "tree_lines",
]

NAMED = ("fiftyone:",)
"""Sources that libraries keep: they are read where those libraries are loaded."""
KINDS = (
    "a folder of class folders, a CSV, TSV or .xlsx, Parquet, a zip or tar, a file of annotations (metadata.jsonl, "
    "COCO, Label Studio, Labelbox, CVAT, val.txt), .npz, a folder of save_to_disk, an address (s3://, gs://, "
    "https://), fiftyone:NAME"
)


def open_source(source: str | Path, options: SourceOptions, scratch: Path | None = None) -> Source:
    """Recognise a source and read what comes before its first row.

    ``scratch`` is a folder that a zip's Parquet files may be unpacked into. Files are parsed in a process apart.

    Raises:
        ImportRefusedError: not there, of no known kind, unreadable as a whole, or what ends that process.
    """
    if str(source).startswith(NAMED):
        return open_here(str(source), options, scratch)
    return open_apart(str(source), open_here, str(source), options, scratch)


def open_here(source: str, options: SourceOptions, scratch: Path | None = None) -> Source:
    """``open_source`` without a process apart."""
    if options.masks_on is not None and options.masks_on not in MASKS_ON:
        raise ImportRefusedError(
            f"There is no answer {options.masks_on!r}; use stored or seen.", field="masks_on"
        )
    if options.task == SEGMENTATION or options.masks is not None:
        return _open_masks(source, options)
    if options.ignore_index is not None:
        raise ImportRefusedError(
            "An ignore index is of masks; import them as the task segmentation.", field="ignore_index"
        )
    opened = _open(source, options, scratch)
    if (options.annotators or options.annotator_column) and not opened.info.annotators:
        raise ImportRefusedError(
            f"{source} is read with one label a picture; several annotators are read from a CSV, TSV or Parquet, "
            "and from Label Studio's and Labelbox's files.",
            field="annotators",
        )
    if options.task == REGRESSION:
        if options.class_names is not None:
            raise ImportRefusedError("Numbers have no class names; leave them out.", field="class_names")
        return numbers_of(opened)
    if options.task == MULTILABEL:
        return sets_of(opened, options)
    if options.class_names is None:
        return opened
    return NamedSource(opened, Path(options.class_names).expanduser())


def _open_masks(named: str, options: SourceOptions) -> Source:
    if named.startswith("fiftyone:"):
        from auditor.pictures.sources.fiftyone_sets import (
            open_fiftyone_masks,  # FiftyOne starts a database on import
        )

        return open_fiftyone_masks(named.removeprefix("fiftyone:"), options)
    path = Path(named).expanduser().absolute()
    if not named.strip() or not path.exists():
        raise ImportRefusedError(f"{path} does not exist; name a folder of images with masks.")
    return open_masks(path, options)


def _open(named: str, options: SourceOptions, scratch: Path | None) -> Source:
    if named.startswith("fiftyone:"):
        from auditor.pictures.sources.fiftyone_sets import (
            open_fiftyone,  # FiftyOne starts a database on import
        )

        return open_fiftyone(named.removeprefix("fiftyone:"), options)
    if named.startswith("torchvision:"):
        raise ImportRefusedError(
            "A set of torchvision is imported in Python: auditor.from_torch(dataset, name=...)."
        )
    if not named.strip() or "\0" in named:
        raise ImportRefusedError(f"The source is empty; name {KINDS}.")
    if is_remote(named):
        return _open_address(named, options)
    try:
        path = Path(named).expanduser().absolute()
        return _open_path(path, options, scratch)
    except PermissionError as error:
        raise ImportRefusedError(
            f"{error.filename or named} cannot be read ({error.strerror}); make it readable for this user."
        ) from error
    except RecursionError as error:
        raise ImportRefusedError(
            f"{printable(named)} is nested too deeply; import a folder further in."
        ) from error
    except RuntimeError as error:  # ~nouser
        reason = str(error).rstrip(".")
        raise ImportRefusedError(f"{printable(named)}: {reason}; name the folder in full.") from error
    except OSError as error:
        if error.errno not in (errno.ENAMETOOLONG, errno.ELOOP):
            raise
        raise ImportRefusedError(
            f"{printable(named)} cannot be opened ({error.strerror}); name {KINDS}."
        ) from error


def _open_path(path: Path, options: SourceOptions, scratch: Path | None) -> Source:
    if not path.exists():
        raise ImportRefusedError(f"{path} does not exist; name {KINDS}.")
    if path.is_dir():
        within = _revision(path) if is_repository(path) else path
        return open_kind(folder_tree(within, options.root), options)
    if not path.is_file():
        raise ImportRefusedError(f"{path} is no regular file; name {KINDS}.")
    suffix = path.suffix.lower()
    if is_tar(path.name):
        return open_kind(TarTree(path), options)
    if is_array(path.name):
        return ArraySource(path, options)
    labels = open_labels(path, options)
    if labels is not None:
        return labels
    if suffix in PARQUET:
        return ParquetSource([path], path, options)
    if suffix == ".zip":
        return open_kind(ZipTree(path), options, scratch)
    raise ImportRefusedError(f"{path} cannot be imported; name {KINDS}.")


def _open_address(address: str, options: SourceOptions) -> Source:
    """A source that is reached through fsspec: nothing but what its kind needs is fetched."""
    named = address.rstrip("/")
    suffix = Path(named).suffix.lower()
    if suffix in PARQUET:
        file = path_of(named)
        return ParquetSource([file], file, options)
    if is_tar(named):
        return open_kind(TarTree(path_of(named)), options)
    if suffix == ".zip":
        return open_kind(ZipTree(path_of(named)), options)
    if not is_folder(address):
        return _open_fetched(named, options)
    return open_kind(RemoteTree(named), options)


def _open_fetched(address: str, options: SourceOptions) -> Source:
    """A table or a file of annotations: its text is fetched while it is open, its images stay where they are."""
    parent, _, name = address.rpartition("/")
    folder = tempfile.mkdtemp(prefix="label-auditor-")
    file = Path(folder) / Path(name).name
    try:
        fetch(address, str(file))
        source = _open_path(file, replace(options, root=options.root or parent), None)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(source, shutil.rmtree, folder, ignore_errors=True)
    return source


def _revision(path: Path) -> Path:
    """The one revision in a repository as the hub's library keeps it."""
    found = sorted(entry for entry in (path / "snapshots").iterdir() if entry.is_dir())
    if len(found) != 1:
        names = ", ".join(printable(entry.name, 40) for entry in found[:3]) or "none"
        raise ImportRefusedError(
            f"{path} holds {len(found)} revisions ({names}); name one, in its folder snapshots."
        )
    return found[0]
