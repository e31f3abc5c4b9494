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
equal in expectation; ``calibrate``: one temperature for the probabilities (expected calibration error
.089 -> .013 on digits with 20 % wrong labels). Numeric targets: `choicenet_regression.py`. Baselines and
extensions: ``variant``, ``mixup``, ``coteaching``.

Memory, for K components, D classes, Q features: images (N*C*H*W bytes where resident); about 60 bytes a sample
for margins and signals, and at most 200 for their history; B*K*D floats a step (the (B, Q, D) weights of the
paper are never drawn); at the end the scores, N*(2D + Q)*4 bytes a network. Unlabeled samples are predicted
but never trained on.

Measured (2,000 MNIST images, 20 % symmetric errors, ``quick``, conv3, one seed, 21 s of one CPU core, torch
2.15): AUROC of trust .999, as plain cross-entropy (benchmarks/results/quick_preset.json). It earns its place on
structured noise: 20,000 images, permutation of 45 %: .961 against .716 (choicenet_tables.json, one seed).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engines.choicenet.cholesky import correlation_kl, kendall_fit_loss, mixture_fit_loss
from engines.choicenet.config import ChoiceNetConfig, choicenet_learning_rate
from engines.choicenet.networks import MixtureNetwork, OutputMixture, build_mixture_network
from engines.choicenet.signals import VisitSignals, final_signals, fit_temperature, report_notes
from engines.contract import Checkpoint, EngineResult, OnEpoch, TrainingData
from engines.shared.averaged import averaged
from engines.shared.config import make_optimizer, set_learning_rate
from engines.shared.device import (
    autocast,
    derive_seed,
    make_generator,
    memory_errors_explained,
    seeded_init,
)
from engines.shared.loader import epoch_batches, moved_together
from engines.shared.losses import cross_entropy, require_finite
from engines.shared.run import Run
from engines.shared.scoring import (
    MarginTracker,
    normalized_probs,
    score_pass,
    test_time_margin,
    trust_from_evidence,
)
from engines.shared.selection import keep_count, select_small_loss


