"""What the witnesses of ``benchmarks.backbones`` say together; computed from their kept arrays in minutes.

    python -m benchmarks.backbones_consensus

Three questions: is the consensus at or above the best single witness, what does each witness cost the others, and
how far is the noise rate guessed without verified rows from the truth? And the same for the published probabilities
of five pretrained networks (``cifar10-aggre-pred-probs.npz``), together with one weak engine.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.statistics import Consensus, Witness, combine, witness_from_probabilities
from auditor.statistics.choice import choose
from auditor.statistics.consensus import joined_trust
from auditor.statistics.weights import weightings
from benchmarks import images
from benchmarks.backbones import PROBLEMS, RESULTS, WORK
from benchmarks.detection import scores_of, update
from benchmarks.standin import HALF
from engines.neighbours.search import nearest, unit_rows

ENGINES = ("cross_entropy", "coteaching", "l2b", "choicenet", "umn", "neighbours")
DRAWS = 150
LOOKS = (40, 100)
HEAD_SHARE = 0.7
"""Of the looks, those drawn from the head: twice as many rows as the noise rate's guess says are wrong."""
NEIGHBOURS = 8
"""As an audit keeps."""
WEAK = ("neighbours", "scratch_5")
"""Weak witnesses beside the published networks: the weakest on features, and a short training from scratch."""


