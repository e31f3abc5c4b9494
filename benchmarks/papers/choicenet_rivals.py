"""What ChoiceNet is compared with in its tables: the same trunk under one classifier, by cross-entropy.

In the engine's terms it is a mixture of one component without noise, whose warm-up (the mixture's cross-entropy)
lasts for all epochs. No audit uses it.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from engines.choicenet.cholesky import Mixture
from engines.choicenet.config import ChoiceNetConfig
from engines.choicenet.networks import MixtureNetwork, ResidualTrunk, build_trunk, initialize

DROPOUT = 0.05


def plain_config(config: ChoiceNetConfig) -> ChoiceNetConfig:
    """The same training by cross-entropy; the published trust needs a correlation."""
    return replace(config, warmup_epochs=config.epochs, trust="margin")


def build_plain_network(
    config: ChoiceNetConfig, name: str, shape: tuple[int, ...], *, num_classes: int
) -> MixtureNetwork:
    """As ``build_mixture_network``, with one linear classifier."""
    trunk, size = build_trunk(config, name, shape, num_classes=num_classes)
    if isinstance(trunk, ResidualTrunk):
        as_compared(trunk)
    return MixtureNetwork(trunk, PlainHead(size, num_classes), feature_size=size)


def as_compared(trunk: ResidualTrunk) -> None:
    """The published ConvNet: 1 x 1 identity convolutions, dropout in place of the last batch norm."""
    for block in trunk.blocks:
        if isinstance(block.identity, nn.Sequential):
            wide = block.identity[0]
            block.identity[0] = nn.Conv2d(wide.in_channels, wide.out_channels, 1)
    trunk.tail = nn.Sequential(*trunk.tail[:2], nn.ReLU(), nn.Dropout(DROPOUT))
    trunk.apply(initialize)


class PlainHead(nn.Module):
    """One linear classifier, as a mixture of one component without noise."""

    def __init__(self, feature_size: int, num_classes: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(feature_size, num_classes)

    def forward(self, features: Tensor) -> Mixture:
        """Map features (B, Q) to the batch's mixture."""
        logits = self.classifier(features)
        one = torch.ones_like(logits[:, :1])
        return Mixture(
            log_pi=torch.zeros_like(one),
            rho=one,
            target=logits,
            base_variance=torch.zeros_like(logits),
            weight_variance=torch.zeros_like(one),
            inverse_precision=0.0,
            outer="sqrt",
        )
