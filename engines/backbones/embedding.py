"""Images in, features out: batches on a card, or one image after the other on each core of a CPU.

A million images take hours on a CPU, so rows are embedded in ranges that are reported when they are done, and
whoever calls keeps a list of them and leaves them out the next time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from engines.backbones.views import views_of
from engines.contract import EngineError
from engines.networks import Backbone, for_looking, open_backbone
from engines.shared.device import computes_in_bfloat16, threads
from engines.shared.work import seconds_of

RowsDone = Callable[[int, int], None]
"""Called with the first row and the row after the last of each range that is written."""
FLOAT16_LARGEST = 65_504.0
PROBED_IMAGES = 16
"""A batch of a CPU."""


def seeing(
    name: str,
    weights: str | Path | None,
    *,
    side: int | None = None,
    device: torch.device,
    workers: int | None = None,
    kept: Path | None = None,
) -> Backbone:
    """The network called ``name``, ready to look at images on ``device``.

    Args:
        name, weights, side: see ``engines.networks.open_backbone``.
        device: on a CPU OpenVINO computes where it is installed, else torch.
        workers: threads that will look at the same time; default as many as torch computes with.
        kept: folder of networks that were converted for OpenVINO.

    Raises:
        EngineInputError: as ``backbone``.
    """
    network = open_backbone(name, weights, side=side)
    if device.type != "cpu":
        return network.to(device)
    return for_looking(network, threads=workers or torch.get_num_threads(), kept=kept)


def embed(
    images: NDArray[np.uint8],
    network: Backbone,
    *,
    views: int,
    device: torch.device,
    batch_size: int | None = None,
) -> NDArray[np.float16]:
    """Features of some images, in their order.

    Args:
        images: (B, C, H, W) uint8; an array or a part of a memory map.
        network: on ``device``.
        views: V, see ``views_of``.
        batch_size: images at a time; default 16 on a CPU, whose caches hold no more, and 256 on a card.

    Returns:
        (B, V, D) float16; computed in float32 by OpenVINO, by torch in bfloat16 where the device does.

    Raises:
        EngineError: the network returns values that are not finite; the text names the first row.
    """
    is_fast = computes_in_bfloat16(device)
    parts: list[NDArray[np.float16]] = []
    size = batch_size or (256 if device.type == "cuda" else 16)
    for start in range(0, len(images), size):
        batch = torch.from_numpy(np.array(images[start : start + size])).to(device)
        with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=is_fast):
            seen = [network(view).float() for view in views_of(batch, network.config, views)]
        found = torch.stack(seen, dim=1).cpu()
        broken = (~torch.isfinite(found)).flatten(1).any(1).nonzero()
        if len(broken):
            raise EngineError(
                f"{network.name} returns values that are not finite for image {start + int(broken[0])}; "
                "check its weights file, or use another backbone."
            )
        parts.append(found.clamp(-FLOAT16_LARGEST, FLOAT16_LARGEST).numpy().astype(np.float16))
    return np.concatenate(parts)


@functools.lru_cache(maxsize=16)
def probe(
    name: str,
    weights: str | None,
    shape: tuple[int, int, int],
    *,
    side: int | None,
    views: int,
    device: torch.device,
    kept: Path | None = None,
) -> tuple[float, int]:
    """Seconds that ``embed`` takes for one image of ``shape`` (C, H, W), with one thread on a CPU, and D.

    Measured for a moment on random images; asked again it answers from memory.

    Raises:
        EngineError: the weights do not fit, or the network cannot take such images.
    """
    network = seeing(name, weights, side=side, device=device, workers=1, kept=kept)
    images = np.random.default_rng(0).integers(0, 256, (PROBED_IMAGES, *shape), dtype=np.uint8)
    with threads(1 if device.type == "cpu" else torch.get_num_threads()):
        seconds = seconds_of(lambda: embed(images, network, views=views, device=device), device)
    return seconds / len(images), network.feature_size


def embed_rows(
    images: NDArray[np.uint8],
    features: NDArray[np.float16],
    ranges: Sequence[tuple[int, int]],
    network: Backbone,
    *,
    views: int,
    device: torch.device,
    workers: int | None = None,
    on_done: RowsDone,
) -> None:
    """Embed ranges of rows of ``images`` into ``features``, both arrays or memory maps.

    Args:
        images: (N, C, H, W) uint8.
        features: (N, V, D), written.
        ranges: the first row and the row after the last of each.
        network: of ``seeing``.
        views: V, see ``views_of``.
        device: the network's.
        workers: threads of a CPU that look at the same time, each at a range, as in ``seeing``; a card has one.
        on_done: called in this thread after each range, in no particular order; what it raises stops the work
            after the ranges that are being computed.

    Raises:
        EngineError: as ``embed``.
    """

    def one(start: int, end: int) -> None:
        features[start:end] = embed(images[start:end], network, views=views, device=device)

    is_cpu = device.type == "cpu"
    workers = (workers or torch.get_num_threads()) if is_cpu else 1
    waiting = list(reversed(ranges))
    with threads(1 if is_cpu else torch.get_num_threads()), ThreadPoolExecutor(workers) as pool:
        running: dict[Future[None], tuple[int, int]] = {}
        while waiting or running:
            while waiting and len(running) < workers:
                part = waiting.pop()
                running[pool.submit(one, *part)] = part
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                future.result()
                on_done(*running.pop(future))
