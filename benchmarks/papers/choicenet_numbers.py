"""ChoiceNet for numbers: Table 1 on another set, Figure 4, and which wrong numbers are found.

    python -m benchmarks.papers.choicenet_numbers --scale cpu

- ``housing``: Table 1's protocol (RMSE of held-out rows while a share of the training targets is replaced by values
  drawn evenly from their range) on scikit-learn's diabetes set, 442 rows of ten columns: Boston housing was
  withdrawn. In units of the target's standard deviation.
- ``flipped``: Figure 4, a function of which a share of the rows follows its mirror image -f(x).
- ``detection``: a share of the diabetes targets is swapped with those of other rows. Out-of-fold predictions of
  ChoiceNet and of its plain witness, the mixture density network, rank the targets by the tail of the predicted
  mixture, by the residual, and by cleanlab's two scores of the same predictions.

Finished cells are kept in ``results/choicenet_numbers.json``, so that the command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes

from benchmarks.metrics import auroc
from benchmarks.papers.choicenet_regression import (
    RegressionNetwork,
    fit_regression,
    make_regression_data,
    mixture_tail,
    predict_targets,
)
from benchmarks.papers.choicenet_regression_config import REGRESSORS, RegressionConfig
from benchmarks.papers.scale import parse_scaled
from engines.shared.device import versions

RESULTS = Path(__file__).resolve().parents[1] / "results" / "choicenet_numbers.json"
RATES = (0.0, 0.1, 0.2, 0.3, 0.4)
FLIPPED = (0.1, 0.2, 0.3, 0.4)
FOLDS = 5
PAPER = {
    "choicenet": (3.29, 3.99, 4.77, 5.94, 6.80),
    "l2": (3.22, 5.97, 7.51, 9.04, 9.88),
    "l1": (3.26, 5.72, 7.16, 8.65, 9.69),
    "robust": (4.28, 6.36, 8.08, 10.54, 10.94),
    "leaky_robust": (3.36, 5.71, 7.08, 8.67, 9.68),
    "mdn": (3.46, 6.5, 8.62, 8.97, 10.44),
}
"""Table 1 on Boston housing: RMSE in thousands of dollars at the rates of ``RATES``."""
SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"steps": 30, "seeds": [0]},
    "cpu": {},
    "gpu": {"steps": 30_001, "seeds": [0, 1, 2, 3, 4]},
}


def main() -> None:
    """Run every missing cell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tables", nargs="+", default=["housing", "flipped", "detection"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parse_scaled(parser, SCALES)
    torch.set_num_threads(1)
    stored = json.loads(options.out.read_text()) if options.out.exists() else {"cells": {}}
    for seed in options.seeds:
        for table, rates in (("housing", RATES), ("flipped", FLIPPED), ("detection", RATES[1:])):
            for rate in rates if table in options.tables else ():
                for method in REGRESSORS if table != "detection" else ("choicenet", "mdn"):
                    key = f"{table} | {rate:g} | {method} | {options.steps} steps | seed {seed}"
                    if key in stored["cells"]:
                        continue
                    stored["cells"][key] = CELLS[table](rate, method, options.steps, seed, options.device)
                    stored["versions"] = versions()
                    options.out.write_text(json.dumps(stored, indent=1) + "\n")
                    print(key, stored["cells"][key], flush=True)


def regressor(method: str, steps: int) -> RegressionConfig:
    """Our settings of a method, with small batches for a small set."""
    components = 10 if method == "mdn" else 5
    return replace(
        RegressionConfig(), variant=method, num_steps=steps, num_components=components, batch_size=128
    )


def diabetes() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Inputs (442, 10) and targets (442, 1), both with mean 0 and deviation 1."""
    inputs, targets = load_diabetes(return_X_y=True)
    inputs = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
    targets = (targets - targets.mean()) / targets.std()
    return inputs.astype(np.float32), targets[:, None].astype(np.float32)


def housing_cell(rate: float, method: str, steps: int, seed: int, device: str) -> dict[str, float]:
    """Error of held-out rows (a fifth, with right targets) after training on targets of which some are outliers."""
    inputs, targets = diabetes()
    random = np.random.default_rng(seed)
    order = random.permutation(len(inputs))
    train, test = order[len(order) // FOLDS :], order[: len(order) // FOLDS]
    given = targets[train].copy()
    outliers = random.permutation(len(train))[: round(rate * len(train))]
    given[outliers] = random.uniform(targets.min(), targets.max(), (len(outliers), 1))
    network = fit_regression(inputs[train], given, regressor(method, steps), seed=seed, device=device)
    return {"rmse": _rmse(predict_targets(network, inputs[test]), targets[test])}


def flipped_cell(rate: float, method: str, steps: int, seed: int, device: str) -> dict[str, float]:
    """Error against the true function where a share of the targets follows its mirror image."""
    data = make_regression_data("cosexp", outlier_rate=0.0, seed=seed)
    flip = np.random.default_rng([seed, 4]).random(len(data.inputs)) < rate
    given = np.where(flip[:, None], -data.true_targets, data.true_targets).astype(np.float32)
    network = fit_regression(data.inputs, given, regressor(method, steps), seed=seed, device=device)
    return {"rmse": _rmse(predict_targets(network, data.inputs), data.true_targets)}


def detection_cell(rate: float, method: str, steps: int, seed: int, device: str) -> dict[str, float]:
    """AUROC for targets that were swapped with others at least half a deviation away."""
    from cleanlab.regression.rank import get_label_quality_scores

    inputs, targets = diabetes()
    random = np.random.default_rng(seed)
    given = targets.copy()
    rows = random.permutation(len(given))[: round(rate * len(given))]
    given[rows] = given[np.roll(rows, 1)]
    wrong = np.abs(given - targets)[:, 0] > 0.5
    tail, predicted = np.empty(len(given)), np.empty(len(given))
    fold_of = random.permutation(len(given)) % FOLDS
    for fold in range(FOLDS):
        held = fold_of == fold
        network: RegressionNetwork = fit_regression(
            inputs[~held], given[~held], regressor(method, steps), seed=seed, device=device
        )
        tail[held] = mixture_tail(network, inputs[held], given[held])
        predicted[held] = predict_targets(network, inputs[held])[:, 0]
    scores = {
        "tail of the mixture": tail,
        "residual": -np.abs(given[:, 0] - predicted),
        "cleanlab, outre": get_label_quality_scores(given[:, 0], predicted, method="outre"),
        "cleanlab, residual": get_label_quality_scores(given[:, 0], predicted, method="residual"),
    }
    return {name: round(float(auroc(wrong, -values)), 4) for name, values in scores.items()}


CELLS = {"housing": housing_cell, "flipped": flipped_cell, "detection": detection_cell}


def _rmse(found: NDArray[np.floating], wanted: NDArray[np.floating]) -> float:
    return round(float(np.sqrt(np.mean((found - wanted) ** 2))), 4)


if __name__ == "__main__":
    main()
