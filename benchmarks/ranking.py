"""The pool on published probabilities of strong networks: AUROC, flags, suggestions, guess against truth.

    python -m benchmarks.ranking

Five networks were fine-tuned on CIFAR-10N by others, and their probabilities out of fold published: what a user's
own model brings. The pool on features is in ``benchmarks.backbones``. Known truth measures.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.statistics import combine, witness_from_probabilities
from benchmarks import images
from benchmarks.backbones import commit
from benchmarks.metrics import auroc, average_precision

RESULTS = Path(__file__).resolve().parent / "results" / "ranking.json"
NETWORKS = ("resnet18", "efficientnet_b1", "resnet50d", "twins_pcpvt_base", "swin_base_patch4_window7_224")
PUBLISHED = {"ResNet-18": NETWORKS[:1], "Swin-B": NETWORKS[4:], "five networks": NETWORKS}


def main() -> None:
    """Measure every set and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    notes = json.loads(arguments.out.read_text())["notes"] if arguments.out.exists() else []
    _, table = images.load("cifar10-train")
    given, truth = (table[name].to_numpy(dtype=np.int64) for name in ("label_aggre", "label"))
    found: dict[str, Any] = {"commit": commit(), "notes": notes, "rows": {}}
    with np.load(images.folder() / "cifar10-aggre-pred-probs.npz") as kept:
        arrays = {name: kept[name].astype(np.float32) for name in NETWORKS}
    for title, names in PUBLISHED.items():
        for rows in (300, 3_000, 50_000):
            probs = {name: arrays[name][:rows] / arrays[name][:rows].sum(1, keepdims=True) for name in names}
            found["rows"][f"{title}, {rows:,}"] = measured(probs, given[:rows], truth[:rows])
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    arguments.out.with_suffix(".md").write_text(page(found))


def measured(
    probs: Mapping[str, NDArray[np.float32]], given: NDArray[np.int64], truth: NDArray[np.int64]
) -> dict[str, Any]:
    """What the pool finds, beside the mean rank of the same witnesses."""
    witnesses = [witness_from_probabilities(one, given, name=name) for name, one in probs.items()]
    found = combine(witnesses, given, int(max(given.max(), truth.max())) + 1)
    wrong, flagged, rate = given != truth, found.calibrated.is_label_issue, found.guess
    trust = found.reading.trust_score
    mean = np.mean([np.argsort(np.argsort(one.trust_score)) for one in witnesses], axis=0)
    return {
        "rows": len(given),
        "wrong": int(wrong.sum()),
        "auroc": round(float(auroc(wrong, -trust)), 4),
        "ap": round(float(average_precision(wrong, -trust)), 4),
        "equal auroc": round(float(auroc(wrong, -mean)), 4),
        "equal ap": round(float(average_precision(wrong, -mean)), 4),
        "flags": int(flagged.sum()),
        "flags right": int((flagged & wrong).sum()),
        "suggestions right": round(float((found.reading.other_label == truth)[wrong].mean()), 4),
        "guess": [round(one, 4) for one in (rate.low, rate.point, rate.high)],
        "truth": round(float(wrong.mean()), 4),
        "weights": {name: round(weight, 3) for name, weight in found.weights.items()},
    }


def page(stored: Mapping[str, Any]) -> str:
    """The figures as a page."""
    lines = [
        "# The pool of published networks",
        "",
        "AUROC / average precision for the wrong labels that people gave to CIFAR-10 (CIFAR-10N aggre), by the "
        "pool and by the mean rank of the same witnesses. Flags: labels more likely wrong than right, and how many "
        "of them are wrong. Suggestions: the share of wrong labels whose suggestion is the true class. No row is "
        f"verified. Probabilities: published, out of fold. Commit `{stored['commit']}`. What audits find on "
        "features is on [its own page](backbones.md).",
        "",
        "| network, rows | wrong | pool | mean rank | flags, right | suggestions | guess (truth) |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in stored["rows"].items():
        low, point, high = row["guess"]
        lines.append(
            f"| {name} | {row['wrong']:,} | {row['auroc']:.3f} / {row['ap']:.3f} | "
            f"{row['equal auroc']:.3f} / {row['equal ap']:.3f} | "
            f"{row['flags']:,}, {row['flags right']:,} | {row['suggestions right']:.2f} | "
            f"{point:.3f}, {low:.3f} to {high:.3f} ({row['truth']:.3f}) |"
        )
    lines += ["", "## What was tried on real features", ""]
    for note in stored["notes"]:
        lines += [note, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
