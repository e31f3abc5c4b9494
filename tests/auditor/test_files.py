"""A file that is being written is whole or absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.files import written_whole


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
