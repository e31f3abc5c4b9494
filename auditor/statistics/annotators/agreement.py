"""How far annotators agree beyond chance: Krippendorff's alpha (2011, nominal data), whole and for each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.statistics.annotators.answers import Answers


@dataclass(frozen=True, eq=False)
class Agreement:
    """1 where all agree, 0 where they agree as chance would; NaN where nothing can be said."""

    alpha: float
    """Over all classes."""
    by_class: NDArray[np.float64]
    """(K,) of the question whether a picture is of this class or not."""
    num_rows: int
    """Pictures with two answers at least: the others say nothing."""


def agreement(answers: Answers) -> Agreement:
    """Measure the agreement on the pictures with two answers or more."""
    counts = answers.counts()
    counts = counts[counts.sum(axis=1) >= 2].astype(np.float64)
    sizes = counts.sum(axis=1)
    total, by_class = sizes.sum(), counts.sum(axis=0)
    # Pairs of unlike answers inside a picture, each picture counting as many pairs as it has answers.
    unlike = (counts * (sizes[:, None] - counts) / (sizes[:, None] - 1)).sum(axis=0)
    expected = by_class * (total - by_class) / max(total - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        alphas = 1.0 - unlike / expected
        alpha = 1.0 - unlike.sum() / expected.sum()
    return Agreement(float(alpha), alphas, len(counts))
