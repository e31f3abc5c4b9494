"""Which method finds wrong labels best? Each on the same images, network, epochs and augmentation.

    python -m benchmarks.detection --rows 10000 --epochs 10 --seeds 0 1 2

One cell is (data set, noise, rows, epochs, network, seed, method). Finished cells are kept, so the command goes
on where it was stopped; ``--minutes 10`` stops it in time for a lease. Figures go to
``benchmarks/results/detection.json`` with device, versions, configs and seconds; ``python -m
benchmarks.detection_report`` turns them into tables. Arrays stay in ``--work``. L2B's relatives have a page of
their own (``benchmarks.papers.l2b_family``).

Known truth is used to measure, never to train: no method sees it, and no noise rate is handed to any of them.
"""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks import images
from benchmarks.metrics import auroc, average_precision, precision_at_k
from benchmarks.noise import make_noise
from engines.contract import EngineResult, TrainingData
from engines.l2b.bases.pair import train_pair
from engines.l2b.config import L2BConfig
from engines.registry import ENGINES
from engines.shared.config import LoopConfig
from engines.shared.device import describe_device, resolve_device, versions
from engines.shared.run import Run

RESULTS = Path(__file__).resolve().parent / "results" / "detection.json"
WORK = Path(os.environ.get("AUDITOR_BENCH_WORK", Path.home() / ".cache" / "label-auditor-bench"))

PUBLISHED_READINGS = {
    ("umn", "epsilon"): "suspect",
    ("umn", "networks_disagree"): "suspect",
    ("l2b", "alpha"): "clean",
    ("l2b", "beta"): "suspect",
}
"""What a high value means by the paper, where measurements found no direction."""

MNIST_ASYMMETRIC = {7: 1, 2: 7, 3: 8, 5: 6, 6: 5}
"""7 > 1, 2 > 7, 3 > 8, 5 <> 6."""


@dataclass(frozen=True)
class Problem:
    """One data set with one kind of wrong labels."""

    name: str
    source: str
    noise: str
    """A kind of ``benchmarks.noise``, ``asym_mnist``, or a human label column."""
    rate: float = 0.0


PROBLEMS = (
    Problem("mnist-sym20", "mnist-train", "sym_excl", 0.2),
    Problem("mnist-sym50", "mnist-train", "sym_excl", 0.5),
    Problem("mnist-pair45", "mnist-train", "pair", 0.45),
    Problem("cifar10n-aggre", "cifar10-train", "label_aggre"),
    Problem("cifar10n-random1", "cifar10-train", "label_random1"),
    Problem("mnist-asym40", "mnist-train", "asym_mnist", 0.4),
    Problem("cifar10-sym20", "cifar10-train", "sym_excl", 0.2),
    Problem("cifar10-sym40", "cifar10-train", "sym_excl", 0.4),
    Problem("cifar10-asym40", "cifar10-train", "asym_cifar10", 0.4),
)


@dataclass(frozen=True, eq=False)
class Task:
    """A problem with its labels drawn: what a method gets is ``data`` alone."""

    data: TrainingData
    true_labels: NDArray[np.int64]
    seed: int
    epochs: int
    network: str
    device: str

    @property
    def is_wrong(self) -> NDArray[np.bool_]:
        """(N,) bool."""
        return self.data.given_labels != self.true_labels


