"""S2E's two comparisons at a smaller budget: spaces of R(t), and rules that search them.

    python -m benchmarks.papers.s2e_spaces --scale cpu [--problem cifar10]

1. Spaces (the paper's ablation): random search in Co, Single, RBF, MLP and S2E's space under symmetric 20 %,
   symmetric 50 % and pair 45 % noise, beside the paper's numbers (all images, 200 epochs, 50 draws), on MNIST
   with a perceptron or on CIFAR-10 with the paper's small network.
2. Rules at equal numbers of trained epochs, in S2E's space, with the best schedule that each found; ``asng``
   shares one pair of networks among all schedules.

As in the paper the clean test set is halved: one half judges schedules, the other is reported, and the figure
is the best test accuracy over epochs; the mean of the last epochs stands beside it. Every cell retrains its
best schedule with other seeds. Finished cells are kept in the JSON file, so that the command goes on where it
was stopped. One thread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks import images
from benchmarks.noise import make_noise
from benchmarks.papers.s2e_rivals import (
    OPTUNA_RULES,
    RULES,
    SPACES,
    SearchResult,
    SharedWeightsRule,
    search_schedule,
    search_with_hyperband,
    search_with_optuna,
)
from benchmarks.papers.scale import parse_scaled
from engines.contract import TrainingData
from engines.coteaching.config import CoteachingConfig
from engines.coteaching.s2e import Trial
from engines.coteaching.schedules import FloatArray
from engines.coteaching.training import Learners
from engines.shared.device import versions
from engines.shared.run import Run

RESULTS = Path(__file__).resolve().parent.parent / "results" / "s2e_spaces.json"
ALL_RULES = (*RULES, *OPTUNA_RULES, "hyperband", "asng")
NOISES = {
    "symmetric 20 %": ("sym_excl", 0.2),
    "symmetric 50 %": ("sym_excl", 0.5),
    "pair 45 %": ("pair", 0.45),
}
RIVALS = {"Co": "co", "Single": "single", "RBF": "rbf", "MLP": "mlp", "S2E": "paper"}
NETWORKS = {"mnist": "mlp", "cifar10": "cnn_small"}
TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
PAPER = {
    "mnist": {
        "symmetric 20 %": {"Co": 97.83, "Single": 97.67, "RBF": 96.94, "MLP": 97.69, "S2E": 97.87},
        "symmetric 50 %": {"Co": 96.54, "Single": 96.56, "RBF": 95.53, "MLP": 96.16, "S2E": 96.90},
        "pair 45 %": {"Co": 93.27, "Single": 94.99, "RBF": 89.37, "MLP": 93.25, "S2E": 95.47},
    },
    "cifar10": {
        "symmetric 20 %": {"Co": 57.24, "Single": 57.83, "RBF": 56.58, "MLP": 56.82, "S2E": 58.73},
        "symmetric 50 %": {"Co": 47.14, "Single": 47.81, "RBF": 45.15, "MLP": 46.18, "S2E": 50.82},
        "pair 45 %": {"Co": 44.87, "Single": 45.19, "RBF": 42.61, "MLP": 44.26, "S2E": 47.58},
    },
}
LAST_EPOCHS = 5
SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"subset": 256, "epochs": 6, "iterations": 1, "samples": 2},
    "cpu": {},
    "gpu": {"subset": 60_000, "epochs": 200, "iterations": 10, "samples": 5, "seeds": [0, 1, 2, 3, 4]},
}


class Bench:
    """A problem with one kind of noise, and trainings under any schedule on it."""

    def __init__(
        self, problem: str, noise: str, subset: int, epochs: int, seed: int, device: str = "cpu"
    ) -> None:
        kind, rate = NOISES[noise]
        train_images, train_table = images.load(f"{problem}-train", rows=subset, seed=seed)
        test_images, test_table = images.load(f"{problem}-test")
        labels = make_noise(kind, train_table["label"].to_numpy(np.int64), rate, seed, 10).labels
        both = np.concatenate([labels, test_table["label"].to_numpy(np.int64)])
        subset = len(train_images)
        order = subset + torch.randperm(len(test_images), generator=torch.Generator().manual_seed(seed))
        self.rows = torch.arange(subset)
        self.validation, self.test = order.chunk(2)
        self.epochs = epochs
        # The paper's loop: Adam 1e-3, batch 128, pixels in [0, 1], no augmentation, falling after 40 %.
        self.config = CoteachingConfig(
            network=NETWORKS[problem],
            epochs=epochs,
            schedule="linear_tail",
            augment="none",
            as_published=True,
        )
        # Trainings name their rows: the test images are measured, never trained on.
        data = TrainingData(np.concatenate([train_images, test_images]), both, 10)
        self.run = Run("coteaching", data, self.config, seed=seed, device=device, standardized=False)

    def begin(self, curve: FloatArray, stream: str) -> Learners:
        """A fresh pair under ``curve`` (E,)."""
        return Learners(self.run, self.config, curve, self.rows, (stream,))

    def accuracy(self, training: Learners, rows: Tensor) -> float:
        """Mean accuracy of both networks on clean ``rows``."""
        return float(training.evaluate(rows)[1].double().mean())

    def evaluator(self, space: str) -> Callable[[Sequence[FloatArray], int], list[float]]:
        """Validation accuracy of schedules; Hyperband's survivors train on, they do not start again."""
        alive: dict[tuple[float, ...], tuple[Learners, int]] = {}

        def evaluate(xs: Sequence[FloatArray], epochs: int) -> list[float]:
            values, going = [], {}
            for x in xs:
                curve = SPACES[space].keep_rates(x, self.epochs)
                training, done = alive.get(tuple(x), (None, 0))
                training = training or self.begin(curve, "search")
                measured = []
                for epoch in range(done, epochs):
                    training.run_epoch(epoch)
                    if epoch >= epochs - 2:
                        measured.append(self.accuracy(training, self.validation))
                values.append(float(np.mean(measured or [self.accuracy(training, self.validation)])))
                if epochs < self.epochs:
                    going[tuple(x)] = (training, epochs)
            alive.clear()
            alive.update(going)
            return values

        return evaluate

    def retrain(self, curve: FloatArray) -> dict[str, float]:
        """Test accuracy of the found schedule with fresh networks and batches."""
        training, accuracies = self.begin(curve, "final"), []
        for epoch in range(self.epochs):
            training.run_epoch(epoch)
            accuracies.append(self.accuracy(training, self.test))
        return {
            "test_best_over_epochs": round(100 * max(accuracies), 2),
            "test_last_epochs": round(100 * float(np.mean(accuracies[-LAST_EPOCHS:])), 2),
        }


