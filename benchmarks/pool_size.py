"""Peak memory and seconds of the pool: up to ten million labels, and a thousand classes.

    python -m benchmarks.pool_size

Three witnesses lie on disk as memory maps, as an audit leaves them; a tenth of the labels is wrong. Each size is
pooled (``combine``) in a process of its own. Counted is the memory that a process cannot give back (``RssAnon``);
pages of the maps are the system's. Figures go to ``results/pool_size.json``; sizes that are there are not repeated.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from auditor.statistics import combine, witness_from_probabilities
from auditor.statistics.rates import row_chunks
from benchmarks.backbones import commit
from benchmarks.import_speed import device
from benchmarks.metrics import auroc

RESULTS = Path(__file__).resolve().parent / "results" / "pool_size.json"
SIZES = ((100_000, 10), (1_000_000, 10), (3_000_000, 10), (10_000_000, 10), (100_000, 1_000))
"""Labels and classes."""
SKILLS = (3.0, 2.0, 1.0)
"""Added to the score of the true class, one a witness."""
WRONG = 0.1


def main() -> None:
    """Measure each size in its own process, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--one", type=Path, help="pool what lies in this folder")
    given = parser.parse_args()
    if given.one is not None:
        print(json.dumps(pooled(given.one)))
        return
    known = json.loads(given.out.read_text()) if given.out.exists() else {}
    rows = known.get("sizes", [])
    for num, num_classes in SIZES:
        if any((row["labels"], row["classes"]) == (num, num_classes) for row in rows):
            continue
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder), num, num_classes)
            command = [sys.executable, "-m", "benchmarks.pool_size", "--one", folder]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            rows.append({"labels": num, "classes": num_classes} | json.loads(said.splitlines()[-1]))
            print(rows[-1], flush=True)
        write(given.out, rows)


def write(out: Path, rows: list[dict[str, Any]]) -> None:
    """Keep what was measured, and on what."""
    versions = {name: version(name) for name in ("numpy", "scipy")}
    found = {"commit": commit(), "device": device(), "versions": versions, "witnesses": len(SKILLS)}
    out.write_text(json.dumps(found | {"sizes": rows}, indent=1) + "\n")


def make(folder: Path, num: int, num_classes: int) -> None:
    """Write the labels and what the witnesses say of them."""
    random = np.random.default_rng([num, num_classes])
    truth = random.integers(num_classes, size=num)
    labels = np.where(random.random(num) < WRONG, random.integers(num_classes, size=num), truth)
    np.savez(folder / "labels.npz", truth=truth, given=labels)
    for place, skill in enumerate(SKILLS):
        shape = (num, num_classes)
        probs = np.lib.format.open_memmap(folder / f"{place}.npy", mode="w+", dtype=np.float32, shape=shape)
        for rows in row_chunks(num, num_classes):
            scores = random.standard_normal((rows.stop - rows.start, num_classes), dtype=np.float32)
            at = np.arange(len(scores)), truth[rows]
            scores[at] += skill + np.log(num_classes / 10)  # as hard to see among many classes
            np.exp(scores, out=scores)
            probs[rows] = scores / scores.sum(axis=1, keepdims=True)


def pooled(folder: Path) -> dict[str, Any]:
    """Combine what lies in the folder, watched."""
    with np.load(folder / "labels.npz") as kept:
        truth, labels = kept["truth"], kept["given"]
    maps = [np.load(folder / f"{place}.npy", mmap_mode="r") for place in range(len(SKILLS))]
    watched, ended = [_anonymous_mb()], threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            watched.append(_anonymous_mb())

    threading.Thread(target=watch, daemon=True).start()
    began, worked = time.perf_counter(), time.process_time()
    witnesses = [witness_from_probabilities(one, labels, name=str(place)) for place, one in enumerate(maps)]
    found = combine(witnesses, labels, maps[0].shape[1])
    seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    ended.set()
    wrong = labels != truth
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "before_mb": watched[0],
        "peak_mb": max(watched),
        "predictions_mb": round(sum(one.nbytes for one in maps) / 2**20),
        "auroc": round(float(auroc(wrong, -found.reading.trust_score)), 4),
        "guess": round(found.guess.point, 4),
        "wrong": round(float(wrong.mean()), 4),
    }


def _anonymous_mb() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) // 1024


if __name__ == "__main__":
    main()
