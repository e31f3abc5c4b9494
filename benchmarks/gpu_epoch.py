"""Seconds an epoch and peak memory of every engine on 50,000 images of 32 px, in float32 and bfloat16.

    python -m benchmarks.gpu_epoch                                              # on a machine with a GPU
    python -m benchmarks.gpu_epoch --rows 512 --device cpu --out /tmp/gpu.json  # that it runs at all

Images and labels are random (the figures are about speed, not skill), so torch and NumPy are all it needs. A run
has ``--epochs`` epochs after a first one that warms the device up and is not counted; the final passes are in the
time of the whole run only. UMN trains its two rotations side by side. Finished cells are kept in
``benchmarks/results/gpu_epoch.json``, so that the command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engines.contract import TrainingData
from engines.registry import ENGINES
from engines.shared.device import describe_device, fresh_memory, peak_memory_bytes, resolve_device, versions

RESULTS = Path(__file__).resolve().parent / "results" / "gpu_epoch.json"
CLASSES = 10
PRECISIONS = ("float32", "bfloat16")
BY_ENGINE: dict[str, dict[str, Any]] = {
    "coteaching": {"noise_rate": 0.2},
    "l2b": {"warmup_epochs": 1},
    "choicenet": {"warmup_epochs": 1},
}
"""What makes every epoch but the first an ordinary one: no search, and a warm-up of one epoch."""


def main() -> None:
    """Run every missing cell."""
    options = _options()
    device = resolve_device(options.device)
    data = random_images(options.rows)
    for engine in options.engines:
        for precision in options.precisions:
            setting = f"{options.network}|{options.rows}|{options.batch_size}"
            key = f"{engine}|{precision}|{setting}|{describe_device(device)}"
            if key in _cells(options.out):
                continue
            cell = measure(engine, precision, data, options, device)
            _keep(options.out, key, cell)
            print(f"{key}: {cell['seconds_an_epoch']:.2f} s, {cell['peak_memory_mb']:.0f} MB", flush=True)


def random_images(rows: int) -> TrainingData:
    """``rows`` random images of 32 px and random labels; those that engines may trust, no one has confirmed."""
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (rows, 3, 32, 32), dtype=np.uint8)
    return TrainingData(images, generator.integers(0, CLASSES, rows), CLASSES)


def measure(
    engine: str, precision: str, data: TrainingData, options: argparse.Namespace, device: torch.device
) -> dict[str, Any]:
    """One run: the mean of its epochs but the first. On the CPU the peak is the whole process's so far."""
    spec = ENGINES[engine]
    config = dataclasses.replace(
        spec.config_type.preset("standard"),
        epochs=options.epochs + 1,
        batch_size=options.batch_size,
        network=options.network,
        precision=precision,
        **BY_ENGINE.get(engine, {}),
    )
    fresh_memory(device)
    result = spec.train(data, config, seed=0, device=str(device))
    epochs = [record.seconds for record in result.history if record.stage == "train"][1:]
    return {
        "seconds_an_epoch": float(np.mean(epochs)),
        "seconds": epochs,
        "seconds_of_the_whole_run": result.provenance.seconds,
        "peak_memory_mb": peak_memory_bytes(device) / 1e6,
        "config": config.as_dict(),
        "device": describe_device(device),
        "versions": versions(),
    }


def _cells(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())["cells"]) if path.exists() else {}


def _keep(path: Path, key: str, cell: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = {"command": "python -m benchmarks.gpu_epoch", "cells": {**_cells(path), key: cell}}
    beside = path.with_suffix(".writing")
    beside.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
    beside.replace(path)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=2, help="counted ones, after one that is not")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--network", default="preact_resnet18")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    parser.add_argument("--precisions", nargs="+", default=list(PRECISIONS), choices=PRECISIONS)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
