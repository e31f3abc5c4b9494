"""A backbone of the user's own images: features that a network learned from the images alone, without any label.

SimCLR (Chen et al. 2020, https://arxiv.org/abs/2002.05709): two random views of each image must find each other
among all views of a batch. The network is one of the small ones that train from scratch, so that what it learned
can be compared with that. Labels are never seen: a wrong one cannot be memorised here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engines.contract import EngineInputError
from engines.networks.small import build_network, choose_network
from engines.shared.device import make_generator, seeded_init
from engines.shared.loader import epoch_batches, scoring_batch, standardize
from engines.shared.losses import contrastive_loss
from engines.shared.optimizers import AdamW
from engines.shared.strong import strong_views

BATCH = 256
TEMPERATURE = 0.5
PROJECTION_SIZE = 128
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 1e-4
FEWEST = 8
"""Images below which there is nothing to tell apart."""

OnShare = Callable[[float, int, float], None]
"""Told after every epoch: the share of the time that is spent, the epochs, and their mean loss."""


def learn_features(
    images: NDArray[np.uint8],
    *,
    seconds: float,
    seed: int = 0,
    device: torch.device,
    clock: Callable[[], float] = time.monotonic,
    on_epoch: OnShare | None = None,
) -> NDArray[np.float32]:
    """Train for about ``seconds`` and return what the network says about every image.

    The step size falls with the time that is spent (half a cosine), so two runs of the same seed agree only as far
    as they did the same number of steps. One epoch at least is trained. What ``on_epoch`` raises ends the work.

    Args:
        images: (N, C, H, W) uint8, C in {1, 3}; an array or a memory map.
        seconds: above 0, by ``clock``.
        seed: of the first parameters, the order and the views.
        device: to train on.
        clock: what the time is read from.
        on_epoch: hears of progress.

    Returns:
        (N, V, D) float32; V is 1, or 2 of RGB images: as it is, and mirrored.

    Raises:
        EngineInputError: fewer than 8 images, or no time.
    """
    if len(images) < FEWEST or seconds <= 0:
        raise EngineInputError(
            f"{len(images)} images and {seconds:g} seconds; learning without labels needs {FEWEST} images and time."
        )
    network, projection = _networks(images, seed, device)
    parts = [*network.parameters(), *projection.parameters()]
    optimizer = AdamW(parts, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    mean, std = (value.to(device) for value in _mean_std(images))
    rows, began, epoch, spent = torch.arange(len(images)), clock(), 0, 0.0
    while spent < 1:
        order = make_generator(seed, "order", "simclr", epoch)
        moves = make_generator(seed, "augment", "simclr", epoch, device=device)
        network.train()
        losses = []
        for index in epoch_batches(rows, BATCH, order):
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * 0.5 * (1 + math.cos(math.pi * spent))
            batch = _pixels(images, index, device)
            views = [standardize(strong_views(batch, moves), mean, std) for _ in range(2)]
            first, second = projection(network(torch.cat(views))[0]).chunk(2)
            loss = contrastive_loss(first, second, TEMPERATURE)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
            spent = min(1.0, (clock() - began) / seconds)
            if spent >= 1 and epoch:
                break
        epoch += 1
        if on_epoch is not None:
            on_epoch(spent, epoch, float(np.mean(losses)))
    return _features(network, images, mean, std, device)


def _networks(images: NDArray[np.uint8], seed: int, device: torch.device) -> tuple[nn.Module, nn.Module]:
    channels, height, width = images.shape[1:]
    with seeded_init(seed, "simclr"):
        network = build_network(
            choose_network(channels, (height, width), device),
            channels=channels,
            image_size=(height, width),
            num_classes=2,
        )
        size: int = network.feature_size  # type: ignore[assignment]
        projection = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, PROJECTION_SIZE))
    return network.to(device), projection.to(device)


def _pixels(images: NDArray[np.uint8], index: Tensor, device: torch.device) -> Tensor:
    """(B, C, H, W) float32 in [0, 1]."""
    return torch.from_numpy(np.asarray(images[index.numpy()])).to(device).float() / 255


def _mean_std(images: NDArray[np.uint8]) -> tuple[Tensor, Tensor]:
    """(C,) of the pixels of at most 2,000 images, in [0, 1]."""
    some = np.asarray(images[:: max(1, len(images) // 2_000)], dtype=np.float32) / 255
    mean, std = some.mean(axis=(0, 2, 3)), some.std(axis=(0, 2, 3))
    return torch.from_numpy(mean), torch.from_numpy(np.maximum(std, 1e-3))


@torch.inference_mode()
def _features(
    network: nn.Module, images: NDArray[np.uint8], mean: Tensor, std: Tensor, device: torch.device
) -> NDArray[np.float32]:
    network.eval()
    found = []
    for index in torch.arange(len(images)).split(scoring_batch(device, images.shape[2:])):
        batch = standardize(_pixels(images, index, device), mean, std)
        views = [batch, batch.flip(3)] if images.shape[1] == 3 else [batch]
        found.append(torch.stack([network(view)[0].float() for view in views], dim=1).cpu().numpy())
    return np.concatenate(found)
