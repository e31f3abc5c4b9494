"""How often the range of the guess covers the truth: kinds of errors, rates, sizes and two networks.

    python -m benchmarks.guess                 # trains what is missing, goes on where it was stopped
    python -m benchmarks.guess --page          # the page from the figures alone

Sets are the files of ``benchmarks.frozen``, or those of a folder like it. Of each, rows are drawn at random, and
errors are planted or the labels are humans'. Noise model, neighbours and the plain network judge every row out of
fold, and nothing is verified. What they say is kept in ``build/guess``, so that a change of the statistics is
measured in minutes: ``--again``. Known truth is used to measure, never to train or to choose.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from auditor.ground.wording import percent
from auditor.statistics import combine, witness_from_probabilities
from auditor.statistics.trust import combining
from auditor.statistics.trust.sentences import is_least
from benchmarks import frozen
from benchmarks.noise import REQUIRED_CLASSES, make_noise
from engines.contract import TrainingData
from engines.noise_model.reduction import DIMENSIONS
from engines.noise_model.training import best_dimension
from engines.registry import ENGINES
from engines.shared.components import principal_components

RESULTS = Path(__file__).resolve().parent / "results" / "guess.json"
KEPT = Path(__file__).resolve().parents[1] / "build" / "guess"
WITNESSES = ("noise_model", "neighbours", "cross_entropy")
PLANTED = [
    ("sym_excl", 0.0),
    *(("sym_excl", rate) for rate in (0.05, 0.1, 0.2, 0.4)),
    *(("pair", rate) for rate in (0.05, 0.2, 0.4)),
    *(("asym_cifar10", rate) for rate in (0.2, 0.4)),
    ("flip_two", 0.2),
]
SIZES = (300, 500, 1_000, 3_000, 12_000, 50_000)
SEEDS = (0, 1, 2)
MOST_TO_CHOOSE = 10_000
SEVERAL = 3_000
"""Rows up to which there is more than one seed."""
Run = tuple[str, int, str, float, int]
"""Set, rows, kind of errors, their rate, seed."""
WORDS = {"sym_excl": "uniform", "asym_cifar10": "asymmetric", "flip_two": "two classes each"}


def main() -> None:
    """Measure what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--features", type=Path, help="instead of those of benchmarks.frozen")
    parser.add_argument("--page", action="store_true", help="write the page from the figures alone")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true", help="read anew what the kept witnesses say")
    parser.add_argument("--kept", type=Path, default=KEPT, help="where their probabilities lie")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.kept.mkdir(parents=True, exist_ok=True)
    rows = json.loads(given.out.read_text()) if given.out.exists() else []
    if given.again:
        rows = [one | measured(given.kept, tuple(one["run"])) for one in rows]
    reads_alone = given.page or given.again
    folder = given.features or (Path() if reads_alone else frozen.make())
    for run in () if reads_alone else _runs(folder):
        if not any(tuple(row["run"]) == run for row in rows):
            _train(folder, given.kept, run)
            rows.append({"run": list(run)} | measured(given.kept, run))
            given.out.write_text(_lines(rows))
            print(rows[-1], flush=True)
    given.out.write_text(_lines(rows))
    given.out.with_suffix(".md").write_text(page(rows))


def _runs(folder: Path) -> Iterator[Run]:
    """Those of few rows first."""
    for size, seed in itertools.product(SIZES, SEEDS):
        for path in sorted(folder.glob("*.npz")):
            with np.load(path) as kept:
                num, num_classes = len(kept["truth"]), int(kept["truth"].max()) + 1
                human = [name for name in kept.files if name not in ("features", "truth")]
            if seed and min(size, num) > SEVERAL:
                continue
            kinds = [one for one in PLANTED if REQUIRED_CLASSES.get(one[0], num_classes) == num_classes]
            for kind, rate in [*kinds, *((name, 0.0) for name in human)]:
                yield path.stem, min(size, num), kind, rate, seed


