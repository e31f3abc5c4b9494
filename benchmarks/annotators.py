"""Several annotators a picture: the consensus and the annotators' quality against truth, beside other ways.

    python -m benchmarks.annotators [--peers FOLDER]

CIFAR-10N's three answers on rows 0 to 24,999. The noise model reads what EfficientNet-lite0 sees at 160 px
(``benchmarks.frozen``); it learns from the majority. Two sets are planted beside the real one: annotators of very
different skill, and one who copies another. ``--peers`` names a folder with ``crowdkit`` and ``krippendorff``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr

from auditor.statistics.annotators import Answers, agreement, consensus, gains_of_one_more
from benchmarks import frozen, images
from benchmarks.backbones import commit
from benchmarks.metrics import auroc, average_precision
from engines.contract import TrainingData
from engines.noise_model.training import NoiseModelConfig, train

RESULTS = Path(__file__).resolve().parent / "results" / "annotators.json"
ROWS, SEEDS, CLASSES = 12_000, (0, 1, 2), 10
SETS = ("three people", "very different skill", "one copies another")


def main() -> None:
    """Measure every set with every seed and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.peers:
        sys.path.append(str(arguments.peers))
    told = pd.read_parquet(images.folder() / "cifar10n-annotators.parquet")
    table = told[[f"label_random{one}" for one in (1, 2, 3)]].to_numpy(dtype=np.int64)
    labels = pd.read_parquet(images.folder() / "cifar10-train.parquet", columns=["label"])
    truth = labels["label"].to_numpy(dtype=np.int64)[told["row"]]
    with np.load(frozen.make() / "CIFAR-10, lite0.npz") as kept:
        features = kept["features"][told["row"].to_numpy()]
    found: dict[str, Any] = {"commit": commit(), "sets": {}}
    for name in SETS:
        for seed in SEEDS:
            rows = np.sort(np.random.default_rng(seed).permutation(len(truth))[:ROWS])
            answers = planted(name, table[rows], truth[rows], seed)
            vectors = np.asarray(features[rows], dtype=np.float32)[:, None]
            one = measured(answers, truth[rows], vectors, with_peers=arguments.peers is not None)
            found["sets"].setdefault(name, []).append(one)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    arguments.out.with_suffix(".md").write_text(page(found))


