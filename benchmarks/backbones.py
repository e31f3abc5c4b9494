"""What an audit finds on features of real pretrained networks, beside peers on the same features.

    python -m benchmarks.backbones            # every missing run
    python -m benchmarks.backbones_page       # the page and its plot, from the figures

Networks are those that come with the installation (EfficientNet-lite0 and lite2, ImageNet), alone and side by
side, and embed by the product's own code. Audited are rows 25,000 onward of CIFAR-10's training images (each seed
has a block of rows of its own below 25,000) with labels that people gave or with planted errors, the first images
of MNIST's test set, and photos of clothes with planted confusions. One run is (labels, rows, seed, network, method)
and one line of ``results/backbones.jsonl``, the last line of a run counts. Finished ones are not repeated, but for
``--again l2b``, which repeats those of an engine and the consensus. Known truth measures, and never trains; only
cleanlab's strength is chosen by it, to show it at its best.

Engines run as an audit runs them (``quick``, reduced features, out of fold) on one thread; cost is CPU time.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps

from auditor.backbones import weights
from auditor.bridges import backbone_bridge, engine_bridge
from auditor.statistics import Combined, Witness, combine
from benchmarks import images
from benchmarks.detection import scores_of
from benchmarks.import_speed import device
from benchmarks.noise import make_noise
from engines.noise_model.reduction import DIMENSIONS
from engines.shared.components import principal_components

RESULTS = Path(__file__).resolve().parent / "results" / "backbones.jsonl"
WORK = (
    Path(os.environ.get("AUDITOR_BENCH_WORK", Path.home() / ".cache" / "label-auditor-bench")) / "backbones"
)
PRODUCT = ("auditor", "engines")
"""Folders of the code that most figures are of."""
LITE0, LITE2 = "timm:tf_efficientnet_lite0", "timm:tf_efficientnet_lite2"
NETWORKS = {"lite0": (LITE0,), "lite2": (LITE2,), "both": (LITE0, LITE2)}
FIRST_ROW, BLOCK = 25_000, 1_000
"""Of the training images of CIFAR-10, and how many are embedded in one step."""
SIDES = {"cifar": 160, "mnist": 96, "photos": 224}
"""Pixels that the networks get."""
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
FOLDS = 5
STRENGTHS = (0.001, 0.01, 0.1, 1.0)
"""C of the logistic regressions that cleanlab is given."""
SIMIFEAT_NEIGHBOURS = 10

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """One kind of wrong labels."""

    title: str
    source: str
    """A key of ``SIDES``."""
    noise: str
    """A column of human labels, a kind of ``benchmarks.noise``, or ``confused``."""
    rate: float = 0.0
    depends_on_class: bool = True
    """Whether errors depend on the class alone, as the noise model assumes."""


PROBLEMS = {
    "aggre": Problem("human, 9 % (CIFAR-10N aggre)", "cifar", "label_aggre", depends_on_class=False),
    "random1": Problem("human, 17 % (CIFAR-10N random1)", "cifar", "label_random1", depends_on_class=False),
    "asym40": Problem("similar classes swapped, 40 %", "cifar", "asym_cifar10", 0.4),
    "pair45": Problem("pairs of classes, 45 %", "cifar", "pair", 0.45),
    "uni20": Problem("uniform, 20 %", "cifar", "sym_excl", 0.2),
    "uni40": Problem("uniform, 40 %", "cifar", "sym_excl", 0.4),
    "mnist_pair45": Problem("MNIST, pairs of digits, 45 %", "mnist", "pair", 0.45),
    "mnist_uni20": Problem("MNIST, uniform, 20 %", "mnist", "sym_excl", 0.2),
    "photos": Problem("photos of clothes, similar classes", "photos", "confused", 0.114),
}
PHOTOS = 341


@dataclass(frozen=True)
class Run:
    """One set of given labels, seen by one network."""

    problem: str
    rows: int
    seed: int
    network: str
    """A key of ``NETWORKS``."""

    @property
    def key(self) -> str:
        """Without the method."""
        return f"{self.problem}|{self.rows}|{self.seed}|{self.network}"


@dataclass(frozen=True, eq=False)
class Task:
    """A run with its arrays."""

    run: Run
    raw: NDArray[np.float32]
    """(N, 1, D) as the networks gave them."""
    reduced: NDArray[np.float32]
    """(N, 1, d) as an audit's engines read them."""
    given: Labels
    truth: Labels
    num_classes: int

    @property
    def is_wrong(self) -> NDArray[np.bool_]:
        """(N,)."""
        return self.given != self.truth


