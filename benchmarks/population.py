"""Is training a population stacked faster than one network after the other? Prints and keeps the ratio.

    python -m benchmarks.population --networks mlp:16 mlp:256 conv3:24 --sizes 2 8 16 --steps 30

Both forms run in turns, the best of three counts, so that other work on the machine hurts both alike. CUDA
is measured as well where there is one. Results: ``benchmarks/results/population.json``, one row a device,
network and size, beside device and versions; ``engines.coteaching.population.is_stacking_faster`` follows them.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from engines.coteaching.population import Population
from engines.networks.small import build_network
from engines.shared.device import describe_device, versions
from engines.shared.selection import small_loss_mask

RESULTS = Path(__file__).resolve().parent / "results" / "population.json"
BATCH, CLASSES = 128, 10


def time_steps(population: Population, images: torch.Tensor, labels: torch.Tensor, steps: int) -> float:
    """Seconds a Co-teaching step of the whole population takes on one batch (P even)."""
    optimizer = torch.optim.Adam(population.parameters(), lr=1e-3, fused=True)
    counts = torch.full((population.size,), int(0.7 * BATCH), device=images.device)
    partner = torch.arange(population.size, device=images.device) ^ 1

    def step() -> None:
        _, logits = population(images)
        flat = F.cross_entropy(logits.flatten(0, 1), labels.repeat(population.size), reduction="none")
        losses = flat.view(population.size, -1)
        mask = small_loss_mask(losses.detach(), counts)[partner]
        optimizer.zero_grad(set_to_none=True)
        ((losses * mask).sum(dim=1) / counts).sum().backward()
        optimizer.step()

    for _ in range(3):
        step()
    if images.is_cuda:
        torch.cuda.synchronize()
    start = time.perf_counter() if images.is_cuda else time.process_time()
    for _ in range(steps):
        step()
    if images.is_cuda:
        torch.cuda.synchronize()
    return ((time.perf_counter() if images.is_cuda else time.process_time()) - start) / steps


def measure(
    network: str, size: int, device: torch.device, *, channels: int, side: int, steps: int
) -> dict[str, Any]:
    """One row: seconds a step of both forms and their ratio."""
    name, _, width = network.partition(":")
    torch.manual_seed(0)
    options: dict[str, Any] = {"channels": channels, "image_size": (side, side), "num_classes": CLASSES}
    networks = [build_network(name, width=int(width) if width else None, **options) for _ in range(size)]
    images = torch.randn(BATCH, channels, side, side, device=device)
    labels = torch.randint(0, CLASSES, (BATCH,), device=device)
    best = {True: float("inf"), False: float("inf")}
    for _ in range(3):
        for stacked in (True, False):
            copies = [copy.deepcopy(one).to(device) for one in networks]
            population = Population(copies, stacked=stacked)
            best[stacked] = min(best[stacked], time_steps(population, images, labels, steps))
    return {
        "network": network,
        "networks": size,
        "image": [channels, side, side],
        "weights_each": sum(p.numel() for p in networks[0].parameters()),
        "stacked_ms": round(1e3 * best[True], 3),
        "one_by_one_ms": round(1e3 * best[False], 3),
        "times_faster": round(best[False] / best[True], 3),
    }


def main() -> None:
    """Measure what the command line names and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--networks", nargs="+", default=["mlp:16", "mlp:64", "mlp:256", "conv3:8", "conv3:24"]
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[2, 8, 16])
    parser.add_argument("--channels", type=int, default=1)
    parser.add_argument("--side", type=int, default=28)
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    devices = [torch.device("cpu"), *([torch.device("cuda")] if torch.cuda.is_available() else [])]
    runs: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for device in devices:
        rows = []
        for network in arguments.networks:
            for size in arguments.sizes:
                rows.append(
                    measure(
                        network,
                        size,
                        device,
                        channels=arguments.channels,
                        side=arguments.side,
                        steps=arguments.steps,
                    )
                )
                print(device, rows[-1], flush=True)
        runs[describe_device(device)] = {
            "versions": versions(),
            "threads": torch.get_num_threads(),
            "batch": BATCH,
            "clock": "wall" if device.type == "cuda" else "processor time, best of three",
            "rows": rows,
        }
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(runs, indent=1) + "\n")


if __name__ == "__main__":
    main()
