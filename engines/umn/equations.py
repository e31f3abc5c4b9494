"""The equations of UMN: small pure functions, tensors in, one value a sample out.

Numbers U3 to U12 are those of the method's derivation (``engines/umn.py`` tells the story): a stacked
variational autoencoder x <- z_a <- (z_b, y) whose label likelihood p(given | true) is wrong with a
probability ε of its own for every sample. Nothing here knows a network, a file or a config.

Letters: B batch, K classes, d size of a latent. All functions keep the dtype of their input; logarithms of
probabilities near one or zero are taken in a form that loses no digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

LOG_TWO_PI = math.log(2 * math.pi)
LOG_VARIANCE_RANGE = (-8.0, 8.0)
"""Log-variances of every Gaussian are clipped to this; outside it exp() and its gradient are useless."""


def gaussian_entropy(log_variance: Tensor) -> Tensor:
    """Entropy of a diagonal Gaussian (U4): E_q[-log q(z_a | x)]; (..., d) -> (...)."""
    return 0.5 * (1.0 + LOG_TWO_PI + log_variance).sum(-1)


def standard_normal_kl(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(N(mean, exp(log_variance)) || N(0, I)) (U4); (..., d), (..., d) -> (...)."""
    return 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(-1)


def gaussian_log_density(value: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """log N(value; mean, exp(log_variance)) (U4); (..., d) each, broadcast -> (...)."""
    squared = (value - mean).square() * torch.exp(-log_variance)
    return -0.5 * (LOG_TWO_PI + log_variance + squared).sum(-1)


def uniform_kl(log_probs: Tensor, num_classes: int) -> Tensor:
    """KL(q(y) || uniform over K classes) (U4) = log K + sum q log q; (B, c) log-probabilities, c <= K -> (B,)."""
    return math.log(num_classes) + (log_probs.exp() * log_probs).sum(-1)


def reconstruction_log_likelihood(target: Tensor, output: Tensor, *, kind: str, variance: float) -> Tensor:
    """log p(x | z_a) (U5), summed over pixels.

    Args:
        target: (B, C, H, W) in [0, 1].
        output: same shape; logits for ``"bernoulli"``, the mean for ``"gaussian"``.
        kind: ``"bernoulli"`` or ``"gaussian"``.
        variance: fixed variance of the Gaussian; its constant is left out, as it has no gradient.

    Returns:
        (B,) nats.
    """
    if kind == "bernoulli":
        terms = -F.binary_cross_entropy_with_logits(output, target, reduction="none")
    else:
        terms = -(target - output).square() / (2.0 * variance)
    return terms.flatten(1).sum(1)


def feature_log_likelihood(target: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """log p(x | z_a) of features (U5): a Gaussian whose variance is one learned number for each feature.

    -1/2 sum_d [ log 2 pi + log s_d^2 + (x_d - mean_d)^2 / s_d^2 ]. Unlike the pixels of an image, the values of a
    backbone have no common scale of noise: what the latent cannot explain of a value is its s_d.

    Args:
        target: (B, D) standardised features.
        mean: (B, D) the decoder's output.
        log_variance: (D,) log s^2, clipped to ``LOG_VARIANCE_RANGE``.

    Returns:
        (B,) nats.
    """
    return gaussian_log_density(target, mean, log_variance.clamp(*LOG_VARIANCE_RANGE))


def uncertainty(guider_probs: Tensor, learner_probs: Tensor, labels: Tensor) -> Tensor:
    """ε (U8): |p_guider(given) - p_learner(given)|, detached; (B, K), (B, K), (B,) -> (B,) in [0, 1].

    Rows without a label (-1) get 0; they never reach the label term.
    """
    column = labels.clamp_min(0).unsqueeze(1)
    gap = (guider_probs.detach().gather(1, column) - learner_probs.detach().gather(1, column)).abs()
    return torch.where(labels < 0, torch.zeros_like(gap[:, 0]), gap[:, 0])


def clamp_uncertainty(epsilon: Tensor, num_classes: int, *, floor: float) -> Tensor:
    """ε clipped so that its weight stays finite (U12) and at least zero.

    The paper has no clamp, but ε is exactly 0 at the first step, where guider and learner are equal.
    """
    ceiling = (num_classes - 1) / num_classes
    return epsilon.clamp(min(floor, ceiling), ceiling)


def uncertainty_weight(epsilon: Tensor, num_classes: int) -> Tensor:
    """f(ε) = log((K - 1)(1 - ε) / ε) (U7): what a label of that uncertainty weighs; (B,) -> (B,)."""
    return math.log(num_classes - 1) + torch.log1p(-epsilon) - epsilon.log()


def label_term(log_probs: Tensor, labels: Tensor, weight: Tensor, *, kind: str = "linear") -> Tensor:
    """The part of the label likelihood that has a gradient (U7), zero where unlabeled.

    Args:
        log_probs: (B, K) log q(y | z_a).
        labels: (B,) given labels, -1 where there is none.
        weight: (B,) f(ε), or a constant for the baselines; carries no gradient.
        kind: ``"linear"`` is the paper's f·q(given); ``"log"`` is f·log q(given), which learns faster
            with many classes and memorises more.

    Returns:
        (B,) to be maximised.
    """
    given = log_probs.gather(1, labels.clamp_min(0).unsqueeze(1))[:, 0]
    value = given.exp() if kind == "linear" else given
    return torch.where(labels < 0, torch.zeros_like(value), weight.detach() * value)


def likely_classes(log_probs: Tensor, most: int | None) -> tuple[Tensor, Tensor]:
    """q(y | z_a) restricted to each row's ``most`` likeliest classes, and those classes.

    U3 with a q that is zero elsewhere is a lower bound still, as with any q; its sum has ``most`` terms in place of
    K. Exact where ``most`` is None or K.

    Args:
        log_probs: (B, K) log q(y | z_a).
        most: at least 1, or None.

    Returns:
        (B, most) log-probabilities that sum to one a row, and (B, most) int64 classes; or (B, K) and (K,).
    """
    num_classes = log_probs.shape[1]
    if most is None or most >= num_classes:
        return log_probs, torch.arange(num_classes, device=log_probs.device)
    classes = log_probs.detach().topk(most, dim=1).indices
    return F.log_softmax(log_probs.gather(1, classes), dim=1), classes


def sum_over_classes(
    class_terms: Callable[[Tensor, Tensor, Tensor], Tensor],
    z_a: Tensor,
    log_probs: Tensor,
    noise: Tensor,
    classes: Tensor,
    *,
    y_chunk: int,
) -> Tensor:
    """sum_y q(y | z_a) { log p(z_a | z_b, y) - KL(q(z_b | z_a, y) || N(0, I)) }, over all that q allows (U3).

    Classes are taken ``y_chunk`` at a time. When they do not fit in one chunk, a chunk's activations are
    recomputed in the backward pass, so that at most ``B * y_chunk`` rows of the upper networks are alive
    at once whatever K is.

    Args:
        class_terms: (z_a (B, d_a), noise (B, c, d_b), classes (c,) or (B, c)) -> (B, c), the braces above.
        z_a: (B, d_a) one sample of the lower latent.
        log_probs: (B, C) log q(y | z_a); C of ``likely_classes``.
        noise: (B, C, d_b) standard normal draws for z_b.
        classes: (C,) or (B, C) whose they are.
        y_chunk: classes at a time, at least 1.

    Returns:
        (B,) nats.
    """
    summed = log_probs.shape[1]
    if summed <= y_chunk:
        return (log_probs.exp() * class_terms(z_a, noise, classes)).sum(1)
    total = torch.zeros_like(z_a[:, 0])
    for start in range(0, summed, y_chunk):
        part = slice(start, start + y_chunk)
        terms = checkpoint(
            class_terms,
            z_a,
            noise[:, part],
            classes[..., part],
            use_reentrant=False,
            preserve_rng_state=False,
        )
        total = total + (log_probs[:, part].exp() * terms).sum(1)
    return total


def sample_gaussian(mean: Tensor, log_variance: Tensor, noise: Tensor) -> Tensor:
    """One draw of N(mean, exp(log_variance)) from standard normal ``noise``, differentiable."""
    return mean + torch.exp(0.5 * log_variance) * noise


def guider_decay(step: int, gamma: float) -> float:
    """γ_t = min(γ, 1 - 1/(t+1)) (U9), t counted from 1: an average of everything before it is long enough."""
    return min(gamma, 1.0 - 1.0 / (step + 1))
