"""Segmentation under mask noise (L2B, Table 5) and wrong masks found, on real masks with planted noise.

    python -m benchmarks.papers.masks --scale cpu

The sets are membranes (30 slices, 2 classes) and street scenes (235 images, 11 classes). A share of the masks of
the training images is made wrong: turned, eroded, dilated, or one object's class swapped for another. Shown: Dice
of each method on held-out images with right masks, and the AUROC of several scores of an image for the masks that
were made wrong, an audit's among them, beside cleanlab's ``segmentation.rank`` on the same probabilities. Goes on
where it was stopped.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from cleanlab.segmentation.rank import get_label_quality_scores
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from auditor.backbones import weights
from auditor.labels.masks import pixels
from auditor.labels.masks.judging import judge
from auditor.pictures.masks import IGNORED, fit
from benchmarks import images
from benchmarks.backbones import LITE0
from benchmarks.metrics import auroc
from benchmarks.papers.l2b_masks import L2BMaskConfig
from benchmarks.papers.l2b_masks import train as l2b_train
from benchmarks.papers.scale import parse_scaled
from engines.contract import MaskData, TrainMasks
from engines.cross_entropy.masks import train as plain_train
from engines.segmentation.config import MaskConfig

RESULTS = Path(__file__).resolve().parent.parent / "results" / "masks.json"
TRUSTED = 6
"""Images whose masks stay right in every run; L2B may know which: about three in each half, as in the paper."""
KINDS = ("turned", "eroded", "dilated", "swapped")


SCALES: dict[str, dict[str, Any]] = {
    "smoke": {
        "side": 48, "epochs": {"membranes": 2, "camvid": 1}, "seeds": [0], "rates": [0.5], "rows": 24
    },
    "cpu": {},
    "gpu": {
        "side": 240, "epochs": {"membranes": 150, "camvid": 60}, "seeds": [0, 1, 2, 3, 4],
        "rates": [0.2, 0.4, 0.6, 0.8],
    },
}  # fmt: skip
HELD_OUT = {"membranes": 8, "camvid": 60}
AUDIT, SCRATCH = "head on a pretrained network", "U-Net from scratch"
RUNS = {
    AUDIT: ("head", False),
    SCRATCH: ("cross_entropy", False),
    "L2B, 6 trusted masks": ("l2b", True),
    "L2B, meta set by small loss": ("l2b", False),
}
"""The method of a run, and whether it knows which masks are trusted."""
METHODS: dict[str, tuple[type[MaskConfig], TrainMasks]] = {
    "head": (MaskConfig, plain_train),
    "cross_entropy": (MaskConfig, plain_train),
    "l2b": (L2BMaskConfig, l2b_train),
}
OWN = "an audit's order"
SCORES = {
    "mean trust": lambda trust, given, _: _mean(trust, given),
    "softmin of trust": lambda trust, given, _: pixels.softmin(trust[given != IGNORED]),
    "least class": lambda trust, given, _: _least_class(trust, given),
    "share of unchanged pixels": lambda _, given, probs: _unchanged(given, probs),
}
"""From the trust of pixels (H, W), the given mask and the probabilities (K, H, W) to one number an image."""
CLEANLAB = {"cleanlab softmin": "softmin", "cleanlab num_pixel_issues": "num_pixel_issues"}


@dataclass(frozen=True)
class MaskSet:
    """Images and right masks at one size."""

    images: NDArray[np.uint8]
    masks: NDArray[np.uint8]
    num_classes: int


def load(folder: Path, name: str, side: int, rows: int | None) -> MaskSet:
    """One of the two sets, letterboxed to ``side``."""
    table = pq.read_table(folder / f"{name}.parquet")
    about = table.schema.metadata
    num_classes = len(about[b"classes"].decode().split(","))
    images, masks = [], []
    for row in table.slice(0, rows).to_pylist():
        image = Image.open(io.BytesIO(row["image"]))
        mask = np.asarray(Image.open(io.BytesIO(row["mask"]))).astype(np.uint8)
        mask = np.where(mask < num_classes, mask, IGNORED).astype(np.uint8)
        square = Image.new(image.mode, (side, side))
        scale = side / max(image.size)
        inner = (round(image.width * scale), round(image.height * scale))
        at = ((side - inner[0]) // 2, (side - inner[1]) // 2)
        square.paste(image.resize(inner, Image.Resampling.BICUBIC), at)
        pixels_of = np.asarray(square)
        images.append(pixels_of[None] if pixels_of.ndim == 2 else pixels_of.transpose(2, 0, 1))
        masks.append(fit(mask, side))
    return MaskSet(np.stack(images), np.stack(masks), num_classes)


def plant(
    mask: NDArray[np.uint8], kind: str, num_classes: int, random: np.random.Generator
) -> NDArray[np.uint8]:
    """The mask made wrong in one way; pixels without a class stay so."""
    side = len(mask)
    known = mask != IGNORED
    if kind == "turned":
        angle = float(random.choice([-1, 1]) * random.uniform(15, 40))
        turned = ndimage.rotate(mask, angle, order=0, reshape=False, mode="constant", cval=IGNORED)
        return np.where(known & (turned != IGNORED), turned, mask)
    present = np.unique(mask[known])
    if kind == "swapped":
        return _swapped(mask, present, num_classes, random)
    one = int(random.choice(present))
    steps = max(1, round(side * random.uniform(0.02, 0.05)))
    if kind == "dilated":
        grown = ndimage.binary_dilation(mask == one, iterations=steps)
        return np.where(grown & known, one, mask).astype(np.uint8)
    # Eroded: what is lost goes to the nearest other class.
    kept = ndimage.binary_erosion(mask == one, iterations=steps, border_value=1)
    lost = (mask == one) & ~kept
    others = known & (mask != one)
    if not others.any():
        return mask
    nearest = ndimage.distance_transform_edt(~others, return_distances=False, return_indices=True)
    return np.where(lost, mask[tuple(nearest)], mask).astype(np.uint8)


def _swapped(
    mask: NDArray[np.uint8], present: NDArray[np.uint8], num_classes: int, random: np.random.Generator
) -> NDArray[np.uint8]:
    """One object (of at least half a percent of the image) gets another class."""
    objects = []
    for one in present.tolist():
        labeled, count = ndimage.label(mask == one)
        sizes = ndimage.sum_labels(np.ones_like(mask), labeled, range(1, count + 1))
        objects += [labeled == at + 1 for at, size in enumerate(sizes) if size >= 0.005 * mask.size]
    if not objects:
        return mask
    found = mask.copy()
    chosen = objects[int(random.integers(len(objects)))]
    others = [one for one in range(num_classes) if one != int(mask[chosen][0])]
    found[chosen] = random.choice(others)
    return found


def make_wrong(
    masks: NDArray[np.uint8], rate: float, num_classes: int, seed: int, kinds: Sequence[str] = KINDS
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(noisy masks, place in ``KINDS`` of what was done to each or -1); the ``kinds`` come in turn."""
    random = np.random.default_rng([seed, round(100 * rate)])
    noisy, done = masks.copy(), np.full(len(masks), -1)
    for turn, row in enumerate(random.permutation(len(masks))[: round(rate * len(masks))]):
        for more in range(len(kinds)):
            kind = kinds[(turn + more) % len(kinds)]
            changed = plant(masks[row], kind, num_classes, random)
            if (changed != masks[row]).any():
                noisy[row], done[row] = changed, KINDS.index(kind)
                break
    return noisy, done