Row = dict[str, Any]
"""What one method says: ``scores`` by name, and what else there is to say."""


def engine(name: str) -> Callable[[Task], Row]:
    """An engine of the product as an audit on features runs it: its own trust, and read through T alone."""

    def run(task: Task) -> Row:
        found = train(name, task.reduced, task)
        path = _file(task.run, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, trust=found.trust_score, probs=found.pred_probs, out=found.is_out_of_sample)
        through = combine([found], task.given, task.num_classes)
        return {
            "scores": {
                name: scored(task, found.trust_score),
                f"{name} through T": scored(task, through.reading.trust_score),
            },
            **of_combined(task, through),
            "mean_doubt": float(np.mean(1 - found.trust_score)) if name == "noise_model" else None,
        }

    return run


def train(name: str, features: NDArray[np.float32], task: Task) -> Witness:
    """Train one engine under ``quick`` on (N, 1, d) features."""
    (config,) = engine_bridge.configs([name], "quick", {}, on_features=True).values()
    result = engine_bridge.train(
        name,
        None,
        task.given,
        task.num_classes,
        config=config,
        features=features,
        seed=task.run.seed,
        device="cpu",
    )
    return Witness(name, result.trust_score, result.pred_probs, result.is_out_of_sample)


ENGINES = tuple(each.name for each in engine_bridge.engine_choices(on_features=True))
"""Those of an audit on features of which nobody chose the engines."""


def consensus(task: Task) -> Row:
    """The product's pool of all engines."""
    found = pooled(task)
    return {
        "scores": {"consensus": scored(task, found.reading.trust_score)},
        **of_combined(task, found),
        "weights": {name: round(weight, 3) for name, weight in found.weights.items()},
    }


def pooled(task: Task) -> Combined:
    """What the product makes of the engines of a run, whose arrays are here (``has_run``)."""
    return combine(kept_witnesses(task.run), task.given, task.num_classes)


def kept_witnesses(run: Run) -> list[Witness]:
    """The engines of a run whose arrays are here."""
    found = []
    for name in ENGINES:
        if _file(run, name).exists():
            with np.load(_file(run, name)) as stored:
                found.append(Witness(name, stored["trust"], stored["probs"], bool(stored["out"])))
    return found


def has_run(run: Run) -> bool:
    """Whether the arrays of every engine are here."""
    return all(_file(run, name).exists() for name in ENGINES)


def of_combined(task: Task, found: Combined) -> Row:
    """Flags, suggestions and the guess, against the truth."""
    wrong, flagged, rate = task.is_wrong, found.calibrated.is_label_issue, found.guess
    return {
        "flags": int(flagged.sum()),
        "flags_right": int((flagged & wrong).sum()),
        "suggestions_right": round(float((found.reading.other_label == task.truth)[wrong].mean()), 4),
        "guess": [round(float(one), 4) for one in (rate.low, rate.point, rate.high)],
    }


def cleanlab(task: Task) -> Row:
    """Both scores of cleanlab on logistic regressions of several strengths, out of fold, on reduced features."""
    from cleanlab.count import compute_confident_joint, estimate_joint
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    scores, guesses = {}, {}
    for strength in STRENGTHS:
        model = LogisticRegression(max_iter=200, C=strength)
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=task.run.seed)
        probs = cross_val_predict(model, task.reduced[:, 0], task.given, cv=folds, method="predict_proba")
        probs = np.clip(probs, 1e-12, None)
        probs /= probs.sum(axis=1, keepdims=True)
        for method in ("self_confidence", "normalized_margin"):
            quality = get_label_quality_scores(task.given, probs, method=method)
            scores[f"cleanlab {method}, C = {strength:g}"] = scored(task, quality)
        joint = estimate_joint(task.given, probs, confident_joint=compute_confident_joint(task.given, probs))
        flags = find_label_issues(task.given, probs)
        guesses[f"{strength:g}"] = {
            "guess": round(float(1 - np.trace(joint)), 4),
            "flags": int(flags.sum()),
            "flags_right": int((flags & task.is_wrong).sum()),
        }
    return {"scores": scores, "by_strength": guesses}