@dataclass(frozen=True, eq=False)
class Finding:
    """What one method's run says."""

    trust: Mapping[str, NDArray[np.floating]]
    """By row of the table, (N,): high = the given label looks right."""
    pred_probs: NDArray[np.float32]
    config: Mapping[str, Any]
    extra: Mapping[str, float] = dataclasses.field(default_factory=dict)
    notes: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def main() -> None:
    """Run every missing cell."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    device = str(resolve_device(arguments.device))
    began = time.monotonic()
    for seed in arguments.seeds:
        for problem in (one for one in PROBLEMS if not arguments.problems or one.name in arguments.problems):
            task = None
            for method in arguments.methods:
                network = arguments.network or small_network(problem, device)
                key = f"{setting(problem.name, arguments.rows, arguments.epochs, network)}|{seed}|{method}"
                if key in load_results(arguments.out)["cells"]:
                    continue
                if arguments.minutes and time.monotonic() - began > 60 * arguments.minutes:
                    print("out of time; the same command goes on", flush=True)
                    return
                task = task or make_task(problem, arguments.rows, seed, arguments.epochs, network, device)
                run_cell(key, problem, task, method, arguments)


def small_network(problem: Problem, device: str) -> str:
    """What a problem is run with where nobody names a network: PreActResNet-18 needs a GPU."""
    if problem.source.startswith("mnist"):
        return "mlp"
    return "preact_resnet18" if device.startswith("cuda") else "conv3"


def setting(problem: str, rows: int, epochs: int, network: str) -> str:
    """Names what may be averaged over seeds: how a cell's key and the folder of its arrays begin."""
    # The networks of the first runs go without saying: their figures keep their keys.
    named = [problem, rows, epochs, *([] if network in ("mlp", "conv3") else [network])]
    return "|".join(map(str, named))


def make_task(problem: Problem, rows: int, seed: int, epochs: int, network: str, device: str) -> Task:
    """Draw the subset and the wrong labels of a problem; the seed decides both."""
    pixels, table = images.load(problem.source, rows=rows, seed=seed)
    truth = table["label"].to_numpy(dtype=np.int64)
    if problem.noise.startswith("label_"):
        given = table[problem.noise].to_numpy(dtype=np.int64)
    elif problem.noise == "asym_mnist":
        chosen = np.random.default_rng([seed, 40]).random(len(truth)) < problem.rate
        given = np.array(
            [
                MNIST_ASYMMETRIC.get(int(y), int(y)) if hit else int(y)
                for y, hit in zip(truth, chosen, strict=True)
            ]
        )
    else:
        given = make_noise(problem.noise, truth, problem.rate, seed, num_classes=10).labels
    data = TrainingData(images=pixels, given_labels=given.astype(np.int64), num_classes=10)
    return Task(data, truth, seed, epochs, network, device)


def _engine(name: str, **changes: Any) -> Callable[[Task], Finding]:
    def run(task: Task) -> Finding:
        result, config = _train(name, task, **changes)
        trust: dict[str, NDArray[np.floating]] = {name: result.trust_score}
        for signal, values in result.signals.items():
            trust[f"{name}: {signal} as published"] = published_trust(name, signal, values)
        return Finding(trust, result.pred_probs, config, notes=_short(result.provenance.notes))

    return run


def _on_base(title: str, base: str, *, has_step: bool) -> Callable[[Task], Finding]:
    """L2B's semi-supervised family, with its step or the base alone."""

    def run(task: Task) -> Finding:
        settings = _config("l2b", task, base=base)
        assert isinstance(settings, L2BConfig)
        whole = Run("l2b", task.data, settings, seed=task.seed, device=task.device)
        result, config = train_pair(whole, settings, has_step=has_step), settings.as_dict()
        trust: dict[str, NDArray[np.floating]] = {title: result.trust_score}
        trust[f"{title}: belief of the divisions"] = result.signals["believed"]
        return Finding(trust, result.pred_probs, config, notes=_short(result.provenance.notes))

    return run


def published_trust(engine: str, signal: str, values: NDArray[np.floating]) -> NDArray[np.floating]:
    """A signal turned so that high = clean by what its paper says; as it is where the paper does not say."""
    reading = PUBLISHED_READINGS.get((engine, signal), ENGINES[engine].signals[signal].high_means)
    return -values if reading == "suspect" else values


