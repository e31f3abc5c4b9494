"""Whole training steps of the regressors against their formulas written out, in float64, for every setting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from engines.choicenet.regression import fit_regression, judge_targets
from engines.choicenet.regression_config import RegressionConfig

from tests.engines.literal_choicenet import LiteralRegression, head, outer
from tests.engines.literal_double import Steps, assert_same, in_double, named_start, parameters

SEED = 2


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
        {"lambda_fit": 0.7, "lambda_nll": 0.4, "rho_ref": 0.8, "optimizer": "adam", "hidden": ()},
        {"ramped": True, "kl_form": "paper", "rho_ref": 0.9, "num_steps": 8},
        {"sharing": "independent", "outer": "full", "rho_ref": 0.7},
        {"rho_form": "code_exact", "variance_form": "code_exact", "rho_ref": 0.99, "batch_size": 20},
        {"rho_form": "sigmoid", "kl_form": "code", "inverse_precision": 0.2, "log_weight_variance": -1.0},
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
    """(14) and (15) with densities in place of probabilities, rho_1 = 1 and no noise."""
    (x, y), config = table(), settings(rho_ref=0.8)
    with in_double():
        network = fit_regression(x, y, config, seed=SEED, device="cpu")
        literal = LiteralRegression(x, y, config, SEED, network.state_dict())
        judged = judge_targets(network, x, y)
        with torch.no_grad():
            h = literal.base(dict(literal.w), literal.x, training=False)
            said = head(dict(literal.w), "head.", h, config, training=False)
            for i, one in enumerate(said):
                assert one.rho is not None
                weights = []
                for k in range(3):
                    var = outer(one.rho[k], config.outer) ** 2 * one.weight_noise + one.variance[k]
                    fit = -((literal.y[i] - one.means[k]) ** 2 / (2 * var) + (2 * math.pi * var).log() / 2)
                    weights.append(float(one.pi[k]) * math.exp(float(fit.sum())))
                gamma = np.array(weights) / sum(weights)
                assert judged.gamma_1[i] == pytest.approx(gamma[0], rel=1e-6, abs=1e-9)
                assert judged.rho[i] == pytest.approx(float(gamma @ one.rho.numpy()), rel=1e-6, abs=1e-9)
                far = float(((literal.y[i] - one.target) ** 2).sum().sqrt())
                assert judged.residual[i] == pytest.approx(far, rel=1e-6)
