"""Four noise-robust methods, a plain baseline and neighbours behind one contract: arrays in, arrays out."""

import os

from engines.contract import EngineInputError, EngineResult, EngineSpec, TrainingData
from engines.registry import ENGINES

__all__ = ["ENGINES", "EngineInputError", "EngineResult", "EngineSpec", "TrainingData"]

if "OMP_WAIT_POLICY" not in os.environ:
    # How long an idle OpenMP thread spins; torch reads it when it is loaded, which is after this line. Otherwise a
    # thread that waits for a core keeps the others spinning. UMN on 25,000 rows of features, two threads, load 15
    # to 19 on four cores: 184 CPU seconds in 419 s, with this 34 in 67 s (one thread: 17 in 37 s). Measured for a
    # small training on an idle machine: 1.9 to 2.2 s with it, 2.2 to 2.3 without.
    os.environ.setdefault("GOMP_SPINCOUNT", "3000")
