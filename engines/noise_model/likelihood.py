"""The likelihood of given labels under a class-conditional noise model, its start and its maximum.

For features z of a row, its true class k and its given class j:

    P(k | z) = softmax_k(z W + b),    P(j | k) = T_kj,    P(j | z) = sum_k P(k | z) T_kj        (1)

What is maximised is the mean over the rows of log P(given | z): multinomial logistic regression that is robust
to label noise (Bootkrajang and Kaban 2012, section 3), which is forward correction (Patrini et al. 2017, Theorem 2)
with a T that is learned.
The likelihood has bad maxima, so it starts from a linear discriminant under label noise, fitted by expectation and
maximisation (Lawrence and Schoelkopf 2001, for two classes; here for K).

Letters: n rows of d features, K classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor

PSEUDO_ROWS = 0.5
"""Rows of every class that count as given each class alike; one more counts as given right."""
PENALTY = 30.0
"""Of the distance from the start, in rows. 10 and 100 find the same within .01 AUROC on eleven sets of real
features (benchmarks/results/noise_model.md); it is the middle one."""
STEPS = 40
"""Steps of L-BFGS; 20 and 50 find the same within .006 (benchmarks/results/noise_model.md)."""


LEAST_SPREAD = 1e-6
"""Variance added to every direction; rows have a mean variance of 1."""


class Model(NamedTuple):
    """A fitted model; float32 tensors on one device."""

    weights: Tensor
    """(d, K) W."""
    bias: Tensor
    """(K,) b."""
    transition: Tensor
    """(K, K) T[true, given], rows sum to 1."""

    def true_probs(self, rows: Tensor) -> Tensor:
        """(n, K) P(true class | z) of rows (n, d)."""
        return torch.softmax(rows @ self.weights + self.bias, dim=1)


def joint(model: Model, rows: Tensor, given: Tensor) -> Tensor:
    """(n, K) P(true class, given class | z): its sum over the classes is the likelihood of the given label."""
    return model.true_probs(rows) * model.transition.T[given]


def discriminant_starts(
    rows: Tensor, given: Tensor, num_classes: int, rounds: Sequence[int], *, known: Tensor | None = None
) -> list[Model]:
    """Linear discriminants under label noise after each number of ``rounds`` (rising) of EM.

    A round takes each row's class weights q (at first the given labels), class means and one covariance, shrunk as
    Ledoit and Wolf (2004) do, then T from the weights, then q in proportion to P(k | z) T_kg.

    Args:
        rows: (n, d) float32.
        given: (n,) int64 in 0..K-1.
        num_classes: K.
        rounds: at least 1 each.
        known: (n,) bool: rows whose given label is known to be right; they stay with it and say nothing of T.
    """
    num = len(rows)
    certain = torch.nn.functional.one_hot(given, num_classes).to(rows.dtype)
    free = torch.ones(num, dtype=torch.bool, device=rows.device) if known is None else ~known
    q, scatter, found = certain, (rows.T @ rows).double(), []
    for number in range(1, max(rounds) + 1):
        counts = q.sum(0).double() + 1e-9
        means = (q.T @ rows).double() / counts[:, None]
        spread = (scatter - (means * counts[:, None]).T @ means) / num
        covariance = _shrunk(spread, rows - (q @ means.float()))
        weights = torch.linalg.solve(covariance, means.T)
        bias = torch.log(counts / num) - 0.5 * (means * weights.T).sum(1)
        weights32, bias32 = weights.float(), bias.float()
        probs = torch.softmax(rows @ weights32 + bias32, dim=1)
        # The first weights are the given labels themselves: T is what the discriminant makes of them.
        transition = _from_counts(_counts(probs if number == 1 else q, given, free, num_classes))
        q = probs * transition.T[given]
        q = torch.where(free[:, None], q / q.sum(1, keepdim=True), certain)
        if number in rounds:
            found.append(Model(weights32, bias32, transition))
    return found


def maximise(
    start: Model,
    rows: Tensor,
    given: Tensor,
    *,
    known: Tensor | None = None,
    penalty: float = PENALTY,
    steps: int = STEPS,
) -> Model:
    """The model of greatest likelihood near ``start``: W = e^t W0 + D with ``penalty`` / (2 n) |D|^2 and T free.

    Rows that are ``known`` to be right, (n,) bool, count log P(given class | z); all others Equation (1).
    """
    from scipy.optimize import minimize  # takes a good part of a second to import: only where it is used

    objective = Objective(start, rows, given, known=known, penalty=penalty)
    # SciPy's BLAS has short vectors here and nothing to share; its threads would wait at full speed on the cores
    # that torch computes on: on two cores 500 rows took 15 s in place of 1.
    with threadpool_limits(1, user_api="blas"):
        found = minimize(
            objective, objective.first, jac=True, method="L-BFGS-B", options={"maxiter": steps, "maxcor": 10}
        )
    return objective.model(found.x)


class Objective:
    """Minus the penalised mean log-likelihood and its gradient, as functions of one vector of all parameters."""

    def __init__(
        self, start: Model, rows: Tensor, given: Tensor, *, known: Tensor | None, penalty: float
    ) -> None:
        self._start, self._rows, self._given, self._penalty = start, rows, given, penalty
        self._size, self._classes = start.weights.shape
        self._scaled = rows @ start.weights
        self._free = None if known is None or not bool(known.any()) else ~known
        self._prior = _prior(self._classes, rows.device)
        blank = torch.zeros(self._size * self._classes, device=rows.device)
        parts = (blank, start.bias, blank[:1], start.transition.log().ravel())
        self.first: NDArray[np.float64] = torch.cat(parts).double().cpu().numpy()
        """Where the search begins: (d K + K + 1 + K K,) of D, b, t and the logits of T."""

    def _split(self, values: NDArray[np.float64]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        found = torch.from_numpy(values).to(self._rows.device, torch.float32)
        cells, classes = self._size * self._classes, self._classes
        change, bias, scale, logits = found.split([cells, classes, 1, classes * classes])
        return change.view(self._size, classes), bias, scale, logits.view(classes, classes)

    def model(self, values: NDArray[np.float64]) -> Model:
        """The model with these parameters."""
        change, bias, scale, logits = self._split(values)
        return Model(scale.exp() * self._start.weights + change, bias, torch.softmax(logits, dim=1))

    def __call__(self, values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        change, bias, scale, logits = self._split(values)
        num = len(self._rows)
        predicted = torch.softmax(scale.exp() * self._scaled + self._rows @ change + bias, dim=1)
        transition = torch.softmax(logits, dim=1)
        shares = predicted * transition.T[self._given]  # becomes each row's posterior over the classes
        if self._free is not None:
            at = predicted.gather(1, self._given[:, None]) * torch.nn.functional.one_hot(
                self._given, self._classes
            )
            shares = torch.where(self._free[:, None], shares, at)
        likelihood = shares.sum(1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)
        shares /= likelihood
        counts = self._prior + _counts(shares, self._given, self._free, self._classes)
        value = likelihood.log().double().sum() + (self._prior * torch.log_softmax(logits, 1).double()).sum()
        value = -value / num + 0.5 * self._penalty / num * change.double().square().sum()
        slope = (predicted - shares) / num
        of_change = self._rows.T @ slope + self._penalty / num * change
        of_scale = scale.exp() * (slope * self._scaled).sum()
        of_logits = (transition * counts.sum(1, keepdim=True) - counts) / num
        gradient = torch.cat(
            [of_change.ravel(), slope.sum(0), of_scale.reshape(1), of_logits.float().ravel()]
        )
        return float(value), gradient.double().cpu().numpy()


def _prior(num_classes: int, device: torch.device) -> Tensor:
    """(K, K) float64 rows that count as seen before any was."""
    eye = torch.eye(num_classes, dtype=torch.float64, device=device)
    return eye + PSEUDO_ROWS / num_classes


def _counts(shares: Tensor, given: Tensor, free: Tensor | None, num_classes: int) -> Tensor:
    """(K, K) float64 [class, given]: sum of the rows' (n, K) ``shares``, of those that are ``free``."""
    if free is not None and not bool(free.all()):
        shares, given = shares[free], given[free]
    if shares.is_cuda:  # index_add_ sums in another order each time there
        return shares.T.double() @ torch.nn.functional.one_hot(given, num_classes).double()
    counts = torch.zeros(num_classes, num_classes, device=shares.device)
    return counts.index_add_(0, given, shares).T.double()


def _from_counts(counts: Tensor) -> Tensor:
    counts = counts + _prior(len(counts), counts.device)
    return (counts / counts.sum(1, keepdim=True)).float()


def _shrunk(spread: Tensor, residuals: Tensor) -> Tensor:
    """(d, d) covariance, shrunk towards a multiple of the identity (Ledoit and Wolf 2004, Lemma 3.1 to 3.4)."""
    num, size = residuals.shape
    eye = torch.eye(size, dtype=spread.dtype, device=spread.device)
    target = spread.trace() / size * eye
    away = (spread - target).square().sum()
    noise = (residuals.double().square().sum(1).square().mean() - spread.square().sum()) / num
    share = float((noise / away).clamp(0, 1)) if float(away) > 0 else 1.0
    # A direction without any spread still has to be divided by.
    return (1 - share) * spread + share * target + LEAST_SPREAD * eye
