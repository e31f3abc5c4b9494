"""Co-teaching on pixels: two networks, each learns from the pixels whose loss its partner finds small.

Han et al. 2018, Eqs. (2) to (4), with the pixels of a batch for its samples; pixels without a class are none of
them. The keep rate falls as in Eq. (4); there is no search. Both networks judge: the mean of their probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from engines.contract import IGNORED_PIXEL, Checkpoint, MaskData, MaskResult, OnEpoch, OnProbabilities
from engines.coteaching.rules import choose_exchanged, mean_loss
from engines.coteaching.schedules import coteaching_keep_rate
from engines.segmentation.config import MaskConfig
from engines.segmentation.loop import MaskFold, pixel_losses, train_masks
from engines.segmentation.network import UNet
from engines.shared.config import within
from engines.shared.device import autocast, memory_errors_explained
from engines.shared.work import Work

CLIP_NORM = 5.0


@dataclass(frozen=True, kw_only=True)
class CoteachingMaskConfig(MaskConfig):
    """The loop on pixels with two networks."""

    noise_rate: float = 0.1
    """tau of Eq. (4): share of the pixels that is dropped in the end, 0 to 0.9. Where masks are wrong, most of
    their pixels still are right: choose less than the share of wrong masks."""
    ramp_share: float = 0.33
    """t_k of Eq. (4) as a share of the epochs, above 0, at most 1."""

    def problems(self) -> list[str]:
        return [
            *super().problems(),
            *within(self, 0, 0.9, "noise_rate"),
            *within(self, 0.01, 1, "ramp_share"),
        ]

    def keep_rate(self, epoch: int) -> float:
        """R of Eq. (4) in an epoch that is counted from 0."""
        ramp = self.ramp_share * self.epochs
        at = np.array([float(epoch)])
        return float(coteaching_keep_rate(at, noise_rate=self.noise_rate, ramp_epochs=ramp)[0])

    def work(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        one = super().work(num_rows, num_classes, on_features=on_features)
        return Work(2 * one.trained, 2 * one.scored)


class TwoUNets(nn.Module):
    """Two U-Nets of one kind; together they say the mean of what they say apart."""

    def __init__(self, encoder: str, channels: int, num_classes: int) -> None:
        """As ``UNet``."""
        super().__init__()
        self.both = nn.ModuleList([UNet(encoder, channels, num_classes) for _ in range(2)])

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """(B, C, H, W) -> mean features (B, D), logarithm of the mean probabilities (B, K, H, W)."""
        said = [network(images) for network in self.both]
        log_probs = torch.stack([logits.float().log_softmax(dim=1) for _, logits in said])
        features = torch.stack([features for features, _ in said]).mean(dim=0)
        return features, log_probs.logsumexp(dim=0) - float(np.log(2))


@memory_errors_explained()
def train(
    data: MaskData,
    config: CoteachingMaskConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
    on_probabilities: OnProbabilities | None = None,
) -> MaskResult:
    """Train two U-Nets a fold that choose each other's pixels; see ``loop.train_masks``."""
    return train_masks(
        "coteaching",
        data,
        config,
        step,
        seed=seed,
        device=device,
        on_epoch=on_epoch,
        checkpoint=checkpoint,
        on_probabilities=on_probabilities,
        network_type=TwoUNets,
    )


def step(fold: MaskFold, index: Tensor) -> Tensor:
    """One step of both networks on the images at ``index``."""
    assert isinstance(fold.config, CoteachingMaskConfig)
    assert isinstance(fold.network, TwoUNets)
    images, masks = fold.batch(index)
    with autocast(fold.config.precision, fold.run.device):
        both = [network(images)[1] for network in fold.network.both]
    return exchanged_step(fold.network.both, fold.optimizer, both, masks, fold.config.keep_rate(fold.epoch))


def exchanged_step(
    networks: nn.ModuleList,
    optimizer: torch.optim.Optimizer,
    logits: list[Tensor],
    masks: Tensor,
    keep_rate: float,
) -> Tensor:
    """Each network descends on the pixels that its partner picked: Eqs. (2), (3); returns the mean of the losses.

    Args:
        networks: the two.
        optimizer: of the weights of both.
        logits: what each says of the batch, (B, K, h, w) with the graph.
        masks: (B, h, w) int64 classes; 255 where there is none.
        keep_rate: R, the share of the pixels with a class that is kept.
    """
    known = masks != IGNORED_PIXEL
    losses = torch.stack([pixel_losses(one, masks)[known] for one in logits])
    mean = mean_loss(losses, choose_exchanged(losses, keep_rate))
    optimizer.zero_grad(set_to_none=True)
    mean.sum().backward()
    for network in networks:
        clip_grad_norm_(network.parameters(), CLIP_NORM)
    optimizer.step()
    return mean.detach().mean()
