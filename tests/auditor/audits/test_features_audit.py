"""Audits on features: of a backbone that is resumed after a stop, and of the user's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import timm
import torch

from auditor import api
from auditor.audits import plan, worker
from auditor.backbones import features, own_features
from auditor.catalog import audits, datasets, scores
from auditor.catalog.db import session
from auditor.ground.errors import AuditFailedError, JobRefusedError
from auditor.pictures import cache
from auditor.results import arrays
from auditor.work import embedding, executors, kinds
from benchmarks.metrics import auroc
from tests.auditor.conftest import Run
from tests.engines.pretended_cuda import pretended_cuda
from tests.helpers import QUICK_OPTIONS, Digits

NAME = "timm:mobilenetv3_small_050"
TINY = "timm:test_resnet"
QUICK = {"choicenet": {"epochs": 3, "folds": 1}}


def make_weights(folder: Path, name: str = NAME) -> Path:
    torch.manual_seed(0)
    path = folder / "weights.safetensors"
    safetensors.torch.save_file(timm.create_model(name.removeprefix("timm:")).state_dict(), path)
    return path


@pytest.fixture
def imported(audited: tuple[Digits, int], monkeypatch: pytest.MonkeyPatch) -> Digits:
    """300 digits with 30 wrong labels, imported as "digits"; a backbone sees them in this process."""
    monkeypatch.setattr(features, "usable_cores", lambda: 1)
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
        trained = audits.run(open_session, audit_id, "choicenet")
        stages = {one.stage for one in audits.epochs(open_session, audit_id)}
    assert auroc(imported.is_wrong, -table.trust_score.to_numpy()) > 0.9
    # On features every engine trains out of fold.
    assert (trained.config["folds"], trained.provenance["notes"]["folds"]) == (5, 5)
    assert trained.provenance["is_out_of_sample"]
    assert stages == {"votes", *(f"fold {number}" for number in range(1, 6))}
    assert trained.progress == 1.0
    assert audit.options.features["name"] == "own:pixels"
    assert arrays.signal_names(audit_id, "neighbours") == ["agreement"]
    assert arrays.evidence(audit_id, 3).headline


def test_audit__map_and_neighbours_are_those_of_the_features(
    imported: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = api.open_dataset("digits")
    lie_on_disk = []
    for name in ("map_2d", "neighbor_table"):
        real = getattr(embedding, name)

        def heard(points: Any, real: Any = real, **options: Any) -> Any:
            lie_on_disk.append(isinstance(points, np.memmap))
            return real(points, **options)

        monkeypatch.setattr(embedding, name, heard)
    audit_id = dataset.audit(
        ["neighbours", "choicenet"], options=QUICK, features=pixels(), map_method="pca", alone=True
    )
    assert arrays.maps_of(audit_id) == ["features"]
    assert lie_on_disk == [True, True]  # ten million rows of 384 numbers would be 15 GB in memory
    reduced = np.array(arrays.embeddings(audit_id, "features"))
    assert reduced.shape[0] == len(pixels())
    assert reduced.shape[1] in (16, 32, 64)  # of 64: the directions that explain given labels
    expected = embedding.map_2d(reduced, quick=True)
    np.testing.assert_allclose(arrays.map_points(audit_id, "features"), expected, rtol=1e-3, atol=1e-2)
    nearest, _ = embedding.nearest_neighbors(reduced, np.array([7]), num_neighbors=8)
    story = arrays.evidence(audit_id, 7)
    assert (story.neighbours, story.neighbours_in) == (nearest[0].tolist(), "features")
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
    assert arrays.features_title(audit) == "your own features array"


def test_audit__a_list_stands_before_the_map_is_laid_out(
    imported: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[plan.AuditOverview] = []

    def laid_out(*_: object) -> None:
        seen.append(plan.audit_overview(audit_id))
        raise KeyboardInterrupt

    monkeypatch.setattr(kinds.Layout, "work", laid_out)
    source = own_features.add("digits", pixels())
    audit_id = plan.plan_audit("digits", ["noise_model", "choicenet"], features=source, alone=True)
    with pytest.raises((AuditFailedError, KeyboardInterrupt)):
        worker.run_audit(audit_id)
    assert [row.status for row in seen[0].engines] == ["finished", "queued"]
    with session() as open_session:
        table = scores.table(open_session, audit_id)
        estimate = audits.get(open_session, audit_id).options.estimate
    assert auroc(imported.is_wrong, -table.trust_score.to_numpy()) > 0.9
    assert seen[0].seconds_left > estimate["map"]  # which is still to come


def test_audit__beside_a_card_heads_train_on_the_cores(
    imported: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their steps are too small for a card; who asks for the card gets it."""
    monkeypatch.setenv(executors.VARIABLE, "processes:1")
    source = own_features.add("digits", pixels())
    names = ["noise_model", "choicenet", "neighbours"]

    def planned(device: str) -> int:
        return plan.plan_audit(
            "digits", names, features=source, options=QUICK, map_method="pca", device=device, alone=True
        )

    with pretended_cuda():
        by_itself, as_asked = planned("auto"), planned("cuda")
        worker.run_audit(by_itself)
    with session() as open_session:
        assert audits.get(open_session, as_asked).options.devices == {}
        trained = [audits.run(open_session, by_itself, name) for name in names]
    assert [run.provenance["device"].split()[0] for run in trained] == ["cuda", "cpu", "cuda"]


