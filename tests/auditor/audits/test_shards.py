"""Embedding in shards: the features of one process, kept as they come, where the work was stopped, and failures."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from auditor.audits import shards
from auditor.backbones import features
from auditor.ground.errors import AuditFailedError
from auditor.work import executors
from tests.auditor.backbones.test_features import NAME, KilledError, make_weights

EMBEDDED, SHARDED = 1, 2


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(features, "CHUNK", 16)
    monkeypatch.setattr(shards, "RANGES", 2)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    path = tmp_path / "images.npy"
    np.save(path, np.random.default_rng(0).integers(0, 256, (88, 3, 20, 24), dtype=np.uint8))
    return path


def test_embed__goes_on_where_it_was_stopped_with_the_bits_of_one_go(tmp_path: Path, images: Path) -> None:
    source = features.of_backbone(NAME, make_weights(tmp_path), side=32, views=2)
    expected = features.embed(EMBEDDED, images, source, device="cpu", workers=1)
    executor, heard = executors.Processes(1), []

    def stop(done: int) -> None:
        heard.append(done)
        if done > 40:
            raise KilledError

    with pytest.raises(KilledError):
        shards.embed(SHARDED, images, source, executor, device="cpu", on_rows=stop)
    place = features.folder(SHARDED, source)
    assert np.load(place / "done.npy").tolist() == [True, True, False, False, False, False]
    marked = np.load(place / "features.npy", mmap_mode="r+")
    marked[3] = 7.0  # what is done is not computed again: it would overwrite this
    heard.clear()
    shards.embed(SHARDED, images, source, executor, device="cpu", on_rows=heard.append)
    found = features.load(SHARDED, source)
    assert (found[3] == 7.0).all()
    np.testing.assert_array_equal(found[4:], expected[4:])
    assert heard[0] >= 32
    assert heard == sorted(heard)
    assert heard[-1] == 88
    assert sorted(path.name for path in place.iterdir()) == ["about.json", "done.npy", "features.npy"]


def test_embed__a_shard_that_fails_is_said_and_the_others_are_kept(
    tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = features.of_backbone(NAME, make_weights(tmp_path), side=32)
    of_rows = shards.embedding_of

    def second_broken(rows: tuple[int, int], *given: object) -> shards.Embed:
        spec = of_rows(rows, *given)
        return spec if rows[0] != 32 else dataclasses.replace(spec, weights=str(tmp_path / "no.pth"))

    monkeypatch.setattr(shards, "embedding_of", second_broken)
    with pytest.raises(AuditFailedError, match=r"no\.pth"):
        shards.embed(SHARDED, images, source, executors.Processes(1), device="cpu", on_rows=lambda _: None)
    done = np.load(features.folder(SHARDED, source) / "done.npy")
    assert done.tolist() == [True, True, False, False, True, True]
