"""A tournament of engines on a user's own data: plant known errors, let each engine judge, see who finds them.

Training is handed in as a callable, so that this module stays pure. Every engine judges the same planted
labels, so engines are compared trial by trial; how many real errors they find is another question, and
the table says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from auditor.errors import AuditFailedError
from auditor.planting import (
    WARNING,
    Planted,
    Recovery,
    measure_recovery,
    plant_by_transition,
    plant_second_most_likely,
)

LEVEL = 0.95

Judge = Callable[[NDArray[np.int64], int], Mapping[str, NDArray[np.floating]]]
"""Trains every engine on (N,) labels with a seed and returns its (N,) trust by name."""


@dataclass(frozen=True)
class Trial:
    """One engine on one set of planted errors."""

    engine: str
    kind: str
    """How the errors were planted."""
    seed: int
    recovery: Recovery


@dataclass(frozen=True)
class Tournament:
    """Who finds planted errors best."""

    table: pd.DataFrame
    """One row an engine, best first: engine, auroc, average_precision, precision_at_planted, trials,
    behind_best, behind_low, behind_high, too_small_to_tell."""
    best: str
    sentence: str
    warning: str = WARNING


def plant_trials(
    given_labels: NDArray[np.integer],
    pred_probs: NDArray[np.floating],
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
        trials.append((seed, plant_second_most_likely(given_labels, pred_probs, rate, seed=seed, keep=keep)))
        if np.asarray(transition)[~np.eye(len(transition), dtype=bool)].any():
            trials.append((seed, plant_by_transition(given_labels, transition, rate, seed=seed, keep=keep)))
    return trials


def play(
    planted: Sequence[tuple[int, Planted]],
    judge: Judge,
    *,
    on_trial: Callable[[int, int], None] | None = None,
) -> list[Trial]:
    """Let ``judge`` see every set of planted errors and measure each engine's recovery.

    Args:
        planted: of ``plant_trials``.
        judge: trains the engines on the planted labels.
        on_trial: called with (done, total) after each set.
    """
    trials = []
    for done, (seed, errors) in enumerate(planted, start=1):
        for engine, trust in judge(errors.labels, seed).items():
            trials.append(Trial(engine, errors.kind, seed, measure_recovery(errors, trust)))
        if on_trial is not None:
            on_trial(done, len(planted))
    return trials


def tournament(trials: Sequence[Trial]) -> Tournament:
    """Return the table of engines, each with its paired distance to the best over the same trials.

    The distance is in AUROC, with a 95 % Student interval over trials; an interval that holds zero, or a
    single trial, is too small to tell.

    Raises:
        AuditFailedError: no trial, or an engine missed some of them.
    """
    if not trials:
        raise AuditFailedError("no trial was played; plant errors with at least one seed.")
    scores = pd.DataFrame(
        [
            {
                "engine": trial.engine,
                "trial": (trial.kind, trial.seed),
                "auroc": trial.recovery.auroc,
                "average_precision": trial.recovery.average_precision,
                "precision_at_planted": trial.recovery.precision_at_planted,
            }
            for trial in trials
        ]
    )
    wide = scores.pivot(index="trial", columns="engine", values="auroc")
    missed = wide.columns[wide.isna().any()]
    if len(missed):
        raise AuditFailedError(
            f"{missed[0]!s} missed some trials; a fair comparison needs every engine in each."
        )
    means = scores.groupby("engine")[["auroc", "average_precision", "precision_at_planted"]].mean()
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
    close = [str(engine) for engine in table["engine"][1:][table["too_small_to_tell"][1:]]]
    tie = f"; too small to tell from {', '.join(close)}" if close else ""
    sentence = (
        f"{best} brings planted errors to the top best (area under the curve {table['auroc'].iloc[0]:.3f} over "
        f"{len(wide)} trials{tie})."
    )
    return Tournament(table, best, sentence)


def _behind(differences: pd.Series[float]) -> dict[str, float | bool]:
    """Mean paired distance with its Student interval."""
    values = differences.to_numpy(dtype=np.float64)
    mean = float(values.mean())
    if len(values) < 2:
        return {"behind_best": mean, "behind_low": np.nan, "behind_high": np.nan, "too_small_to_tell": True}
    half = float(stats.t.ppf(0.5 + LEVEL / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return {
        "behind_best": mean,
        "behind_low": mean - half,
        "behind_high": mean + half,
        "too_small_to_tell": bool(mean - half <= 0),
    }
