"""Probabilities that mean what they say: of errors and of suggestions, fitted on verified rows.

Few rows move them little: both fits are penalised towards what is known without any.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import expit, logit

GUESS_SLOPE = 1.5
"""Slope of the error probability on the log-odds of doubt where nothing is verified."""
GUESS_CLIP = 0.005
"""Share at either end within which a guessed probability no longer changes."""


def calibrate_error_probability(
    doubt: NDArray[np.floating],
    sample_ids: NDArray[np.integer],
    is_wrong: NDArray[np.bool_],
    *,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Fit P(wrong) = expit(a + b logit(doubt)), b > 0, on verified rows and apply it to all.

    Penalised likelihood: a around the log-odds of the share seen, b around ``GUESS_SLOPE``, so that few rows
    stay sane. Doubt beyond the rows' own resolution, 1 / (2 (m + 1)), counts as that.

    Args:
        doubt: (N,) percentile of doubt in (0, 1), NaN where unknown.
        sample_ids: (m,) verified rows, m >= 1.
        is_wrong: (m,) bool.
        weights: (m,) positive, how many labels each row stands for; None = all the same.
    """
    edge = 1.0 / (2.0 * (len(sample_ids) + 1))
    features = logit(np.clip(doubt, edge, 1 - edge))
    weight = _worth(len(sample_ids), weights)
    centre = logit(((weight * is_wrong).sum() + 0.5) / (weight.sum() + 1.0))
    at, wrong = features[sample_ids], is_wrong.astype(np.float64)

    def loss(parameters: NDArray[np.float64]) -> float:
        score = parameters[0] + np.exp(parameters[1]) * at
        fit = (weight * (np.logaddexp(0.0, score) - wrong * score)).sum()
        penalty = (parameters[0] - centre) ** 2 / 18.0 + (parameters[1] - np.log(GUESS_SLOPE)) ** 2 / 2.0
        return float(fit + penalty)

    best = scipy.optimize.minimize(loss, np.array([centre, np.log(GUESS_SLOPE)]), method="BFGS").x
    probability: NDArray[np.float64] = expit(best[0] + np.exp(best[1]) * features)
    # m rows cannot show that more than m + 1 of m + 2 such labels are wrong (Laplace's rule).
    return np.minimum(probability, 1.0 - 1.0 / (len(sample_ids) + 2))


def guess_error_probability(doubt: NDArray[np.floating], share: float) -> NDArray[np.float64]:
    """Return a curve that rises with doubt and whose mean is ``share``; nothing backs it but the guess."""
    features = GUESS_SLOPE * logit(np.clip(doubt, GUESS_CLIP, 1 - GUESS_CLIP))
    share = float(np.clip(share, 1e-4, 1 - 1e-4))
    grid = GUESS_SLOPE * logit(np.clip((np.arange(1000) + 0.5) / 1000, GUESS_CLIP, 1 - GUESS_CLIP))
    shift = scipy.optimize.brentq(lambda a: float(expit(a + grid).mean()) - share, -40.0, 40.0)
    probability: NDArray[np.float64] = expit(shift + features)
    return probability


def calibrate_suggestions(
    chance: NDArray[np.floating],
    sample_ids: NDArray[np.integer],
    is_hit: NDArray[np.bool_],
    *,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Map the suggestions' probability to how often such ones were right on verified wrong labels.

    Penalised Platt scaling, expit(a + b logit(chance)), a around 0 and log b around 0 with standard
    deviation 1 each: without rows nothing changes, and a handful cannot turn it over.

    Args:
        chance: (N,) raw probability, NaN where there is no suggestion.
        sample_ids: verified rows whose given label is wrong.
        is_hit: bool, the suggestion was the true label.
        weights: as for errors.
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
    # As for errors: a few rows cannot show that practically every suggestion is right.
    return np.minimum(probability, 1.0 - 1.0 / (len(sample_ids) + 2)) if len(sample_ids) else probability


def _worth(num_rows: int, weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """(m,) weights that sum to the number of equal rows that rows of such weights are worth (Kish 1965)."""
    if weights is None or not num_rows:
        return np.ones(num_rows)
    return np.asarray(weights * weights.sum() / (weights**2).sum())
