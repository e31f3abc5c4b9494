"""Four noise-robust training methods and a plain baseline, behind one contract: arrays in, arrays out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engines.contract import EngineInputError, EngineResult, EngineSpec, TrainingData

if TYPE_CHECKING:
    from engines.registry import ENGINES

__all__ = ["ENGINES", "EngineInputError", "EngineResult", "EngineSpec", "TrainingData"]


def __getattr__(name: str) -> Any:
    # The registry loads torch (seconds); whoever only needs the contract does not pay for it.
    if name == "ENGINES":
        from engines.registry import ENGINES

        return ENGINES
    raise AttributeError(f"module 'engines' has no attribute {name!r}")
