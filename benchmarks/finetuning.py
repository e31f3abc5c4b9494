"""What a plain network that trains the backbone further adds to the engines on its features.

    python -m benchmarks.finetuning            # on a CPU eleven minutes of one core a set

3,000 rows of ``benchmarks.backbones`` on EfficientNet-lite0, seed 0. The backbone is trained at 96 px for ten
epochs, as ``--finetune plain`` does: two networks judge the half of the labels that they did not see. Scores of the
consensus without and with it, and of the network alone. Finished sets are kept in ``results/finetuning.json``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from auditor.backbones import weights
from auditor.statistics import Witness, combine
from benchmarks import backbones, images
from benchmarks.backbones import FIRST_ROW, LITE0, METHODS, Run, Task, scored
from engines.contract import TrainingData
from engines.cross_entropy.training import CrossEntropyConfig, train

RESULTS = Path(__file__).resolve().parent / "results" / "finetuning.json"
SETS, ROWS, SIDE, VIEWS = ("aggre", "asym40"), 3_000, 96, 2


def main() -> None:
    """Measure every missing set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    stored = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    for name in SETS:
        if name not in stored:
            stored[name] = measured(Run(name, ROWS, 0, "lite0"), arguments.device)
            arguments.out.write_text(json.dumps(stored, indent=1) + "\n")
            print(name, stored[name], flush=True)


def measured(run: Run, device: str) -> dict[str, Any]:
    """AUROC and average precision of one set, and the CPU seconds of the network."""
    task = backbones.task_of(run)
    if not backbones.has_run(run):
        for engine in backbones.ENGINES:
            METHODS[engine](task)
    others = backbones.kept_witnesses(run)
    began = time.process_time()
    further = trained_further(task, device)
    seconds = time.process_time() - began
    in_place = [one for one in others if one.name != "cross_entropy"]
    said = {"consensus": others, "through T": [further], "consensus with it": [*in_place, further]}
    found: dict[str, Any] = {"alone": scored(task, further.trust_score)}
    for name, witnesses in said.items():
        pooled = combine(witnesses, task.given, task.num_classes)
        found[name] = scored(task, pooled.reading.trust_score)
        found[f"weights, {name}"] = {one: round(weight, 2) for one, weight in pooled.weights.items()}
    right = float((further.pred_probs.argmax(axis=1) == task.truth).mean())
    return found | {
        "accuracy": round(right, 4),
        "cpu_seconds": round(seconds, 1),
        "commit": backbones.commit(),
        "device": backbones.device()["cpu"] if device == "cpu" else device,
    }


def trained_further(task: Task, device: str) -> Witness:
    """What the plain engine says that trains the backbone on the images of a run."""
    pixels, _ = images.load("cifar10-train")
    own = weights.find(LITE0, None)
    config = CrossEntropyConfig.preset("quick").for_finetuning(LITE0, str(own.path), SIDE)
    first = FIRST_ROW + task.run.seed * task.run.rows
    shown = np.ascontiguousarray(pixels[first : first + task.run.rows])
    data = TrainingData(shown, task.given, task.num_classes)
    result = train(data, dataclasses.replace(config, views=VIEWS), seed=task.run.seed, device=device)
    return Witness("finetuned", result.trust_score, result.pred_probs, result.is_out_of_sample)


if __name__ == "__main__":
    main()
