"""What a backbone changes: audits on its features, from scratch and by peers, against what they cost.

    python -m benchmarks.standin --out ~/standin            # once: a stand-in for pretrained weights
    python -m benchmarks.backbones --weights ~/standin/resnet10t.safetensors
    python -m benchmarks.backbones_report                   # the page and its plot

Audited are the 25,000 images of CIFAR-10 that the stand-in never saw, with human labels (``label_aggre``,
``label_random1``) and with planted asymmetric 40 % and pair 45 % noise, and a folder of 341 photos of clothes with
planted confusions. One cell is (problem, seed, method). Finished cells are kept, so the command goes on where it
was stopped; ``--minutes 10`` stops it before the next cell. The features are computed once, by the code that an
audit uses, and their cost is a cell of its own.

The machine may be in use by others, so cost is CPU time of this process (all threads), never wall time.
Known truth is used to measure, never to train or to choose.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from auditor.audits import budgets, plan
from auditor.bridges import engine_bridge
from auditor.statistics import Witness, combine
from benchmarks import images
from benchmarks.detection import load_results, scores_of, update
from benchmarks.noise import make_noise
from benchmarks.standin import HALF
from engines.backbones import embed
from engines.contract import EngineResult, TrainingData
from engines.networks.pretrained import backbone
from engines.registry import ENGINES
from engines.shared.device import describe_device, resolve_device, versions

RESULTS = Path(__file__).resolve().parent / "results" / "backbones.json"
WORK = (
    Path(os.environ.get("AUDITOR_BENCH_WORK", Path.home() / ".cache" / "label-auditor-bench")) / "backbones"
)
FOLDS = 5
PHOTO_SIDE = 64
"""Pixels of the photos; that of the stand-in's own training."""
CONFUSED = {
    "t-shirt": "shirt",
    "shirt": "longsleeve",
    "longsleeve": "t-shirt",
    "pants": "shorts",
    "shorts": "pants",
    "dress": "skirt",
    "skirt": "dress",
    "outwear": "longsleeve",
    "hat": "shoes",
    "shoes": "hat",
}
"""Classes of clothes that planted errors take for each other."""
PART, PART_ROWS = "cifar_part", 1_000
"""The first images of ``cifar``: what fine-tuning is compared on, which takes hours on all of them."""
EARLY = "cifar_early"
"""The images of ``cifar``, seen by the first three of the stand-in's four stages: weak features."""


@dataclass(frozen=True)
class Problem:
    """One data set with one kind of wrong labels."""

    name: str
    source: str
    """``cifar``, ``cifar_part``, ``cifar_early`` or ``clothing``."""
    noise: str
    """A column of human labels, a kind of ``benchmarks.noise``, or ``confused``."""
    rate: float = 0.0


PROBLEMS = (
    Problem("aggre", "cifar", "label_aggre"),
    Problem("random1", "cifar", "label_random1"),
    Problem("asym40", "cifar", "asym_cifar10", 0.4),
    Problem("pair45", "cifar", "pair", 0.45),
    Problem("clothing", "clothing", "confused", 0.15),
    Problem("pair30", "cifar", "pair", 0.3),
    Problem("asym20", "cifar", "asym_cifar10", 0.2),
    Problem("sym40", "cifar", "sym_excl", 0.4),
    Problem("part_aggre", PART, "label_aggre"),
    Problem("part_random1", PART, "label_random1"),
    Problem("early_aggre", EARLY, "label_aggre"),
    Problem("early_asym40", EARLY, "asym_cifar10", 0.4),
    Problem("early_pair45", EARLY, "pair", 0.45),
)
MAIN = ("aggre", "random1", "asym40", "pair45", "clothing")
"""Problems that every method is run on by default; the others are for what engines cost each other."""


@dataclass(frozen=True, eq=False)
class Source:
    """The images of a set, what is known about them, and their features."""

    pixels: NDArray[np.uint8]
    """(N, C, H, W)."""
    columns: Mapping[str, NDArray[np.int64]]
    """``label`` is the truth; others are human labels."""
    num_classes: int
    classes: tuple[str, ...]
    features: NDArray[np.float16] | None
    """(N, V, D); None where no method that is asked for needs them."""
    pretrained: engine_bridge.Pretrained
    """What the features come from, to train it further."""


