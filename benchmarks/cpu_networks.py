"""What a network costs on a CPU, and what it finds: several networks, engines and precisions side by side.

    python -m benchmarks.cpu_networks --sides 32 96 --networks conv3 conv4 torchvision:resnet18
    python -m benchmarks.cpu_networks --networks auto --precisions float32 bfloat16 --engines cross_entropy l2b

2,000 images of CIFAR-10N with one annotator's labels (random1), enlarged where a side above 32 px is asked for:
they then hold no more detail, so this says what large images cost and that a network can take them, not how well
fine detail is seen. Finished rows are kept in ``benchmarks/results/cpu_networks.json``; the same command goes on.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from benchmarks import images
from benchmarks.metrics import auroc, average_precision
from engines.contract import TrainingData
from engines.registry import ENGINES
from engines.shared.device import computes_in_bfloat16, describe_device, resolve_device, versions

RESULTS = Path(__file__).resolve().parent / "results" / "cpu_networks.json"


def main() -> None:
    """Train every missing combination and keep its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--sides", type=int, nargs="+", default=[32, 96])
    parser.add_argument("--networks", nargs="+", default=["conv3", "conv4", "torchvision:resnet18"])
    parser.add_argument("--engines", nargs="+", default=["cross_entropy"])
    parser.add_argument("--precisions", nargs="+", default=["float32"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    pixels, table = images.load("cifar10-train", rows=arguments.rows, seed=0)
    given, true = (table[name].to_numpy(dtype=np.int64) for name in ("label_random1", "label"))
    for side in arguments.sides:
        data = TrainingData(images=enlarged(pixels, side), given_labels=given, num_classes=10)
        choices = itertools.product(arguments.networks, arguments.engines, arguments.precisions)
        for network, engine, precision in choices:
            key = f"{arguments.rows} rows, {side} px, {network}, {arguments.epochs} epochs"
            key += "" if engine == "cross_entropy" else f", {engine}"
            key += "" if precision == "float32" else f", {precision}"
            stored = json.loads(arguments.out.read_text()) if arguments.out.exists() else {"rows": {}}
            if key not in stored["rows"]:
                changes = {
                    "network": network,
                    "epochs": arguments.epochs,
                    "precision": precision,
                    "side": side,
                }
                stored["rows"][key] = row = measured(data, engine, changes, given != true)
                arguments.out.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
                print(key, f"AUROC {row['auroc']:.3f}, {row['cpu_seconds']:.0f} CPU s", flush=True)


def enlarged(pixels: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """(N, C, H, W) uint8 -> (N, C, side, side) uint8, bicubic."""
    if side == pixels.shape[-1]:
        return pixels
    large = F.interpolate(torch.from_numpy(pixels).float(), size=(side, side), mode="bicubic")
    return large.round().clamp(0, 255).to(torch.uint8).numpy()


def measured(
    data: TrainingData, engine: str, changes: dict[str, Any], wrong: NDArray[np.bool_]
) -> dict[str, Any]:
    """One training on one thread of the CPU, ``quick`` with ``changes``."""
    spec = ENGINES[engine]
    config = dataclasses.replace(spec.config_type.preset("quick"), batch_size=64, **changes)
    began, cpu = time.monotonic(), time.process_time()
    result = spec.train(data, config, seed=0, device="cpu")
    return {
        "seconds": time.monotonic() - began,
        "cpu_seconds": time.process_time() - cpu,
        "auroc": float(auroc(wrong, -result.trust_score)),
        "ap": float(average_precision(wrong, -result.trust_score)),
        "computes_in_bfloat16": computes_in_bfloat16(resolve_device("cpu")),
        "device": describe_device(resolve_device("cpu")),
        "versions": versions(),
        "config": config.as_dict(),
    }


if __name__ == "__main__":
    main()
