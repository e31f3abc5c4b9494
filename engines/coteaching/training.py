"""Co-teaching with a searched keep rate: two networks hand each other their small-loss samples.

In every batch each network picks the R(t) share of samples with the smallest losses, and its partner learns
from them; R(t) falls as memorisation sets in (Han et al. 2018, https://arxiv.org/abs/1804.06872). How fast it
should fall depends on the data, so it is searched (S2E, Yao et al. 2020, https://arxiv.org/abs/1911.02377); the
schedule's parameters come from a distribution that moves by Newton steps towards high validation accuracy.
Nobody is asked for a noise rate.

Trust ranks the margin of the given label, averaged over test-time views and both networks, together with the
margin averaged over training. The published signal, how often a sample was *selected*, is high for clean
samples; it is shown, not used: it collapses where R(t) does not fit the noise (measured).

Uses trusted samples, where there are enough (``min_trusted``), to judge schedules; unlabeled samples are left
out of training and scored. The search trains proxies of the final run; all trials share one warm-up. Then the
best schedule seen is trained from scratch on every labeled sample, those held out of the search included.
Departures from the papers, all fields of ``CoteachingConfig``: averaging over a trial's last epochs
(``objective_epochs``), Eq. 4 at a few rates as rivals (``anchors``), taking among equals the schedule that drops
most (``tie_margin``), a shared ``warmup_epochs``; and what the released codes do differently (``legacy_*``).
Relatives of the method are ``variant``. Measured (benchmarks/results/detection.json, 10,000 images, 10 epochs,
mean of 3 seeds, against ``cross_entropy``): CIFAR-10 with human labels, conv3: AUROC .834 for .830 (aggregate)
and .853 for .852 (one annotator); MNIST, pair 45 %, mlp: .924 for .760.

Memory: the images (see ``resident``); two networks with gradients and moments, 16 bytes a weight with Adam, and
their activations for one batch, both times ``search_samples`` while trials train stacked; a checkpoint of each
repeat's warm-up; with ``hyperband`` the paused trials of one rung, 12 bytes a weight and network, on the CPU;
about 120 bytes a sample for margins, selection and ranks, and at most 200 for their history; at the end the
scores of both networks, 2 N*(2K + D)*4 bytes for K classes and D features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engines.contract import (
    Checkpoint,
    EngineInputError,
    EngineResult,
    EngineSpec,
    OnEpoch,
    Provenance,
    SignalSpec,
    TrainingData,
)
from engines.coteaching.config import CoteachingConfig
from engines.coteaching.population_training import EpochOutcome, PopulationTraining, Surroundings
from engines.coteaching.rules import estimate_transition
from engines.coteaching.schedule_plan import SearchPlan, split_rows
from engines.coteaching.schedule_search import FoundSchedule, Save, ScheduleSearch, estimate_noise_rate
from engines.metrics import concentrated_share
from engines.networks.heads import resolve_for_shape
from engines.shared.checkpoint import load_state, run_fingerprint, save_state
from engines.shared.device import (
    describe_device,
    memory_errors_explained,
    peak_memory_bytes,
    resolve_device,
    versions,
)
from engines.shared.recording import Recorder
from engines.shared.rows import Rows, open_rows
from engines.shared.scoring import (
    heldout_accuracy,
    normalized_probs,
    rank_percentile,
    score_pass,
    test_time_margin,
    trust_from_evidence,
)

__all__ = ["SPEC", "CoteachingConfig", "train"]


@memory_errors_explained()
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
        EngineInputError: nothing to learn from, a network that cannot take these images, or ``reweight``
            without trusted samples.
    """
    data.require_labels()
    here = _surround(data, config, seed, device)
    fingerprint = run_fingerprint("coteaching", config, seed, data, resolve_device(device))
    state = load_state(checkpoint, fingerprint) or {"search": None, "train": None, "recorder": None}

    # 1. Set up the search, the final training and their common record.
    plan = SearchPlan.make(here, config, split_rows(data, config, seed))
    num_stages = 2 if config.variant == "f_correction" else 1
    recorder = Recorder(on_epoch, data.num_samples, plan.total_epochs + num_stages * config.epochs)

    def save() -> None:
        now = {"search": search.state, "train": final.state, "recorder": recorder.state_dict()}
        save_state(checkpoint, fingerprint, now)

    keep = save if checkpoint is not None else None
    search = ScheduleSearch(here, config, plan, recorder=recorder, save=keep, state=state["search"])
    final = _FinalTraining(data, config, here, recorder, keep, state["train"])
    if state["recorder"] is not None:
        recorder.load_state_dict(state["recorder"])

    # 2. Find the schedule.
    schedule = search.run()

    # 3. Train under it from scratch, on every labeled sample.
    search.forget_networks()
    training = final.run(schedule.keep_rates)

    # 4. Score every sample with both networks.
    return _result(data, config, here, schedule, final, training, recorder, seed)


