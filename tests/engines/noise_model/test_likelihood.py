"""The noise model's likelihood, gradient, start and maximum against a literal float64 reference in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import torch
from numpy.typing import NDArray
from sklearn.covariance import ledoit_wolf_shrinkage
from threadpoolctl import threadpool_info, threadpool_limits

from engines.noise_model.likelihood import (
    LEAST_SPREAD,
    PSEUDO_ROWS,
    Model,
    Objective,
    discriminant_starts,
    joint,
    maximise,
)

CLASSES, SIZE = 4, 5


def drawn(num: int, seed: int = 0, flip: float = 0.3) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Rows (n, d), given and true labels (n,), and T, drawn from the model itself: class k is given as k + 1."""
    rng = np.random.default_rng(seed)
    means = 2.5 * rng.standard_normal((CLASSES, SIZE))
    true = rng.integers(CLASSES, size=num)
    rows = (means[true] + rng.standard_normal((num, SIZE))).astype(np.float32)
    transition = np.full((CLASSES, CLASSES), 0.02)
    for each in range(CLASSES):
        transition[each, (each + 1) % CLASSES] = flip
        transition[each, each] = 1 - flip - 0.02 * (CLASSES - 2)
    given = np.array([rng.choice(CLASSES, p=transition[each]) for each in true])
    return rows, given, true, transition


def literal_softmax(scores: NDArray) -> NDArray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def literal_value(
    values: NDArray, start: Model, rows: NDArray, given: NDArray, known: NDArray, penalty: float
) -> float:
    """Minus the penalised mean log-likelihood, term by term."""
    cells = SIZE * CLASSES
    change = values[:cells].reshape(SIZE, CLASSES)
    bias, scale = values[cells : cells + CLASSES], values[cells + CLASSES]
    transition = literal_softmax(values[cells + CLASSES + 1 :].reshape(CLASSES, CLASSES))
    weights = np.exp(scale) * start.weights.numpy().astype(np.float64) + change
    total = 0.0
    for row, label, is_known in zip(rows.astype(np.float64), given, known, strict=True):
        probs = literal_softmax((row @ weights + bias)[None])[0]
        total += np.log(
            probs[label] if is_known else sum(probs[k] * transition[k, label] for k in range(CLASSES))
        )
    for k in range(CLASSES):
        for j in range(CLASSES):
            total += (PSEUDO_ROWS / CLASSES + (k == j)) * np.log(transition[k, j])
    return -total / len(rows) + penalty / (2 * len(rows)) * float((change**2).sum())


@pytest.mark.parametrize("share_known", [0.0, 0.2])
def test_objective__is_the_literal_likelihood_and_its_gradient(share_known: float) -> None:
    rows, given, _, _ = drawn(60)
    known = np.random.default_rng(1).random(60) < share_known
    (start,) = discriminant_starts(torch.from_numpy(rows), torch.from_numpy(given), CLASSES, (2,))
    objective = Objective(
        start, torch.from_numpy(rows), torch.from_numpy(given), known=torch.from_numpy(known), penalty=30.0
    )
    values = objective.first + 0.1 * np.random.default_rng(2).standard_normal(len(objective.first))
    values = values.astype(np.float32).astype(np.float64)
    value, gradient = objective(values)
    literal = lambda at: literal_value(at, start, rows, given, known, 30.0)  # noqa: E731
    assert value == pytest.approx(literal(values), rel=2e-6)
    expected = scipy.optimize.approx_fprime(values, literal, 1e-6)
    np.testing.assert_allclose(gradient, expected, atol=2e-5)


