"""Co-teaching with a keep rate found on the data: two networks hand each other their small-loss samples.

In every batch each network picks the R(t) share of samples with the smallest losses, and its partner learns
from them; R(t) falls as memorisation sets in (Han et al. 2018, https://arxiv.org/abs/1804.06872). How fast it
should fall depends on the data, so it is searched (S2E, Yao et al. 2020, https://arxiv.org/abs/1911.02377); on
features of a backbone it follows the share of wrong labels that a noise model guesses (``search_rule``), and it is
found once a run. Nobody is asked for a noise rate. Read ``Learners`` for the algorithm, ``train`` for the run
around it, ``rules.py`` for who learns from what, ``trials.py`` and ``s2e.py`` for the search.

Trust ranks the margin of the given label, averaged over test-time views and both networks, together with the
margin averaged over training. The published signal, how often a sample was *selected*, is high for clean
samples; it is shown, not used: it collapses where R(t) does not fit the noise (measured).

Uses trusted samples, where there are enough (``MIN_TRUSTED``), to judge schedules; unlabeled samples are left
out of training and scored. The search trains proxies of the final run; all trials share one warm-up. Then the
best schedule seen is trained from scratch on every labeled sample, those held out of the search included.
Departures from the papers, all fields of ``CoteachingConfig``: averaging over a trial's last epochs
(``objective_epochs``), Eq. 4 at a few rates as rivals (``anchors``), taking among equals the schedule that drops
most (``tie_margin``), a shared ``warmup_epochs``. Measured (benchmarks/results/detection.json, 10,000 images, 10
epochs, mean of 3 seeds, against ``cross_entropy``): CIFAR-10 with human labels, conv3: AUROC .834 for .830
(aggregate) and .853 for .852 (one annotator); MNIST, pair 45 %, mlp: .924 for .760.

Memory: the images (see ``resident``); two networks with gradients and moments, 16 bytes a weight with Adam, and
their activations for one batch; a checkpoint of each repeat's warm-up; about 120 bytes a sample for margins,
selection and ranks, and at most 200 for their history; at the end the scores of both networks,
2 N*(2K + D)*4 bytes for K classes and D features.

Letters: N samples, B batch, K classes, E epochs.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engines.contract import (
    Checkpoint,
    EngineResult,
    OnEpoch,
    TrainingData,
)
from engines.coteaching.config import CoteachingConfig
from engines.coteaching.rules import choose_exchanged, mean_loss
from engines.coteaching.signals import EpochLog, EpochOutcome, Tally, epoch_signals
from engines.coteaching.trials import (
    LEAST_MEASURED_KEEP_RATE,
    FoundSchedule,
    ScheduleSearch,
    concentrated_share,
    estimate_noise_rate,
    split_rows,
)
from engines.noise_model.training import guess_noise_rate
from engines.shared import optimizers
from engines.shared.config import learning_rate_at, parameter_groups, set_learning_rate
from engines.shared.device import (
    autocast,
    make_generator,
    memory_errors_explained,
    seeded_init,
)
from engines.shared.large import side_by_side
from engines.shared.loader import epoch_batches
from engines.shared.losses import cross_entropy
from engines.shared.out_of_fold import out_of_fold
from engines.shared.run import Run
from engines.shared.scoring import (
    MarginTracker,
    normalized_probs,
    test_time_margin,
    trust_from_evidence,
)

__all__ = ["CoteachingConfig", "train"]

MOST_BATCHES = 401
"""Batches of an epoch at most, in published runs."""


# --- the algorithm ----------------------------------------------------------------------------------------


class Learners:
    """Two networks that teach each other under one R(t).

    All random draws are named by (seed, stream, epoch): an epoch is the same whether or not the run was
    interrupted before it, and trainings of one stream start alike and see the same batches.

    Args:
        run: the run.
        config: its config.
        keep_rates: (E,) R of each epoch.
        rows: int64 rows to train on, all labeled; where they are not on the device they are moved there.
        stream: names this training's random draws.
        is_final: this is the long training: compile it if asked to, and keep the area under the margin.
    """

    def __init__(
        self,
        run: Run,
        config: CoteachingConfig,
        keep_rates: NDArray[np.float64],
        rows: Tensor,
        stream: tuple[int | str, ...],
        *,
        is_final: bool = False,
    ) -> None:
        self.run, self.config, self.keep_rates = run, config, keep_rates
        self._rows, self._stream = rows.to(run.device), stream
        self.augment = run.rows.resolve_augment(config.augment)
        self.networks = [build_learner(run, *stream, "network", g) for g in range(2)]
        self._optimizers = [_make_optimizer(network, config) for network in self.networks]
        self.trackers = [MarginTracker(run.data.num_samples, run.device) for _ in range(2 if is_final else 0)]

    def run_epoch(self, epoch: int) -> EpochOutcome:
        """Train one pass (E epochs in all, ``epoch`` 0-based).

        Raises:
            EngineError: the loss is no longer finite.
        """
        run, config = self.run, self.config
        self._set_rates(epoch)
        order = make_generator(run.seed, *self._stream, "order", epoch)
        moves = make_generator(run.seed, *self._stream, "augment", epoch, device=run.device)
        size = config.batch_size_for(len(self._rows))
        batches = epoch_batches(self._rows, size, order, drop_last=config.as_published)
        log = EpochLog(run.data.num_samples, run.device)
        with seeded_init(run.seed, *self._stream, "dropout", epoch):
            for rows in itertools.islice(batches, MOST_BATCHES if config.as_published else None):
                self._step(rows, self.inputs(rows, moves), float(self.keep_rates[epoch]), log)
        return log.outcome()

    def inputs(self, rows: Tensor, moves: torch.Generator | None = None) -> Tensor:
        """Images of ``rows`` as the networks take them; moved at random where a generator is given."""
        images = self.run.inputs(rows, self.augment, moves)
        return images.contiguous(memory_format=torch.channels_last) if images.dim() == 4 else images

    def _step(self, rows: Tensor, images: Tensor, keep_rate: float, log: EpochLog) -> None:
        labels = self.run.labels[rows]
        # 1. Both networks look at the same batch: the loss of every sample, Eq. (1).
        with autocast(self.config.precision, self.run.device):
            seen = [network(images)[1] for network in self.networks]
        logits = [one if one.dtype == torch.float64 else one.float() for one in seen]
        losses = torch.stack([cross_entropy(one, labels) for one in logits])  # (2, B)
        # 2. Each picks the R(t) share of small losses, and learns from what its partner picked, Eq. (2).
        choice = choose_exchanged(losses, keep_rate)
        # 3. Each takes a step on the mean loss of what it was given, Eq. (3). Networks share no parameter, so the
        # gradient of the sum is each network's own gradient.
        for optimizer in self._optimizers:
            optimizer.zero_grad(set_to_none=True)
        mean_loss(losses, choice).sum().backward()
        for optimizer in self._optimizers:
            optimizer.step()
        predictions = torch.stack([one.detach().argmax(dim=1) for one in logits])
        log.add(rows, losses.detach(), choice, predictions == labels)
        for tracker, one in zip(self.trackers, logits, strict=False):
            tracker.update(rows, one, labels)

    def _set_rates(self, epoch: int) -> None:
        for optimizer in self._optimizers:
            set_learning_rate(optimizer, learning_rate_at(self.config, epoch, len(self.keep_rates)))

    @torch.no_grad()
    def evaluate(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Loss and correctness of both networks in evaluation mode: (2, n) each, on the CPU."""
        run = self.run
        for network in self.networks:
            network.eval()
        losses, correct = [], []
        for part in rows.to(run.device).split(run.scoring_batch):
            images, labels = self.inputs(part), run.labels[part]
            with autocast(self.config.precision, run.device):
                logits = [network(images)[1] for network in self.networks]
            losses.append(torch.stack([cross_entropy(one, labels) for one in logits]))
            correct.append(torch.stack([one.argmax(dim=1) == labels for one in logits]))
        for network in self.networks:
            network.train()
        return torch.cat(losses, dim=1).cpu(), torch.cat(correct, dim=1).cpu()

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint, on the CPU and sharing no memory with the training."""
        return {
            "networks": [_copied_to_cpu(network.state_dict()) for network in self.networks],
            "optimizers": [_copied_to_cpu(optimizer.state_dict()) for optimizer in self._optimizers],
            "trackers": [copy.deepcopy(tracker.state_dict()) for tracker in self.trackers],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        for network, values in zip(self.networks, state["networks"], strict=True):
            network.load_state_dict(values)
        for optimizer, values in zip(self._optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(copy.deepcopy(values))
        for tracker, values in zip(self.trackers, state["trackers"], strict=True):
            tracker.load_state_dict(values)


def build_learner(run: Run, *stream: int | str) -> nn.Module:
    """A fresh network, initialised from the named stream."""
    # Convolutions run about a quarter faster on channels-last tensors (conv3, one CPU thread).
    return run.build_network(*stream).to(memory_format=torch.channels_last)


def _make_optimizer(network: nn.Module, config: CoteachingConfig) -> torch.optim.Optimizer:
    """Adam or SGD; the loop sets their learning rate every epoch."""
    parameters = parameter_groups(network, config)
    if config.optimizer == "adam":
        return optimizers.Adam(parameters, lr=0.0, eps=1e-8, weight_decay=config.weight_decay, fused=True)
    return optimizers.SGD(parameters, lr=0.0, momentum=0.9, weight_decay=config.weight_decay)


def _copied_to_cpu(state: Any) -> Any:
    """A state_dict, whatever it nests, with copies of its tensors on the CPU: training on does not change them."""
    if isinstance(state, Tensor):
        return state.detach().cpu().clone()
    if isinstance(state, dict):
        return {name: _copied_to_cpu(value) for name, value in state.items()}
    if isinstance(state, list):
        return [_copied_to_cpu(value) for value in state]
    return copy.deepcopy(state)


# --- the run ----------------------------------------------------------------------------------------------


@memory_errors_explained()
@out_of_fold("coteaching")
def train(
    data: TrainingData,
    config: CoteachingConfig,
    *,
    seed: int = 0,
    device: str = "auto",
    on_epoch: OnEpoch | None = None,
    checkpoint: Checkpoint | None = None,
) -> EngineResult:
    """Search R(t), train a pair of networks under it, and rank every given label.

    Raises:
        EngineInputError: nothing to learn from, or a network that cannot take these images.
    """
    if not config.is_searched and config.noise_rate is None and config.keep_rates is None:
        rate = min(guess_noise_rate(data, seed=seed), 1 - LEAST_MEASURED_KEEP_RATE)
        config = replace(config, noise_rate=rate)
    run, search = _begin(data, config, seed, device, on_epoch, checkpoint)

    # 1. Go on where an earlier run of the same work stopped.
    state = run.resume(search.total_epochs + config.epochs)
    if state is not None:
        search.done, search.current = state["search"]["done"], state["search"]["current"]

    # 2. Find R(t).
    schedule = search.run(
        run.recorder,
        (lambda: run.save({"search": _searched(search), "train": None})) if run.keeps_checkpoints else None,
    )
    search.forget_networks()

    # 3. Train under it from scratch, on every labeled sample.
    learners, tally = _train_final(
        run, config, schedule.keep_rates, _searched(search), None if state is None else state["train"]
    )

    # 4. Score every sample with both networks.
    scores = [run.score(network, views=config.views) for network in learners.networks]
    log_probs = [one.log_probs for one in scores]
    mean = np.asarray(np.mean([normalized_probs(one) for one in log_probs], axis=0, dtype=np.float32))
    probs = (mean / mean.sum(axis=1, keepdims=True)).astype(np.float32)
    margin = np.mean([test_time_margin(one, data.given_labels) for one in log_probs], axis=0)
    warnings = _warnings(config, schedule, data.given_labels, probs)
    return run.result(
        pred_probs=probs,
        trust_score=trust_from_evidence(margin, area_under_margin(learners, data.labeled)),
        signals={
            name: np.where(data.labeled, values, np.float32("nan"))
            for name, values in tally.signals().items()
        },
        # The two networks share no axes, so their features lie side by side.
        embeddings=side_by_side([one.embeddings for one in scores]),
        notes=_notes(run, config, schedule, learners) | {"warnings": warnings},
    )


def _begin(
    data: TrainingData,
    config: CoteachingConfig,
    seed: int,
    device: str,
    on_epoch: OnEpoch | None,
    checkpoint: Checkpoint | None,
) -> tuple[Run, ScheduleSearch]:
    """Return the run and its search, with nothing done."""
    run = Run(
        "coteaching",
        data,
        config,
        seed=seed,
        device=device,
        on_epoch=on_epoch,
        checkpoint=checkpoint,
        standardized=not config.as_published,
    )
    search = ScheduleSearch(
        config,
        split_rows(data, config, seed),
        run.labeled,
        seed,
        begin=lambda curve, rows: Learners(run, config, curve, rows, ("search", 0)),
    )
    return run, search


def _searched(search: ScheduleSearch) -> dict[str, Any]:
    """Return what a checkpoint keeps of the search."""
    return {"done": search.done, "current": search.current}


def _train_final(
    run: Run,
    config: CoteachingConfig,
    keep_rates: NDArray[np.float64],
    search: dict[str, Any],
    state: dict[str, Any] | None,
) -> tuple[Learners, Tally]:
    """The training whose networks judge, or what is left of it by ``state``; and what was counted meanwhile.

    ``search`` is the state of the finished search, for checkpoints.
    """
    rows = run.labeled
    learners = Learners(run, config, keep_rates, rows, ("train", 0), is_final=True)
    tally, start = Tally(run.data.num_samples), 0
    if state:
        learners.load_state_dict(state["learners"])
        tally.load_state_dict(state["tally"])
        start = state["epoch"]
    for epoch in range(start, config.epochs):
        keep_rate, outcome = float(keep_rates[epoch]), None
        metrics, losses = {"keep_rate": keep_rate}, {}
        if epoch > 0 or not config.as_published:
            outcome = learners.run_epoch(epoch)
            tally.count_selection(outcome, keep_rate)
            metrics["train_accuracy"] = outcome.train_accuracy
            losses = {"train_loss": outcome.loss, "kept_loss": outcome.kept_loss}
        if epoch >= config.epochs - config.rank_epochs:
            tally.count_ranks(np.flatnonzero(run.data.labeled), learners.evaluate(rows)[0].numpy(), keep_rate)
        run.epoch(
            epoch,
            losses,
            metrics | run.heldout_accuracy(*learners.networks),
            epoch_signals(outcome, run.data.labeled),
            state=partial(_kept, search, epoch + 1, learners, tally),
        )
    return learners, tally


def _kept(search: dict[str, Any], epoch: int, learners: Learners, tally: Tally) -> dict[str, Any]:
    """Return what a checkpoint keeps of the final training after ``epoch`` epochs."""
    train = {"epoch": epoch, "learners": learners.state_dict(), "tally": tally.state_dict()}
    return {"search": search, "train": train}


# --- the result -------------------------------------------------------------------------------------------


def area_under_margin(learners: Learners, labeled: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Mean over the networks of the margin averaged over training, (N,); NaN where unlabeled."""
    area = np.mean([tracker.margin() for tracker in learners.trackers], axis=0)
    # Published runs can leave a sample unvisited: it gets the middle of this ranking.
    if labeled.any() and np.isfinite(area).any():
        area = np.where(np.isnan(area), np.nanmedian(area), area)
    return np.where(labeled, area, np.nan)


