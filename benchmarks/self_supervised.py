"""Does a network that first learns from the images alone find more wrong labels than one trained from scratch?

    python -m benchmarks.self_supervised

CIFAR-10 with the human labels of one annotator (``label_random1``, 17 % wrong). Both ways get the same CPU time on
one thread: from scratch all of it goes to plain cross-entropy on the images; else SimCLR gets it, less a tenth for
what then looks at its features (plain cross-entropy and neighbours). Finished cells are kept in
``results/self_supervised.json``; the command ends by writing ``results/self_supervised.md`` with its plot.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib import pyplot
from numpy.typing import NDArray

from benchmarks import images
from benchmarks.metrics import auroc, average_precision
from engines.backbones import learn_features
from engines.contract import TrainingData
from engines.registry import ENGINES
from engines.shared.device import versions

matplotlib.use("Agg")

RESULTS = Path(__file__).resolve().parent / "results" / "self_supervised.json"
SHARE = 0.9
"""Of the time that learning without labels takes; the rest is for the engines on its features."""
SCRATCH, LEARNED = "from scratch", "self-supervised"
NUM_CLASSES = 10
HEAD = """# A backbone of one's own images

Written by `python -m benchmarks.self_supervised`: CIFAR-10 with human labels of which 17 % are wrong, the same CPU
time of one thread for each way. AUROC and average precision of the trust in the given labels; `seconds` is what was
used.

"""


def main() -> None:
    """Run every missing cell, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--budgets", type=float, nargs="+", default=[1.0, 3.0], help="minutes of one thread")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--ways", nargs="+", default=[SCRATCH, LEARNED], choices=[SCRATCH, LEARNED])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    stored = json.loads(options.out.read_text()) if options.out.exists() else {"cells": {}}
    for seed in options.seeds:
        pixels, columns = images.load("cifar10-train", rows=options.rows, seed=seed)
        given, truth = (columns[name].to_numpy(np.int64) for name in ("label_random1", "label"))
        for minutes in options.budgets:
            for way, run in ((SCRATCH, from_scratch), (LEARNED, self_supervised)):
                key = f"{options.rows} | {minutes:g} min | {way} | seed {seed}"
                if key in stored["cells"] or way not in options.ways:
                    continue
                began = time.process_time()
                trusts, facts = run(pixels, given, 60 * minutes, seed)
                seconds = time.process_time() - began
                stored["cells"][key] = {
                    "seconds": seconds,
                    **facts,
                    "scores": {
                        name: {
                            "auroc": auroc(given != truth, -trust),
                            "ap": average_precision(given != truth, -trust),
                        }
                        for name, trust in trusts.items()
                    },
                }
                stored["versions"] = versions()
                options.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
                print(key, stored["cells"][key], flush=True)
    options.out.with_suffix(".md").write_text(page(stored["cells"]), encoding="utf-8")
    draw(gathered(stored["cells"]), options.out.with_suffix(".png"))


def from_scratch(
    pixels: NDArray[np.uint8], given: NDArray[np.int64], seconds: float, seed: int
) -> tuple[dict[str, NDArray[np.floating]], dict[str, Any]]:
    """Plain cross-entropy on the images, with as many epochs as fit; short runs tell how many."""
    data = TrainingData(pixels, given, NUM_CLASSES)
    engine = ENGINES["cross_entropy"]
    config = engine.config_type.preset("quick")

    def spent(epochs: int) -> float:
        began = time.process_time()
        engine.train(data, dataclasses.replace(config, epochs=epochs), seed=seed, device="cpu")
        return time.process_time() - began

    first, one, three = spent(1), spent(1), spent(3)  # the first one warms torch up
    epochs = max(1, round(1 + 2 * (seconds - one) / (three - one)))
    config = dataclasses.replace(config, epochs=epochs)
    result = engine.train(data, config, seed=seed, device="cpu")
    return {"cross-entropy": result.trust_score}, {
        "epochs": epochs,
        "of that to measure": first + one + three,
    }