@dataclass(frozen=True, eq=False)
class Task:
    """A problem with its labels drawn."""

    source: Source
    given: NDArray[np.int64]
    truth: NDArray[np.int64]
    seed: int

    @property
    def on_features(self) -> TrainingData:
        """What an engine gets from a backbone."""
        return TrainingData(None, self.given, self.source.num_classes, features=self.source.features)

    @property
    def on_images(self) -> TrainingData:
        """What an engine gets without one."""
        return TrainingData(self.source.pixels, self.given, self.source.num_classes)

    @property
    def flat(self) -> NDArray[np.float32]:
        """(N, D) mean over the views, each value standardised: what peers are given."""
        assert self.source.features is not None
        mean = self.source.features.mean(axis=1, dtype=np.float32)
        found: NDArray[np.float32] = (mean - mean.mean(0)) / np.maximum(mean.std(0), 1e-6)
        return found


@dataclass(frozen=True, eq=False)
class Finding:
    """What one method says."""

    trust: Mapping[str, NDArray[np.floating]]
    """By row of the table, (N,): high = the given label looks right."""
    pred_probs: NDArray[np.floating] | None
    config: Mapping[str, Any]
    extra: Mapping[str, float] = dataclasses.field(default_factory=dict)
    witness_probs: Mapping[str, NDArray[np.floating]] = dataclasses.field(default_factory=dict)
    """By engine, (N, K): what a consensus of several is computed from anew."""


def on_features(name: str) -> Callable[[Task], Finding]:
    """An engine of the product under ``quick``, on the features."""

    def run(task: Task) -> Finding:
        config = ENGINES[name].config_type.preset("quick").for_features()
        result = ENGINES[name].train(task.on_features, config, seed=task.seed, device="cpu")
        return _of_engine(name, result, config.as_dict())

    return run


def from_scratch(name: str, epochs: int | None) -> Callable[[Task], Finding]:
    """An engine of the product under ``quick`` on the images, with so many epochs (None: the preset's own)."""

    def run(task: Task) -> Finding:
        config = ENGINES[name].config_type.preset("quick")
        if epochs is not None:
            config = dataclasses.replace(config, epochs=epochs)
        result = ENGINES[name].train(task.on_images, config, seed=task.seed, device="cpu")
        return _of_engine(f"scratch_{name}", result, config.as_dict())

    return run


def finetuned(name: str, epochs: int | None = None) -> Callable[[Task], Finding]:
    """An engine of the product under ``quick`` that trains the whole backbone on the images, from its weights."""

    def run(task: Task) -> Finding:
        from_here = task.source.pretrained
        config = (
            ENGINES[name]
            .config_type.preset("quick")
            .for_finetuning(from_here.network, from_here.weights, from_here.side)
        )
        if epochs is not None:
            config = dataclasses.replace(config, epochs=epochs)
        result = ENGINES[name].train(task.on_images, config, seed=task.seed, device="cpu")
        kept = config.as_dict() | {"weights": Path(str(from_here.weights)).name}
        return _of_engine(f"finetuned_{name}", result, kept)

    return run


