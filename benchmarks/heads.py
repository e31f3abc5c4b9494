"""One network on the images and heads on what it saw: what do they find together, and who should lead?

    python -m benchmarks.heads                       # trains what is missing, then writes the page
    python -m benchmarks.heads --report              # only the page, from what the work folder has

Where there is no backbone, an audit within a budget trains the plain network on the images and the other engines on
its features (``keeps_features``). Each set is trained so once; what every engine says is kept in the work folder,
so that a rule for the consensus can be tried without training again. Known truth measures and never trains. Cost is
CPU time of this process.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from auditor.audits import budgets, plan
from auditor.bridges import engine_bridge
from auditor.statistics import Witness, combine
from benchmarks import images
from benchmarks.backbones import CONFUSED, photos
from benchmarks.detection import WORK, scores_of
from benchmarks.noise import make_noise
from engines.contract import TrainingData
from engines.registry import ENGINES
from engines.shared.device import describe_device, resolve_device, versions


@dataclass(frozen=True)
class Case:
    """One set of images with one kind of wrong labels."""

    name: str
    data: str
    """``cifar10``, ``mnist`` or ``clothing``."""
    noise: str
    """A column of human labels, a kind of ``benchmarks.noise``, or ``confused``."""
    rate: float
    rows: int
    epochs: int
    """Of the network on the images."""
    seed: int

    @property
    def key(self) -> str:
        """As the work folder and the results call it."""
        return f"{self.name}-{self.rows}-{self.epochs}-{self.seed}"


NOISES = (
    ("aggre", "cifar10", "label_aggre", 0.0),
    ("pair45", "cifar10", "pair", 0.45),
    ("asym40", "cifar10", "asym_cifar10", 0.4),
    ("random1", "cifar10", "label_random1", 0.0),
    ("sym40", "cifar10", "sym_excl", 0.4),
    ("pair30", "cifar10", "pair", 0.3),
    ("asym20", "cifar10", "asym_cifar10", 0.2),
    ("mnist_pair45", "mnist", "pair", 0.45),
    ("mnist_sym20", "mnist", "sym_excl", 0.2),
    ("clothing", "clothing", "confused", 0.15),
)
CASES = tuple(
    Case(name, data, noise, rate, 341 if data == "clothing" else rows, epochs, seed)
    for seed, rows, epochs in ((0, 5_000, 30), (1, 5_000, 30))
    for name, data, noise, rate in NOISES
)
RESULTS = Path(__file__).resolve().parent / "results" / "heads.json"
NAMES = [plan.TRUNK, *(name for name in engine_bridge.ENGINE_ORDER if name != plan.TRUNK)]


def main() -> None:
    """Train what is missing and write what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=[one.key for one in CASES])
    parser.add_argument("--report", action="store_true", help="train nothing")
    parser.add_argument("--work", type=Path, default=WORK / "heads")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for case in () if arguments.report else CASES:
        if not arguments.sets or case.key in arguments.sets:
            train(case, arguments.work / case.key)
    stored = json.loads(arguments.out.read_text()) if arguments.out.exists() else {"sets": {}}
    for case in CASES:
        folder = arguments.work / case.key
        if all((folder / f"{name}.npz").exists() for name in NAMES):
            stored["sets"][case.key] = row_of(case, folder)
    stored |= {"device": describe_device(resolve_device("cpu")), "versions": versions()}
    arguments.out.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
    arguments.out.with_suffix(".md").write_text(page(stored["sets"]))


def task(case: Case) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], int]:
    """Images (N, C, H, W), given and true labels (N,), and the number of classes."""
    if case.data == "clothing":
        pixels, truth, classes = photos()
        partner = np.array([classes.index(CONFUSED[name]) for name in classes])
        hit = np.random.default_rng([case.seed, 15]).random(len(truth)) < case.rate
        return pixels, np.where(hit, partner[truth], truth), truth, len(classes)
    pixels, table = images.load(f"{case.data}-train", rows=case.rows, seed=case.seed)
    truth = table["label"].to_numpy(dtype=np.int64)
    if case.noise in table.columns:
        return pixels, table[case.noise].to_numpy(dtype=np.int64), truth, 10
    return pixels, make_noise(case.noise, truth, case.rate, case.seed, num_classes=10).labels, truth, 10


def train(case: Case, folder: Path) -> None:
    """The network on the images, then each head on its features; what is there already stays."""
    if all((folder / f"{name}.npz").exists() for name in NAMES):
        return
    pixels, given, truth, num_classes = task(case)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "labels.npz", given=given, true=truth)
    for name in NAMES:
        if (folder / f"{name}.npz").exists():
            continue
        config = ENGINES[name].config_type.preset("quick")
        if name == plan.TRUNK:
            config = dataclasses.replace(config, epochs=case.epochs, keeps_features=True)
            data = TrainingData(pixels, given, num_classes)
        else:
            config = config.for_features()
            data = TrainingData(None, given, num_classes, features=np.load(folder / "features.npy"))
        began = time.process_time()
        result = ENGINES[name].train(data, config, seed=case.seed, device="cpu")
        cost = time.process_time() - began
        if result.features is not None:
            np.save(folder / "features.npy", result.features)
        np.savez(folder / f"{name}.npz", trust=result.trust_score, pred_probs=result.pred_probs, cpu_s=cost)
        print(
            case.key,
            name,
            {key: round(v, 3) for key, v in scores_of(given != truth, -result.trust_score).items()},
            f"{cost:.0f} CPU s",
            flush=True,
        )


