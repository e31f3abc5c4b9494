"""Every kind of source behind one door: ``open_source`` finds out what the user named."""

from __future__ import annotations

import errno
import shutil
import tempfile
import weakref
from dataclasses import replace
from pathlib import Path

from auditor.ground.errors import ImportRefusedError
from auditor.ground.vocabulary import REGRESSION, SEGMENTATION
from auditor.pictures.sources.addresses import fetch, is_folder, is_remote, path_of
from auditor.pictures.sources.annotations import (
    AnnotationSource,
    NamedSource,
    numbers_of,
)
from auditor.pictures.sources.answers import NO_PLACE
from auditor.pictures.sources.array_files import ArraySource, are_arrays
from auditor.pictures.sources.arrow_files import saved_files
from auditor.pictures.sources.beside import open_folders, refuse_other_folders
from auditor.pictures.sources.columns import columns_taken
from auditor.pictures.sources.exports import classes_named, review_time, several_labels
from auditor.pictures.sources.folder import FolderSource, is_image_name
from auditor.pictures.sources.formats import annotation_format
from auditor.pictures.sources.kept_apart import open_apart
from auditor.pictures.sources.layout import SPLITS, tree_lines
from auditor.pictures.sources.parquet import ParquetSource
from auditor.pictures.sources.parts import NAMES as PARTS
from auditor.pictures.sources.parts import Part, PartsSource, parts_of
from auditor.pictures.sources.reading import (
    UnreadableError,
    is_beginning,
    local_file,
    read_bytes,
    read_each,
)
from auditor.pictures.sources.remote import RemoteTree
from auditor.pictures.sources.roots import Resolved, images_at, remarks
from auditor.pictures.sources.rows import (
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
from auditor.pictures.sources.tables import TableSource, open_table
from auditor.pictures.sources.tars import TarTree, WebDatasetSource, holds_samples, is_tar
from auditor.pictures.sources.trees import (
    ROOT,
    FolderTree,
    Images,
    Tree,
    ZipTree,
    folder_tree,
    is_below,
    is_repository,
)
from auditor.pictures.sources.unpacking import unpack_parquet

__all__ = [
    "NO_PLACE",
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
    "read_mask",
    "remarks",
    "review_time",
    "several_labels",
    "split_lists",
    "split_turn",
    "tree_lines",
]

NAMED = ("fiftyone:",)
"""Sources that libraries keep: they are read where those libraries are loaded."""
TFDS = ("features.json", "dataset_info.json")
TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".xlsx")
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


def _open_path(
    path: Path, options: SourceOptions, scratch: Path | None, images: Images | None = None
) -> Source:
    if not path.exists():
        raise ImportRefusedError(f"{path} does not exist; name {KINDS}.")
    if path.is_dir():
        return _open_folder(path, options)
    if not path.is_file():
        raise ImportRefusedError(f"{path} is no regular file; name {KINDS}.")
    suffix = path.suffix.lower()
    if is_tar(path.name):
        return _open_tar(path, options)
    if are_arrays(path):
        return ArraySource(path, options)
    annotations = annotation_format(path, options)
    if options.boxes and (annotations is None or annotations.kind != "coco_boxes"):
        raise ImportRefusedError(f"{path} is no COCO file with boxes; leave boxes out.", field="boxes")
    if annotations is not None:
        if annotations.path_column is None:  # at most the question can be named
            asked = options if annotations.label_column is None else replace(options, label_column=None)
            _refuse_columns(str(path), "it is no table", asked)
        return AnnotationSource(annotations, path, options, images)
    if suffix in TABLE_SUFFIXES:
        return open_table(path, images or images_at(options.root, path.parent), options)
    if suffix in (".parquet", ".pq"):
        return ParquetSource([path], path, options)
    if suffix == ".zip":
        return _open_zip(path, options, scratch)
    raise ImportRefusedError(f"{path} cannot be imported; name {KINDS}.")


def _open_tar(path: Path, options: SourceOptions) -> Source:
    tree = TarTree(path)
    if holds_samples(tree):
        return WebDatasetSource([path], path, options, tree)
    listed = next((name for name, _ in tree.walk() if name.rpartition("/")[2] in PARTS), None)
    if listed is not None:
        raise ImportRefusedError(
            f"{path} holds labels in {listed}; unpack it, and import the folder that comes out."
        )
    return _open_folders(tree, options)


