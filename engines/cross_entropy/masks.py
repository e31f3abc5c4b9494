"""Plain cross-entropy on pixels: the network that other engines for masks are compared with."""

from __future__ import annotations

from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from engines.contract import IGNORED_PIXEL, Checkpoint, MaskData, MaskResult, OnEpoch, OnProbabilities
from engines.segmentation.config import MaskConfig
from engines.segmentation.loop import MaskFold, pixel_losses, train_masks
from engines.shared.device import autocast, memory_errors_explained

CLIP_NORM = 5.0


@memory_errors_explained()
def train(
    data: MaskData,
    config: MaskConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
    on_probabilities: OnProbabilities | None = None,
) -> MaskResult:
    """Train a U-Net a fold by the mean loss of all pixels; see ``loop.train_masks``."""
    return train_masks(
        "cross_entropy",
        data,
        config,
        step,
        seed=seed,
        device=device,
        on_epoch=on_epoch,
        checkpoint=checkpoint,
        on_probabilities=on_probabilities,
    )


def step(fold: MaskFold, index: Tensor) -> Tensor:
    """One step on the images at ``index``: the mean over all pixels that have a class."""
    images, masks = fold.batch(index)
    with autocast(fold.config.precision, fold.run.device):
        _, logits = fold.network(images)
    loss = pixel_losses(logits, masks).sum() / (masks != IGNORED_PIXEL).sum().clamp(min=1)
    fold.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    clip_grad_norm_(fold.network.parameters(), CLIP_NORM)
    fold.optimizer.step()
    return loss.detach()
