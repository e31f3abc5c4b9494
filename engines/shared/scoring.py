"""What a trained network says about every sample, and the trust that follows from it.

Measured: the log-space margin of the given label, averaged over a few test-time views, ranked
together with the margin averaged over training, is the best score of every method tried. All of it is high
where the given label looks right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from engines.contract import UNLABELED
from engines.shared.device import autocast
from engines.shared.large import ROWS_AT_ONCE, large_array
from engines.shared.loader import MeanStd
from engines.shared.losses import log_margin, require_finite
from engines.shared.rows import Rows


class Scores(NamedTuple):
    """A deterministic pass over all samples, rows in input order."""

    log_probs: NDArray[np.float32]
    """(N, K), mean over the views of log softmax; not renormalised."""
    pred_probs: NDArray[np.float32]
    """(N, K), softmax of ``log_probs``: rows sum to 1."""
    embeddings: NDArray[np.float32]
    """(N, D), features of the unmoved image."""


@torch.no_grad()
def score_pass(
    network: nn.Module,
    store: Rows,
    mean_std: MeanStd | None,
    *,
    views: int = 1,
    batch_size: int | None = None,
    precision: str = "float32",
    index: Tensor | None = None,
) -> Scores:
    """Run ``network`` (returning features and logits) in evaluation mode over the rows of ``store``.

    ``mean_std`` None feeds rows as they are (images in [0, 1]); ``batch_size`` None is ``store.scoring_batch``.
    ``index`` (M,) int64 scores those rows only, in that order. Deterministic; the network's mode is restored.
    Memory: one batch on the device, and the three results, N * (2K + D) * 4 bytes, on the CPU; embeddings above
    half a GB are in a file (``large_array``).

    Raises:
        EngineError: a log-probability is not finite, because the training has diverged.
    """
    order = torch.arange(store.num_samples, device=store.device) if index is None else index.to(store.device)
    batch_size = batch_size or store.scoring_batch
    was_training = network.training
    network.eval()
    log_probs: NDArray[np.float32] | None = None
    embeddings: NDArray[np.float32] | None = None
    for start in range(0, len(order), batch_size):
        rows = slice(start, start + batch_size)
        features, total = _batch_log_probs(network, store.views(order[rows], views, mean_std), precision)
        if log_probs is None or embeddings is None:
            log_probs = np.empty((len(order), total.shape[1]), dtype=np.float32)
            embeddings = large_array((len(order), features.shape[1]), np.float32)
        log_probs[rows] = total.cpu().numpy()
        embeddings[rows] = features.float().cpu().numpy()
    network.train(was_training)
    assert log_probs is not None
    assert embeddings is not None
    require_finite(log_probs, "what the network says")
    return Scores(log_probs, normalized_probs(log_probs), embeddings)


@torch.no_grad()
def feature_views(
    network: nn.Module,
    store: Rows,
    mean_std: MeanStd | None,
    *,
    views: int,
    precision: str = "float32",
) -> NDArray[np.float16]:
    """Return what ``network`` sees in at most ``views`` views of every row of ``store``: (N, V, D) float16.

    In evaluation mode, which is restored. Deterministic. Values beyond float16 are cut off at its largest.
    """
    was_training = network.training
    network.eval()
    largest = float(np.finfo(np.float16).max)
    found: NDArray[np.float16] | None = None
    order = torch.arange(store.num_samples, device=store.device)
    for start in range(0, len(order), store.scoring_batch):
        rows, seen = slice(start, start + store.scoring_batch), []
        for view in store.views(order[rows], views, mean_std):
            with autocast(precision, view.device):
                seen.append(network(view)[0].float().clamp(-largest, largest).cpu())
        batch = torch.stack(seen, dim=1).numpy().astype(np.float16)
        if found is None:
            found = large_array((store.num_samples, *batch.shape[1:]), np.float16)
        found[rows] = batch
    network.train(was_training)
    assert found is not None
    return found


@torch.no_grad()
def heldout_accuracy(
    network: nn.Module,
    store: Rows,
    labels: Tensor,
    mean_std: MeanStd | None,
    *,
    batch_size: int | None = None,
    precision: str = "float32",
) -> float:
    """Share of the rows of ``store`` classified as ``labels`` (M,) on its device, one view, in [0, 1]."""
    was_training = network.training
    network.eval()
    correct = torch.zeros((), dtype=torch.int64, device=store.device)
    for rows in torch.arange(store.num_samples, device=store.device).split(batch_size or store.scoring_batch):
        (inputs,) = store.views(rows, 1, mean_std)
        with autocast(precision, inputs.device):
            _, logits = network(inputs)
        correct += (logits.argmax(dim=1) == labels[rows]).sum()
    network.train(was_training)
    return float(correct) / store.num_samples


def _batch_log_probs(network: nn.Module, views: Iterator[Tensor], precision: str) -> tuple[Tensor, Tensor]:
    """Features of the first view (B, D) and the mean over the views of log softmax (B, K)."""
    features: Tensor | None = None
    total: Tensor | None = None
    count = 0
    for view in views:
        count += 1
        with autocast(precision, view.device):
            view_features, logits = network(view)
        log_probs = F.log_softmax(logits.float(), dim=1)
        total = log_probs if total is None else total + log_probs
        features = view_features if features is None else features
    assert features is not None
    assert total is not None
    return features, total / count


def normalized_probs(log_probs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Softmax of each row in double, as float32 that sums to 1: (N, K) -> (N, K), in chunks of rows."""
    probs = np.empty(log_probs.shape, dtype=np.float32)
    for start in range(0, len(log_probs), ROWS_AT_ONCE):
        chunk = log_probs[start : start + ROWS_AT_ONCE].astype(np.float64)
        chunk = np.exp(chunk - chunk.max(axis=1, keepdims=True))
        probs[start : start + ROWS_AT_ONCE] = chunk / chunk.sum(axis=1, keepdims=True)
    return probs


