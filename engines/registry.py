"""The engines by name: one row each."""

from __future__ import annotations

from engines import choicenet, cross_entropy
from engines.contract import EngineSpec

ENGINES: dict[str, EngineSpec] = {
    "choicenet": choicenet.SPEC,
    "cross_entropy": cross_entropy.SPEC,
}
"""Every finished engine; ``ENGINES["l2b"].train(data, config)`` trains one."""
