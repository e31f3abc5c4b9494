"""What an audit's estimate says of each engine, and what came: on images and on features, few rows and many.

    python -m benchmarks.estimates                              # every case
    python -m benchmarks.estimates --cases features_4000_64   # one of them

Said is what ``engine_bridge.estimated_seconds`` answers before a training, by its probe; came is the training.
Both are CPU seconds of one thread, because others may use the machine: what counts is what the work takes, not who
waits. What only a wall clock sees (starting processes, engines that share the memory) is in
``benchmarks.speed_goals``. What rows hold changes nothing about their time. One row a case and engine in
``benchmarks/results/estimates.json``; the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from auditor.bridges import engine_bridge
from benchmarks.import_speed import device
from engines.contract import TrainingData
from engines.registry import ENGINES
from engines.shared import work
from engines.shared.device import versions

RESULTS = Path(__file__).resolve().parent / "results" / "estimates.json"
CASES = {
    "features_500_64": (500, (64,)),
    "features_4000_64": (4_000, (64,)),
    "features_25000_64": (25_000, (64,)),
    "images_500_28": (500, (1, 28, 28)),
    "images_300_64": (300, (3, 64, 64)),
    "images_1000_32": (1_000, (3, 32, 32)),
    "images_300_224": (300, (3, 224, 224)),
}
"""Rows, and (D,) or (C, H, W) of one."""
CLASSES = 10
GOAL = 1.5


def main() -> None:
    """Measure every missing case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--engines", nargs="+", default=list(engine_bridge.ENGINE_ORDER))
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    work.clock = time.process_time
    for case in arguments.cases:
        for engine in arguments.engines:
            stored = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
            key = f"{case}, {engine}"
            is_image = len(CASES[case][1]) > 1
            if key in stored or (is_image and engine_bridge.needs_features(engine)):
                continue
            stored[key] = row = measured(engine, *CASES[case])
            arguments.out.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
            print(f"{key}: said {row['said_s']:.1f}, came {row['came_s']:.1f} CPU s", flush=True)


def measured(engine: str, num_rows: int, shape: tuple[int, ...]) -> dict[str, Any]:
    """Ask for an estimate, then train."""
    is_head = len(shape) == 1
    draw = np.random.default_rng(0)
    labels = draw.integers(0, CLASSES, num_rows)
    if is_head:
        # Classes that can be told apart, as a backbone's are: a pair of networks that guess learn nothing.
        middle = draw.normal(size=(CLASSES, *shape)).astype(np.float32)
        features = (middle[labels] + draw.normal(size=(num_rows, *shape))).astype(np.float32)[:, None]
        data = TrainingData(None, labels, CLASSES, features=features)
    else:
        images = draw.integers(0, 256, (num_rows, *shape), dtype=np.uint8)
        data = TrainingData(images, labels, CLASSES)
    planned = engine_bridge.configs([engine], "quick", {}, on_features=is_head)
    before = time.process_time()
    said = engine_bridge.estimated_seconds(
        planned,
        (3, 32, 32) if is_head else (shape[0], shape[1], shape[2]),
        num_rows,
        CLASSES,
        device="cpu",
        on_features=[engine] if is_head else [],
        num_features=shape[0] if is_head else None,
    )[engine]
    probed = time.process_time() - before
    spec = ENGINES[engine]
    began = time.process_time()
    spec.train(data, spec.config_type(**planned[engine]), seed=0, device="cpu")
    came = time.process_time() - began
    return {
        "rows": num_rows,
        "shape": list(shape),
        "said_s": round(said, 2),
        "came_s": round(came, 2),
        "came_over_said": round(came / said, 3),
        "probe_s": round(probed, 2),
        "is_within_goal": bool(1 / GOAL <= came / said <= GOAL),
        "load": round(os.getloadavg()[0], 1),
        "device": device(),
        "versions": versions(),
    }


if __name__ == "__main__":
    main()
