"""The pool on published probabilities of strong networks, and every rule of it with and without.

    python -m benchmarks.ranking

Five networks were fine-tuned on CIFAR-10N by others, and their probabilities out of fold published: what a user's
own model brings. Rules are switched off one by one on these, and on all sets of ``benchmarks.backbones`` whose
engines' arrays are here. Known truth measures.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression

from auditor.statistics import Witness, combine, knows_by_heart, witness_from_probabilities
from auditor.statistics.trust import combining, evidence, pool, reading
from benchmarks import backbones, images
from benchmarks.import_speed import device
from benchmarks.metrics import auroc, average_precision

RESULTS = Path(__file__).resolve().parent / "results" / "ranking.json"
NETWORKS = ("resnet18", "efficientnet_b1", "resnet50d", "twins_pcpvt_base", "swin_base_patch4_window7_224")
PUBLISHED = {"ResNet-18": NETWORKS[:1], "Swin-B": NETWORKS[4:], "five networks": NETWORKS}


_read, _weigh = reading.read, evidence.weigh


def _own(*arguments: Any) -> reading.Reading:
    """Trust without T: what the pool says of the picture, whatever label it was given."""
    found = _read(*arguments)
    return dataclasses.replace(found, trust_score=found.support)


_minimize = scipy.optimize.minimize


def _without_bias(loss: Any, first: Any, **options: Any) -> Any:
    """b stays 0: the only numbers of a fit that may be negative."""
    free = [(0.0, 0.0) if one == (None, None) else one for one in options.pop("bounds", ())]
    return _minimize(loss, first, bounds=free, **options)


def _schwarz_alone(*arguments: Any) -> tuple[bool, float]:
    """The comparison with a model for which all labels are right, whoever errs how often."""
    with patch.object(evidence, "who_errs", lambda *_: 1.0):
        return _weigh(*arguments)


def _flat(num_classes: int) -> NDArray[np.float64]:
    return np.full((num_classes, num_classes), 1e-6)


RULES: dict[str, AbstractContextManager[Any]] = {
    "all of it": nullcontext(),
    "trust is not read through T": patch.object(combining, "read", _own),
    "T's rows are not shrunk": patch.object(pool, "shrunk", lambda transition, _: transition),
    "two parts in place of five": patch.object(pool, "PARTS", 2),
    "a and b have no prior": patch.object(pool, "PRIOR_DEVIATION", 1e3),
    "T has no prior": patch.object(pool, "_prior", _flat),
    "no b": patch.object(scipy.optimize, "minimize", _without_bias),
    "who errs how often does not count where the comparison is close": patch.object(
        combining, "weigh", _schwarz_alone
    ),
    "nothing is asked of a model for which all labels are right": patch.object(
        combining, "weigh", lambda *_: (True, 1.0)
    ),
}
"""By what is left out, how."""
FEWEST_ENGINES, MOST_ROWS = 5, 3_000
TREES = 100
Set = tuple[Sequence[Witness], NDArray[np.int64], NDArray[np.int64]]
"""Witnesses, given and true labels."""


def main() -> None:
    """Measure every set and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    notes = json.loads(arguments.out.read_text())["notes"] if arguments.out.exists() else []
    _, table = images.load("cifar10-train")
    given, truth = (table[name].to_numpy(dtype=np.int64) for name in ("label_aggre", "label"))
    sets = dict(_published(given, truth)) | dict(_of_engines())
    found = {
        "commit": backbones.commit(),
        "device": device()["cpu"],
        "notes": notes,
        "rows": {name: measured(*one) for name, one in sets.items()},
        "rules": _rules(sets),
        "rules for some": _rules_for_some(),
    }
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    arguments.out.with_suffix(".md").write_text(page(found))


def _published(given: NDArray[np.int64], truth: NDArray[np.int64]) -> Iterator[tuple[str, Set]]:
    with np.load(images.folder() / "cifar10-aggre-pred-probs.npz") as kept:
        arrays = {name: kept[name].astype(np.float32) for name in NETWORKS}
    for title, names in PUBLISHED.items():
        for rows in (300, 3_000, 50_000):
            probs = {name: arrays[name][:rows] / arrays[name][:rows].sum(1, keepdims=True) for name in names}
            witnesses = [witness_from_probabilities(p, given[:rows], name=name) for name, p in probs.items()]
            yield f"{title}, {rows:,}", (witnesses, given[:rows], truth[:rows])


