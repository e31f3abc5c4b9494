"""One test an equation of UMN, named after it."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engines.shared.ema import ExponentialAverage
from engines.umn.equations import (
    clamp_uncertainty,
    feature_log_likelihood,
    gaussian_entropy,
    gaussian_log_density,
    guider_decay,
    label_term,
    likely_classes,
    reconstruction_log_likelihood,
    sample_gaussian,
    standard_normal_kl,
    sum_over_classes,
    uncertainty,
    uncertainty_weight,
    uniform_kl,
)
from engines.umn.model import generative_terms
from engines.umn.networks import Generator, StackedVAE, build_stacked_vae

ATOL_FP64 = 1e-12
MONTE_CARLO_DRAWS = 100_000


def generator_of(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_probs(rows: int, classes: int, seed: int = 0) -> Tensor:
    return torch.randn(rows, classes, generator=generator_of(seed), dtype=torch.float64).softmax(1)


def small_vae(num_classes: int = 4, latent_a: int = 5, latent_b: int = 3) -> StackedVAE:
    torch.manual_seed(0)
    return build_stacked_vae(
        "umn_mlp",
        channels=1,
        image_size=(6, 5),
        num_classes=num_classes,
        latent_a=latent_a,
        latent_b=latent_b,
        width=128,
    ).double()


def generator(vae: StackedVAE) -> Generator:
    assert vae.generator is not None
    return vae.generator


# --- U4 to U6 ---------------------------------------------------------------------------------------------


def assert_within_three_sigma(draws: Tensor, expected: Tensor) -> None:
    error = draws.std(0) / math.sqrt(len(draws))
    assert ((draws.mean(0) - expected).abs() < 3 * error + ATOL_FP64).all()


def test_gaussian_entropy__monte_carlo() -> None:
    mean = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    log_variance = torch.tensor([-1.0, 0.5, 0.0], dtype=torch.float64)
    noise = torch.randn(MONTE_CARLO_DRAWS, 3, generator=generator_of(1), dtype=torch.float64)
    draws = -gaussian_log_density(sample_gaussian(mean, log_variance, noise), mean, log_variance)
    assert_within_three_sigma(draws, gaussian_entropy(log_variance))


def test_standard_normal_kl__monte_carlo() -> None:
    mean = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    log_variance = torch.tensor([-1.0, 0.5, 0.0], dtype=torch.float64)
    noise = torch.randn(MONTE_CARLO_DRAWS, 3, generator=generator_of(2), dtype=torch.float64)
    value = sample_gaussian(mean, log_variance, noise)
    zero = torch.zeros_like(mean)
    draws = gaussian_log_density(value, mean, log_variance) - gaussian_log_density(value, zero, zero)
    assert_within_three_sigma(draws, standard_normal_kl(mean, log_variance))


def test_gaussian_log_density__torch_distribution() -> None:
    value, mean, log_variance = torch.randn(3, 7, 4, generator=generator_of(3), dtype=torch.float64)
    expected = torch.distributions.Normal(mean, (0.5 * log_variance).exp()).log_prob(value).sum(-1)
    torch.testing.assert_close(gaussian_log_density(value, mean, log_variance), expected)


def test_uniform_kl__zero_at_uniform_and_log_k_at_one_class() -> None:
    uniform = torch.full((1, 5), 0.2, dtype=torch.float64).log()
    certain = torch.tensor([[1.0, 1e-300, 1e-300, 1e-300, 1e-300]], dtype=torch.float64).log()
    assert uniform_kl(uniform, 5).item() == pytest.approx(0.0, abs=ATOL_FP64)
    assert uniform_kl(certain, 5).item() == pytest.approx(math.log(5))


def test_reconstruction_log_likelihood__sums_pixels_by_hand() -> None:
    target = torch.tensor([[[[0.0, 1.0]]]])
    logits = torch.tensor([[[[0.0, 2.0]]]])
    bernoulli = math.log(0.5) + math.log(1 / (1 + math.exp(-2)))
    gaussian = -(0.0 + (1.0 - 2.0) ** 2) / 0.2
    found = reconstruction_log_likelihood(target, logits, kind="bernoulli", variance=0.1)
    assert found.item() == pytest.approx(bernoulli, rel=1e-6)
    found = reconstruction_log_likelihood(target, logits, kind="gaussian", variance=0.1)
    assert found.item() == pytest.approx(gaussian, rel=1e-6)


def label_log_likelihood(epsilon: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """log p(given | y) for every true class y (U6); (B,), (B,) in 0..K-1 -> (B, K)."""
    wrong = epsilon.log() - math.log(num_classes - 1)
    right = torch.log1p(-epsilon)
    is_given = F.one_hot(labels, num_classes).to(torch.bool)
    return torch.where(is_given, right.unsqueeze(1), wrong.unsqueeze(1))


def test_feature_log_likelihood__a_normal_density_of_every_feature_by_hand() -> None:
    target, mean = [[0.5, -1.0], [2.0, 0.0]], [[0.0, 1.0], [2.0, 0.5]]
    log_variance = [math.log(0.25), 0.0]
    expected = [
        sum(
            math.log(math.exp(-((x - m) ** 2) / (2 * math.exp(v))) / math.sqrt(2 * math.pi * math.exp(v)))
            for x, m, v in zip(row, means, log_variance, strict=True)
        )
        for row, means in zip(target, mean, strict=True)
    ]
    found = feature_log_likelihood(torch.tensor(target), torch.tensor(mean), torch.tensor(log_variance))
    torch.testing.assert_close(found, torch.tensor(expected))
    # A feature that never varies must not drive its variance to zero.
    least = feature_log_likelihood(torch.zeros(1, 1), torch.zeros(1, 1), torch.tensor([-1e9]))
    assert least.item() == pytest.approx(0.5 * (8.0 - math.log(2 * math.pi)))


def test_label_log_likelihood__is_a_distribution_over_given_labels() -> None:
    epsilon = torch.tensor([0.3], dtype=torch.float64)
    columns = [label_log_likelihood(epsilon, torch.tensor([given]), 4) for given in range(4)]
    total = torch.stack(columns).exp().sum(0)  # over given labels, for every true class
    torch.testing.assert_close(total, torch.ones(1, 4, dtype=torch.float64))
    assert columns[2][0, 2].item() == pytest.approx(math.log(0.7))


# --- U7: the label term -----------------------------------------------------------------------------------


@pytest.mark.parametrize("num_classes", [2, 3, 10, 1000])
def test_label_term__equals_the_expected_log_likelihood(num_classes: int) -> None:
    rows = 50
    probs = random_probs(rows, num_classes)
    epsilon = torch.rand(rows, generator=generator_of(1), dtype=torch.float64).clamp(1e-4, 1 - 1e-4)
    labels = torch.randint(0, num_classes, (rows,), generator=generator_of(2))
    left = (probs * label_log_likelihood(epsilon, labels, num_classes)).sum(1)
    weight = uncertainty_weight(epsilon, num_classes)
    rest = epsilon.log() - math.log(num_classes - 1)
    assert (left - label_term(probs.log(), labels, weight) - rest).abs().max() < ATOL_FP64


def test_uncertainty_weight__falls_to_zero_where_a_label_says_nothing() -> None:
    epsilon = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)
    assert (uncertainty_weight(epsilon, 10).diff() < 0).all()
    nothing = torch.tensor([0.9], dtype=torch.float64)
    assert uncertainty_weight(nothing, 10).item() == pytest.approx(0.0, abs=ATOL_FP64)
    assert uncertainty_weight(torch.tensor([0.01], dtype=torch.float64), 10).item() == pytest.approx(
        6.79, abs=5e-3
    )


def test_uncertainty_weight__two_classes_is_the_logit() -> None:
    epsilon = torch.tensor([0.1, 0.4], dtype=torch.float64)
    torch.testing.assert_close(uncertainty_weight(epsilon, 2), torch.logit(1 - epsilon))


def test_label_term__gradient_by_hand() -> None:
    logits = torch.randn(6, 4, generator=generator_of(4), dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 1, 2, 3, 0, 1])
    weight = torch.linspace(0.5, 3, 6, dtype=torch.float64)
    (-label_term(logits.log_softmax(1), labels, weight)).sum().backward()
    probs = logits.detach().softmax(1)
    given = probs.gather(1, labels[:, None])
    onehot = torch.eye(4, dtype=torch.float64)[labels]
    torch.testing.assert_close(logits.grad, -weight[:, None] * given * (onehot - probs))


@pytest.mark.parametrize("logit", [-40.0, 40.0])
def test_label_term__gradient_vanishes_at_certainty(logit: float) -> None:
    logits = torch.tensor([[logit, 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    label_term(logits.log_softmax(1), torch.tensor([0]), torch.ones(1, dtype=torch.float64)).sum().backward()
    assert logits.grad is not None
    assert logits.grad.abs().max() < 1e-15


def test_label_term__unlabeled_rows_add_nothing() -> None:
    log_probs = random_probs(3, 4).log().requires_grad_()
    weight = torch.full((3,), 5.0, dtype=torch.float64)
    found = label_term(log_probs, torch.tensor([-1, -1, -1]), weight)
    found.sum().backward()
    assert found.tolist() == [0.0, 0.0, 0.0]
    assert log_probs.grad is not None
    assert log_probs.grad.abs().sum() == 0


def test_label_term__constant_epsilon_is_m_vae() -> None:
    probs, labels = random_probs(5, 10), torch.tensor([3, 1, 4, 1, 5])
    rate = torch.full((5,), 0.2, dtype=torch.float64)
    m_vae = (probs * label_log_likelihood(rate, labels, 10)).sum(1)
    umn = label_term(probs.log(), labels, uncertainty_weight(rate, 10)) + math.log(0.2 / 9)
    assert (m_vae - umn).abs().max() < ATOL_FP64


# --- U8, U12: ε -------------------------------------------------------------------------------------------


def test_uncertainty__zero_for_a_copy_and_finite_weight_after_the_clamp() -> None:
    probs, labels = random_probs(5, 10), torch.tensor([0, 1, 2, 3, 4])
    epsilon = uncertainty(probs, probs, labels)
    assert epsilon.tolist() == [0.0] * 5
    clamped = clamp_uncertainty(epsilon, 10, floor=1e-2)
    assert uncertainty_weight(clamped, 10).isfinite().all()


def test_uncertainty__is_the_gap_on_the_given_label() -> None:
    guider = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    learner = torch.tensor([[0.5, 0.1, 0.4], [0.2, 0.2, 0.6]])
    found = uncertainty(guider, learner, torch.tensor([2, -1]))
    assert found.tolist() == pytest.approx([0.3, 0.0])


def test_uncertainty__carries_no_gradient() -> None:
    logits = torch.randn(4, 3, generator=generator_of(5), requires_grad=True)
    labels = torch.tensor([0, 1, 2, 0])
    guider = random_probs(4, 3).float()

    def gradient(epsilon: Tensor) -> Tensor:
        weight = uncertainty_weight(clamp_uncertainty(epsilon, 3, floor=1e-2), 3)
        loss = -label_term(logits.log_softmax(1), labels, weight).sum()
        return torch.autograd.grad(loss, logits)[0]

    live = uncertainty(guider, logits.softmax(1), labels)
    constant = torch.tensor(live.tolist())
    assert not live.requires_grad
    torch.testing.assert_close(gradient(live), gradient(constant))


def test_clamp_uncertainty__weight_is_finite_and_never_below_zero() -> None:
    epsilon = torch.tensor([0.0, 0.95, 1.0], dtype=torch.float64)
    clamped = clamp_uncertainty(epsilon, 10, floor=1e-2)
    weight = uncertainty_weight(clamped, 10)
    assert weight[0].item() == pytest.approx(6.79, abs=5e-3)
    assert weight[2].item() == pytest.approx(0.0, abs=1e-9)
    assert weight.isfinite().all()


def test_clamp_uncertainty__two_classes_keep_the_order_of_floor_and_ceiling() -> None:
    epsilon = torch.tensor([0.0, 0.9])
    assert clamp_uncertainty(epsilon, 2, floor=0.5).tolist() == [0.5, 0.5]


# --- U3: the sum over classes and the bound ---------------------------------------------------------------


@pytest.mark.parametrize("y_chunk", [1, 2, 3, 4, 100])
@pytest.mark.parametrize("most", [None, 1, 2, 3, 4])
def test_sum_over_classes__equals_a_loop_over_likely_y(y_chunk: int, most: int | None) -> None:
    vae = small_vae()
    z_a = torch.randn(6, 5, generator=generator_of(6), dtype=torch.float64, requires_grad=True)
    log_probs = random_probs(6, 4).log()
    noise = torch.randn(6, most or 4, 3, generator=generator_of(7), dtype=torch.float64)
    likely, classes = likely_classes(log_probs, most)
    total = sum_over_classes(generator(vae).class_terms, z_a, likely, noise, classes, y_chunk=y_chunk)
    every_class = torch.eye(4, dtype=torch.float64)
    rows = []
    for row in range(6):
        chosen = range(4) if most in (None, 4) else sorted(range(4), key=lambda y: -log_probs[row, y])[:most]
        mass = sum(log_probs[row, y].exp() for y in chosen)
        value = torch.zeros((), dtype=torch.float64)
        for draw, y in zip(noise[row], chosen, strict=True):
            encoder, decoder = generator(vae).upper_encoder, generator(vae).upper_decoder
            mean, log_variance = encoder.head(
                encoder.first(torch.cat([z_a[row], every_class[y]])[None]).relu()
            )
            z_b = mean + (0.5 * log_variance).exp() * draw
            mean_a, log_variance_a = decoder.head(
                decoder.first(torch.cat([z_b[0], every_class[y]])[None]).relu()
            )
            term = gaussian_log_density(z_a[row], mean_a, log_variance_a) - standard_normal_kl(
                mean, log_variance
            )
            value = value + log_probs[row, y].exp() / mass * term[0]
        rows.append(value)
    slow = torch.stack(rows)
    torch.testing.assert_close(total, slow)
    fast_gradient = torch.autograd.grad(total.sum(), z_a, retain_graph=True)[0]
    torch.testing.assert_close(fast_gradient, torch.autograd.grad(slow.sum(), z_a)[0])


class LinearToy:
    """x and z_a scalars, K = 2: z_a | z_b, y ~ N(w_y + z_b, .5^2), x | z_a ~ N(z_a, .4^2), label as in U6."""

    shift = torch.tensor([-1.0, 1.5], dtype=torch.float64)
    variance_a, variance_x, epsilon = 0.25, 0.16, 0.2

    def log_marginal(self, x: float, given: int) -> float:
        """log p(x, given) by quadrature over z_a, with z_b integrated out in closed form."""
        z = torch.linspace(-12, 12, 20_001, dtype=torch.float64)
        total = torch.zeros_like(z)
        for y in range(2):
            label = 1 - self.epsilon if y == given else self.epsilon
            prior = torch.distributions.Normal(self.shift[y], math.sqrt(self.variance_a + 1.0))
            total += 0.5 * label * prior.log_prob(z).exp()
        likelihood = torch.distributions.Normal(z, math.sqrt(self.variance_x)).log_prob(torch.tensor(x)).exp()
        return float(torch.trapezoid(total * likelihood, z).log())

    def class_terms(self, z_a: Tensor, noise: Tensor, classes: Tensor) -> Tensor:
        """q(z_b | z_a, y) exact: the posterior of the linear-Gaussian model."""
        gain = 1.0 / (1.0 + self.variance_a)
        mean = gain * (z_a.unsqueeze(1) - self.shift[classes][None, :, None])
        log_variance = torch.full_like(mean, math.log(self.variance_a * gain))
        z_b = sample_gaussian(mean, log_variance, noise)
        log_variance_a = torch.full_like(z_b, math.log(self.variance_a))
        density = gaussian_log_density(
            z_a.unsqueeze(1), self.shift[classes][None, :, None] + z_b, log_variance_a
        )
        return density - standard_normal_kl(mean, log_variance)


@pytest.mark.parametrize("x", [-1.2, 0.3, 2.0])
@pytest.mark.parametrize("given", [0, 1])
def test_elbo__stays_below_the_log_marginal_and_comes_near(x: float, given: int) -> None:
    toy, draws = LinearToy(), 20_000
    mean = torch.full((draws, 1), x * 0.9, dtype=torch.float64)
    log_variance = torch.full((draws, 1), math.log(0.15), dtype=torch.float64)
    z_a = sample_gaussian(mean, log_variance, torch.randn(draws, 1, generator=generator_of(8)).double())
    # The exact q(y | z_a, given) makes the bound tight in y.
    prior = -(z_a - toy.shift).square() / (2 * (1 + toy.variance_a))
    epsilon = torch.full((draws,), toy.epsilon, dtype=torch.float64)
    labels = torch.full((draws,), given)
    label = label_log_likelihood(epsilon, labels, 2)
    log_q = (prior + label).log_softmax(1)
    noise = torch.randn(draws, 2, 1, generator=generator_of(9)).double()
    reconstruction = gaussian_log_density(
        torch.full_like(z_a, x), z_a, torch.full_like(z_a, math.log(toy.variance_x))
    )
    inner = sum_over_classes(toy.class_terms, z_a, log_q, noise, torch.arange(2), y_chunk=1)
    elbo = (
        reconstruction
        + gaussian_entropy(log_variance)
        + inner
        - uniform_kl(log_q, 2)
        + (log_q.exp() * label).sum(1)
    )
    error = 3 * float(elbo.std()) / math.sqrt(draws)
    assert float(elbo.mean()) <= toy.log_marginal(x, given) + error
    assert float(elbo.mean()) > toy.log_marginal(x, given) - 0.5


def test_generative_terms__permuting_classes_permutes_everything() -> None:
    vae, order = small_vae(), torch.tensor([2, 0, 3, 1])
    permuted = copy.deepcopy(vae)
    with torch.no_grad():
        last = permuted.recognizer.classifier
        assert isinstance(last, nn.Sequential)
        last[2].weight.copy_(last[2].weight[order])
        last[2].bias.copy_(last[2].bias[order])
        for part in (generator(permuted).upper_encoder, generator(permuted).upper_decoder):
            columns = part.first.weight[:, part.latent_in :].clone()
            part.first.weight[:, part.latent_in :] = columns[:, order]
    images = torch.rand(5, 1, 6, 5, generator=generator_of(10), dtype=torch.float64)
    log_probs = [one.recognizer(images)[1].log_softmax(1) for one in (vae, permuted)]
    torch.testing.assert_close(log_probs[0][:, order], log_probs[1])
    noise = torch.randn(5, 4, 3, generator=generator_of(11), dtype=torch.float64)
    z_a = vae.recognizer.encode(images).mean
    first, second = (
        sum_over_classes(generator(one).class_terms, z_a, *likely[:1], draws, likely[1], y_chunk=4)
        for one, likely, draws in (
            (vae, likely_classes(log_probs[0], None), noise),
            (permuted, likely_classes(log_probs[1], None), noise[:, order]),
        )
    )
    torch.testing.assert_close(first, second)
    labels = torch.tensor([0, 1, 2, 3, 0])
    half = [(0.5 * one).softmax(1) for one in log_probs]
    inverse = order.argsort()
    epsilon = [
        uncertainty(half[0], log_probs[0].exp(), labels),
        uncertainty(half[1], log_probs[1].exp(), inverse[labels]),
    ]
    torch.testing.assert_close(epsilon[0], epsilon[1])


def test_generative_terms__every_term_is_one_value_a_sample() -> None:
    vae = small_vae().float()
    images = torch.rand(3, 1, 6, 5, generator=generator_of(12))
    terms, log_probs = generative_terms(
        vae.recognizer,
        generator(vae),
        vae.recognizer.encode(images),
        images,
        generator_of(13),
        reconstruction="bernoulli",
        y_chunk=2,
    )
    assert {name: tuple(value.shape) for name, value in terms.items()} == {
        "reconstruction": (3,),
        "posterior_entropy": (3,),
        "class_sum": (3,),
        "class_kl": (3,),
    }
    assert log_probs.shape == (3, 4)
    assert (terms["reconstruction"] < 0).all()
    assert (terms["class_kl"] >= 0).all()


# --- U9, U11 ----------------------------------------------------------------------------------------------


def test_guider__closed_form_under_a_constant_learner() -> None:
    start, target = nn.Linear(3, 2), nn.Linear(3, 2)
    guider = ExponentialAverage(start)
    for _ in range(7):
        guider.update(target, 0.8)
    expected = 0.8**7 * start.weight + (1 - 0.8**7) * target.weight
    torch.testing.assert_close(guider.module.weight, expected.detach())


def test_guider_decay__grows_to_gamma() -> None:
    assert [guider_decay(step, 0.9) for step in (1, 3, 9, 1000)] == pytest.approx([0.5, 0.75, 0.9, 0.9])
