"""The table of layouts and files of the world: text files beside this one, read as cases.

A file is a family. ``## name`` begins a case; then lines follow, each with one file of it::

    open: labels.csv              (what is imported; default: the whole folder)
    with: layout=splits           (options of the import)
    asks: two ways                (it is refused or asked about, with these words in the message)
    says: unlabeled               (it is read, and a remark has these words)
    train/p1.jpg -> cat @ train   (a picture, its class and its split; without an arrow it is no sample)
    test/p1.jpg = 7               (the same name with the picture of another number)
    masks/p1.png = mask 1         (a mask; ``images/p1.png -> mask 1`` has it)
    labels.csv:                   (a text, which follows, indented; of a zip or tar: its files)
        file,label
        p1.jpg,cat

A picture ``pN`` has pixels of its own, by which it is known again.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import textwrap
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from PIL import Image
from pyarrow import parquet

HERE = Path(__file__).parent
SIDE = 8
PICTURE = re.compile(r"(?<![A-Za-z0-9])p(\d+)(?![A-Za-z0-9])")
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")

Content: TypeAlias = "int | str | Mask | dict[str, Any]"
"""The number of a picture, a text, a mask, or the files of an archive."""


@dataclass(frozen=True)
class Mask:
    """A mask of that number: zeros and ones."""

    number: int


@dataclass(frozen=True)
class Meant:
    """What a picture is to be read as."""

    label: str | None
    split: str | None
    mask: int | None = None


@dataclass(frozen=True)
class Case:
    """One layout: its files, and how they are to be read."""

    family: str
    name: str
    files: Mapping[str, Content]
    wanted: Mapping[int, Meant]
    """By the number of the picture; empty: it is refused or asked about."""
    asks: str = ""
    says: str = ""
    opened: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def write(self, place: Path) -> Path:
        """Write the files into a new folder, and give what is to be imported."""
        for path, content in self.files.items():
            file = place / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(encoded(path, content))
        return place / self.opened if self.opened else place


def cases() -> list[Case]:
    """All of the table, in its order."""
    return [case for file in sorted(HERE.glob("*.txt")) for case in _of_family(file)]


def encoded(path: str, content: Content) -> bytes:
    """The bytes of a file."""
    if isinstance(content, int):
        return picture(content)
    if isinstance(content, Mask):
        return _saved(mask_values(content.number))
    if isinstance(content, dict):
        return packed(path, content)
    return _parquet(content) if path.endswith(".parquet") else content.encode()


def picture(number: int | str) -> bytes:
    """A picture of that number or name, which no other has: a PNG, whatever its name says."""
    return _saved(_noise(f"picture {number}"))


def mask_values(number: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """(SIDE, SIDE) zeros and ones."""
    values: np.ndarray[Any, np.dtype[np.uint8]] = _noise(f"mask {number}") & 1
    return values


def packed(path: str, files: Mapping[str, Content]) -> bytes:
    """A zip or tar of these files."""
    stream = io.BytesIO()
    if path.endswith(".zip"):
        with zipfile.ZipFile(stream, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, encoded(name, content))
        return stream.getvalue()
    with tarfile.open(fileobj=stream, mode="w:gz" if path.endswith("gz") else "w") as tar:
        for name, content in files.items():
            data = encoded(name, content)
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def in_archive(case: Case, path: str) -> Case:
    """The whole folder of a case as one archive."""
    return replace(case, files={path: dict(case.files)}, opened=path)


def wrapped(case: Case, *folders: str) -> Case:
    """The case with folders round everything, which are imported."""
    prefix = "".join(f"{folder}/" for folder in folders)
    files = {f"{prefix}{path}": content for path, content in case.files.items()}
    return replace(case, files=files, opened=f"{prefix}{case.opened}" if case.opened else "")


def _noise(seed: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    data = hashlib.shake_256(seed.encode()).digest(SIDE * SIDE)
    return np.frombuffer(data, np.uint8).reshape(SIDE, SIDE)


def _saved(values: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(values).save(stream, "PNG")
    return stream.getvalue()


def _parquet(text: str) -> bytes:
    """Columns as in a CSV; ``name*`` holds pictures as ``datasets`` writes them, ``name!`` their bytes."""
    header, *lines = text.strip().splitlines()
    columns: dict[str, list[Any]] = {name: [] for name in header.split(",")}
    for line in lines:
        for name, cell in zip(columns, line.split(","), strict=True):
            found = PICTURE.search(cell)
            value: Any = int(cell) if cell.isdigit() else cell
            if name.endswith(("*", "!")) and found is not None:
                value = picture(int(found[1]))
                value = {"bytes": value, "path": cell} if name.endswith("*") else value
            columns[name].append(value)
    stream = io.BytesIO()
    parquet.write_table(pa.table({name.rstrip("*!"): values for name, values in columns.items()}), stream)
    return stream.getvalue()


def _of_family(file: Path) -> list[Case]:
    family, *parts = re.split(r"^## ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [_case(family.lstrip("# ").strip(), part) for part in parts]


def _case(family: str, text: str) -> Case:
    name, _, body = text.partition("\n")
    said = dict(re.findall(r"^(open|with|asks|says): (.*)$", body, flags=re.MULTILINE))
    body = re.sub(r"^(open|with|asks|says): .*\n", "", body, flags=re.MULTILINE)
    wanted: dict[int, Meant] = {}
    files = _files(body, wanted)
    options = dict(one.split("=", 1) for one in said.get("with", "").split(" ") if one)
    for key in ("boxes", "merge_classes", "joined_classes"):
        if key in options:
            options[key] = options[key] == "True"
    words = [said.get(one, "") for one in ("asks", "says", "open")]
    return Case(family, name.strip(), files, wanted, *words, options)


def _files(body: str, wanted: dict[int, Meant]) -> dict[str, Content]:
    files: dict[str, Content] = {}
    for block in re.findall(r"^\S.*\n?(?:(?:[ \t]+.*)?\n)*", body + "\n", flags=re.MULTILINE):
        line, _, rest = block.partition("\n")
        if line.endswith(":"):
            path = line[:-1]
            text = textwrap.dedent(rest).strip("\n") + "\n"
            files[path] = _files(text, wanted) if path.endswith(ARCHIVES) else text
            continue
        line, arrow, meant = f"{line} ".partition(" -> ")
        path, _, content = line.strip().partition(" = ")
        found = PICTURE.search(path.rsplit("/", 1)[-1])
        if content.startswith("mask "):
            files[path] = Mask(int(content.removeprefix("mask ")))
        elif content or found is not None:
            number = int(content) if content else int(found[1]) if found is not None else 0
            files[path] = number
            if arrow:
                assert number not in wanted, f"{path}: its picture is there twice"
                wanted[number] = _meant(meant.strip())
        else:
            files[path] = "nothing\n"
    return files


def _meant(text: str) -> Meant:
    label, _, split = (part.strip() for part in text.partition("@"))
    if label.startswith("mask "):
        return Meant(None, split or None, int(label.removeprefix("mask ")))
    return Meant(label or None, split or None)
