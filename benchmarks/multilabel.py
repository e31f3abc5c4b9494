"""Several labels a picture: missing and extra ones found by the product's model, beside cleanlab.

    python -m benchmarks.multilabel

Pictures of two digits side by side (MNIST's test set), and 235 street scenes (CamVid), whose labels are the classes
that cover at least .2 % of them; both as the installation's first network sees them. Labels are taken away and
added: each with the same chance, or with another one by class. All ways read probabilities out of fold, the same
ones: of a logistic regression a label, and of the noise model a label. cleanlab's scores and ways to put them
together are all tried, and the best of each figure by the truth is listed. ``together`` knows which labels go
together: each label's probability also reads the others', by a regression out of fold, and both are averaged.
"""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cleanlab.multilabel_classification import filter as peer_filter
from cleanlab.multilabel_classification import rank as peer_rank
from numpy.typing import NDArray
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auditor.backbones import weights
from auditor.bridges import backbone_bridge
from auditor.ground.wording import plural
from auditor.labels.sets.judging import judge
from benchmarks import images
from benchmarks.backbones import commit
from benchmarks.metrics import auroc, average_precision
from engines.contract import TrainingData
from engines.noise_model.training import NoiseModelConfig, train

RESULTS = Path(__file__).resolve().parent / "results" / "multilabel.json"
DRAWS = {"MNIST pairs": 3, "CamVid": 6}
"""Six of the smaller set, where three draws part by .03."""
CLASSES, COMPONENTS, PICTURES = 10, 64, 1_500
FOLDS, COVERED, SIDE = 5, 0.002, 224
ERRORS = {
    "no errors": (0.0, 0.0),
    "missing labels": (0.2, 0.0),
    "extra labels": (0.0, 0.1),
    "both": (0.15, 0.05),
    "by class": (0.3, 0.1),
}
"""How many labels are taken away, and how many added where they do not belong, as shares of all labels; ``by
class`` takes away from every other class, and adds to those between."""
SCORES = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")
TOGETHER = (
    {"method": "exponential_moving_average", "alpha": 0.8},
    {"method": "softmin", "temperature": 0.1},
    {"method": np.mean},
    {"method": np.min},
)
"""cleanlab's ways to make one score of those of all labels."""


