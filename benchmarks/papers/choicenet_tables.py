"""ChoiceNet's MNIST and CIFAR-10 tables, its ablations and variants, and its 1-D regression, beside ours.

    python -m benchmarks.papers.choicenet_tables --scale cpu     the small budget (one CPU core)
    python -m benchmarks.papers.choicenet_tables --scale gpu     the paper's own budget

Needs MNIST, or CIFAR-10 for `--tables cifar10`, as Parquet in the folder of AUDITOR_SHARED_DATA (default
../shared/data): `mnist-train.parquet` and so on, column `image` {bytes, path} and `label`. Every finished cell
is written at once to results/choicenet_tables.json with device, versions, seed and command; a cell that is
there is not run again. The page results/choicenet_tables.md is made from that file.

Small budget: 20,000 of the 55,000 training images, a perceptron of 256 units instead of two residual blocks
of 64 channels, Adam 1e-3 instead of 1e-5, 20 epochs instead of 41, ChoiceNet by our defaults (K = 5) with two
epochs of warm-up. What it can show is whether ChoiceNet beats the same network with cross-entropy under
each kind of noise; the paper's absolute numbers are those of another network.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray
from PIL import Image

from benchmarks.images import load
from benchmarks.metrics import auroc
from benchmarks.noise import make_noise
from benchmarks.papers.choicenet_regression import (
    TARGET_FUNCTIONS,
    fit_regression,
    make_regression_data,
    predict_targets,
)
from benchmarks.papers.choicenet_regression_config import REGRESSORS, RegressionConfig
from benchmarks.papers.choicenet_rivals import build_plain_network, plain_config
from benchmarks.papers.scale import parse_scaled
from engines.choicenet.config import ChoiceNetConfig
from engines.choicenet.training import train, train_network
from engines.contract import EvaluationSet, TrainingData
from engines.shared.device import describe_device, versions
from engines.shared.run import Run

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "choicenet_tables.json"
VALIDATION = 5_000
"""The first 5,000 training images are the paper's validation set; nothing here uses them."""
SMALL_TRAIN = 20_000
SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"tables": "binary"},
    "cpu": {},
    "gpu": {"preset": "paper", "tables": "main,cifar10,binary,ablation"},
}

NOISE_KINDS = {"permutation": "permute_map", "shuffle": "sym_incl_exact", "bias": "bias0"}
PAPER: dict[tuple[str, float], tuple[tuple[float, float], tuple[float, float]]] = {
    ("permutation", 0.25): ((94.4, 94.7), (99.0, 99.0)),
    ("permutation", 0.45): ((63.5, 67.0), (98.0, 98.1)),
    ("permutation", 0.475): ((56.8, 60.3), (92.1, 92.2)),
    ("shuffle", 0.5): ((97.0, 97.1), (98.7, 98.8)),
    ("shuffle", 0.9): ((73.3, 76.2), (95.2, 95.3)),
    ("shuffle", 0.95): ((45.7, 51.8), (84.4, 84.8)),
    ("bias", 0.25): ((92.1, 94.6), (98.9, 98.9)),
    ("bias", 0.45): ((64.9, 73.8), (94.3, 94.7)),
    ("bias", 0.475): ((58.9, 68.5), (87.3, 88.1)),
}
"""(noise, rate) -> ConvNet and ChoiceNet, each (final, best) test accuracy in percent."""
PAPER_CIFAR = {
    ("pair", 0.45): (49.5, 70.3),
    ("sym_excl", 0.5): (48.87, 85.2),
    ("sym_excl", 0.2): (76.25, 91.0),
}
"""(noise, rate) -> CNN-9 alone and with ChoiceNet, test accuracy in percent (Table 2)."""
CIFAR_SMALL = {"rows": 5_000, "epochs": 15, "width": 24}
"""In place of 50,000 images, 200 epochs and 128 channels; 2,000 test images in place of 10,000."""
CIFAR_TEST = 2_000
PAPER_COMPONENTS = {2: 95.1, 3: 95.1, 5: 95.1, 10: 95.2, 15: 95.5, 20: 95.5}
PAPER_PRECISION = {
    1e-10: "95.0-95.3",
    0.1: "95.0-95.3",
    1.0: "95.2",
    10.0: "93.5",
    100.0: "87.5",
    1000.0: "76.9",
}
RIVALS = ("ConvNet", "CNN-9")
"""The same network by cross-entropy."""
VARIANTS: dict[str, dict[str, Any]] = {
    "ChoiceNet, no warm-up": {"warmup_epochs": 0},
    "ChoiceNet, rho from 0": {"rho_start": 0.0},
}
"""Rows of the variants table: what each changes about ChoiceNet."""


