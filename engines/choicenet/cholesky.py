"""The Cholesky block and its mathematics: a head of K mixture components correlated with one target.

Source: "Task Agnostic Robust Learning on Corrupt Outputs by Correlation-Guided Mixture Density
Networks" (CVPR 2020, https://arxiv.org/abs/1805.06431); numbers in round brackets are equations of
this file, used alike for classification (`training.py`) and for regression (`numbers.py`).

A target weight matrix W* ~ N(mu_W, sigma_W²) gives each component k a weight matrix W~_k of correlation
rho_k(x) with it, by a Cholesky factor of the 2 x 2 correlation matrix. Component 1 has rho_1 = 1 at
evaluation: it is the classifier; components of smaller rho explain labels that the classifier does
not. Weights are never sampled: the features enter linearly, so the sampled *outputs* are Gaussian
with known moments (8)-(9) and are drawn directly, with the same distribution, in memory of B*K*D
floats instead of B*K*Q*D. sigma_W cancels in (5) and is therefore no parameter here.

Letters: B batch, Q feature size, K components, D outputs (classes, or dimensions of a numeric target).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

OUTER_FORMS = ("sqrt", "full")
KL_FORMS = ("paper", "code_regression")
SHARING_FORMS = ("shared", "independent")
MAX_LOG_VARIANCE = 10.0
"""Clamp of the exponent of the base variance, both ways."""
_SMALLEST_SQUARE = 1e-6


@dataclass(frozen=True)
class Mixture:
    """What the block says about a batch, before any noise is drawn."""

    log_pi: Tensor
    """(B, K) log mixture probabilities (2)."""
    rho: Tensor
    """(B, K) correlations with the target weights (1), in [-1, 1]."""
    target: Tensor
    """(B, D) m = mu_W^T h, the outputs of the target component."""
    base_variance: Tensor
    """(B, D) S0 (3)."""
    weight_variance: Tensor
    """(B, 1) s² = sigma_Z² sum_q h_q² (8)."""
    inverse_precision: float
    """tau^-1, expected variance of the target component."""
    outer: str
    """``"sqrt"`` (paper) or ``"full"`` (code): the outer factor of (5)."""

    def means(self) -> Tensor:
        """(B, K, D) expected outputs rho_k m."""
        return self.rho[:, :, None] * self.target[:, None, :]

    def output_variances(self) -> Tensor:
        """(B, K, D) Sigma_k = (1 - rho_k²) S0 + tau^-1 (4)."""
        left = (1.0 - self.rho.square())[:, :, None]
        return left * self.base_variance[:, None, :] + self.inverse_precision

    def total_variances(self) -> Tensor:
        """(B, K, D) V_k = c_k s² + Sigma_k (9): weight noise and output noise together."""
        weight_part = outer_factor(self.rho, self.outer).square() * self.weight_variance
        return weight_part[:, :, None] + self.output_variances()

    def with_fixed_correlations(self) -> Mixture:
        """The same mixture without gradient to rho, so that a loss trains what the components share."""
        return replace(self, rho=self.rho.detach())

    def at_target_correlation(self, rho_1: float) -> Mixture:
        """The same mixture with another fixed correlation of component 1 (1.0 = evaluation)."""
        rho = torch.cat([torch.full_like(self.rho[:, :1], rho_1), self.rho[:, 1:]], dim=1)
        return replace(self, rho=rho)

    def sample_means(self, shared_noise: tuple[Tensor, Tensor]) -> Tensor:
        """(B, K, D) mu_k by (8), exact local reparametrisation of (5)-(6) with W* and Z shared over k.

        Args:
            shared_noise: two (B, D) tensors of standard normals, for W* and for Z.
        """
        scale = safe_root(self.weight_variance)
        target_noise, other_noise = (scale * noise for noise in shared_noise)
        rho = self.rho[:, :, None]
        drawn = rho * target_noise[:, None, :] + complement_root(rho) * other_noise[:, None, :]
        return self.means() + outer_factor(rho, self.outer) * drawn

    def sample(self, generator: torch.Generator | None, *, sharing: str = "independent") -> Tensor:
        """(B, K, D) sampled outputs yhat_k (7), one draw for each sample.

        ``"independent"`` draws each component from its marginal (9), as the authors' code does;
        ``"shared"`` gives all components one W* and Z, as the paper writes. Only the joint over k differs.
        """

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator, device=self.target.device, dtype=self.target.dtype)

        shape = (*self.rho.shape, self.target.shape[1])
        if sharing == "independent":
            return self.means() + self.total_variances().sqrt() * normal(*shape)
        size = self.target.shape
        means = self.sample_means((normal(*size), normal(*size)))
        return means + self.output_variances().sqrt() * normal(*shape)


class CholeskyBlock(nn.Module):
    """Heads (1)-(4) on features h: one target matrix and K correlated components.

    Args:
        feature_size: Q.
        num_outputs: D.
        num_components: K, at least 1; with K = 1 there is only the target component.
        rho_ref: correlation of component 1 while training, in (0, 1]; it is 1 at evaluation.
        outer: ``"sqrt"`` (paper) or ``"full"`` (code).
        log_weight_variance: log sigma_Z², fixed.
        inverse_precision: tau^-1.
        head_scale: standard deviation of the initial weights of the three heads.
        rho_start: in [0, 1): components 2..K start at correlations spread evenly from this down towards 0.
            At 0 all start uncorrelated, and those that fall on the negative side work against the target for
            most of a short training.
    """

    def __init__(
        self,
        feature_size: int,
        num_outputs: int,
        *,
        num_components: int = 5,
        rho_ref: float = 0.95,
        outer: str = "sqrt",
        log_weight_variance: float = -2.0,
        inverse_precision: float = 1e-4,
        head_scale: float = 0.01,
        rho_start: float = 0.0,
    ) -> None:
        super().__init__()
        self.num_components = num_components
        self.rho_ref = rho_ref
        self.outer = outer
        self.weight_variance = math.exp(log_weight_variance)
        self.inverse_precision = inverse_precision
        self.target_weight = nn.Parameter(0.1 * torch.randn(feature_size, num_outputs))
        self.rho_head = _head(feature_size, num_components, head_scale)
        if rho_start > 0:
            spread = rho_start * torch.arange(num_components, 0, -1) / max(1, num_components - 1)
            with torch.no_grad():
                self.rho_head.bias[1:] = torch.atanh(spread[1:])
        self.pi_head = _head(feature_size, num_components, head_scale)
        self.variance_head = _head(feature_size, num_outputs, head_scale)

    def forward(self, features: Tensor) -> Mixture:
        """Map features (B, Q) to the batch's mixture; deterministic."""
        rho = torch.tanh(self.rho_head(features))
        log_pi = functional.log_softmax(self.pi_head(features), dim=1)
        log_variance = self.variance_head(features).clamp(-MAX_LOG_VARIANCE, MAX_LOG_VARIANCE)
        mixture = Mixture(
            log_pi=log_pi,
            rho=rho,
            target=features @ self.target_weight,
            base_variance=log_variance.exp(),
            weight_variance=self.weight_variance * features.square().sum(dim=1, keepdim=True),
            inverse_precision=self.inverse_precision,
            outer=self.outer,
        )
        return mixture.at_target_correlation(self.rho_ref if self.training else 1.0)


