"""The page of the benchmark on real features compares methods on the same seeds, each at its best."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import backbones_page
from benchmarks.backbones import EVERYWHERE, Row, load, runs
from benchmarks.backbones_page import Figures, Group

GROUP = Group("pair45", 3_000, "lite0")


def row(method: str, seed: int, scores: dict[str, float]) -> Row:
    key = f"pair45|3000|{seed}|lite0|{method}"
    told = {name: {"auroc": value, "ap": value / 2} for name, value in scores.items()}
    about = {
        "problem": "pair45",
        "rows": 3_000,
        "seed": seed,
        "network": "lite0",
        "commit": "c",
        "device": "d",
    }
    return {"key": key, "method": method, "scores": told, **about}


def stored(**without: int) -> dict[str, Row]:
    """Two seeds of every method; ``without``: the seed that a method lacks."""
    found = {}
    for seed in (0, 1):
        for method in EVERYWHERE:
            scores = {method: 0.6 + 0.1 * seed}
            if method == "cleanlab":
                scores = {"cleanlab a, C = 1": 0.9 - 0.5 * seed, "cleanlab b, C = 1": 0.7}
            if without.get(method) != seed:
                one = row(method, seed, scores)
                found[one["key"]] = one
    return found


def test_figures__a_seed_that_lacks_a_method_counts_for_none() -> None:
    assert Figures(stored()).mean(GROUP, "consensus").auroc == pytest.approx(0.65)
    partly = Figures(stored(umn=1))
    assert partly.seeds(GROUP) == [0]
    assert partly.mean(GROUP, "consensus").auroc == pytest.approx(0.6)
    nothing = {key: one for key, one in stored().items() if one["method"] != "umn"}
    assert Figures(nothing).groups == []


def test_best_peer__is_one_setting_over_all_seeds() -> None:
    name, found = Figures(stored()).best_peer(GROUP)
    assert (name, found.auroc) == ("cleanlab b, C = 1", pytest.approx(0.7))


def test_short_table__says_who_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backbones_page, "load", lambda _: stored())
    (line,) = backbones_page.short_table([3_000]).splitlines()[2:]
    assert line.endswith("| .650 | loses by .050 |")
    monkeypatch.setattr(backbones_page, "TIE", 0.06)
    assert backbones_page.short_table([3_000]).splitlines()[2].endswith("| ties |")


def test_load__the_last_line_of_a_run_counts(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text('{"key": "a", "n": 1}\n{"key": "b", "n": 2}\n{"key": "a", "n": 3}\n')
    assert {key: one["n"] for key, one in load(tmp_path / "rows").items()} == {"a": 3, "b": 2}


def test_runs__none_twice_and_the_consensus_after_its_engines() -> None:
    order = [(run, method) for run, method in runs()]
    assert len(set(order)) == len(order)
    first = order[0][0]
    methods = [method for run, method in order if run == first and method in EVERYWHERE]
    assert methods == list(EVERYWHERE)
