"""Finds R(t) for a dataset: trains the trials that S2E's search asks for, and can be killed at any epoch.

The objective is accuracy, never log-loss (held-out log-loss chooses "drop nothing", measured): on
trusted samples where there are enough, else on held-out given labels. The evaluation set plays no part. All
trials start from one common warm-up (same networks, same R = 1 epochs, trained once) and see the same
batches. The engine hands in what surrounds its trainings and gets back a curve and an account of the search.

Letters: N samples, M trials at once, E epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engines.coteaching.config import CoteachingConfig
from engines.coteaching.population_training import PopulationTraining, Surroundings
from engines.coteaching.s2e import Ledger, Trial
from engines.coteaching.s2e_rules import SearchResult, SharedWeightsRule, search_schedule
from engines.coteaching.schedule_plan import SearchPlan
from engines.coteaching.schedules import SPACES, FloatArray, ScheduleSpace
from engines.shared.device import derive_seed
from engines.shared.recording import Recorder
from engines.shared.selection import gmm_small_loss_probability

LEAST_MEASURED_KEEP_RATE = 0.25
"""Dropping more than three quarters was never measured to be harmless."""

Save = Callable[[], None]


@dataclass(frozen=True, eq=False)
class FoundSchedule:
    """The curve to train with, and what a screen shows about it."""

    keep_rates: FloatArray
    """(E,) R of every epoch of the final training."""
    noise_rate: float | None
    """Share of wrong labels that the losses suggest; None where there was no warm-up to look at."""
    notes: dict[str, Any]


class ScheduleSearch:
    """One search; its state is plain values and tensors, saved by the engine after every epoch.

    Args:
        surroundings: the run.
        config: how to search.
        plan: rows and costs; without rows there is no search but Eq. 4 with an estimated noise rate.
        recorder: told of every epoch.
        save: writes a checkpoint of the whole run; None where there is no checkpoint.
        state: ``ScheduleSearch.state`` of an interrupted run, or None.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        config: CoteachingConfig,
        plan: SearchPlan,
        *,
        recorder: Recorder,
        save: Save | None,
        state: dict[str, Any] | None,
    ) -> None:
        self._surroundings, self._config, self._plan = surroundings, config, plan
        self._split = plan.split
        self._recorder, self._save = recorder, save
        self.state: dict[str, Any] = state or {
            "warmups": {},
            "noise_rate": None,
            "trials": [],
            "current": None,
            "paused": {},
            "epochs_done": 0,
        }
        self._space = SPACES[config.space]
        self._anchor_space = ScheduleSpace(
            "anchor",
            "Eq. 4",
            ("noise_rate",),
            lambda x, t, _: config.coteaching_curve(float(x[0]), t),
        )

    # --- the search ---

    def run(self) -> FoundSchedule:
        """Search, or go on searching, and return the best schedule seen."""
        config = self._config
        if not config.is_scheduled:
            return FoundSchedule(np.ones(config.epochs), None, {})
        # 1. The warm-up that all trials share; its losses suggest a noise rate.
        for repeat in range(self._plan.num_warmups):
            self._train_warmup(repeat)
        noise_rate = self.state["noise_rate"] if config.noise_rate is None else config.noise_rate
        if not self._plan.is_searching:
            skipped = config.keep_schedule == "searched"
            notes: dict[str, Any] = {"schedule_from": "Eq. 4"}
            if skipped:
                notes["warning"] = "too few labeled samples to search R(t); Eq. 4 with an estimated rate"
            times = np.arange(config.epochs, dtype=np.float64)
            return FoundSchedule(
                self.with_warmup(config.coteaching_curve(noise_rate, times)), noise_rate, notes
            )
        # 2. Eq. 4 at a few rates, 3. the search itself.
        num_anchors = len(config.anchors)
        recorded = [Trial(tuple(x), epochs, value) for x, epochs, value in self.state["trials"]]
        anchors = Ledger(self._trainer(self._anchor_space), recorded[:num_anchors])
        if num_anchors:
            anchors([np.array([rate]) for rate in config.anchors], config.search_epochs)
        result = self._search(recorded[num_anchors:])
        # 4. The best ever seen, of the longest trainings; among equals the one that drops most.
        return self._choose(anchors.trials, result, noise_rate)

    def _choose(
        self, anchors: Sequence[Trial], result: SearchResult, noise_rate: float | None
    ) -> FoundSchedule:
        assert self._split is not None
        config = self._config
        # ASNG's trials share their weights, so their accuracies say nothing about one schedule.
        searched = [result.best] if config.search_rule == "asng" else result.trials
        candidates = [
            *((trial, self._anchor_space) for trial in anchors),
            *((trial, self._space) for trial in searched if trial.epochs == result.best.epochs),
        ]
        curves = [
            self.with_warmup(space.keep_rates(np.array(trial.x), config.epochs))
            for trial, space in candidates
        ]
        chosen = choose_schedule(
            np.array([trial.accuracy for trial, _ in candidates]),
            np.array(curves),
            num_validation=len(self._split.validation),
            tie_margin=config.tie_margin,
        )
        trial, space = candidates[chosen]
        return FoundSchedule(curves[chosen], noise_rate, self._account(anchors, result, trial, space))

    def forget_networks(self) -> None:
        """Drop the trials' weights from the state; the recorded accuracies stay and replay the search."""
        self.state["paused"], self.state["current"] = {}, None
        self.state["warmups"] = {
            repeat: {"epoch": warmup["epoch"], "training": None}
            for repeat, warmup in self.state["warmups"].items()
        }

    def with_warmup(self, curve: FloatArray) -> FloatArray:
        """The curve as it is trained: R = 1 in the first ``warmup_epochs``."""
        trained = curve.copy()
        trained[: self._config.warmup_epochs] = 1.0
        return trained

    def _search(self, recorded: Sequence[Trial]) -> SearchResult:
        config = self._config
        seed = derive_seed(self._surroundings.seed, "search", "draws")
        if config.search_rule == "asng":
            return self._search_with_shared_weights(recorded, seed)
        return search_schedule(
            self._space,
            Ledger(self._trainer(self._space), recorded),
            rule=config.search_rule,
            budget=config.budget,
            seed=seed,
            step_size=config.step_size,
            elite=config.legacy_elite,
            legacy_newton=config.legacy_newton,
        )

    def _trainer(self, space: ScheduleSpace) -> Callable[[Sequence[FloatArray], int], list[float]]:
        """``evaluate`` of a Ledger: trains under each x and remembers what is done."""

        def evaluate(xs: Sequence[FloatArray], epochs: int) -> list[float]:
            self._drop_losers(xs, epochs)
            values: list[float] = []
            for part in [list(xs)] if self._plan.is_stacked else [[x] for x in xs]:
                accuracies = self._train_trials(space, part, epochs)
                self.state["trials"] += [
                    [[float(v) for v in x], epochs, a] for x, a in zip(part, accuracies, strict=True)
                ]
                self.state["current"] = None
                values += accuracies
            return values

        return evaluate

    def _train_trials(self, space: ScheduleSpace, xs: list[FloatArray], epochs: int) -> list[float]:
        """Train M trials together (M = 1 unless stacked); accuracy of each after ``epochs``, mean over repeats."""
        config = self._config
        curves = np.stack([self._proxy_curve(space, x) for x in xs])
        current = self.state["current"] or {"repeat": 0, "done": [], "epoch": None}
        sums = np.array(current["done"] or [0.0] * len(xs))
        for repeat in range(current["repeat"], config.search_repeats):
            training = self._start(curves, repeat)
            epoch, measured = self._begin_or_resume(training, xs, repeat, current)
            for e in range(epoch, epochs):
                outcome = training.run_epoch(e)
                metrics = {
                    "keep_rate": float(curves[:, e].mean()),
                    "train_accuracy": outcome.train_accuracy,
                }
                if e >= epochs - config.objective_epochs:
                    measured.append(self._accuracies(training))
                    metrics["validation_accuracy"] = float(np.mean(measured[-1]))
                self.state["current"] = {"repeat": repeat, "done": sums.tolist(), "epoch": e + 1}
                self.state["current"]["measured"] = measured
                if self._save is not None:
                    self.state["current"]["training"] = training.state_dict()
                self._record("search", {"train_loss": outcome.loss}, metrics)
            if config.search_rule == "hyperband":
                self._pause(training, xs[0], repeat, max(epoch, epochs))
            sums = sums + np.mean(measured or [self._accuracies(training)], axis=0)
            current = {"repeat": repeat + 1, "done": sums.tolist(), "epoch": None}
        return [float(value) for value in sums / config.search_repeats]

    def _proxy_curve(self, space: ScheduleSpace, x: FloatArray) -> FloatArray:
        """The schedule of the full run, gone through in ``search_epochs``: (search_epochs,)."""
        config = self._config
        return self.with_warmup(space.keep_rates(x, config.search_epochs, horizon=config.epochs))

    def _start(self, curves: FloatArray, repeat: int) -> PopulationTraining:
        assert self._split is not None
        return PopulationTraining(
            self._surroundings,
            keep_rates=curves,
            rows=self._split.train,
            group=self._config.group,
            stream=("search", repeat),
            stacked=self._plan.is_stacked and len(curves) > 1,
        )

    def _begin_or_resume(
        self, training: PopulationTraining, xs: list[FloatArray], repeat: int, current: dict[str, Any]
    ) -> tuple[int, list[list[float]]]:
        """Load what there is: the interrupted trial, the trial's last rung, or the common warm-up."""
        if current["epoch"] is not None and current["repeat"] == repeat:
            training.load_state_dict(current["training"])
            return current["epoch"], [list(values) for values in current["measured"]]
        paused = self.state["paused"].get(_key(xs[0], repeat))
        if paused is not None:
            training.load_state_dict(paused["training"])
            return paused["epoch"], []
        if self._plan.warmup_epochs:
            training.start_from(self.state["warmups"][repeat]["training"])
        return self._plan.warmup_epochs, []

    def _pause(self, training: PopulationTraining, x: FloatArray, repeat: int, epoch: int) -> None:
        """Keep a trial for Hyperband's next rung; those trained to the end need no place."""
        key = _key(x, repeat)
        self.state["paused"].pop(key, None)
        if epoch < self._config.search_epochs:
            self.state["paused"][key] = {"epoch": epoch, "training": training.state_dict()}

    def _drop_losers(self, xs: Sequence[FloatArray], epochs: int) -> None:
        """Forget Hyperband's paused trials of earlier rungs that are not among the promoted ``xs``.

        Those as long as ``epochs`` are of this rung, trained before an interruption: the next may need them.
        """
        promoted = {_key(x, repeat) for x in xs for repeat in range(self._config.search_repeats)}
        self.state["paused"] = {
            key: paused
            for key, paused in self.state["paused"].items()
            if key in promoted or paused["epoch"] >= epochs
        }

    def _accuracies(self, training: PopulationTraining) -> list[float]:
        assert self._split is not None
        here = self._surroundings
        return [float(a) for a in training.accuracies(here.store, here.labels, self._split.validation)]

    def _record(self, stage: str, losses: dict[str, float], metrics: dict[str, float]) -> None:
        """Count one trained epoch of the search, save, and tell."""
        done, plan = self.state["epochs_done"], self._plan
        self.state["epochs_done"] = done + 1
        if stage == "warmup":
            # The repeats' warm-ups count on, and so do the trials.
            number, planned = done, plan.num_warmups * plan.warmup_epochs
        else:
            number, planned = done - plan.num_warmups * plan.warmup_epochs, plan.trial_epochs
        self._recorder.epoch(stage, number, max(planned, number + 1), losses, metrics, save=self._save)

    def _train_warmup(self, repeat: int) -> None:
        """Train the common first epochs, R = 1, and look at the losses they leave."""
        if not self._plan.warmup_epochs:
            return
        here, config = self._surroundings, self._config
        saved = self.state["warmups"].get(repeat)
        if saved is not None and saved["epoch"] >= self._plan.warmup_epochs:
            return
        rows = self._split.train if self._split is not None else torch.nonzero(here.labels >= 0)[:, 0]
        length = config.search_epochs if self._plan.is_searching else config.epochs
        if self._plan.is_searching and config.search_rule == "asng":
            length = self._plan.shared_epochs
        training = PopulationTraining(
            here,
            keep_rates=np.ones((1, max(length, self._plan.warmup_epochs))),
            rows=rows,
            group=config.group,
            stream=("search", repeat),
        )
        if saved is not None:
            training.load_state_dict(saved["training"])
        for e in range(saved["epoch"] if saved is not None else 0, self._plan.warmup_epochs):
            outcome = training.run_epoch(e)
            if e == self._plan.warmup_epochs - 1 and repeat == 0:
                losses, _ = training.evaluate(here.store, here.labels, rows)
                self.state["noise_rate"] = estimate_noise_rate(losses.mean(dim=0))
            self.state["warmups"][repeat] = {"epoch": e + 1, "training": training.state_dict()}
            metrics = {"keep_rate": 1.0, "train_accuracy": outcome.train_accuracy}
            self._record("warmup", {"train_loss": outcome.loss}, metrics)

    def _search_with_shared_weights(self, recorded: Sequence[Trial], seed: int) -> SearchResult:
        """ASNG: one set of networks for all schedules; theta moves after each of its epochs."""
        config, total = self._config, self._plan.shared_epochs
        rule, trials = SharedWeightsRule(self._space, seed), list(recorded)
        for trial_set in _in_sets(recorded, config.search_samples):
            rule.tell(np.array([t.x for t in trial_set]), np.array([t.accuracy for t in trial_set]))
        current = self.state["current"]
        shared = current["training"] if current else None
        if shared is None and self._plan.warmup_epochs:
            shared = self.state["warmups"][0]["training"]
        for epoch in range(self._plan.warmup_epochs + len(trials) // config.search_samples, total):
            xs = rule.ask(epoch, config.search_samples)
            best, accuracies, states = -1.0, [], None
            for x in xs:
                curve = self.with_warmup(self._space.keep_rates(x, total, horizon=config.epochs))
                training = self._start(curve[None], 0)
                if shared is not None:
                    training.start_from(shared)
                outcome = training.run_epoch(epoch)
                accuracies.append(self._accuracies(training)[0])
                if accuracies[-1] > best:
                    best, states = accuracies[-1], training.state_dict()
            shared = states
            rule.tell(xs, np.array(accuracies))
            new = [Trial(tuple(map(float, x)), epoch + 1, a) for x, a in zip(xs, accuracies, strict=True)]
            trials += new
            self.state["trials"] += [[list(t.x), t.epochs, t.accuracy] for t in new]
            self.state["current"] = {"training": shared}
            metrics = {"validation_accuracy": best, "train_accuracy": outcome.train_accuracy}
            self._record("search", {"train_loss": outcome.loss}, metrics)
        final = rule.relaxation.mean(rule.theta)
        last = float(np.mean([t.accuracy for t in trials[-config.search_samples :]]))
        return SearchResult(Trial(tuple(map(float, final)), total, last), tuple(trials), rule.theta, ())

    def _account(
        self, anchors: Sequence[Trial], result: SearchResult, chosen: Trial, space: ScheduleSpace
    ) -> dict[str, Any]:
        """What the search did, in plain values."""
        assert self._split is not None
        config = self._config
        found_by = f"Eq. 4 at {chosen.x[0]:g}" if space is self._anchor_space else config.search_rule
        return {
            "schedule_from": found_by,
            "objective": f"accuracy on {self._split.source}",
            "num_validation": len(self._split.validation),
            "num_search_rows": len(self._split.train),
            "is_proxy": config.search_epochs < config.epochs or config.search_rows is not None,
            "best_accuracy": max(trial.accuracy for trial in (*anchors, result.best)),
            "chosen_accuracy": chosen.accuracy,
            "chosen_parameters": dict(zip(space.parameters, chosen.x, strict=True)),
            "trial_accuracies": [trial.accuracy for trial in result.trials],
            "trial_epochs": [trial.epochs for trial in result.trials],
            "anchor_accuracies": [trial.accuracy for trial in anchors],
            "iteration_means": list(result.iteration_means),
            "trials_stacked": self._plan.is_stacked,
        }


def choose_schedule(
    accuracies: FloatArray, keep_rates: FloatArray, *, num_validation: int, tie_margin: float
) -> int:
    """Which candidate to train: of those as accurate as the best, the one that drops most.

    Args:
        accuracies: (T,) validation accuracies in [0, 1].
        keep_rates: (T, E) curves.
        num_validation: samples that an accuracy was measured on.
        tie_margin: standard errors below the best that count as equal; 0 takes the most accurate.

    Returns:
        Index of the candidate. Curves that end below LEAST_MEASURED_KEEP_RATE win by accuracy only.
    """
    best = int(np.argmax(accuracies))
    error = np.sqrt(accuracies[best] * (1.0 - accuracies[best]) / max(num_validation, 1))
    equal = accuracies >= accuracies[best] - tie_margin * error
    equal &= keep_rates.min(axis=1) >= LEAST_MEASURED_KEEP_RATE
    if tie_margin == 0 or not equal.any():
        return best
    return int(np.argmin(np.where(equal, keep_rates.mean(axis=1), np.inf)))


def estimate_noise_rate(losses: Tensor) -> float:
    """Share of samples that a two-Gaussian split of their losses (N,) calls wrong, in [0, 0.99]."""
    clean = gmm_small_loss_probability(losses.double())
    return min(float(np.mean(clean < 0.5)), 0.99)


def _key(x: FloatArray, repeat: int) -> str:
    return f"{repeat}:{','.join(map(repr, map(float, x)))}"


def _in_sets(trials: Sequence[Trial], size: int) -> list[Sequence[Trial]]:
    return [trials[i : i + size] for i in range(0, len(trials), size)]
