"""Samples of small loss, how likely a loss is one of a clean sample, and labels dealt out by class.

Ties go to the earlier sample, so that equal losses never make a run depend on how the device sorts.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.contract import EngineInputError
from engines.shared.device import make_generator

MIXTURE_SAMPLE = 100_000
"""Losses that the mixture is fitted on at most; the posterior is computed for all."""

MIXTURE_STEPS = 100
"""EM steps of a fit at most, so that it converges. DivideMix, whose split this is, stops after 10."""

BELIEVED = 0.5
"""A label is believed above this posterior of the small-loss component (DivideMix; 0.6 at 90 % noise)."""


def keep_count(keep_rate: float, batch_size: int) -> int:
    """Samples to keep: ``max(1, floor(keep_rate * batch_size))``, robust to 0.7 * 10 = 6.999...; 0 of 0."""
    return min(batch_size, max(1, int(keep_rate * batch_size + 1e-9)))


def small_loss_mask(losses: Tensor, count: int | Tensor) -> Tensor:
    """The smallest losses as a mask, for several networks: (G, B) losses -> (G, B) bool.

    Each row is True at its ``count`` smallest losses: among equal ones the earlier sample is kept, NaN counts as
    the largest. ``count`` may be a 0-dimensional tensor, which need not come back from the device.
    """
    rank = torch.argsort(torch.argsort(losses, dim=1, stable=True), dim=1)
    return rank < count


def gmm_small_loss_probability(
    losses: NDArray[np.floating] | Tensor, *, max_steps: int = MIXTURE_STEPS
) -> NDArray[np.float64]:
    """Posterior that a loss comes from the low-mean of two Gaussians: (N,) -> (N,) in [0, 1]; high = clean.

    DivideMix's co-divide on min-max scaled losses. Where the losses cannot be split (fewer than two, or all
    equal) every posterior is 1. NaN losses get NaN. Deterministic; fits on at most 100,000 losses, in at most
    ``max_steps`` EM steps.
    """
    values = np.asarray(losses, dtype=np.float64)
    posterior = np.full(values.shape, np.nan)
    known = np.isfinite(values)
    scaled = values[known]
    if len(scaled) == 0:
        return posterior
    low, high = scaled.min(), scaled.max()
    if len(scaled) < 2 or high - low <= 1e-12 * max(1.0, abs(high)):
        posterior[known] = 1.0
        return posterior
    scaled = ((scaled - low) / (high - low))[:, None]
    step = -(-len(scaled) // MIXTURE_SAMPLE)
    # Here: it takes a second to load, and most runs fit none.
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    mixture = GaussianMixture(2, tol=1e-2, reg_covar=5e-4, max_iter=max_steps, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # where few steps are asked for, few are meant
        mixture.fit(scaled[::step])
    posterior[known] = mixture.predict_proba(scaled)[:, int(np.argmin(mixture.means_[:, 0]))]
    return posterior


def deal_by_class(given_labels: NDArray[np.int64], parts: int, *, seed: int, name: str) -> NDArray[np.int64]:
    """Part of each sample, 0..parts-1 in equal shares of every class; -1 where unlabeled: (N,) -> (N,).

    Args:
        given_labels: (N,) int, -1 unlabeled.
        parts: at least 1; with 1 every labeled sample is in part 0.
        seed: of the run.
        name: the config's field of ``parts``; it names the random stream.

    Raises:
        EngineInputError: there are more parts than labeled samples.
    """
    labeled = np.flatnonzero(given_labels >= 0)
    if parts > len(labeled):
        raise EngineInputError(f"{name} is {parts} but only {len(labeled)} samples are labeled.")
    part_of = np.full(len(given_labels), -1, dtype=np.int64)
    shuffled = labeled[torch.randperm(len(labeled), generator=make_generator(seed, name)).numpy()]
    by_class = shuffled[np.argsort(given_labels[shuffled], kind="stable")]
    part_of[by_class] = np.arange(len(by_class)) % parts
    return part_of
