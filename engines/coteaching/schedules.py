"""Keep-rate schedules R(t): the hand-made one of Co-teaching, and the space that S2E searches.

R(t) in (0, 1] is the share of a mini-batch that small-loss selection keeps in epoch t; the forget rate is
F = 1 - R. A space is a map from a vector x of numbers in [0, 1] to one curve; S2E's has a Dirichlet and 16 Betas.
The rival spaces of the paper's ablation are in ``benchmarks/papers/s2e_rivals.py``.
This module knows no network, no loss and no search: NumPy arrays in and out.

Source: Yao et al., "Searching to Exploit Memorization Effect in Learning with Noisy Labels", ICML 2020
(S2E); Han et al., "Co-teaching: Robust Training of Deep Neural Networks with Extremely Noisy Labels", 2018.
Departures, all of them guards: every curve is clipped to [MIN_KEEP_RATE, 1] (the published sums leave
[0, 1]), and parameters are kept PARAMETER_FLOOR away from 0 and 1 (0^0 and 0/0 at t = 0).

Letters: D numbers of x, E epochs, T horizon of the schedule in epochs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

MIN_KEEP_RATE = 0.01
"""Smallest R(t): something is always kept."""

PARAMETER_FLOOR = 1e-6
"""Parameters live in [PARAMETER_FLOOR, 1 - PARAMETER_FLOOR]."""


@dataclass(frozen=True)
class ScheduleSpace:
    """One space of schedules: which numbers it takes and which curve they give."""

    name: str
    parameters: tuple[str, ...]
    """Names of the D numbers of x, each in [0, 1]."""
    raw: Callable[[FloatArray, FloatArray, float], FloatArray]
    """(x (D,), t (E,), T) -> R (E,), not yet clipped."""
    simplex_size: int = 0
    """The first so many numbers sum to one (Dirichlet); the others are independent (Beta)."""

    @property
    def size(self) -> int:
        """D."""
        return len(self.parameters)

    def keep_rates(self, x: FloatArray, num_epochs: int, *, horizon: float | None = None) -> FloatArray:
        """R at the start of each epoch.

        Args:
            x: (D,) numbers in [0, 1]; moved PARAMETER_FLOOR inside.
            num_epochs: E, epochs that will be trained.
            horizon: T, the length the schedule is meant for; a shorter (proxy) run samples the same
                curve at t = e T / E. Default: E.

        Returns:
            (E,) float64 in [MIN_KEEP_RATE, 1].

        Raises:
            ValueError: x has the wrong length.
        """
        if len(x) != self.size:
            raise ValueError(f"space {self.name!r} takes {self.size} numbers, got {len(x)}.")
        total = float(num_epochs if horizon is None else horizon)
        t = np.arange(num_epochs, dtype=np.float64) * (total / max(num_epochs, 1))
        return self.at(x, t, total)

    def at(self, x: FloatArray, t: FloatArray, horizon: float) -> FloatArray:
        """R at any times t (E,) of a schedule of length ``horizon``; clipped to [MIN_KEEP_RATE, 1]."""
        inside = np.clip(np.asarray(x, dtype=np.float64), PARAMETER_FLOOR, 1 - PARAMETER_FLOOR)
        return clip_keep_rate(self.raw(inside, np.asarray(t, dtype=np.float64), horizon))


def clip_keep_rate(rates: FloatArray) -> FloatArray:
    """Clip R to [MIN_KEEP_RATE, 1]; the published sums can exceed one and fall below zero."""
    return np.clip(rates, MIN_KEEP_RATE, 1.0)


def coteaching_keep_rate(t: FloatArray, *, noise_rate: float, ramp_epochs: float) -> FloatArray:
    """Co-teaching's schedule, Eq. (4) with c = 1: R(t) = 1 - tau min(t / t_k, 1).

    Args:
        t: (E,) epochs, from 0.
        noise_rate: tau in [0, 1], the share that is dropped in the end.
        ramp_epochs: t_k > 0, epochs until then.

    Returns:
        (E,) float64 in [MIN_KEEP_RATE, 1].
    """
    t = np.asarray(t, dtype=np.float64)
    return clip_keep_rate(1.0 - noise_rate * np.minimum(t / ramp_epochs, 1.0))


# --- S2E's space -------------------------------------------------------------------------------------------


def basis_curve(a: FloatArray, t: FloatArray, horizon: float, which: int) -> FloatArray:
    """h_1 .. h_4 of Eq. (6), ``which`` in 0..3: {exp, power} decay x {power, log} growth."""
    a1, a2, a3, a4 = a
    decay = np.exp(-a2 * t**a1) if which < 2 else (1.0 + a2 * t) ** (-a1)
    growth = (t / horizon) ** a4 if which % 2 == 0 else np.log1p(t**a4) / np.log1p(horizon**a4)
    return decay + a3 * growth


def _paper_space(x: FloatArray, t: FloatArray, horizon: float) -> FloatArray:
    """R = sum_i w_i h_i(t; a_i), w on the simplex, each h_i with its own four numbers (Eq. 6)."""
    return sum(
        (x[i] * basis_curve(x[4 + 4 * i : 8 + 4 * i], t, horizon, i) for i in range(4)), np.zeros_like(t)
    )


S2E_SPACE = ScheduleSpace(
    "paper",
    (*(f"w{i + 1}" for i in range(4)), *(f"h{i + 1}_a{j + 1}" for i in range(4) for j in range(4))),
    _paper_space,
    simplex_size=4,
)
"""What is searched."""
