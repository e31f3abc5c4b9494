"""Numbers and names as people read them, and paths that the server may read."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.session import allowed, words
from auditor.ground.errors import ImportRefusedError


def test_plain__markup_loses_its_meaning() -> None:
    assert words.plain("<b>*x*</b>") == r"\<b\>\*x\*\</b\>"
    assert words.plain(":red[a]\n# b $x$") == r"\:red\[a\] \# b \$x\$"


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "unknown"), (9, "9 s"), (61, "1 min 01 s"), (7_500, "2 h 05 min")]
)
def test_duration__picks_the_unit(seconds: float | None, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(("number", "text"), [(1, "1 class"), (3, "3 classes"), (1200, "1,200 classes")])
def test_plural__of_class(number: int, text: str) -> None:
    assert words.plural(number, "class") == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.031, 0.064, "3.1 – 6.4 %"),
        (0.065, 0.158, "6.5 – 16 %"),
        (0.0, 0.688, "0 – 69 %"),
        (0.0001, 0.01, "less than 0.1 % – 1 %"),
    ],
)
def test_interval__both_ends_are_rounded_as_alone(low: float, high: float, text: str) -> None:
    assert words.interval(low, high) == text


def test_ago__counts_in_the_largest_unit() -> None:
    assert words.ago(datetime.now(tz=UTC) - timedelta(hours=3)) == "3 hours ago"


def test_checked__outside_the_roots_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    monkeypatch.setenv("AUDITOR_IMPORT_ROOTS", str(tmp_path / "in"))
    assert allowed.checked(str(tmp_path / "in")) == str(tmp_path / "in")
    for path in (tmp_path / "out", tmp_path / "in" / ".." / "out", tmp_path / "in" / "link"):
        with pytest.raises(
            ImportRefusedError, match="is outside the folders that this server may import from"
        ):
            allowed.checked(str(path))


def test_keep_upload__too_large_or_of_another_kind_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_MAX_UPLOAD_MB", "1")
    with pytest.raises(ImportRefusedError, match="more than the 1 MB allowed"):
        allowed.keep_upload("a.zip", io.BytesIO(b""), 2**21)
    with pytest.raises(ImportRefusedError, match="A .exe cannot be imported"):
        allowed.keep_upload("a.exe", io.BytesIO(b""), 1)
    assert not (home / "uploads").exists()


def test_keep_folder__files_keep_their_places_and_none_leads_elsewhere(home: Path) -> None:
    def kept(*names: str) -> tuple[Path, list[str]]:
        path = allowed.keep_folder([(name, io.BytesIO(b"x"), 1) for name in names])
        assert path.parent.parent == home / "uploads"
        found = sorted(str(one.relative_to(path)) for one in path.rglob("*") if one.is_file())
        allowed.forget_upload(str(path))
        assert not path.exists()
        return path, found

    path, found = kept("pets/cat/1.jpg", "../../dogs/2.jpg")
    assert (path.name, found) == ("dropped folders", ["dogs/2.jpg", "pets/cat/1.jpg"])
    path, found = kept("pets/cat/1.jpg", "pets\\dog\\1.jpg")
    assert (path.name, found) == ("pets", ["cat/1.jpg", "dog/1.jpg"])


def test_keep_upload__the_name_cannot_lead_elsewhere(home: Path) -> None:
    path = allowed.keep_upload("../../..\\x/ü b.csv", io.BytesIO(b"a,b"), 3)
    assert path.parent.parent == home / "uploads"
    assert (path.name, path.read_bytes()) == ("b.csv", b"a,b")
