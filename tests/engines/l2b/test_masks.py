"""L2B on pixels: each step against a literal reference in float64, by differentiating through a virtual step."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from engines.contract import IGNORED_PIXEL
from engines.l2b.masks import pixel_weights, weighted_step
from tests.engines.literal_masks import SIZE, K, Tiny, assert_same_state, batch, moved

CLIP = 0.05
RATE = 0.1


def literal_step(network: nn.Module, buffers: list[Tensor | None], number: int) -> None:
    """Eq. (3) to (9) as they are printed, pixel by pixel, with a backward through the virtual step."""
    images, masks = batch(10 + number, 3)
    meta_images, meta_masks = batch(20 + number, 2)
    point = dict(network.named_parameters())

    def logits_at(values: dict[str, Tensor], some: Tensor) -> Tensor:
        frozen = copy.deepcopy(network)  # its running statistics are its own
        return functional_call(frozen, values, (some,))[1]

    logits = logits_at(point, images)
    given, own = [], []
    pixels = [(n, r, c) for n in range(3) for r in range(SIZE) for c in range(SIZE)]
    pixels = [(n, r, c) for n, r, c in pixels if masks[n, r, c] != IGNORED_PIXEL]
    for n, r, c in pixels:
        log_probs = F.log_softmax(logits[n, :, r, c], dim=0)
        given.append(-log_probs[masks[n, r, c]])
        own.append(-log_probs[int(logits[n, :, r, c].argmax())])
    losses = torch.stack([*given, *own])
    weights = torch.zeros(len(losses), dtype=torch.float64, requires_grad=True)
    gradients = torch.autograd.grad((weights * losses).sum(), list(point.values()), create_graph=True)
    virtual = {
        name: value - RATE * step for (name, value), step in zip(point.items(), gradients, strict=True)
    }
    meta_logits = logits_at(virtual, meta_images)
    meta_loss = torch.zeros((), dtype=torch.float64)
    for n in range(2):
        for r in range(SIZE):
            for c in range(SIZE):
                if meta_masks[n, r, c] != IGNORED_PIXEL:
                    meta_loss = meta_loss - F.log_softmax(meta_logits[n, :, r, c], dim=0)[meta_masks[n, r, c]]
    raw = -torch.autograd.grad(meta_loss, weights)[0]
    positive = raw.clamp(min=0)
    final = positive / positive.sum()
    loss = (final * losses.detach()).sum()
    _, logits = network(images)  # the pass that moves the running statistics
    given = [-F.log_softmax(logits[n, :, r, c], dim=0)[masks[n, r, c]] for n, r, c in pixels]
    own = [-F.log_softmax(logits[n, :, r, c], dim=0).max() for n, r, c in pixels]
    loss = (final * torch.stack([*given, *own])).sum()
    steps = torch.autograd.grad(loss, list(point.values()))
    moved(list(point.values()), steps, buffers, rate=RATE, clip=CLIP)


def test_weighted_step__is_the_literal_one_at_every_step() -> None:
    torch.manual_seed(0)
    ours = Tiny().double().train()
    literal = copy.deepcopy(ours)
    optimizer = torch.optim.SGD(ours.parameters(), lr=RATE, momentum=0.9)
    buffers: list[Tensor | None] = [None] * len(list(literal.parameters()))
    for number in range(3):
        literal_step(literal, buffers, number)
        weighted_step(
            ours, optimizer, *batch(10 + number, 3), *batch(20 + number, 2), num_classes=K, clip_norm=CLIP
        )
        assert_same_state(ours, literal, f"step {number}")


def test_pixel_weights__sum_to_one_over_the_batch_and_leave_out_pixels_without_a_class() -> None:
    random = torch.Generator().manual_seed(3)
    alpha, beta = torch.randn(2, 2, 4, 4, generator=random).unbind()
    known = torch.ones(2, 4, 4, dtype=torch.bool)
    known[0, 0] = False
    weights = pixel_weights(alpha, beta, known)
    assert torch.isclose(weights.alpha.sum() + weights.beta.sum(), torch.tensor(1.0))
    assert not weights.alpha[0, 0].any()
    assert not weights.beta[0, 0].any()
    assert (weights.alpha >= 0).all()
    assert not pixel_weights(-alpha.abs(), -beta.abs(), known).alpha.any()
