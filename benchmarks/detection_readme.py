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
    Table("mnist-asym40", 10_000, 10, "mlp"): "MNIST, 7>1, 2>7, 3>8, 5<>6 at 40 %",
    Table("cifar10n-aggre", 10_000, 10, "conv3"): "CIFAR-10N aggre, human, 9 %",
    Table("cifar10-asym40", 10_000, 10, "conv3"): "CIFAR-10, asymmetric 40 %",
}
METHODS = {
    "plain": "cross_entropy",
    "three plain": "three plain networks",
    "plain, 3 × epochs": PLAIN_X3,
    "cleanlab, the better score": "",
    "Co-teaching, S2E": "coteaching",
    "L2B": "l2b",
    "UMN": "umn",
    "ChoiceNet": "choicenet",
}
CLEANLAB = ("cleanlab self-confidence", "cleanlab normalized margin")
"""The two scores of its column; each row has the one that finds more there."""


def table(stored: dict[str, Any]) -> str:
    """Markdown of one row a set of labels."""
    head = ["labels", *METHODS]
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    for setting, title in LABELS.items():
        scores = scores_by_method(setting, stored)
        cells = [
            _cell(
                max(np.mean([row["auroc"] for row in scores[one]]) for one in ([name] if name else CLEANLAB))
            )
            for name in METHODS.values()
        ]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")
