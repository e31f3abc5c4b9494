"""What several annotators' answers say, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from auditor.statistics.annotators.agreement import agreement
from auditor.statistics.annotators.answers import Answers
from auditor.statistics.annotators.asking import gains_of_one_more, whom_to_ask
from auditor.statistics.annotators.consensus import Consensus

MOST_NAMED = 3
"""Confusions of an annotator."""


def described(
    found: Consensus, answers: Answers, annotators: Sequence[str], classes: Sequence[str], top: int = 20
) -> dict[str, Any]:
    """pictures, answers, alpha, classes, annotators, dependent and ask_first; ``top`` pictures in the last."""
    agreed, gains = agreement(answers), gains_of_one_more(found)
    pairs = np.argwhere(np.triu(np.nan_to_num(found.dependence), 1) > 0)
    return {
        "pictures": answers.num_rows,
        "answers": len(answers.rows),
        "unanswered": int((found.labels < 0).sum()),
        "with_pictures": found.weight > 0,
        "expected_wrong": number(1.0 - np.nanmean(found.probability())),
        "alpha": number(agreed.alpha),
        "pictures_with_several": agreed.num_rows,
        "classes": [
            {"class": one, "alpha": number(alpha)}
            for one, alpha in zip(classes, agreed.by_class, strict=True)
        ],
        "annotators": [
            {
                "annotator": one,
                "answers": int(found.num_answers[at]),
                "quality": number(found.quality[at]),
                "low": number(found.quality_low[at]),
                "high": number(found.quality_high[at]),
                "confuses": _confusions(found, at, classes) if found.num_answers[at] else [],
            }
            for at, one in enumerate(annotators)
        ],
        "dependent": [
            {"annotators": [annotators[a], annotators[b]], "dependence": number(found.dependence[a, b])}
            for a, b in pairs
        ],
        "ask_first": [
            {
                "row": row,
                "ask": None if (asked := whom_to_ask(found, answers, row)) is None else annotators[asked[0]],
                "gain": number(gains[row]),
                "consensus": classes[found.labels[row]] if found.labels[row] >= 0 else "",
            }
            for row in np.argsort(-gains, kind="stable")[:top].tolist()
            if gains[row] > 0
        ],
    }


def number(value: Any) -> float | None:
    """Four digits; None where it is not known."""
    return None if not np.isfinite(value) else round(float(value), 4)


def _confusions(found: Consensus, at: int, classes: Sequence[str]) -> list[dict[str, Any]]:
    """The classes that an annotator gives most often for another one, with 95 % intervals."""
    others = found.transitions[at] * (1 - np.eye(len(classes)))
    worst = [divmod(int(cell), len(classes)) for cell in np.argsort(-others, axis=None)[:MOST_NAMED]]
    return [
        {"true": classes[true], "given": classes[given], "share": number(others[true, given])}
        | dict(zip(("low", "high"), map(number, found.interval(at, true, given)), strict=True))
        for true, given in worst
        if true != given
    ]