def _surround(data: TrainingData, config: CoteachingConfig, seed: int, device: str) -> Surroundings:
    where = resolve_device(device)
    store = open_rows(data.inputs, where, resident=config.resident)
    meta_rows = torch.from_numpy(np.flatnonzero(data.trusted_mask))
    if config.variant == "reweight" and not len(meta_rows):
        raise EngineInputError(
            "variant 'reweight' learns its weights from trusted samples and there are none; "
            "verify some labels first or use another variant."
        )
    return Surroundings(
        options=config,
        store=store,
        labels=torch.from_numpy(data.given_labels.copy()),
        num_classes=data.num_classes,
        network=resolve_for_shape(config.network, store.shape, num_samples=data.num_samples, device=where),
        augment=store.resolve_augment(config.augment),
        mean_std=store.mean_std() if config.standardize or data.features is not None else None,
        seed=seed,
        meta_rows=meta_rows,
    )


class _FinalTraining:
    """The run after the search: the networks that judge, and what is counted while they train.

    ``f_correction`` trains twice: a plain network that estimates T, then the corrected one.
    """

    def __init__(
        self,
        data: TrainingData,
        config: CoteachingConfig,
        here: Surroundings,
        recorder: Recorder,
        save: Save | None,
        state: dict[str, Any] | None,
    ) -> None:
        self._data, self._config, self._here = data, config, here
        self._recorder, self._save = recorder, save
        self._rows = torch.from_numpy(np.flatnonzero(data.labeled))
        self.state = state
        self.tally = Tally(data.num_samples)
        self._stages = ["estimate", "train"] if config.variant == "f_correction" else ["train"]
        self._evaluation: tuple[Rows, Tensor] | None = None
        if data.evaluation is not None:
            images = open_rows(data.evaluation.inputs, here.device, resident=config.resident)
            self._evaluation = (images, torch.from_numpy(data.evaluation.labels.copy()))

    def run(self, keep_rates: NDArray[np.float64]) -> PopulationTraining:
        """Train all stages, or what is left of them; returns the trained networks."""
        first = self.state["stage"] if self.state else 0
        transition = self.state["transition"] if self.state else None
        training = self._begin(first, keep_rates, transition)
        start = 0
        if self.state:
            training.load_state_dict(self.state["training"])
            self.tally.load_state_dict(self.state["tally"])
            start = self.state["epoch"]
        for stage in range(first, len(self._stages)):
            if stage > first:
                transition = self._estimate_transition(training)
                training, start = self._begin(stage, keep_rates, transition), 0
                self.tally = Tally(self._data.num_samples)
            for epoch in range(start, self._config.epochs):
                self._run_epoch(training, stage, epoch, transition)
        return training

    def _begin(
        self, stage: int, keep_rates: NDArray[np.float64], transition: Tensor | None
    ) -> PopulationTraining:
        return PopulationTraining(
            self._here,
            keep_rates=keep_rates[None],
            rows=self._rows,
            group=self._config.group,
            stream=("train", stage),
            stacked=self._config.population == "stacked",
            transition=None if transition is None else transition.to(self._here.device),
            track_margins=True,
        )

    def _run_epoch(
        self, training: PopulationTraining, stage: int, epoch: int, transition: Tensor | None
    ) -> None:
        config = self._config
        rate = float(training.keep_rates[0, epoch])
        outcome = None
        if not (config.untrained_epoch_zero and epoch == 0):
            outcome = training.run_epoch(epoch)
            self.tally.count_selection(outcome, rate)
        if epoch >= config.epochs - config.rank_epochs:
            losses, _ = training.evaluate(self._here.store, self._here.labels, self._rows)
            self.tally.count_ranks(self._rows.numpy(), losses.numpy(), rate)
        metrics = {"keep_rate": rate} | (
            {} if outcome is None else {"train_accuracy": outcome.train_accuracy}
        )
        if self._evaluation is not None:
            metrics["heldout_accuracy"] = float(
                np.mean([self._accuracy(network) for network in training.population.networks()])
            )
        losses_now = {} if outcome is None else {"train_loss": outcome.loss, "kept_loss": outcome.kept_loss}

        def save() -> None:
            self.state = {
                "stage": stage,
                "epoch": epoch + 1,
                "training": training.state_dict(),
                "tally": self.tally.state_dict(),
                "transition": None if transition is None else transition.cpu(),
            }
            assert self._save is not None
            self._save()

        self._recorder.epoch(
            self._stages[stage],
            epoch,
            config.epochs,
            losses_now,
            metrics,
            epoch_signals(outcome, self._data.labeled),
            save=save if self._save is not None else None,
        )

    def _accuracy(self, network: torch.nn.Module) -> float:
        assert self._evaluation is not None
        store, labels = self._evaluation
        return heldout_accuracy(network, store, labels, self._here.mean_std, precision=self._config.precision)

    def _estimate_transition(self, training: PopulationTraining) -> Tensor:
        """F-correction's T from the plain network's predictions on the labeled samples."""
        network = training.population.networks()[0]
        scores = score_pass(network, self._here.store, self._here.mean_std, precision=self._config.precision)
        return estimate_transition(torch.from_numpy(scores.pred_probs)[self._rows])