def within_budget(minutes: int) -> Callable[[Task], Finding]:
    """What ``--budget`` does without a backbone: the first rung whose estimate fits, and its consensus.

    The budget is one of two cores; this runs on one thread, which is given twice the time. The map of an audit is
    left out.
    """

    def run(task: Task) -> Finding:
        pixels, num_classes = task.source.pixels, task.source.num_classes
        names = list(engine_bridge.ENGINE_ORDER)
        estimate: dict[str, float] = {}
        for rung in budgets.rungs(
            names,
            {},
            num_rows=len(pixels),
            side=max(pixels.shape[2:]),
            trunk=plan.TRUNK,
            reduces=True,
            may_leave_out=True,
        ):
            heads = plan.heads_of(rung.engines, rung.options)
            configs = engine_bridge.configs(rung.engines, rung.preset, rung.options)
            configs |= engine_bridge.configs(
                heads, rung.preset, {name: rung.options.get(name, {}) for name in heads}, on_features=True
            )
            estimate = engine_bridge.estimated_seconds(
                configs, pixels.shape[1:], len(pixels), num_classes, device="cpu", on_features=heads
            )
            if sum(estimate.values()) <= 2 * 60 * minutes:
                break
        witnesses, seen = [], None
        for name in rung.engines:
            data = task.on_images
            if name in heads:
                data = TrainingData(None, task.given, num_classes, features=seen)
            config = ENGINES[name].config_type(**configs[name])
            result = ENGINES[name].train(data, config, seed=task.seed, device="cpu")
            seen = result.features if name == plan.TRUNK else seen
            witnesses.append(Witness(name, result.trust_score, result.pred_probs, result.is_out_of_sample))
        together = combine(witnesses, task.given, num_classes)
        trust = {f"from scratch, budget of {minutes} min": together.reading.trust_score}
        trust |= {f"of it, {one.name} ({minutes} min)": one.trust_score for one in witnesses}
        extra = {"estimated seconds": sum(estimate.values())}
        probs = {one.name: one.pred_probs for one in witnesses if one.pred_probs is not None}
        return Finding(trust, None, {"does": rung.sentence, "engines": rung.engines}, extra, probs)

    return run


def cleanlab_on_logistic(task: Task) -> Finding:
    """cleanlab's scores and estimators on out-of-fold predictions of a logistic regression on the features."""
    from cleanlab.count import compute_confident_joint, estimate_joint
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    model = LogisticRegression(max_iter=200, C=0.1)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=task.seed)
    probs = cross_val_predict(model, task.flat, task.given, cv=folds, method="predict_proba")
    probs = np.clip(probs, 1e-12, None)
    probs /= probs.sum(axis=1, keepdims=True)
    joint = estimate_joint(task.given, probs, confident_joint=compute_confident_joint(task.given, probs))
    flags = find_label_issues(task.given, probs)
    wrong = task.given != task.truth
    hits = int((flags & wrong).sum())
    logs = np.log(probs)
    rows = np.arange(len(probs))
    own = logs[rows, task.given]
    logs[rows, task.given] = -np.inf
    return Finding(
        {
            "cleanlab: self-confidence": get_label_quality_scores(
                task.given, probs, method="self_confidence"
            ),
            "cleanlab: normalized margin": get_label_quality_scores(
                task.given, probs, method="normalized_margin"
            ),
            "the same predictions, our margin": own - logs.max(axis=1),
        },
        probs,
        {"model": "LogisticRegression", "C": 0.1, "max_iter": 200, "folds": FOLDS},
        {
            "guessed rate": float(1 - np.trace(joint)),
            "flagged": float(flags.mean()),
            "flags that are wrong labels": hits / max(int(flags.sum()), 1),
            "wrong labels flagged": hits / max(int(wrong.sum()), 1),
        },
    )


def datalab_on_features(task: Task) -> Finding:
    """cleanlab's Datalab with the features alone, as its own documentation calls it."""
    from cleanlab import Datalab

    lab = Datalab({"label": task.given.tolist()}, label_name="label", task="classification", verbosity=0)
    lab.find_issues(features=task.flat, issue_types={"label": {}})
    found = lab.get_issues("label")
    return Finding(
        {"Datalab with features": found["label_score"].to_numpy()},
        None,
        {"issue_types": "label"},
        {"flagged": float(found["is_label_issue"].mean())},
    )


