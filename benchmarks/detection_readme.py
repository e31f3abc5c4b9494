"""The short tables of README and docs, from the same figures as the whole page: AUROC, means of the seeds.

``python -m tools.reference`` writes them into their pages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.detection_report import ENGINES, PLAIN_X3, Table, scores_by_method

LABELS = {
    Table("mnist-sym20", 10_000, 10, "mlp"): "MNIST, symmetric 20 %",
    Table("mnist-sym50", 10_000, 10, "mlp"): "MNIST, symmetric 50 %",
    Table("mnist-pair45", 10_000, 10, "mlp"): "MNIST, pair flips 45 %",
    Table("mnist-pair45", 60_000, 10, "mlp"): "the same, all 60,000 images",
    Table("mnist-asym40", 10_000, 10, "mlp"): "MNIST, 7>1, 2>7, 3>8, 5<>6 at 40 %",
    Table("cifar10n-aggre", 10_000, 10, "conv3"): "CIFAR-10N aggre, human, 9 %",
    Table("cifar10n-aggre", 10_000, 10, "conv4"): "the same, `conv4`",
    Table("cifar10n-aggre", 10_000, 30, "conv4"): "the same, `conv4`, 30 epochs",
    Table("cifar10n-aggre", 50_000, 10, "conv4"): "the same, `conv4`, all 50,000 images",
    Table("cifar10n-random1", 10_000, 10, "conv3"): "CIFAR-10N random1, human, 17 %",
    Table("cifar10-sym20", 10_000, 10, "conv3"): "CIFAR-10, symmetric 20 %",
    Table("cifar10-sym40", 10_000, 10, "conv3"): "CIFAR-10, symmetric 40 %",
    Table("cifar10-asym40", 10_000, 10, "conv3"): "CIFAR-10, asymmetric 40 %",
}
METHODS = {
    "plain": "cross_entropy",
    "three plain": "three plain networks",
    "plain, 3 × epochs": PLAIN_X3,
    "cleanlab": "cleanlab self-confidence",
    "Co-teaching, S2E": "coteaching",
    "L2B": "l2b",
    "UMN": "umn",
    "ChoiceNet": "choicenet",
}
CONSENSUS = {
    "consensus": ("same", "unverified"),
    "consensus, its plain 3 ×": ("longer", "unverified"),
    "with 600 verified rows": ("longer", "learned"),
}
FEWER = {1: "¹", 2: "²"}


def table(stored: dict[str, Any]) -> str:
    """Markdown of one row a set of labels; the consensus counts where all engines took part."""
    head = ["labels", *METHODS, *CONSENSUS]
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    for setting, title in LABELS.items():
        scores = scores_by_method(setting, stored)
        whole = [one for one in setting.consensus(stored) if set(one["engines"]) == set(ENGINES)]
        cells = [_cell([row["auroc"] for row in scores.get(name, [])]) for name in METHODS.values()]
        longer = [one["longer"] for one in whole if one.get("longer")]
        for of, kind in CONSENSUS.values():
            found = longer if of == "longer" else whole
            cells.append(_cell([one[kind]["auroc"] for one in found if one.get(kind)]))
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(values: list[float]) -> str:
    if not values:
        return ""
    return f"{np.mean(values):.3f}".removeprefix("0") + FEWER.get(len(values), "")


SIX = {
    "MNIST, pairs of classes swapped, 45 %": Table("mnist-pair45", 10_000, 10, "mlp"),
    "MNIST, similar digits swapped, 40 %": Table("mnist-asym40", 10_000, 10, "mlp"),
    "MNIST, random errors, 20 %": Table("mnist-sym20", 10_000, 10, "mlp"),
    "CIFAR-10N, human errors, 9 %": Table("cifar10n-aggre", 10_000, 10, "conv3"),
    "CIFAR-10N, human errors, 17 %": Table("cifar10n-random1", 10_000, 10, "conv3"),
    "CIFAR-10, similar classes swapped, 40 %": Table("cifar10-asym40", 10_000, 10, "conv3"),
}
"""The rows of the README: two that the consensus wins, one tie, three that it loses before rows are verified."""
TIE = 0.005
"""Differences of AUROC up to this one count as equal: seeds differ by as much."""


def six_rows(stored: dict[str, Any]) -> str:
    """Markdown of six sets of labels: the consensus beside the plain networks and cleanlab, and who leads."""
    head = [
        "labels",
        "plain",
        "plain, 3 × epochs",
        "cleanlab",
        "consensus",
        "with 600 verified rows",
        "result",
    ]
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    for title, setting in SIX.items():
        scores = scores_by_method(setting, stored)
        others = [[row["auroc"] for row in scores[METHODS[name]]] for name in head[1:4]]
        longer = [one["longer"] for one in setting.consensus(stored) if one.get("longer")]
        ours = [[one[kind]["auroc"] for one in longer if one.get(kind)] for kind in ("unverified", "learned")]
        bar = max(float(np.mean(values)) for values in others)
        result = _standing(float(np.mean(ours[0])) - bar)
        if ours[1] and (then := _standing(float(np.mean(ours[1])) - bar)) != result:
            result += f"; {then} with verified rows"
        lines.append(f"| {title} | " + " | ".join(map(_cell, [*others, *ours])) + f" | {result} |")
    return "\n".join(lines) + "\n"


def _standing(ahead: float) -> str:
    return "ties" if abs(ahead) <= TIE else "**leads**" if ahead > 0 else "loses"