def main() -> None:
    """Measure every set with every seed and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    sets = {"MNIST pairs": pairs_of_digits(), "CamVid": scenes()}
    heads = json.loads(arguments.out.read_text()).get("heads", {}) if arguments.out.exists() else {}
    found: dict[str, Any] = {"commit": commit(), "sets": {}, "heads": heads}
    for data, (vectors, truth) in sets.items():
        for errors, (missing, extra) in ERRORS.items():
            for seed in range(DRAWS[data]):
                rng = np.random.default_rng(100 + seed)
                given = planted(truth, missing, extra, rng, by_class=errors == "by class")
                found["sets"].setdefault(f"{data}, {errors}", []).append(
                    measured(vectors, given, truth, seed)
                )
                arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    arguments.out.with_suffix(".md").write_text(page(found))


def pairs_of_digits() -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """(N, D) features of two digits side by side, and the (N, 10) digits that they show."""
    digits, labels = images.load("mnist-test")
    pictures = np.zeros((PICTURES, 1, 56, 56), np.uint8)
    pictures[:, :, 14:42, :28], pictures[:, :, 14:42, 28:] = (
        digits[:PICTURES],
        digits[PICTURES : 2 * PICTURES],
    )
    shown = np.eye(CLASSES, dtype=bool)[labels["label"].to_numpy()]
    return seen(pictures), shown[:PICTURES] | shown[PICTURES : 2 * PICTURES]


def scenes() -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """(235, D) features, and (235, K) which classes each scene shows, but those that (nearly) all or none show."""
    table = pd.read_parquet(images.folder() / "masks" / "camvid.parquet", columns=["image", "mask"])
    pictures, masks = ([opened(one) for one in table[column]] for column in ("image", "mask"))
    small = [
        np.asarray(one.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)) for one in pictures
    ]
    shown = np.array([[(np.asarray(one) == label).mean() >= COVERED for label in range(11)] for one in masks])
    features = seen(np.ascontiguousarray(np.stack(small).transpose(0, 3, 1, 2)))
    return features, shown[:, (shown.mean(axis=0) > 0.1) & (shown.mean(axis=0) < 0.9)]


def opened(cell: Any) -> Image.Image:
    """A picture of a Parquet file."""
    return Image.open(io.BytesIO(cell["bytes"] if isinstance(cell, dict) else cell))


def seen(pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
    """(N, D) features of (N, C, H, W) pictures."""
    own = weights.here()[0]
    found = backbone_bridge.embed_array(
        pictures, name=own.name, weights=own.path, side=SIDE, views=1, device="cpu"
    )
    return found[:, 0].astype(np.float32)


def planted(
    truth: NDArray[np.bool_], missing: float, extra: float, rng: np.random.Generator, *, by_class: bool
) -> NDArray[np.bool_]:
    """(N, K) with a share ``missing`` of the labels taken away, and ``extra`` as many added elsewhere."""
    chance, even = rng.random(truth.shape), np.arange(truth.shape[1]) % 2 == 0
    added = extra * (truth.sum(axis=0) / (~truth).sum(axis=0) if by_class else truth.sum() / (~truth).sum())
    taken = np.where(even, missing, 0) if by_class else missing
    return np.where(truth, chance >= taken, chance < (np.where(even, 0, added) if by_class else added))


def measured(
    vectors: NDArray[np.floating], given: NDArray[np.bool_], truth: NDArray[np.bool_], seed: int
) -> dict[str, dict[str, float]]:
    """All ways on one set: ``vectors`` (N, D), labels (N, K)."""
    reduced = PCA(COMPONENTS, random_state=0).fit_transform(vectors)
    by_model = np.column_stack([by_noise_model(vectors, column, seed) for column in given.T])
    others = log_odds(by_model)
    second = np.column_stack([by_regression(others, column, seed, 1.0) for column in given.T])
    probabilities = {
        "regression": np.column_stack([by_regression(reduced, column, seed, 0.01) for column in given.T]),
        "noise model": by_model,
        "noise model, together": 1 / (1 + np.exp(-(others + log_odds(second)) / 2)),
    }
    ways = {}
    lists = [np.flatnonzero(row).tolist() for row in given]
    for name, probs in probabilities.items():
        found = judge(given.astype(np.int8), [probs])
        ways[f"{name}: ours"] = scored(1 - found.trust, 1 - found.of_picture, found.trust < 0.5, given, truth)
        ways[f"{name}: ours"]["guess"] = found.noise_rate.point * len(given)
        ways[f"{name}: cleanlab, at its best"] = peers(lists, probs, given, truth)
    return ways


def peers(
    lists: list[list[int]], probs: NDArray[np.float64], given: NDArray[np.bool_], truth: NDArray[np.bool_]
) -> dict[str, float]:
    """The best of each figure that any of cleanlab's scores has."""
    flags = np.asarray(peer_filter.find_multilabel_issues_per_class(lists, probs))
    tried = []
    for method in SCORES:
        cells = peer_rank.get_label_quality_scores_per_class(lists, probs, method=method)
        for chosen in TOGETHER:
            whole = peer_rank.get_label_quality_scores(
                lists, probs, method=method, aggregator_kwargs=dict(chosen)
            )
            tried.append(scored(1 - cells, -whole, flags, given, truth))
    return {key: max(one[key] for one in tried) for key in tried[0]}