def test_audit__features_find_near_copies(imported: Digits) -> None:
    dataset = api.open_dataset("digits")
    images = np.load(cache.image_cache_path(dataset.table), mmap_mode="r+")
    images[41] = images[4] * 0.97
    images.flush()
    with session() as open_session:
        before = datasets.duplicates(open_session, dataset.table.id)
    dataset.audit(["neighbours"], features=pixels(), map_method="pca")
    with session() as open_session:
        found = datasets.duplicates(open_session, dataset.table.id)
    added = found[~found.sample_id.isin(before.sample_id)]
    assert added.sample_id.tolist() == [4, 41]
    assert set(added.duplicate_kind) == {"features"}
    assert added.duplicate_group.nunique() == 1


def test_audit__features_from_a_table(imported: Digits, tmp_path: Path, run: Run) -> None:
    order = np.random.default_rng(0).permutation(300)
    table = pd.DataFrame({"sample_id": order, "note": "x", "seen": list(pixels()[order])})
    table.to_parquet(tmp_path / "mine.parquet")
    wanted = ("--features", tmp_path / "mine.parquet", "--features-column", "seen")
    code, out, err = run("audit", "digits", *wanted, "--engines", "neighbours", "--map", "pca", "--json")
    assert code == 0, err
    assert len(arrays.embeddings(json.loads(out)["audit_id"], "features")) == len(pixels())
    code, _, err = run("audit", "digits", "--features-column", "seen")
    assert (code, "--features-column is of a table; name it with --features" in err) == (2, True)


def test_audit__python_takes_an_array(imported: Digits) -> None:
    dataset = api.open_dataset("digits")
    dataset.audit(["neighbours"], features=pixels(), map_method="pca")
    assert len(dataset.suspects(top=10)) == 10
    with pytest.raises(AuditFailedError, match="one of the two"):
        dataset.audit(["neighbours"], features=pixels(), backbone=NAME)


