"""The short table of the docs, from the same figures as the whole page: AUROC, means of the seeds.

``python -m tools.reference`` writes it into its page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.detection_report import PLAIN_X3, Table, scores_by_method

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
FEWER = {1: "¹", 2: "²"}


def table(stored: dict[str, Any]) -> str:
    """Markdown of one row a set of labels."""
    head = ["labels", *METHODS]
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    for setting, title in LABELS.items():
        scores = scores_by_method(setting, stored)
        cells = [_cell([row["auroc"] for row in scores.get(name, [])]) for name in METHODS.values()]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(values: list[float]) -> str:
    if not values:
        return ""
    return f"{np.mean(values):.3f}".removeprefix("0") + FEWER.get(len(values), "")
