"""L2B's variants, meta sets and derivatives side by side: which part of the method finds wrong labels?

    python -m benchmarks.papers.l2b_ablation [--scale cpu] [--rows 3000] [--network mlp] [--seeds 1] [--out ...]

MNIST with planted errors (pair flips at 45 %, symmetric at 50 %), 200 trusted samples where a run has any.
AUROC of trust and of the signals for the wrong labels among the untrusted samples, and held-out accuracy.
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

NOISES = (("pair", 0.45), ("sym_excl", 0.5))
TRUSTED_PER_CLASS = 20
SCALES: dict[str, dict[str, Any]] = {"smoke": {"rows": 300}, "cpu": {}, "gpu": {"rows": 60_000, "seeds": 3}}
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
    *, config: L2BConfig, seed: int,
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
    result = train(data, replace(config, **RUNS[name]), seed=seed, device="cpu")
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
    """Run everything and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--network", default="mlp")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parents[1] / "results" / "l2b_ablation.json"
    )
    arguments = parse_scaled(parser, SCALES)
    torch.set_num_threads(1)
    images, table = load("mnist-train", rows=arguments.rows)
    test_images, test_table = load("mnist-test", rows=2000)
    heldout = EvaluationSet(test_images, test_table["label"].to_numpy())
    config = replace(L2BConfig.preset("quick"), network=arguments.network, precision="float32")
    report: dict[str, Any] = {"rows": arguments.rows, "network": arguments.network, "runs": []}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    for noise in NOISES:
        for name in RUNS:
            for seed in range(arguments.seeds):
                true = table["label"].to_numpy()
                found = measure(images, true, heldout, noise, name, config=config, seed=seed)
                report["runs"].append(found)
                arguments.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