def planted(name: str, table: NDArray[np.int64], truth: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """(N, M) answers of the set ``name``."""
    rng = np.random.default_rng(100 + seed)
    if name == "one copies another":
        copied = np.where(rng.random(len(table)) < 0.95, table[:, 0], table[:, 1])
        return np.column_stack([table, copied])
    if name == "very different skill":  # 20 annotators, three a picture, right with .3 to .95
        skills = np.linspace(0.3, 0.95, 20)
        guesses = (truth[:, None] + rng.integers(1, CLASSES, (len(truth), 20))) % CLASSES
        made = np.where(rng.random((len(truth), 20)) < skills, truth[:, None], guesses)
        for row in made:
            row[rng.permutation(20)[3:]] = -1
        return made
    return table


def measured(
    table: NDArray[np.int64], truth: NDArray[np.int64], vectors: NDArray[np.float32], *, with_peers: bool
) -> dict[str, Any]:
    """All ways on one set."""
    answers = Answers.of_table(table, CLASSES)
    majority = answers.majority()
    data = TrainingData(None, majority, CLASSES, features=vectors)
    probs = train(data, NoiseModelConfig(), seed=0, device="cpu").pred_probs
    skill = np.array([(said == truth)[said >= 0].mean() for said in table.T])
    counts = answers.counts()
    ways: dict[str, Any] = {
        "majority": scored(majority, counts / counts.sum(axis=1, keepdims=True), majority, truth)
        | ranking([np.mean((said == majority)[said >= 0]) for said in table.T], skill)
    }
    for name, opinion in (("ours, answers alone", None), ("ours, with features", probs)):
        one = consensus(answers, opinion)
        inside = (one.quality_low <= skill) & (skill <= one.quality_high)
        ways[name] = scored(one.labels, one.probs, majority, truth) | ranking(one.quality, skill)
        ways[name]["inside"] = float(inside.mean())
        ways[name]["most_dependent"] = float(np.nanmax(one.dependence))
    asked = np.argsort(-gains_of_one_more(one))[:500]
    if with_peers:
        ways |= peers(table, probs, majority, truth, skill)
    alpha = agreement(answers).alpha
    if with_peers:
        import krippendorff

        theirs = krippendorff.alpha(np.where(table < 0, np.nan, table).T, level_of_measurement="nominal")
        assert abs(alpha - theirs) < 1e-6, (alpha, theirs)
    return {
        "ways": ways,
        "alpha": alpha,
        "wrong_of_500_asked": float(np.mean(one.labels[asked] != truth[asked])),
    }


def scored(
    labels: NDArray[np.int64],
    probs: NDArray[np.floating],
    majority: NDArray[np.int64],
    truth: NDArray[np.int64],
) -> dict[str, float]:
    """How good a consensus is, and how well it finds the majority's errors."""
    rows = np.arange(len(truth))
    wrong, doubt = majority != truth, 1.0 - probs[rows, majority]
    return {
        "right": float(np.mean(labels == truth)),
        "expected_right": float(np.mean(probs[rows, labels])),
        "auroc": auroc(wrong, doubt),
        "ap": average_precision(wrong, doubt),
    }


def ranking(quality: Any, skill: NDArray[np.float64]) -> dict[str, float]:
    """How well the annotators are ranked, and how far their quality is off."""
    order = float(spearmanr(quality, skill).statistic)
    return {"rank": order, "off": float(np.abs(np.asarray(quality) - skill).mean())}


def peers(
    table: NDArray[np.int64],
    probs: NDArray[np.float32],
    majority: NDArray[np.int64],
    truth: NDArray[np.int64],
    skill: NDArray[np.float64],
) -> dict[str, Any]:
    """Dawid and Skene by ``crowdkit``, CROWDLAB by ``cleanlab`` on the same probabilities."""
    from cleanlab.multiannotator import get_label_quality_multiannotator
    from crowdkit.aggregation import DawidSkene

    rows, who = np.nonzero(table >= 0)
    frame = pd.DataFrame({"task": rows, "worker": who, "label": table[rows, who]})
    model = DawidSkene(n_iter=100).fit(frame)
    shares = model.probas_.reindex(columns=range(CLASSES)).fillna(0).to_numpy()
    errors = model.errors_
    own = [
        np.mean([errors.loc[(one, k)].get(k, 0.0) for k in range(CLASSES)]) for one in range(table.shape[1])
    ]
    found = {
        "Dawid-Skene (crowd-kit)": scored(shares.argmax(axis=1), shares, majority, truth)
        | ranking(own, skill)
    }
    asked = pd.DataFrame(np.where(table < 0, np.nan, table))
    crowd = get_label_quality_multiannotator(asked, probs, verbose=False)
    labels = crowd["label_quality"]["consensus_label"].to_numpy(dtype=np.int64)
    sure = crowd["label_quality"]["consensus_quality_score"].to_numpy()
    of_majority = get_label_quality_multiannotator(
        asked, probs, consensus_method="majority_vote", verbose=False
    )["label_quality"]
    wrong = of_majority["consensus_label"].to_numpy(dtype=np.int64) != truth
    doubt = 1 - of_majority["consensus_quality_score"].to_numpy()
    quality = crowd["annotator_stats"].sort_index()["annotator_quality"].to_numpy()
    found["CROWDLAB (cleanlab)"] = {
        "right": float(np.mean(labels == truth)),
        "expected_right": float(sure.mean()),
        "auroc": auroc(wrong, doubt),
        "ap": average_precision(wrong, doubt),
    } | ranking(quality, skill)
    return found


def page(found: dict[str, Any]) -> str:
    """The results as Markdown: means of the seeds."""
    lines = [
        "# Several annotators a picture",
        "",
        f"`python -m benchmarks.annotators --peers FOLDER`, commit {found['commit']}. CIFAR-10N, "
        f"{ROWS:,} rows, means of {len(SEEDS)} draws of the rows; features of EfficientNet-lite0 at 160 px. "
        "*Off*: mean error of an annotator's quality; *inside*: share of intervals that hold the truth.",
        "",
    ]
    for name, runs in found["sets"].items():
        lines += [
            f"## {name.capitalize()}",
            "",
            "| | right | expected | majority's errors, AUROC / AP | ranking (Spearman) | off | inside |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        for way in runs[0]["ways"]:
            mean = {key: np.mean([run["ways"][way][key] for run in runs]) for key in runs[0]["ways"][way]}
            inside = f"{mean['inside']:.2f}" if "inside" in mean else "-"
            lines.append(
                f"| {way} | {mean['right']:.4f} | {mean['expected_right']:.4f} | {mean['auroc']:.3f} / "
                f"{mean['ap']:.3f} | {mean['rank']:.2f} | {mean['off']:.3f} | {inside} |"
            )
        wrong = np.mean([run["wrong_of_500_asked"] for run in runs])
        dependent = np.mean([run["ways"]["ours, with features"]["most_dependent"] for run in runs])
        lines += [
            "",
            f"Of the 500 pictures where one more answer is said to help most, {wrong:.0%} have a wrong consensus. "
            f"Largest dependence of a pair: {dependent:.2f}.",
            "",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