@dataclass(frozen=True)
class Cell:
    """One number of a table: what is run and where it stands."""

    table: str
    noise: str
    rate: float
    method: str
    changes: dict[str, Any]

    def key(self, preset: str, seed: int) -> str:
        return f"{preset}/{self.table}/{self.noise}-{self.rate:g}/{self.method}/seed{seed}"


def cells(tables: list[str]) -> Iterator[Cell]:
    """All cells of the tables, the main table's in pairs, so that a stopped run leaves comparisons."""
    if "main" in tables:
        for noise, rate in PAPER:
            yield Cell("main", noise, rate, "ConvNet", {})
            yield Cell("main", noise, rate, "ChoiceNet", {})
    if "cifar10" in tables:
        for noise, rate in PAPER_CIFAR:
            yield Cell("cifar10", noise, rate, "CNN-9", {})
            yield Cell("cifar10", noise, rate, "ChoiceNet", {})
    if "binary" in tables:
        for name in ("ConvNet", "ChoiceNet"):
            yield Cell("binary", "zeros to ones", 0.4, name, {})
    if "variants" in tables:
        for name, changes in VARIANTS.items():
            for noise, rate in (("permutation", 0.45), ("shuffle", 0.9), ("bias", 0.45)):
                yield Cell("variants", noise, rate, name, changes)
    if "ablation" in tables:
        for components in PAPER_COMPONENTS:
            yield Cell("ablation", "shuffle", 0.9, f"K = {components}", {"num_components": components})
        for value in PAPER_PRECISION:
            yield Cell("ablation", "shuffle", 0.9, f"tau^-1 = {value:g}", {"inverse_precision": value})
    if "regression" in tables:
        for function in TARGET_FUNCTIONS:
            for rate in (0.0, 0.4, 0.6):
                for variant in REGRESSORS:
                    yield Cell("regression", function, rate, variant, {})


def base_config(preset: str) -> ChoiceNetConfig:
    """ChoiceNet as the preset runs it; cells change single fields of it."""
    paper = ChoiceNetConfig.preset("paper")
    if preset == "paper":
        return paper
    return ChoiceNetConfig(
        network="mlp",
        epochs=20,
        warmup_epochs=2,
        batch_size=paper.batch_size,
        learning_rate=1e-3,
        schedule="steps",
        weight_decay=paper.weight_decay,
        augment="none",
        views=1,
        input_scale="unit",
    )


def cifar_config(preset: str) -> ChoiceNetConfig:
    """Co-teaching's configuration, which the paper names for Table 2: CNN-9, Adam 1e-3, batches of 128."""
    small = preset == "small"
    return ChoiceNetConfig(
        network="cnn9",
        width=CIFAR_SMALL["width"] if small else 0,
        epochs=CIFAR_SMALL["epochs"] if small else 200,
        batch_size=128,
        learning_rate=1e-3,
        schedule="linear_tail",
        weight_decay=0.0,
        augment="none",
        views=1,
    )


def run_cell(cell: Cell, args: argparse.Namespace, images: dict[str, Any]) -> dict[str, Any]:
    """Train one cell; returns its numbers in percent."""
    if cell.table == "regression":
        return _run_regression(cell, args)
    if cell.table == "cifar10":
        return _run_cifar(cell, args)
    count = SMALL_TRAIN if args.preset == "small" else 60_000 - VALIDATION
    rows = slice(VALIDATION, VALIDATION + count)
    true = images["train"][1][rows]
    if cell.table == "binary":
        (pixels, true), test = (_zeros_and_ones(*images[split]) for split in ("train", "test"))
        given = true.copy()
        given[(true == 0) & (np.random.default_rng(args.seed).random(len(true)) < cell.rate)] = 1
        data = TrainingData(pixels, given, 2, evaluation=EvaluationSet(*test))
    else:
        given = make_noise(NOISE_KINDS[cell.noise], true, cell.rate, args.seed, 10).labels
        data = TrainingData(images["train"][0][rows], given, 10, evaluation=EvaluationSet(*images["test"]))
    return _trained(data, true, replace(base_config(args.preset), **cell.changes), cell, args)


