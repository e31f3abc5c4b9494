"""State as bytes: what comes back, what is refused, and what belongs to another run."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
import torch

from engines.contract import EngineInputError
from engines.shared.checkpoint import (
    deserialize_state,
    load_state,
    run_fingerprint,
    save_state,
    serialize_state,
)
from engines.shared.config import LoopConfig
from tests.engines.helpers import MemoryCheckpoint, digits_data

CPU = torch.device("cpu")


def test_serialize_state__round_trip() -> None:
    network = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(network.parameters())
    network(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "names": ["a"]}
    again = deserialize_state(serialize_state(state))
    assert torch.equal(again["network"]["weight"], network.weight)
    optimizer.load_state_dict(again["optimizer"])
    assert (again["epoch"], again["names"]) == (3, ["a"])


@pytest.mark.parametrize("data", [b"", b"not a checkpoint", serialize_state({"a": torch.ones(9)})[:-40]])
def test_deserialize_state__damaged_bytes(data: bytes) -> None:
    with pytest.raises(
        EngineInputError, match=r"the checkpoint cannot be read \(.*; delete it to start the run over"
    ):
        deserialize_state(data)


def test_deserialize_state__runs_no_code() -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (exec, ("raise SystemExit('code ran')",))

    with pytest.raises(EngineInputError, match="the checkpoint cannot be read"):
        deserialize_state(pickle.dumps(Bomb(), protocol=2))


def test_deserialize_state__not_a_state() -> None:
    with pytest.raises(EngineInputError, match="the checkpoint holds a list, not a state"):
        deserialize_state(serialize_state([1, 2]))  # type: ignore[arg-type]


def test_memory_checkpoint__later_training_does_not_change_it() -> None:
    checkpoint, weights = MemoryCheckpoint(), torch.ones(3)
    assert checkpoint.load() is None
    checkpoint.save({"weights": weights})
    weights.zero_()
    loaded = checkpoint.load()
    assert loaded is not None
    assert loaded["weights"].tolist() == [1, 1, 1]


def test_run_fingerprint__changes_with_whatever_changes_the_run() -> None:
    data, _ = digits_data(30)
    labels = data.given_labels.copy()
    labels[4] = -1
    images = data.images.copy()
    images[0, 0, 3, 3] ^= 1
    config = LoopConfig()
    prints = [
        run_fingerprint("umn", config, 0, data, CPU),
        run_fingerprint("umn", config, 0, data, torch.device("cuda")),
        run_fingerprint("umn", LoopConfig(network="mlp"), 0, data, CPU),
        run_fingerprint("l2b", config, 0, data, CPU),
        run_fingerprint("umn", LoopConfig(epochs=21), 0, data, CPU),
        run_fingerprint("umn", config, 1, data, CPU),
        run_fingerprint("umn", config, 0, dataclasses.replace(data, given_labels=labels), CPU),
        run_fingerprint("umn", config, 0, dataclasses.replace(data, images=images), CPU),
        run_fingerprint("umn", config, 0, dataclasses.replace(data, trusted=np.arange(30) < 2), CPU),
        run_fingerprint("umn", config, 0, dataclasses.replace(data, num_classes=11), CPU),
    ]
    assert len(set(prints)) == len(prints)
    assert prints[0] == run_fingerprint("umn", config, 0, digits_data(30)[0], CPU)
    named = LoopConfig(network="mlp")
    assert run_fingerprint("umn", named, 0, data, CPU) == run_fingerprint(
        "umn", named, 0, data, torch.device("cuda")
    )


def test_load_state__another_runs_state_is_refused() -> None:
    checkpoint = MemoryCheckpoint()
    assert load_state(None, "a") is load_state(checkpoint, "a") is None
    save_state(checkpoint, "a", {"epoch": 2})
    save_state(None, "a", {"epoch": 2})
    loaded = load_state(checkpoint, "a")
    assert loaded is not None
    assert loaded["epoch"] == 2
    with pytest.raises(
        EngineInputError, match="written by a run with another engine, config, seed, dataset or network"
    ):
        load_state(checkpoint, "b")
