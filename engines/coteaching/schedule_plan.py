"""What a search of R(t) will do, decided before it starts: which rows, how many epochs, stacked or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engines.contract import TrainingData
from engines.coteaching.config import CoteachingConfig
from engines.coteaching.population import is_stacking_faster
from engines.coteaching.population_training import Surroundings
from engines.coteaching.s2e_rules import plan_hyperband
from engines.shared.device import make_generator

MIN_SEARCH_ROWS = 40
"""Fewest labeled samples that a search can split."""

MAX_HELDOUT_ROWS = 5_000
"""Most held-out samples: their accuracy then has a standard error of at most .007."""


@dataclass(frozen=True, eq=False)
class Split:
    """Which rows trials train on, and which measure them."""

    train: Tensor
    """int64 rows."""
    validation: Tensor
    """int64 rows, disjoint from ``train``."""
    source: str
    """``"trusted samples"`` or ``"held-out given labels"``."""


def split_rows(data: TrainingData, config: CoteachingConfig, seed: int) -> Split | None:
    """Divide the labeled rows for the search; None where there are too few to search on.

    The final training uses all of them again.
    """
    labeled = np.flatnonzero(data.labeled)
    trusted = np.flatnonzero(data.trusted_mask)
    shuffled = torch.from_numpy(labeled)[
        torch.randperm(len(labeled), generator=make_generator(seed, "search", "split"))
    ]
    enough = len(trusted) >= max(1, config.min_trusted)
    if len(labeled) < MIN_SEARCH_ROWS or (enough and len(labeled) - len(trusted) < MIN_SEARCH_ROWS // 2):
        return None
    if enough:
        is_trusted = torch.from_numpy(data.trusted_mask.copy())
        train, validation = shuffled[~is_trusted[shuffled]], torch.from_numpy(trusted)
        source = "trusted samples"
    else:
        # What the proxies do not train on may as well judge them.
        spare = len(labeled) - (config.search_rows or len(labeled))
        count = max(1, round(config.heldout_share * len(labeled)), min(spare, MAX_HELDOUT_ROWS))
        train, validation = shuffled[count:], shuffled[:count].sort().values
        source = "held-out given labels"
    return Split(train[: config.search_rows].sort().values, validation, source)


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """What a search will cost, known before it starts."""

    config: CoteachingConfig
    split: Split | None
    is_stacked: bool
    """The trials of an iteration train as one stacked population."""

    @classmethod
    def make(cls, here: Surroundings, config: CoteachingConfig, split: Split | None) -> SearchPlan:
        """Plan for this run; builds one network to see how large it is."""
        if config.search_rule in ("hyperband", "asng") or config.population == "one_by_one":
            return cls(config, split, is_stacked=False)
        if config.population == "stacked":
            return cls(config, split, is_stacked=True)
        # All networks of an iteration at once; TPE asks for one trial at a time.
        size = config.group * (1 if config.search_rule == "tpe" else config.search_samples)
        return cls(config, split, is_stacked=is_stacking_faster(here.build("probe"), size, here.device))

    @property
    def is_searching(self) -> bool:
        """Whether trials will be trained at all."""
        config = self.config
        return config.is_scheduled and config.keep_schedule == "searched" and self.split is not None

    @property
    def warmup_epochs(self) -> int:
        """Epochs of the common warm-up, trained once a repeat; also where only its losses are needed."""
        config = self.config
        if not config.is_scheduled:
            return 0
        if self.is_searching:
            return min(config.warmup_epochs, config.search_epochs)
        return max(1, config.warmup_epochs) if config.noise_rate is None else 0

    @property
    def num_warmups(self) -> int:
        """How often the warm-up is trained: once a repeat of the search."""
        if not self.warmup_epochs:
            return 0
        return self.config.search_repeats if self.is_searching else 1

    @property
    def trial_epochs(self) -> int:
        """Epochs that are recorded for trials, after the warm-up."""
        config = self.config
        if not self.is_searching:
            return 0
        after = config.search_epochs - self.warmup_epochs
        anchored = (min(1, len(config.anchors)) if self.is_stacked else len(config.anchors)) * after
        if config.search_rule == "asng":
            return config.search_repeats * anchored + self.shared_epochs - self.warmup_epochs
        if config.search_rule == "hyperband":
            searched = self._hyperband_epochs()
        elif self.is_stacked and config.search_rule != "tpe":
            searched = config.search_iterations * after
        else:
            searched = config.budget.trainings * after
        return config.search_repeats * (anchored + searched)

    @property
    def total_epochs(self) -> int:
        """Epochs that the search records in all."""
        return self.num_warmups * self.warmup_epochs + self.trial_epochs

    @property
    def shared_epochs(self) -> int:
        """Length of ASNG's one run: a trial's for each iteration, at most that of the final training."""
        whole = min(self.config.epochs, self.config.search_iterations * self.config.search_epochs)
        return max(whole, self.warmup_epochs + 1)

    def _hyperband_epochs(self) -> int:
        total = 0
        for rungs in plan_hyperband(self.config.budget):
            done = self.warmup_epochs
            for count, epochs in rungs:
                total += count * max(0, epochs - done)
                done = max(done, epochs)
        return total
