"""Images in, features out: one process with batches on a card, or several on the cores of a CPU.

A million images take hours on a CPU, so rows are embedded in ranges that are reported when they are done, and
whoever calls keeps a list of them and leaves them out the next time.
"""

from __future__ import annotations

import functools
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from engines.backbones.views import views_of
from engines.contract import EngineError
from engines.networks.pretrained import Backbone, backbone
from engines.shared.device import computes_in_bfloat16, threads
from engines.shared.work import seconds_of

RowsDone = Callable[[int, int], None]
"""Called with the first row and the row after the last of each range that is written."""
FLOAT16_LARGEST = 65_504.0
PROBED_IMAGES = 16
"""A batch of a CPU."""


@dataclass(frozen=True)
class ImagePlace:
    """Where the pictures lie and where their features go, for processes that share them as files."""

    images: Path
    """``.npy``, (N, C, H, W) uint8."""
    features: Path
    """``.npy``, (N, V, D) float16, made before."""


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
        (B, V, D) float16; computed in bfloat16 where the device does, else in float32.

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
) -> tuple[float, int]:
    """Seconds that ``embed`` takes for one image of ``shape`` (C, H, W), with one thread on a CPU, and D.

    Measured for a moment on random images; asked again it answers from memory.

    Raises:
        EngineError: the weights do not fit, or the network cannot take such images.
    """
    network = backbone(name, weights, side=side).to(device)
    images = np.random.default_rng(0).integers(0, 256, (PROBED_IMAGES, *shape), dtype=np.uint8)
    with threads(1 if device.type == "cpu" else torch.get_num_threads()):
        seconds = seconds_of(lambda: embed(images, network, views=views, device=device), device)
    return seconds / len(images), network.feature_size


def embed_in_processes(
    place: ImagePlace,
    ranges: Sequence[tuple[int, int]],
    *,
    name: str,
    weights: str | Path | None,
    side: int | None,
    views: int,
    processes: int,
    on_done: RowsDone,
) -> None:
    """Embed ranges of rows on several cores, one process each, and write them to ``place.features``.

    ``on_done`` is called in this process after each range, in no particular order; what it raises stops the work
    after the ranges that are being computed.

    Raises:
        EngineError: as ``embed``, and where a process was killed (too little memory, for example).
    """
    arguments = (place, name, None if weights is None else str(weights), side, views)
    context = multiprocessing.get_context("spawn")
    waiting = list(reversed(ranges))
    with ProcessPoolExecutor(processes, context, initializer=_open, initargs=arguments) as pool:
        running: dict[Future[None], tuple[int, int]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < 2 * processes:
                    part = waiting.pop()
                    running[pool.submit(_embed_range, *part)] = part
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    future.result()
                    on_done(*running.pop(future))
        except BrokenProcessPool as error:
            raise EngineError("a process that embeds images was ended; is there enough memory?") from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@dataclass
class _Worker:
    images: NDArray[np.uint8]
    features: NDArray[np.float16]
    network: Backbone
    views: int


_worker: _Worker | None = None
"""What this process of the pool works with."""


def _open(place: ImagePlace, name: str, weights: str | None, side: int | None, views: int) -> None:
    global _worker
    torch.set_num_threads(1)
    _worker = _Worker(
        images=np.load(place.images, mmap_mode="r", allow_pickle=False),
        features=np.load(place.features, mmap_mode="r+", allow_pickle=False),
        network=backbone(name, weights, side=side),
        views=views,
    )


def _embed_range(start: int, end: int) -> None:
    assert _worker is not None
    part = _worker.images[start:end]
    cpu = torch.device("cpu")
    _worker.features[start:end] = embed(part, _worker.network, views=_worker.views, device=cpu)
    _worker.features.flush()  # type: ignore[attr-defined]
