"""L2B's variants, meta sets and derivatives side by side: which part of the method finds wrong labels?

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

from benchmarks.images import load
from benchmarks.metrics import auroc
from benchmarks.noise import make_noise
from benchmarks.papers.scale import parse_scaled
from engines.contract import EvaluationSet, TrainingData
from engines.l2b.training import L2BConfig, train

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
    "cross-entropy": {"variant": "cross_entropy"},
    "bootstrap": {"variant": "bootstrap"},
    "l2rw": {"variant": "l2rw"},
    "alpha0": {"variant": "alpha0"},
    "alpha+beta=1": {"variant": "alpha_plus_beta_1"},
    "l2b": {},
    "l2b, trusted not trained on": {"train_on_trusted": False},
    "l2b, no trusted": {"meta_source": "mixture"},
    "l2b, meta batch 16": {"meta_batch_size": 16},
    "l2b, finite difference": {"derivative": "finite_difference"},
    "l2b, last layer": {"derivative": "last_layer"},
    "l2b, sigmoid": {"normalization": "sigmoid"},
    "l2b, softmax T=10": {"normalization": "softmax"},
    "l2b, mixup": {"mixup": 32.0},
}


def measure(
    images: np.ndarray, true: np.ndarray, heldout: EvaluationSet, noise: tuple[str, float], name: str,
    *, config: L2BConfig, seed: int, device: str,
) -> dict[str, Any]:  # fmt: skip
    """One run, scored against the truth."""
    kind, rate = noise
    given = make_noise(kind, true, rate, seed, num_classes=10).labels
    trusted = np.zeros(len(true), dtype=bool)
    if RUNS[name].get("meta_source") != "mixture":
        for label in range(10):
            trusted[np.flatnonzero(true == label)[:TRUSTED_PER_CLASS]] = True
    given = np.where(trusted, true, given)
    data = TrainingData(images, given, 10, trusted=trusted, evaluation=heldout)
    result = train(data, replace(config, **RUNS[name]), seed=seed, device=device)
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