def datalab(task: Task) -> Row:
    """cleanlab's Datalab with the features alone, as its own documentation calls it."""
    from cleanlab import Datalab

    lab = Datalab({"label": task.given.tolist()}, label_name="label", task="classification", verbosity=0)
    lab.find_issues(features=task.reduced[:, 0], issue_types={"label": {}})
    found = lab.get_issues("label")
    flags = found["is_label_issue"].to_numpy()
    return {
        "scores": {"Datalab": scored(task, found["label_score"].to_numpy())},
        "flags": int(flags.sum()),
        "flags_right": int((flags & task.is_wrong).sum()),
    }


def simifeat(task: Task) -> Row:
    """Votes of the nearest rows by cosine on the networks' own numbers, as SimiFeat ranks (Zhu et al. 2022)."""
    from sklearn.neighbors import NearestNeighbors

    unit = task.raw[:, 0] / np.maximum(np.linalg.norm(task.raw[:, 0], axis=1, keepdims=True), 1e-12)
    search = NearestNeighbors(n_neighbors=SIMIFEAT_NEIGHBOURS + 1, algorithm="brute").fit(unit)
    near = search.kneighbors(unit, return_distance=False)
    votes = np.zeros((len(near), task.num_classes))
    for column in near.T:  # the row itself votes too, as there
        votes[np.arange(len(near)), task.given[column]] += 1 / near.shape[1]
    own = votes[np.arange(len(near)), task.given]
    doubt = -np.log(np.maximum(own, 1e-6))
    flags = votes.argmax(1) != task.given
    return {
        "scores": {"SimiFeat": scored(task, -doubt)},
        "flags": int(flags.sum()),
        "flags_right": int((flags & task.is_wrong).sum()),
    }


def dimensions(task: Task) -> Row:
    """Held-out likelihood, and AUROC of the plain network, on so many directions and on all the numbers."""
    from engines.contract import TrainingData
    from engines.noise_model.training import NoiseModelConfig
    from engines.registry import ENGINES as SPECS

    table = principal_components(task.raw, max(DIMENSIONS)).of(task.raw)[:, None]
    data = TrainingData(None, task.given, task.num_classes, features=table)
    notes = SPECS["noise_model"].train(data, NoiseModelConfig(), seed=task.run.seed, device="cpu").provenance
    told = notes.notes["heldout_log_likelihood"]
    found: Row = {"likelihood": {}, "scores": {}}
    for name, value in told.items():
        if name.endswith(", 2 rounds"):
            found["likelihood"][name.partition(" ")[0]] = round(float(value), 4)
    for size in (*DIMENSIONS, task.raw.shape[2]):
        seen = table[:, :, :size] if size in DIMENSIONS else task.raw / task.raw.std()
        trust = train("cross_entropy", np.ascontiguousarray(seen), task).trust_score
        found["scores"][f"cross_entropy {size}"] = scored(task, trust)
    return found


METHODS: dict[str, Callable[[Task], Row]] = {
    **{name: engine(name) for name in ENGINES},
    "consensus": consensus,
    "cleanlab": cleanlab,
    "datalab": datalab,
    "simifeat": simifeat,
    "dimensions": dimensions,
}
EVERYWHERE = (*ENGINES, "consensus", "cleanlab", "datalab", "simifeat")


