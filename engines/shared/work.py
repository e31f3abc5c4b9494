"""How much work a run is, counted in passes of its own network, and how fast this machine makes such passes.

An estimate is their product. A pass is measured for a moment on random values of the very width; how many an engine
makes follows from its config. Factors between engines were measured on one core, on images of 28 to 64 px and on
features of 64 values (``benchmarks.estimates``).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch.nn import functional as F

from engines.networks import build_for_shape, resolve_for_shape
from engines.shared.device import autocast, seeded_init
from engines.shared.optimizers import Adam

PROBE_S = 0.35
"""Seconds that a kind of pass is measured for at most, after one that is not counted."""
PROBE_VALUES = 2**20
"""Values of a probing batch at most: large images are measured in small batches."""
PROBE_ROWS = 128

clock = time.perf_counter
"""What seconds are counted by; benchmarks on a machine in use by others count those of the process."""


STEP_IN_ROWS = 120
"""Rows that a step on features takes as long as beside its own: calls of small kernels (measured with UMN)."""


def cost_of_steps(size: int, measured_with: int, step_in_rows: int = STEP_IN_ROWS) -> float:
    """Return how much longer a row of features takes in steps of ``size`` rows than in those of
    ``measured_with``.
    """
    return (1 + step_in_rows / size) / (1 + step_in_rows / measured_with)


class Work(NamedTuple):
    """Rows that a run passes through its network."""

    trained: float
    """Forward, backward and step."""
    scored: float
    """Forward alone."""


class Speed(NamedTuple):
    """Seconds of one row."""

    trained: float
    scored: float

    def seconds(self, work: Work) -> float:
        """Return how long that work takes."""
        return self.trained * work.trained + self.scored * work.scored


def speed(
    network: str,
    shape: tuple[int, ...],
    num_classes: int,
    *,
    device: torch.device,
    precision: str,
    weights: str | None = None,
    image_side: int | None = None,
) -> Speed:
    """Measure a network on rows of ``shape``, (C, H, W) or (D,); asked again it answers from memory.

    Raises:
        EngineInputError: the network cannot take such rows.
    """
    name = resolve_for_shape(network, shape, device=device)
    num_threads = torch.get_num_threads()
    return _speed(name, shape, num_classes, device, precision, weights, image_side, num_threads)


@functools.lru_cache(maxsize=64)
def num_seen(
    network: str,
    shape: tuple[int, ...],
    num_classes: int,
    *,
    device: torch.device,
    weights: str | None = None,
    image_side: int | None = None,
) -> int:
    """Return how many features a network makes of a row of ``shape``: what heads on it train on.

    Raises:
        EngineInputError: the network cannot take such rows.
    """
    name = resolve_for_shape(network, shape, device=device)
    with seeded_init(0, "probe"):
        model = build_for_shape(name, shape, num_classes, weights=weights, image_side=image_side).eval()
    with torch.no_grad():
        return int(model(torch.zeros(1, *shape))[0].shape[1])


@functools.lru_cache(maxsize=64)
def _speed(
    network: str,
    shape: tuple[int, ...],
    num_classes: int,
    device: torch.device,
    precision: str,
    weights: str | None,
    image_side: int | None,
    num_threads: int,  # noqa: ARG001 - what was measured with others does not count
) -> Speed:
    with seeded_init(0, "probe"):
        model = build_for_shape(network, shape, num_classes, weights=weights, image_side=image_side).to(
            device
        )
    size = max(1, int(torch.tensor(shape).prod()), 3 * (image_side or 0) ** 2)
    num_rows = max(8, min(PROBE_ROWS, PROBE_VALUES // size))
    rows = torch.rand((num_rows, *shape), generator=torch.Generator().manual_seed(0)).to(device)
    if len(shape) == 3:
        rows = rows.contiguous(memory_format=torch.channels_last)
    labels = torch.zeros(num_rows, dtype=torch.int64, device=device)
    optimizer = Adam(model.parameters())

    def step() -> None:
        with autocast(precision, device):
            _, logits = model(rows)
        model.zero_grad(set_to_none=True)
        F.cross_entropy(logits.float(), labels).backward()
        optimizer.step()

    @torch.no_grad()
    def score() -> None:
        with autocast(precision, device):
            model(rows)

    model.train()
    trained = seconds_of(step, device) / num_rows
    model.eval()
    return Speed(trained, seconds_of(score, device) / num_rows)


def seconds_of(call: Callable[[], object], device: torch.device) -> float:
    """Seconds of one call: the mean over as many as the time allows.

    Not the median: where others use the machine, most calls are quick and some wait for them, and so will the run.
    """
    call()
    count, passed = 0, 0.0
    began = clock()
    while passed < PROBE_S or not count:
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        count, passed = count + 1, clock() - began
    return passed / count
