"""The pool against the truth: AUROC, flags, suggestions and the guess, on real features and published networks.

    python -m benchmarks.ranking --features FOLDER      # trains what is missing, out of fold
    python -m benchmarks.ranking --page                 # the page from the figures alone

FOLDER holds ``NAME.npz`` with ``features`` (N, D) float32 of a frozen network, ``truth`` (N,) int64 and the given
labels by name: columns of humans' labels, or planted ones. Every engine is trained five times with a fifth of the
labels hidden, which it then judges. The rows "before" are of the rules that the pool took the place of, measured on
the same arrays before they were deleted. Known truth is used to measure, never to train or
to choose.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from auditor.statistics import combine, witness_from_probabilities
from benchmarks import images
from benchmarks.metrics import auroc, average_precision
from engines.contract import TrainingData
from engines.registry import ENGINES
from engines.shared.components import principal_components
from engines.shared.device import versions

RESULTS = Path(__file__).resolve().parent / "results" / "ranking.json"
WORK = Path(os.environ.get("AUDITOR_BENCH_WORK", Path.home() / ".cache" / "label-auditor-bench")) / "ranking"
FOLDS = 5
NETWORKS = ("resnet18", "efficientnet_b1", "resnet50d", "twins_pcpvt_base", "swin_base_patch4_window7_224")
PUBLISHED = {"ResNet-18": NETWORKS[:1], "Swin-B": NETWORKS[4:], "five networks": NETWORKS}
OUT_OF_FOLD = ("noise_model", "neighbours")
"""Engines that hide labels from themselves."""
IN_SAMPLE = ("cross_entropy", "coteaching", "l2b", "choicenet", "umn")
FEW, FEW_COLUMNS, COLUMNS = 1_500, 32, 64
"""Below so many rows the engines see the first 32 principal components, else 64."""


def main() -> None:
    """Measure every set, or write the page alone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--features", type=Path, help="folder of NAME.npz")
    parser.add_argument("--page", action="store_true", help="write the page from the figures alone")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--work", type=Path, default=WORK)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    stored = json.loads(arguments.out.read_text()) if arguments.out.exists() else {"rows": {}, "before": {}}
    if not arguments.page:
        for name, probs, given, truth in _sets(arguments):
            stored["rows"][name] = measured(probs, given, truth)
            stored["versions"] = versions()
            arguments.out.write_text(json.dumps(stored, indent=1) + "\n")
            print(name, stored["rows"][name]["auroc"], flush=True)
    arguments.out.with_suffix(".md").write_text(page(stored))


def _sets(
    arguments: argparse.Namespace,
) -> Iterator[tuple[str, Mapping[str, NDArray[np.float32]], NDArray[np.int64], NDArray[np.int64]]]:
    """Name, probabilities out of sample by witness, given labels and the truth of each set."""
    _, table = images.load("cifar10-train")
    given, truth = (table[name].to_numpy(dtype=np.int64) for name in ("label_aggre", "label"))
    with np.load(images.folder() / "cifar10-aggre-pred-probs.npz") as kept:
        arrays = {name: kept[name].astype(np.float32) for name in NETWORKS}
    for title, names in PUBLISHED.items():
        for rows in (300, 3_000, 50_000):
            probs = {name: arrays[name][:rows] / arrays[name][:rows].sum(1, keepdims=True) for name in names}
            yield f"{title}, aggre, {rows:,}", probs, given[:rows], truth[:rows]
    for path in sorted(arguments.features.glob("*.npz")) if arguments.features else ():
        with np.load(path) as kept:
            features, truth = kept["features"], kept["truth"]
            labels = {name: kept[name] for name in kept.files if name not in ("features", "truth")}
        for name, given in labels.items():
            place = arguments.work / f"{path.stem}-{name}"
            yield f"{path.stem}, {name}", out_of_fold(features, given, place), given, truth