def runs() -> Iterator[tuple[Run, str]]:
    """Every run with its method, in the order in which they are made."""
    main, others = ("aggre", "random1", "asym40", "pair45", "uni40"), ("uni20", "mnist_pair45", "mnist_uni20")
    first = [Run("photos", PHOTOS, seed, "lite0") for seed in range(3)]
    first += [Run(name, 3_000, 0, "lite0") for name in (*main, *others)]
    grid = [Run(name, 500, 0, "lite0") for name in main]
    grid += [Run("photos", PHOTOS, seed, "lite0") for seed in range(3, 6)]
    grid += [Run("photos", PHOTOS, seed, "both") for seed in range(3)]
    grid += [Run(name, 3_000, 0, "both") for name in main]
    grid += [Run(name, 500, seed, "lite0") for seed in (1, 2) for name in main]
    grid += [Run(name, 25_000, 0, "lite0") for name in ("asym40", "aggre", "pair45")]
    grid += [Run(name, 3_000, seed, "lite0") for seed in (1, 2) for name in main]
    grid += [Run(name, 3_000, 0, "lite2") for name in main]
    grid += [Run("photos", PHOTOS, seed, network) for network in ("lite0", "both") for seed in range(3, 10)]
    grid += [Run(name, 25_000, 0, "lite0") for name in ("random1", "uni40")]
    grid += [Run(name, 500, seed, "both") for seed in range(3) for name in main]
    grid += [Run(name, 25_000, 0, network) for network in ("both", "lite2") for name in main]
    grid += [
        Run(name, 3_000, seed, network) for network in ("both", "lite2") for seed in (1, 2) for name in main
    ]
    for run in first:
        yield from ((run, method) for method in EVERYWHERE)
        if run.seed == 0 and run.problem in ("photos", "aggre", "asym40", "pair45"):
            yield run, "dimensions"
    for run in dict.fromkeys(grid):
        if run not in first:
            yield from ((run, method) for method in EVERYWHERE)


def main() -> None:
    """Make every missing run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--again", nargs="+", choices=(*ENGINES, "consensus"), default=[], help="repeat these methods' runs"
    )
    parser.add_argument("--only-again", action="store_true", help="and make no other")
    parser.add_argument(
        "--later", nargs="+", choices=ENGINES, default=[], help="leave these and the consensus out"
    )
    parser.add_argument("--rows", type=int, nargs="+", help="only runs of so many rows")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop before the next run after so long")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    make(arguments)


def make(arguments: argparse.Namespace) -> None:
    """Make what is missing, a line each."""
    began, now = time.monotonic(), commit()
    stored = load(arguments.out)
    repeated = {*arguments.again, *(["consensus"] if arguments.again else [])}
    for run, method in runs():
        if arguments.rows and run.rows not in arguments.rows:
            continue
        key = f"{run.key}|{method}"
        if arguments.only_again and (key not in stored or method not in repeated):
            continue
        if method in arguments.later or (arguments.later and method == "consensus"):
            continue
        if key in stored and (method not in repeated or stored[key]["commit"] == now):
            continue
        if arguments.minutes and time.monotonic() - began > 60 * arguments.minutes:
            print("out of time; the same command goes on", flush=True)
            return
        task = task_of(run)
        if method == "consensus" and not has_run(run):
            print(f"{key}: arrays of its engines are not here; --again makes them", flush=True)
            continue
        cpu = time.process_time()
        found = METHODS[method](task)
        row = {
            "key": key,
            **dataclasses.asdict(run),
            "method": method,
            "commit": now,
            "device": device()["cpu"],
            "cpu_seconds": round(time.process_time() - cpu, 2),
            "dimension": task.reduced.shape[2],
            "noise_rate": round(float(task.is_wrong.mean()), 4),
            **found,
        }
        with arguments.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        stored[key] = row
        name, best = max(row["scores"].items(), key=lambda one: one[1]["auroc"])
        print(f"{key}: {name} {best['auroc']:.4f} / {best['ap']:.3f}, {row['cpu_seconds']:.0f} s", flush=True)


def load(path: Path) -> dict[str, Row]:
    """The last line of every run."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return {row["key"]: row for row in rows}


def commit(measures: tuple[str, ...] = PRODUCT) -> str:
    """The last commit of the code that is measured, with a plus where its files differ from it."""
    root = Path(__file__).resolve().parent.parent

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout

    changed = git("status", "--porcelain", "--", *measures).strip()
    return git("log", "-1", "--format=%h", "--", *measures).strip() + ("+" if changed else "")


