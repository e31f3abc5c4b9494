"""L2B on pixels: each step, and a run of its loop, against a literal reference in float64.

The reference differentiates through a virtual step.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from benchmarks.papers.l2b_masks import L2BMaskConfig, choose_meta_set, pixel_weights, step, weighted_step
from engines.contract import IGNORED_PIXEL, MaskData
from engines.segmentation import loop
from engines.segmentation.loop import MaskFold, train_masks
from engines.shared.device import make_generator, seeded_init
from engines.shared.loader import epoch_batches
from engines.shared.run import Run
from tests.engines.literal_masks import SIZE, K, Tiny, assert_same_state, batch, moved

CLIP = 0.05
RATE = 0.1


def literal_step(
    network: nn.Module,
    buffers: list[Tensor | None],
    images: Tensor,
    masks: Tensor,
    meta_images: Tensor,
    meta_masks: Tensor,
) -> None:
    """Eq. (3) to (9) as they are printed, pixel by pixel, with a backward through the virtual step."""
    point = dict(network.named_parameters())

    def logits_at(values: dict[str, Tensor], some: Tensor) -> Tensor:
        frozen = copy.deepcopy(network)  # its running statistics are its own
        return functional_call(frozen, values, (some,))[1]

    logits = logits_at(point, images)
    given, own = [], []
    pixels = [(n, r, c) for n in range(len(images)) for r in range(SIZE) for c in range(SIZE)]
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
    for n in range(len(meta_images)):
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
        both = (*batch(10 + number, 3), *batch(20 + number, 2))
        literal_step(literal, buffers, *both)
        weighted_step(ours, optimizer, *both, num_classes=K, clip_norm=CLIP)
        assert_same_state(ours, literal, f"step {number}")


class Double(Tiny):
    """Takes the loop's float32 images and computes in float64, in which no step depends on rounding."""

    def __init__(self, _encoder: str, channels: int, num_classes: int) -> None:
        assert num_classes == K
        super().__init__(channels)
        self.double()

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        return super().forward(images.double())


def literal_plain_step(
    network: nn.Module, buffers: list[Tensor | None], images: Tensor, masks: Tensor
) -> None:
    """The mean loss of the pixels that have a class."""
    weights = list(network.parameters())
    losses = literal_losses(network(images)[1], masks)
    moved(weights, torch.autograd.grad(sum(losses) / len(losses), weights), buffers, rate=RATE, clip=CLIP)


def literal_losses(logits: Tensor, masks: Tensor) -> list[Tensor]:
    return [
        -F.log_softmax(logits[n, :, r, c], dim=0)[masks[n, r, c]]
        for n, r, c in (masks != IGNORED_PIXEL).nonzero().tolist()
    ]