def search_with_shared_weights(
    bench: Bench, space: str, iterations: int, samples: int, seed: int
) -> SearchResult:
    """ASNG: every epoch, ``samples`` schedules each train a copy of the shared pair, and the best copy goes on.

    As many epochs are trained as by the other rules, so the pair lives through ``iterations`` times the length
    of a training, and later epochs keep the schedule's last rate.
    """
    rule, trials = SharedWeightsRule(SPACES[space], seed), []
    shared: dict[str, Any] | None = None
    for epoch in range(iterations * bench.epochs):
        accuracies, states = [], []
        xs = rule.ask(epoch, samples)
        for x in xs:
            curve = SPACES[space].keep_rates(x, bench.epochs)
            late = np.full(iterations * bench.epochs - len(curve), curve[-1])
            training = bench.begin(np.concatenate([curve, late]), "search")
            if shared is not None:
                training.load_state_dict(shared)
            training.run_epoch(epoch)
            accuracies.append(bench.accuracy(training, bench.validation))
            states.append(training.state_dict())
            trials.append(Trial(tuple(map(float, x)), accuracies[-1]))
        shared = states[int(np.argmax(accuracies))]
        rule.tell(xs, np.array(accuracies))
    final = tuple(map(float, rule.relaxation.mean(rule.theta)))
    last = float(np.mean([trial.accuracy for trial in trials[-samples:]]))
    return SearchResult(Trial(final, last), tuple(trials), ())