def _plain(task: Task) -> Finding:
    """One plain network: its trust, and the cheap yardsticks that come with it."""
    result, config = _train("cross_entropy", task)
    probs = result.pred_probs
    rows = np.arange(len(probs))
    given = task.data.given_labels
    log_probs = np.log(np.maximum(probs, 1e-12))
    others = log_probs.copy()
    others[rows, given] = -np.inf
    entropy = -(probs * log_probs).sum(axis=1)
    agrees = np.where(probs.argmax(axis=1) == given, -1.0, 1.0)
    # FiftyOne Brain's mistakenness with logits: (m exp(-H) + 1) / 2, m = 1 where prediction and label differ.
    mistakenness = (agrees * np.exp(-entropy) + 1) / 2
    trust = {
        "cross_entropy": result.trust_score,
        "plain: loss of the final pass": log_probs[rows, given],
        "plain: area under the margin": result.signals["margin"],
        "plain: S (test-time margin)": log_probs[rows, given] - others.max(axis=1),
        "FiftyOne mistakenness": -mistakenness,
    }
    return Finding(trust, probs, config)


def _three_plain(task: Task) -> Finding:
    config = _config("cross_entropy", task)
    logs = [
        np.log(np.maximum(ENGINES["cross_entropy"].train(task.data, config, seed=seed).pred_probs, 1e-12))
        for seed in range(3 * task.seed, 3 * task.seed + 3)
    ]
    mean, rows, given = np.mean(logs, axis=0), np.arange(task.data.num_samples), task.data.given_labels
    others = mean.copy()
    others[rows, given] = -np.inf
    margin = mean[rows, given] - others.max(axis=1)
    return Finding({"three plain networks": margin}, np.exp(mean), config.as_dict())


def _three_times_longer(task: Task) -> Finding:
    result, config = _train("cross_entropy", task, epochs=3 * task.epochs)
    return Finding({"plain, three times the epochs": result.trust_score}, result.pred_probs, config)


def _cleanlab(task: Task) -> Finding:
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    result, config = _train("cross_entropy", task, folds=5, views=1)
    probs, given = result.pred_probs.astype(np.float64), task.data.given_labels
    trust = {
        "cleanlab self-confidence": get_label_quality_scores(given, probs, method="self_confidence"),
        "cleanlab normalized margin": get_label_quality_scores(given, probs, method="normalized_margin"),
    }
    flags = find_label_issues(given, probs)
    hits = int((flags & task.is_wrong).sum())
    extra = {
        "find_label_issues precision": hits / max(int(flags.sum()), 1),
        "find_label_issues recall": hits / max(int(task.is_wrong.sum()), 1),
        "find_label_issues rate": float(flags.mean()),
    }
    return Finding(trust, result.pred_probs, config, extra)


FAMILY: dict[str, Callable[[Task], Finding]] = {
    "divide_mix": _on_base("DivideMix", "divide_mix", has_step=False),
    "l2b_divide_mix": _on_base("L2B-DivideMix", "divide_mix", has_step=True),
    "unicon": _on_base("UniCon", "unicon", has_step=False),
    "l2b_unicon": _on_base("L2B-UniCon", "unicon", has_step=True),
    "c2d": _on_base("C2D", "c2d", has_step=False),
    "l2b_c2d": _on_base("L2B-C2D", "c2d", has_step=True),
}
"""Measured by ``benchmarks.papers.l2b_family``, with the methods of here beside them."""
METHODS: dict[str, Callable[[Task], Finding]] = {
    "plain": _plain,
    "coteaching": _engine("coteaching"),
    "cleanlab": _cleanlab,
    "three_plain": _three_plain,
    "l2b": _engine("l2b"),
    "umn": _engine("umn"),
    "choicenet": _engine("choicenet"),
    "plain_x3": _three_times_longer,
    **FAMILY,
}


def _config(name: str, task: Task, **changes: Any) -> LoopConfig:
    common = {"epochs": task.epochs, "batch_size": 128, "augment": "auto", "views": 6}
    network = "umn_mlp" if name == "umn" and task.network == "mlp" else task.network
    preset = ENGINES[name].config_type.preset("quick")
    return dataclasses.replace(preset, **{**common, "network": network, **changes})


