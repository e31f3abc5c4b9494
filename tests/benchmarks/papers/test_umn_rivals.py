"""UMN's rivals on its own batches: what each descends on, and what its guider is."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.papers.umn_rivals import MeanTeacher, rival
from engines.contract import TrainingData
from engines.shared.run import Run
from engines.umn.config import UMNConfig
from engines.umn.model import Bench, Member
from engines.umn.training import train_members
from tests.engines.helpers import digits_data


def config_of(**changes: Any) -> UMNConfig:
    base = {
        "network": "umn_mlp",
        "epochs": 2,
        "batch_size": 32,
        "views": 1,
        "precision": "float32",
        "rotations": 1,
    }
    return dataclasses.replace(UMNConfig.preset("quick"), **{**base, **changes})


def member_of(method: str, data: TrainingData, **changes: Any) -> Member:
    config = config_of(**changes)
    bench = Bench(Run("umn", data, config, device="cpu"), config)
    return rival(method, 0.3)(bench, 0, np.zeros(data.num_samples, dtype=bool))


@pytest.mark.parametrize("method", ["m_vae", "supervised", "self_paced", "mean_teacher"])
def test_train_members__every_rival_gives_a_sound_result(method: str) -> None:
    data, _ = digits_data(80, num_unlabeled=30)
    config = config_of()
    result = train_members(Run("umn", data, config, device="cpu"), config, rival(method, 0.2))
    np.testing.assert_allclose(result.pred_probs.sum(1), 1.0, atol=1e-5)
    np.testing.assert_array_equal(np.isnan(result.trust_score), ~data.labeled)


def test_m_vae__weighs_every_label_alike() -> None:
    losses, _ = member_of("m_vae", digits_data(60)[0]).train_epoch(0)
    assert losses["weight"] == pytest.approx(math.log(9 * 0.7 / 0.3), rel=1e-5)


def test_supervised__learns_from_labeled_rows_alone_and_its_guider_is_itself() -> None:
    data, _ = digits_data(80, num_unlabeled=30)
    member = member_of("supervised", data)
    losses, _ = member.train_epoch(0)
    assert len(member.unlabeled_rows) == 0
    assert losses["loss"] == pytest.approx(losses["cross_entropy"])
    for mine, theirs in zip(member.recognizer.parameters(), member.guider.module.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_self_paced__descends_on_the_smallest_losses() -> None:
    member = member_of("self_paced", digits_data(60)[0], batch_size=60)
    losses = torch.rand(60)
    loss, _ = member.objective(losses, losses, None, 0, None)  # type: ignore[attr-defined]
    assert float(loss) == pytest.approx(float(losses.sort().values[:42].mean()))  # all but 30 %


def test_mean_teacher__has_the_published_weight() -> None:
    member = member_of(
        "mean_teacher", digits_data(600, num_unlabeled=500)[0], labeled_share=0.05, batch_size=100
    )
    assert isinstance(member, MeanTeacher)
    assert member.consistency_weight == pytest.approx(5.0)


def test_mean_teacher__cross_entropy_is_over_the_whole_batch() -> None:
    member = member_of("mean_teacher", digits_data(100, num_unlabeled=80)[0], batch_size=100)
    assert isinstance(member, MeanTeacher)
    member.consistency_weight = 0.0
    losses, _ = member.train_epoch(0)
    assert losses["loss"] == pytest.approx(0.2 * losses["cross_entropy"], rel=1e-5)
