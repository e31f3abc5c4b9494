"""Small-loss selection: counts, ties, the mask of several networks, and the gradient of a selected mean."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture

from benchmarks.metrics import auroc
from benchmarks.papers.umn_rivals import select_small_loss
from engines.shared.losses import cross_entropy
from engines.shared.selection import (
    gmm_small_loss_probability,
    keep_count,
    small_loss_mask,
)


@pytest.mark.parametrize(
    ("rate", "size", "expected"),
    [
        (1.0, 128, 128),
        (0.55, 100, 55),
        (0.7, 10, 7),
        (0.29, 100, 29),
        (0.0, 8, 1),
        (0.999, 2, 1),
        (0.5, 0, 0),
    ],
)
def test_keep_count__cases(rate: float, size: int, expected: int) -> None:
    assert keep_count(rate, size) == expected


@settings(max_examples=80, deadline=None)
@given(rates=st.tuples(st.floats(0, 1), st.floats(0, 1)), size=st.integers(1, 500))
def test_keep_count__rises_with_the_rate(rates: tuple[float, float], size: int) -> None:
    low, high = sorted(rates)
    assert 1 <= keep_count(low, size) <= keep_count(high, size) <= size


def test_select_small_loss__ties_go_to_the_earlier_in_rising_position() -> None:
    losses = torch.tensor([3.0, 1.0, 2.0, 1.0, 1.0])
    assert select_small_loss(losses, 2).tolist() == [1, 3]
    assert select_small_loss(losses, 4).tolist() == [1, 2, 3, 4]
    assert select_small_loss(losses, 5).tolist() == [0, 1, 2, 3, 4]


def test_select_small_loss__nan_is_the_largest() -> None:
    assert select_small_loss(torch.tensor([float("nan"), 9.0, 1.0]), 2).tolist() == [1, 2]


@pytest.mark.parametrize("count", [0, 1, 16, 33])
def test_small_loss_mask__is_the_plain_form_row_by_row(count: int) -> None:
    generator = torch.Generator().manual_seed(0)
    losses = torch.randint(0, 6, (9, 33), generator=generator).float()  # many ties
    for row, kept in zip(losses, small_loss_mask(losses, count), strict=True):
        assert torch.nonzero(kept).flatten().tolist() == select_small_loss(row, count).tolist()
    assert torch.equal(small_loss_mask(losses, torch.tensor(count)), small_loss_mask(losses, count))


def test_selected_mean__gradient_is_the_hand_computed_mean() -> None:
    """The reference divides by the batch size a second time; ours must not."""
    logits = torch.randn(10, 4, dtype=torch.float64, requires_grad=True)
    labels = torch.arange(10) % 4
    losses = cross_entropy(logits, labels)
    kept = select_small_loss(losses.detach(), keep_count(0.6, 10))
    losses[kept].mean().backward()
    expected = torch.zeros(10, 4, dtype=torch.float64)
    expected[kept] = (logits.detach()[kept].softmax(1) - torch.eye(4, dtype=torch.float64)[labels[kept]]) / 6
    torch.testing.assert_close(logits.grad, expected)


def test_gmm_small_loss_probability__separates_two_heaps() -> None:
    rng = np.random.default_rng(0)
    losses = np.concatenate([rng.normal(0.2, 0.05, 300), rng.normal(2.0, 0.3, 100)])
    posterior = gmm_small_loss_probability(losses)
    assert auroc(np.arange(400) >= 300, 1 - posterior) == 1.0
    assert (posterior[:300] > 0.5).mean() > 0.99
    assert (posterior[300:] < 0.5).all()


def test_gmm_small_loss_probability__is_dividemixs_mixture() -> None:
    """Two components on losses between 0 and 1, a floor of 5e-4 below their variances."""
    rng = np.random.default_rng(2)
    losses = np.concatenate([np.full(40, 0.2), np.linspace(0.1, 0.4, 12), rng.normal(0.9, 0.3, 30)])
    scaled = ((losses - losses.min()) / (losses.max() - losses.min()))[:, None]
    two = GaussianMixture(2, tol=1e-2, reg_covar=5e-4, random_state=0).fit(scaled)
    expected = two.predict_proba(scaled)[:, int(np.argmin(two.means_[:, 0]))]
    np.testing.assert_allclose(gmm_small_loss_probability(losses), expected, atol=1e-9)
    bare = GaussianMixture(2, tol=1e-2, random_state=0).fit(scaled)
    assert np.abs(bare.predict_proba(scaled) - two.predict_proba(scaled)).max() > 1e-3  # the floor is felt


def test_gmm_small_loss_probability__large_sets_fit_on_a_sample() -> None:
    rng = np.random.default_rng(0)
    losses = np.where(rng.random(250_000) < 0.2, rng.normal(3, 0.2, 250_000), rng.normal(0, 0.2, 250_000))
    posterior = gmm_small_loss_probability(losses)
    np.testing.assert_array_equal(posterior > 0.5, losses < 1.5)


def test_gmm_small_loss_probability__stops_after_the_steps_it_is_given() -> None:
    """DivideMix's 10 steps are not always enough; stopping there is meant and warns of nothing."""
    rng = np.random.default_rng(0)
    losses = np.concatenate([rng.normal(0.0, 1.0, 300), rng.normal(2.0, 1.5, 200)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, converged = (gmm_small_loss_probability(losses, max_steps=steps) for steps in (1, 100))
    assert np.abs(one - converged).max() > 0.01
    np.testing.assert_array_equal(converged, gmm_small_loss_probability(losses))


@pytest.mark.parametrize("losses", [[], [0.3], [2.0, 2.0, 2.0]])
def test_gmm_small_loss_probability__cannot_split(losses: list[float]) -> None:
    assert gmm_small_loss_probability(np.array(losses)).tolist() == [1.0] * len(losses)


def test_gmm_small_loss_probability__nan_stays_nan_and_tensors_are_welcome() -> None:
    losses = torch.tensor([0.1, 0.12, float("nan"), 5.0, 5.1, 0.09])
    posterior = gmm_small_loss_probability(losses)
    assert np.isnan(posterior).tolist() == [False, False, True, False, False, False]
    assert posterior[0] > 0.9 > 0.1 > posterior[3]