def witness_of(folder: Path, name: str) -> Witness:
    """What one of them said, as the product hears it."""
    arrays = np.load(folder / f"{name}.npz")
    return Witness(name, arrays["trust"], arrays["pred_probs"], None if name == plan.TRUNK else plan.TRUNK)


def row_of(case: Case, folder: Path) -> dict[str, Any]:
    """What each finds alone, and all together: as heads, and as if each were a witness of its own."""
    labels = np.load(folder / "labels.npz")
    given, wrong = labels["given"], labels["given"] != labels["true"]
    num_classes = int(max(given.max(), labels["true"].max())) + 1
    heads = [witness_of(folder, name) for name in NAMES]
    together = combine(heads, given, num_classes)
    apart = combine([dataclasses.replace(one, trunk=None) for one in heads], given, num_classes)
    two = [one for one in heads if one.name in (plan.TRUNK, budgets.KEPT)]
    return {
        "rows": len(given),
        "epochs": case.epochs,
        "seed": case.seed,
        "wrong": float(wrong.mean()),
        "alone": {one.name: scores_of(wrong, -one.trust_score) for one in heads},
        "consensus": scores_of(wrong, -together.trust_score),
        "weighting": together.weighting,
        "weights": {name: float(weight) for name, weight in together.weights.items()},
        "apart": scores_of(wrong, -apart.trust_score),
        "weighting apart": apart.weighting,
        "two": scores_of(wrong, -combine(two, given, num_classes).trust_score),
        "correlations": {
            name: float(value) for name, value in zip(NAMES, together.rank_correlations[0], strict=True)
        },
        "cpu_seconds": {name: float(np.load(folder / f"{name}.npz")["cpu_s"]) for name in NAMES},
    }


def page(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """The figures as a page."""
    head = ["set", "wrong", *NAMES, "rank correlation of L2B", "apart", "together", "with L2B alone"]
    lines = [
        "# One network on the images and heads on what it saw",
        "",
        "Without a backbone, an audit within a budget trains `cross_entropy` on the images and the others on "
        "its features, taken after a third of its epochs. AUROC / average precision of each alone and of the "
        "consensus without verified rows: *apart*, as if each were a witness of its own (agreement), and "
        "*together*, where a head counts by how far it parts from its trunk (`auditor/statistics/weights.py`). The "
        "last column is the network with L2B's head and no other. Presets `quick`; the network's epochs stand in "
        "the name of the set before the seed, its rows before them. One thread; known truth measures only.",
        "",
        "The constants of the rule were chosen on the six sets of CIFAR-10 with seed 0 that are not `asym20`. "
        "The others were not looked at before.",
        "",
        *_means(rows),
        f"| {' | '.join(head)} |",
        f"| --- | {' | '.join(['---:'] * (len(head) - 1))} |",
    ]
    for key, row in rows.items():
        each = [_cell(row["alone"][name]) for name in NAMES]
        lines.append(
            f"| {key} | {row['wrong']:.1%} | {' | '.join(each)} | {row['correlations']['l2b']:.2f} "
            f"| {_cell(row['apart'])} | **{_cell(row['consensus'])}** | {_cell(row['two'])} |"
        )
    lines += ["", "`python -m benchmarks.heads` writes this page."]
    return "\n".join(lines) + "\n"


CHOSEN_ON = tuple(f"{name}-5000-30-0" for name in ("aggre", "random1", "asym40", "pair30", "pair45", "sym40"))


def _means(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Mean AUROC of the sets that the rule was chosen on and of the others, in words."""
    found = []
    for title, keys in (
        ("Chosen on", [key for key in rows if key in CHOSEN_ON]),
        ("Not looked at before", [key for key in rows if key not in CHOSEN_ON]),
    ):
        if keys:
            mean = {
                name: float(np.mean([_of(rows[key], name)["auroc"] for key in keys]))
                for name in ("trunk", "apart", "consensus", "two")
            }
            found.append(
                f"- {title} ({len(keys)} sets): mean AUROC of the network alone {mean['trunk']:.3f}, apart "
                f"{mean['apart']:.3f}, together {mean['consensus']:.3f}, with L2B alone {mean['two']:.3f}."
            )
    return [*found, ""]


def _of(row: Mapping[str, Any], name: str) -> Mapping[str, float]:
    found: Mapping[str, float] = row["alone"][plan.TRUNK] if name == "trunk" else row[name]
    return found


def _cell(scores: Mapping[str, float]) -> str:
    return f"{scores['auroc']:.3f} / {scores['ap']:.3f}"


if __name__ == "__main__":
    main()
