"""Which rule of S2E's search finds most for its trials, on an objective that costs nothing.

    python -m benchmarks.search_rules

Sought is the schedule of S2E's own space whose R(t) is nearest (mean squared distance over 20 epochs) to one that
Eq. 4 draws for a noise rate. Rules are compared at the same number of trainings: 2 (what ``quick`` pays for beside
four trials of Eq. 4), 8 (``standard``) and 12. Optuna's TPE has its own loop and is a rival in the benchmarks; it
needs a quarter of its trials, and two at least, before it is more than random. Means of the best distance over 400
seeds and three noise rates, lower is better, in ``benchmarks/results/search_rules.json``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.papers.s2e_rivals import RULES, SearchResult, search_schedule, search_with_optuna
from engines.coteaching.config import CoteachingConfig
from engines.coteaching.schedules import S2E_SPACE, FloatArray
from engines.shared.device import versions

RESULTS = Path(__file__).resolve().parent / "results" / "search_rules.json"
PLANS = ((1, 2), (2, 4), (3, 4))
"""(rounds, trials of each)."""
RATES = (0.1, 0.3, 0.45)
EPOCHS, SEEDS = 20, 400


def main() -> None:
    """Search with every rule and write the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    arguments = parser.parse_args()
    found = {}
    for rounds, trials in PLANS:
        for rule in (*RULES, "tpe"):
            best = [
                _best(rule, rounds, trials, rate, seed) for rate in RATES for seed in range(arguments.seeds)
            ]
            error = float(np.std(best) / np.sqrt(len(best)))
            found[f"{rounds} x {trials}, {rule}"] = {"mean": float(np.mean(best)), "standard_error": error}
            print(f"{rounds} x {trials}, {rule}: {np.mean(best):.4f} ± {error:.4f}", flush=True)
    stored = {
        "seeds": arguments.seeds,
        "rates": RATES,
        "epochs": EPOCHS,
        "versions": versions(),
        "best": found,
    }
    arguments.out.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")


def _best(rule: str, rounds: int, trials: int, rate: float, seed: int) -> float:
    """Smallest distance that the rule sees."""
    sought = CoteachingConfig(epochs=EPOCHS).coteaching_curve(rate, np.arange(EPOCHS, dtype=np.float64))

    def worth(x: FloatArray) -> float:
        return -float(np.mean((S2E_SPACE.keep_rates(x, EPOCHS) - sought) ** 2))

    search: Callable[..., SearchResult] = search_with_optuna if rule == "tpe" else search_schedule
    return -search(S2E_SPACE, worth, rule=rule, iterations=rounds, samples=trials, seed=seed).best.accuracy


if __name__ == "__main__":
    main()
