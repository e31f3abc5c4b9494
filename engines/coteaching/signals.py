"""What Co-teaching's epochs say about every sample: which were picked, and where their losses rank.

Letters: N samples, n samples of an evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.coteaching.rules import Choice
from engines.shared.losses import require_finite
from engines.shared.scoring import rank_percentile


@dataclass(frozen=True, eq=False)
class EpochOutcome:
    """One pass of the networks over their rows."""

    loss: float
    """Mean training loss of all visited samples, both networks."""
    kept_loss: float
    """The same over what the networks learned from."""
    train_accuracy: float
    """On given labels, mean over the networks."""
    selected: NDArray[np.float32]
    """(N,) share of the networks that picked the sample; 0 where it was not visited."""
    losses: NDArray[np.float32]
    """(N,) mean loss of the networks at the visit; NaN where not visited."""
    visited: NDArray[np.bool_]
    """(N,) rows that a batch contained."""


class EpochLog:
    """Sums of one epoch, kept on the device until its end."""

    def __init__(self, num_samples: int, device: torch.device) -> None:
        self._sums = torch.zeros(3, dtype=torch.float64, device=device)  # all losses, kept losses, correct
        self._counts = torch.zeros(3, dtype=torch.float64, device=device)
        self._selected = torch.zeros(num_samples, device=device)
        self._losses = torch.full((num_samples,), float("nan"), device=device)

    def add(self, rows: Tensor, losses: Tensor, choice: Choice, correct: Tensor) -> None:
        """Add one step: rows (B,), and losses and correctness (2, B) of the networks on them, all on the device."""
        weights, size = choice.weights, losses.new_full((), losses.numel())
        sums = (losses.sum(), (losses * weights).sum(), correct.sum())
        self._sums += torch.stack([value.double() for value in sums])
        self._counts += torch.stack([value.double() for value in (size, weights.sum(), size)])
        self._selected[rows] = choice.selected.mean(dim=0).float()
        self._losses[rows] = losses.mean(dim=0).float()

    def outcome(self) -> EpochOutcome:
        """The epoch in numbers.

        Raises:
            EngineError: the loss is no longer finite.
        """
        loss, kept, accuracy = (self._sums / self._counts.clamp(min=1e-12)).tolist()
        require_finite(loss)
        losses = self._losses.cpu().numpy()
        return EpochOutcome(loss, kept, accuracy, self._selected.cpu().numpy(), losses, np.isfinite(losses))


class Tally:
    """Selection and loss ranks of every sample, summed over epochs."""

    def __init__(self, num_samples: int) -> None:
        # Rows: weighted selection, weights, plain selection, visits, rank, rejections, ranked epochs.
        self._sums = np.zeros((7, num_samples))

    def count_selection(self, outcome: EpochOutcome, keep_rate: float) -> None:
        """Add one epoch. An epoch with R = 1 selects everything and says nothing: its weight is 1 - R."""
        weight = (1.0 - keep_rate) * outcome.visited
        self._sums[0] += weight * outcome.selected
        self._sums[1] += weight
        self._sums[2] += outcome.visited * outcome.selected
        self._sums[3] += outcome.visited

    def count_ranks(self, rows: NDArray[np.int64], losses: NDArray[np.float32], keep_rate: float) -> None:
        """Add one evaluation pass: losses (2, n) of the networks on ``rows`` (n,)."""
        ranks = np.stack([rank_percentile(one) for one in losses])
        self._sums[4, rows] += ranks.mean(axis=0)
        self._sums[5, rows] += (ranks > keep_rate).all(axis=0)
        self._sums[6, rows] += 1

    def signals(self) -> dict[str, NDArray[np.float32]]:
        """``selected``, ``loss_rank`` and ``rejected`` (N,) in [0, 1]; NaN where a sample was never seen."""
        weighted, weights, plain, visits, rank, rejected, ranked = self._sums
        with np.errstate(invalid="ignore", divide="ignore"):
            selected = np.where(weights > 0, weighted / weights, plain / visits)
            signals = {"selected": selected, "loss_rank": rank / ranked, "rejected": rejected / ranked}
        return {name: values.astype(np.float32) for name, values in signals.items()}

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {"sums": torch.from_numpy(self._sums.copy())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self._sums = state["sums"].numpy().copy()


def epoch_signals(outcome: EpochOutcome | None, labeled: NDArray[np.bool_]) -> dict[str, NDArray[np.float32]]:
    """One epoch's ``selected`` (share of the networks that picked the sample) and in-training ``loss_rank``.

    (N,) each, NaN where unlabeled, and where the epoch did not visit the sample.
    """
    if outcome is None:
        nothing = np.full(len(labeled), np.nan, dtype=np.float32)
        return {"selected": nothing, "loss_rank": nothing}
    seen = labeled & outcome.visited
    ranks = rank_percentile(np.where(seen, outcome.losses, np.nan))
    return {
        "selected": np.where(seen, outcome.selected, np.float32("nan")),
        "loss_rank": ranks.astype(np.float32),
    }
