"""The engines by name: one row each."""

from __future__ import annotations

from engines import choicenet, coteaching, cross_entropy, l2b, neighbours, umn
from engines.contract import EngineSpec

ENGINES: dict[str, EngineSpec] = {
    "choicenet": choicenet.SPEC,
    "coteaching": coteaching.SPEC,
    "cross_entropy": cross_entropy.SPEC,
    "l2b": l2b.SPEC,
    "neighbours": neighbours.SPEC,
    "umn": umn.SPEC,
}
"""Every finished engine; ``ENGINES["l2b"].train(data, config)`` trains one."""