@memory_errors_explained()
@averaged("choicenet")
def train(
    data: TrainingData,
    config: ChoiceNetConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
) -> EngineResult:
    """Train ChoiceNet (or a variant) on the given labels and judge every one of them.

    Raises:
        EngineInputError: nothing to learn from, a network that does not fit, a foreign checkpoint.
        DeviceMemoryError: the device ran out of memory.
    """
    # 1. One network (two for co-teaching) and what is noted of every sample.
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
    training = _Training(run, config)
    # 2. A killed run goes on after its last saved epoch.
    state = run.resume()
    if state is not None:
        training.load_state_dict(state)

    for epoch in range(0 if state is None else state["epoch"], config.epochs):
        # 3. One pass over the labeled samples; dropout is drawn from (seed, epoch) like everything else.
        with seeded_init(seed, "dropout", epoch):
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
    """Networks, optimizers and what is noted of every sample between epochs."""

    def __init__(self, run: Run, config: ChoiceNetConfig) -> None:
        self.run, self.config = run, config
        self.augment = run.rows.resolve_augment(config.augment)
        self.networks = [self._build(which) for which in range(2 if config.coteaching else 1)]
        self.optimizers = [_optimizer(network, config) for network in self.networks]
        self.margins = MarginTracker(run.data.num_samples, run.device)
        self.visits = VisitSignals(run.data.num_samples, run.device)

    def _build(self, which: int) -> MixtureNetwork:
        run = self.run
        with seeded_init(run.seed, "network", which):
            network = build_mixture_network(
                self.config, run.network_name(), run.rows.shape, num_classes=run.data.num_classes
            )
        network = network.to(run.device)
        if self.config.compile:
            network.compile_trunk(run.device)
        return network

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        for network, optimizer, saved in zip(self.networks, self.optimizers, state["networks"], strict=True):
            network.load_state_dict(saved["network"])
            optimizer.load_state_dict(saved["optimizer"])
        self.margins.load_state_dict(state["margins"])
        self.visits.load_state_dict(state["visits"])

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint; nothing else is random that is not derived from (seed, epoch)."""
        pairs = zip(self.networks, self.optimizers, strict=True)
        return {
            "networks": [{"network": n.state_dict(), "optimizer": o.state_dict()} for n, o in pairs],
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
    for network, optimizer in zip(training.networks, training.optimizers, strict=True):
        network.train()
        set_learning_rate(optimizer, choicenet_learning_rate(config, epoch))
    moves = make_generator(run.seed, "augment", epoch, device=run.device)
    noises = [
        make_generator(run.seed, "noise", epoch, which, device=run.device)
        for which in range(len(training.networks))
    ]
    totals = torch.zeros(4, dtype=torch.float64, device=run.device)
    size = config.batch_size_for(len(run.labeled))
    batches = list(epoch_batches(run.labeled, size, make_generator(run.seed, "order", epoch)))
    shares = np.random.default_rng(derive_seed(run.seed, "mixup", epoch))
    pairs = iter(_pairs(shares, [len(rows) for rows in batches], run.device) if config.mixup else ())
    for rows in batches:
        images, labels = run.inputs(rows, training.augment, moves), run.labels[rows]
        mixed = _mix(images, labels, *next(pairs)) if config.mixup else _Batch(images, labels)
        mixtures, losses = [], []
        for network, noise in zip(training.networks, noises, strict=True):
            with autocast(config.precision, run.device):
                _, mixture = network.mixture(mixed.images)
            mixtures.append(mixture)
            losses.append(_sample_losses(config, mixture, mixed, noise, warmup=epoch < config.warmup_epochs))
        kept = _exchange(config, mixtures, labels, epoch)
        for which, (fit, kl) in enumerate(losses):
            _step(training, which, (fit + config.lambda_kl * kl)[kept[which]].mean())
        totals += _batch_totals(training, rows, mixtures, labels, losses)
    mean = (totals / len(run.labeled)).tolist()
    require_finite(mean)
    metrics = {"train_accuracy": mean[0], **_heldout(training)}
    if config.coteaching:
        metrics["keep_rate"] = _keep_rate(config, epoch)
    return {
        "total": mean[1] + config.lambda_kl * mean[2],
        "fit": mean[1],
        "kl": mean[2],
        "lse": mean[3],
    }, metrics


@dataclass(frozen=True)
class _Batch:
    """Images and one or two labels a sample, with the share of the first."""

    images: Tensor
    labels: Tensor
    other_labels: Tensor | None = None
    share: Tensor | None = None


def _pairs(draws: np.random.Generator, sizes: list[int], device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """The share (B,) float32 and partner (B,) of each sample of each batch, drawn and moved for a whole epoch."""
    shares, partners = [], []
    for size in sizes:
        drawn = draws.beta(0.5, 0.5, size)
        shares.append(torch.from_numpy(np.maximum(drawn, 1.0 - drawn)).float())
        partners.append(torch.from_numpy(draws.permutation(size)))
    moved = (moved_together(part, device) for part in (shares, partners))
    return list(zip(*moved, strict=True))


def _mix(images: Tensor, labels: Tensor, share: Tensor, partner: Tensor) -> _Batch:
    """Mixup with a share of its own for each sample; a sample always keeps the larger part of itself."""
    weight = share.view(-1, *[1] * (images.dim() - 1))
    return _Batch(weight * images + (1.0 - weight) * images[partner], labels, labels[partner], share)


def _sample_losses(
    config: ChoiceNetConfig,
    mixture: OutputMixture,
    batch: _Batch,
    noise: torch.Generator,
    *,
    warmup: bool,
) -> tuple[Tensor, Tensor]:
    """Fit term of (10) and KL term (11), (B,) each, from one draw of the outputs."""
    if warmup and config.variant != "kendall":
        # Cross-entropy rewards every component for copying the target; held apart, they keep their roles.
        mixture = mixture.with_fixed_correlations()
    outputs = mixture.sample(noise, sharing=config.sharing)
    by_log = warmup or config.variant in ("kendall", "standard")

    def fit(labels: Tensor) -> Tensor:
        if by_log:
            return kendall_fit_loss(mixture.log_pi, outputs, labels)
        return mixture_fit_loss(mixture.log_pi, outputs, labels, lambda_reg=config.lambda_reg)

    loss = fit(batch.labels)
    if batch.share is not None and batch.other_labels is not None:
        # Both fits are linear in the one-hot label, so mixing losses is mixing labels.
        loss = batch.share * loss + (1.0 - batch.share) * fit(batch.other_labels)
    if config.variant in ("mdn", "standard"):
        return loss, torch.zeros_like(loss)
    return loss, correlation_kl(mixture.rho, mixture.log_pi, form=config.kl_form)


def _keep_rate(config: ChoiceNetConfig, epoch: int) -> float:
    """R(t) = 1 - forget_rate min(t / ramp, 1), t counted from 0."""
    return 1.0 - config.forget_rate * min(epoch / config.ramp_epochs, 1.0)


def _exchange(
    config: ChoiceNetConfig, mixtures: list[OutputMixture], labels: Tensor, epoch: int
) -> list[Tensor]:
    """Rows that each network trains on: all, or those of small target loss in the *other* network."""
    if not config.coteaching:
        return [torch.arange(len(labels), device=labels.device)]
    count = keep_count(_keep_rate(config, epoch), len(labels))
    chosen = [
        select_small_loss(cross_entropy(mixture.target.detach(), labels), count) for mixture in mixtures
    ]
    return chosen[::-1]


def _step(training: _Training, which: int, loss: Tensor) -> None:
    """One optimizer step: gradient of loss and L2 term, every element clipped."""
    network, optimizer, config = training.networks[which], training.optimizers[which], training.config
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    trained = [parameter for parameter in network.parameters() if parameter.grad is not None]
    if config.weight_decay:
        for parameter in trained:
            assert parameter.grad is not None
            parameter.grad.add_(parameter.detach(), alpha=config.weight_decay)
    torch.nn.utils.clip_grad_value_(trained, config.grad_clip)
    optimizer.step()


@torch.no_grad()
def _batch_totals(
    training: _Training,
    rows: Tensor,
    mixtures: list[OutputMixture],
    labels: Tensor,
    losses: list[tuple[Tensor, Tensor]],
) -> Tensor:
    """Note the visit of these samples; sums of correct, fit, KL and log-sum-exp, averaged over networks."""
    training.visits.update(rows, mixtures, labels)
    sums = []
    for mixture, (fit, kl) in zip(mixtures, losses, strict=True):
        training.margins.update(rows, mixture.target, labels)
        correct = (mixture.target.argmax(dim=1) == labels).double().sum()
        sums.append(torch.stack([correct, fit.sum(), kl.sum(), mixture.target.logsumexp(dim=1).sum()]))
    return torch.stack([each.double() for each in sums]).mean(dim=0)


def _heldout(training: _Training) -> dict[str, float]:
    """Accuracy on the evaluation set, which draws a curve and selects nothing."""
    run, networks = training.run, training.networks
    if run.evaluation is None or len(networks) == 1:
        return run.heldout_accuracy(*networks)
    store, labels = run.evaluation[0], run.evaluation[1].cpu().numpy()  # two networks answer together
    precision = training.config.precision
    passes = [score_pass(network, store, run.mean_std, precision=precision) for network in networks]
    log_probs = np.mean([scores.log_probs for scores in passes], axis=0)
    return {"heldout_accuracy": float(np.mean(log_probs.argmax(axis=1) == labels))}


def _result(training: _Training) -> EngineResult:
    """Scores, signals and trust from the final pass."""
    run, config, given = training.run, training.config, training.run.data.given_labels
    passes = [run.score(network, views=config.views) for network in training.networks]
    log_probs = np.mean([scores.log_probs for scores in passes], axis=0)
    found = [
        final_signals(
            network,
            scores.embeddings,
            given,
            run.device,
        )
        for network, scores in zip(training.networks, passes, strict=True)
    ]
    signals = {name: np.mean([one[name] for one, _ in found], axis=0) for name in found[0][0]}
    if config.trust == "published":
        trust = trust_from_evidence(*training.visits.averages().values())
    else:
        trust = trust_from_evidence(test_time_margin(log_probs, given), training.margins.margin())
    temperature, calibrated_rate = fit_temperature(log_probs, given) if config.calibrate else (1.0, None)
    notes = report_notes(
        predicted=log_probs.argmax(axis=1),
        labels=given,
        signals=signals,
        mean_rho=found[0][1],
        num_classes=run.data.num_classes,
    )
    return run.result(
        pred_probs=normalized_probs(log_probs / np.float32(temperature)),
        trust_score=trust,
        signals=signals,
        embeddings=passes[0].embeddings,
        notes={**notes, "temperature": temperature, "noise_rate_by_calibration": calibrated_rate},
    )