def test_discriminant_starts__are_the_literal_rounds_of_em() -> None:
    rows, given, _, _ = drawn(200, seed=3)
    starts = discriminant_starts(torch.from_numpy(rows), torch.from_numpy(given), CLASSES, (1, 3))
    table = rows.astype(np.float64)
    q = np.eye(CLASSES)[given]
    for number in (1, 2, 3):
        counts = q.sum(0)
        means = np.stack([(q[:, k : k + 1] * table).sum(0) / counts[k] for k in range(CLASSES)])
        covariance = np.zeros((SIZE, SIZE))
        for row, weights in zip(table, q, strict=True):
            for k in range(CLASSES):
                covariance += weights[k] * np.outer(row - means[k], row - means[k]) / len(table)
        residuals = table - q @ means
        if number == 1:  # hard weights: scikit-learn has the same shrinkage
            share = ledoit_wolf_shrinkage(residuals, assume_centered=True)
            target = np.trace(covariance) / SIZE * np.eye(SIZE)
            shrunk = (1 - share) * covariance + share * target + LEAST_SPREAD * np.eye(SIZE)
            weights_ = np.linalg.solve(shrunk, means.T)
            np.testing.assert_allclose(starts[0].weights, weights_, rtol=1e-3, atol=1e-4)
        target = np.trace(covariance) / SIZE * np.eye(SIZE)
        noise = ((residuals**2).sum(1) ** 2).mean() - (covariance**2).sum()
        share = min(1, max(0, noise / len(table) / ((covariance - target) ** 2).sum()))
        shrunk = (1 - share) * covariance + share * target + LEAST_SPREAD * np.eye(SIZE)
        weights_ = np.linalg.solve(shrunk, means.T)
        bias = np.log(counts / len(table)) - 0.5 * np.einsum("kd,dk->k", means, weights_)
        probs = literal_softmax(table @ weights_ + bias)
        soft = probs if number == 1 else q
        transition = np.full((CLASSES, CLASSES), PSEUDO_ROWS / CLASSES) + np.eye(CLASSES)
        for row, label in zip(soft, given, strict=True):
            transition[:, label] += row
        transition /= transition.sum(1, keepdims=True)
        q = probs * transition[:, given].T
        q /= q.sum(1, keepdims=True)
    np.testing.assert_allclose(starts[1].weights, weights_, rtol=2e-3, atol=1e-3)
    np.testing.assert_allclose(starts[1].bias, bias, rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(starts[1].transition, transition, atol=1e-4)


def test_maximise__finds_t_and_the_wrong_labels_of_data_drawn_from_the_model() -> None:
    rows, given, true, transition = drawn(4_000, seed=5)
    table, labels = torch.from_numpy(rows), torch.from_numpy(given)
    (start,) = discriminant_starts(table, labels, CLASSES, (4,))
    model = maximise(start, table, labels)
    np.testing.assert_allclose(model.transition, transition, atol=0.03)
    shares = joint(model, table, labels)
    posterior = (shares[torch.arange(len(labels)), labels] / shares.sum(1)).numpy()
    assert (1 - posterior).mean() == pytest.approx((given != true).mean(), abs=0.01)
    assert ((posterior < 0.5) == (given != true)).mean() > 0.97
    assert float(shares.sum(1).log().mean()) > float(joint(start, table, labels).sum(1).log().mean())


def test_maximise__known_rows_say_nothing_of_t() -> None:
    rows, given, true, _ = drawn(1_000, seed=7)
    known = given == true
    table, labels = torch.from_numpy(rows), torch.from_numpy(given)
    mask = torch.from_numpy(known)
    (start,) = discriminant_starts(table, labels, CLASSES, (2,), known=mask)
    model = maximise(start, table, labels, known=mask)
    # All rows that are left are wrong, and T is about these alone.
    assert float(model.transition.diagonal().max()) < 0.2


def test_maximise__leaves_the_cores_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    # A second thread of SciPy's BLAS waits at full speed between the steps: 500 rows took 15 s in place of 1.
    rows, given, _, _ = drawn(200)
    start = discriminant_starts(torch.from_numpy(rows), torch.from_numpy(given), CLASSES, [1])[0]
    seen: list[int] = []
    call = Objective.__call__

    def watched(self: Objective, values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        seen.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
        return call(self, values)

    monkeypatch.setattr(Objective, "__call__", watched)
    with threadpool_limits(2, user_api="blas"):
        maximise(start, torch.from_numpy(rows), torch.from_numpy(given), steps=2)
    assert set(seen) == {1}
