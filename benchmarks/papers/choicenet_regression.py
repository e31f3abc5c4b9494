"""ChoiceNet for numeric targets: the same Cholesky block with loss (12), and the baselines beside it.

Paper: "Task Agnostic Robust Learning on Corrupt Outputs by Correlation-Guided Mixture Density Networks",
CVPR 2020, https://arxiv.org/abs/1805.06431. A target value that the target component cannot explain is
left to components of smaller correlation; the prediction is the target component's mean m(x).

Loss (12) is lambda_1 mean ||y - mu_1||² minus lambda_2 mean log sum_k pi_k N(y; mu_k, Sigma_k) plus KL and
L2 (the paper's Equation 7 prints a plus before the log-likelihood, a slip). Baselines: mixture density
network, Tukey biweight with and without a leak, L1, L2. Data: the paper's one-dimensional functions with a
share of the targets replaced by uniform values.

Arrays in, arrays out, full batches of small tables. The loss is that of the audit of numbers
(``engines.choicenet.numbers``).
Letters: N samples, P inputs, D target dimensions, K components, B batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.papers.choicenet_regression_config import RegressionConfig
from engines.choicenet.cholesky import CholeskyBlock, Mixture, correlation_kl
from engines.choicenet.numbers import regression_loss
from engines.contract import EngineInputError
from engines.regression import densities
from engines.regression.densities import DensityHead, component_log_density, mixture_log_density
from engines.shared.device import make_generator, resolve_device, seeded_init

TARGET_FUNCTIONS = ("cosexp", "linear", "step")
TUKEY_CUTOFF = 4.6851
"""95 % efficiency for Gaussian residuals."""
MAD_TO_DEVIATION = 1.4826


class RegressionData(NamedTuple):
    """A one-dimensional problem with replaced targets."""

    inputs: NDArray[np.float32]
    """(N, 1)."""
    given_targets: NDArray[np.float32]
    """(N, 1), outliers included."""
    true_targets: NDArray[np.float32]
    """(N, 1)."""
    is_outlier: NDArray[np.bool_]
    """(N,)."""


class TargetJudgement(NamedTuple):
    """What a fitted ChoiceNet says about given numeric targets, (N,) float32 each."""

    rho: NDArray[np.float32]
    """rho_label (15) in [-1, 1], high = clean."""
    gamma_1: NDArray[np.float32]
    """Posterior of the target component (14), high = clean."""
    residual: NDArray[np.float32]
    """||y - m(x)||, high = suspect."""


class RegressionNetwork(nn.Module):
    """Perceptron with one of three heads: Cholesky block, mixture density, or one linear output."""

    def __init__(self, num_inputs: int, num_outputs: int, config: RegressionConfig) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        size = num_inputs
        for units in config.hidden:
            layers += [nn.Linear(size, units), nn.BatchNorm1d(units), nn.ReLU()]
            size = units
        self.base = nn.Sequential(*layers)
        self.head: nn.Module
        if config.variant == "choicenet":
            self.head = CholeskyBlock(
                size,
                num_outputs,
                num_components=config.num_components,
                rho_ref=config.rho_ref,
                log_weight_variance=config.log_weight_variance,
                inverse_precision=config.inverse_precision,
                head_scale=config.head_scale,
            )
        elif config.variant == "mdn":
            self.head = DensityHead(size, num_outputs, num_components=config.num_components)
        else:
            self.head = nn.Linear(size, num_outputs)

    def predict(self, inputs: Tensor) -> Tensor:
        """(N, D): the target component's mean, the likeliest component's mean, or the output."""
        said = self.head(self.base(inputs))
        if isinstance(said, Mixture):
            return said.target
        if isinstance(said, Tensor):
            return said
        log_pi, means, _ = said
        return densities.likeliest_mean(log_pi, means)


def fit_regression(
    inputs: NDArray[np.float32],
    given_targets: NDArray[np.float32],
    config: RegressionConfig,
    *,
    seed: int = 0,
    device: str = "auto",
) -> RegressionNetwork:
    """Fit one regressor to targets of which some are wrong; in evaluation mode when returned.

    Args:
        inputs: (N, P) finite.
        given_targets: (N, D) finite.
        config: which regressor and how.
        seed: decides initialisation, batches and noise.
        device: where to train; the network comes back on the CPU.

    Raises:
        EngineInputError: shapes do not match, fewer than two samples, or a value is not finite.
    """
    _check_table(inputs, given_targets)
    place = resolve_device(device)
    with seeded_init(seed, "regression"):
        network = RegressionNetwork(inputs.shape[1], given_targets.shape[1], config).to(place)
    x, y = (
        torch.from_numpy(np.array(values, dtype=np.float32)).to(place) for values in (inputs, given_targets)
    )
    kind = torch.optim.Adam if config.optimizer == "adam" else torch.optim.SGD
    optimizer = kind(network.parameters(), lr=config.learning_rate)
    order = make_generator(seed, "regression order")
    noise = make_generator(seed, "regression noise", device=place)
    network.train()
    size = min(config.batch_size, len(x))
    for step in range(config.num_steps):
        progress = step / config.num_steps
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * (
                0.01 if progress >= 0.75 else 0.1 if progress >= 0.5 else 1.0
            )
        rows = torch.randperm(len(x), generator=order)[:size].to(place)
        loss = _batch_loss(network, x[rows], y[rows], config, noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for parameter in network.parameters():
            if parameter.grad is not None:
                parameter.grad.add_(parameter.detach(), alpha=config.weight_decay)
        torch.nn.utils.clip_grad_value_(network.parameters(), 1.0)
        optimizer.step()
    return network.eval().cpu()


@torch.no_grad()
def predict_targets(network: RegressionNetwork, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, D) predictions for inputs (N, P)."""
    return network.predict(_tensor(inputs)).numpy()