def complement_root(rho: Tensor) -> Tensor:
    """sqrt(1 - rho²) with a bounded gradient near |rho| = 1, where it is exactly 0."""
    square = 1.0 - rho.square()
    return torch.where(square > 0, square.clamp_min(_SMALLEST_SQUARE).sqrt(), torch.zeros_like(square))


def safe_root(square: Tensor) -> Tensor:
    """Square root whose gradient at 0 is 0: the features of a sample may all be 0 behind a ReLU."""
    positive = square > 0
    return torch.where(positive, torch.where(positive, square, 1.0).sqrt(), 0.0)


def outer_factor(rho: Tensor, outer: str) -> Tensor:
    """The outer factor of (5): sqrt(1 - rho²) in the paper, 1 - rho² in the authors' code."""
    return complement_root(rho) if outer == "sqrt" else 1.0 - rho.square()


def mixture_fit_loss(log_pi: Tensor, outputs: Tensor, labels: Tensor, *, lambda_reg: float) -> Tensor:
    """(B,) fit term of (10): sum_k pi_k [-softmax(yhat_k)_y + lambda_reg logsumexp(yhat_k)].

    A negative probability, not a log-probability: bounded for a label that no component explains.

    Args:
        log_pi: (B, K).
        outputs: (B, K, D) sampled outputs.
        labels: (B,) int64.
        lambda_reg: weight of the log-sum-exp that keeps the outputs bounded.
    """
    log_total = outputs.logsumexp(dim=2)
    fit = (_at_label(outputs, labels) - log_total).exp()
    return (log_pi.exp() * (lambda_reg * log_total - fit)).sum(dim=1)


