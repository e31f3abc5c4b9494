"""Settings of Co-teaching, its family and S2E's search, each with its unit, range and source."""

from __future__ import annotations

from dataclasses import dataclass

from engines.coteaching.s2e import RULES
from engines.coteaching.schedules import SPACES, FloatArray, coteaching_keep_rate
from engines.shared.averaged import AveragedConfig
from engines.shared.config import (
    LINEAR_TAIL_START,
    at_least,
    check_preset,
    learning_rate_at,
    one_of,
    within,
)
from engines.shared.work import Work

PAIR_VARIANTS = ("coteaching", "coteaching_plus", "decoupling")
"""Variants of two networks; the others train one."""

SCHEDULED_VARIANTS = ("coteaching", "coteaching_plus", "mentornet")
"""Variants that a keep rate R(t) steers."""

VARIANTS = (*PAIR_VARIANTS, "mentornet", "standard", "f_correction", "reweight")


MAX_HELDOUT_ROWS = 5_000
"""Most held-out samples: their accuracy then has a standard error of at most .007."""

SCORED = 0.35
"""A row's forward pass alone, as a share of a training step (measured)."""
JUDGING = 0.25
"""Share of a limited search's work that judging its trials may be."""


@dataclass(frozen=True, kw_only=True)
class CoteachingConfig(AveragedConfig):
    """Two networks that teach each other their small-loss samples, under a searched keep rate R(t)."""

    variant: str = "coteaching"
    """``coteaching``, or a relative: ``coteaching_plus``, ``decoupling``, ``mentornet`` (self-paced),
    ``standard``, ``f_correction``, ``reweight`` (L2RW, needs trusted samples)."""
    width: int | None = None
    """Width of the network, narrower or wider than published; None: the published width."""
    dropout: bool = True
    """False switches the network's own dropout off (the released code's cnn9 under PyTorch 0.3)."""
    standardize: bool = True
    """False feeds pixels in [0, 1], as published."""

    # --- R(t) ---
    keep_schedule: str = "searched"
    """``"searched"`` (S2E) or ``"coteaching"`` (Eq. 4)."""
    noise_rate: float | None = None
    """tau of Eq. 4 in [0, 1). None: estimated from the losses (a mixture of two Gaussians)."""
    ramp_epochs: float | None = None
    """t_k of Eq. 4. None: 10, at most a third of the epochs (measured)."""
    ramp_exponent: float = 1.0
    """c of Eq. 4, above 0."""
    warmup_epochs: int = 1
    """First epochs with R = 1, both in the search and in the final training. The search trains them once and
    every trial goes on from there: with 1 that changes nothing for spaces with R(0) = 1; more is a stated
    restriction of the space. 0: nothing is shared."""

    # --- the search ---
    space: str = "paper"
    """``paper``: S2E's space as printed; ``code``: as coded; ``co``: Eq. 4 with its three numbers free."""
    search_rule: str = "newton"
    """``newton`` (S2E), ``natural``, ``gradient`` or ``random``."""
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
    search_repeats: int = 1
    """Seeds that each trial's accuracy is averaged over."""
    anchors: tuple[float, ...] = (0.2, 0.45)
    """Values of tau whose Eq. 4 competes with the searched schedules: the search never does worse on the
    validation rows. Each costs one trial. Published: none."""
    objective: str = "accuracy"
    """What the search seeks on the validation rows: the largest ``"accuracy"``, or the smallest ``"loss"`` (Eq. 2
    as printed). Measured, the loss prefers schedules that drop nothing; without ties, it takes the best one."""
    objective_epochs: int = 3
    """The accuracy of a trial is the mean over this many last epochs (small validation sets are noisy)."""
    min_trusted: int = 100
    """With at least this many trusted samples, the search maximises their accuracy and trials do not train on
    them. With fewer it is the accuracy on held-out given labels."""
    heldout_share: float = 0.1
    """Share of the labeled samples held out of the trials where trusted ones are too few, in (0, 0.5]; what
    ``search_rows`` leaves over joins them (5,000 at most). The final training uses every labeled sample. Where
    ``search_rows`` is set, trials judged by trusted samples train on no more than the rest of this share."""
    tie_margin: float = 0.5
    """Schedules within this many standard errors of the best validation accuracy count as equal, and the one that
    drops most is taken: dropping too much costs the ranking little, too little much (measured: AUROC
    .993 for .996 and .68 for .98) and some test accuracy. Published: 0, the most accurate one."""
    step_size: float | None = None
    """delta of Eq. 13; None: set by the search rule."""

    # --- the loop as published ---
    drop_last: bool = False
    """Skip the last batch if it is not full; published True."""
    max_batches: int | None = None
    """Largest number of batches per epoch; the released code has 401."""
    untrained_epoch_zero: bool = False
    """Epoch 0 only evaluates the random networks (so 200 epochs train 199 times); published True."""
    tail_start: float = LINEAR_TAIL_START
    """Share of the epochs after which ``linear_tail`` starts to fall: 0.4; 0.5 for CIFAR-100."""
    late_beta1: float | None = None
    """Adam's beta1 from ``tail_start`` on: 0.1 in Co-teaching's own code; None keeps 0.9 (S2E)."""
    rank_epochs: int = 5
    """Last epochs whose evaluation losses make ``loss_rank``; published runs: 20."""
    plus_start_epoch: int = 0
    """Co-teaching+: first epoch of the disagreement rule. MNIST 0, CIFAR-10 20, CIFAR-100 5."""
    plus_gate_steps: int = 5000
    """Co-teaching+: steps during which a batch without disagreement is learned from in full."""

    # --- what the released codes do instead; see the method page ---
    legacy_ramp: bool = False
    """Eq. 4 as in the released code: the exponent acts on tau."""
    legacy_loss_scale: bool = False
    """Divide the mean of the kept losses by their number again."""
    legacy_plus: bool = False
    """Co-teaching+: cross-entropy of softmax outputs."""

    def __post_init__(self) -> None:
        # JSON has no tuples; a config built from provenance equals the one it came from.
        object.__setattr__(self, "anchors", tuple(self.anchors))
        super().__post_init__()

    def problems(self) -> list[str]:
        found = [
            *super().problems(),
            *one_of(self, "variant", VARIANTS),
            *one_of(self, "keep_schedule", ("searched", "coteaching")),
            *one_of(self, "space", SPACES),
            *one_of(self, "search_rule", RULES),
            *one_of(self, "objective", ("accuracy", "loss")),
            *at_least(self, 1, "search_iterations", "search_samples", "search_epochs", "search_repeats"),
            *at_least(self, 1, "objective_epochs", "rank_epochs"),
            *at_least(
                self, 0, "warmup_epochs", "min_trusted", "tie_margin", "plus_start_epoch", "plus_gate_steps"
            ),
            *within(self, 0.01, 0.5, "heldout_share"),
            *within(self, 0.0, 0.99, "tail_start"),
        ]
        if self.search_share is not None:
            found += within(self, 0.01, 0.9, "search_share")
        for name in ("search_rows", "max_batches", "width"):
            value = getattr(self, name)
            if value is not None and value < 1:
                found.append(f"{name} is {value}, it must be at least 1 or None")
        for name, rates in (("noise_rate", (self.noise_rate,)), ("anchors", self.anchors)):
            found += [
                f"{name} holds {rate}, it must be 0 to 0.99"
                for rate in rates
                if rate is not None and not 0.0 <= rate <= 0.99
            ]
        for name in ("ramp_epochs", "step_size", "ramp_exponent"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                found.append(f"{name} is {value}, it must be above 0")
        searched = self.is_scheduled and self.keep_schedule == "searched"
        if searched and self.warmup_epochs >= self.search_epochs:
            found.append(
                f"warmup_epochs is {self.warmup_epochs} and search_epochs {self.search_epochs}, so that no trial "
                "would train under its own schedule: raise search_epochs, lower warmup_epochs, or set "
                "keep_schedule to 'coteaching'"
            )
        if self.untrained_epoch_zero and self.epochs == 1:
            found.append(
                "epochs is 1 and untrained_epoch_zero leaves it untrained: set epochs to 2 or more, or "
                "untrained_epoch_zero to False"
            )
        return found

    @classmethod
    def preset(cls, name: str) -> CoteachingConfig:
        """``quick``: two minutes for 2,000 small images on one core; ``standard``: for a GPU; ``paper``: S2E's.

        ``quick`` can pay for six trials: four of Eq. 4 and two drawn from S2E's space. On 4,000 rows of features
        (three seeds) that found as much of human noise as two rounds of Newton's three and two of Eq. 4 with no
        limit (AUROC .942, .942), more of pair flips (.768, .738) and asymmetric noise (.865, .834), in two thirds
        of the time. Before Newton's step can do better than chance it needs rounds that are not there.

        Co-teaching's own publication: ``paper`` with network ``cnn9``, ``keep_schedule="coteaching"``, the
        ``noise_rate`` known and ``late_beta1=0.1``.
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
            standardize=False,
            drop_last=True,
            max_batches=401,
            untrained_epoch_zero=True,
            warmup_epochs=0,
            ramp_epochs=10.0,
            rank_epochs=20,
            search_iterations=10,
            search_samples=6,
            search_epochs=200,
            objective_epochs=1,
            tie_margin=0.0,
            anchors=(),
            trainings=1,
        )

    def work_of_one(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        one = super().work_of_one(num_rows, num_classes, on_features=on_features)
        trained = one.trained * len(self.stages)
        scored = one.scored + self.rank_epochs * num_rows
        if self.is_scheduled and self.keep_schedule == "searched":
            rows, judges = self.search_size(num_rows)
            trained += self.trial_passes * rows
            scored += self.judge_passes * judges
        return Work(self.num_networks * trained, self.num_networks * scored)

    @property
    def trial_passes(self) -> int:
        """How often the search trains on each of its rows."""
        trials = self.search_iterations * self.search_samples + len(self.anchors)
        each = self.search_epochs - self.warmup_epochs
        return self.search_repeats * (self.warmup_epochs + trials * each)

    @property
    def judge_passes(self) -> int:
        """How often the search looks at each row that judges its trials."""
        trials = self.search_iterations * self.search_samples + len(self.anchors)
        return self.search_repeats * trials * min(self.objective_epochs, self.search_epochs)

    def search_size(self, num_labeled: int, num_judges: int | None = None) -> tuple[int, int]:
        """Rows that trials train on, and held-out rows that judge them.

        Args:
            num_labeled: labeled samples.
            num_judges: where trusted samples judge, how many; they do so whatever it costs. None: held-out ones do.
        """
        heldout = max(1, round(self.heldout_share * num_labeled))
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
        training = self.epochs * len(self.stages) + SCORED * (self.views + self.rank_epochs)
        limit = num_labeled * training * self.search_share / (1 - self.search_share)
        if num_judges is None:
            paid = int(JUDGING * limit / (SCORED * self.judge_passes))
            judges = max(heldout, min(paid, num_labeled // 2, MAX_HELDOUT_ROWS))
        left = limit - SCORED * self.judge_passes * judges
        return max(1, min(rows, num_labeled - judges, int(left / self.trial_passes))), judges

    @property
    def num_networks(self) -> int:
        """G: two that teach each other, or one."""
        return 2 if self.variant in PAIR_VARIANTS else 1

    @property
    def stages(self) -> tuple[str, ...]:
        """The trainings after the search: F-correction estimates T with a plain one first."""
        return ("estimate", "train") if self.variant == "f_correction" else ("train",)

    @property
    def is_scheduled(self) -> bool:
        """Whether the variant has a keep rate."""
        return self.variant in SCHEDULED_VARIANTS

    def coteaching_curve(self, noise_rate: float, t: FloatArray) -> FloatArray:
        """Eq. 4 at times t (E,) of this config's full run."""
        ramp = min(10.0, self.epochs / 3) if self.ramp_epochs is None else self.ramp_epochs
        return coteaching_keep_rate(
            t,
            noise_rate=noise_rate,
            ramp_epochs=ramp,
            exponent=self.ramp_exponent,
            legacy_ramp=self.legacy_ramp,
        )

    def learning_rate_of(self, epoch: int, num_epochs: int) -> float:
        """Learning rate of ``epoch`` in a training of ``num_epochs``."""
        if self.schedule == "linear_tail":
            start = self.tail_start * num_epochs
            return self.learning_rate * min(1.0, (num_epochs - epoch) / (num_epochs - start))
        return learning_rate_at(self, epoch, num_epochs)

    def adam_betas_of(self, epoch: int, num_epochs: int) -> tuple[float, float]:
        """Adam's betas of ``epoch`` in a training of ``num_epochs``."""
        is_late = self.late_beta1 is not None and epoch >= self.tail_start * num_epochs
        return (self.late_beta1 if is_late and self.late_beta1 is not None else 0.9), 0.999
