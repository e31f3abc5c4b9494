"""What all trainings of a run share, as Co-teaching's own set-up makes it."""

from __future__ import annotations

from engines.contract import TrainingData
from engines.coteaching.config import CoteachingConfig
from engines.coteaching.population_training import Surroundings
from engines.coteaching.training import _surround
from engines.shared.run import Run


def surroundings_of(data: TrainingData, config: CoteachingConfig, *, seed: int = 1) -> Surroundings:
    """On the CPU, for tests that train populations without the search around them."""
    run = Run("coteaching", data, config, seed=seed, device="cpu", standardized=config.standardize)
    return _surround(run, config)
