"""Settings of ChoiceNet's regression and of the regressors beside it."""

from __future__ import annotations

from dataclasses import dataclass

from engines.contract import EngineInputError
from engines.shared.config import at_least, one_of, within

REGRESSORS = ("choicenet", "mdn", "robust", "leaky_robust", "l1", "l2")


@dataclass(frozen=True, kw_only=True)
class RegressionConfig:
    """Settings of one fit.

    The defaults are ours: the paper's block under the authors' two hidden layers and KL term, trained by Adam in
    fewer steps, with larger initial heads.
    """

    variant: str = "choicenet"
    """One of ``REGRESSORS``."""
    num_components: int = 5
    """K of the block; the mixture density baseline uses 10 in the authors' code."""
    hidden: tuple[int, ...] = (64, 64)
    """Units of the hidden layers (batch norm, ReLU): three of 64 in the paper, two in its code."""
    num_steps: int = 1500
    """Optimizer steps; the authors' code takes 30,001 of plain SGD."""
    batch_size: int = 256
    """Samples a step, at least 2."""
    learning_rate: float = 5e-3
    """First learning rate; a tenth after half of the steps, a hundredth after three quarters."""
    optimizer: str = "adam"
    """``adam``, or ``sgd`` without momentum (authors' code, learning rate 0.1)."""
    rho_ref: float = 1.0
    """Correlation of component 1 while training: 1 in the paper, 0.99 in the code."""
    head_scale: float = 0.1
    """Standard deviation of the initial weights of the rho, pi and variance heads; 0.01 in the code."""
    inverse_precision: float = 1e-2
    """tau^-1."""
    log_weight_variance: float = 0.0
    """log sigma_Z²."""
    lambda_fit: float = 0.0
    """lambda_1 of (12); lambda_2 is 1."""
    lambda_kl: float = 1e-6
    """Weight of the KL term (11)."""
    weight_decay: float = 1e-6
    """Weight of the L2 term."""

    def __post_init__(self) -> None:
        found = [
            *one_of(self, "variant", REGRESSORS),
            *one_of(self, "optimizer", ("adam", "sgd")),
            *at_least(self, 1, "num_components", "num_steps"),
            *at_least(self, 2, "batch_size"),
            *at_least(self, 0, "lambda_fit", "lambda_kl", "weight_decay", "head_scale"),
            *within(self, 1e-3, 1.0, "rho_ref"),
        ]
        if found:
            raise EngineInputError("RegressionConfig: " + "; ".join(found) + ".")
