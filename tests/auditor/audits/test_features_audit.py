"""Audits on features: of a backbone that is resumed after a stop, and of the user's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import timm
import torch

from auditor import api
from auditor.audits import arrays, plan, worker
from auditor.backbones import features
from auditor.catalog import audits, scores
from auditor.catalog.db import session
from auditor.errors import AuditFailedError, JobRefusedError
from auditor.experiments import tournament
from auditor.pictures import cache
from benchmarks.metrics import auroc
from tests.auditor.conftest import Run
from tests.helpers import QUICK_OPTIONS, Digits

NAME = "timm:mobilenetv3_small_050"
QUICK = {"choicenet": {"epochs": 3}}


def make_weights(folder: Path) -> Path:
    torch.manual_seed(0)
    path = folder / "weights.safetensors"
    safetensors.torch.save_file(timm.create_model(NAME.removeprefix("timm:")).state_dict(), path)
    return path


@pytest.fixture
def imported(audited: tuple[Digits, int]) -> Digits:
    """300 digits with 30 wrong labels, imported as "digits"."""
    return audited[0]


def pixels() -> np.ndarray:
    """Pixels of digits are features good enough to find their wrong labels."""
    images = cache.image_cache(api.open_dataset("digits").table)
    return images.reshape(len(images), -1).astype(np.float32)


def test_audit__own_features_find_the_wrong_labels(imported: Digits, tmp_path: Path, run: Run) -> None:
    np.save(tmp_path / "pixels.npy", pixels())
    code, out, err = run(
        *("audit", "digits", "--features", tmp_path / "pixels.npy", "--engines", "neighbours,choicenet"),
        *("--map", "pca", "--json"),
    )
    assert code == 0, err
    audit_id = json.loads(out)["audit_id"]
    with session() as open_session:
        table = scores.table(open_session, audit_id)
        audit = audits.get(open_session, audit_id)
    assert auroc(imported.is_wrong, -table.trust_score.to_numpy()) > 0.9
    assert audit.options["features"]["name"] == "own:pixels"
    assert arrays.signal_names(audit_id, "neighbours") == ["agreement"]
    assert arrays.evidence(audit_id, 3).headline


def test_audit__python_takes_an_array(imported: Digits) -> None:
    dataset = api.open_dataset("digits")
    dataset.audit(["neighbours"], features=pixels(), map_method="pca")
    assert len(dataset.suspects(top=10)) == 10
    with pytest.raises(AuditFailedError, match="one of the two"):
        dataset.audit(["neighbours"], features=pixels(), backbone=NAME)


def test_simulate__after_an_audit_on_features_takes_the_engines_that_train_on_images(
    imported: Digits,
) -> None:
    dataset = api.open_dataset("digits")
    on_images = {"cross_entropy": QUICK_OPTIONS["cross_entropy"] | {"epochs": 1}}
    dataset.audit(["neighbours", "cross_entropy"], features=pixels(), map_method="pca")
    played = tournament.simulate("digits", options=on_images)
    assert {name for one in played.rounds for winner in one.winners for name in winner.engines} == {
        "cross_entropy"
    }
    dataset.audit(["neighbours"], features=pixels(), map_method="pca")
    with pytest.raises(AuditFailedError, match="neighbours cannot be compared on images"):
        tournament.simulate("digits")


def test_audit__neighbours_need_features(imported: Digits, run: Run) -> None:
    code, _, err = run("audit", "digits", "--engines", "neighbours", "--backbone", "none")
    assert code == 1
    assert "neighbours needs features" in err


def test_audit__a_backbone_that_is_not_here_is_one_line(imported: Digits, run: Run) -> None:
    code, _, err = run("audit", "digits", "--backbone", NAME)
    assert code == 1
    assert f"auditor weights get {NAME}" in err
    code, _, err = run("audit", "digits", "--backbone", "timm:mobilenet_v9")
    assert code == 1
    assert "did you mean" in err


def test_audit__the_embedding_is_resumed_and_the_result_is_the_same(
    imported: Digits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "CHUNK", 64)
    monkeypatch.setattr(features, "usable_cores", lambda: 1)
    source = features.choose(NAME, make_weights(tmp_path), side=32, views=2)
    assert source is not None

    def planned() -> int:
        return plan.plan(
            "digits", ["choicenet"], options=QUICK, map_method="pca", features=source, device="cpu"
        )

    def stopping(audit_id: int, after: int) -> Any:
        count = 0

        def mark(done: int, _num: int) -> None:
            nonlocal count
            count += 1
            if count == after:
                plan.cancel(audit_id)

        return mark

    audit_id = planned()
    embed = features.embed
    seen: list[int] = []

    def embed_and_cancel(*args: Any, on_rows: Any, **values: Any) -> Any:
        mark = stopping(audit_id, after=2)

        def both(done: int, num_rows: int) -> None:
            seen.append(done)
            mark(done, num_rows)
            if len(seen) == 2:
                raise KeyboardInterrupt
            on_rows(done, num_rows)

        return embed(*args, on_rows=both, **values)

    monkeypatch.setattr(features, "embed", embed_and_cancel)
    with pytest.raises((AuditFailedError, JobRefusedError, KeyboardInterrupt)):
        worker.run(audit_id)
    monkeypatch.setattr(features, "embed", embed)
    assert seen == [64, 128]
    worker.run(audit_id)
    stopped = arrays.pred_probs(audit_id, "choicenet")
    other = planned()
    worker.run(other)
    np.testing.assert_array_equal(stopped, arrays.pred_probs(other, "choicenet"))


def test_weights_list__says_what_is_here(run: Run) -> None:
    code, out, _ = run("weights", "list", "--json")
    assert code == 0
    rows = json.loads(out)
    assert rows[0]["name"] == "timm:mobilenetv3_large_100"
    assert all(row["good_for"] for row in rows)
    assert "not on this machine" in run("weights", "list")[1]