def _train(folder: Path, kept: Path, run: Run) -> None:
    """Keep what the witnesses say of the given labels."""
    name, size, kind, rate, seed = run
    with np.load(folder / f"{name}.npz") as stored:
        truth = stored["truth"]
        rows = np.random.default_rng([seed, size]).permutation(len(truth))[:size]
        num_classes, truth = int(truth.max()) + 1, truth[rows]
        given = stored[kind][rows] if kind in stored.files else None
        features = stored["features"][rows]
    if given is None:
        given = make_noise(kind, truth, rate, seed, num_classes).labels
    components = principal_components(features, max(DIMENSIONS))
    chosen = np.random.default_rng(0).permutation(len(given))[:MOST_TO_CHOOSE]
    best = best_dimension(components.of(features[chosen]), given[chosen], num_classes, DIMENSIONS)
    data = TrainingData(None, given, num_classes, features=components.first(best).of(features)[:, None])
    said = {}
    for witness in WITNESSES:
        config = ENGINES[witness].config_type.preset("quick").for_features()
        said[witness] = ENGINES[witness].train(data, config, seed=0, device="cpu").pred_probs
    np.savez(_kept(kept, run), given=given, truth=truth, **said)


def _kept(folder: Path, run: Run) -> Path:
    return folder / ("-".join(map(str, run)) + ".npz")


def measured(folder: Path, run: Run) -> dict[str, Any]:
    """The guess of one set and its truth."""
    with np.load(_kept(folder, run)) as kept:
        given, truth = kept["given"], kept["truth"]
        witnesses = [witness_from_probabilities(kept[name], given, name=name) for name in WITNESSES]
    found = combine(witnesses, given, int(max(given.max(), truth.max())) + 1)
    rate, flags, wrong = found.guess, found.calibrated.is_label_issue, given != truth
    return {
        "truth": round(float(wrong.mean()), 4),
        "guess": [round(one, 4) for one in (rate.low, rate.point, rate.high)],
        "without allowance": round(rate.point - combining.reach(found.fits), 4),
        "flags": [int(flags.sum()), int((flags & wrong).sum()), int(wrong.sum())],
    }


def _lines(rows: list[dict[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


def page(rows: list[dict[str, Any]]) -> str:
    """The figures as a page."""
    bare = sum(row["without allowance"] <= row["truth"] <= row["guess"][2] for row in rows)
    least = [row for row in rows if is_least(*row["guess"])]
    as_many = sum(row["truth"] >= 0.9 * row["guess"][1] for row in least)
    most = max(row["run"][1] for row in rows)
    largest = [row["run"] for row in rows if row["run"][1] == most]
    kinds = " and ".join(dict.fromkeys(WORDS.get(kind, kind) for _, _, kind, _, _ in largest))
    seen_by = " and ".join(dict.fromkeys(name for name, *_ in largest))
    lines = [
        "# The guess against the truth",
        "",
        f"{len(rows)} runs of `benchmarks/guess.py`; nothing is verified. The range says 95 %. Without its "
        f"allowance for weak witnesses (`combining.FALSE_LABELS`) it covers {bare}. {len(least)} sentences say *at "
        f"least about*; {as_many} of these sets have as many wrong labels or all but a tenth. lite0 and lite2 are "
        "EfficientNets with ImageNet weights; aggre, random1: labels of people. Planted are up to "
        f"{percent(max(row['run'][3] for row in rows))}. With {most:,} rows there are only {kinds} errors of up to "
        f"{percent(max(run[3] for run in largest))} ({seen_by}).",
        "",
        "| runs | of them | range covers | guess less truth, on average | root of its mean square | "
        "flags, right, wrong labels |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        _, size, kind, rate, _ = row["run"]
        planted = "clean" if row["truth"] == 0 else WORDS.get(kind, kind)
        for name in ("all", f"{size:,} rows", planted):
            groups.setdefault(name, []).append(row)
        del rate
    for name, mine in groups.items():
        off = np.array([row["guess"][1] - row["truth"] for row in mine])
        covers = sum(row["guess"][0] <= row["truth"] <= row["guess"][2] for row in mine)
        flags = np.sum([row["flags"] for row in mine], axis=0)
        lines.append(
            f"| {name} | {len(mine)} | {covers} | {off.mean():+.3f} | {np.sqrt((off**2).mean()):.3f} | "
            f"{flags[0]:,}, {flags[1]:,}, {flags[2]:,} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
