"""What one L2B step costs against a plain step and against double backward, and what the approximations miss.

    python -m benchmarks.meta_step [--widths 16 64] [--repetitions 5] [--errors] [--device cpu]
                                   [--precision float32 bfloat16]

PreActResNet-18 on 32-px RGB, batch 128, meta batches of 128 and 32, one thread on the CPU. All methods run
side by side in one process, one repetition of each in turn; the figure is the ratio of medians. Time on the
CPU is the thread's own CPU time, so that a busy machine disturbs little. Peak memory is measured in a process
of its own for each method. With ``--errors`` the error of the approximate derivatives is measured at
initialisation and in training on CIFAR-10 with human labels (17 % wrong).
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
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from benchmarks.images import load
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


def engine_step(derivative: str) -> Callable[[Bench], Tensor]:
    """What ``engines.l2b.training`` does."""

    def run(b: Bench) -> Tensor:
        with b.mixed():
            found = meta_forward(
                b.network, b.images, b.targets, b.meta_images, b.meta_targets, derivative=derivative
            )
        return b.weighted_step(found.logits, found.alpha, found.beta)

    return run


METHODS: dict[str, Callable[[Bench], Tensor | None]] = {
    "plain": plain,
    "double_backward": double_backward,
    "separate_jvp": separate_jvp,
    "exact": engine_step("exact"),
    "finite_difference": engine_step("finite_difference"),
    "last_layer": engine_step("last_layer"),
}


def methods_in(precision: str) -> dict[str, Callable[[Bench], Tensor | None]]:
    """Those that work in this precision: bfloat16 rounds the steps of finite differences away."""
    refused = ("finite_difference",) if precision == "bfloat16" else ()
    return {name: method for name, method in METHODS.items() if name not in refused}


def clock(device: str) -> float:
    """Seconds: finished work on CUDA, this thread's CPU time on the CPU."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
        return time.perf_counter()
    return time.thread_time()


def measure_time(width: int, meta_size: int, repetitions: int, device: str, precision: str) -> dict[str, Any]:
    """Median and raw seconds a step of every method, interleaved, and the ratio to the plain step."""
    bench = Bench(width, meta_size, device, precision)
    methods = methods_in(precision)
    raw: dict[str, list[float]] = {name: [] for name in methods}
    alphas: dict[str, Tensor] = {}
    start = copy.deepcopy(bench.network.state_dict())
    for repetition in range(repetitions + 1):
        for name, method in methods.items():
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
    for name in methods_in(precision):
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


# --- error of the approximations --------------------------------------------------------------------------


def measure_errors(network_name: str, steps: tuple[int, ...]) -> list[dict[str, Any]]:
    """Approximate against exact weights along plain training on CIFAR-10 with human labels."""
    pixels, table = load("cifar10-train", rows=4000)
    images = (torch.from_numpy(pixels).float() / 255 - 0.47) / 0.25
    images = images.contiguous(memory_format=torch.channels_last)
    labels, true = (torch.from_numpy(table[name].to_numpy()) for name in ("label_random1", "label"))
    torch.manual_seed(0)
    width = 16 if network_name == "preact_resnet18" else None
    network = build_network(
        network_name, channels=3, image_size=(32, 32), num_classes=CLASSES, width=width
    ).to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    rows, found = torch.randperm(3500), []
    for step in range(max(steps) + 1):
        if step in steps:
            found.append({"network": network_name, "step": step, **_errors(network, images, labels, true)})
        batch = rows[torch.randint(3500, (BATCH,))]
        loss = F.cross_entropy(network(images[batch])[1], labels[batch])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return found


def _errors(network: nn.Module, images: Tensor, labels: Tensor, true: Tensor) -> dict[str, Any]:
    """Mean over four batches: L1 of the normalised weights (at most 2), correlation of alpha, sign agreement."""
    before = copy.deepcopy(network.state_dict())
    sums: dict[str, list[list[float]]] = {"finite_difference": [], "last_layer": []}
    for part in range(4):
        batch = slice(part * BATCH, (part + 1) * BATCH)
        meta = slice(3500 + part * 125, 3500 + (part + 1) * 125)
        found = {
            name: meta_forward(
                network, images[batch], one_hot(labels[batch], CLASSES),
                images[meta], one_hot(true[meta], CLASSES), derivative=name,
            )
            for name in ("exact", *sums)
        }  # fmt: skip
        everyone = torch.ones(BATCH, dtype=torch.bool)
        weights = {n: torch.cat([*meta_weights(f.alpha, f.beta, everyone)]) for n, f in found.items()}
        for name, rows in sums.items():
            pair = torch.stack([found["exact"].alpha, found[name].alpha])
            rows.append([
                float((weights[name] - weights["exact"]).abs().sum()),
                float(torch.corrcoef(pair)[0, 1]),
                float((pair[0].sign() == pair[1].sign()).float().mean()),
            ])  # fmt: skip
    network.load_state_dict(before)  # the four passes moved the running statistics
    names = ("weights_l1", "alpha_correlation", "alpha_sign_agreement")
    return {
        method: dict(zip(names, torch.tensor(rows).mean(0).tolist(), strict=True))
        for method, rows in sums.items()
    }


def main() -> None:
    """Measure and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", type=int, nargs="*", default=[16, 64])
    parser.add_argument("--meta", type=int, nargs="+", default=[128, 32])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", nargs="+", choices=("float32", "bfloat16"), default=["float32"])
    parser.add_argument("--errors", action="store_true", help="needs CIFAR-10, see benchmarks/images.py")
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
        "errors": [],
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.exists():  # parts that are there are kept: a long run goes on where it was stopped
        stored = json.loads(out.read_text())
        report |= {part: stored[part] for part in ("times", "peak_megabytes", "errors")}
    # Rows without a precision are older than the choice: float32.
    timed = {(one["width"], one["meta_batch"], one.get("precision", "float32")) for one in report["times"]}
    weighed = {(one["width"], one.get("precision", "float32")) for one in report["peak_megabytes"]}
    compared = {one["network"] for one in report["errors"]}
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
    if arguments.errors:
        for network, steps in (("conv3", (0, 100, 300)), ("preact_resnet18", (0, 60))):
            if network not in compared:
                jobs.append(lambda n=network, s=steps: report["errors"].extend(measure_errors(n, s)))
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