def _open_folders(tree: Tree, options: SourceOptions) -> Source:
    source = open_folders(tree, options)
    if isinstance(source, FolderSource):
        _refuse_columns(tree.root, "its classes are its folders", options)
    return source


def _open_address(address: str, options: SourceOptions) -> Source:
    """A source that is reached through fsspec: nothing but what its kind needs is fetched."""
    named = address.rstrip("/")
    suffix = Path(named).suffix.lower()
    if suffix in (".parquet", ".pq"):
        file = path_of(named)
        return ParquetSource([file], file, options)
    if is_tar(named):
        return _open_tar(path_of(named), options)
    if suffix == ".zip":
        return _open_zip(path_of(named), options, None)
    if not is_folder(address):
        return _open_fetched(named, options)
    tree = RemoteTree(named)
    names = [name for name, _ in tree.walk()]
    files = [path_of(f"{named}/{name}") for name in names]
    parquet = [file for file in files if file.suffix.lower() in (".parquet", ".pq")]
    shards = [file for file in files if is_tar(file.name)]
    if parquet and not any(map(is_image_name, names)):
        return ParquetSource(parquet, path_of(named), options)
    if shards and not any(map(is_image_name, names)):
        return WebDatasetSource(shards, path_of(named), options)
    source = FolderSource(tree, options.layout)
    _refuse_columns(named, "its classes are its folders", options)
    return source


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


def _open_folder(path: Path, options: SourceOptions) -> Source:
    if is_repository(path):
        return _open_folder(_revision(path), options)
    if all((path / name).is_file() for name in TFDS):
        raise ImportRefusedError(
            f"{path} is a folder of TFDS; read it with tensorflow_datasets and hand its arrays to "
            "auditor.from_arrays(images, labels, name=...)."
        )
    if options.layout is None:  # which says that class folders are meant
        saved = saved_files(path)
        kinds = {"arrays": are_arrays(path), "a saved table": saved is not None}
        _refuse_several(path, [kind for kind, is_there in kinds.items() if is_there])
        if kinds["arrays"]:
            return ArraySource(path, options)
        if saved is not None:
            _refuse_outside(FolderTree(path), saved)
            return ParquetSource(saved, path, options)
    names = sorted(entry.name for entry in path.iterdir())
    parquet = [path / name for name in names if name.lower().endswith(".parquet")]
    tree = folder_tree(path, options.root)
    if parquet and not any((path / name).is_dir() for name in names):
        _refuse_outside(tree, parquet)
        return ParquetSource(parquet, Path(tree.root), options)
    parts = parts_of(tree)
    if parts:
        return _open_parts(tree, parts, options)
    try:
        source = _open_folders(tree, options)
        if parquet and options.layout is None and isinstance(source, FolderSource):
            raise _several(path, ["Parquet", "class folders"])
        if isinstance(source, FolderSource):
            _refuse_root(path, options)
        return source
    except ImportRefusedError as error:
        tables = [name for name in names if name.lower().endswith((".csv", ".tsv", ".xlsx", ".parquet"))]
        tables.sort(key=lambda name: "submission" in name.lower())  # Kaggle's form for answers comes last
        if error.field is not None:  # a question, or parts of another layout
            _refuse_columns(str(path), "its classes are its folders", options)
            text = f"{error} To import its table, name {path / tables[0]}." if tables else str(error)
            raise ImportRefusedError(text, field=error.field) from None
        listed = list(tree.walk())
        below = [Path(tree.root) / name for name, reason in listed if reason is None]
        parquet = [file for file in below if file.suffix.lower() == ".parquet"]
        shards = [file for file in below if is_tar(file.name)]
        if parquet and shards:
            raise _several(path, ["Parquet", "tar"]) from None
        if parquet:  # a repository of Hugging Face: data/train-00000-of-00001.parquet, ...
            return ParquetSource(parquet, Path(tree.root), options)
        if shards:
            return WebDatasetSource(shards, Path(tree.root), options)
        arrays = {file.parent for file in below if are_arrays(file)}
        if len(arrays) == 1 and are_arrays(inner := arrays.pop()):
            return ArraySource(inner, options)
        if tables:
            raise ImportRefusedError(
                f"{path} has no sub-folder with images; to import its table, name {path / tables[0]}."
            ) from None
        unusable = next((each for each in listed if each[1] is not None), None)
        if unusable is not None:
            _refuse_root(path, options)
            name, reason = unusable
            text = f"{error} {printable(name.removeprefix(tree.base))} {reason}."
            raise ImportRefusedError(text, field="root" if ROOT in text else None) from None
        raise