def _train(name: str, task: Task, **changes: Any) -> tuple[EngineResult, dict[str, Any]]:
    config = _config(name, task, **changes)
    result = ENGINES[name].train(task.data, config, seed=task.seed, device=task.device)
    return result, config.as_dict()


def run_cell(key: str, problem: Problem, task: Task, method: str, arguments: argparse.Namespace) -> None:
    """Run one method and keep its figures and arrays; ``arguments`` says ``rows``, ``out`` and ``work``."""
    began, cpu = time.monotonic(), time.process_time()
    finding = METHODS[method](task)
    seconds, cpu_seconds = time.monotonic() - began, time.process_time() - cpu
    wrong = task.is_wrong
    suggested = _suggestions(finding.pred_probs, task.data.given_labels)
    cell = {
        "problem": problem.name,
        "rows": arguments.rows,
        "epochs": arguments.epochs,
        "seed": task.seed,
        "method": method,
        "network": task.network,
        "noise_rate": float(wrong.mean()),
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "prediction_accuracy": float((finding.pred_probs.argmax(axis=1) == task.true_labels).mean()),
        "suggestion_accuracy": float((suggested == task.true_labels)[wrong].mean()),
        "scores": {
            name: scores_of(wrong, -np.asarray(values, float)) for name, values in finding.trust.items()
        },
        "extra": dict(finding.extra),
        "config": dict(finding.config),
        "notes": dict(finding.notes),
        "device": describe_device(resolve_device(task.device)),
        "threads": torch.get_num_threads(),
        "versions": versions(),
    }
    folder = arguments.work / key.rpartition("|")[0].replace("|", "-")
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "labels.npz", given=task.data.given_labels, true=task.true_labels)
    arrays = {f"trust {name}": np.asarray(values, np.float32) for name, values in finding.trust.items()}
    np.savez(folder / f"{method}.npz", pred_probs=finding.pred_probs, **arrays)
    update(arguments.out, "cells", {key: cell})
    first = next(iter(cell["scores"].items()))
    print(
        f"{key}: {first[0]} AUROC {first[1]['auroc']:.3f} AP {first[1]['ap']:.3f}, {seconds:.0f} s",
        flush=True,
    )


def scores_of(wrong: NDArray[np.bool_], suspicion: NDArray[np.floating]) -> dict[str, float]:
    """AUROC, average precision and precision at as many flags as errors; a row without an opinion comes last."""
    known = np.isfinite(suspicion)
    filled = np.where(known, suspicion, np.min(suspicion[known], initial=0.0))
    return {
        "auroc": float(auroc(wrong, filled)),
        "ap": float(average_precision(wrong, filled)),
        "precision_at_errors": float(precision_at_k(wrong, filled, int(wrong.sum()))),
    }


def _suggestions(probs: NDArray[np.float32], given: NDArray[np.int64]) -> NDArray[np.int64]:
    others = probs.copy()
    others[np.arange(len(given)), given] = -1
    return others.argmax(axis=1)


def _short(notes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in notes.items() if isinstance(value, (int, float, str, bool))}


def load_results(path: Path) -> dict[str, Any]:
    """What is stored at ``path``; no cells where nothing is."""
    if not path.exists():
        return {"cells": {}}
    stored: dict[str, Any] = json.loads(path.read_text())
    return stored


def update(path: Path, section: str, entries: Mapping[str, Any]) -> dict[str, Any]:
    """Add entries to a section of the results; several processes may do so at once. Returns everything stored."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stored = load_results(path)
        stored.setdefault(section, {}).update(entries)
        beside = path.with_suffix(".writing")
        beside.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
        beside.replace(path)
        return stored


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--problems", nargs="+", choices=[one.name for one in PROBLEMS])
    own = [method for method in METHODS if method not in FAMILY]
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=own)
    parser.add_argument(
        "--network", help="instead of the small ones: conv4, the smallest that auto chooses, ..."
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=0.0, help="stop before the next cell after so long")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--work", type=Path, default=WORK)
    return parser.parse_args()


if __name__ == "__main__":
    main()
