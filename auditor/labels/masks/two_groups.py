"""How likely a region of a mask is wrong, from how all regions of an audit score together.

An engine that reads pixels doubts hundreds of regions, and errs in most of them: it draws borders elsewhere, and
takes classes that look alike for each other. So a region counts by how much more it says than such errors do. Its
score is ln(area) + mean ln(p(seen) / p(given)) - ln(share of the given class's pixels that are seen as this one).
The scores of errors of the engine form the large group, whose lower half is all but undisturbed by wrong masks: a
normal curve fits it (the empirical null of Efron, 2004, "Large-scale simultaneous hypothesis testing"). What lies
above that curve is wrong: P(wrong | score) = 1 - local false discovery rate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import gaussian_kde, norm

LEAST_PROBABILITY = 1e-4
"""What an engine's float16 hardly tells from zero."""
FEWEST = 30
"""Regions from which a curve is fitted."""
GRID = 512


def says(seen_prob: NDArray[np.floating], given_prob: NDArray[np.floating]) -> tuple[float, float]:
    """Return the mean ln(p(seen) / p(given)) of a region's pixels (n,), and their mean P(seen | seen or given)."""
    seen, given = seen_prob.astype(np.float64), given_prob.astype(np.float64)
    ratio = np.log(seen + LEAST_PROBABILITY) - np.log(given + LEAST_PROBABILITY)
    return float(ratio.mean()), float(np.mean(seen / np.maximum(seen + given, LEAST_PROBABILITY)))


def score(area: int, ratio: float, confused: float) -> float:
    """Return how much a region says against its given class.

    Args:
        area: in pixels.
        ratio: of ``says``.
        confused: share of the pixels of that given class, over all masks, at which this other class is seen.
    """
    return float(np.log(area) + ratio - np.log(max(confused, LEAST_PROBABILITY)))


def chances_wrong(
    scores: NDArray[np.float64], own: NDArray[np.float64], num_masks: int
) -> NDArray[np.float64]:
    """Return (R,) how likely each region is wrong, by the scores of all of them.

    It never falls as a score rises, and is 0 below the middle of the largest group. Fewer regions than masks, or
    than ``FEWEST``, are no group of errors: there the engine's ``own`` probabilities (R,) stand.
    """
    if len(scores) < max(FEWEST, num_masks) or np.ptp(scores) == 0:
        return own
    grid = np.linspace(scores.min(), scores.max(), GRID)
    smooth = gaussian_kde(scores)
    density = smooth(grid)
    middle = float(grid[density.argmax()])
    below = scores[scores < middle]
    width = float(
        np.sqrt(np.mean((below - middle) ** 2) + smooth.covariance[0, 0])
    )  # smoothed as the density is
    share = min(1.0, 2 * len(below) / len(scores))
    errors = share * norm.pdf(grid, middle, width) / np.maximum(density, np.finfo(float).tiny)
    errors = np.where(grid < middle, 1.0, np.minimum(errors, 1.0))
    found: NDArray[np.float64] = np.interp(scores, grid, 1 - np.minimum.accumulate(errors))
    return found
