"""Settings of Co-teaching and of S2E's search, each with its unit, range and source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engines.coteaching.s2e import RULES
from engines.coteaching.schedules import FloatArray, coteaching_keep_rate
from engines.shared.config import at_least, check_preset, one_of, within
from engines.shared.out_of_fold import FoldedConfig
from engines.shared.work import PROBE_ROWS, Work, cost_of_steps

HELDOUT_SHARE = 0.1
"""Share of the labeled samples held out of the trials where trusted ones are too few."""
MAX_HELDOUT_ROWS = 5_000
"""Most held-out samples: their accuracy then has a standard error of at most .007."""

SCORED = 0.35
"""A row's forward pass alone, as a share of a training step (measured)."""
JUDGING = 0.25
"""Share of a limited search's work that judging its trials may be."""
PAIR_STEP = 1.25
"""Plain steps of both networks that a step takes as long as on features, where choosing the samples counts
(measured)."""


@dataclass(frozen=True, kw_only=True)
class CoteachingConfig(FoldedConfig):
    """Two networks that teach each other their small-loss samples, under a searched keep rate R(t)."""

    noise_rate: float | None = None
    """tau in [0, 1), if it is known: R(t) is Eq. 4 under it. None: R(t) is searched (S2E)."""
    keep_rates: tuple[float, ...] | None = None
    """R(t) of every epoch where an earlier training found it: those of a run out of fold after the first. None:
    ``noise_rate`` or the search decides."""
    ramp_epochs: float | None = None
    """t_k of Eq. 4. None: 10, at most a third of the epochs (measured)."""
    warmup_epochs: int = 1
    """First epochs with R = 1, both in the search and in the final training. The search trains them once and
    every trial goes on from there: with 1 that changes nothing, as R(0) = 1 in S2E's space; more is a stated
    restriction of the space. 0: nothing is shared."""

    # --- the search ---
    search_rule: str = "newton"
    """``newton`` (S2E), ``random``, or ``none``, for features: R(t) is Eq. 4 under the share of wrong labels that a
    noise model guesses. On 18 of 19 sets of real features that finds more than a short search, which held-out wrong
    labels lead astray, and it costs no trial (benchmarks/results/noise_model.md)."""
    search_iterations: int = 3
    """M: how many times the search updates theta; published 7 to 20."""
    search_samples: int = 4
    """K: schedules drawn for each update; published 2 to 6."""
    search_epochs: int = 10
    """Epochs of one trial. If fewer than ``epochs``, the same curve is run through faster."""
    search_rows: int | None = None
    """Largest number of samples that a trial trains on; None: all of them."""
    search_share: float | None = None
    """Largest share of the run's work that the search may be, 0.01 to 0.9: its trials train on fewer rows, and
    fewer held-out ones judge them, until it is. None (published): no limit."""
    anchors: tuple[float, ...] = (0.2, 0.45)
    """Values of tau whose Eq. 4 competes with the searched schedules: the search never does worse on the
    validation rows. Each costs one trial. Published: none."""
    objective_epochs: int = 3
    """The accuracy of a trial is the mean over this many last epochs (small validation sets are noisy)."""
    tie_margin: float = 0.5
    """Schedules within this many standard errors of the best validation accuracy count as equal, and the one that
    drops most is taken: dropping too much costs the ranking little, too little much (measured: AUROC
    .993 for .996 and .68 for .98) and some test accuracy. Published: 0, the most accurate one."""

    as_published: bool = False
    """The loop of the published runs: pixels in [0, 1], full batches alone and at most 401 of them an epoch, and an
    epoch 0 that only evaluates the random networks, so that 200 epochs train 199 times."""
    rank_epochs: int = 5
    """Last epochs whose evaluation losses make ``loss_rank``; published runs: 20."""

    def __post_init__(self) -> None:
        # JSON has no tuples; a config built from provenance equals the one it came from.
        object.__setattr__(self, "anchors", tuple(self.anchors))
        if self.keep_rates is not None:
            object.__setattr__(self, "keep_rates", tuple(self.keep_rates))
        super().__post_init__()

    def problems(self) -> list[str]:
        if self.keep_rates is not None and len(self.keep_rates) != self.epochs:
            return [
                f"keep_rates holds {len(self.keep_rates)} values, it must be one an epoch ({self.epochs})"
            ]
        found = [
            *super().problems(),
            *one_of(self, "search_rule", (*RULES, "none")),
            *at_least(self, 1, "search_iterations", "search_samples", "search_epochs"),
            *at_least(self, 1, "objective_epochs", "rank_epochs"),
            *at_least(self, 0, "warmup_epochs", "tie_margin"),
        ]
        if self.search_share is not None:
            found += within(self, 0.01, 0.9, "search_share")
        if self.search_rows is not None:
            found += at_least(self, 1, "search_rows")
        for name, rates in (("noise_rate", (self.noise_rate,)), ("anchors", self.anchors)):
            found += [
                f"{name} holds {rate}, it must be 0 to 0.99"
                for rate in rates
                if rate is not None and not 0.0 <= rate <= 0.99
            ]
        if self.ramp_epochs is not None and not self.ramp_epochs > 0:
            found.append(f"ramp_epochs is {self.ramp_epochs}, it must be above 0")
        if self.is_searched and self.warmup_epochs >= self.search_epochs:
            found.append(
                f"warmup_epochs is {self.warmup_epochs} and search_epochs {self.search_epochs}, so that no trial "
                "would train under its own schedule: raise search_epochs, lower warmup_epochs, or set noise_rate"
            )
        if self.as_published and self.epochs == 1:
            found.append("epochs is 1 and as_published leaves it untrained: set epochs to 2 or more")
        return found

    @classmethod
    def preset(cls, name: str) -> CoteachingConfig:
        """``quick``: two minutes for 2,000 small images on one core; ``standard``: for a GPU; ``paper``: S2E's.

        ``quick`` can pay for six trials: four of Eq. 4 and two drawn from S2E's space. On 4,000 rows of features
        (three seeds) that found as much of human noise as two rounds of Newton's three and two of Eq. 4 with no
        limit (AUROC .942, .942), more of pair flips (.768, .738) and asymmetric noise (.865, .834), in two thirds
        of the time. Before Newton's step can do better than chance it needs rounds that are not there.

        Co-teaching's own publication: ``paper`` with network ``cnn9`` and the ``noise_rate`` known.
        """
        check_preset(name)
        if name == "quick":
            return cls(
                epochs=20,
                learning_rate=2e-3,
                precision="bfloat16",
                search_rule="random",
                search_iterations=1,
                search_samples=2,
                search_epochs=5,
                search_rows=2_000,
                search_share=0.3,
                anchors=(0.1, 0.2, 0.3, 0.45),
            )
        if name == "standard":
            return cls(
                epochs=60,
                learning_rate=2e-3,
                precision="bfloat16",
                search_iterations=2,
                search_samples=4,
                search_epochs=10,
                search_rows=20_000,
                search_share=0.3,
                anchors=(0.0, 0.2, 0.4, 0.6),
            )
        return cls(
            network="cnn_small",
            epochs=200,
            schedule="linear_tail",
            augment="none",
            views=1,
            as_published=True,
            warmup_epochs=0,
            ramp_epochs=10.0,
            rank_epochs=20,
            search_iterations=10,
            search_samples=6,
            search_epochs=200,
            objective_epochs=1,
            tie_margin=0.0,
            anchors=(),
        )

    def for_features(self) -> CoteachingConfig:
        """Return it out of fold and, unless as published, without a search: see ``search_rule``."""
        config = super().for_features()
        return config if self.as_published else replace(config, search_rule="none")

    def after_first(self, notes: Mapping[str, Any]) -> CoteachingConfig:
        """Return this config with the R(t) that the first training of a run found: it is searched once."""
        return replace(self, keep_rates=tuple(notes["keep_rates"]))

    def work_of_one(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        one = super().work_of_one(num_rows, num_classes, on_features=on_features)
        trained, scored = one.trained, one.scored + self.rank_epochs * num_rows
        if self.is_searched:
            rows, judges = self.search_size(num_rows)
            trained += self.trial_passes * rows
            scored += self.judge_passes * judges
        if on_features:
            trained *= PAIR_STEP * cost_of_steps(self.batch_size_for(num_rows), PROBE_ROWS)
        return Work(2 * trained, 2 * scored)

    @property
    def is_searched(self) -> bool:
        """Return whether R(t) is searched."""
        return self.noise_rate is None and self.keep_rates is None and self.search_rule != "none"

    @property
    def trial_passes(self) -> int:
        """Return how often the search trains on each of its rows."""
        trials = self.search_iterations * self.search_samples + len(self.anchors)
        return self.warmup_epochs + trials * (self.search_epochs - self.warmup_epochs)

    @property
    def judge_passes(self) -> int:
        """Return how often the search looks at each row that judges its trials."""
        trials = self.search_iterations * self.search_samples + len(self.anchors)
        return trials * min(self.objective_epochs, self.search_epochs)

    def search_size(self, num_labeled: int, num_judges: int | None = None) -> tuple[int, int]:
        """Rows that trials train on, and held-out rows that judge them.

        Args:
            num_labeled: labeled samples.
            num_judges: where trusted samples judge, how many; they do so whatever it costs. None: held-out ones do.
        """
        heldout = max(1, round(HELDOUT_SHARE * num_labeled))
        judges = heldout if num_judges is None else num_judges
        if num_judges is None and self.search_rows is not None:
            # What the trials do not train on may as well judge them.
            judges = max(heldout, min(num_labeled - self.search_rows, MAX_HELDOUT_ROWS))
        rows = num_labeled - judges
        if self.search_rows is not None:
            # Proxies cost the same whoever judges them.
            rows = min(rows, self.search_rows, num_labeled - heldout)
        if self.search_share is None:
            return rows, judges
        training = self.epochs + SCORED * (self.views + self.rank_epochs)
        limit = num_labeled * training * self.search_share / (1 - self.search_share)
        if num_judges is None:
            paid = int(JUDGING * limit / (SCORED * self.judge_passes))
            judges = max(heldout, min(paid, num_labeled // 2, MAX_HELDOUT_ROWS))
        left = limit - SCORED * self.judge_passes * judges
        return max(1, min(rows, num_labeled - judges, int(left / self.trial_passes))), judges

    def coteaching_curve(self, noise_rate: float, t: FloatArray) -> FloatArray:
        """Eq. 4 at times t (E,) of this config's full run."""
        ramp = min(10.0, self.epochs / 3) if self.ramp_epochs is None else self.ramp_epochs
        return coteaching_keep_rate(t, noise_rate=noise_rate, ramp_epochs=ramp)
