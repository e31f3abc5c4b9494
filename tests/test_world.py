"""The second tier: what it names is there, and a change brings the tests that are for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.world import ROOT, WORLD, changed_since, is_world, touched


def test_world__names_tests_and_sources_that_are_there() -> None:
    for place, sources in WORLD.items():
        file, _, test = place.partition("::")
        assert (ROOT / file).exists(), place
        assert not test or f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), place
        assert [one for one in sources if not any(ROOT.glob(f"{one}*"))] == [], place


def test_touched__a_change_brings_its_tests_and_nothing_else() -> None:
    assert touched(["auditor/catalog/removal.py", "README.md"]) == [
        *(f"tests/{place}/test_postgres.py" for place in ("auditor/catalog", "auditor/cli")),
        *(f"tests/{place}/test_postgres.py" for place in ("auditor/fiftyone_bridge", "app/screens")),
        *("tests/faults/test_belonging.py", "tests/faults/test_removal_killed.py"),
    ]
    assert touched(["tests/browser/test_windows.py", "docs/masks.md"]) == ["tests/browser/test_windows.py"]


def test_is_world__files_and_whole_folders() -> None:
    assert is_world(ROOT / "tests" / "scale" / "test_cluster.py")
    assert not is_world(ROOT / "tests" / "browser" / "test_journey.py")
    settle = ROOT / "tests" / "auditor" / "results" / "test_settle.py"
    assert [
        is_world(settle, f"test_settle__{name}") for name in ("stopped_in_the_middle[a]", "stopped", "")
    ] == [
        *(True, False, False),
    ]
    assert not is_world(ROOT / "tests" / "scale_of_marks.py")


def _git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)


def test_changed_since__a_commit_the_last_ten_or_what_a_shallow_clone_has(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "whole"
    root.mkdir()
    _git(root, "init")
    for number in range(13):
        (root / f"{number}.py").write_text(str(number))
        _git(root, "add", "--all")
        _git(root, "commit", "--message", str(number))
    assert changed_since("HEAD~2", root) == ["11.py", "12.py"]
    last_ten = sorted(f"{number}.py" for number in range(3, 13))
    assert changed_since(root=root) == last_ten
    assert capfd.readouterr().err == ""
    assert changed_since("0" * 40, root) == last_ten
    assert "is not in this clone" in capfd.readouterr().err
    _git(tmp_path, "clone", "--depth=2", root.as_uri(), "shallow")
    assert changed_since("HEAD~2", tmp_path / "shallow") == ["12.py"]
    _git(root, "mv", "3.py", "moved.py")
    assert changed_since("HEAD", root) == ["3.py", "moved.py"]


@pytest.mark.parametrize(("until", "outcome"), [(1, "1 skipped"), (4e9, "1 passed")])
def test_until__no_test_begins_later(tmp_path: Path, until: float, outcome: str) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:schemathesis",
        "-p",
        "tests.world",
        f"--until={until}",
    ]
    done = subprocess.run([*command, tmp_path], cwd=ROOT, check=True, capture_output=True, text=True)
    assert outcome in done.stdout
