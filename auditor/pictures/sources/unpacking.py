"""A zip cannot be read from the middle: its Parquet files are unpacked into the dataset's own folder."""

from __future__ import annotations

import shutil
from pathlib import Path, PurePosixPath

from auditor.ground.errors import ImportRefusedError
from auditor.pictures.sources.trees import ZipTree


def unpack_parquet(tree: ZipTree, names: list[str], scratch: Path | None) -> tuple[list[Path], Path]:
    """Unpack ``names`` into ``scratch``: (the files in order, the root that locations are relative to).

    Raises:
        ImportRefusedError: damaged, or no room.
    """
    if scratch is None:
        raise ImportRefusedError(f"{tree.root} holds Parquet; unpack it and import the files.")
    scratch.mkdir(parents=True, exist_ok=True)
    needed, free = sum(map(tree.size_of, names)), shutil.disk_usage(scratch).free
    if needed > free:
        raise ImportRefusedError(
            f"unpacking {tree.root} needs {needed / 2**20:,.0f} MB and {free / 2**20:,.0f} MB are free; "
            "free some space or point AUDITOR_HOME to another disk."
        )
    files: list[Path] = []
    for name in names:
        base = PurePosixPath(name).name
        target = scratch / (base if not (scratch / base).exists() else f"{len(files)}-{base}")
        with tree.open(name) as packed, target.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked, 1 << 20)
        files.append(target)
    return files, files[0] if len(files) == 1 else scratch
