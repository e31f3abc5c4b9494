"""Which wrong numbers are found: the engines on numbers beside cleanlab's scores of the same predictions.

    python -m benchmarks.numbers

Real data of scikit-learn with a share of the numbers made wrong: the diabetes set (ten columns), handwritten digits
as 64 pixels (features) with their mean ink, and with the digit itself as the number; and pictures made of these
digits with a quantity that is known: the angle of one, the count in a mosaic. Numbers are wrong
where they moved by more than half a deviation. Finished cells are kept in ``results/numbers.json``, so that
the command goes on where it was stopped; it ends by writing ``results/numbers.md``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import rotate, zoom
from sklearn.datasets import load_diabetes, load_digits

from auditor.labels.numbers.judging import judge
from benchmarks.metrics import auroc, average_precision
from engines.contract import NumberData, NumberResult
from engines.registry import ENGINES
from engines.shared.device import versions

RESULTS = Path(__file__).resolve().parent / "results" / "numbers.json"
RATE = 0.2
KINDS = ("flipped", "outlier", "swapped")
NUM_IMAGES = 600
TITLES = {
    "diabetes": "diabetes, 442 rows of 10 columns",
    "ink": "mean ink of 1,797 digits, 64 columns",
    "digit": "the digit as a number, 1,797 rows of 64 columns",
    "angle": "angle of 600 turned digits, images of 16 px",
    "count": "digits in each of 600 mosaics, images of 32 px",
}
METHODS = {
    "audit": "the audit: residual to the weighed prediction",
    "together": "residual to the mean of both predictions",
    "cross_entropy, residual": "MDN: residual",
    "cross_entropy, residual / deviation": "MDN: residual over deviation",
    "cross_entropy, tail": "MDN: tail of the mixture",
    "choicenet, residual": "ChoiceNet: residual",
    "choicenet, residual / deviation": "ChoiceNet: residual over deviation",
    "choicenet, tail": "ChoiceNet: tail of the mixture",
    "choicenet, rho": "ChoiceNet: ρ",
    "cleanlab, residual": "cleanlab `residual`, mean prediction",
    "cleanlab, outre": "cleanlab `outre`, mean prediction",
}


class Set(NamedTuple):
    """Inputs of one form and what their numbers are."""

    images: NDArray[np.uint8] | None
    features: NDArray[np.float32] | None
    numbers: NDArray[np.float64]


def main() -> None:
    """Run every missing cell, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--sets", nargs="+", default=list(TITLES))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    stored = json.loads(options.out.read_text()) if options.out.exists() else {"cells": {}}
    for seed in options.seeds:
        for name in options.sets:
            for kind in KINDS:
                key = f"{name} | {kind} | seed {seed}"
                if key in stored["cells"]:
                    continue
                stored["cells"][key] = cell(name, kind, seed)
                stored["versions"] = versions()
                options.out.write_text(json.dumps(stored, indent=1) + "\n")
                print(key, stored["cells"][key], flush=True)
    options.out.with_suffix(".md").write_text(page(stored), encoding="utf-8")


@cache
def diabetes() -> Set:
    """The diabetes set of scikit-learn: progression of the disease in a year."""
    inputs, targets = load_diabetes(return_X_y=True)
    return Set(None, inputs.astype(np.float32)[:, None, :], targets.astype(np.float64))


@cache
def ink() -> Set:
    """Mean ink of handwritten digits."""
    digits = load_digits()
    return Set(None, digits.data.astype(np.float32)[:, None, :], digits.data.mean(axis=1))


@cache
def digit() -> Set:
    """The digit itself, which lies in no order with its shape."""
    digits = load_digits()
    return Set(None, digits.data.astype(np.float32)[:, None, :], digits.target.astype(np.float64))


@cache
def angle() -> Set:
    """Digits turned by -60 to 60 degrees; sixes and nines are left out."""
    digits, random = load_digits(), np.random.default_rng(0)
    chosen = random.permutation(np.flatnonzero(~np.isin(digits.target, (6, 9))))[:NUM_IMAGES]
    turned = random.uniform(-60, 60, len(chosen))
    images = [
        rotate(zoom(np.pad(digits.images[row], 2), 4 / 3, order=1), by, reshape=False, order=1)
        for row, by in zip(chosen, turned, strict=True)
    ]
    return Set(_as_images(images), None, turned)