def _of_engines() -> Iterator[tuple[str, Set]]:
    """The sets of ``benchmarks.backbones`` of which most engines' arrays are here."""
    for run in dict.fromkeys(run for run, _ in backbones.runs()):
        witnesses = backbones.kept_witnesses(run)
        if len(witnesses) >= FEWEST_ENGINES:
            task = backbones.task_of(run)
            name = f"{run.problem}, {run.rows:,}, {run.network}, seed {run.seed}"
            yield name, (witnesses, task.given, task.truth)


def measured(
    witnesses: Sequence[Witness], given: NDArray[np.int64], truth: NDArray[np.int64]
) -> dict[str, Any]:
    """What the pool finds, beside the mean rank of the same witnesses."""
    found = combine(witnesses, given, int(max(given.max(), truth.max())) + 1)
    wrong, flagged, rate = given != truth, found.calibrated.is_label_issue, found.guess
    trust = found.reading.trust_score.copy()
    trust[np.isnan(trust)] = np.nanmedian(trust)  # whom nobody judges
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


def _rules(sets: Mapping[str, Set]) -> dict[str, dict[str, Any]]:
    """Without each rule: what changes on the sets of up to 3,000 labels."""
    small = [one for one in sets.values() if len(one[1]) <= MOST_ROWS]
    found: dict[str, dict[str, Any]] = {}
    whole: list[dict[str, Any]] = []
    for name, without in RULES.items():
        with without:
            rows = [measured(*one) for one in small]
        whole = whole or rows
        gains = [
            [row[key] - one[key] for row, one in zip(rows, whole, strict=True)] for key in ("auroc", "ap")
        ]
        found[name] = {
            "sets": len(rows),
            "auroc": [round(float(each), 4) for each in (np.mean(gains[0]), min(gains[0]), max(gains[0]))],
            "ap": round(float(np.mean(gains[1])), 4),
            "flags": [sum(row[key] for row in rows) for key in ("flags", "flags right", "wrong")],
            "guess off": round(float(np.mean([abs(row["guess"][1] - row["truth"]) for row in rows])), 4),
        }
    return found


def _rules_for_some() -> list[dict[str, Any]]:
    """Rules that the sets of ``_rules`` never need: AUROC and flags with and without, by set where it counts."""
    found: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for run in dict.fromkeys(run for run, _ in backbones.runs()):
        witnesses = backbones.kept_witnesses(run)
        if run.seed or run.rows > MOST_ROWS or run.network != "lite0" or len(witnesses) < FEWEST_ENGINES:
            continue
        task = backbones.task_of(run)
        features, given = task.reduced[:, 0], task.given
        honest = [one for one in witnesses if one.is_out_of_sample]

        def told(one: Sequence[Witness], task: backbones.Task = task) -> dict[str, Any]:
            return measured(one, task.given, task.truth)

        trees = ExtraTreesClassifier(TREES, random_state=0).fit(features, given)
        learned = np.zeros((len(given), task.num_classes), dtype=np.float32)
        learned[:, trees.classes_] = trees.predict_proba(features)
        is_known = knows_by_heart(learned, [one.pred_probs for one in honest], given)
        found.setdefault("probabilities that trees learned by heart are recognised", []).append(
            (
                told([*honest, witness_from_probabilities(learned, given, is_out_of_sample=not is_known)]),
                told([*honest, witness_from_probabilities(learned, given)]),
            )
        )
        half = honest[0].pred_probs.copy()
        half[::2] = np.nan
        line = LogisticRegression(max_iter=300).fit(features, given)
        learned[:, line.classes_] = line.predict_proba(features)
        judge = witness_from_probabilities(half, given, name="half")
        rest = witness_from_probabilities(learned, given, name="learned", is_out_of_sample=False)
        found.setdefault("half of the labels are judged only by who learned from them", []).append(
            (told([judge, rest]), told([judge]))
        )
        for name, turn in (("", 0), (", its columns in a wrong order", 1)):
            probs = np.roll(honest[0].pred_probs, turn, axis=1)
            alone = witness_from_probabilities(probs, given, is_out_of_sample=False)
            trust = combine([alone], given, task.num_classes).reading.trust_score
            most = trust < 0.5  # what ranks alone call wrong
            flags = {"flags": int(most.sum()), "flags right": int((most & task.is_wrong).sum())}
            found.setdefault(f"ranks alone that call most labels wrong accuse none{name}", []).append(
                (told([alone]), told([alone]) | flags)
            )
    return [
        {
            "rule": name,
            "sets": len(pairs),
            "auroc": [round(float(np.mean([pair[i]["auroc"] for pair in pairs])), 4) for i in (0, 1)],
            "worst": round(min(pair[1]["auroc"] - pair[0]["auroc"] for pair in pairs), 4),
            "flags": [
                [sum(pair[i][key] for pair in pairs) for key in ("flags", "flags right")] for i in (0, 1)
            ],
        }
        for name, pairs in found.items()
    ]


