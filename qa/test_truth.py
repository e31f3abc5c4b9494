"""A few simulated owners (``python -m qa.truth`` lets 200 live)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from auditor.catalog import db
from auditor.catalog.records import Review
from auditor.review import decisions
from qa import truth


@pytest.mark.parametrize(("name", "seed"), [("clean", 1), ("twelve", 4), ("digits", 0)])
def test_owner__no_surface_contradicts_another_or_the_truth(
    name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path))
    world = truth.worlds(None)[name]()
    told = truth.live(world, truth.build(name, world, tmp_path / "made"), seed, steps=4, audits=False)
    assert told["outcome"] == "ok"
    assert len(told["steps"]) == 4


def test_owner__a_decision_that_is_lost_is_a_contradiction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path))
    world = truth.worlds(None)["twelve"]()
    truth.at_home(truth.build("twelve", world, tmp_path / "made"))
    owner = truth.Owner(world, np.random.default_rng(0))
    owner.review()
    owner.check()
    assert isinstance(decisions.undo_last(1, owner.ledger.stack[-1][0])[0], Review)
    with pytest.raises(truth.ContradictionError):
        owner.check()
    db.close_all()
