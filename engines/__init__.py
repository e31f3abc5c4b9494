"""Four noise-robust methods, a plain baseline and neighbours behind one contract: arrays in, arrays out."""

import os

from engines.contract import EngineInputError, EngineResult, EngineSpec, TrainingData
from engines.registry import ENGINES

__all__ = ["ENGINES", "EngineInputError", "EngineResult", "EngineSpec", "TrainingData"]

if "OMP_WAIT_POLICY" not in os.environ:
    # How long an idle OpenMP thread spins; read when torch is loaded, which happens later. A thread without a core
    # keeps the others spinning. UMN on 25,000 rows of features, two threads beside sixteen programs on four cores:
    # 184 CPU s and 419 s without this, 34 and 67 with it; one thread: 17 and 37.
    os.environ.setdefault("GOMP_SPINCOUNT", "3000")
