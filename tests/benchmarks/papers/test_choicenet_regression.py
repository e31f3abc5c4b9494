"""ChoiceNet on numeric targets: densities, losses, data, and robust fits against the baselines."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from benchmarks.papers.choicenet_regression import (
    RegressionData,
    fit_regression,
    judge_targets,
    make_regression_data,
    predict_targets,
    tukey_loss,
)
from benchmarks.papers.choicenet_regression_config import REGRESSORS, RegressionConfig
from engines.choicenet.cholesky import CholeskyBlock
from engines.choicenet.numbers import regression_loss
from engines.contract import EngineInputError
from engines.regression.densities import component_log_density, mixture_log_density


def _error(data: RegressionData, config: RegressionConfig) -> float:
    network = fit_regression(data.inputs, data.given_targets, config, device="cpu")
    return float(np.sqrt(np.mean((predict_targets(network, data.inputs) - data.true_targets) ** 2)))


def test_mixture_log_density__integrates_to_one() -> None:
    grid = torch.linspace(-30.0, 30.0, 20_001, dtype=torch.float64)[:, None]
    log_pi = torch.tensor([[0.3, 0.7]]).double().log().expand(len(grid), -1)
    means = torch.tensor([[[1.0], [-2.0]]]).double().expand(len(grid), -1, -1)
    variances = torch.tensor([[[0.5], [4.0]]]).double().expand(len(grid), -1, -1)
    density = mixture_log_density(grid, log_pi, means, variances).exp()
    assert float(torch.trapezoid(density, grid[:, 0])) == pytest.approx(1.0, abs=1e-6)


def test_component_log_density__two_dimensions_by_hand() -> None:
    targets = torch.tensor([[1.0, -1.0]])
    means, variances = torch.tensor([[[0.0, 1.0]]]), torch.tensor([[[4.0, 0.25]]])
    expected = -0.5 * (1 / 4 + 4 / 0.25 + math.log(4 * 0.25) + 2 * math.log(2 * math.pi))
    assert float(component_log_density(targets, means, variances)) == pytest.approx(expected, rel=1e-5)


def test_regression_loss__likelihood_enters_with_a_minus() -> None:
    """The paper's Equation 7 prints a plus; a target near the prediction must cost less."""
    torch.manual_seed(0)
    block = CholeskyBlock(3, 1, num_components=2, inverse_precision=1e-2, rho_ref=1.0)
    mixture = block(torch.ones(1, 3))
    near = mixture.target.detach()

    def cost(shift: float, lambda_fit: float) -> float:
        noise = torch.Generator().manual_seed(0)
        return float(regression_loss(mixture, near + shift, noise, lambda_fit=lambda_fit).detach())

    assert cost(0.0, 0.0) < cost(3.0, 0.0)
    assert cost(3.0, 2.0) - cost(3.0, 0.0) == pytest.approx(18.0, rel=1e-4)


def test_tukey_loss__outlier_has_no_gradient_unless_leaky() -> None:
    for leak in (0.0, 0.01):
        residuals = torch.tensor([[0.1], [-0.2], [0.3], [0.0], [50.0]], requires_grad=True)
        tukey_loss(residuals, leak=leak).sum().backward()
        assert residuals.grad is not None
        assert float(residuals.grad[0]) > 0
        assert (float(residuals.grad[4]) > 0) == (leak > 0)
    constant = tukey_loss(torch.zeros(4, 1))
    assert torch.all(constant == 0)


def test_make_regression_data__exact_share_and_range() -> None:
    data = make_regression_data("cosexp", outlier_rate=0.4, seed=3)
    assert data.inputs.shape == (1000, 1)
    assert data.is_outlier.sum() == 400
    clean = ~data.is_outlier
    np.testing.assert_array_equal(data.given_targets[clean], data.true_targets[clean])
    outliers = data.given_targets[data.is_outlier]
    assert outliers.min() >= -1.5
    assert outliers.max() <= 2.5
    x = data.inputs[:, 0].astype(np.float64)
    expected = np.cos(np.pi * x / 2) * np.exp(-((x / 2) ** 2))
    np.testing.assert_allclose(data.true_targets[:, 0], expected, atol=1e-6)
    code = make_regression_data("step", outlier_rate=0.0, seed=0, form="code")
    assert len(code.inputs) == 300
    assert set(np.unique(code.true_targets)) == {-1.0, 1.0}
    assert 0 < np.abs(code.given_targets - code.true_targets).max() < 0.01


