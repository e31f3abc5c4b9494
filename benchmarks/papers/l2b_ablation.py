"""L2B's variants and meta sets side by side: which part of the method finds wrong labels?

    python -m benchmarks.papers.l2b_ablation --scale cpu

MNIST with planted errors (pair flips at 45 %, symmetric at 50 %), 200 trusted samples where a run has any.
AUROC of trust and of the signals for the wrong labels among the untrusted samples, and held-out accuracy. Finished
runs are kept in ``results/l2b_ablation.json``, so that the command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.images import load
from benchmarks.metrics import auroc
from benchmarks.noise import make_noise
from benchmarks.papers.scale import parse_scaled
from engines.contract import EvaluationSet, TrainingData
from engines.l2b.training import L2BConfig, train_one
from engines.l2b.weighing import Weighing
from engines.l2b.weights import Weights, fixed_weights, meta_weights, normalize
from engines.shared.run import Run

RESULTS = Path(__file__).resolve().parents[1] / "results" / "l2b_ablation.json"
NOISES = (("pair", 0.45), ("sym_excl", 0.5))
TRUSTED_PER_CLASS = 20
SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"rows": 300},
    "cpu": {},
    "gpu": {"rows": 60_000, "seeds": [0, 1, 2]},
}
SIGNALS = ("alpha", "share", "alpha_signed", "visit_trust", "alpha_residual")

RUNS: dict[str, dict[str, Any]] = {
    "cross-entropy": {},
    "l2rw": {},
    "alpha0": {},
    "alpha+beta=1": {},
    "l2b": {},
    "l2b, trusted not trained on": {"train_on_trusted": False},
    "l2b, no trusted": {},
    "l2b, meta batch 16": {"meta_batch_size": 16},
}


def given_alone(alpha: Tensor, beta: Tensor, labeled: Tensor) -> Weights:
    """beta = 0 (L2RW, Ren et al. 2018): the given labels are weighed among themselves."""
    return Weights(normalize(alpha, labeled), torch.zeros_like(beta))


def pseudo_alone(alpha: Tensor, beta: Tensor, labeled: Tensor) -> Weights:
    """alpha = 0: the pseudo-labels are weighed among themselves."""
    return Weights(torch.zeros_like(alpha), normalize(beta, torch.ones_like(labeled)))


def convex(alpha: Tensor, beta: Tensor, labeled: Tensor) -> Weights:
    """alpha + beta = 1 for each sample, and 1/B for all; where both are 0 the given label is taken [assumption]."""
    first, second = alpha.clamp(min=0) * labeled, beta.clamp(min=0)
    total = first + second
    safe = torch.where(total > 0, total, torch.ones_like(total))
    share = torch.where(total > 0, first / safe, labeled.to(alpha))
    return Weights(share / len(alpha), second / safe / len(alpha))


def plain(alpha: Tensor, beta: Tensor, labeled: Tensor) -> Weights:
    """Plain cross-entropy."""
    del alpha, beta
    return fixed_weights(labeled)


WEIGHTS: dict[str, Weighing] = {
    "cross-entropy": plain,
    "l2rw": given_alone,
    "alpha0": pseudo_alone,
    "alpha+beta=1": convex,
}
"""Weights of a run where they are not those of eq. (8)."""


def measure(
    images: np.ndarray, true: np.ndarray, heldout: EvaluationSet, noise: tuple[str, float], name: str,
    *, config: L2BConfig, seed: int, device: str,
) -> dict[str, Any]:  # fmt: skip
    """One run, scored against the truth."""
    kind, rate = noise
    given = make_noise(kind, true, rate, seed, num_classes=10).labels
    trusted = np.zeros(len(true), dtype=bool)
    if name != "l2b, no trusted":
        for label in range(10):
            trusted[np.flatnonzero(true == label)[:TRUSTED_PER_CLASS]] = True
    given = np.where(trusted, true, given)
    data = TrainingData(images, given, 10, trusted=trusted, evaluation=heldout)
    config = replace(config, **RUNS[name])
    run = Run("l2b", data, config, seed=seed, device=device)
    result = train_one(run, config, weights=WEIGHTS.get(name, meta_weights))
    rest = ~trusted
    wrong = (given != true)[rest]
    found = {
        signal: auroc(wrong, -result.signals[signal][rest])
        for signal in SIGNALS
        if np.isfinite(result.signals[signal][rest]).all()
    }
    return {
        "noise": kind, "rate": rate, "run": name, "seed": seed,
        "trust_auroc": auroc(wrong, -result.trust_score[rest]), "signal_auroc": found,
        "heldout_accuracy": result.history[-1].metrics["heldout_accuracy"],
        "seconds": result.provenance.seconds, "meta_size": result.provenance.notes.get("meta_size"),
    }  # fmt: skip


def main() -> None:
    """Run what is missing and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--network", default="mlp")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--runs", nargs="+", choices=list(RUNS), default=list(RUNS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parse_scaled(parser, SCALES)
    torch.set_num_threads(1)
    out: Path = arguments.out
    budget = {"rows": arguments.rows, "network": arguments.network}
    report: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {**budget, "runs": []}
    if any(report[name] != value for name, value in budget.items()):
        parser.error(f"{out} holds another budget; give --out or the same budget.")
    done = {(run["noise"], run["run"], run["seed"]) for run in report["runs"]}
    missing = [
        (noise, name, seed)
        for noise in NOISES
        for name in arguments.runs
        for seed in arguments.seeds
        if (noise[0], name, seed) not in done
    ]
    if not missing:
        return
    images, table = load("mnist-train", rows=arguments.rows)
    test_images, test_table = load("mnist-test", rows=2000)
    heldout = EvaluationSet(test_images, test_table["label"].to_numpy())
    config = replace(L2BConfig.preset("quick"), network=arguments.network, precision="float32")
    true = table["label"].to_numpy()
    for noise, name, seed in missing:
        found = measure(images, true, heldout, noise, name, config=config, seed=seed, device=arguments.device)
        report["runs"].append(found)
        out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