def run_cell(bench: Bench, space: str, rule: str, iterations: int, samples: int, seed: int) -> dict[str, Any]:
    """Search one space with one rule and retrain the best schedule."""
    start, cpu = time.perf_counter(), time.process_time()
    evaluate = bench.evaluator(space)
    if rule == "asng":
        result = search_with_shared_weights(bench, space, iterations, samples, seed)
    elif rule == "hyperband":
        tried = search_with_hyperband(
            SPACES[space], evaluate, trainings=iterations * samples, epochs=bench.epochs, seed=seed
        )
        best = max((t for t in tried if t.epochs == bench.epochs), key=lambda t: t.accuracy)
        trials = tuple(Trial(trial.x, trial.accuracy) for trial in tried)
        result = SearchResult(Trial(best.x, best.accuracy), trials, ())
    else:
        search = search_with_optuna if rule in OPTUNA_RULES else search_schedule
        result = search(
            SPACES[space],
            lambda x: evaluate([x], bench.epochs)[0],
            rule=rule,
            iterations=iterations,
            samples=samples,
            seed=seed,
        )
    curve: NDArray[np.float64] = SPACES[space].keep_rates(np.array(result.best.x), bench.epochs)
    return {
        **bench.retrain(curve),
        "validation_best": round(100 * result.best.accuracy, 2),
        "validation_trials": [round(100 * trial.accuracy, 2) for trial in result.trials],
        "iteration_means": [round(100 * mean, 2) for mean in result.iteration_means],
        "keep_rates": [round(float(rate), 4) for rate in curve],
        "parameters": dict(zip(SPACES[space].parameters, result.best.x, strict=True)),
        "seconds": round(time.perf_counter() - start, 1),
        "processor_seconds": round(time.process_time() - cpu, 1),
    }


def plan_cells(arguments: argparse.Namespace) -> list[tuple[str, str, str, int]]:
    """(noise, space, rule, seed) of every cell: the spaces' table first, then the rules'."""
    cells = [
        (noise, space, "random", seed)
        for seed in arguments.seeds
        for noise in arguments.noises
        for space in RIVALS.values()
    ]
    cells += [
        (noise, "paper", rule, seed)
        for seed in arguments.seeds
        for noise in arguments.rule_noises
        for rule in ALL_RULES
        if rule != "random"
    ]
    return cells


def page(documents: dict[str, Any]) -> str:
    """Ours beside the paper's, and the rules beside each other, by problem; means over seeds."""
    lines = [
        "# S2E: spaces of R(t), and rules that search them",
        "",
        "Best test accuracy over epochs in percent, as the paper reports it, mean over seeds ± half their range; "
        "the last epochs' mean, every trial, the schedule and versions are in `s2e_spaces.json`. "
        "`python -m benchmarks.papers.s2e_spaces` fills it (resumable), and writes this page.",
    ]
    for problem, document in documents.items():
        lines += _part(problem, document)
    return "\n".join(lines) + "\n"


