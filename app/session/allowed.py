"""Which paths of the server the import screen may read, and where uploads go."""

from __future__ import annotations

import itertools
import os
import re
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from auditor.ground.errors import ImportRefusedError
from auditor.ground.settings import number, settings

ROOTS_VARIABLE = "AUDITOR_IMPORT_ROOTS"
UPLOAD_VARIABLE = "AUDITOR_MAX_UPLOAD_MB"
MAX_UPLOAD_MB, MOST_UPLOAD_MB = 500, 1e6
MOST_OFFERED, MOST_IN_A_FOLDER = 2_000, 300
UPLOAD_KINDS = ("zip", "csv", "tsv", "xlsx", "parquet")
FEATURE_KINDS = ("npy", "csv", "tsv", "xlsx", "parquet")
NAMED_SOURCES = ("fiftyone:",)
NAMED_FEATURES = ("column:", "fiftyone:")


def roots() -> list[Path]:
    """Folders below which a path may be named: ``AUDITOR_IMPORT_ROOTS``, or the home and the current folder.

    Raises:
        ImportRefusedError: a folder is that of a user whom this machine does not know.
    """
    named = os.environ.get(ROOTS_VARIABLE)
    chosen = named.split(os.pathsep) if named else ["~", os.getcwd()]
    try:
        resolved = [Path(one).expanduser().resolve() for one in chosen if one]
    except (RuntimeError, OSError, ValueError) as error:
        raise ImportRefusedError(
            f"{ROOTS_VARIABLE} names a folder that cannot be found ({error})."
        ) from error
    return sorted(set(resolved))


def checked(text: str) -> str:
    """The path that a person typed, resolved, or the name of a ``fiftyone:`` set.

    Raises:
        ImportRefusedError: it lies outside the allowed roots; the text names them.
    """
    return _checked(text.strip(), NAMED_SOURCES)


def checked_features(text: str) -> str:
    """The path of features that a person typed, resolved, or ``column:NAME`` or ``fiftyone:FIELD``.

    Raises:
        ImportRefusedError: as ``checked``.
    """
    return _checked(text.strip(), NAMED_FEATURES)


def _checked(text: str, named: tuple[str, ...]) -> str:
    if text.startswith(named):
        return text
    if not text:
        raise ImportRefusedError("Name a path on this server.")
    # Resolved first, so that neither ".." nor a symbolic link leads out of the roots.
    path = Path(text).expanduser().resolve()
    if not any(path.is_relative_to(root) for root in roots()):
        listed = ", ".join(str(root) for root in roots())
        raise ImportRefusedError(
            f"{path} is outside the folders that this server may import from ({listed}); "
            f"move it there, or start the app with {ROOTS_VARIABLE} set."
        )
    if not path.exists():
        raise ImportRefusedError(f"{path} does not exist on this server.")
    return str(path)


def offered(inside: str = "") -> list[str]:
    """Folders, tables and zips at most two folders below the allowed roots, hidden ones apart, in their order.

    ``inside``: a path that was chosen; what lies directly in it is offered too, so that one gets to any depth.
    """
    found: list[str] = []
    chosen = Path(inside).expanduser().resolve() if inside.startswith(("/", "~")) else None
    if chosen is not None and any(chosen.is_relative_to(root) for root in roots()):
        found += [str(one) for one in (chosen, *_folders(chosen), *_tables(chosen)) if one.exists()]
    for root in roots():
        found.append(str(root))
        for folder in _folders(root):
            found += [str(folder), *(str(one) for one in _folders(folder))]
            found += [str(one) for one in _tables(folder)]
        found += [str(one) for one in _tables(root)]
    return sorted(dict.fromkeys(found))[:MOST_OFFERED]


def _folders(place: Path) -> list[Path]:
    return [one for one in _entries(place) if one.is_dir()]


def _tables(place: Path) -> list[Path]:
    return [one for one in _entries(place) if one.suffix.lstrip(".") in UPLOAD_KINDS]


def _entries(place: Path) -> list[Path]:
    try:
        with os.scandir(place) as entries:
            seen = itertools.islice(
                (Path(one.path) for one in entries if one.name[0] != "."), MOST_IN_A_FOLDER
            )
            return sorted(seen)
    except OSError:
        return []


def max_upload_mb() -> int:
    """Largest upload: ``AUDITOR_MAX_UPLOAD_MB``, default 500.

    Raises:
        AuditorError: it is no number of megabytes.
    """
    return int(number(UPLOAD_VARIABLE, MAX_UPLOAD_MB, least=1, most=MOST_UPLOAD_MB))


def keep_upload(name: str, stream: BinaryIO, size: int, *, kinds: Sequence[str] = UPLOAD_KINDS) -> Path:
    """Write an upload below the home and return its path; the dataset's pictures stay in it.

    Raises:
        ImportRefusedError: too large, or of a kind that is not imported.
    """
    _refuse_large(size)
    base = Path(name.replace("\\", "/")).name
    suffix = Path(base).suffix.lower()
    if suffix.lstrip(".") not in kinds:
        raise ImportRefusedError(
            f"A {suffix or 'file without ending'} cannot be imported; upload {', '.join(kinds)}."
        )
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(base).stem).strip(".-")[:80] or "upload"
    folder = settings().uploads / secrets.token_hex(6)
    folder.mkdir(parents=True)
    with (folder / f"{stem}{suffix}").open("wb") as file:
        shutil.copyfileobj(stream, file)
    return folder / f"{stem}{suffix}"


def keep_folder(files: Sequence[tuple[str, BinaryIO, int]]) -> Path:
    """Write a folder below the home and return its path: (path within it, content, bytes) of each file.

    Raises:
        ImportRefusedError: too large.
    """
    _refuse_large(sum(size for _, _, size in files))
    folder = settings().uploads / secrets.token_hex(6)
    for name, stream, _ in files:
        inside = [part for part in re.split(r"[/\\]", name) if part not in ("", ".", "..")]
        # A file without a folder stands beside those that have one.
        place = folder.joinpath(*(inside if len(inside) > 1 else ("dropped", *inside)))
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as file:
            shutil.copyfileobj(stream, file)
    tops = list(folder.iterdir())
    if len(tops) == 1:
        return tops[0]
    whole = folder / "dropped folders"
    whole.mkdir()
    for one in tops:
        one.rename(whole / one.name)
    return whole


def _refuse_large(size: int) -> None:
    if size > max_upload_mb() * 2**20:
        raise ImportRefusedError(
            f"The upload has {size / 2**20:,.0f} MB, more than the {max_upload_mb():,} MB allowed; "
            "copy it to the server and name its path."
        )


def forget_upload(path: str) -> None:
    """Delete an upload that no dataset came from."""
    folder = Path(path).parent
    if folder.parent == settings().uploads:
        shutil.rmtree(folder, ignore_errors=True)