def _revision(path: Path) -> Path:
    """The one revision in a repository as the hub's library keeps it."""
    found = sorted(entry for entry in (path / "snapshots").iterdir() if entry.is_dir())
    if len(found) != 1:
        names = ", ".join(printable(entry.name, 40) for entry in found[:3]) or "none"
        raise ImportRefusedError(
            f"{path} holds {len(found)} revisions ({names}); name one, in its folder snapshots."
        )
    return found[0]


def _refuse_root(path: Path, options: SourceOptions) -> None:
    """Of class folders the root holds them and says how far links are followed; of a table it may lie elsewhere."""
    if options.root is not None and not is_below(path, options.root):
        raise ImportRefusedError(
            f"{path} does not lie below the root {options.root}; name one that holds it and what links lead to.",
            field="root",
        ) from None


def _refuse_several(path: Path, kinds: list[str]) -> None:
    """Ask where files of one kind lie beside those of another, or beside class folders."""
    if kinds:
        try:
            FolderSource(folder_tree(path))
            kinds = [*kinds, "class folders"]
        except ImportRefusedError:
            pass
    if len(kinds) > 1:
        raise _several(path, kinds)


def _several(path: Path, kinds: list[str]) -> ImportRefusedError:
    return ImportRefusedError(
        f"{path} can be read in two ways: it holds {' and '.join(kinds)}. Name the file or folder that is meant, "
        "or say of class folders what the first ones are: classes, splits or deepest.",
        field="layout",
    )


def _refuse_outside(tree: FolderTree, files: list[Path]) -> None:
    """A part that is a link out of the root, or no file, is refused as an image is."""
    for file in files:
        location = str(file.relative_to(tree.root))
        if not tree.is_inside(location, is_link=True):
            raise ImportRefusedError(f"{file} {tree.outside(location)}.")
        if not file.is_file():
            raise ImportRefusedError(f"{file} is no regular file; remove it from the folder.")


def _open_zip(path: Path, options: SourceOptions, scratch: Path | None) -> Source:
    tree = ZipTree(path)
    parts = parts_of(tree)
    if parts:
        return _open_parts(tree, parts, options)
    names = [name for name, reason in tree.walk() if reason is None]
    tables = [name for name in names if name.lower().endswith((".csv", ".tsv"))]
    parquet = [name for name in names if name.lower().endswith(".parquet")]
    if len(tables) == 1 and (options.root is not None or not any(map(is_image_name, names))):
        images = Resolved(tree) if options.root is None else images_at(options.root, path.parent)
        return TableSource(tables[0], tree.open(tables[0]), images, options)
    if parquet and not any(map(is_image_name, names)):
        files, folder = unpack_parquet(tree, parquet, scratch)
        return ParquetSource(files, folder, options, kind="zip")
    return _open_folders(tree, options)


def _open_parts(tree: FolderTree | ZipTree, parts: list[Part], options: SourceOptions) -> PartsSource:
    """Files of labels in a zip are unpacked while it is open."""
    if isinstance(tree, FolderTree):
        place = Path(tree.root)
        source = PartsSource(tree, parts, lambda name, images: _open_beside(place / name, options, images))
        if options.label_column is None:
            refuse_other_folders(source)
        return source
    folder = Path(tempfile.mkdtemp(prefix="label-auditor-"))

    def opened(name: str, images: Images) -> Source:
        file = folder / str(len(list(folder.iterdir()))) / name.rpartition("/")[2]
        file.parent.mkdir()
        with tree.open(name) as packed, file.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
        return _open_beside(file, options, images)

    try:
        source = PartsSource(tree, parts, opened)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(source, shutil.rmtree, folder, ignore_errors=True)
    if options.label_column is None:
        refuse_other_folders(source)
    return source


def _open_beside(file: Path, options: SourceOptions, images: Images) -> Source:
    return _open_path(file, options, None, images if options.root is None else None)


def _refuse_columns(source: str, why: str, options: SourceOptions) -> None:
    """Where there is no table, a named column was meant for something else."""
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
