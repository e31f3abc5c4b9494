"""Measure everything again: every page of ``results`` by its own commands, one part after another.

    python -m benchmarks.figures                  # ``make figures``: goes on where it was stopped (days)
    python -m benchmarks.figures --only guess     # some parts
    python -m benchmarks.figures --list           # what there is, and at which commit it was measured

A part begins with nothing where a statement of the code that it measures has changed since: its figures are taken
away (Git keeps them), then its commands make them again. One that was stopped goes on. Words make no figure old,
also those that a user reads. What was measured when, and on what, is kept in ``results/commits.json`` and stands
in its ``README.md``. Parts that need more than this machine has (a GPU, files that nobody may hand on) say so and
are left as they are.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.backbones import PRODUCT, WORK, commit
from benchmarks.import_speed import device

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
COMMITS = RESULTS / "commits.json"
BEGUN = ROOT / "build" / "figures.json"
"""By part: the commit that it was begun at."""
PAGE = RESULTS / "README.md"
ENGINES_ALONE = ("engines", ":(exclude)engines/segmentation", ":(exclude)engines/cross_entropy/masks.py")
STATISTICS = (*ENGINES_ALONE, "auditor/statistics")
TRUST = (*ENGINES_ALONE, "auditor/statistics/trust", "auditor/statistics/annotators")
SETS, NUMBERS = ((*ENGINES_ALONE, f"auditor/labels/{kind}") for kind in ("sets", "numbers"))
MASKS = (
    *("engines/segmentation", "engines/cross_entropy", "engines/shared"),
    *("auditor/labels/masks", "auditor/pictures/masks.py"),
)
NO_CLUSTER = ":(exclude)auditor/work/ray_executor.py"
"""What all parts but ``scale`` never run."""
ON_A_CLUSTER = (*STATISTICS, "auditor/audits", "auditor/backbones", "auditor/work")
AUDITS = (*ON_A_CLUSTER, NO_CLUSTER)
IMPORTS = ("auditor/importing", "auditor/pictures", "auditor/catalog")
SCREENS = ("app", "auditor/catalog", "auditor/pictures", "auditor/results", "auditor/review")
_MNIST = "mnist-sym20 mnist-sym50 mnist-pair45 mnist-asym40"
BEGINNING = "<!-- of python -m benchmarks.figures -->"
END = "<!-- end -->"


@dataclass(frozen=True)
class Part:
    """Figures that belong together."""

    files: tuple[str, ...]
    """What it makes, in ``results``; the first one is begun anew."""
    commands: tuple[str, ...]
    """After ``python -m``; none: ``why`` says what it takes."""
    why: str = ""
    is_begun_anew: bool = True
    """Whether its commands leave figures alone that are there."""
    kept: tuple[Path, ...] = ()
    """What it keeps elsewhere between its runs."""
    measures: tuple[str, ...] = (*PRODUCT, NO_CLUSTER)
    """Folders of the code that it measures: figures are of today as long as no statement changed there."""


def _paper(name: str, *files: str, measures: tuple[str, ...] = ENGINES_ALONE) -> Part:
    return Part(files or (f"{name}.json",), (f"benchmarks.papers.{name} --scale cpu",), measures=measures)


def _own(name: str, *options: str, measures: tuple[str, ...]) -> Part:
    """A module that writes its JSON, once for each of ``options``."""
    commands = tuple(f"benchmarks.{name} {one}".strip() for one in options or ("",))
    return Part((f"{name}.json",), commands, measures=measures)


def _page(name: str, measures: tuple[str, ...]) -> Part:
    """A module that writes its JSON and its page."""
    return Part((f"{name}.json", f"{name}.md"), (f"benchmarks.{name}",), measures=measures)


PARTS = {
    "backbones": Part(
        ("backbones.jsonl", "backbones.md"),
        ("benchmarks.backbones", "benchmarks.backbones_page"),
        kept=(WORK / "runs",),
        measures=TRUST,
    ),
    "finetuning": _own("finetuning", measures=TRUST),
    "ranking": Part(
        ("ranking.json", "ranking.md"), ("benchmarks.ranking",), is_begun_anew=False, measures=TRUST
    ),
    "constants": _page("constants", STATISTICS),
    "guess": Part(
        ("guess.json", "guess.md"),
        ("benchmarks.guess",),
        kept=(ROOT / "build" / "guess",),
        measures=TRUST,
    ),
    "promises": _page("promises", STATISTICS),
    "annotators": Part(
        ("annotators.json", "annotators.md"),
        (
            "pip install --quiet --upgrade --target build/peers --no-deps crowd-kit krippendorff nltk",
            "benchmarks.annotators --peers build/peers",
        ),
        measures=STATISTICS,
    ),
    "multilabel": _page("multilabel", SETS),
    "numbers": _page("numbers", NUMBERS),
    "masks": _paper("masks", "masks.json", "masks.md", measures=MASKS),
    "detection": Part(
        ("detection.json", "detection.md", "detection_auroc.png"),
        (
            f"benchmarks.detection --problems {_MNIST}",
            "benchmarks.detection --problems cifar10n-aggre cifar10-asym40 --seeds 0",
            "benchmarks.detection_report",
            "benchmarks.detection_plots",
        ),
        measures=ENGINES_ALONE,
    ),
    "cpu_networks": Part(
        ("cpu_networks.json",),
        (
            "benchmarks.cpu_networks",
            "benchmarks.cpu_networks --networks auto --precisions float32 bfloat16 --engines cross_entropy l2b",
        ),
        measures=ENGINES_ALONE,
    ),
    "umn_tables": Part(
        ("umn_tables.json", "umn_tables.md"),
        (
            "benchmarks.papers.umn_tables --scale cpu",
            "benchmarks.papers.umn_tables --methods umn --set 'label_loss=\"log\"' lambda_y=3",
        ),
        measures=ENGINES_ALONE,
    ),
    "s2e_spaces": Part(
        ("s2e_spaces.json", "s2e_spaces.md"),
        (
            "benchmarks.papers.s2e_spaces --scale cpu",
            "benchmarks.papers.s2e_spaces --scale cpu --problem cifar10 --noises 'pair 45 %' --rule-noises",
        ),
        measures=ENGINES_ALONE,
    ),
    "l2b_family": Part(
        ("l2b_family.json", "l2b_family.md"),
        (
            f"benchmarks.papers.l2b_family --problems {_MNIST}",
            "benchmarks.papers.l2b_family --problems cifar10-asym40 --seeds 0",
            "benchmarks.papers.l2b_family --problems cifar10-sym20 cifar10-sym40 --methods plain l2b --seeds 0",
        ),
        measures=ENGINES_ALONE,
    ),
    "choicenet_tables": _paper(
        "choicenet_tables", "choicenet_tables.json", "choicenet_tables.md", "choicenet_notes.md"
    ),
    **{name: _paper(name) for name in ("choicenet_numbers", "l2b_ablation")},
    "paper_curves": Part(
        ("paper_curves.json",), ("benchmarks.papers.curves --scale cpu",), measures=ENGINES_ALONE
    ),
    "meta_step": Part(
        ("meta_step.json",),
        ("benchmarks.meta_step", "benchmarks.meta_step --precision bfloat16"),
        measures=ENGINES_ALONE,
    ),
    "papers": Part(("papers.json", "papers.md"), ("benchmarks.papers.index",)),
    **{name: _own(name, measures=AUDITS) for name in ("estimates", "digits_demo")},
    "speed_goals": _own(
        "speed_goals",
        *["photos", "large_20000", "cifar", "umn", "budget", "budget_together"],
        measures=AUDITS,
    ),
    "pool_size": _own("pool_size", measures=TRUST),
    "import_speed": _own("import_speed", "--data ../shared/data", measures=IMPORTS),
    "fiftyone_push": Part(
        ("fiftyone_push.json",),
        ("benchmarks.fiftyone_push --samples 50000 --out benchmarks/results/fiftyone_push.json",),
        measures=("auditor/fiftyone_bridge", "auditor/catalog"),
    ),
    "scale": _own(
        "scale",
        *["workers", "tasks", "kills", "imports", "many --rows 400000", "settle --rows 1000000"],
        *["memory", "neighbours"],
        measures=(*ON_A_CLUSTER, *IMPORTS, "auditor/jobs"),
    ),
    **{name: _own(name, measures=SCREENS) for name in ("app_pages", "map_browser")},
    "app_million": _own(
        "app_million",
        *["", "--samples 10000000 --side 16 --features 16 --postgres"],
        measures=SCREENS,
    ),
    "review_keys": _page("review_keys", SCREENS),
    "truth": Part(("truth.json",), ("qa.truth --seeds 200",), kept=(ROOT / "build" / "truth.jsonl",)),
    "faults": Part(
        ("faults.json", "faults.md"),
        ("qa.faults.campaign --minutes 30 --seed 20261130",),
        kept=(ROOT / "build" / "faults.jsonl",),
    ),
    "mutation": Part(
        ("mutation.json", "mutation.md"),
        ("qa.mutation --sample 300", "qa.mutation --again"),
        measures=ENGINES_ALONE,
    ),
    "gpu": Part(("gpu.json", "gpu.md"), (), "a GPU: `benchmarks.gpu_epoch` and what its page names"),
    "noise_model": Part(
        ("noise_model.md",), (), "was written while the model was built, from trials by hand"
    ),
}


def main() -> None:
    """Measure what is of another commit, and say what is when from."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--list", action="store_true", help="measure nothing")
    arguments = parser.parse_args()
    if not arguments.list:
        for name in arguments.only:
            measure(name, today(name))
    PAGE.write_text(with_table(PAGE.read_text(), _read(COMMITS)))
    print(table(_read(COMMITS)))


