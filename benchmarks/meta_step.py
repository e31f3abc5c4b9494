"""What one L2B step costs against a plain step and against double backward.

    python -m benchmarks.meta_step [--widths 16 64] [--repetitions 5] [--device cpu]
                                   [--precision float32 bfloat16]

PreActResNet-18 on 32-px RGB, batch 128, meta batches of 128 and 32, one thread on the CPU. All methods run
side by side in one process, one repetition of each in turn; the figure is the ratio of medians. Time on the
CPU is the thread's own CPU time, so that a busy machine disturbs little. Peak memory is measured in a process
of its own for each method.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from benchmarks.result_files import result_file
from engines.l2b.step import meta_forward
from engines.l2b.weights import combined_targets, meta_weights
from engines.meta.directional import (
    batch_statistics,
    directional_derivative,
    logits_jvp,
    meta_gradient,
    one_hot,
    trainable,
)
from engines.networks.small import build_network
from engines.shared.device import (
    autocast,
    computes_in_bfloat16,
    describe_device,
    peak_memory_bytes,
    versions,
)
from engines.shared.losses import soft_cross_entropy

BATCH, CLASSES, LEARNING_RATE = 128, 10, 0.02
RESULT = Path(__file__).parent / "results" / "meta_step.json"


class Bench:
    """A network, an optimizer, a batch and a meta batch."""

    def __init__(self, width: int, meta_size: int, device: str, precision: str) -> None:
        torch.manual_seed(0)
        self.precision = precision
        self.network = build_network(
            "preact_resnet18", channels=3, image_size=(32, 32), num_classes=CLASSES, width=width
        )
        self.network.to(device=device, memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=LEARNING_RATE, momentum=0.9)
        self.images, self.targets = self._batch(BATCH, device)
        self.meta_images, self.meta_targets = self._batch(meta_size, device)

    def _batch(self, size: int, device: str) -> tuple[Tensor, Tensor]:
        images = torch.randn(size, 3, 32, 32).contiguous(memory_format=torch.channels_last).to(device)
        return images, one_hot(torch.randint(CLASSES, (size,)), CLASSES).to(device)

    def mixed(self) -> AbstractContextManager[object]:
        """Around what an audit computes in its config's precision: every forward pass."""
        return autocast(self.precision, self.images.device)

    def step(self, loss: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()

    def weighted_step(self, logits: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
        """Eq. (7) to (9): the same end for every method."""
        pseudo = one_hot(logits.detach().argmax(1), CLASSES)
        weights = meta_weights(alpha, beta, torch.ones_like(alpha, dtype=torch.bool))
        self.step(soft_cross_entropy(logits, combined_targets(weights, self.targets, pseudo)).sum())
        return alpha


def plain(b: Bench) -> None:
    """Mean cross-entropy."""
    with b.mixed():
        logits = b.network(b.images)[1]
    b.step(soft_cross_entropy(logits, b.targets).mean())


def double_backward(b: Bench) -> Tensor:
    """The definition: gradient of the meta loss through an explicit virtual step."""
    own = trainable(b.network)
    eps = torch.zeros(2, BATCH, device=b.images.device, requires_grad=True)
    with batch_statistics(b.network), b.mixed():
        logits = functional_call(b.network, own, (b.images,))[1]
        pseudo = one_hot(logits.detach().argmax(1), CLASSES)
        losses = torch.stack([soft_cross_entropy(logits, b.targets), soft_cross_entropy(logits, pseudo)])
        gradients = torch.autograd.grad((eps * losses).sum(), list(own.values()), create_graph=True)
        moved = {n: p - LEARNING_RATE * g for (n, p), g in zip(own.items(), gradients, strict=True)}
        outer = soft_cross_entropy(
            functional_call(b.network, moved, (b.meta_images,))[1], b.meta_targets
        ).mean()
    alpha, beta = -torch.autograd.grad(outer, eps)[0] / LEARNING_RATE
    with b.mixed():
        logits = b.network(b.images)[1]
    return b.weighted_step(logits, alpha, beta)


def separate_jvp(b: Bench) -> Tensor:
    """``torch.func.jvp`` first, then a second forward to train on."""
    with b.mixed():
        meta = meta_gradient(b.network, b.meta_images, b.meta_targets)
        logits, tangent = logits_jvp(b.network, b.images, meta.direction)
    alpha = directional_derivative(logits, tangent, b.targets)
    beta = directional_derivative(logits, tangent, one_hot(logits.argmax(1), CLASSES))
    with b.mixed():
        logits = b.network(b.images)[1]
    return b.weighted_step(logits, alpha, beta)


def engine_step(b: Bench) -> Tensor:
    """What ``engines.l2b.training`` does."""
    with b.mixed():
        found = meta_forward(b.network, b.images, b.targets, b.meta_images, b.meta_targets)
    return b.weighted_step(found.logits, found.alpha, found.beta)


METHODS: dict[str, Callable[[Bench], Tensor | None]] = {
    "plain": plain,
    "double_backward": double_backward,
    "separate_jvp": separate_jvp,
    "exact": engine_step,
}


def clock(device: str) -> float:
    """Seconds: finished work on CUDA, this thread's CPU time on the CPU."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
        return time.perf_counter()
    return time.thread_time()


def measure_time(width: int, meta_size: int, repetitions: int, device: str, precision: str) -> dict[str, Any]:
    """Median and raw seconds a step of every method, interleaved, and the ratio to the plain step."""
    bench = Bench(width, meta_size, device, precision)
    raw: dict[str, list[float]] = {name: [] for name in METHODS}
    alphas: dict[str, Tensor] = {}
    start = copy.deepcopy(bench.network.state_dict())
    for repetition in range(repetitions + 1):
        for name, method in METHODS.items():
            bench.network.load_state_dict(start)
            before = clock(device)
            alpha = method(bench)
            seconds = clock(device) - before
            if repetition:  # the first round warms up
                raw[name].append(seconds)
            if alpha is not None:
                alphas[name] = alpha.detach()
    median = {name: statistics.median(values) for name, values in raw.items()}
    return {
        "width": width, "batch": BATCH, "meta_batch": meta_size, "precision": precision,
        "repetitions": repetitions,
        "load_average": os.getloadavg()[0],
        "milliseconds": {name: 1e3 * value for name, value in median.items()},
        "ratio_to_plain": {name: value / median["plain"] for name, value in median.items()},
        "largest_error_against_double_backward": {
            name: float((alpha - alphas["double_backward"]).abs().max() / alphas["double_backward"].abs().max())
            for name, alpha in alphas.items()
        },
        "raw_seconds": raw,
    }  # fmt: skip


def measure_memory(width: int, meta_size: int, device: str, precision: str) -> dict[str, float]:
    """MB that two steps need beyond the network and its batches, each method in a process of its own."""
    found = {}
    for name in METHODS:
        command = [sys.executable, "-m", "benchmarks.meta_step", "--device", device]
        command += ["--precision", precision, "--memory-of", name, str(width), str(meta_size)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        found[name] = float(run.stdout.strip().splitlines()[-1])
    return found


def memory_of(name: str, width: int, meta_size: int, device: str, precision: str) -> float:
    """Peak MB of two steps of one method in this process."""
    bench = Bench(width, meta_size, device, precision)
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
    else:
        before = peak_memory_bytes(torch.device("cpu"))
    for _ in range(2):
        METHODS[name](bench)
    if device.startswith("cuda"):
        return (torch.cuda.max_memory_allocated(device) - before) / 1e6
    return (peak_memory_bytes(torch.device("cpu")) - before) / 1e6


def main() -> None:
    """Measure and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", type=int, nargs="*", default=[16, 64])
    parser.add_argument("--meta", type=int, nargs="+", default=[128, 32])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", nargs="+", choices=("float32", "bfloat16"), default=["float32"])
    parser.add_argument("--out", type=Path, help="default: one file a kind of device")
    parser.add_argument("--memory-of", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    chosen = ["plain", "double_backward", *arguments.methods]
    for name in [name for name in METHODS if name not in chosen]:
        del METHODS[name]
    if arguments.memory_of:
        name, width, meta_size = arguments.memory_of
        print(memory_of(name, int(width), int(meta_size), arguments.device, *arguments.precision))
        return
    if "bfloat16" in arguments.precision and not computes_in_bfloat16(torch.device(arguments.device)):
        raise SystemExit("This device does not compute in bfloat16; leave --precision bfloat16 out.")
    out: Path = arguments.out or result_file(RESULT, arguments.device)
    report: dict[str, Any] = {
        "what": "seconds of one L2B step by method, PreActResNet-18, 32 px RGB",
        "device": describe_device(torch.device(arguments.device)),
        "processor": processor(),
        "threads": 1,
        "versions": versions(),
        "clock": "CPU time of the thread" if arguments.device == "cpu" else "wall time, synchronised",
        "times": [],
        "peak_megabytes": [],
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.exists():  # parts that are there are kept: a long run goes on where it was stopped
        stored = json.loads(out.read_text())
        report |= {part: stored[part] for part in ("times", "peak_megabytes")}
    # Rows without a precision are older than the choice: float32.
    timed = {(one["width"], one["meta_batch"], one.get("precision", "float32")) for one in report["times"]}
    weighed = {(one["width"], one.get("precision", "float32")) for one in report["peak_megabytes"]}
    jobs: list[Callable[[], None]] = []

    def time_steps(width: int, meta: int, precision: str) -> None:
        report["times"].append(measure_time(width, meta, arguments.repetitions, arguments.device, precision))

    def weigh_steps(width: int, precision: str) -> None:
        about = {"width": width, "meta_batch": BATCH, "precision": precision}
        report["peak_megabytes"].append(about | measure_memory(width, BATCH, arguments.device, precision))

    for width, precision in itertools.product(arguments.widths, arguments.precision):
        for meta in arguments.meta:
            if (width, meta, precision) not in timed:
                jobs.append(partial(time_steps, width, meta, precision))
        if (width, precision) not in weighed:
            jobs.append(partial(weigh_steps, width, precision))
    for job in jobs:
        job()
        # After every part, so that a long run that is stopped leaves what it found.
        out.write_text(json.dumps(report, indent=1) + "\n")


def processor() -> str:
    """Name of the processor where the system tells."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    main()
