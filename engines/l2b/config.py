"""The settings of L2B: what each field means, its range, and where its default comes from."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from engines.contract import EngineInputError
from engines.shared.config import at_least, check_preset, learning_rate_at, one_of
from engines.shared.out_of_fold import FoldedConfig
from engines.shared.selection import MIXTURE_STEPS
from engines.shared.work import PROBE_ROWS, Work, cost_of_steps

BASES = ("plain", "divide_mix", "unicon", "c2d")
META_LOSSES = ("evaluation", "training")
SELF_SUPERVISED_EPOCHS = 20
"""C2D's epochs without labels, before ``epochs`` begin (published: 500 to 1,000)."""
META_STEP = {False: 2.8, True: 7.5}
"""Plain steps that a meta step takes as long as, on images and on features (measured)."""
STEP_IN_ROWS = 300
"""Rows of features that a step takes as long as beside its own: its meta batch (measured with 128 and 500 rows)."""


@dataclass(frozen=True, kw_only=True)
class L2BConfig(FoldedConfig):
    """The shared loop, the meta step and the meta set.

    The meta set: the trusted samples where every class has at least 5, else small losses.
    """

    base: str = "plain"
    """What L2B's step is put on: ``plain`` training of one network, or two networks under ``divide_mix``,
    ``unicon`` or ``c2d`` (images only; about 15 times the work of plain cross-entropy)."""
    warmup_epochs: int = 4
    """Epochs of plain cross-entropy at the start, at least 0; never more than half of ``epochs``."""
    meta_batch_size: int = 64
    """Samples of a meta batch, at least 2; fewer make a step faster."""
    meta_per_class: int = 50
    """Largest number of samples per class in a meta set made from small losses."""
    meta_losses: str = "evaluation"
    """Losses that the mixture is fitted to: of a pass over all samples before each epoch (``evaluation``,
    DivideMix's), or of each sample's latest step, which costs nothing (``training``)."""
    meta_mixture_steps: int = MIXTURE_STEPS
    """Largest number of EM steps of the mixture, at least 1: 10 (paper); with 100 it converges."""
    train_on_trusted: bool = True
    """False: trusted samples are used as meta set only (paper)."""
    clip_norm: float = 0.8
    """Largest global gradient norm; 0 = no clipping (published: 0.25 CIFAR-10, 0.8 CIFAR-100)."""
    late_epochs: int = 20
    """Last epochs whose visits are averaged into the signals, at least 1."""

    @property
    def uses_step_losses(self) -> bool:
        """Return whether the mixture is fitted to the losses of the latest steps."""
        return self.meta_losses == "training"

    def problems(self) -> list[str]:
        return [
            *super().problems(),
            *one_of(self, "base", BASES),
            *one_of(self, "meta_losses", META_LOSSES),
            *at_least(self, 2, "meta_batch_size"),
            *at_least(self, 1, "meta_per_class", "meta_mixture_steps", "late_epochs"),
            *at_least(self, 0, "clip_norm", "warmup_epochs"),
        ]

    @property
    def first_labeled_epoch(self) -> int:
        """Epochs without labels that a run begins with."""
        return SELF_SUPERVISED_EPOCHS if self.base == "c2d" else 0

    def work_of_one(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        one = super().work_of_one(num_rows, num_classes, on_features=on_features)
        if self.base != "plain":
            return self._work_of_bases(num_rows)
        late = self.epochs - self.first_meta_epoch
        # 1: the last pass for alpha_residual
        plain = self.first_meta_epoch + late * META_STEP[on_features] + 1
        passes = 0 if self.uses_step_losses else late + (self.views > 1)
        if on_features:
            plain *= cost_of_steps(self.batch_size_for(num_rows), PROBE_ROWS, STEP_IN_ROWS)
        return Work(plain * num_rows, one.scored + passes * num_rows)

    def _work_of_bases(self, num_rows: int) -> Work:
        """At most: an epoch is a pass over the labeled part, here all samples, with as many unlabeled ones."""
        late = self.epochs - self.first_meta_epoch
        is_strong = self.base == "unicon"
        trained: float = 2 * (self.first_meta_epoch + 4 * late) + 2 * self.first_labeled_epoch
        if is_strong:
            trained += 2 * 2 * late
        trained += 4 * late * META_STEP[False]
        # Both networks guess: own words on four views, the partner's on two; and a look at all samples.
        scored = 2 * (6 + 1 + is_strong) * late + 2 * self.views
        return Work(trained * num_rows, scored * num_rows)

    def for_features(self) -> L2BConfig:
        """An epoch of at least 24 steps, so smaller batches below 3,072 samples.

        Measured on features of a small network in training (one seed; AUROC and average precision with batches of
        128 and with this): three draws of 341 photos .680 and .691, .310 and .371; human labels of 341 and of 1,000
        rows of CIFAR-10 .876 and .873, .477 and .499; pair flips there .857 and .856, .593 and .617. Co-teaching,
        ChoiceNet and the plain network gained on the photos and lost as much elsewhere (Co-teaching on 341 rows
        with pair flips .878 to .811), so they keep their batches.
        """
        return dataclasses.replace(super().for_features(), least_steps=24, fewest_steps=1)

    @property
    def first_meta_epoch(self) -> int:
        """Epoch (0-based) at which meta steps begin: after the warm-up, in the first half at the latest."""
        return min(self.warmup_epochs, self.epochs // 2)

    @classmethod
    def schedules(cls) -> tuple[str, ...]:
        return (*super().schedules(), "cosine_to_zero")

    @classmethod
    def preset(cls, name: str) -> L2BConfig:
        """``quick``: minutes on a laptop; ``standard``: 45 epochs; ``paper``: as printed for CIFAR-10.

        The released code takes v after the optimizer's momentum and weight decay, not before them, and for
        ISIC 2019 a softmax in place of eq. (8).
        """
        check_preset(name)
        if name == "quick":
            return cls(
                epochs=15, learning_rate=2e-3, late_epochs=6, precision="bfloat16", meta_losses="training"
            )
        if name == "standard":
            return cls(
                epochs=45, learning_rate=2e-3, warmup_epochs=6, meta_per_class=100, precision="bfloat16",
                meta_losses="training",
            )  # fmt: skip
        return cls(
            network="preact_resnet18", epochs=300, warmup_epochs=10, batch_size=512, meta_batch_size=512,
            optimizer="sgd", learning_rate=0.15, weight_decay=5e-4, schedule="cosine_to_zero",
            augment="crop_flip", clip_norm=0.25, train_on_trusted=False,
            meta_per_class=100, meta_mixture_steps=10, views=1,
        )  # fmt: skip

    @classmethod
    def paper(cls, dataset: str) -> L2BConfig:
        """The publication's settings for one of ``PUBLISHED``: ``--set l2b.paper=cifar100`` from the command line.

        ISIC 2019 begins with ImageNet's weights, a file that ``weights`` names. Departures: the crops of CIFAR
        have a mirrored border where the paper pads with zeros; means and deviations are those of the images at
        hand.

        Raises:
            EngineInputError: the paper has no such data set.
        """
        if dataset not in PUBLISHED:
            raise EngineInputError(
                f"L2B's paper has no data set {dataset!r}; choose one of {', '.join(PUBLISHED)}."
            )
        return dataclasses.replace(cls.preset("paper"), **PUBLISHED[dataset])


PUBLISHED: dict[str, dict[str, Any]] = {
    "cifar10": {},
    "cifar100": {"batch_size": 256, "meta_batch_size": 256, "clip_norm": 0.8, "meta_per_class": 10},
    "isic2019": {
        "network": "torchvision:resnet50", "trunk_rate": 1.0, "batch_size": 64, "meta_batch_size": 64,
        "learning_rate": 0.01, "epochs": 30, "warmup_epochs": 1, "clip_norm": 0.8, "meta_per_class": 80,
        "augment": "turn_crop_flip",
    },
}  # fmt: skip
"""What each data set of the paper changes in the preset ``paper``."""


def l2b_learning_rate(config: L2BConfig, epoch: int) -> float:
    """The shared schedules, and the published cosine that ends at 0 after the last epoch."""
    if config.schedule == "cosine_to_zero":
        return config.learning_rate * 0.5 * (1 + math.cos(math.pi * epoch / config.epochs))
    return learning_rate_at(config, epoch)