def _notes(run: Run, config: CoteachingConfig, schedule: FoundSchedule, learners: Learners) -> dict[str, Any]:
    """The trained R(t) beside Co-teaching's default, how it was found, and what was chosen on the way."""
    rate = schedule.noise_rate
    if rate is None:
        rate = estimate_noise_rate(learners.evaluate(run.labeled)[0].mean(dim=0))
    default = config.coteaching_curve(rate, np.arange(config.epochs, dtype=np.float64))
    return {
        "network": run.network_name(),
        "augment": learners.augment,
        "keep_rates": [round(float(value), 6) for value in schedule.keep_rates],
        "keep_rates_coteaching": [round(float(value), 6) for value in default],
        "suggested_noise_rate": rate,
        "search": schedule.notes,
    }


def _warnings(
    config: CoteachingConfig, schedule: FoundSchedule, given: NDArray[np.int64], probs: NDArray[np.float32]
) -> list[str]:
    """Return what makes the schedule doubtful, one sentence each (specification, section on the objective)."""
    found = [schedule.notes["warning"]] if "warning" in schedule.notes else []
    if config.warmup_epochs >= config.epochs:
        found.append(
            f"All {config.epochs} epochs were warm-up, which keeps every sample, so no schedule was used: raise "
            "epochs or lower warmup_epochs."
        )
    noisy_objective = str(schedule.notes.get("objective", "")).endswith("held-out given labels")
    if noisy_objective and concentrated_share(given, probs) >= 0.5:
        found.append(
            "Most predictions that differ from a given label name one and the same other class, as when pairs of "
            "classes are flipped. R(t) was judged by held-out given labels, which can prefer the wrong schedule "
            "then: verify labels, and the search is judged by those."
        )
    return found
