"""Peak memory and time of every engine from 200 to 100,000 samples, 28 to 224 px, 2 to 1,000 classes.

    python -m benchmarks.sizes

One process a cell, so that a peak belongs to one engine; the images are a memory map, as an import leaves them.
Each class is a random picture and each sample that picture under noise, with a tenth of the labels wrong: the
figures are about size, not skill. Two epochs and no search of schedules, the preset ``quick`` otherwise. Finished
cells are kept in ``benchmarks/results/sizes.json``, so that the command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.metrics import auroc
from benchmarks.noise import make_noise
from benchmarks.result_files import result_file
from engines.contract import TrainingData
from engines.registry import ENGINES
from engines.shared.device import describe_device, peak_memory_bytes, resolve_device, versions

RESULTS = Path(__file__).resolve().parent / "results" / "sizes.json"
EPOCHS = 2
WRONG = 0.1
CHUNK = 1_000


class Size(NamedTuple):
    """A data set's shape and the network that learns it."""

    samples: int
    side: int
    channels: int
    classes: int
    network: str

    @property
    def name(self) -> str:
        """For people and for the key of a cell."""
        colour = "RGB" if self.channels == 3 else "grey"
        return f"{self.samples:,} x {self.side} px {colour}, {self.classes:,} classes, {self.network}"


SIZES = (
    Size(200, 28, 1, 2, "mlp"),
    Size(10_000, 28, 1, 10, "mlp"),
    Size(100_000, 28, 1, 10, "mlp"),
    Size(5_000, 32, 3, 1_000, "conv3"),
    Size(200, 224, 3, 10, "conv4"),
    Size(200, 224, 3, 10, "torchvision:resnet18"),
)


def main() -> None:
    """Run the cells that the results lack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="default: one file a kind of device")
    parser.add_argument("--cell", nargs=2, metavar=("ENGINE", "NUMBER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.cell:
        engine, number = arguments.cell
        print(json.dumps(run_cell(engine, SIZES[int(number)], arguments)))
        return
    out: Path = arguments.out or result_file(RESULTS, str(resolve_device(arguments.device)))
    for number, size in enumerate(SIZES):
        for engine in arguments.engines:
            stored = _load(out)
            key = f"{size.name} | {engine}"
            if key in stored["cells"]:
                continue
            command = [sys.executable, "-m", "benchmarks.sizes", "--cell", engine, str(number)]
            command += ["--device", arguments.device, "--threads", str(arguments.threads)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{key} failed:\n{done.stderr}")
            stored["cells"][key] = json.loads(done.stdout.splitlines()[-1])
            beside = out.with_suffix(".writing")
            beside.write_text(json.dumps(stored, indent=1) + "\n")
            beside.replace(out)
            cell = stored["cells"][key]
            print(f"{key}: {cell['cpu_seconds']:.0f} s, {cell['peak_bytes'] / 2**20:,.0f} MiB", flush=True)


def run_cell(engine: str, size: Size, arguments: argparse.Namespace) -> dict[str, Any]:
    """Train one engine on one size in this process."""
    torch.set_num_threads(arguments.threads)
    device = resolve_device(arguments.device)
    with tempfile.TemporaryDirectory() as folder:
        images, truth = write_images(size, Path(folder) / "images.npy")
        given = make_noise("sym_excl", truth, WRONG, 0, num_classes=size.classes).labels.astype(np.int64)
        data = TrainingData(images=images, given_labels=given, num_classes=size.classes)
        spec = ENGINES[engine]
        network = "umn_mlp" if engine == "umn" and size.network == "mlp" else size.network
        config = dataclasses.replace(
            spec.config_type.preset("quick"), epochs=EPOCHS, network=network, views=1, **_short(engine)
        )
        before = peak_memory_bytes(device)
        wall, cpu = time.monotonic(), time.process_time()
        result = spec.train(data, config, seed=0, device=str(device))
        return {
            "peak_bytes": peak_memory_bytes(device),
            "peak_bytes_before": before,
            "image_bytes": images.nbytes,
            "seconds": time.monotonic() - wall,
            "cpu_seconds": time.process_time() - cpu,
            "auroc": float(auroc(given != truth, -result.trust_score)),
            "device": describe_device(device),
            "threads": arguments.threads,
            "load_average": os.getloadavg(),
            "versions": versions(),
        }


def _short(engine: str) -> dict[str, Any]:
    """What must follow the number of epochs; Co-teaching's own schedule, because a search is many trainings."""
    if engine == "coteaching":
        return {"noise_rate": WRONG, "rank_epochs": 1}
    return {"warmup_epochs": 1} if engine in ("l2b", "choicenet") else {}


def write_images(size: Size, path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """A memory map of (N, C, H, W) images and their true classes (N,), written in chunks."""
    draw = np.random.default_rng(0)
    shape = (size.channels, size.side, size.side)
    truth = np.arange(size.samples, dtype=np.int64) % size.classes
    pictures = draw.integers(0, 256, (size.classes, *shape), dtype=np.uint8)
    images = np.lib.format.open_memmap(path, "w+", np.uint8, (size.samples, *shape))
    for start in range(0, size.samples, CHUNK):
        rows = truth[start : start + CHUNK]
        noise = draw.integers(0, 128, (len(rows), *shape), dtype=np.uint8)
        images[start : start + CHUNK] = pictures[rows] // 2 + noise
    images.flush()
    del images
    mapped: NDArray[np.uint8] = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped, truth


def _load(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"command": "python -m benchmarks.sizes", "epochs": EPOCHS, "cells": {}}
    stored: dict[str, Any] = json.loads(path.read_text())
    return stored


if __name__ == "__main__":
    main()
