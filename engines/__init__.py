"""Four noise-robust methods, a plain baseline and neighbours behind one contract: arrays in, arrays out."""

from engines.contract import EngineInputError, EngineResult, EngineSpec, TrainingData
from engines.registry import ENGINES

__all__ = ["ENGINES", "EngineInputError", "EngineResult", "EngineSpec", "TrainingData"]
