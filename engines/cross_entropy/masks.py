"""Plain cross-entropy on pixels: the network that judges masks."""

from __future__ import annotations

from torch import Tensor

from engines.contract import Checkpoint, MaskData, MaskResult, OnEpoch, OnProbabilities
from engines.segmentation import MaskConfig, MaskFold, plain_step, train_masks
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
    return plain_step(fold.network, fold.optimizer, logits, masks, CLIP_NORM)
