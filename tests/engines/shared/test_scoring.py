"""The final pass, the margins and the ranks that become trust."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata
from torch import Tensor, nn

from engines.networks.small import build_network
from engines.shared.device import seeded_init
from engines.shared.loader import ImageStore, scoring_batch, standardize, view_moves
from engines.shared.scoring import (
    MarginTracker,
    feature_views,
    heldout_accuracy,
    normalized_probs,
    rank_percentile,
    score_pass,
    test_time_margin,
    trust_from_evidence,
)
from tests.engines.helpers import digits

SUM_ATOL = 1e-6


@pytest.fixture(scope="module")
def store() -> ImageStore:
    return ImageStore(digits(37)[0], "cpu")


@pytest.fixture(scope="module")
def network() -> nn.Module:
    with seeded_init(0):
        return build_network("conv3", channels=1, image_size=(8, 8), num_classes=10)


def test_score_pass__one_view_is_log_softmax(store: ImageStore, network: nn.Module) -> None:
    scores = score_pass(network, store, store.mean_std(), views=1, batch_size=10)
    network.eval()
    with torch.no_grad():
        features, logits = network(standardize(store.batch(torch.arange(37)), *store.mean_std()))
    np.testing.assert_allclose(scores.log_probs, logits.log_softmax(1), atol=1e-5)
    np.testing.assert_allclose(scores.embeddings, features, atol=1e-5)
    np.testing.assert_allclose(scores.pred_probs.sum(axis=1), 1, atol=SUM_ATOL)


def test_score_pass__views_are_averaged_in_log_space(store: ImageStore, network: nn.Module) -> None:
    scores = score_pass(network, store, None, views=3)
    images = store.batch(torch.arange(37))
    network.eval()
    with torch.no_grad():
        parts = [network(torch.roll(images, move, dims=2))[1].log_softmax(1) for move in (0, 1, -1)]
    np.testing.assert_allclose(scores.log_probs, sum(parts) / 3, atol=1e-5)


def test_score_pass__restores_the_mode_and_changes_nothing(store: ImageStore, network: nn.Module) -> None:
    network.train()
    before = {key: value.clone() for key, value in network.state_dict().items()}
    first, second = (score_pass(network, store, None, views=6) for _ in range(2))
    assert network.training
    np.testing.assert_array_equal(first.log_probs, second.log_probs)
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items())


def test_feature_views__are_those_of_evaluation_and_restore_the_mode(
    store: ImageStore, network: nn.Module
) -> None:
    network.train()
    found = feature_views(network, store, None, views=2)
    assert network.training
    network.eval()
    with torch.no_grad():
        seen = [network(view)[0].half() for view in store.views(torch.arange(37), 2, None)]
    np.testing.assert_allclose(found, torch.stack(seen, dim=1), atol=2e-3)


def test_feature_views__what_float16_cannot_hold_is_its_largest_number(store: ImageStore) -> None:
    class Large(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            found = x.flatten(1) * torch.tensor([-1e9, 1e9]).repeat(32)
            return found, found

    found = feature_views(Large(), store, None, views=1)
    assert (found.min(), found.max()) == (-65504, 65504)


def test_score_pass__index_scores_those_rows(store: ImageStore, network: nn.Module) -> None:
    everything = score_pass(network, store, None, views=2)
    some = score_pass(network, store, None, views=2, index=torch.tensor([30, 2, 2]))
    np.testing.assert_allclose(some.log_probs, everything.log_probs[[30, 2, 2]], atol=1e-5)
    np.testing.assert_allclose(some.embeddings, everything.embeddings[[30, 2, 2]], atol=1e-5)


def test_scoring_batch__large_images_come_in_smaller_batches() -> None:
    cuda, cpu = torch.device("cuda"), torch.device("cpu")
    assert scoring_batch(cpu, (28, 28)) == 128
    assert scoring_batch(cuda, (64, 64)) == 512
    assert scoring_batch(cuda, (128, 128)) == 128
    assert scoring_batch(cpu, (1024, 1024)) == 16


def test_heldout_accuracy__counts_hits(store: ImageStore, network: nn.Module) -> None:
    predicted = torch.from_numpy(score_pass(network, store, None).pred_probs.argmax(axis=1))
    labels = predicted.clone()
    labels[:7] = (labels[:7] + 1) % 10
    assert heldout_accuracy(network, store, labels, None, batch_size=8) == pytest.approx(30 / 37)


def test_view_moves__grey_is_never_mirrored() -> None:
    grey = view_moves(6, channels=1, image_size=(28, 28))
    colour = view_moves(6, channels=3, image_size=(32, 32))
    assert len(set(grey)) == len(set(colour)) == 6
    assert grey[0] == colour[0] == (0, 0, False)
    assert not any(mirrored for _, _, mirrored in grey)
    assert sum(mirrored for _, _, mirrored in colour) == 3


def test_normalized_probs__extreme_and_chunked() -> None:
    log_probs = np.random.default_rng(0).normal(0, 30, (70_000, 3)).astype(np.float32)
    log_probs[0] = [-1e4, -2e4, -3e4]
    probs = normalized_probs(log_probs)
    assert probs.dtype == np.float32
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=SUM_ATOL)
    np.testing.assert_array_equal(probs[0], [1, 0, 0])


def test_test_time_margin__by_hand_and_across_chunks() -> None:
    log_probs = np.tile(np.array([[-0.1, -3.0, -4.0]], dtype=np.float32), (70_000, 1))
    labels = np.zeros(70_000, dtype=np.int64)
    labels[-2:] = [2, -1]
    margin = test_time_margin(log_probs, labels)
    assert margin[[0, -2]].tolist() == pytest.approx([2.9, -3.9])
    assert np.isnan(margin[-1])
    assert np.isfinite(margin[:-1]).all()


def test_margin_tracker__is_the_mean_over_visits() -> None:
    tracker = MarginTracker(4)
    labels = torch.tensor([0, 1])
    tracker.update(torch.tensor([0, 2]), torch.tensor([[3.0, 1.0], [3.0, 1.0]]), labels)
    tracker.update(torch.tensor([2, 0]), torch.tensor([[0.0, 4.0], [0.0, 4.0]]), torch.tensor([1, 0]))
    tracker.update(torch.tensor([3]), torch.tensor([[9.0, 0.0]]), torch.tensor([-1]))
    margin = tracker.margin()
    assert margin[[0, 2]].tolist() == [-1.0, 1.0]
    assert np.isnan(margin[[1, 3]]).all()


def test_margin_tracker__state_round_trip() -> None:
    tracker, again = MarginTracker(3), MarginTracker(3)
    tracker.update(torch.arange(3), torch.randn(3, 5), torch.tensor([0, 4, 2]))
    again.load_state_dict(tracker.state_dict())
    np.testing.assert_array_equal(again.margin(), tracker.margin())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.integers(-3, 3).map(float), st.just(float("nan"))), min_size=1, max_size=30))
def test_rank_percentile__matches_scipy(values: list[float]) -> None:
    array = np.array(values)
    known = ~np.isnan(array)
    percentile = rank_percentile(array)
    np.testing.assert_array_equal(np.isnan(percentile), ~known)
    if known.any():
        np.testing.assert_allclose(percentile[known], (rankdata(array[known]) - 0.5) / known.sum())


def test_trust_from_evidence__by_hand() -> None:
    trust = trust_from_evidence([1.0, 2.0, 3.0, 4.0], [4.0, 4.0, 1.0, 9.0])
    assert trust.dtype == np.float32
    ranks = [(1 + 2.5) / 2, (2 + 2.5) / 2, (3 + 1) / 2, (4 + 4) / 2]
    np.testing.assert_allclose(trust, (np.array(ranks) - 0.5) / 4)


def test_trust_from_evidence__missing_anywhere_is_missing_and_does_not_count() -> None:
    trust = trust_from_evidence([1.0, np.nan, 3.0, 2.0], [1.0, 5.0, 2.0, np.nan])
    np.testing.assert_allclose(trust, [0.25, np.nan, 0.75, np.nan])


def test_trust_from_evidence__infinite_is_a_rank_and_inputs_stay() -> None:
    evidence = np.array([np.inf, 0.0, -np.inf, np.nan])
    np.testing.assert_allclose(trust_from_evidence(evidence), [5 / 6, 0.5, 1 / 6, np.nan])
    assert np.isnan(evidence[3])
    assert trust_from_evidence(np.ones(4)).tolist() == [0.5] * 4


def test_trust_from_evidence__none() -> None:
    with pytest.raises(ValueError, match="trust needs at least one array of evidence"):
        trust_from_evidence()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000))
def test_trust_from_evidence__permuting_samples_permutes_trust(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other, order = rng.normal(size=20), rng.integers(0, 5, 20), rng.permutation(20)
    np.testing.assert_allclose(
        trust_from_evidence(one, other)[order], trust_from_evidence(one[order], other[order])
    )


class _Half(nn.Module):
    feature_size = 2

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.flatten(1)[:, :2].bfloat16(), x.flatten(1)[:, :3].bfloat16()


def test_score_pass__half_precision_outputs_become_float32(store: ImageStore) -> None:
    scores = score_pass(_Half(), store, None, views=2)
    assert scores.log_probs.dtype == scores.embeddings.dtype == np.float32