def test_audit__an_engine_on_images_and_on_features_both_speak(imported: Digits) -> None:
    dataset = api.open_dataset("digits")
    on_images = {"cross_entropy": QUICK_OPTIONS["cross_entropy"] | {"epochs": 1}}
    first = dataset.audit(["cross_entropy"], options=on_images, map_method="pca")
    second = dataset.audit(["neighbours", "cross_entropy"], features=pixels(), map_method="pca")
    speak = {"neighbours": second, "cross_entropy": second, "cross_entropy_on_images": first}
    assert arrays.runs_that_speak(second) == speak
    with session() as open_session:
        audit = audits.get(open_session, second)
    assert audit.summary.runs == speak
    assert set(audit.summary.witnesses) == set(speak)
    assert "neighbours" in audit.summary.weights
    assert "cross_entropy_on_images" not in audit.summary.weights  # it learned the labels that it judges
    assert f"cross_entropy_on_images (audit {first})" in arrays.heard_in_words(audit)
    assert arrays.describe(second, "cross_entropy_on_images")["title"].endswith(", on images")
    np.testing.assert_array_equal(
        arrays.pred_probs(second, "cross_entropy_on_images"), arrays.pred_probs(first, "cross_entropy")
    )
    assert "cross_entropy_on_images_trust" in dataset.signals()
    assert len(arrays.evidence(second, 3).verdicts) == 3
    third = dataset.audit(["cross_entropy"], options=on_images, map_method="pca")
    # A later run of the same engine on images takes the place of the first.
    on_features = {"neighbours": second, "cross_entropy_on_own_array": second}
    assert arrays.runs_that_speak(third) == {"cross_entropy": third} | on_features


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
    source = features.choose(NAME, make_weights(tmp_path), side=32, views=2)
    assert source is not None

    def planned() -> int:
        return plan.plan_audit(
            "digits", ["choicenet"], options=QUICK, map_method="pca", features=source, device="cpu"
        )

    def stopping(audit_id: int, after: int) -> Any:
        count = 0

        def mark(done: int, _num: int) -> None:
            nonlocal count
            count += 1
            if count == after:
                plan.cancel_audit(audit_id)

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
        worker.run_audit(audit_id)
    monkeypatch.setattr(features, "embed", embed)
    assert seen == [64, 128]
    worker.run_audit(audit_id)
    stopped = arrays.pred_probs(audit_id, "choicenet")
    other = planned()
    worker.run_audit(other)
    np.testing.assert_array_equal(stopped, arrays.pred_probs(other, "choicenet"))


def test_audit__finetune_trains_the_backbone_on_the_images(
    imported: Digits, tmp_path: Path, run: Run
) -> None:
    path = make_weights(tmp_path, TINY)
    code, out, err = run(
        *("audit", "digits", "--backbone", TINY, "--weights", path, "--backbone-size", "16", "--views", "1"),
        *("--finetune", "all", "--engines", "cross_entropy,neighbours", "--set", "cross_entropy.epochs=2"),
        *("--set", "cross_entropy.views=1", "--map", "pca", "--json"),
    )
    assert code == 0, err
    assert f"Trained further on the images, at 16 px, by cross_entropy: {TINY}." in err
    audit_id = json.loads(out)["audit_id"]
    with session() as open_session:
        trained = audits.run(open_session, audit_id, "cross_entropy")
        audit = audits.get(open_session, audit_id)
    kept = {name: trained.config[name] for name in ("network", "weights", "image_side", "epochs")}
    assert kept == {"network": TINY, "weights": str(path), "image_side": 16, "epochs": 2}
    assert trained.provenance["notes"]["weights_sha256"] == audit.options.features["sha256"]
    assert trained.provenance["is_out_of_sample"]  # else the ranking would not hear it
    assert arrays.embeddings(audit_id, "cross_entropy").shape == (300, 96)
    # The engine that needs features still has those of the network as it came, and there is a map of both; beside
    # them that of an earlier run of the same engine, which saw the images alone.
    assert arrays.embeddings(audit_id, "neighbours").shape == arrays.embeddings(audit_id, "features").shape
    assert arrays.maps_of(audit_id) == ["features", "cross_entropy", "cross_entropy_on_images"]


def test_plan__beside_a_card_the_plain_engine_trains_the_backbone_further(
    imported: Digits, tmp_path: Path
) -> None:
    """By itself, unless somebody says otherwise or there is no time for it."""
    source = features.choose(TINY, make_weights(tmp_path, TINY), side=16, views=1)
    names = ["noise_model", "cross_entropy", "choicenet"]

    def further(device: str = "auto", **options: Any) -> list[str]:
        """Which engines would: planned so, and with the backbone in their configs."""
        audit_id = plan.plan_audit(
            "digits", names, features=source, map_method="pca", device=device, alone=True, **options
        )
        with session() as open_session:
            planned = audits.get(open_session, audit_id).options
            configs = {run.engine: run.config for run in audits.runs(open_session, audit_id)}
        assert [name for name in names if configs[name].get("network") == TINY] == planned.further
        heads = {"cross_entropy", "choicenet"} - set(planned.further)
        assert set(planned.devices) == (heads if has_card else set())
        return planned.further

    has_card = False
    assert further() == []
    has_card = True
    with pretended_cuda():
        assert further() == ["cross_entropy"]
        assert further(finetune="all") == ["cross_entropy", "choicenet"]
        assert further(finetune="none") == []
        assert further(budget=0.01) == []
        assert further(budget=0.01, finetune="plain") == ["cross_entropy"]


