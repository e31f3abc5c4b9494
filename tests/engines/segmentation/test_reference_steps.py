"""The plain step on pixels and Co-teaching's against literal ones in float64, pixel by pixel."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engines.contract import IGNORED_PIXEL
from engines.coteaching.masks import CoteachingMaskConfig, exchanged_step
from engines.segmentation.loop import plain_step
from tests.engines.literal_masks import SIZE, Tiny, assert_same_state, batch, moved

RATE, CLIP = 0.5, 0.05


def literal_losses(network: nn.Module, images: Tensor, masks: Tensor) -> list[Tensor]:
    """-log p of the given class of each pixel that has one, one after another."""
    _, logits = network(images)
    return [
        -F.log_softmax(logits[n, :, r, c], dim=0)[masks[n, r, c]]
        for n in range(len(images))
        for r in range(SIZE)
        for c in range(SIZE)
        if masks[n, r, c] != IGNORED_PIXEL
    ]


def test_plain_step__is_the_literal_one_at_every_step() -> None:
    torch.manual_seed(0)
    ours = Tiny().double().train()
    literal = copy.deepcopy(ours)
    weights = list(literal.parameters())
    optimizer = torch.optim.SGD(ours.parameters(), lr=RATE, momentum=0.9)
    buffers: list[Tensor | None] = [None] * len(weights)
    for number in range(3):
        images, masks = batch(number, 3)
        losses = literal_losses(literal, images, masks)
        loss = sum(losses) / len(losses)
        moved(weights, torch.autograd.grad(loss, weights), buffers, rate=RATE, clip=CLIP)
        said = plain_step(ours, optimizer, ours(images)[1], masks, CLIP)
        assert float(said) == pytest.approx(float(loss.detach()))
        assert_same_state(ours, literal, f"step {number}")


def test_plain_step__on_one_pixel_is_its_loss() -> None:
    torch.manual_seed(0)
    network = Tiny().double().train()
    images, masks = batch(0, 3)
    masks[:] = IGNORED_PIXEL
    masks[1, 2, 3] = 1
    (loss,) = literal_losses(network, images, masks)
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE)
    said = plain_step(network, optimizer, network(images)[1], masks, CLIP)
    assert float(said) == pytest.approx(float(loss.detach()))


def test_exchanged_step__is_the_literal_one_at_every_step() -> None:
    torch.manual_seed(0)
    ours = nn.ModuleList([Tiny().double().train() for _ in range(2)])
    literal = copy.deepcopy(ours)
    weights = [list(network.parameters()) for network in literal]
    optimizer = torch.optim.SGD(ours.parameters(), lr=RATE, momentum=0.9)
    buffers: list[list[Tensor | None]] = [[None] * len(weights[0]) for _ in range(2)]
    for number, keep_rate in enumerate((1.0, 0.8, 0.5)):
        images, masks = batch(number, 3)
        losses = [literal_losses(network, images, masks) for network in literal]
        kept = int(keep_rate * len(losses[0]))
        picked = [
            sorted(range(len(of)), key=lambda at, of=of: float(of[at].detach()))[:kept] for of in losses
        ]
        assert kept == len(losses[0]) or set(picked[0]) != set(picked[1])
        means = [sum(losses[own][at] for at in picked[1 - own]) / kept for own in range(2)]
        for own in range(2):
            gradients = torch.autograd.grad(means[own], weights[own])
            moved(weights[own], gradients, buffers[own], rate=RATE, clip=5.0)
        said = exchanged_step(ours, optimizer, [one(images)[1] for one in ours], masks, keep_rate)
        assert float(said) == pytest.approx(sum(float(one.detach()) for one in means) / 2)
        for own in range(2):
            assert_same_state(ours[own], literal[own], f"step {number}, network {own}")


def test_exchanged_step__takes_a_batch_without_any_class() -> None:
    networks = nn.ModuleList([Tiny() for _ in range(2)])
    before = copy.deepcopy(networks)
    images, masks = batch(0, 2)
    optimizer = torch.optim.SGD(networks.parameters(), lr=RATE)
    said = [one(images.float())[1] for one in networks]
    loss = exchanged_step(networks, optimizer, said, torch.full_like(masks, IGNORED_PIXEL), 0.5)
    assert float(loss) == 0
    for mine, theirs in zip(networks.parameters(), before.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_keep_rate__falls_to_the_share_that_is_kept() -> None:
    config = CoteachingMaskConfig(epochs=10, noise_rate=0.4, ramp_share=0.5)
    assert [round(config.keep_rate(epoch), 6) for epoch in (0, 1, 5, 9)] == [1.0, 0.92, 0.6, 0.6]