def today(name: str) -> str:
    """Return the commit of a part's figures: where they were made or begun, unless a statement changed since."""
    measures = PARTS[name].measures
    now, made, begun = commit(measures), _read(COMMITS).get(name, {}), _read(BEGUN)
    known = (made.get("commit", ""), begun.get(name, ""))
    return next((one for one in known if same_statements(one, now, measures)), now)


def measure(name: str, now: str) -> None:
    """Make the figures of a part, unless they are of the commit ``now``.

    Raises:
        SystemExit: a command failed; the same call goes on there.
    """
    part, done = PARTS[name], _read(COMMITS)
    if not part.commands or done.get(name, {}).get("commit") == now:
        return
    begun = _read(BEGUN)
    if begun.get(name) != now:
        if part.is_begun_anew:
            (RESULTS / part.files[0]).unlink(missing_ok=True)
        for path in part.kept:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        _write(BEGUN, begun | {name: now})
    began = time.monotonic()
    for command in part.commands:
        print(f"{name}: python -m {command}", flush=True)
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": str(ROOT)}
        run = subprocess.run([sys.executable, "-m", *shlex.split(command)], cwd=ROOT, env=environment)
        if run.returncode:
            raise SystemExit(f"{name}: {command} failed; the same call goes on with it.")
    row = {
        "commit": now,
        "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "device": device()["cpu"],
        "hours": round((time.monotonic() - began) / 3600, 2),
    }
    _write(COMMITS, _read(COMMITS) | {name: row})