def scored(task: Task, trust: NDArray[np.floating]) -> dict[str, float]:
    """AUROC, average precision and precision at as many flags as errors."""
    found = scores_of(task.is_wrong, -np.asarray(trust, float))
    return {name: round(value, 5) for name, value in found.items()}


@lru_cache(maxsize=1)
def task_of(run: Run) -> Task:
    """Draw the labels of a run, and embed and reduce what it sees."""
    problem = PROBLEMS[run.problem]
    first = run.seed * run.rows if problem.source == "cifar" and run.rows < 25_000 else 0
    parts = [_features(problem.source, name, first, run.rows) for name in NETWORKS[run.network]]
    raw = parts[0] if len(parts) == 1 else np.concatenate([one / one.std() for one in parts], axis=1)
    _, columns, classes = _source(problem.source)
    truth = columns["label"][first : first + run.rows]
    num_classes = len(classes)
    if problem.noise in columns:
        given = columns[problem.noise][first : first + run.rows]
    elif problem.noise == "confused":
        partner = np.array([classes.index(CONFUSED[name]) for name in classes])
        hit = np.random.default_rng([run.seed, 15]).permutation(len(truth))[
            : round(problem.rate * len(truth))
        ]
        given = truth.copy()
        given[hit] = partner[truth[hit]]
    else:
        given = make_noise(problem.noise, truth, problem.rate, run.seed, num_classes=num_classes).labels
    out = WORK / f"{run.key.replace('|', '-')}-reduced.npy"
    if not out.exists():
        building = out.with_suffix(".writing.npy")
        backbone_bridge.reduce_features(raw[:, None], given, num_classes, building)
        building.replace(out)
    return Task(run, raw[:, None], np.load(out), given, truth, num_classes)


def _features(source: str, network: str, first: int, rows: int) -> NDArray[np.float32]:
    """(rows, D), embedded in blocks that are kept."""
    parts = []
    for block in range(first // BLOCK, -(-(first + rows) // BLOCK)):
        path = WORK / f"{source}-{network.rpartition('_')[2]}-{SIDES[source]}px-{block}.npy"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = _source(source)[0]
            part = pixels[block * BLOCK : (block + 1) * BLOCK]
            found = backbone_bridge.embed_array(
                part,
                name=network,
                weights=weights.find(network, None).path,
                side=SIDES[source],
                views=1,
                device="cpu",
            )
            building = path.with_suffix(".writing.npy")
            np.save(building, found)
            building.replace(path)
        parts.append(np.load(path)[:, 0].astype(np.float32))
    start = first - first // BLOCK * BLOCK
    return np.concatenate(parts)[start : start + rows]


@lru_cache(maxsize=3)
def _source(name: str) -> tuple[NDArray[np.uint8], Mapping[str, Labels], tuple[str, ...]]:
    """Images, label columns and the names of the classes."""
    if name == "photos":
        return _photos()
    pixels, table = images.load("cifar10-train" if name == "cifar" else "mnist-test")
    first = FIRST_ROW if name == "cifar" else 0
    columns = {column: table[column].to_numpy(dtype=np.int64)[first:] for column in table.columns}
    return pixels[first:], columns, tuple(str(number) for number in range(10))


def _photos() -> tuple[NDArray[np.uint8], Mapping[str, Labels], tuple[str, ...]]:
    place = images.folder() / "clothing"
    classes = tuple(sorted(folder.name for folder in place.iterdir() if folder.is_dir()))
    paths = [path for name in classes for path in sorted((place / name).iterdir())]
    side = SIDES["photos"]
    seen = [
        ImageOps.fit(Image.open(path).convert("RGB"), (side, side), Image.Resampling.BICUBIC)
        for path in paths
    ]
    labels = np.array([classes.index(path.parent.name) for path in paths], dtype=np.int64)
    return np.stack([np.asarray(one).transpose(2, 0, 1) for one in seen]), {"label": labels}, classes


def _file(run: Run, name: str) -> Path:
    return WORK / "runs" / f"{run.key.replace('|', '-')}-{name}.npz"


if __name__ == "__main__":
    main()