@torch.no_grad()
def judge_targets(
    network: RegressionNetwork, inputs: NDArray[np.float32], given_targets: NDArray[np.float32]
) -> TargetJudgement:
    """Signals (14)-(15) of given targets, with densities instead of probabilities.

    Raises:
        EngineInputError: the network is a baseline, which has no correlations.
    """
    x, y = _tensor(inputs), _tensor(given_targets)
    mixture = network.head(network.base(x))
    if not isinstance(mixture, Mixture):
        raise EngineInputError("only a network fitted with variant 'choicenet' judges targets by rho.")
    by_component = component_log_density(y, mixture.means(), mixture.total_variances())
    gamma = torch.softmax(mixture.log_pi + by_component, dim=1)
    return TargetJudgement(
        rho=(gamma * mixture.rho).sum(dim=1).numpy(),
        gamma_1=gamma[:, 0].numpy(),
        residual=(y - mixture.target).square().sum(dim=1).sqrt().numpy(),
    )


@torch.no_grad()
def mixture_tail(
    network: RegressionNetwork, inputs: NDArray[np.float32], given_targets: NDArray[np.float32]
) -> NDArray[np.float32]:
    """How far out a given number lies in the predicted mixture: (N,) in [0, 1], high = clean.

    As ``densities.mixture_tail``, with the variances of (9); for one target dimension.

    Raises:
        EngineInputError: the network predicts no mixture, or more than one number.
    """
    x, y = _tensor(inputs), _tensor(given_targets)
    said = network.head(network.base(x))
    if isinstance(said, Tensor) or y.shape[1] != 1:
        raise EngineInputError(
            "a tail needs a network fitted with variant 'choicenet' or 'mdn' to one number."
        )
    if isinstance(said, Mixture):
        said = said.log_pi, said.means(), said.total_variances()
    return densities.mixture_tail(y, *said).numpy()


