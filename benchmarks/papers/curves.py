"""The papers' figures over training, drawn from runs: accuracy, label precision, searched R(t), ε, α and ρ.

    python -m benchmarks.papers.curves --scale cpu

MNIST with planted errors. Co-teaching + S2E, Figures 1, 5, 6 and 9: test accuracy, label precision (share of right
labels among those that the networks learn from) and R(t) by epoch, with Eq. 4 at the known rate and with the
searched R(t). UMN, Figures 3 and 4: mean ε of right and of wrong labels. L2B: mean α of both. ChoiceNet, Figure 5:
mean ρ of both. A run is one cell of ``results/paper_curves.json``; finished cells are kept, so that the command
goes on where it was stopped. The picture is ``docs/images/paper-curves.png``. Known truth is used to draw, never to
train.
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

from benchmarks.images import load
from benchmarks.noise import make_noise
from benchmarks.papers.scale import parse_scaled
from engines.contract import EngineResult, EvaluationSet, TrainingData
from engines.registry import ENGINES
from engines.shared.device import versions

RESULTS = Path(__file__).resolve().parents[1] / "results" / "paper_curves.json"
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "paper-curves.png"
NOISES = {
    "symmetric 20 %": ("sym_excl", 0.2),
    "symmetric 50 %": ("sym_excl", 0.5),
    "pair 45 %": ("pair", 0.45),
}
SCHEDULED = ("Co-teaching, Eq. 4", "S2E")
BY_LABEL = {"umn": "epsilon", "l2b": "alpha", "choicenet": "rho"}
"""The published signal of each engine, drawn for right and for wrong labels."""
SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"rows": 400, "epochs": 3, "test": 200, "preset": "quick"},
    "cpu": {},
    "gpu": {"rows": 60_000, "epochs": 200, "test": 10_000, "preset": "paper"},
}


def main() -> None:
    """Run every missing cell, and draw the picture where one was missing or it is not there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--test", type=int, default=2_000)
    parser.add_argument("--preset", default="quick", choices=("quick", "paper"))
    parser.add_argument("--network", default="mlp")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parse_scaled(parser, SCALES)
    torch.set_num_threads(1)
    stored = json.loads(options.out.read_text()) if options.out.exists() else {}
    kept = len(stored)
    for noise in NOISES:
        for method in ("plain", *SCHEDULED, *BY_LABEL):
            key = f"{noise} | {method} | {options.rows} rows, {options.epochs} epochs | seed {options.seed}"
            if key not in stored:
                stored[key] = run_cell(noise, method, options)
                options.out.write_text(json.dumps(stored, indent=1) + "\n")
                print(key, {name: values[-1] for name, values in stored[key]["curves"].items()}, flush=True)
    picture: Path = PICTURE if options.out == RESULTS else options.out.with_suffix(".png")
    if len(stored) > kept or not picture.exists():
        draw(stored, picture)


def run_cell(noise: str, method: str, options: argparse.Namespace) -> dict[str, Any]:
    """One run and its curves, a number an epoch each."""
    kind, rate = NOISES[noise]
    images, table = load("mnist-train", rows=options.rows, seed=options.seed)
    true = table["label"].to_numpy(dtype=np.int64)
    given = make_noise(kind, true, rate, options.seed, num_classes=10).labels
    test, test_table = load("mnist-test", rows=options.test, seed=options.seed)
    heldout = EvaluationSet(test, test_table["label"].to_numpy(dtype=np.int64))
    data = TrainingData(images, given, 10, evaluation=heldout)
    name = "coteaching" if method in SCHEDULED else "cross_entropy" if method == "plain" else method
    changes: dict[str, Any] = {"epochs": options.epochs, "batch_size": 128, "augment": "none", "views": 1}
    changes["network"] = "umn_mlp" if name == "umn" else options.network
    if method in SCHEDULED:
        changes["noise_rate"] = rate if method != "S2E" else None
    config = replace(ENGINES[name].config_type.preset(options.preset), **changes)
    result = ENGINES[name].train(data, config, seed=options.seed, device=options.device)
    return {
        "curves": curves_of(result, name, given == true),
        "config": config.as_dict(),
        "device": result.provenance.device,
        "seconds": round(result.provenance.seconds, 1),
        "versions": versions(),
    }


def curves_of(result: EngineResult, engine: str, right: NDArray[np.bool_]) -> dict[str, list[float]]:
    """What the figures show, from a run's own record.

    Args:
        result: of the run.
        engine: its name.
        right: (N,) bool, the given label is the true one.
    """
    epochs = [record for record in result.history if record.stage not in ("warmup", "search")]
    found = {
        name: [round(record.metrics[name], 4) for record in epochs if name in record.metrics]
        for name in ("heldout_accuracy", "keep_rate")
    }
    history = {name: values.astype(np.float64) for name, values in result.signal_history.items()}
    if "selected" in history:
        chosen = np.nan_to_num(history["selected"])
        found["label_precision"] = [
            round(float(one[right].sum() / max(one.sum(), 1e-9)), 4) for one in chosen
        ]
    signal = BY_LABEL.get(engine)
    if signal in history:
        for name, rows in (("right", right), ("wrong", ~right)):
            found[f"{signal}, {name} labels"] = [
                None if np.isnan(one[rows]).all() else round(float(np.nanmean(one[rows])), 4)
                for one in history[signal]
            ]
    return {name: values for name, values in found.items() if values}


def draw(stored: dict[str, Any], path: Path) -> None:
    """One row of panels a noise: accuracy, label precision, R(t), and the signals of right and wrong labels."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    panels = ("heldout_accuracy", "label_precision", "keep_rate", *BY_LABEL.values())
    titles = ("test accuracy", "label precision", "R(t)", "UMN ε", "L2B α", "ChoiceNet ρ")
    figure, axes = plt.subplots(
        len(NOISES), len(panels), figsize=(3 * len(panels), 2.4 * len(NOISES)), squeeze=False
    )
    for row, noise in enumerate(NOISES):
        for column, (panel, title) in enumerate(zip(panels, titles, strict=True)):
            axis = axes[row, column]
            axis.set_title(f"{title}, {noise}", fontsize=8)
            axis.tick_params(labelsize=7)
            for key, cell in stored.items():
                in_noise, method, *_ = key.split(" | ")
                for name, values in cell["curves"].items():
                    if in_noise == noise and name.split(",")[0] == panel:
                        shown = [np.nan if value is None else value for value in values]
                        label = method if name == panel else name.partition(", ")[2]
                        axis.plot(range(1, len(shown) + 1), shown, label=label, linewidth=1)
            if axis.lines:
                axis.legend(fontsize=6)
            if row == len(NOISES) - 1:
                axis.set_xlabel("epoch", fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
