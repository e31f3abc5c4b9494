"""What an audit does in a given time."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from auditor.audits import budgets, plan
from auditor.bridges import engine_bridge
from auditor.catalog import audits
from auditor.catalog.db import session
from auditor.catalog.records import Audit
from auditor.ground.errors import AuditFailedError
from engines.shared.config import CPU_SIDE
from tests.auditor.catalogs import add_dataset

ASKED: dict[str, Any] = {
    "num_rows": 400,
    "side": 112,
    "trunk": "cross_entropy",
    "reduces": True,
    "may_leave_out": True,
}
NAMES = ["cross_entropy", "l2b"]


@pytest.mark.parametrize(
    ("text", "seconds"), [("10m", 600), ("90s", 90), ("1.5h", 5400), ("overnight", budgets.OVERNIGHT_S)]
)
def test_parse__times(text: str, seconds: float) -> None:
    assert budgets.parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "ten m", "-5m", "0s", "infm", "nanm"])
def test_parse__no_time_is_an_error(text: str) -> None:
    with pytest.raises(AuditFailedError, match="is no time; write it as 10m"):
        budgets.parse_budget(text)


def _settings(**changes: Any) -> list[tuple[int, int | None]]:
    """Epochs and side of every way that trains the others on what one network sees."""
    found = [
        rung.options["cross_entropy"] for rung in budgets.rungs(NAMES, {}, **ASKED | changes) if rung.options
    ]
    assert all(one["keeps_features"] for one in found)
    return [(one["epochs"], one.get("side")) for one in found]


def test_rungs__pixels_go_before_epochs_and_engines_last() -> None:
    assert _settings(may_leave_out=False)[:3] == [(30, None), (30, 64), (20, 64)]
    assert [rung.engines for rung in budgets.rungs(NAMES, {}, **ASKED)][-2:] == [NAMES, ["cross_entropy"]]


def test_rungs__engines_that_add_nothing_to_two_go_before_pixels_and_epochs() -> None:
    names = ["cross_entropy", "coteaching", "umn", "l2b", "choicenet"]
    found = [rung for rung in budgets.rungs(names, {}, **ASKED) if rung.options]
    assert [rung.engines for rung in found[:3]] == [names, ["cross_entropy", "l2b"], names]
    assert [rung.options["cross_entropy"].get("side") for rung in found[:3]] == [None, None, 64]
    assert found[1].sentence == "30 epochs of cross_entropy, and of the other engines l2b"
    assert found[1].options.keys() == {"cross_entropy"}
    assert found[-1].engines == ["cross_entropy"]
    assert all(rung.engines == names for rung in budgets.rungs(names, {}, **ASKED | {"may_leave_out": False}))


def test_rungs__many_rows_are_trained_longer_and_by_one_network() -> None:
    assert next(budgets.rungs(NAMES, {}, **ASKED)).options == {}, "each engine on the images"
    first, second, *_ = budgets.rungs(NAMES, {}, **ASKED | {"num_rows": budgets.MANY_ROWS})
    assert [one.options["cross_entropy"]["epochs"] for one in (first, second)] == [45, 30]


def test_rungs__small_images_are_not_enlarged() -> None:
    found = _settings(side=28, may_leave_out=False)
    assert {side for _, side in found} == {None}
    assert len(set(found)) == len(found)


def test_rungs__what_a_person_set_stays() -> None:
    options = {"cross_entropy": {"epochs": 7}, "l2b": {"epochs": 3}}
    for rung in budgets.rungs(NAMES, options, **ASKED | {"may_leave_out": False}):
        assert rung.options["cross_entropy"]["epochs"] == 7
        assert rung.options["l2b"] == {"epochs": 3}
        assert rung.engines == NAMES


def test_rungs__on_a_card_or_on_features_the_preset_is_chosen() -> None:
    assert [rung.preset for rung in budgets.rungs(NAMES, {}, **ASKED | {"reduces": False})] == [
        "standard",
        "quick",
    ]


def test_cpu_side__is_that_of_the_engines() -> None:
    assert engine_bridge.CPU_SIDE == CPU_SIDE


def _planned(budget: float, monkeypatch: pytest.MonkeyPatch) -> Audit:
    def estimated(
        configs: dict[str, dict[str, Any]], *_: object, on_features: Collection[str] = (), **__: object
    ) -> dict[str, float]:
        return {
            name: (1.0 if name in on_features else 10.0) * config["epochs"]
            for name, config in configs.items()
        }

    monkeypatch.setattr(engine_bridge, "estimated_seconds", estimated)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # one engine after another, whatever this machine has
    with session() as open_session:
        return audits.get(open_session, plan.plan_audit("few", budget=budget))


def test_plan__takes_the_first_that_fits(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_dataset("few", num=40)
    whole = _planned(1e9, monkeypatch)
    assert (len(whole.engines), whole.options.map) == (5, "umap")
    assert not whole.options.heads
    heads = _planned(500.0, monkeypatch)
    assert heads.options.heads == ["coteaching", "umn", "l2b", "choicenet"]
    least = _planned(1.0, monkeypatch)
    assert (least.engines, least.options.map) == (["cross_entropy"], "pca")
    assert "no other engine" in least.options.budget["does"]
    assert sum(least.options.estimate.values()) == 10.0 * 6
