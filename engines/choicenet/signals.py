"""What a trained ChoiceNet says about each given label: signals, their course over training, calibration.

Letters: N samples, D classes, K components, B batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.choicenet.cholesky import Mixture, component_probs, label_signals
from engines.choicenet.networks import MixtureNetwork
from engines.contract import UNLABELED
from engines.shared.scoring import normalized_probs
from engines.shared.selection import gmm_small_loss_probability

SIGNAL_NAMES = ("rho", "gamma_1", "p_target", "rho_x", "pi_1")
LABEL_AWARE = ("rho", "gamma_1", "p_target")
HISTORY_NAMES = ("rho", "p_target")
EMA_DECAY = 0.9
EMA_START = 0.1
"""The moving averages start after this share of training."""
CALIBRATION_SAMPLE = 10_000
_TEMPERATURES = np.geomspace(0.05, 20.0, 61)
_ROWS_AT_ONCE = 4096


class VisitSignals:
    """rho_label and p_target of each sample at its visits in training, and their moving averages.

    The values come from the training forward itself (batch statistics, augmented image), with rho_1 = 1
    and the mean-field form of (13), so they cost no extra pass. Memory: 4 N floats.
    """

    def __init__(self, num_samples: int, device: torch.device) -> None:
        self._now = {name: torch.full((num_samples,), float("nan"), device=device) for name in HISTORY_NAMES}
        self._average = {name: values.clone() for name, values in self._now.items()}

    def update(self, index: Tensor, mixture: Mixture, labels: Tensor) -> None:
        """Note one visit of the samples at ``index`` (B,)."""
        found = batch_signals(mixture, labels)
        for name, values in self._now.items():
            values[index] = found[name]

    def end_epoch(self, epoch: int, num_epochs: int) -> None:
        """Fold this epoch's values into the moving averages (decay 0.9) after 10 % of training."""
        if epoch + 1 <= EMA_START * num_epochs and epoch + 1 < num_epochs:
            return
        for name, average in self._average.items():
            now = self._now[name]
            folded = EMA_DECAY * average + (1.0 - EMA_DECAY) * now
            self._average[name] = torch.where(average.isnan(), now, folded)

    def now(self) -> dict[str, NDArray[np.float32]]:
        """(N,) by name, each sample's last visit; NaN where never visited."""
        return {name: values.cpu().numpy() for name, values in self._now.items()}

    def averages(self) -> dict[str, NDArray[np.float32]]:
        """(N,) by name, moving averages over epochs; NaN where never visited."""
        return {name: values.cpu().numpy() for name, values in self._average.items()}

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {
            "now": {name: values.cpu() for name, values in self._now.items()},
            "average": {name: values.cpu() for name, values in self._average.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state``."""
        for name in HISTORY_NAMES:
            self._now[name].copy_(state["now"][name])
            self._average[name] = state["average"][name].to(self._now[name].device)


@torch.no_grad()
def batch_signals(mixture: Mixture, labels: Tensor) -> dict[str, Tensor]:
    """The five signals (14)-(17) of a batch in evaluation form, each (B,); labels (B,) must be given."""
    mixture = mixture.at_target_correlation(1.0)
    probs = component_probs(mixture.means(), mixture.total_variances())
    return label_signals(mixture.log_pi, mixture.rho, probs, labels)


@torch.no_grad()
def final_signals(
    network: MixtureNetwork,
    embeddings: NDArray[np.float32],
    labels: NDArray[np.int64],
    device: torch.device,
) -> tuple[dict[str, NDArray[np.float32]], NDArray[np.float32]]:
    """Signals of all samples (N,) by name, label-aware ones NaN where unlabeled; and mean rho_k (K,).

    Works on the embeddings (N, Q) of the final pass, so the trunk is not run again.
    """
    was_training = network.training
    network.eval()
    signals = {name: np.full(len(labels), np.nan, dtype=np.float32) for name in SIGNAL_NAMES}
    rho_total: NDArray[np.float64] | float = 0.0
    for start in range(0, len(labels), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        mixture: Mixture = network.head(torch.from_numpy(embeddings[rows]).to(device))
        given = torch.from_numpy(labels[rows].copy()).to(device)
        found = batch_signals(mixture, given.clamp_min(0))
        for name, values in found.items():
            if name in LABEL_AWARE:
                values = values.masked_fill(given == UNLABELED, float("nan"))
            signals[name][rows] = values.cpu().numpy()
        rho_total = rho_total + mixture.rho.double().sum(dim=0).cpu().numpy()
    network.train(was_training)
    return signals, np.asarray(rho_total / len(labels), dtype=np.float32)


def fit_temperature(log_probs: NDArray[np.float32], labels: NDArray[np.int64]) -> tuple[float, float]:
    """Temperature of the target's probabilities and the rate of wrong labels that go with it.

    No clean label is needed: the likelihood of a given label is (1 - r) p_T(y) + r (1 - p_T(y)) / (D - 1),
    wrong labels spread evenly over the other classes, and both T and r are fitted. On the rows that were
    trained on: a network that has memorised its labels calibrates itself to them, and structured noise
    breaks the even spread, so this is a correction of scale and no promise.

    Args:
        log_probs: (N, D) log-probabilities, not necessarily normalised.
        labels: (N,) int64, -1 where unlabeled; those rows are left out. At most 10,000 rows are used.

    Returns:
        Temperature in [0.05, 20] and noise rate in [0, 1].
    """
    rows = np.flatnonzero(labels != UNLABELED)
    rows = rows[:: max(1, -(-len(rows) // CALIBRATION_SAMPLE))]
    num_classes = log_probs.shape[1]
    if not len(rows) or num_classes < 2:
        return 1.0, 0.0
    best = (-np.inf, 1.0, 0.0)
    for temperature in _TEMPERATURES:
        probs = normalized_probs(log_probs[rows] / np.float32(temperature))
        p_given = probs[np.arange(len(rows)), labels[rows]].astype(np.float64)
        p_wrong = (1.0 - p_given) / (num_classes - 1)
        rate = _wrong_label_rate(p_given, p_wrong)
        score = float(np.log(np.maximum((1 - rate) * p_given + rate * p_wrong, 1e-12)).mean())
        best = max(best, (score, float(temperature), rate))
    return best[1], best[2]


def _wrong_label_rate(p_given: NDArray[np.float64], p_wrong: NDArray[np.float64]) -> float:
    """Maximum-likelihood share of wrong labels for fixed probabilities: 50 steps of EM."""
    rate = 0.1
    for _ in range(50):
        wrong = rate * p_wrong
        rate = float(np.mean(wrong / np.maximum(wrong + (1.0 - rate) * p_given, 1e-12)))
    return rate


def published_flags(
    predicted: NDArray[np.int64], labels: NDArray[np.int64], p_target: NDArray[np.float32], num_classes: int
) -> NDArray[np.bool_]:
    """(N,) bool by the method's own rule: prediction differs and p_target < 1/D; False where unlabeled."""
    differs = (predicted != labels) & (labels != UNLABELED)
    flags: NDArray[np.bool_] = differs & (np.nan_to_num(p_target, nan=1.0) < 1.0 / num_classes)
    return flags


def report_notes(
    *,
    predicted: NDArray[np.int64],
    labels: NDArray[np.int64],
    signals: Mapping[str, NDArray[np.float32]],
    mean_rho: NDArray[np.float32],
    num_classes: int,
) -> dict[str, Any]:
    """Plain numbers for the report: the global check, the rule's count, the state of the components.

    ``training_accuracy`` of component 1 on the given labels estimates the share of true labels (paper:
    1 - p + p / C under shuffle noise), ``noise_rate_estimate`` is its complement; too low where the network
    has memorised, too high where it has not learned enough.
    """
    labeled = labels != UNLABELED
    accuracy = float(np.mean(predicted[labeled] == labels[labeled]))
    p_target = signals["p_target"]
    doubtful = gmm_small_loss_probability(1.0 - p_target[labeled]) < 0.5
    return {
        "training_accuracy": accuracy,
        "noise_rate_estimate": 1.0 - accuracy,
        "flagged_by_rule": int(published_flags(predicted, labels, p_target, num_classes).sum()),
        "flagged_by_mixture": int(doubtful.sum()),
        "rho_min": float(np.percentile(signals["rho"][labeled], 1)),
        "mean_rho_by_component": [round(float(value), 4) for value in mean_rho],
        "components_collapsed": bool(len(mean_rho) > 1 and mean_rho[1:].min() > 0.99),
    }
