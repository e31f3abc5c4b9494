"""What the preset ``quick`` costs: 2,000 images of 28 px on this machine, one engine after the other.

    python -m benchmarks.quick_preset --threads 2

Symmetric noise of 20 % is planted so that the figure comes with what the money bought. Writes
``benchmarks/results/quick_preset.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks import images
from benchmarks.metrics import auroc
from benchmarks.noise import make_noise
from engines.contract import TrainingData
from engines.registry import ENGINES
from engines.shared.device import describe_device, fresh_memory, peak_memory_bytes, resolve_device, versions

RESULTS = Path(__file__).resolve().parent / "results" / "quick_preset.json"
ROWS = 2_000
RATE = 0.2


def main() -> None:
    """Time every engine and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    pixels, table = images.load("mnist-train", rows=ROWS, seed=0)
    truth = table["label"].to_numpy(dtype=np.int64)
    given = make_noise("sym_excl", truth, RATE, 0, num_classes=10).labels.astype(np.int64)
    data = TrainingData(images=pixels, given_labels=given, num_classes=10)
    device = resolve_device(arguments.device)
    rows = []
    for name in arguments.engines:
        spec = ENGINES[name]
        fresh_memory(device)
        wall, cpu = time.monotonic(), time.process_time()
        result = spec.train(data, spec.config_type.preset("quick"), seed=0, device=str(device))
        row = {
            "engine": name,
            "seconds": time.monotonic() - wall,
            "cpu_seconds": time.process_time() - cpu,
            "auroc": float(auroc(given != truth, -result.trust_score)),
            "peak_memory_bytes": peak_memory_bytes(device),
        }
        rows.append(row)
        print(row, flush=True)
    record = {
        "command": "python -m benchmarks.quick_preset",
        "images": f"{ROWS} of MNIST, 28 px, symmetric noise {RATE}, seed 0",
        "device": describe_device(device),
        "threads": arguments.threads,
        "processors": os.cpu_count(),
        "load_average": os.getloadavg(),
        "versions": versions(),
        "rows": rows,
    }
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