def _part(problem: str, document: dict[str, Any]) -> list[str]:
    budget, cells = document["budget"], document["cells"]

    def found(noise: str, space: str, rule: str) -> list[dict[str, Any]]:
        return [cell for key, cell in cells.items() if key.split(" | ")[:3] == [noise, space, rule]]

    def spread(of: list[dict[str, Any]], name: str) -> str:
        values = [cell[name] for cell in of]
        return f"{np.mean(values):.1f}" + (f" ± {(max(values) - min(values)) / 2:.1f}" if len(of) > 1 else "")

    lines = [
        "",
        f"## {TITLES[problem]}",
        "",
        f"{budget['images']:,} images (paper all), {budget['epochs']} epochs (200), "
        f"{budget['trainings_a_cell']} trainings a cell (50 draws), {budget['network']}; {budget['device']}.",
        "",
        "### Spaces, searched at random: ours / paper (difference)",
        "",
        "| noise | " + " | ".join(RIVALS) + " |",
        "| --- |" + " --- |" * len(RIVALS),
    ]
    for noise in NOISES:
        row = []
        for name, space in RIVALS.items():
            mine, paper = found(noise, space, "random"), PAPER[problem][noise][name]
            gap = f"({np.mean([c['test_best_over_epochs'] for c in mine]) - paper:+.1f})" if mine else ""
            row.append(f"{spread(mine, 'test_best_over_epochs') if mine else '-'} / {paper} {gap}".rstrip())
        lines.append(f"| {noise} | " + " | ".join(row) + " |")
    if not any(found(noise, "paper", "newton") for noise in NOISES):
        return lines
    lines += [
        "",
        "### Rules, at equal numbers of trained epochs, in S2E's space",
        "",
        "`asng` trains no schedule on its own, so its figure on validation is that of the shared pair.",
        "ASNG's steps are the published ones; that the best of the copies goes on is ours.",
        "",
        "| noise | rule | best over epochs | last epochs | on validation | seeds | best schedule R(t) of the first "
        "seed, five of its epochs |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for noise in NOISES:
        rules = {rule: found(noise, "paper", rule) for rule in ALL_RULES}
        if not rules["newton"]:
            continue
        order = sorted(
            (rule for rule in rules if rules[rule]),
            key=lambda rule: -float(np.mean([cell["test_best_over_epochs"] for cell in rules[rule]])),
        )
        for rule in order:
            rates = rules[rule][0]["keep_rates"]
            picked = ", ".join(f"{rates[i]:.2f}" for i in np.linspace(0, len(rates) - 1, 5).astype(int))
            figures = " | ".join(
                spread(rules[rule], name)
                for name in ("test_best_over_epochs", "test_last_epochs", "validation_best")
            )
            lines.append(f"| {noise} | {rule} | {figures} | {len(rules[rule])} | {picked} |")
    return lines


def main() -> None:
    """Run the cells that the results do not hold yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--problem", choices=list(NETWORKS), default="mnist")
    parser.add_argument(
        "--noises", nargs="+", default=list(NOISES), choices=list(NOISES), help="of the spaces"
    )
    parser.add_argument("--subset", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=2)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--rule-noises", nargs="*", default=["pair 45 %"], choices=list(NOISES))
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parse_scaled(parser, SCALES)
    torch.set_num_threads(1)
    stated = {
        "images": arguments.subset,
        "epochs": arguments.epochs,
        "trainings_a_cell": arguments.iterations * arguments.samples,
        "network": NETWORKS[arguments.problem],
        "device": f"{arguments.device}, one thread",
        "versions": versions(),
        "paper": {"epochs": 200, "draws": 50, "best_test_accuracy": PAPER[arguments.problem]},
    }
    documents: dict[str, Any] = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    document = documents.setdefault(arguments.problem, {"budget": stated, "cells": {}})
    if any(document["budget"][key] != stated[key] for key in ("images", "epochs", "trainings_a_cell")):
        parser.error(f"{arguments.out} holds another budget; give --out or the same budget.")
    cells: dict[str, Any] = document["cells"]
    for noise, space, rule, seed in plan_cells(arguments):
        key = f"{noise} | {space} | {rule} | {seed}"
        if key in cells:
            continue
        bench = Bench(arguments.problem, noise, arguments.subset, arguments.epochs, seed, arguments.device)
        cells[key] = run_cell(bench, space, rule, arguments.iterations, arguments.samples, seed)
        print(
            key,
            {k: cells[key][k] for k in ("test_best_over_epochs", "validation_best", "seconds")},
            flush=True,
        )
        arguments.out.parent.mkdir(exist_ok=True)
        partial = arguments.out.with_suffix(".partial")
        partial.write_text(json.dumps(documents, indent=1) + "\n")
        partial.replace(arguments.out)
    if cells:
        arguments.out.with_suffix(".md").write_text(page(documents))


if __name__ == "__main__":
    main()