def main() -> None:
    """Compute every problem and seed whose arrays are there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--work", type=Path, default=WORK)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for folder in sorted(options.work.glob("*-*/")):
        labels = np.load(folder / "labels.npz")
        present = [name for name in ENGINES if (folder / f"{name}.npz").exists()]
        if len(present) < len(ENGINES):
            continue
        witnesses = [witness_of(folder, name) for name in present]
        problem, _, seed = folder.name.rpartition("-")
        near = nearest_of(options.work, problem)
        one = together(witnesses, labels["given"], labels["true"], near)
        found[f"{problem}|{seed}"] = one
        print(problem, seed, {name: round(row["auroc"], 4) for name, row in one["rows"].items()}, flush=True)
    update(options.out, "consensus", found)
    update(options.out, "published", published(options.work))


def witness_of(folder: Path, name: str) -> Witness:
    """One engine as the product sees it."""
    arrays = np.load(folder / f"{name}.npz")
    trust = next(key for key in arrays.files if key.startswith("trust "))
    return Witness(name, arrays[trust], arrays["pred_probs"])


def together(
    witnesses: Sequence[Witness],
    given: NDArray[np.int64],
    true: NDArray[np.int64],
    neighbours: NDArray[np.int32],
) -> dict[str, Any]:
    """The consensus of all, of all but one, after a few looks, and what it says about the noise rate."""
    wrong = given != true
    num_classes = int(max(given.max(), true.max())) + 1
    whole = combine(witnesses, given, num_classes, neighbours=neighbours)
    rows = {"consensus": scores_of(wrong, -whole.trust_score)}
    without = {}
    for witness in witnesses:
        others = [one for one in witnesses if one is not witness]
        fewer = combine(others, given, num_classes, neighbours=neighbours)
        without[witness.name] = scores_of(wrong, -fewer.trust_score)["auroc"]
    looks = after_looks(whole, witnesses, given, wrong, neighbours)
    rows |= {name: row for name, row in looks.items() if name != "chosen"}
    return {
        "rows": rows,
        "chosen": looks["chosen"],
        "cost of adding": {name: value - rows["consensus"]["auroc"] for name, value in without.items()},
        "weights": {name: float(value) for name, value in whole.weights.items()},
        "sentence": whole.weights_sentence,
        "noise_rate": _rate(whole, wrong),
    }


def after_looks(
    whole: Consensus,
    witnesses: Sequence[Witness],
    given: NDArray[np.int64],
    wrong: NDArray[np.bool_],
    neighbours: NDArray[np.int32] | None,
) -> dict[str, Any]:
    """Which weighting so many looks choose, and how it ranks: means over ``DRAWS`` draws."""
    candidates = weightings(
        witnesses,
        given,
        parted=whole.structured_noise,
        noise_rate=whole.guessed_noise_rate.point,
        neighbours=neighbours,
    )
    # The mean prediction that confusions are read off stays that of the first weighting.
    trust = np.stack(
        [
            joined_trust(whole.witness_ranks, one, whole.confusion_ranks, whole.confusions_share)
            for one in candidates
        ],
        axis=1,
    )
    scores = [scores_of(wrong, -column) for column in trust.T]
    found: dict[str, Any] = {
        f"weights by {one.name}": row
        for one, row in zip(candidates, scores, strict=True)
        if " " not in one.name
    }
    guessed_errors = whole.guessed_noise_rate.point * len(given)
    head_size = min(len(given) // 2, max(max(LOOKS), round(2 * guessed_errors)))
    order = np.argsort(whole.trust_score, kind="stable")
    found["chosen"] = {}
    for looks in LOOKS:
        in_head = round(HEAD_SHARE * looks)
        stand_for = np.repeat(
            [head_size / in_head, (len(given) - head_size) / (looks - in_head)], [in_head, looks - in_head]
        )
        chosen = []
        for draw in range(DRAWS):
            rng = np.random.default_rng([looks, draw])
            head = rng.choice(order[:head_size], in_head, replace=False)
            rest = rng.choice(order[head_size:], looks - in_head, replace=False)
            ids = np.concatenate([head, rest])
            chosen.append(choose(trust[ids], wrong[ids], stand_for).chosen)
        found[f"chosen by {looks} looks"] = {
            key: float(np.mean([scores[number][key] for number in chosen])) for key in scores[0]
        }
        counts = np.bincount(chosen, minlength=len(candidates)) / DRAWS
        found["chosen"][str(looks)] = {
            one.name: float(share) for one, share in zip(candidates, counts, strict=True) if share
        }
    return found


def nearest_of(work: Path, problem: str) -> NDArray[np.int32]:
    """(N, 8) nearest rows in feature space, computed once."""
    (source,) = {one.source for one in PROBLEMS if one.name == problem}
    kept = work / f"{source}-nearest.npy"
    if not kept.exists():
        (path,) = work.glob(f"{source}-*v.npy")
        rows = unit_rows(np.load(path).mean(axis=1, dtype=np.float32))
        np.save(kept, nearest(rows, NEIGHBOURS)[0].astype(np.int32))
    found: NDArray[np.int32] = np.load(kept)
    return found


def published(work: Path) -> dict[str, Any]:
    """The published networks on the audited half: each, pairs, all, and all with one weak engine."""
    arrays = np.load(images.folder() / "cifar10-aggre-pred-probs.npz")
    folder = work / "aggre-0"
    labels = np.load(folder / "labels.npz")
    given, wrong = labels["given"], labels["given"] != labels["true"]
    networks = {
        name: witness_from_probabilities(whole_probabilities(arrays[name][HALF:]), given, name=name)
        for name in arrays.files
    }
    weak = {name: witness_of(folder, name) for name in WEAK if (folder / f"{name}.npz").exists()}
    near = nearest_of(work, "aggre")
    names = list(networks)
    groups = [(name,) for name in names]
    groups += [(a, b) for number, a in enumerate(names) for b in names[number + 1 :]]
    groups += [tuple(names)]
    rows: dict[str, Any] = {}
    for group in groups:
        members = [networks[name] for name in group]
        alone = combine(members, given, 10)
        row: dict[str, Any] = {
            "alone": scores_of(wrong, -alone.trust_score),
            "noise_rate": _rate(alone, wrong),
        }
        for name, witness in weak.items():
            # An audit without a backbone has no neighbours, and one from scratch has no backbone.
            joined = combine(
                [*members, witness], given, 10, neighbours=near if name == "neighbours" else None
            )
            row[f"with {name}"] = scores_of(wrong, -joined.trust_score)
            row[f"weighting with {name}"] = joined.weighting
        rows[" + ".join(group)] = row
        print(group, round(rows[" + ".join(group)]["alone"]["auroc"], 4), flush=True)
    return rows


def whole_probabilities(probs: NDArray[np.floating]) -> NDArray[np.float32]:
    """(N, K) float32 whose rows sum to 1; half precision does not."""
    rows = probs.astype(np.float32)
    return rows / rows.sum(axis=1, keepdims=True)


def _rate(found: Consensus, wrong: NDArray[np.bool_]) -> Mapping[str, float]:
    guess = found.guessed_noise_rate
    return {
        "true": float(wrong.mean()),
        "point": float(guess.point),
        "low": float(guess.low),
        "high": float(guess.high),
        **{name: float(value) for name, value in guess.estimators.items()},
    }


if __name__ == "__main__":
    main()
