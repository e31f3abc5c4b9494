"""Where one more answer would help most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.statistics.annotators.answers import Answers
from auditor.statistics.annotators.consensus import Consensus
from auditor.statistics.rates import row_chunks


def gains_of_one_more(found: Consensus) -> NDArray[np.float64]:
    """(N,) share of errors that one more answer of the usual annotator is expected to mend on each picture."""
    usual = np.average(found.transitions, axis=0, weights=np.maximum(found.num_answers, 1e-9))
    gains = np.zeros(len(found.probs))
    for rows in row_chunks(len(gains), usual.size):
        gains[rows] = _gains(found.probs[rows].astype(np.float64), usual)
    return gains


def whom_to_ask(found: Consensus, answers: Answers, row: int) -> tuple[int, float] | None:
    """The annotator whose answer is expected to mend most on a picture, and how much; None where all answered."""
    left = np.setdiff1d(
        np.flatnonzero(found.num_answers), answers.annotators[answers.rows == row], assume_unique=True
    )
    if not len(left):
        return None
    one = found.probs[row].astype(np.float64)
    gains = np.array([_gains(one[None], found.transitions[who])[0] for who in left])
    best = int(gains.argmax())
    return int(left[best]), float(gains[best])


def _gains(probs: NDArray[np.float64], transition: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) rise of the best class's expected probability once an annotator with this T has answered."""
    best = (probs[:, :, None] * transition[None]).max(axis=1).sum(axis=1)
    return np.maximum(best - probs.max(axis=1), 0.0)