def _batch_loss(
    network: RegressionNetwork,
    inputs: Tensor,
    targets: Tensor,
    config: RegressionConfig,
    noise: torch.Generator,
) -> Tensor:
    said = network.head(network.base(inputs))
    if config.variant == "choicenet":
        loss = regression_loss(said, targets, noise, lambda_fit=config.lambda_fit)
        kl = correlation_kl(said.rho, said.log_pi, form="code_regression")
        return (loss + config.lambda_kl * kl).mean()
    if config.variant == "mdn":
        return -mixture_log_density(targets, *said).mean()
    residuals = targets - said
    if config.variant == "l2":
        return residuals.square().mean()
    if config.variant == "l1":
        return residuals.abs().mean()
    return tukey_loss(residuals, leak=0.01 if config.variant == "leaky_robust" else 0.0).mean()


def tukey_loss(residuals: Tensor, *, leak: float = 0.0) -> Tensor:
    """Tukey's biweight of residuals (B, D) scaled by their median absolute deviation, (B, D).

    c²/6 [1 - (1 - (r/c)²)³] inside |r| <= c and c²/6 + leak (|r| - c) outside; ``leak`` 0 gives an outlier
    no gradient, the leaky form a small one. The scale is a constant of the batch.
    """
    flat = residuals.detach()
    deviation = MAD_TO_DEVIATION * (flat - flat.median()).abs().median()
    scaled = residuals / deviation.clamp_min(1e-6)
    share = (scaled / TUKEY_CUTOFF).square().clamp(max=1.0)
    inside = TUKEY_CUTOFF**2 / 6.0 * (1.0 - (1.0 - share) ** 3)
    return inside + leak * (scaled.abs() - TUKEY_CUTOFF).clamp_min(0.0)


def make_regression_data(
    function: str, *, outlier_rate: float, seed: int, form: str = "paper"
) -> RegressionData:
    """The 1-D problems: x ~ U(-3, 3), a share of the targets replaced by uniform values.

    Args:
        function: ``cosexp`` cos(pi x / 2) exp(-(x / 2)²), ``linear`` x / 2, ``step`` +1 on [-1, 1) else -1.
        outlier_rate: share of replaced targets in [0, 1], exact.
        seed: decides everything.
        form: ``paper``: 1,000 samples, outliers in [-1.5, 2.5]; ``code``: 300, [-1.5, 3.0], and measurement
            noise of variance 1e-6.

    Raises:
        EngineInputError: unknown function or form, or a rate outside [0, 1].
    """
    if function not in TARGET_FUNCTIONS or form not in ("paper", "code") or not 0 <= outlier_rate <= 1:
        raise EngineInputError(
            f"regression data {function!r}, form {form!r}, rate {outlier_rate}: use one of "
            f"{', '.join(TARGET_FUNCTIONS)}, form paper or code, and a rate in [0, 1]."
        )
    num, top = (1000, 2.5) if form == "paper" else (300, 3.0)
    random = np.random.default_rng(seed)
    x = random.uniform(-3.0, 3.0, (num, 1))
    true = {
        "cosexp": np.cos(np.pi * x / 2) * np.exp(-((x / 2) ** 2)),
        "linear": 0.5 * x,
        "step": np.where((x >= -1) & (x < 1), 1.0, -1.0),
    }[function]
    given = true + (random.normal(0.0, 1e-3, true.shape) if form == "code" else 0.0)
    is_outlier = np.zeros(num, dtype=bool)
    is_outlier[random.permutation(num)[: round(outlier_rate * num)]] = True
    given = np.where(is_outlier[:, None], random.uniform(-1.5, top, true.shape), given)
    return RegressionData(x.astype(np.float32), given.astype(np.float32), true.astype(np.float32), is_outlier)


def _tensor(values: NDArray[np.float32]) -> Tensor:
    return torch.from_numpy(np.array(values, dtype=np.float32))


def _check_table(inputs: NDArray[np.float32], targets: NDArray[np.float32]) -> None:
    if inputs.ndim != 2 or targets.ndim != 2 or len(inputs) != len(targets) or len(inputs) < 2:
        raise EngineInputError(
            f"inputs must be (N, P) and given_targets (N, D) with the same N of at least 2, "
            f"got {inputs.shape} and {targets.shape}."
        )
    for name, values in (("inputs", inputs), ("given_targets", targets)):
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            raise EngineInputError(f"{name}[{bad[0]}] is not finite ({len(bad)} such rows).")