def dice(predicted: NDArray[np.uint8], right: NDArray[np.uint8], num_classes: int) -> float:
    """Mean over the classes of the Dice coefficient over all images together."""
    known = right != IGNORED
    found = []
    for one in range(num_classes):
        mine, theirs = (predicted == one) & known, right == one
        if theirs.any():
            found.append(2 * int((mine & theirs).sum()) / (int(mine.sum()) + int(theirs.sum())))
    return mean(found)


def _mean(trust: NDArray[np.float32], given: NDArray[np.uint8]) -> float:
    return float(trust[given != IGNORED].astype(np.float64).mean())


def _least_class(trust: NDArray[np.float32], given: NDArray[np.uint8]) -> float:
    return min(float(trust[given == one].mean()) for one in np.unique(given[given != IGNORED]))


def _unchanged(given: NDArray[np.uint8], probs: NDArray[np.float32]) -> float:
    own = np.take_along_axis(probs, np.where(given == IGNORED, 0, given)[None].astype(np.int64), 0)[0]
    found = pixels.suggested_mask(given, probs.argmax(0).astype(np.uint8), probs.max(0), own)
    return float((found == given)[given != IGNORED].mean())


def measure(
    name: str,
    data: MaskSet,
    run: str,
    rate: float,
    seed: int,
    epochs: int,
    device: str,
    kinds: Sequence[str] = KINDS,
) -> dict[str, Any]:
    """One run: Dice on the held-out images, AUROC of every score for the masks that were made wrong."""
    engine, knows = RUNS[run]
    held = min(HELD_OUT[name], len(data.masks) // 3)
    num = len(data.masks) - held
    right = data.masks[:num]
    noisy, done = make_wrong(right, rate, data.num_classes, seed, kinds)
    trusted = np.zeros(len(data.masks), bool)
    trusted[np.random.default_rng([seed, 7]).permutation(num)[:TRUSTED]] = True
    noisy[trusted[:num]], done[trusted[:num]] = right[trusted[:num]], -1
    masks = np.concatenate([noisy, np.full_like(data.masks[num:], IGNORED)])
    side = data.images.shape[2]
    heard = np.zeros((len(data.masks), data.num_classes, side, side), np.float32)

    def listen(rows: NDArray[np.int64], probs: NDArray[np.float32]) -> None:
        heard[rows] = probs

    config_type, train = METHODS[engine]
    config = config_type(epochs=epochs, side=side, batch_size=4 if num < 60 else 8)
    if isinstance(config, L2BMaskConfig):
        config = replace(config, meta_source="trusted" if knows else "small_loss")
    if engine == "head":
        config = MaskConfig.preset("quick").for_finetuning(LITE0, str(weights.find(LITE0).path))
    start = time.process_time()
    train(
        MaskData(data.images, masks, data.num_classes, trusted=trusted if knows else None),
        config, seed=seed, device=device, on_probabilities=listen,
    )  # fmt: skip
    seconds = time.process_time() - start
    asked = np.flatnonzero(~trusted[:num])
    wrong = done[asked] >= 0
    predicted = heard.argmax(axis=1).astype(np.uint8)
    own = np.take_along_axis(heard, np.where(masks == IGNORED, 0, masks)[:, None].astype(np.int64), 1)[:, 0]
    trust = pixels.pixel_trust(own, heard.max(axis=1))
    found = {
        score: auroc(wrong, -np.array([rule(trust[row], noisy[row], heard[row]) for row in asked]))
        for score, rule in SCORES.items()
    }
    said = {
        "predicted": predicted[asked],
        "predicted_prob": heard.max(axis=1)[asked],
        "given_prob": own[asked],
    }
    judged = judge(noisy[asked], [said], data.num_classes)
    found[OWN] = auroc(wrong, -judged.order)
    is_suspect = judged.largest >= 0
    # cleanlab has no ignored pixels: what has no class is given the class that is predicted there, with certainty.
    filled = np.where(noisy[asked] == IGNORED, predicted[asked], noisy[asked]).astype(np.int64)
    probs = heard[asked].astype(np.float64)
    nowhere = (noisy[asked] == IGNORED)[:, None]
    certain = np.arange(data.num_classes)[None, :, None, None] == filled[:, None]
    probs = np.where(nowhere, certain, probs)
    for title, method in CLEANLAB.items():
        scores, _ = get_label_quality_scores(filled, probs, method=method, verbose=False, n_jobs=1)
        found[title] = auroc(wrong, -scores)
    return {
        "set": name, "run": run, "rate": rate, "kinds": " ".join(kinds), "seed": seed, "epochs": epochs,
        "side": side,
        "images": num, "wrong": int(wrong.sum()), "seconds": round(seconds, 1),
        "suspects": int(is_suspect.sum()), "suspects_wrong": int((is_suspect & wrong).sum()),
        "label_dice": dice(noisy[asked], right[asked], data.num_classes),
        "dice": dice(predicted[num:], data.masks[num:], data.num_classes),
        "auroc": found,
        "auroc_by_kind": _by_kind(done[asked], judged.order),
    }  # fmt: skip


def _by_kind(done: NDArray[np.int64], order: NDArray[np.float64]) -> dict[str, float]:
    """AUROC of an audit's order for the masks that one way made wrong, among them and the right ones."""
    found = {}
    for way, kind in enumerate(KINDS):
        kept = (done == way) | (done < 0)
        if (done == way).any():
            found[kind] = auroc(done[kept] == way, -order[kept])
    return found


def page(report: dict[str, Any]) -> str:
    """The results as a page of Markdown."""
    lines = [
        "# Masks: Dice under mask noise, and wrong masks found",
        "",
        "Written by `python -m benchmarks.papers.masks`. Planted: masks turned by 15 to 40 degrees, one class "
        "eroded or dilated by 2 to 5 % of the side, one object's class swapped. Each image is judged by a network "
        "trained on the other half; Dice (mean over classes) is of the second half's network on held-out images "
        "with right masks. The six masks that L2B may trust stay right and do not count in the Dice of the noisy "
        "ones. "
        f"{report['side']} px. An audit trains a small head on what EfficientNet-lite0 sees; the others are "
        "U-Nets with a ResNet-18 encoder from random weights. Mean ± deviation over seeds.",
        "",
        "## Dice on held-out images (L2B's Table 5 in small)",
        "",
        "The paper (PROMISE12, UNet++): label Dice .41: plain .598, L2B .777; label Dice .62: .737 and .808; label "
        "Dice .80: .800 and .820.",
        "",
        "| set | wrong masks | Dice of the noisy masks | " + " | ".join(RUNS) + " |",
        "| --- | --- | --- |" + " --- |" * len(RUNS),
    ]
    rows, columns = report["rows"], (OWN, *SCORES, *CLEANLAB)
    for name, level, here in levels(rows):
        cells = [_cell([row["dice"] for row in here if row["run"] == run]) for run in RUNS]
        label = _cell([row["label_dice"] for row in here if row["run"] == SCRATCH])
        lines.append(f"| {name} | {level} | {label} | " + " | ".join(cells) + " |")
    lines += [
        "", "## AUROC per image for the masks that were made wrong", "",
        "| set | wrong masks | run | " + " | ".join(columns) + " |",
        "| --- | --- | --- |" + " --- |" * len(columns),
    ]  # fmt: skip
    for name, level, here in levels(rows):
        for run in RUNS:
            of_run = [row for row in here if row["run"] == run]
            cells = [_cell([row["auroc"].get(score) for row in of_run]) for score in columns]
            if of_run:
                lines.append(f"| {name} | {level} | {run} | " + " | ".join(cells) + " |")
    for run in (AUDIT, SCRATCH):
        found = [row["auroc"] for row in rows if row["run"] == run]
        told = ", ".join(f"{score} {mean(one[score] for one in found):.3f}" for score in columns if found)
        lines += ["", f"Mean over the {len(found)} runs of the {run}: {told}."]
    lines += [
        "", "## Suspects", "",
        "An audit offers the masks with a region that is as likely wrong as right or more; who chooses the others "
        "from the list is led by its order.", "",
        "| set | wrong masks | run | images | wrong | suspects | of them wrong |", "| --- |" + " --- |" * 6,
    ]  # fmt: skip
    for name, level, here in levels(rows):
        for run in RUNS:
            of_run = [row for row in here if row["run"] == run and "suspects" in row]
            counts = [
                f"{sum(row[key] for row in of_run)}"
                for key in ("images", "wrong", "suspects", "suspects_wrong")
            ]
            if of_run:
                lines.append(f"| {name} | {level} | {run} | " + " | ".join(counts) + " |")
    lines += ["", "## By what was done to the mask (an audit's order)", ""]
    lines += ["| set | run | " + " | ".join(KINDS) + " |", "| --- | --- |" + " --- |" * len(KINDS)]
    for name in sorted({row["set"] for row in rows}):
        for run in RUNS:
            here = [row for row in rows if (row["set"], row["run"]) == (name, run)]
            cells = [_cell([row["auroc_by_kind"].get(kind) for row in here]) for kind in KINDS]
            if here:
                lines.append(f"| {name} | {run} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *report.get("said", []), ""])


def levels(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """(set, which masks were made wrong, its rows), in order."""
    for name, rate, kinds in sorted({(row["set"], row["rate"], row["kinds"]) for row in rows}):
        here = [row for row in rows if (row["set"], row["rate"], row["kinds"]) == (name, rate, kinds)]
        only = "" if kinds == " ".join(KINDS) else f", {kinds.replace(' ', ', ')} only"
        yield name, f"{rate:.0%}{only}", here


def _cell(values: list[float | None]) -> str:
    found = [value for value in values if value is not None]
    if not found:
        return "-"
    spread = f" ± {stdev(found):.3f}" if len(found) > 1 else ""
    return f"{mean(found):.3f}{spread}"


def main() -> None:
    """Run what is missing and write the JSON and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--side", type=int, default=96, help="pixels of an image's side")
    parser.add_argument("--epochs", type=json.loads, default={"membranes": 40, "camvid": 10}, help="by set")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.3, 0.6])
    parser.add_argument(
        "--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="how masks are made wrong"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, help="images of a set; all of them if not given")
    parser.add_argument("--sets", nargs="+", choices=list(HELD_OUT), default=list(HELD_OUT))
    parser.add_argument("--runs", nargs="+", choices=list(RUNS), default=list(RUNS))
    parser.add_argument(
        "--data", type=Path, help="folder of the sets; masks of AUDITOR_SHARED_DATA if not given"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parse_scaled(parser, SCALES)
    torch.set_num_threads(1)
    out: Path = options.out
    report = json.loads(out.read_text()) if out.exists() else {"side": options.side, "rows": []}
    if any(
        (row["side"], row["epochs"]) != (options.side, options.epochs[row["set"]]) for row in report["rows"]
    ):
        parser.error(f"{out} holds another budget; give --out or the same budget.")
    kinds = " ".join(options.kinds)
    done = {
        (row["seed"], row["set"], row["rate"], row["run"]) for row in report["rows"] if row["kinds"] == kinds
    }
    wanted = itertools.product(options.seeds, options.sets, options.rates, options.runs)
    missing = [one for one in wanted if one not in done]
    sets = {
        name: load(options.data or images.folder() / "masks", name, options.side, options.rows)
        for name in dict.fromkeys(name for _, name, _, _ in missing)
    }
    for seed, name, rate, run in missing:
        row = measure(name, sets[name], run, rate, seed, options.epochs[name], options.device, options.kinds)
        report["rows"].append(row)
        out.write_text(json.dumps(report, indent=1) + "\n")
    out.with_suffix(".md").write_text(page(report))


if __name__ == "__main__":
    main()