def _run_cifar(cell: Cell, args: argparse.Namespace) -> dict[str, Any]:
    small = args.preset == "small"
    pixels, table = load("cifar10-train", rows=CIFAR_SMALL["rows"] if small else None)
    seen, known = load("cifar10-test", rows=CIFAR_TEST if small else None)
    true = table["label"].to_numpy().astype(np.int64)
    given = make_noise(cell.noise, true, cell.rate, args.seed, 10).labels
    evaluation = EvaluationSet(seen, known["label"].to_numpy().astype(np.int64))
    data = TrainingData(pixels, given, 10, evaluation=evaluation)
    return _trained(data, true, replace(cifar_config(args.preset), **cell.changes), cell, args)


def _trained(
    data: TrainingData, true: NDArray[np.int64], config: ChoiceNetConfig, cell: Cell, args: argparse.Namespace
) -> dict[str, Any]:
    wrong = data.given_labels != true
    if cell.method in RIVALS:
        config = plain_config(config)
        standardized = config.input_scale == "standardized"
        run = Run("choicenet", data, config, seed=args.seed, device=args.device, standardized=standardized)
        result = train_network(run, config, build_plain_network)
    else:
        result = train(data, config, seed=args.seed, device=args.device)
    heldout = [100 * record.metrics["heldout_accuracy"] for record in result.history]
    return {
        "final": round(heldout[-1], 2),
        "best": round(max(heldout), 2),
        "train_accuracy": round(100 * result.provenance.notes["training_accuracy"], 2),
        "expected_train_accuracy": round(100 * float(1 - wrong.mean()), 2),
        "trust_auroc": round(auroc(wrong, -result.trust_score), 4),
        "curve": [round(value, 1) for value in heldout],
        "config": config.as_dict(),
    }


