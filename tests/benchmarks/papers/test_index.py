"""The list of the papers' tables."""

from __future__ import annotations

import importlib
import json
import shlex
import shutil
from pathlib import Path

import pytest

from benchmarks.papers import index

COMMANDS = sorted({command for item in index.ITEMS for command in item.commands})


def test_items__every_row_says_what_it_needs_and_names_commands_where_it_was_run() -> None:
    for item in index.ITEMS:
        assert item.needs
        assert bool(item.commands) == bool(item.measured)


@pytest.mark.parametrize("command", COMMANDS)
def test_items__a_command_finds_nothing_left_to_do_in_the_kept_results(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *options = shlex.split(command)
    module = importlib.import_module(f"benchmarks.papers.{name}")
    kept: Path = module.RESULTS
    copy = tmp_path / kept.name
    shutil.copy(kept, copy)
    copy.with_suffix(".png").touch()  # a picture that is there is not drawn again
    # A run that is missing needs images: without any the command fails at once.
    monkeypatch.setenv("AUDITOR_SHARED_DATA", str(tmp_path))
    monkeypatch.setattr("sys.argv", [name, *options, "--out", str(copy)])

    module.main()

    assert json.loads(copy.read_text()) == json.loads(kept.read_text())
    page = kept.with_suffix(".md")
    if page.exists():
        assert copy.with_suffix(".md").read_text() == page.read_text()


def test_main__the_kept_list_is_what_the_results_say() -> None:
    kept = json.loads((index.RESULTS / "papers.json").read_text(encoding="utf-8"))
    page = (index.RESULTS / "papers.md").read_text(encoding="utf-8")

    assert [row["measured"] for row in kept] == [
        item.measured() if item.measured else f"needs {item.needs}" for item in index.ITEMS
    ]
    assert page == index.page(kept)