METHODS: dict[str, Callable[[Task], Finding]] = {
    "neighbours": on_features("neighbours"),
    "cross_entropy": on_features("cross_entropy"),
    "coteaching": on_features("coteaching"),
    "l2b": on_features("l2b"),
    "choicenet": on_features("choicenet"),
    "cleanlab": cleanlab_on_logistic,
    "datalab": datalab_on_features,
    "umn": on_features("umn"),
    "scratch_5": from_scratch("cross_entropy", 5),
    "scratch_15": from_scratch("cross_entropy", 15),
    "scratch_45": from_scratch("cross_entropy", 45),
    "budget_2": within_budget(2),
    "budget_10": within_budget(10),
    "budget_30": within_budget(30),
    "finetuned_cross_entropy": finetuned("cross_entropy"),
    "finetuned_cross_entropy_3": finetuned("cross_entropy", 3),
    "finetuned_choicenet": finetuned("choicenet"),
    "finetuned_coteaching": finetuned("coteaching"),
    "finetuned_l2b": finetuned("l2b"),
    "finetuned_umn": finetuned("umn"),
}
SLOW = tuple(name for name in METHODS if name.startswith(("scratch", "budget", "finetuned")))
"""Minutes a cell, or hours; run where they are named. None of them needs the features."""


def main() -> None:
    """Run every missing cell."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    began = time.monotonic()
    sources: dict[str, Source] = {}
    wanted = [one for one in PROBLEMS if one.name in (arguments.problems or MAIN)]
    methods = arguments.methods or [name for name in METHODS if name not in SLOW]
    for seed in arguments.seeds:
        for problem in wanted:
            for method in methods:
                key = f"{problem.name}|{seed}|{method}"
                if key in load_results(arguments.out)["cells"]:
                    continue
                if arguments.minutes and time.monotonic() - began > 60 * arguments.minutes:
                    print("out of time; the same command goes on", flush=True)
                    return
                if problem.source not in sources:
                    sees_features = any(name not in SLOW for name in methods)
                    sources[problem.source] = open_source(problem.source, arguments, sees_features)
                task = make_task(problem, sources[problem.source], seed)
                _run_cell(key, problem, task, method, arguments)


def open_source(name: str, arguments: argparse.Namespace, sees_features: bool) -> Source:
    """The images of ``cifar`` (the half that the stand-in never saw) or ``clothing``, and their features."""
    if name in ("cifar", PART, EARLY):
        pixels, table = images.load("cifar10-train")
        end = HALF + PART_ROWS if name == PART else None
        pixels, table = pixels[HALF:end], table.iloc[HALF:end]
        columns = {column: table[column].to_numpy(dtype=np.int64) for column in table.columns}
        classes = tuple(str(number) for number in range(10))
    else:
        pixels, labels, classes = photos()
        columns = {"label": labels}
    found = _features(name, pixels, arguments) if sees_features else None
    pretrained = engine_bridge.Pretrained(arguments.backbone, str(arguments.weights), arguments.side)
    return Source(pixels, columns, len(classes), classes, found, pretrained)


def photos() -> tuple[NDArray[np.uint8], NDArray[np.int64], tuple[str, ...]]:
    place = images.folder() / "clothing"
    classes = tuple(sorted(folder.name for folder in place.iterdir() if folder.is_dir()))
    seen, labels = [], []
    for number, name in enumerate(classes):
        for path in sorted((place / name).iterdir()):
            picture = (
                Image.open(path).convert("RGB").resize((PHOTO_SIDE, PHOTO_SIDE), Image.Resampling.BICUBIC)
            )
            seen.append(np.asarray(picture).transpose(2, 0, 1))
            labels.append(number)
    return np.ascontiguousarray(np.stack(seen)), np.array(labels, dtype=np.int64), classes


def _features(name: str, pixels: NDArray[np.uint8], arguments: argparse.Namespace) -> NDArray[np.float16]:
    """(N, V, D), computed once and kept in the work folder; the cost is written beside the other cells."""
    path = arguments.work / f"{name}-{arguments.views}v.npy"
    if path.exists():
        kept: NDArray[np.float16] = np.load(path, mmap_mode="r")
        return kept
    arguments.work.mkdir(parents=True, exist_ok=True)
    network = backbone(arguments.backbone, arguments.weights, side=arguments.side)
    if name == EARLY:
        network.network = _EarlyStages(network.network)
    began = time.process_time()
    found = embed(pixels, network, views=arguments.views, device=torch.device("cpu"))
    cost = {
        "cpu_seconds": time.process_time() - began,
        "rows": len(pixels),
        "shape": list(found.shape),
        "backbone": arguments.backbone,
        "side": arguments.side,
    }
    beside = path.with_suffix(".writing.npy")
    np.save(beside, found)
    beside.replace(path)
    update(arguments.out, "embedding", {name: cost})
    print(f"embedding {name}: {cost['cpu_seconds']:.0f} CPU seconds", flush=True)
    return np.asarray(found)


class _EarlyStages(torch.nn.Module):
    """A ResNet of timm without its last stage."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(B, C, H, W) to (B, D)."""
        one = self.network
        seen = one.maxpool(one.act1(one.bn1(one.conv1(images))))
        found: torch.Tensor = one.layer3(one.layer2(one.layer1(seen))).mean((2, 3))
        return found


