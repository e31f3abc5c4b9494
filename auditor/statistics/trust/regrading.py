"""Trust in the labels as given, also where an engine trained on what a person put in their place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.statistics.rates import UNLABELED, given_margins


def trust_in_given(
    trust_score: NDArray[np.floating],
    pred_probs: NDArray[np.floating],
    given_labels: NDArray[np.integer],
    trained_labels: NDArray[np.integer],
) -> NDArray[np.float32]:
    """Return the trust with the rows replaced whose given label the engine never saw.

    An engine scores the label that it trained on: a correction then looks right beside a given label that is
    wrong, and what a person excluded has no score at all, as if it could not be in question. For these rows the
    margin log p(given) - log p(best other) takes its place among the margins of all others, and the trust of the
    same rank there is read off.

    Args:
        trust_score: (N,) in [0, 1], of the trained labels, NaN where unlabeled.
        pred_probs: (N, K), array or memory map.
        given_labels: (N,) int, -1 unlabeled.
        trained_labels: (N,) int, what the engine trained on.
    """
    graded = np.array(trust_score, dtype=np.float32)
    changed = (given_labels != UNLABELED) & (trained_labels != given_labels)
    scored = (given_labels != UNLABELED) & ~changed & np.isfinite(graded)
    if not changed.any() or not scored.any():
        return graded
    margins = given_margins(pred_probs, given_labels)
    places = np.searchsorted(np.sort(margins[scored]), margins[changed]) / scored.sum()
    graded[changed] = np.quantile(graded[scored], np.clip(places, 0.0, 1.0))
    return graded