def out_of_fold(
    features: NDArray[np.float32], given: NDArray[np.int64], place: Path
) -> dict[str, NDArray[np.float32]]:
    """By engine, (N, K) probabilities of models that did not see a row's label; kept in the folder ``place``."""
    place.mkdir(parents=True, exist_ok=True)
    num_classes = int(given.max()) + 1
    few = len(given) < FEW
    seen = principal_components(features, FEW_COLUMNS if few else COLUMNS).of(features)[:, None]
    found = {}
    for name in (*OUT_OF_FOLD, *IN_SAMPLE):
        path = place / f"{name}.npy"
        if not path.exists():
            config = ENGINES[name].config_type.preset("quick").for_features()
            data = TrainingData(None, given, num_classes, features=features[:, None])
            if name in OUT_OF_FOLD:
                probs = ENGINES[name].train(data, config, seed=0, device="cpu").pred_probs
            else:
                if any(one.name == "trainings" for one in dataclasses.fields(config)):
                    config = dataclasses.replace(config, trainings=1)
                probs = np.empty((len(given), num_classes), dtype=np.float32)
                fold = np.random.default_rng(0).permutation(len(given)) % FOLDS
                for number in range(FOLDS):
                    hidden = np.where(fold == number, -1, given)
                    part = TrainingData(None, hidden, num_classes, features=seen)
                    trained = ENGINES[name].train(part, config, seed=0, device="cpu")
                    probs[fold == number] = trained.pred_probs[fold == number]
            np.save(path, probs)
        found[name] = np.load(path)
    return found


def measured(
    probs: Mapping[str, NDArray[np.float32]], given: NDArray[np.int64], truth: NDArray[np.int64]
) -> dict[str, Any]:
    """What the pool finds, beside the mean rank of the same witnesses."""
    witnesses = [witness_from_probabilities(one, given, name=name) for name, one in probs.items()]
    found = combine(witnesses, given, int(max(given.max(), truth.max())) + 1)
    wrong, flagged, rate = given != truth, found.calibrated.is_label_issue, found.guess.noise_rate
    trust = found.reading.trust_score
    mean = np.mean([np.argsort(np.argsort(one.trust_score)) for one in witnesses], axis=0)
    return {
        "rows": len(given),
        "wrong": int(wrong.sum()),
        "auroc": round(float(auroc(wrong, -trust)), 4),
        "ap": round(float(average_precision(wrong, -trust)), 4),
        "equal auroc": round(float(auroc(wrong, -mean)), 4),
        "equal ap": round(float(average_precision(wrong, -mean)), 4),
        "flags": int(flagged.sum()),
        "flags right": int((flagged & wrong).sum()),
        "suggestions right": round(float((found.reading.other_label == truth)[wrong].mean()), 4),
        "guess": [round(one, 4) for one in (rate.low, rate.point, rate.high)],
        "truth": round(float(wrong.mean()), 4),
        "weights": {name: round(weight, 3) for name, weight in found.weights.items()},
    }


def page(stored: Mapping[str, Any]) -> str:
    """The figures as a page."""
    lines = [
        "# The pool against the truth",
        "",
        "AUROC / average precision for wrong labels by the pool, by the mean rank of the same witnesses and by the "
        "rules that the pool took the place of (weights by agreement, smoothness or separation, confusions by EM): "
        "on the same witnesses, and *as shipped*, on engines that had learned from the labels that they judge. "
        "Flags: labels more likely wrong than right, and how many of them are wrong. Suggestions: the share of "
        "wrong labels whose suggestion is the true class. No row is verified. Features: EfficientNet-lite0 with "
        "ImageNet weights, rows 25,000 onward of CIFAR-10 at 160 px and 341 photos of clothes at 224 px with "
        "planted confusions. Networks: published probabilities on CIFAR-10N.",
        "",
        "| set | wrong | pool | mean rank | before | as shipped | flags, right | suggestions | guess (truth) |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    gains: dict[str, list[float]] = {"same": [], "shipped": []}
    for name, row in stored["rows"].items():
        before = stored["before"].get(name, {})
        was = {}
        for kind, found in gains.items():
            was[kind] = "-"
            if kind in before:
                was[kind] = f"{before[kind]['auroc']:.3f} / {before[kind]['ap']:.3f}"
                found.append(row["auroc"] - before[kind]["auroc"])
        low, point, high = row["guess"]
        lines.append(
            f"| {name} | {row['wrong']:,} of {row['rows']:,} | {row['auroc']:.3f} / {row['ap']:.3f} | "
            f"{row['equal auroc']:.3f} / {row['equal ap']:.3f} | {was['same']} | {was['shipped']} | "
            f"{row['flags']:,}, {row['flags right']:,} | {row['suggestions right']:.2f} | "
            f"{point:.3f}, {low:.3f} to {high:.3f} ({row['truth']:.3f}) |"
        )
    for kind, found in gains.items():
        if found:
            where = "before on the same witnesses" if kind == "same" else "as shipped"
            told = f"{np.mean(found):+.4f} AUROC on average, {min(found):+.4f} to {max(found):+.4f}"
            lines += ["", f"The pool against *{where}*: {told}, on {len(found)} sets."]
    for note in stored.get("notes", []):
        lines += ["", note]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
