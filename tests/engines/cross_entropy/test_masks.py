"""The plain step on pixels against its formula: mean over known pixels, one norm of all gradients, SGD."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any, cast

import torch

from engines.contract import IGNORED_PIXEL
from engines.cross_entropy import masks
from engines.segmentation.loop import MaskFold
from tests.engines.literal_masks import SIZE, Tiny, batch

RATE = 0.5


def fold_on(network: Tiny, given: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
    """As much of a fold as a step sees; its batches are ``given``, in order."""
    return SimpleNamespace(
        batch=lambda index: given[int(index)],
        network=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=RATE, momentum=0.9),
        config=SimpleNamespace(precision="float32"),
        run=SimpleNamespace(device=torch.device("cpu")),
    )


def test_step__is_the_formula_at_every_step() -> None:
    torch.manual_seed(0)
    ours = Tiny().double().train()
    with torch.no_grad():
        ours.last.weight *= 15  # the first gradients are cut to the norm
    literal = copy.deepcopy(ours)
    given = [batch(number, 3) for number in range(3)]
    # One batch has no known pixel at all, one has one.
    none = torch.full_like(given[0][1], IGNORED_PIXEL)
    single = none.clone()
    single[1, 2, 3] = 2
    given += [(given[0][0], none), (given[1][0], single)]
    fold, moments, norms = fold_on(ours, given), [torch.zeros(())] * len(list(literal.parameters())), []
    for number, (images, labels) in enumerate(given):
        found = masks.step(cast(MaskFold, fold), torch.tensor(number))
        _, logits = literal(images)
        losses = [
            -torch.log_softmax(logits[n, :, r, c], dim=0)[labels[n, r, c]]
            for n in range(3)
            for r in range(SIZE)
            for c in range(SIZE)
            if labels[n, r, c] != IGNORED_PIXEL
        ]
        loss = torch.stack(losses).mean() if losses else 0 * logits.sum()
        gradients = torch.autograd.grad(loss, list(literal.parameters()))
        norms.append(float(torch.stack([one.norm() for one in gradients]).norm()))
        scale = min(1.0, masks.CLIP_NORM / (norms[-1] + 1e-6))
        with torch.no_grad():
            for at, (value, one) in enumerate(zip(literal.parameters(), gradients, strict=True)):
                moments[at] = 0.9 * moments[at] + one * scale
                value -= RATE * moments[at]
        torch.testing.assert_close(found, loss.detach())
        assert not found.requires_grad
        for (name, mine), theirs in zip(ours.named_parameters(), literal.parameters(), strict=True):
            assert torch.allclose(mine, theirs, rtol=1e-6, atol=1e-8), f"step {number}, {name}"
    assert max(norms) > masks.CLIP_NORM > min(norms[:3]) > 0
