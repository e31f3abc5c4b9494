"""ChoiceNet on numbers: the Cholesky block with the loss of Equation (7) of the paper.

A number that the target component cannot explain is left to components of smaller correlation; what the number
should be is the target component's mean m(x). The loss is lambda_1 ||y - mu_1||² minus lambda_2 log sum_k pi_k
N(y; mu_k, Sigma_k), lambda_2 = 1, plus the KL term (11) and L2 (the paper prints a plus before the
log-likelihood, a slip).

Round numbers in brackets are equations of ``cholesky.py``.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from engines.choicenet.cholesky import CholeskyBlock, Mixture, correlation_kl
from engines.choicenet.config import ChoiceNetNumberConfig
from engines.contract import Checkpoint, NumberData, NumberResult, OnEpoch
from engines.regression import NumberFold, Said, mixture_log_density, train_numbers
from engines.shared.device import memory_errors_explained

HEAD_SCALE = 0.1
"""Standard deviation of the head's weights at the start."""


@memory_errors_explained()
def train(
    data: NumberData,
    config: ChoiceNetNumberConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
) -> NumberResult:
    """Train a network with the Cholesky block a fold and judge every number; see ``loop.train_numbers``."""
    head = partial(
        CholeskyBlock,
        num_outputs=1,
        num_components=config.num_components,
        rho_ref=1.0,
        log_weight_variance=0.0,
        inverse_precision=config.inverse_precision,
        head_scale=HEAD_SCALE,
    )
    return train_numbers(
        "choicenet",
        data,
        config,
        head,
        step,
        read,
        seed=seed,
        device=device,
        on_epoch=on_epoch,
        checkpoint=checkpoint,
    )


def step(fold: NumberFold, index: Tensor) -> Tensor:
    """One step on the rows at ``index``, by one draw of the outputs."""
    config = fold.config
    assert isinstance(config, ChoiceNetNumberConfig)
    inputs, numbers = fold.batch(index)
    _, mixture = fold.network(inputs)
    loss = regression_loss(
        mixture,
        numbers,
        fold.noise,
        lambda_fit=config.lambda_fit,
    )
    kl = correlation_kl(mixture.rho, mixture.log_pi, form=config.kl_form)
    return fold.descend((loss + config.lambda_kl * kl).mean())


def read(mixture: Mixture) -> Said:
    """The target component's mean is what the number should be."""
    return Said(mixture.target[:, 0], mixture.log_pi, mixture.means(), mixture.total_variances(), mixture.rho)


def regression_loss(
    mixture: Mixture,
    targets: Tensor,
    generator: torch.Generator | None,
    *,
    lambda_fit: float,
) -> Tensor:
    """(B,) first two terms of the loss, for one draw of W* and Z.

    Args:
        mixture: training form, rho_1 = rho_ref.
        targets: (B, D).
        generator: randomness of the draw.
        lambda_fit: lambda_1, weight of ||y - mu_1||².
    """

    def normal(*size: int) -> Tensor:
        like = mixture.target
        return torch.randn(size, generator=generator, device=like.device, dtype=like.dtype)

    batch, outputs = targets.shape
    means = mixture.sample_means((normal(batch, outputs), normal(batch, outputs)))
    fit = (targets - means[:, 0]).square().sum(dim=1)
    density = mixture_log_density(targets, mixture.log_pi, means, mixture.output_variances())
    return lambda_fit * fit - density
