"""The plain step on pixels against literal ones in float64, pixel by pixel."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engines.contract import IGNORED_PIXEL
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
