"""Every tensor of a training on CUDA is on CUDA, and no step copies one there.

Looked at on a pretended card, because CI has no real one.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engines.contract import EpochRecord
from engines.meta import directional
from engines.registry import ENGINES
from tests.engines.helpers import MemoryCheckpoint, digits_data, on_features
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
    ("l2b", {}),
    ("l2b", {"meta_losses": "evaluation", "optimizer": "sgd"}),
    ("umn", {}),
    ("umn", {"network": "umn_mlp"}),
    ("choicenet", {}),
    ("choicenet", {"resident": "no", "sharing": "shared"}),
    ("coteaching", {}),
    ("coteaching", {"search_rule": "random"}),
]


RESIDENT: list[tuple[str, dict[str, Any]]] = [
    *((engine, changes) for engine, changes in CASES if changes.get("resident") != "no"),
    ("cross_entropy", {"folds": 2}),
    ("cross_entropy", {"augment": "shift_flip"}),
    ("cross_entropy", {"augment": "turn_crop_flip"}),
    ("l2b", {"base": "divide_mix"}),
    ("l2b", {"base": "unicon"}),
    ("l2b", {"base": "c2d"}),
]
"""What has all rows on the card: where they are streamed, each step brings its own."""
ON_IMAGES_AND_FEATURES = [
    *((engine, changes, "images") for engine, changes in RESIDENT),
    *(
        (engine, changes, "features")
        for engine, changes in RESIDENT
        if not {"augment", "base", "network"} & set(changes)  # these are for images
    ),
]


def short_config(engine: str, changes: dict[str, Any]) -> Any:
    """``quick`` with few epochs, in one precision: the pretended card is no device that computes in bfloat16."""
    base = {"epochs": 3, "network": "conv3", "batch_size": 64, "precision": "float32"}
    config = ENGINES[engine].config_type.preset("quick")
    if hasattr(config, "folds"):
        base["folds"] = 1
    return dataclasses.replace(config, **{**base, **SHORT.get(engine, {}), **changes})


@pytest.fixture(autouse=True)
def _tangents_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """L2B's fused tangents do not work on a pretended card; torch's own do."""
    monkeypatch.setattr(directional, "FusedTangents", contextlib.nullcontext)


class _StoppedError(Exception):
    pass


@pytest.mark.parametrize(("engine", "changes"), CASES, ids=lambda value: str(value))
def test_train__on_a_pretended_card_equals_the_cpu_and_resumes(engine: str, changes: dict[str, Any]) -> None:
    spec, config = ENGINES[engine], short_config(engine, changes)
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


@pytest.mark.parametrize(("engine", "changes", "kind"), ON_IMAGES_AND_FEATURES, ids=lambda value: str(value))
def test_train__no_step_copies_anything_to_the_card(engine: str, changes: dict[str, Any], kind: str) -> None:
    data, _ = digits_data(120, num_unlabeled=10, num_trusted=50, with_evaluation=True)
    if kind == "features":
        data, changes = on_features(data), {**changes, "network": "auto"}

    def copies(batch_size: int) -> Counter[str]:
        config = short_config(engine, {**changes, "batch_size": batch_size, "epochs": 2})
        with pretended_cuda() as card:
            ENGINES[engine].train(data, config, seed=0, device="cuda")
        return card.copies

    few_steps, many_steps = copies(64), copies(16)
    # By line of the engines; what a run copies once, or once an epoch, is in both.
    assert many_steps == few_steps


def test_pretended_cuda__counts_copies_to_the_card_and_waits_for_it() -> None:
    def counted(work: Callable[[Tensor], Any]) -> tuple[int, int]:
        with pretended_cuda() as card:
            work(torch.arange(3.0, device="cuda"))
        return card.copies.total(), card.waits.total()

    here = np.array([0, 1])
    copies: list[Callable[[Tensor], Any]] = [
        lambda _: torch.ones(2).to("cuda"),
        lambda there: torch.tensor(2.0).to(there),
        lambda _: torch.ones(2).cuda(),
        lambda _: torch.tensor([1.0], device="cuda"),
        lambda _: torch.as_tensor(here, device="cuda"),
        lambda there: there.new_tensor(4),
        lambda there: there[torch.tensor([0, 1])],
        lambda there: there[[0, 1]],
        lambda there: there[here],
        lambda there: there.__setitem__((torch.tensor([0]),), 1.0),
        lambda there: there.copy_(torch.zeros(3)),
    ]
    assert [counted(one) for one in copies] == [(1, 0)] * len(copies)
    waits: list[Callable[[Tensor], Any]] = [
        lambda there: there.cpu(),
        lambda there: there.tolist(),
        lambda there: float(there[0]),
        lambda there: bool(there.any()),
        lambda there: there[there > 1],
        lambda there: there.nonzero(),
    ]
    assert [counted(one) for one in waits] == [(0, 1)] * len(waits)
    nothing: list[Callable[[Tensor], Any]] = [
        lambda there: there.to("cuda"),
        lambda there: there * torch.tensor(2.0) + 1,
        lambda there: there[torch.arange(2, device="cuda")],
        lambda there: there[1:],
        lambda there: there.__setitem__(slice(1), 0.0),
        lambda _: torch.ones(0).to("cuda"),
        lambda _: torch.full((2,), 3.0, device="cuda"),
        lambda there: there.new_full((), 3.0),
    ]
    assert [counted(one) for one in nothing] == [(0, 0)] * len(nothing)


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
