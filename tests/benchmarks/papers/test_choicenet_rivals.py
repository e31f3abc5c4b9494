"""The network that ChoiceNet is compared with: what it is and what it descends on."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from benchmarks.papers.choicenet_rivals import PlainHead, build_plain_network, plain_config
from engines.choicenet.config import RESIDUAL_TRUNK, ChoiceNetConfig
from engines.choicenet.networks import ResidualTrunk
from engines.choicenet.training import _sample_losses, train_network
from engines.shared.losses import cross_entropy
from engines.shared.run import Run
from tests.engines.helpers import digits_data

CONFIG = ChoiceNetConfig(network="mlp", epochs=2, batch_size=32, views=1, trust="published")


def test_plain_head__loss_is_cross_entropy_without_noise() -> None:
    head = PlainHead(5, 4)
    mixture = head(torch.randn(6, 5))
    labels = torch.tensor([0, 1, 2, 3, 0, 1])
    fit, kl = _sample_losses(CONFIG, mixture, labels, torch.Generator(), warmup=True)
    torch.testing.assert_close(fit, cross_entropy(mixture.target, labels))
    assert not kl.any()
    (fit + kl).mean().backward()
    assert all(value.grad is not None and value.grad.isfinite().all() for value in head.parameters())


def test_build_plain_network__has_the_published_trunk() -> None:
    network = build_plain_network(ChoiceNetConfig(width=4), RESIDUAL_TRUNK, (1, 28, 28), num_classes=3)
    trunk = network.trunk
    assert isinstance(trunk, ResidualTrunk)
    first, second = trunk.blocks
    assert first.identity[0].kernel_size == (1, 1)  # type: ignore[union-attr, index]
    assert isinstance(second.identity, nn.Identity)
    assert [type(layer) for layer in trunk.tail] == [nn.Flatten, nn.Linear, nn.ReLU, nn.Dropout]
    assert network(torch.rand(2, 1, 28, 28))[1].shape == (2, 3)


def test_train_network__of_the_rival_is_by_cross_entropy_in_every_epoch() -> None:
    data, _ = digits_data(80, num_unlabeled=5)
    config = plain_config(CONFIG)
    run = Run("choicenet", data, config, device="cpu", standardized=True)
    result = train_network(run, config, build_plain_network)
    assert result.history[-1].losses["fit"] > 0  # the bounded loss of ChoiceNet is below 0
    assert result.history[-1].losses["kl"] == 0
    np.testing.assert_array_equal(np.isnan(result.trust_score), ~data.labeled)