def self_supervised(
    pixels: NDArray[np.uint8], given: NDArray[np.int64], seconds: float, seed: int
) -> tuple[dict[str, NDArray[np.floating]], dict[str, Any]]:
    """SimCLR on the images, then engines on its features."""
    epochs: list[float] = []
    features = learn_features(
        pixels,
        seconds=SHARE * seconds,
        seed=seed,
        device=torch.device("cpu"),
        clock=time.process_time,
        on_epoch=lambda _share, _epoch, loss: epochs.append(loss),
    )
    data = TrainingData(None, given, NUM_CLASSES, features=features)
    trusts = {}
    for name, title in (("cross_entropy", "cross-entropy"), ("neighbours", "neighbours")):
        config = ENGINES[name].config_type.preset("quick").for_features()
        trusts[title] = ENGINES[name].train(data, config, seed=seed, device="cpu").trust_score
    return trusts, {"epochs": len(epochs), "last loss": epochs[-1]}


def page(cells: Mapping[str, Mapping[str, Any]]) -> str:
    """The plot and one table; the means over the seeds."""
    found = gathered(cells)
    text = HEAD + "![AUROC by minutes of one thread](self_supervised.png)\n\n"
    text += "| images | budget | way | engine | AUROC | average precision | seconds | n |\n"
    text += f"| ---: | ---: | --- | --- |{' ---: |' * 4}\n"
    for (rows, minutes, way, name), values in sorted(found.items()):
        first, second, used = (mean(one[at] for one in values) for at in range(3))
        shown = f"{first:.3f} | {second:.3f} | {used:.0f} | {len(values)}"
        text += f"| {rows:,} | {minutes:g} min | {way} | {name} | {shown} |\n"
    return text + f"\n{verdict(found)}\n"


Found = dict[tuple[int, float, str, str], list[tuple[float, float, float]]]


def gathered(cells: Mapping[str, Mapping[str, Any]]) -> Found:
    """By images, minutes, way and engine: AUROC, average precision and seconds of each seed."""
    found: Found = {}
    for key, cell in cells.items():
        rows, minutes, way, _ = key.split(" | ")
        used = cell["seconds"] - cell.get("of that to measure", 0.0)
        for name, one in cell["scores"].items():
            at = (int(rows), float(minutes.removesuffix(" min")), way, name)
            found.setdefault(at, []).append((one["auroc"], one["ap"], used))
    return found


def best(found: Found, rows: int, minutes: float, way: str) -> tuple[float, str] | None:
    """The highest mean AUROC of a way, and its engine."""
    means = [
        (mean(one[0] for one in values), name)
        for (at, time_, of, name), values in found.items()
        if (at, time_, of) == (rows, minutes, way)
    ]
    return max(means, default=None)


def verdict(found: Found) -> str:
    """Whether it earns a place as a default: it must find more at every size and budget."""
    lines, is_ahead = [], []
    for rows, minutes in sorted({at[:2] for at in found}):
        learned, scratch = (best(found, rows, minutes, way) for way in (LEARNED, SCRATCH))
        if learned is None or scratch is None:
            continue
        is_ahead.append(learned[0] > scratch[0])
        lines.append(
            f"{rows:,} images, {minutes:g} min: {learned[0]:.3f} ({learned[1]}) against {scratch[0]:.3f}"
        )
    if all(is_ahead):
        says = "It finds more at every size and budget."
    else:
        says = f"It finds more at {sum(is_ahead)} of {len(is_ahead)} sizes and budgets, so it is no default."
    return f"Self-supervised against from scratch, AUROC: {'; '.join(lines)}. {says}"


def draw(found: Found, path: Path) -> None:
    """One panel a number of images: AUROC of each way's better engine against minutes."""
    sizes = sorted({rows for rows, *_ in found})
    figure, axes = pyplot.subplots(1, len(sizes), figsize=(3.2 * len(sizes), 3), sharey=True, squeeze=False)
    for panel, rows in zip(axes[0], sizes, strict=True):
        for way, mark in ((SCRATCH, "o-"), (LEARNED, "s--")):
            budgets = sorted({minutes for at, minutes, of, _ in found if (at, of) == (rows, way)})
            values = [best(found, rows, minutes, way) for minutes in budgets]
            panel.plot(budgets, [one[0] for one in values if one is not None], mark, label=way)
        panel.set(title=f"{rows:,} images", xlabel="minutes of one thread", xscale="log")
        panel.set_xticks(budgets, [f"{minutes:g}" for minutes in budgets])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    axes[0][0].set_ylabel("AUROC for wrong labels")
    axes[0][-1].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=100, metadata={"Software": None})
    pyplot.close(figure)


if __name__ == "__main__":
    main()
