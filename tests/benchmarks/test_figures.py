"""One command measures every page again."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import figures
from benchmarks.figures import PARTS, RESULTS, Part


def test_parts__name_every_file_of_results_once() -> None:
    named = [name for part in PARTS.values() for name in part.files]
    lie_there = {path.name for path in RESULTS.iterdir()} - {"README.md", figures.COMMITS.name}
    assert len(named) == len(set(named))
    assert lie_there == set(named)


def test_parts__have_commands_that_there_are() -> None:
    modules = {command.split()[0] for part in PARTS.values() for command in part.commands}
    assert [name for name in modules if importlib.util.find_spec(name) is None] == []
    assert all(part.commands or part.why for part in PARTS.values())


def test_parts__of_the_engines_alone_import_nothing_of_the_auditor() -> None:
    todo = [
        command.split()[0]
        for part in PARTS.values()
        if part.measures == figures.ENGINES_ALONE
        for command in part.commands
    ]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        spec = importlib.util.find_spec(name) if name.startswith(("benchmarks", "engines")) else None
        if name in seen or spec is None or spec.origin is None:
            continue
        seen.add(name)
        for node in ast.walk(ast.parse(Path(spec.origin).read_text())):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom) and node.module in ("benchmarks", "benchmarks.papers"):
                named += [f"{node.module}.{one.name}" for one in node.names]
            if isinstance(node, ast.Import):
                named += [one.name for one in node.names]
            assert not [one for one in named if one.partition(".")[0] == "auditor"], name
            todo += named
    assert "engines.registry" in seen


@pytest.fixture
def part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A part named "it" whose command copies ``of.json``; returns where its figures go."""
    for name in ("RESULTS", "ROOT"):
        monkeypatch.setattr(figures, name, tmp_path)
    monkeypatch.setattr(figures, "COMMITS", tmp_path / "commits.json")
    monkeypatch.setattr(figures, "BEGUN", tmp_path / "begun.json")
    copied, out = tmp_path / "of.json", tmp_path / "it.json"
    monkeypatch.setitem(PARTS, "it", Part((out.name,), (f"json.tool {copied} {out}",)))
    return out


def test_measure__begins_anew_at_another_commit_and_is_done_once(part: Path) -> None:
    given = part.with_name("of.json")
    given.write_text('{"measured": 1}')
    part.write_text("of a commit before")
    figures.measure("it", "aaa")
    assert json.loads(part.read_text()) == {"measured": 1}
    assert json.loads(figures.COMMITS.read_text())["it"]["commit"] == "aaa"
    given.write_text('{"measured": 2}')
    figures.measure("it", "aaa")
    assert json.loads(part.read_text()) == {"measured": 1}
    figures.measure("it", "bbb")
    assert json.loads(part.read_text()) == {"measured": 2}


def test_measure__goes_on_with_what_was_stopped(part: Path) -> None:
    with pytest.raises(SystemExit, match=r"it: json\.tool .* failed; the same call goes on"):
        figures.measure("it", "aaa")
    assert not figures.COMMITS.exists()
    part.write_text("begun")  # what a command keeps of its finished rows
    part.with_name("of.json").write_text("wrong")
    with pytest.raises(SystemExit):
        figures.measure("it", "aaa")
    assert part.exists()


def test_with_table__takes_the_place_of_the_one_before() -> None:
    page = f"above\n{figures.BEGINNING}\nold\n{figures.END}\nbelow"
    found = figures.with_table(page, {"guess": {"commit": "abc", "day": "2026-01-02", "hours": 3}})
    assert "old" not in found
    assert "| guess | abc | 2026-01-02 |  | 3 h |" in found
    assert figures.with_table(found, {}).startswith("above\n")
    assert found.endswith(f"{figures.END}\nbelow")


@pytest.fixture
def committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Commits a text as the one module of a repository that the figures are of; returns the commit."""
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    code = tmp_path / "code" / "one.py"
    code.parent.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)

    def commit(text: str) -> str:
        code.write_text(text)
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run([*git, "add", "."], cwd=tmp_path, check=True)
        subprocess.run([*git, "commit", "-qm", "one"], cwd=tmp_path, check=True)
        return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=tmp_path, text=True).strip()

    return commit


def test_same_statements__words_make_no_figure_old(committed: Callable[[str], str]) -> None:
    first = committed(
        'def f(x: int) -> str:\n    """Say it."""\n    return g("cosine", f"{x} rows are wrong")\n'
    )
    words = committed(
        'def f(x: int) -> str:  # so\n    """Tell it."""\n    return g("cosine", f"{x} are bad")\n'
    )
    setting = committed('def f(x: int) -> str:\n    """Tell it."""\n    return g("linear", f"{x} are bad")\n')
    assert figures.same_statements(first, words, ("code",))
    assert not figures.same_statements(words, setting, ("code",))
    assert not figures.same_statements(first, words + "+", ("code",))
    assert not figures.same_statements("", words, ("code",))
    assert not figures.same_statements(first, words, ("not there",))


def test_today__words_begin_nothing_anew(
    committed: Callable[[str], str], part: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PARTS, "it", Part((part.name,), (), measures=("code",)))
    first = committed("x = 1  # one\n")
    words = committed("x = 1  # the first\n")
    monkeypatch.setattr(figures, "commit", lambda _: words)
    assert figures.today("it") == words
    figures.BEGUN.write_text(json.dumps({"it": first}))
    assert figures.today("it") == first
    statement = committed("x = 2\n")
    monkeypatch.setattr(figures, "commit", lambda _: statement)
    assert figures.today("it") == statement
    figures.COMMITS.write_text(json.dumps({"it": {"commit": statement}}))
    assert figures.today("it") == statement