def test_time_margin(log_probs: ArrayLike, labels: ArrayLike) -> NDArray[np.float32]:
    """log p of the given label minus the best other: (N, K), (N,) -> (N,); high = clean, NaN where unlabeled.

    the suspicion margin S with its sign turned.
    """
    values, given = np.asarray(log_probs, dtype=np.float32), np.asarray(labels, dtype=np.int64)
    margin = np.empty(len(values), dtype=np.float32)
    for start in range(0, len(values), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        part = log_margin(
            torch.from_numpy(np.array(values[rows])),
            torch.from_numpy(np.array(given[rows])),
        )
        margin[rows] = part.numpy()
    return margin


# pytest would collect it where a test imports it.
test_time_margin.__test__ = False  # type: ignore[attr-defined]


class MarginTracker:
    """Area under the margin: the mean over visits of the training-time logit margin; high = clean.

    Pleiss et al. 2020, "Identifying mislabeled data using the area under the margin ranking".
    """

    def __init__(self, num_samples: int, device: torch.device | str = "cpu") -> None:
        self._sum = torch.zeros(num_samples, dtype=torch.float64, device=device)
        self._visits = torch.zeros(num_samples, dtype=torch.float64, device=device)

    @torch.no_grad()
    def update(self, index: Tensor, logits: Tensor, labels: Tensor) -> None:
        """Add one visit of the samples at ``index`` (B,); logits (B, K), given labels (B,), -1 is skipped.

        All of them on the tracker's device.
        """
        margin = log_margin(logits.detach(), labels).to(self._sum)
        labeled = (labels != UNLABELED).to(self._sum)
        self._sum.index_add_(0, index, torch.where(labeled > 0, margin, torch.zeros_like(margin)))
        self._visits.index_add_(0, index, labeled)

    def margin(self) -> NDArray[np.float32]:
        """(N,) mean margin over the visits so far; NaN where a sample was never visited."""
        mean = self._sum / self._visits.masked_fill(self._visits == 0, float("nan"))
        return mean.float().cpu().numpy()

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {"sum": self._sum.cpu(), "visits": self._visits.cpu()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self._sum.copy_(state["sum"])
        self._visits.copy_(state["visits"])


def rank_percentile(values: ArrayLike) -> NDArray[np.float64]:
    """Mid-rank percentile of each value: (N,) -> (N,) in (0, 1), (rank - 1/2) / number of values.

    Ties share their mean rank. NaN stays NaN and does not count.
    """
    array = np.asarray(values, dtype=np.float64)
    percentile = np.full(array.shape, np.nan)
    known = ~np.isnan(array)
    if known.any():
        # As scipy.stats.rankdata, which takes a second to load in every process that trains.
        _, place, count = np.unique(array[known], return_inverse=True, return_counts=True)
        mean_ranks = np.cumsum(count) - (count - 1) / 2
        percentile[known] = (mean_ranks[place] - 0.5) / known.sum()
    return percentile


def trust_from_evidence(*evidence: ArrayLike) -> NDArray[np.float32]:
    """Mean rank percentile of the evidence over the whole set: (N,) each -> (N,) float32 in [0, 1].

    Every array is high where the given label looks right. NaN where any evidence is NaN (unlabeled, never
    visited); those rows do not count in the others' ranks. Ties share their mean rank.
    """
    if not evidence:
        raise ValueError("trust needs at least one array of evidence.")
    arrays = [np.array(one, dtype=np.float64) for one in evidence]
    missing = np.any([np.isnan(array) for array in arrays], axis=0)
    for array in arrays:
        array[missing] = np.nan
    return np.mean([rank_percentile(array) for array in arrays], axis=0).astype(np.float32)
