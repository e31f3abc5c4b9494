"""The Cholesky block against simulation, closed forms and slow loops, one test an equation."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from engines.choicenet.cholesky import (
    CholeskyBlock,
    Mixture,
    complement_root,
    component_probs,
    correlation_kl,
    kendall_fit_loss,
    label_signals,
    mixture_fit_loss,
    outer_factor,
    responsibilities,
)

RHOS = [-0.9, -0.3, 0.0, 0.5, 0.95]


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=_generator(seed), dtype=dtype)


def _correlation(a: Tensor, b: Tensor) -> float:
    return float(torch.corrcoef(torch.stack([a, b]))[0, 1])


def _mixture(
    batch: int = 4, num_components: int = 3, num_outputs: int = 5, *, seed: int = 0, outer: str = "sqrt"
):
    rho = torch.tanh(_normal(batch, num_components, seed=seed))
    return Mixture(
        log_pi=torch.log_softmax(_normal(batch, num_components, seed=seed + 1), dim=1),
        rho=rho,
        target=2.0 * _normal(batch, num_outputs, seed=seed + 2),
        base_variance=_normal(batch, num_outputs, seed=seed + 3).exp(),
        weight_variance=_normal(batch, 1, seed=seed + 4).exp(),
        inverse_precision=1e-4,
        outer=outer,
    )


def _repeated(mixture: Mixture, times: int) -> Mixture:
    """The first sample of a mixture, ``times`` times."""
    return Mixture(
        log_pi=mixture.log_pi[:1].expand(times, -1),
        rho=mixture.rho[:1].expand(times, -1),
        target=mixture.target[:1].expand(times, -1),
        base_variance=mixture.base_variance[:1].expand(times, -1),
        weight_variance=mixture.weight_variance[:1].expand(times, -1),
        inverse_precision=mixture.inverse_precision,
        outer=mixture.outer,
    )


def correlated_weights(
    rho: Tensor,
    target_mean: Tensor,
    target_scale: Tensor,
    other_scale: Tensor,
    noise: tuple[Tensor, Tensor],
    *,
    outer: str = "sqrt",
) -> tuple[Tensor, Tensor]:
    """(W*, W~_k) by Equation (5): what (8) and (9) replace. Shapes broadcast.

    W* = mu_W + sigma_W e1 and Z = sigma_Z e2; W~ has mean rho mu_W, variance (1 - rho²) sigma_Z²
    (``"full"``: its square in 1 - rho²) and correlation rho with W*, whatever sigma_W is.

    Args:
        rho: correlation in [-1, 1].
        target_mean: mu_W.
        target_scale: sigma_W > 0.
        other_scale: sigma_Z.
        noise: e1, e2, standard normals.
    """
    target = target_mean + target_scale * noise[0]
    other = other_scale * noise[1]
    inner = rho * (other_scale / target_scale) * (target - target_mean) + complement_root(rho) * other
    return target, rho * target_mean + outer_factor(rho, outer) * inner


@pytest.mark.parametrize("outer", ["sqrt", "full"])
@pytest.mark.parametrize("rho", RHOS)
def test_correlated_weights__moments_and_correlation(rho: float, outer: str) -> None:
    num_draws, mean, sigma_w, sigma_z = 2_000_000, 1.7, 0.4, 0.8
    noise = (_normal(num_draws, seed=1), _normal(num_draws, seed=2))
    one = torch.ones(())
    target, weights = correlated_weights(
        torch.tensor(rho, dtype=torch.float64), mean * one, sigma_w * one, sigma_z * one, noise, outer=outer
    )
    power = 1 if outer == "sqrt" else 2
    variance = (1 - rho**2) ** power * sigma_z**2
    assert _correlation(target, weights) == pytest.approx(rho, abs=0.003)
    assert float(weights.mean()) == pytest.approx(rho * mean, abs=4 * math.sqrt(variance / num_draws))
    assert float(weights.var()) == pytest.approx(variance, rel=0.006)


@pytest.mark.parametrize("outer", ["sqrt", "full"])
def test_sample_means__same_moments_as_sampled_weights(outer: str) -> None:
    """(8) against explicit (B, Q, D) sampling of (5)-(6): mean and covariance over components."""
    num_draws, num_features = 60_000, 4
    features = _normal(num_features, seed=10)
    target_mean = _normal(num_features, seed=11)
    rho, sigma_z = torch.tensor([0.95, 0.3, -0.5]).double(), math.exp(-1.0)
    noise = (_normal(num_draws, num_features, seed=12), _normal(num_draws, num_features, seed=13))
    scale = torch.tensor(sigma_z).double()
    explicit = torch.stack(
        [
            correlated_weights(r, target_mean, torch.tensor(0.2).double(), scale, noise, outer=outer)[1]
            @ features
            for r in rho
        ],
        dim=1,
    )
    mixture = Mixture(
        log_pi=torch.zeros(num_draws, 3).double(),
        rho=rho.expand(num_draws, 3),
        target=(features @ target_mean).expand(num_draws, 1),
        base_variance=torch.ones(num_draws, 1).double(),
        weight_variance=(sigma_z**2 * features.square().sum()).expand(num_draws, 1),
        inverse_precision=1e-4,
        outer=outer,
    )
    local = mixture.sample_means((_normal(num_draws, 1, seed=14), _normal(num_draws, 1, seed=15)))[:, :, 0]
    standard_error = explicit.std(dim=0) * math.sqrt(2 / num_draws)
    assert torch.all((explicit.mean(dim=0) - local.mean(dim=0)).abs() < 4 * standard_error)
    scale_of_covariance = float(torch.cov(explicit.T).abs().max())
    difference = (torch.cov(explicit.T) - torch.cov(local.T)).abs().max()
    assert float(difference) < 4 * scale_of_covariance * math.sqrt(2 * 2 / num_draws)
    root = complement_root(rho)
    factor = outer_factor(rho, outer)
    expected = (
        factor[:, None] * factor[None, :] * (rho[:, None] * rho[None, :] + root[:, None] * root[None, :])
    )
    expected = expected * mixture.weight_variance[0, 0]
    assert float((torch.cov(local.T) - expected).abs().max()) < 4 * scale_of_covariance * math.sqrt(
        2 / num_draws
    )


@pytest.mark.parametrize("sharing", ["shared", "independent"])
def test_sample__marginal_law(sharing: str) -> None:
    mixture = _repeated(_mixture(seed=20), 60_000)
    drawn = mixture.sample(_generator(21), sharing=sharing)
    expected_mean, expected_variance = mixture.means()[0], mixture.total_variances()[0]
    standard_error = (expected_variance / 60_000).sqrt()
    assert torch.all((drawn.mean(dim=0) - expected_mean).abs() < 4.5 * standard_error)
    torch.testing.assert_close(drawn.var(dim=0), expected_variance, rtol=0.03, atol=0)


def test_sample__classification_loss_equal_for_both_sharings() -> None:
    """The loss is a sum over components, so only the marginals matter: 100,000 draws of each."""
    mixture = _repeated(_mixture(seed=22), 100_000)
    labels = torch.full((100_000,), 2)
    losses = [
        mixture_fit_loss(
            mixture.log_pi, mixture.sample(_generator(23 + i), sharing=sharing), labels, lambda_reg=0.1
        )
        for i, sharing in enumerate(("shared", "independent"))
    ]
    standard_error = math.sqrt(sum(float(loss.var()) for loss in losses) / 100_000)
    assert abs(float(losses[0].mean() - losses[1].mean())) < 4 * standard_error


def test_block__probabilities_and_variances() -> None:
    torch.manual_seed(0)
    block = CholeskyBlock(6, 4, num_components=3, head_scale=0.5)
    features = _normal(7, 6, dtype=torch.float32)
    block.train()
    mixture = block(features)
    assert torch.all(mixture.rho[:, 0] == 0.95)
    torch.testing.assert_close(mixture.log_pi.exp().sum(dim=1), torch.ones(7))
    assert torch.all(mixture.output_variances() >= 1e-4)
    block.eval()
    mixture = block(features)
    assert torch.all(mixture.rho[:, 0] == 1.0)
    assert torch.all(mixture.output_variances()[:, 0] == 1e-4)
    assert torch.all(mixture.rho[:, 1:].abs() < 1.0)


def test_block__equations_by_a_slow_loop() -> None:
    torch.manual_seed(1)
    block = CholeskyBlock(3, 2, num_components=2, head_scale=0.7, log_weight_variance=-2.0)
    block.eval()
    block.requires_grad_(False)
    features = torch.tensor([[0.5, -1.0, 2.0]])
    mixture = block(features)
    h = features[0]
    rho_2 = math.tanh(float(block.rho_head.weight[1] @ h))
    for d in range(2):
        m = float(sum(block.target_weight[q, d] * h[q] for q in range(3)))
        base = math.exp(float(block.variance_head.weight[d] @ h))
        output_variance = (1 - rho_2**2) * base + 1e-4
        weight_variance = (1 - rho_2**2) * math.exp(-2.0) * float((h * h).sum())
        assert float(mixture.means()[0, 1, d]) == pytest.approx(rho_2 * m, rel=1e-5)
        assert float(mixture.total_variances()[0, 1, d]) == pytest.approx(
            output_variance + weight_variance, rel=1e-4
        )


def test_block__evaluation_ignores_base_variance_and_is_deterministic() -> None:
    torch.manual_seed(2)
    block = CholeskyBlock(5, 3).eval()
    features = _normal(4, 5, dtype=torch.float32)
    first = block(features).target
    with torch.no_grad():
        block.variance_head.weight.mul_(30.0)
    assert torch.equal(block(features).target, first)


def test_block__large_features_keep_variance_finite() -> None:
    torch.manual_seed(3)
    block = CholeskyBlock(5, 3, head_scale=1.0)
    mixture = block(1e6 * _normal(4, 5, dtype=torch.float32))
    assert torch.all(torch.isfinite(mixture.base_variance))
    assert float(mixture.base_variance.max()) <= math.exp(10.0) * 1.001


def test_block__weight_noise_by_hand() -> None:
    mixture = CholeskyBlock(3, 2)(torch.tensor([[1.0, 2.0, 2.0]]))
    assert float(mixture.weight_variance) == pytest.approx(9.0 * math.exp(-2.0))


def test_complement_root__zero_at_one_with_finite_gradient() -> None:
    rho = torch.tensor([-1.0, -0.6, 0.0, 1.0 - 1e-7, 1.0], requires_grad=True)
    root = complement_root(rho)
    root.sum().backward()
    assert root.tolist()[0] == 0.0
    assert root.tolist()[-1] == 0.0
    assert float(root[1]) == pytest.approx(0.8)
    assert rho.grad is not None
    assert torch.all(torch.isfinite(rho.grad))


def test_mixture_fit_loss__slow_loop() -> None:
    log_pi = torch.tensor([[0.3, 0.7]]).log()
    outputs = torch.tensor([[[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]]])
    expected = 0.0
    for k, pi in enumerate((0.3, 0.7)):
        logits = outputs[0, k].tolist()
        total = sum(math.exp(value) for value in logits)
        expected += pi * (-math.exp(logits[1]) / total + 0.01 * math.log(total))
    loss = mixture_fit_loss(log_pi, outputs, torch.tensor([1]), lambda_reg=0.01)
    assert float(loss) == pytest.approx(expected, rel=1e-6)


def test_mixture_fit_loss__range_and_constant() -> None:
    log_pi = torch.log_softmax(_normal(6, 3, seed=30), dim=1)
    outputs, labels = 5 * _normal(6, 3, 4, seed=31), torch.tensor([0, 1, 2, 3, 0, 1])
    plain = mixture_fit_loss(log_pi, outputs, labels, lambda_reg=0.0)
    assert torch.all((plain >= -1.0) & (plain <= 0.0))
    with_reg = mixture_fit_loss(log_pi, outputs, labels, lambda_reg=0.01)
    shifted = mixture_fit_loss(log_pi, outputs + 7.0, labels, lambda_reg=0.01)
    torch.testing.assert_close(shifted - with_reg, torch.full((6,), 0.07).double())


def test_mixture_fit_loss__one_component_is_minus_the_label_probability() -> None:
    torch.manual_seed(5)
    block = CholeskyBlock(4, 3, num_components=1, rho_ref=1.0, inverse_precision=1e-12)
    features, labels = _normal(6, 4, dtype=torch.float32), torch.tensor([0, 1, 2, 0, 1, 2])
    mixture = block.train()(features)
    loss = mixture_fit_loss(mixture.log_pi, mixture.sample(_generator()), labels, lambda_reg=0.0)
    p_label = torch.softmax(features @ block.target_weight, dim=1)[torch.arange(6), labels]
    torch.testing.assert_close(loss, -p_label, atol=1e-5, rtol=1e-5)


def test_kendall_fit_loss__is_weighted_cross_entropy() -> None:
    log_pi = torch.log_softmax(_normal(5, 2, seed=32), dim=1)
    outputs, labels = _normal(5, 2, 4, seed=33), torch.tensor([3, 0, 1, 2, 2])
    expected = sum(
        log_pi[:, k].exp() * nn.functional.cross_entropy(outputs[:, k], labels, reduction="none")
        for k in range(2)
    )
    torch.testing.assert_close(kendall_fit_loss(log_pi, outputs, labels), expected)


def test_correlation_kl__paper_form_is_a_divergence() -> None:
    rho = torch.tanh(_normal(5, 4, seed=34))
    log_pi = torch.log_softmax(_normal(5, 4, seed=35), dim=1)
    assert torch.all(correlation_kl(rho, log_pi) > 0)
    equal = correlation_kl(rho, torch.log_softmax(rho, dim=1))
    torch.testing.assert_close(equal, torch.zeros(5).double(), atol=1e-12, rtol=0)


def test_correlation_kl__form_of_the_regression_code_by_hand() -> None:
    rho, pi = torch.tensor([[0.5, 0.6]]), torch.tensor([[0.3, 0.7]])
    expected = sum((r + 1) * (math.log(r + 1.01) - math.log(p + 0.01)) for r, p in ((0.5, 0.3), (0.6, 0.7)))
    assert float(correlation_kl(rho, pi.log(), form="code_regression")) == pytest.approx(expected, rel=1e-5)


def test_component_probs__mean_field_close_to_monte_carlo() -> None:
    means = torch.tensor([[[2.0, 0.0, -1.0], [0.3, 0.0, -0.2]]])
    variances = torch.tensor([[[0.2, 0.2, 0.2], [1.5, 1.5, 1.5]]])
    noise = torch.randn(20_000, 2, 3, generator=_generator(36))
    exact = torch.softmax(means + variances.sqrt() * noise, dim=2).mean(dim=0, keepdim=True)
    mean_field = component_probs(means, variances)
    torch.testing.assert_close(exact.sum(dim=2), torch.ones(1, 2))
    assert float((exact - mean_field).abs().max()) < 0.04
    no_noise = component_probs(means, torch.zeros_like(variances))
    torch.testing.assert_close(no_noise, torch.softmax(means, dim=2))


def test_responsibilities__by_hand_and_sum_to_one() -> None:
    gamma = responsibilities(torch.tensor([[0.2, 0.8]]).log(), torch.tensor([[0.9, 0.1]]))
    torch.testing.assert_close(gamma, torch.tensor([[0.18 / 0.26, 0.08 / 0.26]]))
    impossible = responsibilities(torch.tensor([[0.2, 0.8]]).log(), torch.zeros(1, 2))
    torch.testing.assert_close(impossible.sum(dim=1), torch.ones(1))


def test_label_signals__rho_follows_the_responsible_component() -> None:
    """A label that only the target explains has rho_label = rho_1; one that it denies goes to the others."""
    log_pi = torch.tensor([[0.5, 0.5], [0.5, 0.5]]).log()
    rho = torch.tensor([[1.0, -0.4], [1.0, -0.4]])
    probs = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
    signals = label_signals(log_pi, rho, probs, torch.tensor([0, 1]))
    torch.testing.assert_close(signals["gamma_1"], torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(signals["rho"], torch.tensor([1.0, -0.4]))
    torch.testing.assert_close(signals["p_target"], torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(signals["rho_x"], torch.tensor([0.3, 0.3]))
    torch.testing.assert_close(signals["pi_1"], torch.tensor([0.5, 0.5]))


@pytest.mark.parametrize("sharing", ["shared", "independent"])
def test_sample__features_that_are_all_zero_have_a_finite_gradient(sharing: str) -> None:
    """Behind a ReLU a sample may have no feature at all: its outputs are then without weight noise."""
    torch.manual_seed(0)
    block = CholeskyBlock(4, 3, num_components=3)
    features = torch.rand(5, 4)
    features[2] = 0.0
    features.requires_grad_()
    mixture = block(features)
    noise = torch.Generator().manual_seed(1)
    mixture.sample(noise, sharing=sharing).sum().backward()
    assert features.grad is not None
    reached = [value.grad for value in block.parameters() if value.grad is not None]
    assert len(reached) >= 5  # all but the mixture probabilities, which are not drawn
    for gradient in (features.grad, *reached):
        assert gradient.isfinite().all()


@pytest.mark.parametrize(("num_components", "starts"), [(2, [0.5]), (3, [0.5, 0.25])])
def test_cholesky_block__correlations_start_evenly_below_rho_start(
    num_components: int, starts: list[float]
) -> None:
    block = CholeskyBlock(5, 3, num_components=num_components, rho_start=0.5)
    torch.testing.assert_close(block.rho_head.bias[1:].tanh().tolist(), starts)
    assert block.rho_head.bias[0] == 0
