"""The optimizers: torch's own steps, and no compiler in a process that trains."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from engines.shared import optimizers

ROOT = Path(__file__).resolve().parents[3]
TRAIN_ALL = """
import sys
from dataclasses import replace
from engines.registry import ENGINES
from tests.engines.helpers import digits_data, on_features
images = digits_data(60, num_trusted=30)[0]
for data in (images, on_features(images)):
    for name, spec in ENGINES.items():
        if spec.needs_features:
            continue
        config = replace(spec.config_type.preset("quick"), epochs=2, views=1, batch_size=32)
        config = replace(config, network="mlp") if data is images else config.for_features()
        if name == "coteaching":
            config = replace(config, search_epochs=2, search_iterations=1, search_samples=2, anchors=())
        spec.train(data, config, device="cpu")
        print(name)
print([name for name in ("torch._dynamo", "torch._inductor", "sympy") if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("Adam", {"lr": 0.01, "weight_decay": 0.1}),
        ("Adam", {"lr": 0.01, "eps": 1e-4, "fused": True}),
        ("AdamW", {"lr": 0.01, "weight_decay": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ],
)
def test_step__is_that_of_torch_also_after_a_state_was_loaded(kind: str, settings: dict[str, Any]) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network, rows = nn.Linear(4, 3), torch.rand(5, 4)
    other = copy.deepcopy(network)
    ours = getattr(optimizers, kind)([{"params": [network.weight]}], **settings)
    theirs = getattr(torch.optim, kind)([{"params": [other.weight]}], **settings)
    assert isinstance(ours, getattr(torch.optim, kind))
    for each, optimizer in ((network, ours), (other, theirs)):
        optimizer.add_param_group({"params": [each.bias], "lr": 0.5})
        for _ in range(3):
            optimizer.zero_grad()
            each(rows).square().sum().backward()
            optimizer.step()
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for mine, expected in zip(network.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, expected, rtol=0, atol=0)
        assert not mine.grad_fn
    assert str(ours.state_dict()) == str(theirs.state_dict())


def test_train__no_engine_loads_the_compiler() -> None:
    """It takes longer to load than most of these trainings."""
    done = subprocess.run(
        [sys.executable, "-c", TRAIN_ALL], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
