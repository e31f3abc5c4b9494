"""What each constant of ``auditor/statistics`` that is not a definition is worth, beside values around it.

    python -m benchmarks.constants

Guesses and truths are those of ``benchmarks.guess``, witnesses those of ``benchmarks.ranking`` (published networks,
and the engines' arrays where they are here). Known truth measures, and verdicts are the truth. Others of the
constants are in ``ranking.md`` (parts, priors), ``guess.md`` (``FALSE_LABELS``) and ``promises.md``
(``FEWEST_EXPECTED``). Minutes on one core.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from auditor.statistics import Combined, combine, draw_zones, witness_from_probabilities
from auditor.statistics.rates import calibrate, probabilities, strata
from auditor.statistics.rates.promises import check_exchangeable, promises
from auditor.statistics.trust import combining, pool
from benchmarks import backbones, guess, images, ranking
from benchmarks.import_speed import device
from benchmarks.metrics import auroc

RESULTS = Path(__file__).resolve().parent / "results" / "constants.json"
DRAWS = 40
Table = list[list[Any]]
"""Rows of a table, the first one its head."""


def main() -> None:
    """Measure all of them and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    _, table = images.load("cifar10-train")
    labels, truth = (table[name].to_numpy(dtype=np.int64) for name in ("label_aggre", "label"))
    sets = dict(ranking._published(labels, truth)) | dict(ranking._of_engines())
    small = {name: one for name, one in sets.items() if len(one[1]) <= ranking.MOST_ROWS}
    read = [(combine(*one[:2], int(max(one[1].max(), one[2].max())) + 1), *one) for one in small.values()]
    found = {
        "commit": backbones.commit(),
        "device": device()["cpu"],
        "tables": {
            "noise.GUESS_ROWS": guess_rows(),
            "noise.MIN_CLASS_SIZE": class_sizes(read),
            "combining.FEWEST_TO_CALIBRATE": calibrated(read),
            "probabilities.GUESS_SLOPE": slopes(list(small.values())),
            "promises.REFUSE_BELOW, WARN_BELOW": levels(read),
            "strata.PLANNED_SHARES": planned(),
            "zones.HEAD_SHARE": heads(sets, "share", (0.5, 0.7, 0.9, 1.0)),
            "zones.HEAD_PER_ERROR": heads(sets, "per error", (1.0, 1.5, 2.0, 3.0, 5.0)),
            "pool.LIKELY_CLASSES": likely(),
        },
    }
    given.out.write_text(json.dumps(found, indent=1) + "\n")
    given.out.with_suffix(".md").write_text(page(found))


def guess_rows() -> Table:
    """Error of the rate's point, which leans on the guess as on so many rows."""
    random, rows = np.random.default_rng(0), json.loads(guess.RESULTS.read_text())
    weights = (0, 5, 10, 20, 40, 80)
    found: Table = [["rows judged", *map(str, weights)]]
    for judged in (5, 20, 60, 200):
        errors: list[list[float]] = [[] for _ in weights]
        for row in rows:
            num, share, guessed = row["run"][1], row["truth"], row["guess"][1]
            wrong = round(share * num)
            hits = random.hypergeometric(wrong, num - wrong, judged, size=DRAWS)
            for place, weight in enumerate(weights):
                points = (hits + weight * guessed) / (judged + weight)
                errors[place].append(float(np.mean((points - share) ** 2)))
        found.append([judged, *(round(float(np.mean(each)) ** 0.5, 4) for each in errors)])
    return found


def class_sizes(read: Sequence[tuple[Combined, Any, Any, Any]]) -> Table:
    """How well labels are ranked inside classes of so many labels."""
    edges = (10, 20, 40, 80, 10**9)
    found: Table = [["labels in the class", "classes", "AUROC inside", "flags", "right"]]
    for low, high in itertools.pairwise(edges):
        ranks, flags, right, num = [], 0, 0, 0
        for combined, _, given, truth in read:
            for label in range(int(given.max()) + 1):
                mine = given == label
                wrong = truth[mine] != label
                if low <= len(wrong) < high:
                    flagged = combined.calibrated.is_label_issue[mine]
                    num, flags, right = num + 1, flags + flagged.sum(), right + (flagged & wrong).sum()
                    if wrong.any() and not wrong.all():
                        ranks.append(auroc(wrong, -combined.reading.trust_score[mine]))
        inside = round(float(np.mean(ranks)), 3) if ranks else None
        name = f"{low} to {high - 1}" if high < 10**9 else f"{low} or more"
        found.append([name, num, inside, int(flags), int(right)])
    return found


