"""Whole training steps of the regressors against their formulas written out, in float64, for every setting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks.papers.choicenet_regression import fit_regression, judge_targets
from benchmarks.papers.choicenet_regression_config import RegressionConfig
from engines.shared.device import make_generator
from tests.engines.literal_choicenet import Weights, correlation_kl, drawn, head, outer, softmax
from tests.engines.literal_double import (
    BUFFERS,
    Optimizer,
    Steps,
    assert_same,
    batch_norm,
    in_double,
    learning_rate,
    linear,
    named_start,
    parameters,
    relu,
)

SEED = 2


class LiteralRegression:
    """One regressor by name of parameter, and its training."""

    def __init__(self, x: np.ndarray, y: np.ndarray, config: RegressionConfig, seed: int, w: Weights) -> None:
        self.config, self.w = config, dict(w)
        self.x, self.y = (torch.from_numpy(values.copy()).double() for values in (x, y))
        self.order = make_generator(seed, "regression order")
        self.noise = make_generator(seed, "regression noise")
        self.optimizer = Optimizer(config.optimizer, decay=0.0, betas=(0.9, 0.999), eps=1e-8, momentum=0.0)

    def base(self, w: Weights, x: Tensor, *, training: bool) -> Tensor:
        for layer in range(len(self.config.hidden)):
            x = linear(w, f"base.{3 * layer}", x)
            x = relu(batch_norm(w, f"base.{3 * layer + 1}", x, training=training))
        return x

    def step(self, number: int) -> None:
        """Step ``number``, counted from 0."""
        c = self.config
        rows = torch.randperm(len(self.x), generator=self.order)[: c.batch_size]
        w = {name: value.clone().requires_grad_(not name.endswith(BUFFERS)) for name, value in self.w.items()}
        leaves = {name: value for name, value in w.items() if not name.endswith(BUFFERS)}
        costs = self.costs(w, self.x[rows], self.y[rows])
        found = torch.autograd.grad(costs, list(leaves.values()), allow_unused=True)
        with torch.no_grad():
            self.w = {name: value.detach() for name, value in w.items()}
            gradients = {
                name: (gradient + c.weight_decay * self.w[name]).clamp(-1, 1)
                for name, gradient in zip(leaves, found, strict=True)
                if gradient is not None
            }
            rate = learning_rate("steps", c.learning_rate, number, c.num_steps)
            self.optimizer.step(self.w, gradients, rate)

    def costs(self, w: Weights, x: Tensor, y: Tensor) -> Tensor:
        c, h = self.config, self.base(w, x, training=True)
        size = len(x)
        if c.variant == "choicenet":
            said = head(w, "head.", h, c, training=True)
            means = drawn(said, "sqrt", "shared", self.noise, outputs=False)
            total = torch.zeros(())
            for i, one in enumerate(said):
                total = total + c.lambda_fit * ((y[i] - means[i][0]) ** 2).sum()
                total = total - self.log_density(y[i], one.pi, means[i], one.variance)
                total = total + c.lambda_kl * correlation_kl(one.rho, one.pi, "code_regression")
            return total / size
        if c.variant == "mdn":
            shape = (c.num_components, y.shape[1])
            pi = softmax(linear(w, "head.pi_head", h))
            means = linear(w, "head.mean_head", h).unflatten(1, shape)
            spread = torch.sigmoid(linear(w, "head.deviation_head", h)).unflatten(1, shape)
            total = [self.log_density(y[i], pi[i], means[i], spread[i] ** 2) for i in range(size)]
            return -torch.stack(total).mean()
        apart = (y - linear(w, "head", h)).flatten()
        if c.variant in ("l1", "l2"):
            return (apart**2 if c.variant == "l2" else apart.abs()).mean()
        middle = (len(apart) - 1) // 2
        flat = apart.detach()
        scale = 1.4826 * (flat - flat.sort().values[middle]).abs().sort().values[middle]
        cut, total = 4.6851, torch.zeros(())
        for r in apart / scale:
            if float(r.detach().abs()) <= cut:
                total = total + cut**2 / 6 * (1 - (1 - (r / cut) ** 2) ** 3)
            else:
                leak = 0.01 if c.variant == "leaky_robust" else 0.0
                total = total + cut**2 / 6 + leak * (r.abs() - cut)
        return total / len(apart)

    @staticmethod
    def log_density(y: Tensor, pi: Tensor, means: Tensor, variances: Tensor) -> Tensor:
        """log sum_k pi_k N(y; mu_k, Sigma_k) of one sample."""
        total = torch.zeros(())
        for k in range(len(pi)):
            var = variances[k] + 1e-8
            total = (
                total
                + pi[k] * ((-((y - means[k]) ** 2) / (2 * var)).exp() / (2 * math.pi * var).sqrt()).prod()
            )
        return total.log()


def table() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(8)
    x = random.normal(size=(9, 2)).astype(np.float32)
    y = (x @ random.normal(size=(2, 2)) + random.normal(size=(9, 2))).astype(np.float32)
    y[::4] += 9.0
    return x, y


def settings(**changed: Any) -> RegressionConfig:
    base: dict[str, Any] = {
        "hidden": (4, 3), "num_steps": 4, "batch_size": 7, "num_components": 3, "head_scale": 0.5,
        "weight_decay": 0.1, "lambda_kl": 0.3, "optimizer": "sgd", "learning_rate": 0.05,
    }  # fmt: skip
    return RegressionConfig(**{**base, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"lambda_fit": 0.7, "rho_ref": 0.8, "optimizer": "adam", "hidden": ()},
        {"rho_ref": 0.9, "num_steps": 8, "batch_size": 20},
        {"inverse_precision": 0.2, "log_weight_variance": -1.0},
        {"variant": "mdn"},
        {"variant": "robust"},
        {"variant": "leaky_robust"},
        {"variant": "l1"},
        {"variant": "l2", "learning_rate": 0.3},
    ],
    ids=lambda changed: ",".join(f"{name}={value}" for name, value in changed.items()) or "defaults",
)
def test_fit_regression__steps_are_those_of_the_formulas(changed: dict[str, Any]) -> None:
    (x, y), config = table(), settings(**changed)
    with in_double():
        steps = Steps()
        with steps.watched():
            network = fit_regression(x, y, config, seed=SEED, device="cpu")
        state = network.state_dict()
        literal = LiteralRegression(x, y, config, SEED, named_start(state, steps.start[0]))
        for number in range(config.num_steps):
            literal.step(number)
            wanted = parameters(literal.w)
            assert_same(dict(zip(wanted, steps.after[0][number], strict=True)), wanted, f"step {number}")
        assert len(steps.after[0]) == config.num_steps
        assert_same(state, literal.w, "fitted")


def test_judge_targets__follows_the_formulas() -> None:
    """(14) and (15) with densities instead of probabilities, rho_1 = 1 and no noise."""
    (x, y), config = table(), settings(rho_ref=0.8)
    with in_double():
        network = fit_regression(x, y, config, seed=SEED, device="cpu")
        literal = LiteralRegression(x, y, config, SEED, network.state_dict())
        judged = judge_targets(network, x, y)
        with torch.no_grad():
            h = literal.base(dict(literal.w), literal.x, training=False)
            said = head(dict(literal.w), "head.", h, config, training=False)
            for i, one in enumerate(said):
                weights = []
                for k in range(3):
                    var = outer(one.rho[k], "sqrt") ** 2 * one.weight_noise + one.variance[k]
                    fit = -((literal.y[i] - one.means[k]) ** 2 / (2 * var) + (2 * math.pi * var).log() / 2)
                    weights.append(float(one.pi[k]) * math.exp(float(fit.sum())))
                gamma = np.array(weights) / sum(weights)
                assert judged.gamma_1[i] == pytest.approx(gamma[0], rel=1e-6, abs=1e-9)
                assert judged.rho[i] == pytest.approx(float(gamma @ one.rho.numpy()), rel=1e-6, abs=1e-9)
                far = float(((literal.y[i] - one.target) ** 2).sum().sqrt())
                assert judged.residual[i] == pytest.approx(far, rel=1e-6)
