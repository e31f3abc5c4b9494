"""How much of Co-teaching's time its search takes: at most a third is the goal.

    python -m benchmarks.search_share

Under ``quick``, on images of CIFAR-10 with human labels and on features. Time is CPU seconds of this process, one
thread, from the call of the engine on: a short training before has loaded what is loaded once (the training library
counts as neither search nor training). The search ends with its last epoch and includes its warm-up and what judges
its trials; reading the data counts as search too. The median of three runs each, all of them beside it, in
``benchmarks/results/search_share.json``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import images
from benchmarks.import_speed import device
from engines.contract import EpochRecord, TrainingData
from engines.coteaching.config import CoteachingConfig
from engines.registry import ENGINES
from engines.shared.device import versions

RESULTS = Path(__file__).resolve().parent / "results" / "search_share.json"
CASES = {
    "features_1000": (1_000, True),
    "features_2000": (2_000, True),
    "images_500": (500, False),
    "features_25000": (25_000, True),
}
"""Rows, and whether they are features (512 values, four views) or images of 32 px."""
RUNS = 3
GOAL = 1 / 3
SEARCHES = ("warmup", "search")


def main() -> None:
    """Measure every missing case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for case in arguments.cases:
        stored = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
        if case in stored:
            continue
        stored[case] = row = measured(*CASES[case])
        arguments.out.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
        print(f"{case}: {row['share']:.3f} of {row['cpu_seconds']:.1f} CPU s", flush=True)


def measured(num_rows: int, on_features: bool) -> dict[str, Any]:
    """Train once in small, then three times."""
    data, config = _data(num_rows, on_features), replace(CoteachingConfig.preset("quick"), folds=1)
    if on_features:
        config = config.for_features()
    _train(_data(200, on_features), config)
    runs = [_train(data, config) for _ in range(RUNS)]
    return {
        "share": statistics.median(one["search"] / one["whole"] for one in runs),
        "cpu_seconds": statistics.median(one["whole"] for one in runs),
        "runs": runs,
        "rows": num_rows,
        "goal": GOAL,
        "device": device(),
        "versions": versions(),
    }


def _train(data: TrainingData, config: CoteachingConfig) -> dict[str, float]:
    """CPU seconds of the search and of the whole training."""
    began, search = time.process_time(), 0.0

    def heard(record: EpochRecord) -> None:
        nonlocal search
        if record.stage in SEARCHES:
            search = time.process_time() - began

    ENGINES["coteaching"].train(data, config, seed=0, device="cpu", on_epoch=heard)
    return {"search": search, "whole": time.process_time() - began}


def _data(num_rows: int, on_features: bool) -> TrainingData:
    if not on_features:
        pixels, table = images.load("cifar10-train", rows=num_rows)
        return TrainingData(pixels, table["label_aggre"].to_numpy(dtype=np.int64), 10)
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 10, num_rows)
    # Classes that can be told apart, as a backbone's are: networks that guess learn nothing.
    middle = draw.normal(size=(10, 512)).astype(np.float32)
    features = middle[labels][:, None] + draw.normal(size=(num_rows, 4, 512)).astype(np.float32)
    return TrainingData(None, labels, 10, features=features.astype(np.float16))


if __name__ == "__main__":
    main()