def page(stored: Mapping[str, Any]) -> str:
    """The figures as a page."""
    lines = [
        "# The pool, and its rules with and without",
        "",
        "AUROC / average precision for wrong labels, by the pool and by the mean rank of the same witnesses. The "
        "first nine sets have the wrong labels that people gave to CIFAR-10 (CIFAR-10N aggre), judged by published "
        "networks out of fold; the others have the engines on features of [another page](backbones.md). Flags: "
        "labels more likely wrong than right, and how many of them are wrong. Suggestions: the share of wrong "
        f"labels whose suggestion is the true class. No row is verified. Commit `{stored['commit']}`, "
        f"{stored['device']}.",
        "",
        "| witnesses, rows | wrong | pool | mean rank | flags, right | suggestions | guess (truth) |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in stored["rows"].items():
        low, point, high = row["guess"]
        lines.append(
            f"| {name} | {row['wrong']:,} | {row['auroc']:.3f} / {row['ap']:.3f} | "
            f"{row['equal auroc']:.3f} / {row['equal ap']:.3f} | "
            f"{row['flags']:,}, {row['flags right']:,} | {row['suggestions right']:.2f} | "
            f"{point:.3f}, {low:.3f} to {high:.3f} ({row['truth']:.3f}) |"
        )
    lines += [
        "",
        "## Without one rule",
        "",
        "Change of AUROC (average, worst and best set) and of average precision where one rule is left out, on the "
        f"{stored['rules']['all of it']['sets']} of these sets with up to {MOST_ROWS:,} labels. A rule stays if it "
        "brings more than .002 on average, or saves a set from more than .01. The comparison with a model for "
        "which all labels are right stays for clean sets ([measured](guess.md)).",
        "",
        "| left out | AUROC | AP | flags, right, wrong labels | guess off by |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, row in stored["rules"].items():
        mean, least, most = row["auroc"]
        flags = ", ".join(f"{one:,}" for one in row["flags"])
        lines.append(
            f"| {name.replace('all of it', 'nothing')} | {mean:+.4f} ({least:+.4f} to {most:+.4f}) | "
            f"{row['ap']:+.4f} | {flags} | {row['guess off']:.3f} |"
        )
    lines += [
        "",
        "## Rules for sets that those are not",
        "",
        "On the sets of lite0 with seed 0 and up to 3,000 labels: a hundred trees that learned the labels by heart "
        "as one more engine; the noise model on every second label beside a logistic regression that learned from "
        "all; the noise model as if it had learned from the labels.",
        "",
        "| rule | sets | AUROC with, without (worst change) | flags, right: with; without |",
        "| --- | --- | --- | --- |",
    ]
    for row in stored["rules for some"]:
        flags = "; ".join(f"{num:,}, {right:,}" for num, right in row["flags"])
        least, most = row["auroc"]
        lines.append(
            f"| {row['rule']} | {row['sets']} | {least:.3f}, {most:.3f} ({row['worst']:+.3f}) | {flags} |"
        )
    lines += ["", "## What was tried on real features", ""]
    for note in stored["notes"]:
        lines += [note, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
