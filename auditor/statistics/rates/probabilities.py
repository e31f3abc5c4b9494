"""Probabilities that mean what they say: of errors and of suggestions, fitted on verified rows.

Few rows move them little: both fits are penalised towards what is known without any.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import expit, logit

GUESS_SLOPE = 1.5
"""Slope of the error probability on the log-odds of doubt where nothing is verified. On features 1 has less log
loss and 12 % fewer flags (``benchmarks/results/constants.md``). On the demo's digits the noise matrix is then 2.2
points off the truth at most, with this 1.2."""
GUESS_CLIP = 0.005
"""Share at either end within which a guessed probability no longer changes."""


def calibrate(
    chance: NDArray[np.floating],
    sample_ids: NDArray[np.integer],
    is_hit: NDArray[np.bool_],
    *,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Map probabilities of something to how often it was so on verified rows.

    Penalised Platt scaling, expit(a + b logit(chance)), a and log b around 0 with standard deviation 1 each:
    without rows nothing changes, and a handful cannot turn it over. m rows cannot show that more than m + 1 of
    m + 2 are so (Laplace's rule).

    Args:
        chance: (N,) probability, NaN where there is none.
        sample_ids: (m,) verified rows with a probability.
        is_hit: (m,) bool, it was so.
        weights: (m,) positive, how many labels each row stands for; None = all the same.
    """
    features = logit(np.clip(chance, 1e-3, 1 - 1e-3))
    at, hit = features[sample_ids], is_hit.astype(np.float64)
    weight = _worth(len(sample_ids), weights)

    def loss(parameters: NDArray[np.float64]) -> float:
        score = parameters[0] + np.exp(parameters[1]) * at
        fit = (weight * (np.logaddexp(0.0, score) - hit * score)).sum()
        return float(fit + (parameters**2).sum() / 2.0)

    best = scipy.optimize.minimize(loss, np.zeros(2), method="BFGS").x
    probability: NDArray[np.float64] = expit(best[0] + np.exp(best[1]) * features)
    return np.minimum(probability, 1.0 - 1.0 / (len(sample_ids) + 2)) if len(sample_ids) else probability


def guess_error_probability(doubt: NDArray[np.floating], share: float) -> NDArray[np.float64]:
    """Return a curve that rises with doubt and whose mean is ``share``; nothing backs it but the guess."""
    features = GUESS_SLOPE * logit(np.clip(doubt, GUESS_CLIP, 1 - GUESS_CLIP))
    share = float(np.clip(share, 1e-4, 1 - 1e-4))
    grid = GUESS_SLOPE * logit(np.clip((np.arange(1000) + 0.5) / 1000, GUESS_CLIP, 1 - GUESS_CLIP))
    shift = scipy.optimize.brentq(lambda a: float(expit(a + grid).mean()) - share, -40.0, 40.0)
    probability: NDArray[np.float64] = expit(shift + features)
    return probability


def _worth(num_rows: int, weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """(m,) weights that sum to the number of equal rows that rows of such weights are worth (Kish 1965)."""
    if weights is None or not num_rows:
        return np.ones(num_rows)
    return np.asarray(weights * weights.sum() / (weights**2).sum())