def test_plan__finetune_is_one_of_three(imported: Digits) -> None:
    with pytest.raises(AuditFailedError, match=r"'every' is unknown; use one of none, plain, all\."):
        plan.plan_audit("digits", ["cross_entropy"], finetune="every")


def test_audit__finetune_needs_a_backbone(imported: Digits, tmp_path: Path, run: Run) -> None:
    np.save(tmp_path / "pixels.npy", pixels())
    for options in (("--backbone", "none"), ("--features", tmp_path / "pixels.npy"), ()):
        code, _, err = run("audit", "digits", "--finetune", "all", "--engines", "cross_entropy", *options)
        assert code == 1
        assert "Fine-tuning trains a backbone further, and this audit has none" in err


def test_audit__finetune_refuses_weights_that_changed_since_it_was_planned(
    imported: Digits, tmp_path: Path
) -> None:
    source = features.choose(TINY, make_weights(tmp_path, TINY), side=16, views=1)
    assert source is not None
    options = {"cross_entropy": {"epochs": 1, "views": 1}}
    audit_id = plan.plan_audit(
        "digits", ["cross_entropy"], options=options, features=source, finetune="plain"
    )
    # Afterwards the features are complete, and nothing but the training would read the file.
    worker.run_audit(plan.plan_audit("digits", ["neighbours"], features=source, map_method="pca"))
    torch.manual_seed(1)
    other = timm.create_model(TINY.removeprefix("timm:")).state_dict()
    safetensors.torch.save_file(other, tmp_path / "weights.safetensors")
    with pytest.raises(AuditFailedError, match="is not the file that was planned for this audit"):
        worker.run_audit(audit_id)


def test_weights_list__says_what_is_here(run: Run) -> None:
    code, out, _ = run("weights", "list", "--json")
    assert code == 0
    rows = json.loads(out)
    assert (rows[0]["name"], rows[0]["place"]) == ("timm:tf_efficientnet_lite0", "installation")
    assert all(row["good_for"] for row in rows)
    assert "not on this machine" in run("weights", "list")[1]


# --- Features of the plain engine -------------------------------------------------------------------------


def test_heads_of__all_but_the_plain_engine_and_those_with_settings_for_images() -> None:
    names, keeps = ["l2b", "cross_entropy", "umn"], {"cross_entropy": {"keeps_features": True}}
    assert plan.heads_of(names, {}) == []
    assert plan.heads_of(names, keeps) == ["l2b", "umn"]
    assert plan.heads_of(["l2b", "umn"], keeps) == []
    assert plan.heads_of(names, keeps | {"umn": {"side": 64}, "l2b": {"epochs": 3}}) == ["l2b"]


def test_audit__other_engines_train_on_features_of_the_plain_one(imported: Digits) -> None:
    options = {"cross_entropy": QUICK_OPTIONS["cross_entropy"] | {"keeps_features": True}, **QUICK}
    audit_id = plan.plan_audit("digits", ["choicenet", "cross_entropy"], options=options, map_method="pca")
    worker.run_audit(audit_id)
    assert arrays.engines_of(audit_id) == ["cross_entropy", "choicenet"]
    kept = arrays.array(audit_id, "cross_entropy", "features")
    assert kept.shape[:2] == (300, 2)
    with session() as open_session:
        run = audits.run(open_session, audit_id, "choicenet")
    assert run.config["precision"] == "float32"  # as on features
    assert arrays.embeddings(audit_id, "choicenet").shape == (300, 256)  # of a head
    assert run.config["epochs"] == 3
    assert auroc(imported.is_wrong, -arrays.trust(audit_id, "choicenet")) > 0.8
