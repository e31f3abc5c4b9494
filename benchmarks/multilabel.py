"""Several labels a picture as independent questions, each a pool of two classes, beside cleanlab.

    python -m benchmarks.multilabel MNIST.npy CAMVID.npy

``MNIST.npy`` is (N, D) of a frozen network on the first N pictures of MNIST's test set. A picture of two digits
has the mean of their features, as a network that averages over places gives it. ``CAMVID.npy`` has a row for each
of 235 street scenes, whose labels are the classes that cover at least .2 % of them. Labels are taken away and
added, each with the same chance. All ways read probabilities out of fold, ours and cleanlab's the same ones. The
ways with ``together`` know which labels go together: each label's regression also reads the others' first
probabilities. The noise model is measured on the first draw of both errors.
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

from auditor.statistics import combine, witness_from_probabilities
from benchmarks import images
from benchmarks.backbones import commit
from benchmarks.metrics import auroc, average_precision
from engines.contract import TrainingData
from engines.noise_model.training import NoiseModelConfig, train

RESULTS = Path(__file__).resolve().parent / "results" / "multilabel.json"
SEEDS, CLASSES, COMPONENTS, PICTURES = (0, 1, 2), 10, 64, 1_500
FOLDS, COVERED = 5, 0.002
ERRORS = {"missing labels": (0.2, 0.0), "extra labels": (0.0, 0.1), "both": (0.15, 0.05)}
"""How many labels are taken away, and how many added where they do not belong, as shares of all labels."""


def main() -> None:
    """Measure every set with every seed and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("mnist", type=Path)
    parser.add_argument("camvid", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    features = np.load(arguments.mnist)[:PICTURES]
    digits = pd.read_parquet(images.folder() / "mnist-test.parquet", columns=["label"])["label"].to_numpy()
    scenes, shown = np.load(arguments.camvid), classes_of_scenes()
    found: dict[str, Any] = {"commit": commit(), "sets": {}}
    for seed in SEEDS:
        other = np.random.default_rng(seed).permutation(len(features))
        pairs = np.eye(CLASSES, dtype=bool)[digits[: len(features)]]
        sets = {
            "MNIST pairs": ((features + features[other]) / 2, pairs | pairs[other]),
            "CamVid": (scenes, shown),
        }
        for data, (vectors, truth) in sets.items():
            reduced = PCA(COMPONENTS, random_state=0).fit_transform(vectors)
            for errors, (missing, extra) in ERRORS.items():
                given = planted(truth, missing, extra, np.random.default_rng(100 + seed))
                one = measured(
                    reduced, given, truth, seed, with_noise_model=errors == "both" and seed == SEEDS[0]
                )
                found["sets"].setdefault(f"{data}, {errors}", []).append(one)
                arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    arguments.out.with_suffix(".md").write_text(page(found))


def classes_of_scenes() -> NDArray[np.bool_]:
    """(235, K) which classes each scene shows, without those that (nearly) all or none show."""
    masks = pd.read_parquet(images.folder() / "masks" / "camvid.parquet", columns=["mask"])["mask"]
    numbers = [
        np.asarray(Image.open(io.BytesIO(one["bytes"] if isinstance(one, dict) else one))) for one in masks
    ]
    shown = np.array([[(one == label).mean() >= COVERED for label in range(11)] for one in numbers])
    return shown[:, (shown.mean(axis=0) > 0.1) & (shown.mean(axis=0) < 0.9)]


def planted(
    truth: NDArray[np.bool_], missing: float, extra: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """(N, K) with a share ``missing`` of the labels taken away, and ``extra`` as many added elsewhere."""
    added = extra * truth.sum() / (~truth).sum()
    chance = rng.random(truth.shape)
    return np.where(truth, chance >= missing, chance < added)


def measured(
    vectors: NDArray[np.floating],
    given: NDArray[np.bool_],
    truth: NDArray[np.bool_],
    seed: int,
    *,
    with_noise_model: bool,
) -> dict[str, dict[str, float]]:
    """All ways on one set: ``vectors`` (N, D), labels (N, K)."""
    alone = np.column_stack([by_regression(vectors, column, seed) for column in given.T])
    odds = np.log(np.clip(alone, 1e-3, 1 - 1e-3)) - np.log(np.clip(1 - alone, 1e-3, 1 - 1e-3))
    probabilities = {
        "regression": alone,
        "regression, together": np.column_stack(
            [
                by_regression(np.column_stack([vectors, np.delete(odds, label, axis=1)]), column, seed)
                for label, column in enumerate(given.T)
            ]
        ),
    }
    if with_noise_model:
        columns = [by_noise_model(vectors, column, seed) for column in given.T]
        probabilities["noise model"] = np.column_stack(columns)
    ways = {}
    lists = [np.flatnonzero(row).tolist() for row in given]
    for name, probs in probabilities.items():
        ways[f"{name}: ours"] = scored(ours(probs, given), given, truth)
        cells = peer_rank.get_label_quality_scores_per_class(lists, probs)
        whole = peer_rank.get_label_quality_scores(lists, probs)
        flags = np.asarray(peer_filter.find_multilabel_issues_per_class(lists, probs))
        ways[f"{name}: cleanlab"] = scored(cells, given, truth, whole, flags)
    return ways


def ours(probs: NDArray[np.floating], given: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(N, K) trust in each given label or its absence: K pools of one witness, each with its T of two classes."""
    found = np.empty(probs.shape)
    for label, one in enumerate(probs.T):
        said = given[:, label].astype(np.int64)
        witness = witness_from_probabilities(
            np.column_stack([1 - one, one]), said, name="p", is_out_of_sample=True
        )
        found[:, label] = combine([witness], said, 2).reading.trust_score
    return found


def by_regression(vectors: NDArray[np.floating], labels: NDArray[np.bool_], seed: int) -> NDArray[np.float64]:
    """(N,) P(label) out of fold."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=500))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    return np.asarray(cross_val_predict(model, vectors, labels, cv=folds, method="predict_proba")[:, 1])


def by_noise_model(
    vectors: NDArray[np.floating], labels: NDArray[np.bool_], seed: int
) -> NDArray[np.float64]:
    """(N,) P(label) out of fold, whatever was given."""
    data = TrainingData(None, labels.astype(np.int64), 2, features=vectors.astype(np.float32)[:, None])
    return train(data, NoiseModelConfig(), seed=seed, device="cpu").pred_probs[:, 1].astype(np.float64)


def scored(
    trust: NDArray[np.float64],
    given: NDArray[np.bool_],
    truth: NDArray[np.bool_],
    whole: NDArray[np.float64] | None = None,
    flags: NDArray[np.bool_] | None = None,
) -> dict[str, float]:
    """How well wrong cells and pictures with one are found; a picture is as right as all its cells together."""
    wrong = given != truth
    whole = np.log(np.maximum(trust, 1e-12)).sum(axis=1) if whole is None else whole
    flags = trust < 0.5 if flags is None else flags
    return {
        "auroc": auroc(wrong.ravel(), 1 - trust.ravel()),
        "ap": average_precision(wrong.ravel(), 1 - trust.ravel()),
        "picture_auroc": auroc(wrong.any(axis=1), -whole),
        "picture_ap": average_precision(wrong.any(axis=1), -whole),
        "flags": float(flags.sum()),
        "right_flags": float((flags & wrong).sum()),
        "wrong": float(wrong.sum()),
    }


def page(found: dict[str, Any]) -> str:
    """The results as Markdown: means of the seeds."""
    lines = [
        "# Several labels a picture",
        "",
        f"`python -m benchmarks.multilabel MNIST.npy CAMVID.npy`, commit {found['commit']}: {PICTURES:,} pairs of "
        f"MNIST's digits and CamVid's 235 street scenes, a question a label, means of {len(SEEDS)} draws (noise "
        "model: one). Ours and cleanlab's read the same probabilities out of fold; *together*: the regression of "
        "each label also reads the others' probabilities. A flag: a label, or its absence, held for wrong.",
    ]
    for name, runs in found["sets"].items():
        wrong = np.mean([next(iter(run.values()))["wrong"] for run in runs])
        lines += [
            "",
            f"## {name} ({wrong:,.0f} wrong)",
            "",
            "| | label, AUROC / AP | picture, AUROC / AP | flags | right |",
            "| --- | --- | --- | --- | --- |",
        ]
        for way in runs[0]:
            draws = [run[way] for run in runs if way in run]
            mean = {key: np.mean([one[key] for one in draws]) for key in draws[0]}
            lines.append(
                f"| {way} | {mean['auroc']:.3f} / {mean['ap']:.3f} | {mean['picture_auroc']:.3f} / "
                f"{mean['picture_ap']:.3f} | {mean['flags']:,.0f} | {mean['right_flags']:,.0f} |"
            )
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
