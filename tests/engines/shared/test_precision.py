"""bfloat16 ranks the labels as float32 does: on CUDA as it is, on the CPU with mixed precision forced on."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from engines.contract import EngineResult
from engines.registry import ENGINES
from tests.engines.helpers import digits_data, rank_correlation

RANK_CORRELATION = 0.9
"""Least Spearman correlation of trust. Measured here on the CPU: .99 and more."""

SETTINGS: dict[str, dict[str, Any]] = {
    "coteaching": {"noise_rate": 0.2},
    "umn": {"epochs": 6},
}
"""A given schedule: a searched one may turn on the last digit; and the cost."""

autocast = torch.autocast


class ForcedAutocast(autocast):
    """torch's, on wherever an engine names its dtype, as CUDA would have it."""

    def __init__(self, device_type: str, dtype: torch.dtype | None = None, enabled: bool = True) -> None:
        super().__init__(device_type, dtype=dtype, enabled=dtype is not None or enabled)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    return str(request.param)


@pytest.mark.parametrize("engine", [name for name in ENGINES if name not in ("neighbours", "noise_model")])
def test_bfloat16__ranks_labels_as_float32_does(
    engine: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = _train(engine, "float32", device)
    if device == "cpu":
        monkeypatch.setattr(torch, "autocast", ForcedAutocast)
    mixed = _train(engine, "bfloat16", device)
    assert (exact.pred_probs != mixed.pred_probs).any()  # it did run in another precision
    assert rank_correlation(exact, mixed) >= RANK_CORRELATION


def _train(engine: str, precision: str, device: str) -> EngineResult:
    spec = ENGINES[engine]
    data, _ = digits_data(300, num_trusted=60 if spec.name in ("l2b", "coteaching") else 0)
    changes = {"network": "mlp", "batch_size": 64, "epochs": 10, **SETTINGS.get(engine, {})}
    config = dataclasses.replace(spec.config_type.preset("quick"), precision=precision, **changes)
    return spec.train(data, config, seed=0, device=device)