@cache
def count() -> Set:
    """Mosaics of 4 x 4 places of 8 px, each empty or a digit."""
    digits, random = load_digits(), np.random.default_rng(0)
    numbers = random.integers(0, 17, NUM_IMAGES)
    images = np.zeros((NUM_IMAGES, 32, 32))
    for image, number in zip(images, numbers, strict=True):
        for place in random.permutation(16)[:number]:
            top, left = 8 * (place // 4), 8 * (place % 4)
            image[top : top + 8, left : left + 8] = digits.images[random.integers(len(digits.images))]
    return Set(_as_images(list(images)), None, numbers.astype(np.float64))


def _as_images(images: list[NDArray[np.floating]]) -> NDArray[np.uint8]:
    return np.clip(np.stack(images)[:, None] * 15.9, 0, 255).astype(np.uint8)


SETS: dict[str, Callable[[], Set]] = {
    "diabetes": diabetes,
    "ink": ink,
    "digit": digit,
    "angle": angle,
    "count": count,
}


def plant(
    numbers: NDArray[np.float64], kind: str, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Numbers of which ``RATE`` were changed, and which of them moved by more than half a deviation.

    ``flipped``: mirrored at the median, as ChoiceNet's Figure 4 mirrors a function; ``outlier``: drawn evenly from
    their range; ``swapped``: each has the number of another.
    """
    random, given = np.random.default_rng(seed), numbers.copy()
    rows = random.permutation(len(given))[: round(RATE * len(given))]
    if kind == "flipped":
        given[rows] = 2 * np.median(numbers) - numbers[rows]
    elif kind == "outlier":
        given[rows] = random.uniform(numbers.min(), numbers.max(), len(rows))
    else:
        given[rows] = numbers[np.roll(rows, 1)]
    return given, np.abs(given - numbers) > 0.5 * numbers.std()


def cell(name: str, kind: str, seed: int) -> dict[str, Any]:
    """AUROC and average precision of every score, and the seconds that each engine trained."""
    from cleanlab.regression.rank import get_label_quality_scores

    chosen = SETS[name]()
    given, wrong = plant(chosen.numbers, kind, seed)
    trust, seconds, predicted = {}, {}, []
    for engine in ("cross_entropy", "choicenet"):
        spec = ENGINES[engine]
        config = spec.config_type_on("numbers").preset("quick")
        config = config if chosen.features is None else config.for_features()
        data = NumberData(chosen.images, given, features=chosen.features)
        found: NumberResult = spec.train_numbers(data, config, seed=seed, device="cpu")
        residual = np.abs(given - found.predicted)
        trust[f"{engine}, residual"] = -residual
        trust[f"{engine}, residual / deviation"] = -residual / found.deviation
        trust |= {f"{engine}, {signal}": values for signal, values in found.signals.items()}
        seconds[engine] = round(found.provenance.seconds, 1)
        predicted.append(found.predicted)
    together = np.mean(predicted, axis=0)
    trust |= {"audit": judge(given, predicted).trust, "together": -np.abs(given - together)}
    for method in ("residual", "outre"):
        trust[f"cleanlab, {method}"] = get_label_quality_scores(given, together, method=method)
    scores = {
        key: [round(float(measure(wrong, -values)), 4) for measure in (auroc, average_precision)]
        for key, values in trust.items()
    }
    return {"wrong": round(float(wrong.mean()), 4), "scores": scores, "seconds": seconds}


def whole_seeds(cells: dict[str, Any]) -> dict[str, Any]:
    """The cells of those sets and seeds of which every kind of errors was run."""

    def is_whole(key: str) -> bool:
        name, _, seed = key.split(" | ")
        return all(f"{name} | {kind} | {seed}" in cells for kind in KINDS)

    return {key: one for key, one in cells.items() if is_whole(key)}


def page(stored: dict[str, Any]) -> str:
    """The tables as Markdown: the mean over seeds and kinds of errors."""
    cells = whole_seeds(stored["cells"])
    num_seeds = {name: sum(key.startswith(f"{name} | {KINDS[0]} ") for key in cells) for name in TITLES}
    lines = [
        "# Wrong numbers",
        "",
        f"Which wrong numbers are found when {RATE:.0%} are changed (`python -m benchmarks.numbers`, preset "
        "`quick`, one CPU core, seeds from 0 on): AUROC / average precision, the mean over seeds and "
        "three kinds of errors (mirrored at the median, drawn evenly from the range, swapped with another). All "
        "predictions are out of fold. cleanlab's two scores are of the mean of both predictions.",
        "",
    ]
    names = [name for name in TITLES if any(key.startswith(f"{name} |") for key in cells)]
    lines += [f"| score | {' | '.join(names)} | mean |", f"| --- |{' ---: |' * (len(names) + 1)}"]
    for method, title in METHODS.items():
        if not all(method in one["scores"] for one in cells.values()):
            continue  # a score that was added since some cells ran
        found = [
            [one["scores"][method] for key, one in cells.items() if key.startswith(f"{name} |")]
            for name in names
        ]
        pairs = [(mean(one[0] for one in part), mean(one[1] for one in part)) for part in found]
        pairs.append((mean(one[0] for one in pairs), mean(one[1] for one in pairs)))
        lines.append(f"| {title} | " + " | ".join(f"{a:.3f} / {b:.3f}" for a, b in pairs) + " |")
    said = (f"- `{name}`: {TITLES[name]}; seeds: {num_seeds[name]}." for name in names)
    lines += ["", *said, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