def _zeros_and_ones(
    pixels: NDArray[np.uint8], labels: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    rows = labels <= 1
    return pixels[rows], labels[rows]


def _run_regression(cell: Cell, args: argparse.Namespace) -> dict[str, Any]:
    data = make_regression_data(cell.noise, outlier_rate=cell.rate, seed=args.seed)
    # The mixture density baseline has ten components in the authors' code.
    config = RegressionConfig(variant=cell.method, num_components=10 if cell.method == "mdn" else 5)
    network = fit_regression(data.inputs, data.given_targets, config, seed=args.seed, device=args.device)
    error = predict_targets(network, data.inputs) - data.true_targets
    return {"rmse": round(float(np.sqrt(np.mean(error**2))), 4)}


def load_mnist() -> dict[str, tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """``train`` and ``test``: images (N, 1, 28, 28) uint8 and labels (N,), decoded once and cached in memory."""
    folder = Path(os.environ.get("AUDITOR_SHARED_DATA", ROOT.parent / "shared" / "data"))
    loaded = {}
    for split in ("train", "test"):
        path = folder / f"mnist-{split}.parquet"
        if not path.exists():
            sys.exit(
                f"{path} is not there; set AUDITOR_SHARED_DATA to the folder of the MNIST Parquet files."
            )
        table = pq.read_table(path)
        decoded = [np.asarray(Image.open(io.BytesIO(row["bytes"]))) for row in table["image"].to_pylist()]
        loaded[split] = (np.stack(decoded)[:, None], table["label"].to_numpy().astype(np.int64))
    return loaded


def save(results: dict[str, Any], path: Path) -> None:
    """Write the results and the page made from them, each whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for target, text in ((path, json.dumps(results, indent=1)), (path.with_suffix(".md"), page(results))):
        draft = target.with_suffix(target.suffix + ".part")
        draft.write_text(text)
        draft.replace(target)


def page(results: dict[str, Any]) -> str:
    """The Markdown page: each table as paper, ours and difference; a cell that was not run stays empty."""
    lines = [
        "# ChoiceNet: tables of the paper and ours",
        "",
        "Made by `python -m benchmarks.papers.choicenet_tables` from `choicenet_tables.json` (every cell there has "
        "its device, versions, seed, command and config). MNIST, test accuracy in percent, final epoch with the "
        "best epoch in brackets; best looks at the test set and is optimistic.",
        "",
        "`paper` is the paper's block in the budget of the authors' code (64-channel residual network, 55,000 "
        "images, 41 epochs, Adam 1e-5, K = 10). `small` is one CPU core: a perceptron of 256 units, 20,000 "
        "images, 20 epochs, Adam 1e-3, K = 5, two epochs of warm-up, components started apart. Compare the two "
        "columns of one budget; the difference to the paper mixes method, network and data.",
    ]
    for preset in ("small", "paper"):
        found = {key: cell for key, cell in results.items() if key.startswith(f"{preset}/")}
        if found:
            lines += ["", f"## Budget `{preset}`", *_main_table(found, preset)]
            lines += [*_cifar_table(found, preset), *_other_tables(found, preset)]
    notes = ROOT / "benchmarks" / "results" / "choicenet_notes.md"
    if notes.exists():
        lines += ["", notes.read_text().rstrip()]
    return "\n".join(lines) + "\n"


def _by_seed(found: dict[str, Any], start: str) -> list[dict[str, Any]]:
    return [cell for key, cell in sorted(found.items()) if key.startswith(start + "/seed")]


def _mean(cells_of_seeds: list[dict[str, Any]], name: str) -> float:
    return float(np.mean([cell[name] for cell in cells_of_seeds]))


def _main_table(found: dict[str, Any], preset: str) -> list[str]:
    lines = [
        "",
        "| noise | rate | ConvNet paper | ours | difference | ChoiceNet paper | ours | difference "
        "| ChoiceNet - ConvNet, ours (paper) | train accuracy ConvNet / ChoiceNet (expected) "
        "| trust AUROC ConvNet / ChoiceNet | seeds |",
        "| --- " * 12 + "|",
    ]
    for (noise, rate), paper in PAPER.items():
        rows = [
            _by_seed(found, f"{preset}/main/{noise}-{rate:g}/{name}") for name in ("ConvNet", "ChoiceNet")
        ]
        if not all(rows):
            continue
        text = [noise, f"{100 * rate:g} %"]
        for row, (final, best) in zip(rows, paper, strict=True):
            ours = _mean(row, "final")
            text += [f"{final} ({best})", f"{ours:.1f} ({_mean(row, 'best'):.1f})", f"{ours - final:+.1f}"]
        gain = _mean(rows[1], "final") - _mean(rows[0], "final")
        text.append(f"{gain:+.1f} ({paper[1][0] - paper[0][0]:+.1f})")
        learned = " / ".join(f"{_mean(row, 'train_accuracy'):.1f}" for row in rows)
        text.append(f"{learned} ({_mean(rows[1], 'expected_train_accuracy'):.1f})")
        text.append(" / ".join(f"{_mean(row, 'trust_auroc'):.3f}" for row in rows))
        text.append(str(len(rows[1])))
        lines.append("| " + " | ".join(text) + " |")
    return lines if len(lines) > 3 else []


def _cifar_table(found: dict[str, Any], preset: str) -> list[str]:
    small = f"{CIFAR_SMALL['rows']:,} images, {CIFAR_SMALL['epochs']} epochs, {CIFAR_SMALL['width']} channels"
    lines = [
        "",
        f"CIFAR-10 with CNN-9 (Table 2), {small if preset == 'small' else 'at its own size'}:",
        "",
        "| noise | CNN-9 paper | ours | ChoiceNet paper | ours | ChoiceNet - CNN-9, ours (paper) "
        "| trust AUROC CNN-9 / ChoiceNet | seeds |",
        "| --- " * 8 + "|",
    ]
    for (noise, rate), paper in PAPER_CIFAR.items():
        rows = [
            _by_seed(found, f"{preset}/cifar10/{noise}-{rate:g}/{name}") for name in ("CNN-9", "ChoiceNet")
        ]
        if not all(rows):
            continue
        plain, ours = (_mean(row, "final") for row in rows)
        trust = " / ".join(f"{_mean(row, 'trust_auroc'):.3f}" for row in rows)
        lines.append(
            f"| {noise} {100 * rate:g} % | {paper[0]} | {plain:.1f} | {paper[1]} | {ours:.1f} "
            f"| {ours - plain:+.1f} ({paper[1] - paper[0]:+.1f}) | {trust} | {len(rows[1])} |"
        )
    return lines if len(lines) > 5 else []


def _other_tables(found: dict[str, Any], preset: str) -> list[str]:
    lines: list[str] = []
    for table, title in (
        ("binary", "Zeros and ones only, 40 % of the zeros called one (paper: 98.1, training accuracy 81.7)"),
        ("variants", "Variants (the paper has no numbers for these on MNIST)"),
        ("ablation", "Ablation, shuffle 90 % (paper: K = 2, 3, 5, 10, 15, 20: 95.1, 95.1, 95.1, 95.2, 95.5, 95.5; "
         "tau^-1 = 1e-10 to 0.1: 95.0 to 95.3, 1: 95.2, 10: 93.5, 100: 87.5, 1000: 76.9)"),
    ):  # fmt: skip
        names = [key.rpartition("/")[0] for key in found if key.startswith(f"{preset}/{table}/")]
        if names:
            lines += [
                "",
                title + ":",
                "",
                "| method | noise | final (best) | train accuracy (expected) | trust AUROC | seeds |",
                "| --- " * 6 + "|",
            ]
        for name in dict.fromkeys(names):
            _, _, noise, method = name.split("/")
            of_seeds = _by_seed(found, name)
            final, best, learned, expected = (
                f"{_mean(of_seeds, key):.1f}"
                for key in ("final", "best", "train_accuracy", "expected_train_accuracy")
            )
            lines.append(
                f"| {method} | {noise} | {final} ({best}) | {learned} ({expected}) | "
                f"{_mean(of_seeds, 'trust_auroc'):.3f} | {len(of_seeds)} |"
            )
    if any(key.startswith(f"{preset}/regression/") for key in found):
        lines += ["", "Regression, RMSE to the true function (1,000 samples, paper's outliers):", ""]
        lines += [
            "| function | outliers | " + " | ".join(REGRESSORS) + " |",
            "| --- " * (2 + len(REGRESSORS)) + "|",
        ]
        for function in TARGET_FUNCTIONS:
            for rate in (0.0, 0.4, 0.6):
                row = [
                    _by_seed(found, f"{preset}/regression/{function}-{rate:g}/{name}") for name in REGRESSORS
                ]
                if all(row):
                    errors = " | ".join(f"{_mean(each, 'rmse'):.3f}" for each in row)
                    lines.append(f"| {function} | {100 * rate:g} % | {errors} |")
    return lines


def main() -> None:
    """Run what is missing, one cell after the other, until done or out of time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--preset", choices=("small", "paper"), default="small")
    parser.add_argument(
        "--tables",
        default="main,cifar10,binary,variants,ablation,regression",
        help="comma-separated",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no cell after this long")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parse_scaled(parser, SCALES)
    device = torch.device(args.device)
    if device.type == "cpu":
        torch.set_num_threads(1)
    results = json.loads(args.out.read_text()) if args.out.exists() else {}
    wanted = [
        cell for cell in cells(args.tables.split(",")) if cell.key(args.preset, args.seed) not in results
    ]
    images = load_mnist() if any(cell.table not in ("regression", "cifar10") for cell in wanted) else {}
    start = time.monotonic()
    for number, cell in enumerate(wanted, start=1):
        if time.monotonic() - start > 60 * args.minutes:
            print(f"out of time with {len(wanted) - number + 1} cells left; the same command goes on")
            break
        watch, processor = time.monotonic(), time.process_time()
        numbers = run_cell(cell, args, images)
        key = cell.key(args.preset, args.seed)
        results[key] = numbers | {
            "seconds": round(time.monotonic() - watch, 1),
            "cpu_seconds": round(time.process_time() - processor, 1),
            "device": describe_device(device),
            "versions": versions(),
            "seed": args.seed,
            "command": "python -m benchmarks.papers.choicenet_tables " + " ".join(sys.argv[1:]),
        }
        save(results, args.out)
        short = {name: value for name, value in numbers.items() if name not in ("curve", "config")}
        print(f"{number}/{len(wanted)} {key} {results[key]['seconds']} s {short}", flush=True)
    save(results, args.out)


if __name__ == "__main__":
    main()
