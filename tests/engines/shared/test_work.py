"""How fast a machine is: the step that a probe measures."""

from __future__ import annotations

import pytest
import torch

from auditor.bridges import engine_bridge
from engines.shared import work
from engines.shared.work import num_seen


def test_estimated_seconds__heads_are_as_wide_as_what_the_network_on_images_sees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(work, "PROBE_S", 0.0)
    work._speed.cache_clear()
    shape, place = (3, 16, 16), torch.device("cpu")
    width = num_seen("conv4", shape, 3, device=place)
    assert width not in (engine_bridge.FEATURES_EXPECTED, 0)
    planned = engine_bridge.configs(["cross_entropy"], "quick", {"cross_entropy": {"network": "conv4"}})
    heads = engine_bridge.configs(["l2b"], "quick", {}, on_features=True)
    found = engine_bridge.estimated_seconds(heads | planned, shape, 50, 3, device="cpu", on_features=["l2b"])
    assert list(found) == ["l2b", "cross_entropy"]
    probed = work._speed.cache_info().misses
    engine_bridge.estimated_seconds(
        heads, shape, 50, 3, device="cpu", on_features=["l2b"], num_features=width
    )
    assert work._speed.cache_info().misses == probed, "asked for the same width, it answers from memory"
    work._speed.cache_clear()  # of probes that measured nothing