def kendall_fit_loss(log_pi: Tensor, outputs: Tensor, labels: Tensor) -> Tensor:
    """(B,) sum_k pi_k [-yhat_k,y + logsumexp(yhat_k)]: log-likelihood of the sampled outputs.

    The mixture's cross-entropy, which serves as warm-up.
    """
    return (log_pi.exp() * (outputs.logsumexp(dim=2) - _at_label(outputs, labels))).sum(dim=1)


def correlation_kl(rho: Tensor, log_pi: Tensor, *, form: str = "paper") -> Tensor:
    """(B,) KL term (11) that ties the mixture probabilities to the correlations.

    ``"paper"``: KL(softmax(rho) || pi). ``"code_regression"``, of the authors' regression code:
    sum_k r_k (log(r_k + 0.01) - log(pi_k + 0.01)) with r = rho + 1, not normalised.
    """
    if form == "paper":
        log_share = functional.log_softmax(rho, dim=1)
        return (log_share.exp() * (log_share - log_pi)).sum(dim=1)
    weight = rho + 1.0
    return (weight * ((weight + 1e-2).log() - (log_pi.exp() + 1e-2).log())).sum(dim=1)


def component_probs(means: Tensor, variances: Tensor) -> Tensor:
    """(B, K, D) pbar_k(c | x) = E[softmax(yhat_k)_c] under (9), Equation (13), from (B, K, D) twice.

    In the mean-field form softmax(mean / sqrt(1 + pi V / 8)).
    """
    return torch.softmax(means / (1.0 + math.pi * variances / 8.0).sqrt(), dim=2)


def responsibilities(log_pi: Tensor, label_probs: Tensor) -> Tensor:
    """(B, K) gamma_k = pi_k pbar_k(y|x) / sum_j pi_j pbar_j(y|x), Equation (14); rows sum to 1.

    Args:
        log_pi: (B, K).
        label_probs: (B, K) pbar_k of the given label.
    """
    smallest = torch.finfo(label_probs.dtype).tiny
    return torch.softmax(log_pi + label_probs.clamp_min(smallest).log(), dim=1)


def label_signals(log_pi: Tensor, rho: Tensor, probs: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Per-sample signals (14)-(17), each (B,), for samples with a given label.

    ``rho`` is rho_label = sum_k gamma_k rho_k (15), ``gamma_1`` and ``p_target`` the target component's
    responsibility and probability of the given label (16), ``rho_x`` = sum_k pi_k rho_k and ``pi_1`` (17).
    The first three know the label; the last two describe the image alone.

    Args:
        log_pi: (B, K).
        rho: (B, K), evaluation form (rho_1 = 1).
        probs: (B, K, D) pbar.
        labels: (B,) int64.
    """
    label_probs = _at_label(probs, labels)
    gamma = responsibilities(log_pi, label_probs)
    pi = log_pi.exp()
    return {
        "rho": (gamma * rho).sum(dim=1),
        "gamma_1": gamma[:, 0],
        "p_target": label_probs[:, 0],
        "rho_x": (pi * rho).sum(dim=1),
        "pi_1": pi[:, 0],
    }


def _at_label(values: Tensor, labels: Tensor) -> Tensor:
    """(B, K): values (B, K, D) at each sample's label (B,)."""
    index = labels[:, None, None].expand(-1, values.shape[1], 1)
    return values.gather(2, index).squeeze(2)


def _head(feature_size: int, size: int, scale: float) -> nn.Linear:
    linear = nn.Linear(feature_size, size)
    nn.init.normal_(linear.weight, std=scale)
    nn.init.zeros_(linear.bias)
    return linear
