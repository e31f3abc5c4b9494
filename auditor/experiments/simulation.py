"""A tournament of engines on a user's own data: plant known errors, let each engine judge, see who finds them.

Training is handed in as callables, so that this module stays pure. Every engine judges the same planted
labels, so engines are compared trial by trial. Errors of different kinds are different questions: each kind
is a round of its own, and only seeds of the same kind are replicates. How many real errors an engine finds is
another question still, and the table says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from auditor.experiments.planting import (
    BUDGETS,
    WARNING,
    Planted,
    Recovery,
    measure_recovery,
    num_looked_at,
    plant_by_transition,
    plant_second_most_likely,
)
from auditor.ground.errors import AuditFailedError

LEVEL = 0.95

Judge = Callable[[NDArray[np.int64], int], tuple[NDArray[np.floating], float]]
"""Trains one engine on (N,) labels with a seed and returns its (N,) trust and the seconds it took."""


@dataclass(frozen=True)
class Trial:
    """One engine on one set of planted errors."""

    engine: str
    kind: str
    """How the errors were planted."""
    seed: int
    seconds: float
    """What the engine took."""
    recovery: Recovery


@dataclass(frozen=True)
class Winner:
    """Who finds most planted errors when a person looks at so many labels."""

    budget: float
    """Share of the labels."""
    num_labels: int
    engines: tuple[str, ...]
    """One, several that found the same share, or none where no engine found any."""
    found: float
    """Share of the planted errors, mean over the trials."""
    at_most: float
    """Share that a perfect ranking finds with this budget."""
    too_small_to_tell: tuple[str, ...]
    """Further engines whose distance the trials do not tell from none; with one trial that is every other."""


@dataclass(frozen=True)
class Round:
    """One kind of planted errors."""

    kind: str
    table: pd.DataFrame
    """One row an engine, best first: engine, auroc, average_precision, precision_at_planted, found_at_1 (share
    of the planted errors in the first 1 % of the labels), found_at_2, found_at_5, found_at_10, seconds, trials,
    behind_best, behind_low, behind_high (distance in AUROC with its interval), too_small_to_tell."""
    best: str
    """By the area under the curve, over all budgets."""
    winners: tuple[Winner, ...]
    """By budget, the smallest first."""
    sentence: str


@dataclass(frozen=True)
class Tournament:
    """Who finds planted errors best."""

    rounds: tuple[Round, ...]
    warning: str = WARNING


def plant_trials(
    labels: NDArray[np.integer],
    pred_probs: Sequence[NDArray[np.floating]],
    transition: NDArray[np.floating],
    *,
    rate: float,
    seeds: Sequence[int],
    keep: NDArray[np.bool_] | None = None,
) -> list[tuple[int, Planted]]:
    """Return both kinds of planted errors for every seed; see ``planting``.

    Raises:
        AuditFailedError: the rate is out of range or more labels than may be changed.
    """
    trials = []
    for seed in seeds:
        trials.append((seed, plant_second_most_likely(labels, pred_probs, rate, seed=seed, keep=keep)))
        if np.asarray(transition)[~np.eye(len(transition), dtype=bool)].any():
            trials.append((seed, plant_by_transition(labels, transition, rate, seed=seed, keep=keep)))
    return trials


def play(planted: Sequence[tuple[int, Planted]], judges: Mapping[str, Judge]) -> list[Trial]:
    """Let every engine see every set of planted errors and measure its recovery.

    Args:
        planted: of ``plant_trials``.
        judges: by engine, what trains it on the planted labels.
    """
    trials: list[Trial] = []
    for seed, errors in planted:
        for engine, judge in judges.items():
            trust, seconds = judge(errors.labels, seed)
            trials.append(Trial(engine, errors.kind, seed, seconds, measure_recovery(errors, trust)))
    return trials


def tournament(trials: Sequence[Trial]) -> Tournament:
    """Return one round a kind of planting, each with its table of engines and the winner at every budget.

    Distances are paired over the seeds of a kind, with a 95 % Student interval; an interval that holds zero,
    or a single trial, is too small to tell.

    Raises:
        AuditFailedError: no trial, or an engine missed some of them.
    """
    if not trials:
        raise AuditFailedError("no trial was run; plant errors with at least one seed.")
    scores = pd.DataFrame(
        [
            {
                "kind": trial.kind,
                "engine": trial.engine,
                "seed": trial.seed,
                "auroc": trial.recovery.auroc,
                "average_precision": trial.recovery.average_precision,
                "precision_at_planted": trial.recovery.precision_at_planted,
                **{_column(budget): trial.recovery.found[budget] for budget in BUDGETS},
                "seconds": trial.seconds,
            }
            for trial in trials
        ]
    )
    kinds = list(dict.fromkeys(trial.kind for trial in trials))
    sizes = {trial.kind: trial.recovery for trial in trials}
    return Tournament(tuple(_round(kind, scores[scores.kind == kind], sizes[kind]) for kind in kinds))


def _round(kind: str, scores: pd.DataFrame, size: Recovery) -> Round:
    wide = scores.pivot(index="seed", columns="engine", values="auroc")
    missed = wide.columns[wide.isna().any()]
    if len(missed):
        raise AuditFailedError(
            f"{missed[0]!s} missed some trials; a fair comparison needs every engine in each."
        )
    means = scores.drop(columns=["kind", "seed"]).groupby("engine").mean()
    means = means.sort_values("auroc", ascending=False, kind="stable")
    best = str(means.index[0])
    rows = [
        {
            "engine": engine,
            **means.loc[engine].to_dict(),
            "trials": len(wide),
            **_behind(wide[best] - wide[engine]),
        }
        for engine in means.index
    ]
    table = pd.DataFrame(rows)
    table.loc[0, "too_small_to_tell"] = False
    winners = tuple(_winner(budget, scores, list(means.index), size) for budget in BUDGETS)
    return Round(kind, table, best, winners, _sentence(kind, winners, len(wide), size))


def _winner(budget: float, scores: pd.DataFrame, engines: Sequence[str], size: Recovery) -> Winner:
    """``engines``: by falling area under the curve, which orders those that found the same share."""
    wide = scores.pivot(index="seed", columns="engine", values=_column(budget))
    found = wide.mean()
    first = [engine for engine in engines if found[engine] > 0 and np.isclose(found[engine], found.max())]
    close = [
        engine
        for engine in engines
        if first and engine not in first and _behind(wide[first[0]] - wide[engine])["too_small_to_tell"]
    ]
    looked_at = num_looked_at(budget, size.num_measured)
    return Winner(
        budget=budget,
        num_labels=looked_at,
        engines=tuple(first),
        found=float(found.max()),
        at_most=min(1.0, looked_at / size.num_planted),
        too_small_to_tell=tuple(close),
    )


def _sentence(kind: str, winners: Sequence[Winner], num_trials: int, size: Recovery) -> str:
    parts = []
    for winner in winners:
        who = " and ".join(winner.engines)
        part = f"{who or 'nobody'} at {winner.budget:.0%} ({winner.found:.0%} of at most {winner.at_most:.0%}"
        if winner.too_small_to_tell and num_trials > 1:
            part += f"; the difference is too small to tell from {', '.join(winner.too_small_to_tell)}"
        parts.append(part + ")")
    several = any(len(winner.engines) + len(winner.too_small_to_tell) > 1 for winner in winners)
    doubt = " One trial gives no interval; three seeds do." if num_trials == 1 and several else ""
    trials = "trial" if num_trials == 1 else "trials"
    return (
        f"Planted by {kind}, {size.num_planted:,} among {size.num_measured:,} labels, {num_trials} {trials}. "
        f"Finds most among the least trusted labels: {', '.join(parts)}.{doubt}"
    )


def _column(budget: float) -> str:
    return f"found_at_{round(100 * budget)}"


def _behind(differences: pd.Series[float]) -> dict[str, float | bool]:
    """Mean paired distance with its Student interval."""
    values = differences.to_numpy(dtype=np.float64)
    mean = float(values.mean())
    if len(values) < 2:
        return {"behind_best": mean, "behind_low": np.nan, "behind_high": np.nan, "too_small_to_tell": True}
    half = float(
        scipy.stats.t.ppf(0.5 + LEVEL / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    )
    return {
        "behind_best": mean,
        "behind_low": mean - half,
        "behind_high": mean + half,
        "too_small_to_tell": bool(mean - half <= 0),
    }
