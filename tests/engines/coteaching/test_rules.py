"""Who learns from what: Co-teaching's exchange, its relatives, and losses that are reduced exactly once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from engines.coteaching.rules import (
    Choice,
    choose_all,
    choose_disagreement,
    choose_exchanged,
    choose_exchanged_disagreement,
    choose_reweighted,
    choose_small_loss,
    double_softmax_loss,
    estimate_transition,
    forward_corrected_loss,
    mean_loss,
    meta_alignment,
)
from engines.networks.small import build_network

LOSSES = torch.tensor([[0.1, 0.9, 0.5, 0.2], [0.8, 0.1, 0.2, 0.9]], dtype=torch.float64)
"""One pair, four samples: the first network finds 0 and 3 small, the second 1 and 2."""


def test_choose_small_loss__keeps_as_many_as_equation_2_says() -> None:
    losses = torch.rand(1, 20)
    # floor(0.55 * 20) is 10 in floating point without the guard.
    kept = [int(choose_small_loss(losses, rate).selected.sum()) for rate in (0.55, 0.01, 1.0, 0.7)]
    assert kept == [11, 1, 20, 14]


def test_choose_exchanged__each_learns_from_what_the_other_finds_small() -> None:
    choice = choose_exchanged(LOSSES, 0.5)
    assert choice.selected.tolist() == [[1, 0, 0, 1], [0, 1, 1, 0]]
    assert choice.weights.tolist() == [[0, 1, 1, 0], [1, 0, 0, 1]]
    assert mean_loss(LOSSES, choice).tolist() == [pytest.approx(0.7), pytest.approx(0.85)]


def test_choose_exchanged__identical_networks_select_identical_sets() -> None:
    losses = torch.rand(1, 32, dtype=torch.float64).repeat(2, 1)
    choice = choose_exchanged(losses, 0.35)
    assert torch.equal(choice.weights[0], choice.weights[1])


def test_mean_loss__gradient_is_the_hand_computed_mean() -> None:
    """The trap of the reference code: mean of the kept losses, divided by their number again."""
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.5, 0.5]], dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 0, 1])
    losses = F.cross_entropy(logits, labels, reduction="none").repeat(2, 1)
    choice = choose_exchanged(losses, 0.67)  # samples 0 and 2
    (gradient,) = torch.autograd.grad(mean_loss(losses, choice)[0], logits)
    p = torch.softmax(logits.detach(), dim=1)
    expected = torch.zeros(3, 2, dtype=torch.float64)
    expected[0] = (p[0] - torch.tensor([1.0, 0.0])) / 2
    expected[2] = (p[2] - torch.tensor([0.0, 1.0])) / 2
    torch.testing.assert_close(gradient, expected)
    assert torch.equal(gradient[1], torch.zeros(2, dtype=torch.float64))


def test_mean_loss__legacy_divides_twice() -> None:
    choice = choose_exchanged(LOSSES, 0.5)
    torch.testing.assert_close(mean_loss(LOSSES, choice, divide_twice=True) * 2, mean_loss(LOSSES, choice))


def test_mean_loss__keeping_everything_is_the_mean_bit_for_bit() -> None:
    losses = torch.rand(2, 37)
    for choice in (choose_all(losses), choose_exchanged(losses, 1.0)):
        assert torch.equal(mean_loss(losses, choice), losses.mean(dim=1))


def test_choose_small_loss__learns_from_its_own() -> None:
    assert choose_small_loss(LOSSES, 0.25).weights.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]


def test_choose_disagreement__all_that_the_predictions_differ_on() -> None:
    predictions = torch.tensor([[0, 1, 2, 3], [0, 2, 2, 1]])
    choice = choose_disagreement(LOSSES, predictions)
    assert choice.weights.tolist() == [[0, 1, 0, 1], [0, 1, 0, 1]]
    assert choice.divisor.tolist() == [2, 2]


def test_choose_disagreement__none_is_a_step_that_changes_nothing() -> None:
    choice = choose_disagreement(LOSSES, torch.zeros(2, 4, dtype=torch.long))
    assert mean_loss(LOSSES, choice).tolist() == [0.0, 0.0]


def pick_plus(predictions: list[list[int]], rate: float, *, gate: bool = False) -> Choice:
    return choose_exchanged_disagreement(LOSSES, torch.tensor(predictions), rate, learn_from_all_if_none=gate)


def test_choose_exchanged_disagreement__small_losses_inside_the_disagreement() -> None:
    # They differ on 0, 1 and 3; floor(0.7 * 3) = 2 each, sample 2 can never be chosen.
    choice = pick_plus([[0, 1, 2, 3], [1, 0, 2, 0]], 0.7)
    assert choice.selected.tolist() == [[1, 0, 0, 1], [1, 1, 0, 0]]
    assert choice.weights.tolist() == [[1, 1, 0, 0], [1, 0, 0, 1]]
    assert choice.divisor.tolist() == [2, 2]


def test_choose_exchanged_disagreement__takes_all_where_the_share_is_none() -> None:
    choice = pick_plus([[0, 1, 2, 3], [1, 1, 2, 3]], 0.5)  # floor(0.5 * 1) = 0
    assert choice.weights.tolist() == [[1, 0, 0, 0], [1, 0, 0, 0]]


def test_choose_exchanged_disagreement__full_agreement_follows_the_gate() -> None:
    same = [[0, 1, 2, 3], [0, 1, 2, 3]]
    assert mean_loss(LOSSES, pick_plus(same, 0.5)).tolist() == [0.0, 0.0]
    torch.testing.assert_close(mean_loss(LOSSES, pick_plus(same, 0.5, gate=True)), LOSSES.mean(dim=1))


def test_choose_reweighted__clamps_and_normalises() -> None:
    losses = torch.ones(1, 3)
    choice = choose_reweighted(losses, torch.tensor([3.0, -2.0, 1.0]))
    assert choice.weights[0].tolist() == [0.75, 0.0, 0.25]
    assert choose_reweighted(losses, -torch.ones(3)).weights.sum() == 0


def test_meta_alignment__equals_the_gradients_inner_products() -> None:
    torch.manual_seed(0)
    network = build_network("conv3", channels=1, image_size=(8, 8), num_classes=3, width=6).double().eval()
    images, meta = torch.randn(5, 1, 8, 8).double(), torch.randn(4, 1, 8, 8).double()
    labels, meta_labels = torch.tensor([0, 1, 2, 0, 1]), torch.tensor([2, 1, 0, 0])
    parameters = list(network.parameters())

    def gradient(loss: Tensor) -> Tensor:
        return torch.cat([part.flatten() for part in torch.autograd.grad(loss, parameters)])

    towards = gradient(F.cross_entropy(network(meta)[1], meta_labels))
    expected = [
        gradient(F.cross_entropy(network(x[None])[1], y[None])) @ towards
        for x, y in zip(images, labels, strict=True)
    ]
    eye = torch.eye(3, dtype=torch.float64)
    found = meta_alignment(network, images, eye[labels], meta, eye[meta_labels])
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-6, atol=1e-8)


def test_forward_corrected_loss__identity_is_cross_entropy_and_noise_is_explained() -> None:
    logits, labels = torch.tensor([[2.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 0])
    plain = F.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(forward_corrected_loss(logits, labels, torch.eye(2)), plain)
    transition = torch.tensor([[1.0, 0.0], [0.4, 0.6]])  # class 1 is given as 0 in 40 %
    p = torch.softmax(logits, dim=1)
    expected = -torch.log(p[:, 0] + 0.4 * p[:, 1])
    torch.testing.assert_close(forward_corrected_loss(logits, labels, transition), expected)


def test_estimate_transition__row_of_the_surest_sample() -> None:
    probs = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
    assert estimate_transition(probs).tolist() == [
        [pytest.approx(0.9), pytest.approx(0.1)],
        [pytest.approx(0.3), pytest.approx(0.7)],
    ]


@pytest.mark.parametrize(("num_classes", "place"), [(99, 199), (100, 193)])
def test_estimate_transition__many_classes_pass_over_outliers(num_classes: int, place: int) -> None:
    # Of 200 samples, the surer one is of class 0 the flatter it is about the others.
    surest = torch.arange(1, 201).double()[:, None] / 201
    rest = torch.rand(200, num_classes - 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    probs = torch.cat([surest, (1 - surest) * rest / rest.sum(dim=1, keepdim=True)], dim=1)
    torch.testing.assert_close(estimate_transition(probs)[0], probs[place])


def test_double_softmax_loss__is_bounded() -> None:
    logits = torch.tensor([[100.0, 0.0]])
    assert double_softmax_loss(logits, torch.tensor([1]))[0] == pytest.approx(np.log(1 + np.e), rel=1e-6)