def calibrated(read: Sequence[tuple[Combined, Any, Any, Any]]) -> Table:
    """Loss of error probabilities on all other labels, after so many verdicts and without them."""
    random = np.random.default_rng(0)
    found: Table = [["rows judged", "log loss before", "after", "sets on which it fell", "worst rise"]]
    for judged in (1, 3, 5, 10, 20, 40, 100):
        losses = []
        for combined, _, given, truth in read:
            doubt, wrong = 1.0 - combined.reading.trust_score, (given != truth).astype(float)
            rows = random.permutation(len(given))[:judged]
            after = calibrate(doubt, rows, wrong[rows] > 0)
            rest = np.setdiff1d(np.arange(len(given)), rows)
            losses.append([_log_loss(one[rest], wrong[rest]) for one in (doubt, after)])
        before, then = np.mean(losses, axis=0)
        gains = np.array([one[1] - one[0] for one in losses])
        fell = f"{(gains < 0).sum()} of {len(gains)}"
        found.append([judged, round(before, 4), round(then, 4), fell, round(float(gains.max()), 4)])
    return found


def _log_loss(chance: NDArray[np.floating], wrong: NDArray[np.floating]) -> float:
    chance = np.clip(chance, 1e-3, 1 - 1e-3)
    return float(-np.mean(wrong * np.log(chance) + (1 - wrong) * np.log(1 - chance)))


def slopes(sets: Sequence[ranking.Set]) -> Table:
    """Probabilities by ranks alone: witnesses as if they had learned from the labels."""
    found: Table = [["slope", "log loss", "flags", "right"]]
    for slope in (0.5, 1.0, 1.5, 2.0, 3.0):
        losses, flags, right = [], 0, 0
        with patch.object(combining, "guess_error_probability", functools.partial(_curve, slope=slope)):
            for witnesses, given, truth in sets:
                silent = [dataclasses.replace(one, is_out_of_sample=False) for one in witnesses]
                told = combine(silent, given, int(max(given.max(), truth.max())) + 1)
                wrong = given != truth
                losses.append(_log_loss(1 - told.reading.trust_score, wrong.astype(float)))
                flagged = told.calibrated.is_label_issue
                flags, right = flags + flagged.sum(), right + (flagged & wrong).sum()
        found.append([slope, round(float(np.mean(losses)), 4), int(flags), int(right)])
    return found


def _curve(doubt: NDArray[np.floating], share: float, slope: float) -> NDArray[np.float64]:
    """``probabilities.guess_error_probability`` with another slope."""
    with patch.object(probabilities, "GUESS_SLOPE", slope):
        return probabilities.guess_error_probability(doubt, share)


