"""ε over the epochs.

High ε was published as "suspect". Measured, it is learning activity without a direction: a label that guider
and learner both reject has ε near 0. It is for display; trust comes from the two networks' margins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

EMA_DECAY = 0.9


class EpsilonTracker:
    """ε of N samples by epoch, aggregated on the go; rows are sample numbers, never batch positions."""

    def __init__(self, num_samples: int) -> None:
        self._epochs = 0
        self._average = torch.zeros(num_samples)
        self._final = torch.full((num_samples,), float("nan"))

    def update(self, epsilon: NDArray[np.float32]) -> None:
        """Add one epoch's ε (N,), NaN where a sample has none."""
        values = torch.from_numpy(np.asarray(epsilon, dtype=np.float32))
        self._epochs += 1
        self._average = EMA_DECAY * self._average + (1 - EMA_DECAY) * values
        self._final = values.clone()

    def aggregate(self, how: str) -> NDArray[np.float32]:
        """ε of every sample: (N,) float32.

        ``how``: ``"final"`` epoch (what the paper identifies by) or ``"ema"`` (decay 0.9, corrected for its zero
        start).
        """
        average = self._average / (1 - EMA_DECAY ** max(1, self._epochs))
        return {"final": self._final, "ema": average}[how].numpy()

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {
            "epochs": self._epochs,
            "average": self._average,
            "final": self._final,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self._epochs = int(state["epochs"])
        self._average, self._final = state["average"], state["final"]
