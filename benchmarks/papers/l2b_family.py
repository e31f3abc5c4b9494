"""L2B's Tables 2, 3 and 7 in small: DivideMix, UniCon and C2D, each with and without L2B's step.

    python -m benchmarks.papers.l2b_family --scale cpu

Every method on the same images, network, epochs and augmentation as in ``benchmarks.detection``, beside plain
cross-entropy, the same three times as long, Co-teaching and plain L2B. No method sees the truth or a noise rate.
Finished cells are kept in ``results/l2b_family.json`` (those of ``results/detection.json`` count too), so that the
command goes on where it was stopped; ``results/l2b_family.md`` is their page.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from benchmarks import detection
from benchmarks.papers.scale import parse_scaled

RESULTS = Path(__file__).resolve().parents[1] / "results" / "l2b_family.json"
METHODS = {
    "plain": "plain cross-entropy",
    "plain_x3": "plain, three times the epochs",
    "coteaching": "Co-teaching",
    "l2b": "L2B",
    "divide_mix": "DivideMix",
    "l2b_divide_mix": "L2B-DivideMix",
    "unicon": "UniCon",
    "l2b_unicon": "L2B-UniCon",
    "c2d": "C2D",
    "l2b_c2d": "L2B-C2D",
}
RANKED = {"plain": "cross_entropy", "coteaching": "coteaching", "l2b": "l2b"}
"""What ranks the labels in a cell of a method, where it is not called as in ``METHODS``."""
MNIST = ["mnist-sym20", "mnist-sym50", "mnist-pair45", "mnist-asym40"]
CIFAR = ["cifar10-asym40"]
SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"rows": 200, "epochs": 2, "seeds": [0], "problems": ["mnist-pair45"]},
    "cpu": {},
    "gpu": {
        "rows": 50_000,
        "epochs": 300,
        "problems": ["cifar10-sym20", "cifar10-sym40", "cifar10-asym40"],
        "network": "preact_resnet18",
    },
}
HEAD = """# L2B on DivideMix, UniCon and C2D

Written by `python -m benchmarks.papers.l2b_family`. Each method ranks the labels of the same images; AUROC and
average precision for the planted (or human) wrong labels, accuracy of its predictions against the truth on the same
images, means over the seeds. `n` is their number. One CPU thread on a shared machine: seconds tell the order of
size only.
"""


def main() -> None:
    """Run every missing cell, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--problems", nargs="+", default=[*MNIST, *CIFAR], choices=[one.name for one in detection.PROBLEMS]
    )
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--network", help="instead of the small ones")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no cell after this long")
    parser.add_argument("--work", type=Path, default=detection.WORK)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parse_scaled(parser, SCALES)
    torch.set_num_threads(1)
    began = time.monotonic()
    done = set(cells(options.out))
    for seed in options.seeds:
        for problem in (one for one in detection.PROBLEMS if one.name in options.problems):
            network = options.network or detection.small_network(problem, options.device)
            task = None
            for method in options.methods:
                begins = detection.setting(problem.name, options.rows, options.epochs, network)
                key = f"{begins}|{seed}|{method}"
                if key in done or time.monotonic() - began > 60 * options.minutes:
                    continue
                task = task or detection.make_task(
                    problem, options.rows, seed, options.epochs, network, options.device
                )
                detection.run_cell(key, problem, task, method, options)
    options.out.with_suffix(".md").write_text(page(cells(options.out)), encoding="utf-8")


def cells(path: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """The finished cells of this module, and those of the detection benchmark under the same key."""
    both = detection.load_results(detection.RESULTS)["cells"] | detection.load_results(path)["cells"]
    return {key: cell for key, cell in both.items() if cell["method"] in METHODS}


def means(found: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Setting -> method -> mean figures over the seeds, of the settings that a base was run under."""
    grouped: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for key, cell in found.items():
        grouped.setdefault(key.rsplit("|", 2)[0], {}).setdefault(cell["method"], []).append(cell)
    return {
        setting: {method: _mean(of_seeds) for method, of_seeds in methods.items()}
        for setting, methods in grouped.items()
        if "divide_mix" in methods
    }


def _mean(of_seeds: list[Mapping[str, Any]]) -> dict[str, float]:
    scores = [cell["scores"][RANKED.get(cell["method"], METHODS[cell["method"]])] for cell in of_seeds]
    return {
        "auroc": mean(one["auroc"] for one in scores),
        "ap": mean(one["ap"] for one in scores),
        "accuracy": mean(cell["prediction_accuracy"] for cell in of_seeds),
        "seconds": mean(cell["seconds"] for cell in of_seeds),
        "n": len(of_seeds),
    }


def page(found: Mapping[str, Mapping[str, Any]]) -> str:
    """One table a setting; the best of a column in bold."""
    text = HEAD
    for setting, methods in sorted(means(found).items()):
        problem, rows, epochs, *_ = setting.split("|")
        text += f"\n## {problem}, {int(rows):,} images, {epochs} epochs\n\n"
        text += "| method | AUROC | average precision | accuracy | seconds | n |\n"
        text += f"| --- |{' ---: |' * 5}\n"
        best = {name: max(one[name] for one in methods.values()) for name in ("auroc", "ap", "accuracy")}
        for method, title in METHODS.items():
            if method in methods:
                one = methods[method]
                shown = [
                    f"**{one[name]:.3f}**" if one[name] == top else f"{one[name]:.3f}"
                    for name, top in best.items()
                ]
                text += f"| {title} | {' | '.join(shown)} | {one['seconds']:.0f} | {one['n']:.0f} |\n"
    return text


if __name__ == "__main__":
    main()
