"""ε over the epochs and the published ways to call a label wrong by it.

High ε was published as "suspect". Measured, it is learning activity without a direction: a label that guider
and learner both reject has ε near 0. The rules below are therefore for the paper's table and for display;
trust comes from the two networks' margins (``engines/umn.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from engines.shared.selection import gmm_small_loss_probability

EMA_DECAY = 0.9
EPSILON_THRESHOLD = 0.05
MIXTURE_OFFSET = 1e-6
RULES = ("final_argmax", "final_threshold", "gmm")
"""Every published or plausible reading of how the paper identifies corrupt labels."""


class EpsilonTracker:
    """ε of every sample by epoch, aggregated on the go in float32: N values an aggregate, not N an epoch.

    Args:
        num_samples: N; rows are sample numbers, never batch positions.
        num_epochs: planned epochs, for the mean over the first third.
    """

    def __init__(self, num_samples: int, num_epochs: int) -> None:
        self._early_epochs = max(1, -(-num_epochs // 3))
        self._epochs = 0
        self._average = torch.zeros(num_samples)
        self._early = torch.zeros(num_samples)
        self._highest = torch.zeros(num_samples)
        self._final = torch.full((num_samples,), float("nan"))

    def update(self, epsilon: NDArray[np.float32]) -> None:
        """Add one epoch's ε (N,), NaN where a sample has none."""
        values = torch.from_numpy(np.asarray(epsilon, dtype=np.float32))
        self._epochs += 1
        self._average = EMA_DECAY * self._average + (1 - EMA_DECAY) * values
        if self._epochs <= self._early_epochs:
            self._early = self._early + values
        self._highest = torch.maximum(self._highest, values)
        self._final = values.clone()

    def aggregate(self, how: str) -> NDArray[np.float32]:
        """ε of every sample: (N,) float32.

        ``how``: ``"final"`` epoch (what the paper identifies by), ``"ema"`` (decay 0.9, corrected for its
        zero start), ``"first_third"`` (mean; the theory says ε is informative early), or ``"max"``.
        """
        seen = max(1, self._epochs)
        found = {
            "final": self._final,
            "ema": self._average / (1 - EMA_DECAY**seen),
            "first_third": self._early / min(seen, self._early_epochs),
            "max": self._highest,
        }
        return found[how].numpy()

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {
            "epochs": self._epochs,
            "average": self._average,
            "early": self._early,
            "highest": self._highest,
            "final": self._final,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self._epochs = int(state["epochs"])
        self._average, self._early = state["average"], state["early"]
        self._highest, self._final = state["highest"], state["final"]


def flag_by_threshold(epsilon: ArrayLike, threshold: float = EPSILON_THRESHOLD) -> NDArray[np.bool_]:
    """``final_threshold``: ε above ``threshold`` (the paper's literal 0 flags every sample); NaN is False."""
    flagged: NDArray[np.bool_] = np.nan_to_num(np.asarray(epsilon, dtype=np.float64), nan=-1.0) > threshold
    return flagged


def flag_by_mixture(epsilon: ArrayLike) -> NDArray[np.bool_]:
    """``gmm``: posterior above 1/2 of the higher of two Gaussians on log(ε + 1e-6); NaN is False."""
    high = 1.0 - gmm_small_loss_probability(np.log(np.asarray(epsilon, dtype=np.float64) + MIXTURE_OFFSET))
    flagged: NDArray[np.bool_] = np.nan_to_num(high, nan=0.0) > 0.5
    return flagged


def identify(
    signals: Mapping[str, NDArray[np.float32]], final_epsilon: NDArray[np.float32]
) -> dict[str, NDArray[np.bool_]]:
    """The samples that each rule of ``RULES`` calls wrong.

    Args:
        signals: of an :class:`engines.contract.EngineResult` of UMN.
        final_epsilon: (N,) ε of the last epoch; ``signal_history["epsilon"][-1]``.

    Returns:
        Rule name -> (N,) bool. ``gmm`` reads the aggregated ε, as its definition says.
    """
    return {
        "final_argmax": np.nan_to_num(signals["networks_disagree"], nan=0.0) > 0.5,
        "final_threshold": flag_by_threshold(final_epsilon),
        "gmm": flag_by_mixture(signals["epsilon"]),
    }