def test_make_regression_data__same_seed_same_data() -> None:
    first, again = (make_regression_data("linear", outlier_rate=0.2, seed=7) for _ in range(2))
    np.testing.assert_array_equal(first.given_targets, again.given_targets)


def test_make_regression_data__refuses_unknown_function() -> None:
    with pytest.raises(EngineInputError, match=r"'sine'.*cosexp, linear, step"):
        make_regression_data("sine", outlier_rate=0.1, seed=0)


@pytest.mark.parametrize("variant", REGRESSORS)
def test_fit_regression__learns_clean_targets(variant: str) -> None:
    data = make_regression_data("cosexp", outlier_rate=0.0, seed=0)
    assert _error(data, RegressionConfig(variant=variant, num_steps=300)) < 0.12


def test_fit_regression__likelihood_falls_in_200_steps() -> None:
    data = make_regression_data("linear", outlier_rate=0.0, seed=0)
    x, y = torch.from_numpy(data.inputs), torch.from_numpy(data.given_targets)
    costs = []
    for steps in (1, 200):
        network = fit_regression(
            data.inputs, data.given_targets, RegressionConfig(num_steps=steps), device="cpu"
        )
        mixture = network.head(network.base(x))
        costs.append(float(regression_loss(mixture, y, None, lambda_fit=0.0).detach().mean()))
    assert costs[1] < costs[0]


def test_fit_regression__outliers_harm_squared_loss_and_not_choicenet() -> None:
    data = make_regression_data("cosexp", outlier_rate=0.4, seed=0)
    robust = _error(data, RegressionConfig(num_steps=600))
    assert robust < 0.06
    assert _error(data, RegressionConfig(variant="l2", num_steps=300)) > 3 * robust


def test_judge_targets__finds_the_outliers() -> None:
    data = make_regression_data("linear", outlier_rate=0.3, seed=1)
    network = fit_regression(data.inputs, data.given_targets, RegressionConfig(num_steps=500), device="cpu")
    judged = judge_targets(network, data.inputs, data.given_targets)
    assert np.median(judged.gamma_1[~data.is_outlier]) > 0.6
    assert np.median(judged.gamma_1[data.is_outlier]) < 0.1
    assert judged.residual[data.is_outlier].mean() > 5 * judged.residual[~data.is_outlier].mean()
    assert np.all(np.abs(judged.rho) <= 1.0 + 1e-6)


def test_judge_targets__baseline_is_refused() -> None:
    data = make_regression_data("linear", outlier_rate=0.0, seed=1)
    network = fit_regression(
        data.inputs, data.given_targets, RegressionConfig(variant="l1", num_steps=1), device="cpu"
    )
    with pytest.raises(EngineInputError, match="only a network fitted with variant 'choicenet'"):
        judge_targets(network, data.inputs, data.given_targets)


def test_fit_regression__same_seed_same_result_and_inputs_unchanged() -> None:
    data = make_regression_data("linear", outlier_rate=0.3, seed=1)
    before = data.given_targets.copy()
    config = RegressionConfig(num_steps=20)
    first, again = (fit_regression(data.inputs, data.given_targets, config, device="cpu") for _ in range(2))
    np.testing.assert_array_equal(predict_targets(first, data.inputs), predict_targets(again, data.inputs))
    np.testing.assert_array_equal(data.given_targets, before)


def test_fit_regression__bad_tables_are_named() -> None:
    x = np.zeros((4, 1), dtype=np.float32)
    y = np.array([[0.0], [np.nan], [1.0], [2.0]], dtype=np.float32)
    with pytest.raises(EngineInputError, match=r"given_targets\[1\] is not finite \(1 such rows\)"):
        fit_regression(x, y, RegressionConfig())
    with pytest.raises(EngineInputError, match=r"same N of at least 2, got \(4, 1\) and \(3, 1\)"):
        fit_regression(x, y[:3], RegressionConfig())


def test_regression_config__all_problems_at_once() -> None:
    with pytest.raises(EngineInputError, match=r"variant is 'l3'.*batch_size is 1"):
        RegressionConfig(variant="l3", batch_size=1)