def levels(read: Sequence[tuple[Combined, Any, Any, Any]]) -> Table:
    """How often rows are refused: drawn at random, and with some of them from the top of the list."""
    random = np.random.default_rng(0)
    found: Table = [["rows", "from the top tenth", "below .01", "below .001", "below .0001"]]
    for judged in (20, 60, 200):
        for share in (0.0, 0.25, 0.5, 1.0):
            values = []
            for combined, _, given, _ in read:
                trust = combined.reading.trust_score
                if len(given) < 10 * judged:
                    continue
                order = np.argsort(trust)
                for _ in range(DRAWS):
                    top = random.permutation(order[: len(order) // 10])[: round(share * judged)]
                    rest = random.permutation(np.setdiff1d(order, top))[: judged - len(top)]
                    values.append(check_exchangeable(trust, given, np.concatenate([top, rest])).p_value)
            below = [round(float(np.mean(np.array(values) < level)), 4) for level in (1e-2, 1e-3, 1e-4)]
            found.append([judged, f"{share:.0%}", *below])
    return found


PLANS = {"as now": strata.PLANNED_SHARES, ".2, .2, .2": (0.2, 0.2, 0.2), ".5, .2, .05": (0.5, 0.2, 0.05)}
WORLDS = {
    "as planned": (0.7, 0.2, 0.02),
    "few wrong": (0.1, 0.02, 0.001),
    "many wrong": (0.95, 0.8, 0.3),
    "weak ranking": (0.3, 0.2, 0.1),
    "strong ranking": (0.9, 0.1, 0.002),
}


def planned() -> Table:
    """Error of the rate where draws of different kinds follow each other: 60 uniform rows, then 100 of a head."""
    random, sizes = np.random.default_rng(0), np.array([150, 150, 2_700])
    found: Table = [["wrong in the head's halves and the rest", *PLANS]]
    for name, shares in WORLDS.items():
        wrong = np.round(sizes * np.array(shares)).astype(int)
        errors: dict[str, list[float]] = {plan: [] for plan in PLANS}
        for _ in range(1_500):
            first = random.multivariate_hypergeometric(sizes, 60)
            hits = random.hypergeometric(wrong, sizes - wrong, first)
            left, bad = sizes - first, wrong - hits
            then = np.array([*random.multivariate_hypergeometric(left[:2], 70), 30])
            seen = random.hypergeometric(bad, left - bad, then)
            stages = [
                strata.Counts((int(sizes.sum()),), (60,), (int(hits.sum()),), (0,)),
                strata.Counts(
                    *(tuple(map(int, one)) for one in (left, then, seen)),
                    (0, 0, 0),
                    int(hits.sum()),
                    60 - int(hits.sum()),
                ),
            ]
            for plan, values in PLANS.items():
                with patch.object(strata, "PLANNED_SHARES", values):
                    errors[plan].append(strata.share(stages) - wrong.sum() / sizes.sum())
        found.append([name, *(round(float(np.mean(np.square(one))) ** 0.5, 4) for one in errors.values())])
    return found


def heads(sets: Mapping[str, ranking.Set], kind: str, values: Sequence[float]) -> Table:
    """What a list at 10 % holds of all wrong labels, by how a draw of 100 rows is cut; published networks."""
    found: Table = [["network", *map(str, values)]]
    for name in ("ResNet-18, 50,000", "Swin-B, 50,000", "five networks, 50,000"):
        (first, *_), given, truth = sets[name]
        trust = np.mean([one.trust_score for one in sets[name][0]], axis=0)
        order, wrong = np.argsort(trust), given != truth
        guessed = float((first.pred_probs.argmax(axis=1) != given).mean())
        row: list[Any] = [name.split(",")[0]]
        for value in values:
            random, recalls = np.random.default_rng(0), []
            for _ in range(DRAWS):
                share, errors = (value, 2.0) if kind == "share" else (0.7, value)
                drawn = draw_zones(order, guessed * errors / 2.0, 100, random, head_share=share)
                judged = drawn.judged(truth[drawn.sample_ids], len(given))
                flags = promises(trust, given, judged, levels=(0.1,))[0.1].flags
                recalls.append((flags & wrong).sum() / wrong.sum())
            row.append(round(float(np.mean(recalls)), 3))
        found.append(row)
    return found


def likely() -> Table:
    """A made world of 300 classes, 20 labels each, in which witnesses take classes for some of 40 others."""
    random, num_classes, num = np.random.default_rng(0), 300, 6_000
    truth = np.arange(num) % num_classes
    given = np.where(random.random(num) < 0.1, random.integers(num_classes, size=num), truth)
    said = []
    for name in "ab":
        scores = random.normal(size=(num, num_classes)).astype(np.float32)
        for step in range(40):
            scores[np.arange(num), (truth + step) % num_classes] += 2.0
        scores[np.arange(num), truth] += 2.0
        probs = np.exp(scores)
        said.append(witness_from_probabilities(probs / probs.sum(axis=1, keepdims=True), given, name=name))
    found: Table = [["classes told apart", "AUROC", "suggestions right", "CPU seconds"]]
    for most in (8, 16, 32, 64):
        began = time.process_time()
        with patch.object(pool, "LIKELY_CLASSES", most):
            told = combine(said, given, num_classes)
        wrong, took = given != truth, time.process_time() - began
        right = float((told.reading.other_label == truth)[wrong].mean())
        found.append(
            [most, round(float(auroc(wrong, -told.reading.trust_score)), 4), round(right, 3), round(took, 1)]
        )
    return found


WORDS = {
    "noise.GUESS_ROWS": "Root of the mean square error of the rate's point, over the 486 runs of [the guess]"
    "(guess.md), by how many rows the guess counts for.",
    "noise.MIN_CLASS_SIZE": "Classes of the sets of [the pool](ranking.md) with up to 3,000 labels.",
    "combining.FEWEST_TO_CALIBRATE": "The same sets. Error probabilities of the labels that nobody judged.",
    "probabilities.GUESS_SLOPE": "The same sets, every witness as if it had learned from the labels, "
    "by the slope of the curve on the log odds of the rank; the product has 1.5.",
    "promises.REFUSE_BELOW, WARN_BELOW": f"The same sets, {DRAWS} draws each: the share of draws with a p-value "
    "below each level.",
    "strata.PLANNED_SHARES": "Root of the mean square error of the rate, 1,500 made reviews each.",
    "zones.HEAD_SHARE": "Recall of the list at 10 % after a draw of 100 rows, by the share of them in the head.",
    "zones.HEAD_PER_ERROR": "The same, by how many labels a head has for each that is guessed to be wrong.",
    "pool.LIKELY_CLASSES": "A made world of 300 classes, 6,000 labels, each taken for any of 40 classes.",
}


def page(stored: Mapping[str, Any]) -> str:
    """The figures as a page."""
    lines = [
        "# Constants of the statistics, beside values around them",
        "",
        f"`python -m benchmarks.constants`; commit `{stored['commit']}`, {stored['device']}. Known truth measures.",
    ]
    for name, (head, *rows) in stored["tables"].items():
        lines += ["", f"## {name}", "", WORDS[name], "", f"| {' | '.join(map(str, head))} |"]
        lines.append(f"|{' --- |' * len(head)}")
        lines += [f"| {' | '.join('' if cell is None else str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
