"""ChoiceNet: a mixture whose components are correlated with one target classifier.

Paper: "Task Agnostic Robust Learning on Corrupt Outputs by Correlation-Guided Mixture Density Networks",
CVPR 2020, https://arxiv.org/abs/1805.06431. Equation numbers are those of `cholesky.py`.

Each of K components predicts with weights of correlation rho_k(x) to the target weights. Component 1 has
rho = 1 at evaluation and is the classifier; labels that it does not explain are left to components of
smaller rho, under a loss (10) that is bounded for every label. No clean data and no noise rate is needed.

Trust: the target component's log-space margin of the given label over test-time views, ranked together
with the same margin averaged over training; high = clean. The published rho knows only the image, so it is
shown as explanation in its label-aware form (signal ``rho``, high = clean): measured, it is erratic
(AUROC .50 to .98) where the target component is dependable. ``trust="published"`` ranks rho and p_target.

Departures from the paper, each a field: ``warmup_epochs`` of cross-entropy of the mixture, without which
short runs under-fit (0 in ``paper``), in which rho gets no gradient; ``rho_start``: the components start
at correlations .8, .6, .4, .2 (the two together let rho tell wrong labels); ``rho_ref`` 0.95 in training
as in the authors' code (the paper's 1 leaves the target without noise); ``sharing="independent"`` draws,
equal in expectation; one temperature for the probabilities unless ``trust`` is the published one (expected
calibration error .089 -> .013 on digits with 20 % wrong labels). Numeric targets: `numbers.py`.

Memory, for K components, D classes, Q features: images (N*C*H*W bytes where resident); about 60 bytes a sample
for margins and signals, and at most 200 for their history; B*K*D floats a step (the (B, Q, D) weights of the
paper are never drawn); at the end the scores, N*(2D + Q)*4 bytes. Unlabeled samples are predicted
but never trained on.

Measured: on symmetric errors it ranks as plain cross-entropy does. It earns its place on
structured noise: 20,000 images, permutation of 45 %: .961 against .716 (choicenet_tables.json, one seed).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engines.choicenet.cholesky import Mixture, correlation_kl, kendall_fit_loss, mixture_fit_loss
from engines.choicenet.config import ChoiceNetConfig, choicenet_learning_rate
from engines.choicenet.networks import MixtureNetwork, build_mixture_network
from engines.choicenet.signals import VisitSignals, final_signals, fit_temperature, report_notes
from engines.contract import Checkpoint, EngineResult, OnEpoch, TrainingData
from engines.shared.config import make_optimizer, set_learning_rate
from engines.shared.device import autocast, make_generator, memory_errors_explained, seeded_init
from engines.shared.loader import epoch_batches
from engines.shared.losses import require_finite
from engines.shared.out_of_fold import out_of_fold
from engines.shared.run import Run
from engines.shared.scoring import (
    MarginTracker,
    normalized_probs,
    test_time_margin,
    trust_from_evidence,
)

GRAD_CLIP = 1.0
"""Every element of the gradient is clipped to this absolute value."""
Builder = Callable[..., MixtureNetwork]
"""Makes a network as ``build_mixture_network`` does, from the same arguments."""


@memory_errors_explained()
@out_of_fold("choicenet")
def train(
    data: TrainingData,
    config: ChoiceNetConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
) -> EngineResult:
    """Train ChoiceNet on the given labels and judge every one of them.

    Raises:
        EngineInputError: nothing to learn from, a network that does not fit, a foreign checkpoint.
        DeviceMemoryError: the device ran out of memory.
    """
    run = Run(
        "choicenet",
        data,
        config,
        seed=seed,
        device=device,
        on_epoch=on_epoch,
        checkpoint=checkpoint,
        standardized=config.input_scale == "standardized",
    )
    return train_network(run, config)


def train_network(run: Run, config: ChoiceNetConfig, build: Builder = build_mixture_network) -> EngineResult:
    """``train`` of a run; the paper's tables build other networks."""
    # 1. The network and what is noted of every sample.
    training = _Training(run, config, build)
    # 2. A killed run goes on after its last saved epoch.
    state = run.resume()
    if state is not None:
        training.load_state_dict(state)

    for epoch in range(0 if state is None else state["epoch"], config.epochs):
        # 3. One pass over the labeled samples; dropout is drawn from (seed, epoch) like everything else.
        with seeded_init(run.seed, "dropout", epoch):
            losses, metrics = _train_epoch(training, epoch)
        # 4. Record, save, then tell the caller, who may cancel.
        training.visits.end_epoch(epoch, config.epochs)
        run.epoch(
            epoch,
            losses,
            metrics,
            training.visits.now(),
            state=lambda done=epoch + 1: {"epoch": done, **training.state_dict()},  # type: ignore[misc]
        )
    # 5. A deterministic pass over all samples, unlabeled ones included.
    return _result(training)