class _Wordless(ast.NodeTransformer):
    """Takes what somebody reads out of a module: comments are not there, sentences become empty."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if isinstance(node.value, str) and " " in node.value else node

    def visit_JoinedStr(self, _: ast.JoinedStr) -> ast.AST:
        return ast.Constant("")


def same_statements(before: str, now: str, measures: tuple[str, ...]) -> bool:
    """Whether the Python files of two commits are the same but for words (``now`` may end with a plus: never)."""
    if before == now or not before or now.endswith("+"):
        return before == now
    code = _code(before, measures)
    return code is not None and code == _code(now, measures)


def _code(at: str, measures: tuple[str, ...]) -> dict[str, str] | None:
    """The statements of each file at a commit; None where a folder was not there yet."""
    packed = subprocess.run(["git", "archive", at, "--", *measures], cwd=ROOT, capture_output=True)
    if packed.returncode:
        return None
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
        return {
            one.name: ast.dump(_Wordless().visit(ast.parse(file.read())))
            for one in files
            if one.name.endswith(".py") and (file := files.extractfile(one))
        }


def table(done: dict[str, Any]) -> str:
    """Return the rows of every part as Markdown."""
    lines = ["| part | commit | day | device | what it takes |", "| --- | --- | --- | --- | --- |"]
    for name, part in PARTS.items():
        row = done.get(name, {})
        told = [row.get(key, "") for key in ("commit", "day", "device")]
        takes = part.why or (f"{row['hours']:g} h" if "hours" in row else "")
        lines.append(" | ".join(["| " + name, *told, takes]) + " |")
    return "\n".join(lines)


def with_table(page: str, done: dict[str, Any]) -> str:
    """Return the page with the table of today between its marks."""
    before, _, rest = page.partition(BEGINNING)
    _, _, after = rest.partition(END)
    return f"{before}{BEGINNING}\n{table(done)}\n{END}{after}"


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _write(path: Path, values: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