# --- the published signals --------------------------------------------------------------------------------


class Tally:
    """Selection and loss ranks of every sample, summed over epochs."""

    def __init__(self, num_samples: int) -> None:
        # Rows: weighted selection, weights, plain selection, visits, rank, rejections, ranked epochs.
        self._sums = np.zeros((7, num_samples))

    def count_selection(self, outcome: EpochOutcome, keep_rate: float) -> None:
        """Add one epoch. An epoch with R = 1 selects everything and says nothing: its weight is 1 - R."""
        weight = (1.0 - keep_rate) * outcome.visited
        self._sums[0] += weight * outcome.selected
        self._sums[1] += weight
        self._sums[2] += outcome.visited * outcome.selected
        self._sums[3] += outcome.visited

    def count_ranks(self, rows: NDArray[np.int64], losses: NDArray[np.float32], keep_rate: float) -> None:
        """Add one evaluation pass: losses (G, n) of the networks on ``rows`` (n,)."""
        ranks = np.stack([rank_percentile(one) for one in losses])
        self._sums[4, rows] += ranks.mean(axis=0)
        self._sums[5, rows] += (ranks > keep_rate).all(axis=0)
        self._sums[6, rows] += 1

    def signals(self) -> dict[str, NDArray[np.float32]]:
        """``selected``, ``loss_rank`` and ``rejected`` (N,) in [0, 1]; NaN where a sample was never seen."""
        weighted, weights, plain, visits, rank, rejected, ranked = self._sums
        with np.errstate(invalid="ignore", divide="ignore"):
            selected = np.where(weights > 0, weighted / weights, plain / visits)
            signals = {"selected": selected, "loss_rank": rank / ranked, "rejected": rejected / ranked}
        return {name: values.astype(np.float32) for name, values in signals.items()}

    def state_dict(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {"sums": torch.from_numpy(self._sums.copy())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self._sums = state["sums"].numpy().copy()


def epoch_signals(outcome: EpochOutcome | None, labeled: NDArray[np.bool_]) -> dict[str, NDArray[np.float32]]:
    """One epoch's ``selected`` (share of the networks that picked the sample) and in-training ``loss_rank``.

    (N,) each, NaN where unlabeled, and where the epoch did not visit the sample.
    """
    if outcome is None:
        nothing = np.full(len(labeled), np.nan, dtype=np.float32)
        return {"selected": nothing, "loss_rank": nothing}
    seen = labeled & outcome.visited
    ranks = rank_percentile(np.where(seen, outcome.losses, np.nan))
    return {
        "selected": np.where(seen, outcome.selected, np.float32("nan")),
        "loss_rank": ranks.astype(np.float32),
    }


def _result(
    data: TrainingData,
    config: CoteachingConfig,
    here: Surroundings,
    schedule: FoundSchedule,
    final: _FinalTraining,
    training: PopulationTraining,
    recorder: Recorder,
    seed: int,
) -> EngineResult:
    scores = [
        score_pass(network, here.store, here.mean_std, views=config.views, precision=config.precision)
        for network in training.population.networks()
    ]
    margin = np.mean([test_time_margin(one.log_probs, data.given_labels) for one in scores], axis=0)
    area = np.mean([tracker.margin() for tracker in training.trackers], axis=0)
    # drop_last and max_batches can leave a sample unvisited: it stands in the middle of this ranking.
    if data.labeled.any() and np.isfinite(area).any():
        area = np.where(np.isnan(area), np.nanmedian(area), area)
    area = np.where(data.labeled, area, np.nan)
    mean = np.asarray(np.mean([normalized_probs(one.log_probs) for one in scores], axis=0, dtype=np.float32))
    probs = (mean / mean.sum(axis=1, keepdims=True)).astype(np.float32)
    return EngineResult(
        pred_probs=probs,
        trust_score=trust_from_evidence(margin, area),
        signals={
            name: np.where(data.labeled, values, np.float32("nan"))
            for name, values in final.tally.signals().items()
        },
        signal_history=recorder.signal_history,
        # The two networks share no axes, so their features stand side by side.
        embeddings=np.concatenate([one.embeddings for one in scores], axis=1),
        history=recorder.history,
        provenance=Provenance(
            engine="coteaching",
            config=config.as_dict(),
            seed=seed,
            device=describe_device(here.device),
            versions=versions(),
            seconds=recorder.seconds,
            peak_memory_bytes=peak_memory_bytes(here.device),
            notes=_notes(config, here, schedule, training)
            | {"warnings": _warnings(config, schedule, data.given_labels, probs)},
        ),
    )


def _notes(
    config: CoteachingConfig, here: Surroundings, schedule: FoundSchedule, training: PopulationTraining
) -> dict[str, Any]:
    """The trained R(t) beside Co-teaching's default, how it was found, and what was chosen on the way."""
    notes: dict[str, Any] = {"network": here.network, "augment": here.augment, "variant": config.variant}
    if not config.is_scheduled:
        return notes
    rate = schedule.noise_rate
    if rate is None:
        rows = torch.nonzero(here.labels >= 0)[:, 0]
        rate = estimate_noise_rate(training.evaluate(here.store, here.labels, rows)[0].mean(dim=0))
    default = config.coteaching_curve(rate, np.arange(config.epochs, dtype=np.float64))
    return notes | {
        "keep_rates": [round(float(value), 6) for value in schedule.keep_rates],
        "keep_rates_coteaching": [round(float(value), 6) for value in default],
        "suggested_noise_rate": rate,
        "search": schedule.notes,
    }


def _warnings(
    config: CoteachingConfig, schedule: FoundSchedule, given: NDArray[np.int64], probs: NDArray[np.float32]
) -> list[str]:
    """What makes the schedule doubtful, one sentence each (specification, section on the objective)."""
    found = [schedule.notes["warning"]] if "warning" in schedule.notes else []
    if config.is_scheduled and config.warmup_epochs >= config.epochs:
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


SPEC = EngineSpec(
    name="coteaching",
    title="Co-teaching with S2E",
    paper="https://arxiv.org/abs/1911.02377",
    config_type=CoteachingConfig,
    train=train,
    signals={
        "selected": SignalSpec(
            title="Co-teaching selection rate",
            meaning=(
                "How often the two networks kept the sample among their small losses, epochs that dropped "
                "more counting more; it misleads where the schedule drops far more or less than is wrong."
            ),
            high_means="clean",
        ),
        "loss_rank": SignalSpec(
            title="Loss rank",
            meaning=(
                "Where the sample's loss stands among all, from 0 (smallest) to 1, at the end of training; a "
                "hard image ranks high with a right label too."
            ),
            high_means="suspect",
        ),
        "rejected": SignalSpec(
            title="Rejected by both networks",
            meaning=(
                "Share of the last epochs in which both networks would have dropped the sample; searched "
                "schedules drop more than is wrong, so dropped does not mean wrong."
            ),
            high_means="suspect",
        ),
    },
    uses_trusted=True,
)