def literal_run(data: MaskData, config: L2BMaskConfig) -> tuple[nn.Module, dict[str, int], list[list[int]]]:
    """(network, steps by kind, believed rows by epoch) of a run of one network, row by row; seed 0."""
    inputs = Run("l2b", data, config, seed=0, device="cpu").inputs
    masks = torch.from_numpy(data.masks).long()
    with seeded_init(0, "network", 0):
        network = Double("", 3, K)
    buffers: list[Tensor | None] = [None] * len(list(network.parameters()))
    counts, believed = {"plain_steps": 0, "meta_steps": 0}, []
    rows = [row for row in range(len(masks)) if (masks[row] != IGNORED_PIXEL).any()]
    for epoch in range(config.epochs):
        order, augment, meta = (make_generator(0, name, 0, epoch) for name in ("order", "augment", "meta"))

        def mirrored(of: list[int], draws: torch.Generator = augment) -> tuple[Tensor, Tensor]:
            found = []
            for row, draw in zip(of, torch.rand(len(of), generator=draws).tolist(), strict=True):
                image, mask = inputs(torch.tensor([row]))[0], masks[row]
                found.append((image.flip(2), mask.flip(1)) if draw < 0.5 else (image, mask))
            return torch.stack([image for image, _ in found]), torch.stack([mask for _, mask in found])

        trusted = [row for row in rows if data.trusted_mask[row]]
        is_trusted = config.meta_source == "trusted" or (config.meta_source == "auto" and len(trusted) >= 3)
        known: list[int] = []
        if epoch >= config.warmup_epochs and is_trusted:
            known = trusted
        elif epoch >= config.warmup_epochs:
            network.eval()
            mean = {}
            for row in rows:
                losses = literal_losses(network(inputs(torch.tensor([row])))[1], masks[row : row + 1])
                mean[row] = float(torch.stack(losses).mean().detach())
            network.train()
            most = max(config.meta_batch_size + 1, round(config.meta_share * len(rows)))
            known = sorted(sorted(rows, key=lambda row, mean=mean: mean[row])[:most])
        believed.append(known)
        for index in epoch_batches(torch.tensor(rows), config.batch_size, order):
            given = mirrored(index.tolist())
            others = [row for row in known if row not in index.tolist()]
            if not others:
                counts["plain_steps"] += 1
                literal_plain_step(network, buffers, *given)
                continue
            drawn = torch.randperm(len(others), generator=meta)[: config.meta_batch_size].tolist()
            other = mirrored([others[at] for at in drawn])
            counts["meta_steps"] += 1
            literal_step(network, buffers, *given, *other)
            if config.steps_on_meta:
                literal_plain_step(network, buffers, *other)
    return network, {name: count for name, count in counts.items() if count}, believed


@pytest.mark.parametrize(
    ("fields", "trusted", "steps"),
    [
        # Plain where all trusted images are in the batch: nothing is left to judge it by.
        ({"meta_source": "trusted", "warmup_epochs": 1}, [5], {"plain_steps": 3, "meta_steps": 1}),
        ({"meta_source": "auto", "steps_on_meta": True}, [1, 4, 6], {"plain_steps": 1, "meta_steps": 3}),
        ({"meta_source": "auto", "meta_share": 0.5}, [1, 4], {"meta_steps": 4}),
        ({"meta_source": "small_loss", "meta_share": 0.1}, [1, 4, 6], {"meta_steps": 4}),
    ],
)
def test_train_masks__two_epochs_are_the_literal_ones(
    fields: dict[str, Any], trusted: list[int], steps: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "UNet", Double)
    random = np.random.default_rng(0)
    masks = random.integers(0, K, (9, SIZE, SIZE)).astype(np.uint8)
    masks[3] = IGNORED_PIXEL  # nothing is known of this image
    masks[0, :2] = IGNORED_PIXEL
    images = random.integers(0, 256, (9, 3, SIZE, SIZE)).astype(np.uint8)
    data = MaskData(images, masks, K, trusted=np.isin(np.arange(9), trusted))
    common = {"epochs": 2, "batch_size": 4, "meta_batch_size": 2, "warmup_epochs": 0, "folds": 1}
    config = L2BMaskConfig(
        optimizer="sgd", learning_rate=RATE, schedule="constant", clip_norm=CLIP, views=1, **common | fields
    )
    believed: list[list[int]] = []
    ends: list[nn.Module] = []

    def watched(fold: MaskFold) -> None:
        choose_meta_set(fold)
        rows = fold.notes["meta_rows"]
        believed.append([] if rows is None else rows.tolist())
        ends[:] = [fold.network]

    result = train_masks(
        "l2b", data, config, step, seed=0, device="cpu", on_epoch=None, checkpoint=None,
        on_probabilities=None, before_epoch=watched,
    )  # fmt: skip

    literal, counts, literally_believed = literal_run(data, config)
    assert believed == literally_believed
    assert counts == steps
    assert {name: result.provenance.notes[name] for name in steps} == steps
    assert_same_state(ends[0], literal, fields)


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
