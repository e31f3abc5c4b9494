"""Every command of the README runs as it is printed there, on real digits in a folder called photos."""

from __future__ import annotations

import csv
import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from auditor.__main__ import main
from auditor.cli.commands import cli
from benchmarks import detection_readme
from benchmarks.detection import RESULTS
from tests.helpers import write_digits

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SERVING = ("auditor app",)
"""Commands that serve until Ctrl-C; the browser tests start them."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def tour() -> list[str]:
    lines = [line.split("#")[0].strip() for block in blocks("bash") for line in block.splitlines()]
    return [line for line in lines if line.startswith("auditor ") and line not in SERVING]


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
        # UMAP compiles for half a minute in every new process, and digits of 8 px need no 32: neither is what the
        # tour is about.
        quicker = line.replace("--image-size 32", "--image-size 16")
        run(f"{quicker} --map pca" if line.startswith("auditor audit") else quicker, monkeypatch)
        if "--draw" in line:
            fill(tmp_path / "sample.csv", truth)
    for code in blocks("python"):
        exec(compile(code, "README.md", "exec"), {})  # the README's own lines, nobody else's
    with (tmp_path / "cleaned.csv").open(encoding="utf-8", newline="") as file:
        assert sum(1 for _ in csv.DictReader(file)) == 400
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("command", sorted(name for name, one in cli.commands.items() if not one.hidden))
def test_commands__are_documented(command: str) -> None:
    assert f"auditor {command}" in README


def test_links__lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    missing = [one for one in targets if not one.startswith("http") and not (ROOT / one).exists()]
    assert missing == []


def test_make_targets__exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make (\w+)", "\n".join(blocks("bash")), flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_export_columns__are_all_named() -> None:
    from auditor.vocabulary import EXPORT_COLUMNS

    assert np.all([column in README for column in EXPORT_COLUMNS])


def test_table_of_detection__is_that_of_the_results() -> None:
    assert detection_readme.table(json.loads(RESULTS.read_text(encoding="utf-8"))) in README
