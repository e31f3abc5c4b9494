"""A file that is being written is whole or absent."""

from __future__ import annotations

import functools
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from auditor.ground.errors import DamagedError
from auditor.ground.files import (
    folder_written_whole,
    load_array,
    load_arrays,
    load_json,
    open_below,
    read_npy,
    written_whole,
)


@pytest.mark.skipif(sys.platform == "win32", reason="an administrator alone makes links there")
def test_open_below__looks_at_what_was_opened_and_not_at_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, root, fstat = tmp_path / "root" / "a.png", tmp_path / "root", os.fstat
    root.mkdir()
    (tmp_path / "private").write_bytes(b"private")
    file.symlink_to(tmp_path / "private")

    def swap_back(descriptor: int) -> os.stat_result:
        file.unlink()
        file.write_bytes(b"ours")
        return fstat(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", swap_back)
        with pytest.raises(OSError, match="is a link to a place outside"):
            open_below(root, "a.png")
    with open_below(root, "a.png") as stream:
        assert stream.read() == b"ours"


def test_written_whole__makes_the_folder_and_leaves_nothing_beside(tmp_path: Path) -> None:
    out = tmp_path / "new" / "file.csv"
    with written_whole(out) as beside:
        beside.write_text("all of it")
        assert not out.exists()
    assert [path.name for path in out.parent.iterdir()] == ["file.csv"]
    assert out.read_text() == "all of it"


def test_written_whole__a_failure_leaves_the_earlier_file(tmp_path: Path) -> None:
    out = tmp_path / "file.csv"
    out.write_text("earlier")
    with pytest.raises(OSError, match="disk is full"), written_whole(out) as beside:
        half_of_it(beside)
    assert [path.name for path in tmp_path.iterdir()] == ["file.csv"]
    assert out.read_text() == "earlier"


def half_of_it(path: Path) -> None:
    path.write_text("a half")
    raise OSError("disk is full")


def killed_in_the_middle(out: Path, maker: str = "written_whole") -> None:
    code = (
        f"import os, pathlib\nfrom auditor.ground.files import {maker}\n"
        f"with {maker}(pathlib.Path({str(out)!r})) as beside:\n    os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9


@pytest.mark.parametrize("maker", ["written_whole", "folder_written_whole"])
def test_written_whole__what_a_kill_leaves_is_gone_after_the_next_file(tmp_path: Path, maker: str) -> None:
    killed_in_the_middle(tmp_path / "out.csv", maker)
    assert len(list(tmp_path.iterdir())) == 1
    (tmp_path / ".mine.writing").write_text("a user's own")
    with written_whole(tmp_path / "other.csv") as beside:
        beside.write_text("new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mine.writing", "other.csv"]


def test_written_whole__leaves_what_another_one_is_writing(tmp_path: Path) -> None:
    with written_whole(tmp_path / "one.csv") as first, folder_written_whole(tmp_path / "two") as second:
        first.write_text("one")
        with written_whole(tmp_path / "three.csv") as third:
            third.write_text("three")
        assert first.exists()
        assert second.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.csv", "three.csv", "two"]


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"{", b"PK\x03\x04"])
def test_load__damage_is_one_line_with_the_file_and_the_remedy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    for load in (load_array, load_json, functools.partial(load_arrays, path, "x")):
        arguments = () if isinstance(load, functools.partial) else (path,)
        with pytest.raises(DamagedError, match=r"^\S+/file is damaged \(.+\); audit again\.$"):
            load(*arguments, remedy="audit again")


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


WHOLE = npy(np.zeros((24, 2)))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"x" * 500, "no .npy array"),
        (WHOLE[:40], "its header is damaged"),
        (WHOLE.replace(b"'<f8'", b"\xff<f8'"), "its header is damaged"),
        (WHOLE[:300], "it ends before its (24, 2) float64"),
        (WHOLE.replace(b"(24, 2), }", b"(24, 2**9)"), "its header is damaged"),
        (npy(np.array([{}], dtype=object)), "it holds Python objects"),
    ],
)
@pytest.mark.parametrize("mapped", [True, False])
def test_read_npy__says_in_our_words_what_is_wrong(
    tmp_path: Path, content: bytes, words: str, mapped: bool
) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        read_npy(path, mapped=mapped)


def test_read_npy__a_renamed_npz_is_no_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    with pytest.raises(ValueError, match=r"^no \.npy array$"):
        read_npy(tmp_path / "a.npy")


def test_load_array__a_half_is_damaged_and_a_missing_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros(1_000))
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(DamagedError, match=r"a\.npy is damaged"):
        load_array(path, remedy="audit again")
    with pytest.raises(DamagedError, match=r"b\.npy is missing; audit again"):
        load_array(tmp_path / "b.npy", remedy="audit again")
