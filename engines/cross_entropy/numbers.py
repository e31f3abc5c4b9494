"""The plain witness on numbers: a mixture density network, trained by its cross-entropy, -log p(number).

Bishop 1994. It explains wrong numbers too, by components of their own, which is why it is compared with.
"""

from __future__ import annotations

from functools import partial

from torch import Tensor

from engines.contract import Checkpoint, NumberData, NumberResult, OnEpoch
from engines.regression import (
    DensityHead,
    NumberConfig,
    NumberFold,
    Said,
    likeliest_mean,
    mixture_log_density,
    train_numbers,
)
from engines.shared.device import memory_errors_explained


@memory_errors_explained()
def train(
    data: NumberData,
    config: NumberConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
) -> NumberResult:
    """Train a mixture density network a fold and judge every number; see ``loop.train_numbers``."""
    return train_numbers(
        "cross_entropy",
        data,
        config,
        partial(DensityHead, num_outputs=1, num_components=config.num_components),
        step,
        read,
        seed=seed,
        device=device,
        on_epoch=on_epoch,
        checkpoint=checkpoint,
    )


def step(fold: NumberFold, index: Tensor) -> Tensor:
    """One step on the rows at ``index``: the mean of -log p(number)."""
    inputs, numbers = fold.batch(index)
    _, said = fold.network(inputs)
    return fold.descend(-mixture_log_density(numbers, *said).mean())


def read(said: tuple[Tensor, Tensor, Tensor]) -> Said:
    """The likeliest component's mean is what the number should be."""
    log_pi, means, variances = said
    return Said(likeliest_mean(log_pi, means)[:, 0], log_pi, means, variances)