def by_regression(
    vectors: NDArray[np.floating], labels: NDArray[np.bool_], seed: int, strength: float
) -> NDArray[np.float64]:
    """(N,) P(label) out of fold."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=500))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    return np.asarray(cross_val_predict(model, vectors, labels, cv=folds, method="predict_proba")[:, 1])


def by_noise_model(
    vectors: NDArray[np.floating], labels: NDArray[np.bool_], seed: int
) -> NDArray[np.float64]:
    """(N,) P(label) out of fold, whatever was given."""
    data = TrainingData(None, labels.astype(np.int64), 2, features=vectors.astype(np.float32)[:, None])
    return train(data, NoiseModelConfig(), seed=seed, device="cpu").pred_probs[:, 1].astype(np.float64)


def log_odds(probs: NDArray[np.floating]) -> NDArray[np.float64]:
    """Of probabilities from .001 to .999."""
    clipped = np.clip(probs, 1e-3, 1 - 1e-3)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def scored(
    doubt: NDArray[np.float64],
    of_picture: NDArray[np.float64],
    flags: NDArray[np.bool_],
    given: NDArray[np.bool_],
    truth: NDArray[np.bool_],
) -> dict[str, float]:
    """Score how well wrong labels, and pictures with one, are found by ``doubt`` (N, K) and ``of_picture`` (N,)."""
    wrong = given != truth
    found = {
        "auroc": auroc(wrong.ravel(), doubt.ravel()),
        "ap": average_precision(wrong.ravel(), doubt.ravel()),
        "picture_auroc": auroc(wrong.any(axis=1), of_picture),
        "picture_ap": average_precision(wrong.any(axis=1), of_picture),
        "flags": float(flags.sum()),
        "right_flags": float((flags & wrong).sum()),
        "wrong": float(wrong.sum()),
        "wrong_pictures": float(wrong.any(axis=1).sum()),
    }
    return {name: value for name, value in found.items() if value == value}  # no error, no figure


def page(found: dict[str, Any]) -> str:
    """The results as Markdown: means of the draws."""
    lines = [
        "# Several labels a picture",
        "",
        f"`python -m benchmarks.multilabel`, commit {found['commit']}: {PICTURES:,} pairs of MNIST's digits side "
        f"by side and CamVid's 235 street scenes, seen by the installation's first network; means of the draws. "
        "Ours and cleanlab's read the same probabilities out of fold; cleanlab has the best of three scores "
        "and four ways to put them together, by the truth. *Together*: each label also reads the others' "
        "probabilities. A flag: a label, or its absence, held for wrong. Guess: of how many pictures a label is "
        "wrong.",
        *_heads(found["heads"]),
    ]
    for name, runs in found["sets"].items():
        first = [next(iter(run.values())) for run in runs]
        wrong, pictures = (np.mean([one[key] for one in first]) for key in ("wrong", "wrong_pictures"))
        lines += [
            "",
            f"## {name} ({wrong:,.0f} wrong labels, in {pictures:,.0f} pictures; {plural(len(runs), 'draw')})",
            "",
            "| | label, AUROC / AP | picture, AUROC / AP | flags | right | guess |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for way in runs[0]:
            mean = {key: np.mean([run[way][key] for run in runs]) for key in runs[0][way]}
            cells = [
                " / ".join(
                    f"{mean[f'{what}{name}']:.3f}" for name in ("auroc", "ap") if f"{what}{name}" in mean
                )
                for what in ("", "picture_")
            ]
            cells += [
                f"{mean[name]:,.0f}" if name in mean else "" for name in ("flags", "right_flags", "guess")
            ]
            lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _heads(tried: dict[str, dict[str, list[dict[str, float]]]]) -> list[str]:
    """Return what sigmoid heads are worth beside the noise model: they were tried once, and are not here."""
    if not tried:
        return []
    lines = [
        "",
        "## Heads with a sigmoid a label",
        "",
        "Tried once, out of fold on the same features, and left out: a linear head that learns all labels by "
        "cross-entropy, and Co-teaching with two of them, which drops the largest losses of each label, as many "
        "as the noise model holds for wrong. Each alone, and pooled with the noise model; means of two draws and "
        "four kinds of errors, label AUROC / AP.",
        "",
    ]
    ways = next(iter(tried.values()))
    lines += ["| | " + " | ".join(ways) + " |", "| --- |" + " --- |" * len(ways)]
    for data in dict.fromkeys(name.partition(",")[0] for name in tried):
        cells = []
        for way in ways:
            rows = [row for name, found in tried.items() if name.startswith(data) for row in found[way]]
            cells.append(" / ".join(f"{np.mean([row[key] for row in rows]):.3f}" for key in ("auroc", "ap")))
        lines.append(f"| {data} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
