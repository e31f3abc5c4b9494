"""The settings of an engine that trains on numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from engines.shared.config import LoopConfig, at_least, check_preset
from engines.shared.out_of_fold import FOLDS_ON_FEATURES
from engines.shared.work import Work

LEAST_STEPS = 400
"""Steps of a network at least, however few rows there are: with 442 rows and 40 epochs a network of either kind had
not found the function yet."""


@dataclass(frozen=True, kw_only=True)
class NumberConfig(LoopConfig):
    """The shared loop on numbers, and the components of the predicted mixture."""

    epochs: int = 30
    """Passes over the rows, at least 1; more where that would be fewer than 400 steps."""
    batch_size: int = 64
    """Rows per step, at least 2."""
    augment: str = "shift"
    """As for classes. ``"auto"`` also mirrors images, which changes an angle or a direction."""
    views: int = 1
    """Views of each sample in the final pass; of images more than one mirrors them too."""
    num_components: int = 5
    """Components of the mixture, at least 1."""
    folds: int = 3
    """Parts of the rows, each judged by a network that was trained on the others; 1: one network trains on all and
    judges what it learned."""

    def problems(self) -> list[str]:
        found = [*super().problems(), *at_least(self, 1, "folds", "num_components")]
        if self.precision != "float32":
            found.append("precision must be 'float32': a small deviation is lost in another")
        return found

    def work(self, num_rows: int, num_classes: int, *, on_features: bool) -> Work:
        del num_classes, on_features
        trained = num_rows if self.folds == 1 else num_rows * (self.folds - 1)
        return Work(self.epochs * trained, self.views * num_rows)

    def for_features(self) -> Self:
        """More folds, which are cheap there, and all views."""
        return replace(super().for_features(), folds=FOLDS_ON_FEATURES, views=4)

    def for_rows(self, num_rows: int) -> Self:
        """With so many epochs that ``num_rows`` labeled rows make ``LEAST_STEPS`` steps of every network."""
        trained = num_rows if self.folds == 1 else num_rows * (self.folds - 1) // self.folds
        steps = max(1, math.ceil(trained / self.batch_size))
        return replace(self, epochs=max(self.epochs, math.ceil(LEAST_STEPS / steps)))

    @classmethod
    def preset(cls, name: str) -> Self:
        """``quick``: minutes on a laptop for some thousand images; ``standard`` and ``paper``: longer."""
        check_preset(name)
        return cls(epochs={"quick": 30, "standard": 90, "paper": 300}[name])
