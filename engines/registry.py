"""The engines by name: one row each, in the order of their columns in an exported table."""

from __future__ import annotations

from engines import choicenet, coteaching, cross_entropy, l2b, neighbours, noise_model, umn
from engines.contract import EngineSpec

ENGINES: dict[str, EngineSpec] = {
    "umn": umn.SPEC,
    "l2b": l2b.SPEC,
    "coteaching": coteaching.SPEC,
    "choicenet": choicenet.SPEC,
    "cross_entropy": cross_entropy.SPEC,
    "neighbours": neighbours.SPEC,
    "noise_model": noise_model.SPEC,
}
"""Every finished engine; ``ENGINES["l2b"].train(data, config)`` trains one. Loads no torch."""
