"""Every command of the README runs as it is printed there, on real digits in a folder called photos."""

from __future__ import annotations

import csv
import re
import shlex
import sys
from pathlib import Path

import click
import pytest

from auditor.__main__ import main
from auditor.cli.commands import cli
from tests.helpers import write_digits

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SERVING = ("auditor app",)
"""Commands that serve until Ctrl-C; the browser tests start them."""


QUICKER = "--map pca --engines cross_entropy,coteaching"
QUICK_IN_DOCS = ("status", "suspects", "export")
"""Commands of the docs that run after the tour; the others train, download or serve, and are parsed only."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def tour() -> list[str]:
    lines = [line.split("#")[0].strip() for block in blocks("bash") for line in block.splitlines()]
    return [line for line in lines if line.startswith("auditor ") and line not in SERVING]


def docs_commands() -> list[str]:
    """Every command line of the pages, in their order."""
    pages = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))]
    found = [block for page in pages for block in re.findall(r"```bash\n(.*?)```", page, flags=re.DOTALL)]
    lines = [line.split("#")[0].strip() for block in found for line in block.splitlines()]
    return [line for line in lines if line.startswith("auditor ")]


def run(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    with pytest.raises(SystemExit) as ended:  # noqa: PT012 - main() ends by itself only after a mistake
        main()
        sys.exit(0)
    assert not ended.value.code, line


def write_photos(folder: Path) -> dict[str, int]:
    """``folder/CLASS/NAME.png`` with some wrong labels; returns the true class by file name."""
    digits = write_digits(folder.parent / "source", num=400, num_wrong=60)
    truth = {}
    for i, label in enumerate(digits.given_labels):
        (folder / str(label)).mkdir(parents=True, exist_ok=True)
        (folder.parent / "source" / "images" / f"{i:04d}.png").rename(folder / str(label) / f"{i:04d}.png")
        truth[f"{i:04d}.png"] = int(digits.true_labels[i])
    return truth


def fill(path: Path, truth: dict[str, int]) -> None:
    """Judge the drawn sample as a person would, from what the image shows."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["verdict_label"] = str(truth[Path(row["filepath"]).name])
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_tour__runs_as_printed(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("USER", "ada")
    truth = write_photos(tmp_path / "photos")
    lines = tour()
    assert len(lines) >= 8
    for line in lines:
        # UMAP compiles for half a minute in every new process, and seven engines take as long: neither is what the
        # tour is about.
        run(f"{line} {QUICKER}" if line.startswith("auditor audit") else line, monkeypatch)
        if "--draw" in line:
            fill(tmp_path / "sample.csv", truth)
    for line in docs_commands():
        if shlex.split(line)[1] in QUICK_IN_DOCS:
            run(line, monkeypatch)
    for code in blocks("python"):
        exec(compile(code, "README.md", "exec"), {})  # the README's own lines, nobody else's
    with (tmp_path / "cleaned.csv").open(encoding="utf-8", newline="") as file:
        assert sum(1 for _ in csv.DictReader(file)) == 400
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("line", docs_commands())
def test_docs_command__is_understood(line: str) -> None:
    from auditor.bridges import engine_bridge

    group, names = cli, shlex.split(line)[1:]
    command, name = cli, ""
    while isinstance(command, click.Group):
        group, name, names = command, names[0], names[1:]
        command = group.commands[name]
    found = command.make_context(name, names).params
    if command is cli.commands["audit"]:
        engine_bridge.options_of(found["settings"])


def test_make_targets__exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", "\n".join(blocks("bash")), flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_docs__the_engines_take_arrays_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    (code,) = [
        code for code in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL) if "TrainingData" in code
    ]
    exec(compile(code, "python.md", "exec"), {})
    assert capsys.readouterr().out == "(200,)\n"
