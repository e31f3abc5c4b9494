"""Every tensor of a training on CUDA is on CUDA: looked at on a pretended card, because CI has no real one."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from engines.contract import EpochRecord
from engines.registry import ENGINES
from tests.engines.helpers import MemoryCheckpoint, digits_data
from tests.engines.pretended_cuda import DeviceMismatchError, pretended_cuda

SHORT: dict[str, dict[str, Any]] = {
    "l2b": {"warmup_epochs": 1},
    "choicenet": {"warmup_epochs": 1},
    "coteaching": {
        "epochs": 4,
        "search_epochs": 2,
        "search_iterations": 1,
        "search_samples": 2,
        "objective_epochs": 1,
        "rank_epochs": 2,
    },
}
CASES = [
    ("cross_entropy", {}),
    ("cross_entropy", {"folds": 2, "resident": "no"}),
    ("l2b", {"derivative": "finite_difference", "normalization": "softmax", "mixup": 0.3}),
    ("l2b", {"derivative": "last_layer", "meta_source": "mixture"}),
    ("l2b", {"derivative": "finite_difference", "lookahead": "optimizer", "optimizer": "sgd"}),
    ("umn", {}),
    ("umn", {"method": "mean_teacher", "consistency_weight": 1.0}),
    ("umn", {"network": "umn_mlp"}),
    ("choicenet", {"mixup": True}),
    ("choicenet", {"variant": "mdn"}),
    ("choicenet", {"coteaching": True, "resident": "no"}),
    ("coteaching", {}),
    ("coteaching", {"variant": "coteaching_plus"}),
    ("coteaching", {"variant": "reweight"}),
    ("coteaching", {"search_rule": "random"}),
]


class _StoppedError(Exception):
    pass


@pytest.mark.parametrize(("engine", "changes"), CASES, ids=lambda value: str(value))
def test_train__on_a_pretended_card_equals_the_cpu_and_resumes(engine: str, changes: dict[str, Any]) -> None:
    spec = ENGINES[engine]
    # One precision: the pretended card is no device that computes in bfloat16.
    base = {"epochs": 3, "network": "conv3", "batch_size": 64, "precision": "float32"}
    config = dataclasses.replace(
        spec.config_type.preset("quick"), **{**base, **SHORT.get(engine, {}), **changes}
    )
    data, _ = digits_data(200, num_unlabeled=20, num_trusted=60, with_evaluation=True)
    checkpoint, seen = MemoryCheckpoint(), []

    def stop_after_two(record: EpochRecord) -> None:
        seen.append(record)
        if len(seen) == 2:
            raise _StoppedError

    with pretended_cuda():
        with pytest.raises(_StoppedError):
            spec.train(data, config, seed=0, device="cuda", on_epoch=stop_after_two, checkpoint=checkpoint)
        on_card = spec.train(data, config, seed=0, device="cuda", checkpoint=checkpoint)
    on_cpu = spec.train(data, config, seed=0, device="cpu")
    assert "pretended" in on_card.provenance.device
    np.testing.assert_array_equal(on_card.trust_score, on_cpu.trust_score)


def test_pretended_cuda__refuses_what_a_card_refuses() -> None:
    with pretended_cuda():
        there, here = torch.ones(3), torch.ones(3, device="cuda")
        assert (here.device.type, there.device.type) == ("cuda", "cpu")
        assert (here + 1).is_cuda
        with pytest.raises(DeviceMismatchError, match=r"add.*on CUDA and .* on the CPU"):
            here + there
        with pytest.raises(DeviceMismatchError, match="numpy"):
            here.numpy()
        with pytest.raises(DeviceMismatchError, match="indices"):
            there[torch.tensor([0], device="cuda")]
        with pytest.raises(DeviceMismatchError, match="generator"):
            torch.randn(3, device="cuda", generator=torch.Generator())
        layer = torch.nn.Linear(3, 2).to("cuda")
        with pytest.raises(DeviceMismatchError):
            layer(there)
        layer(here).sum().backward()
        assert layer.weight.grad is not None
        assert layer.weight.grad.is_cuda
        assert not here.cpu().is_cuda