class _Training:
    """Network, optimizer and what is noted of every sample between epochs."""

    def __init__(self, run: Run, config: ChoiceNetConfig, build: Builder = build_mixture_network) -> None:
        self.run, self.config = run, config
        self.augment = run.rows.resolve_augment(config.augment)
        with seeded_init(run.seed, "network", 0):
            network = build(config, run.network_name(), run.rows.shape, num_classes=run.data.num_classes)
        self.network = network.to(run.device)
        self.optimizer = _optimizer(self.network, config)
        self.margins = MarginTracker(run.data.num_samples, run.device)
        self.visits = VisitSignals(run.data.num_samples, run.device)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.margins.load_state_dict(state["margins"])
        self.visits.load_state_dict(state["visits"])

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint; nothing else is random that is not derived from (seed, epoch)."""
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "margins": self.margins.state_dict(),
            "visits": self.visits.state_dict(),
        }


def _optimizer(network: MixtureNetwork, config: ChoiceNetConfig) -> torch.optim.Optimizer:
    """The optimizer without its own decay: the L2 term belongs to the loss, before the clipping."""
    optimizer = make_optimizer(network, dataclasses.replace(config, weight_decay=0.0))
    if config.optimizer == "adam":
        for group in optimizer.param_groups:
            group["eps"] = config.adam_epsilon
    return optimizer


def _train_epoch(training: _Training, epoch: int) -> tuple[dict[str, float], dict[str, float]]:
    """One pass over the labeled samples: mean losses and metrics."""
    config, run = training.config, training.run
    training.network.train()
    set_learning_rate(training.optimizer, choicenet_learning_rate(config, epoch))
    moves = make_generator(run.seed, "augment", epoch, device=run.device)
    noise = make_generator(run.seed, "noise", epoch, 0, device=run.device)
    totals = torch.zeros(4, dtype=torch.float64, device=run.device)
    size = config.batch_size_for(len(run.labeled))
    for rows in epoch_batches(run.labeled, size, make_generator(run.seed, "order", epoch)):
        images, labels = run.inputs(rows, training.augment, moves), run.labels[rows]
        with autocast(config.precision, run.device):
            _, mixture = training.network.mixture(images)
        fit, kl = _sample_losses(config, mixture, labels, noise, warmup=epoch < config.warmup_epochs)
        _step(training, (fit + config.lambda_kl * kl).mean())
        totals += _batch_totals(training, rows, mixture, labels, fit, kl)
    mean = (totals / len(run.labeled)).tolist()
    require_finite(mean)
    return {
        "total": mean[1] + config.lambda_kl * mean[2],
        "fit": mean[1],
        "kl": mean[2],
        "lse": mean[3],
    }, {"train_accuracy": mean[0], **run.heldout_accuracy(training.network)}


def _sample_losses(
    config: ChoiceNetConfig, mixture: Mixture, labels: Tensor, noise: torch.Generator, *, warmup: bool
) -> tuple[Tensor, Tensor]:
    """Fit term of (10) and KL term (11), (B,) each, from one draw of the outputs."""
    if warmup:
        # Cross-entropy rewards every component for copying the target; held apart, they keep their roles.
        mixture = mixture.with_fixed_correlations()
    outputs = mixture.sample(noise, sharing=config.sharing)
    if warmup:
        fit = kendall_fit_loss(mixture.log_pi, outputs, labels)
    else:
        fit = mixture_fit_loss(mixture.log_pi, outputs, labels, lambda_reg=config.lambda_reg)
    return fit, correlation_kl(mixture.rho, mixture.log_pi)


def _step(training: _Training, loss: Tensor) -> None:
    """One optimizer step: gradient of loss and L2 term, every element clipped."""
    training.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    trained = [parameter for parameter in training.network.parameters() if parameter.grad is not None]
    if training.config.weight_decay:
        for parameter in trained:
            assert parameter.grad is not None
            parameter.grad.add_(parameter.detach(), alpha=training.config.weight_decay)
    torch.nn.utils.clip_grad_value_(trained, GRAD_CLIP)
    training.optimizer.step()


@torch.no_grad()
def _batch_totals(
    training: _Training, rows: Tensor, mixture: Mixture, labels: Tensor, fit: Tensor, kl: Tensor
) -> Tensor:
    """Note the visit of these samples; sums of correct, fit, KL and log-sum-exp."""
    training.visits.update(rows, mixture, labels)
    training.margins.update(rows, mixture.target, labels)
    correct = (mixture.target.argmax(dim=1) == labels).double().sum()
    return torch.stack([correct, fit.sum(), kl.sum(), mixture.target.logsumexp(dim=1).sum()])


def _result(training: _Training) -> EngineResult:
    """Scores, signals and trust from the final pass."""
    run, config, given = training.run, training.config, training.run.data.given_labels
    scores = run.score(training.network, views=config.views)
    signals, mean_rho = final_signals(training.network, scores.embeddings, given, run.device)
    if config.trust == "published":
        trust = trust_from_evidence(*training.visits.averages().values())
    else:
        trust = trust_from_evidence(test_time_margin(scores.log_probs, given), training.margins.margin())
    temperature, calibrated_rate = (
        fit_temperature(scores.log_probs, given) if config.trust == "margin" else (1.0, None)
    )
    notes = report_notes(
        predicted=scores.log_probs.argmax(axis=1),
        labels=given,
        signals=signals,
        mean_rho=mean_rho,
        num_classes=run.data.num_classes,
    )
    return run.result(
        pred_probs=normalized_probs(scores.log_probs / np.float32(temperature)),
        trust_score=trust,
        signals=signals,
        embeddings=scores.embeddings,
        notes={**notes, "temperature": temperature, "noise_rate_by_calibration": calibrated_rate},
    )