def make_task(problem: Problem, source: Source, seed: int) -> Task:
    """Draw the wrong labels of a problem; the seed decides them, and human labels are always the same."""
    truth = source.columns["label"]
    if problem.noise in source.columns:
        given = source.columns[problem.noise]
    elif problem.noise == "confused":
        partner = np.array([source.classes.index(CONFUSED[name]) for name in source.classes])
        hit = np.random.default_rng([seed, 15]).random(len(truth)) < problem.rate
        given = np.where(hit, partner[truth], truth)
    else:
        given = make_noise(problem.noise, truth, problem.rate, seed, num_classes=source.num_classes).labels
    return Task(source, given.astype(np.int64), truth, seed)


def _of_engine(name: str, result: EngineResult, config: Mapping[str, Any]) -> Finding:
    return Finding({name: result.trust_score}, result.pred_probs, config)


def _run_cell(key: str, problem: Problem, task: Task, method: str, arguments: argparse.Namespace) -> None:
    cpu = time.process_time()
    finding = METHODS[method](task)
    cpu_seconds = time.process_time() - cpu
    wrong = task.given != task.truth
    cell = {
        "problem": problem.name,
        "rows": len(wrong),
        "seed": task.seed,
        "method": method,
        "noise_rate": float(wrong.mean()),
        "cpu_seconds": cpu_seconds,
        "scores": {
            name: scores_of(wrong, -np.asarray(values, float)) for name, values in finding.trust.items()
        },
        "extra": dict(finding.extra),
        "config": dict(finding.config),
        "device": describe_device(resolve_device("cpu")),
        "threads": torch.get_num_threads(),
        "versions": versions(),
    }
    if finding.pred_probs is not None:
        said = finding.pred_probs.argmax(axis=1)
        cell["prediction_accuracy"] = float((said == task.truth).mean())
    save_arrays(arguments.work, problem.name, task, method, finding)
    update(arguments.out, "cells", {key: cell})
    name, first = next(iter(cell["scores"].items()))
    print(f"{key}: {name} {first['auroc']:.4f} / {first['ap']:.4f}, {cpu_seconds:.0f} CPU s", flush=True)


def save_arrays(work: Path, problem: str, task: Task, method: str, finding: Finding) -> None:
    """Keep what the consensus is computed from."""
    folder = work / f"{problem}-{task.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "labels.npz", given=task.given, true=task.truth)
    arrays = {f"trust {name}": np.asarray(values, np.float32) for name, values in finding.trust.items()}
    arrays |= {
        f"probs {name}": np.asarray(probs, np.float32) for name, probs in finding.witness_probs.items()
    }
    if finding.pred_probs is not None:
        arrays["pred_probs"] = np.asarray(finding.pred_probs, np.float32)
    np.savez(folder / f"{method}.npz", **arrays)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--backbone", default="timm:resnet10t")
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--views", type=int, default=4, help="as an audit takes by default")
    parser.add_argument("--problems", nargs="+", choices=[one.name for one in PROBLEMS])
    parser.add_argument(
        "--methods", nargs="+", choices=list(METHODS), help="default: all but those from scratch"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=0.0, help="stop before the next cell after so long")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--work", type=Path, default=WORK)
    return parser.parse_args()


if __name__ == "__main__":
    main()
