"""Per-sample losses against torch, closed forms and slow loops."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from engines.shared.losses import contrastive_loss, cross_entropy, log_margin, soft_cross_entropy


def test_cross_entropy__by_hand_and_zero_where_unlabeled() -> None:
    logits = torch.tensor([[0.0, math.log(3.0)], [0.0, 0.0], [5.0, 1.0]])
    losses = cross_entropy(logits, torch.tensor([1, 0, -1]))
    assert losses.tolist() == pytest.approx([math.log(4 / 3), math.log(2), 0.0])


def test_cross_entropy__gradient_of_the_mean_is_softmax_minus_one_hot() -> None:
    logits = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 1, 2, 3, 0, 1])
    cross_entropy(logits, labels).mean().backward()
    expected = (logits.detach().softmax(1) - F.one_hot(labels, 4)) / 6
    torch.testing.assert_close(logits.grad, expected)


def test_cross_entropy__half_precision_is_computed_in_float32() -> None:
    logits = torch.randn(5, 3).bfloat16()
    assert cross_entropy(logits, torch.zeros(5, dtype=torch.int64)).dtype == torch.float32


def test_soft_cross_entropy__one_hot_equals_cross_entropy() -> None:
    logits, labels = torch.randn(7, 5), torch.randint(5, (7,))
    soft = soft_cross_entropy(logits, F.one_hot(labels, 5).float())
    torch.testing.assert_close(soft, cross_entropy(logits, labels))


def test_soft_cross_entropy__is_linear_in_the_target() -> None:
    logits, one, other = torch.randn(4, 3), torch.rand(4, 3), torch.rand(4, 3)
    mixed = soft_cross_entropy(logits, 0.3 * one + 0.7 * other)
    parts = 0.3 * soft_cross_entropy(logits, one) + 0.7 * soft_cross_entropy(logits, other)
    torch.testing.assert_close(mixed, parts)


def test_log_margin__by_hand() -> None:
    logits = torch.tensor([[1.0, 4.0, 2.0], [1.0, 4.0, 2.0], [1.0, 4.0, 2.0]])
    margin = log_margin(logits, torch.tensor([1, 2, -1]))
    assert margin[:2].tolist() == [2.0, -2.0]
    assert margin[2].isnan()


def test_log_margin__one_class_has_no_other() -> None:
    assert log_margin(torch.zeros(2, 1), torch.zeros(2, dtype=torch.int64)).tolist() == [math.inf, math.inf]


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 8))
def test_log_margin__same_on_logits_and_log_probs(seed: int, classes: int) -> None:
    logits = torch.randn(9, classes, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * 5
    labels = torch.arange(9) % classes
    margin = log_margin(logits, labels)
    torch.testing.assert_close(margin, log_margin(logits.log_softmax(1), labels))
    assert torch.equal(margin > 0, logits.argmax(1) == labels)


def test_contrastive_loss__is_small_where_views_agree_and_nothing_else_does() -> None:
    apart = torch.eye(3)
    assert float(contrastive_loss(apart, 5 * apart, 0.05)) < 1e-6
    assert float(contrastive_loss(torch.ones(3, 2), torch.ones(3, 2), 0.5)) == pytest.approx(math.log(5))
