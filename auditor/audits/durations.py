"""How long will an audit take? A probe of this machine says before it starts, its own epochs while it runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.audits import further
from auditor.backbones import features
from auditor.backbones.features import FeatureSource
from auditor.bridges import backbone_bridge, engine_bridge
from auditor.catalog import audits
from auditor.catalog.records import Audit, Dataset, EngineRun
from auditor.ground.vocabulary import CLASSIFICATION, SEGMENTATION
from auditor.work import UMAP_ROWS, neighbour_seconds, threads_by_engine, training_cores

START_S = 4.0
"""CPU seconds until a process has loaded the training library (measured)."""
MAP_START_S = 1.3
"""Seconds until UMAP is loaded, once a process; where it was never compiled before, ten more."""
MAP_S = 0.00021
"""Seconds a sample that UMAP places, up to ``embedding.UMAP_ROWS`` of them."""
FIRM = 0.15
"""Share of the work whose own pace weighs as much as the estimate; the first epochs are slower."""
WIDEST, SURER = 1.5, 5.0
"""At first the pace counts as this multiple of the plan's at most, and as one part in it at least. That grows with
the share that is done, so that a machine that is far from what the probe said is believed in the end."""
EMBEDDING, MAP, START = "embedding", "map", "start"
"""What an audit does before its engines train, beside them in an estimate."""
BEFORE = (EMBEDDING, MAP, START)
OF_ANY, OF_A_ROW = 57.0, 0.0058
"""Seconds of a quick audit of classes on two cores (measured: 340 photos 65 s, 3,410 91 s, 50,000 small pictures
349 s)."""
OF_A_MASK = 0.5
"""Seconds of a quick audit of masks on two cores, for each (measured: 90 of 96 px from scratch 50 s, of 240 px on
columns 43 s)."""
OF_PRESETS = {"quick": 1.0, "standard": 40 / 12, "paper": 100 / 12}
"""By how much the plain engine of masks trains longer."""


@dataclass(frozen=True)
class Places:
    """Where the engines of an audit train."""

    devices: dict[str, str]
    """By engine that does not train on the audit's device."""
    threads: dict[str, int]
    """Of ``executors.threads_by_engine``."""


def places(
    engines: Sequence[str],
    of_features: Collection[str],
    first: Sequence[str],
    device: str,
    on: str | None = None,
) -> Places:
    """Say where each engine trains.

    Heads on features are too small for a card, which waits for Python between their steps: on 25,000 rows one core
    of a laptop is as fast as an H100 (benchmarks/results/gpu.md), and cores train them side by side. So ``auto``
    leaves the card to what sees pictures, and to the engines that take all rows at once.

    Args:
        engines: that are trained.
        of_features: those of them that train on features.
        first: those of them that others wait for, besides the one of the first list (``worker``), which is alone.
        device: that was asked for.
        on: where they train (``executors.ExecutorChoice.of``).

    Raises:
        AuditFailedError: there is no such device.
    """
    resolved, beside = engine_bridge.resolve_device(device), []
    if device == "auto" and resolved != "cpu":
        beside = [name for name in engines if name in of_features and not engine_bridge.needs_features(name)]
    if beside:
        return Places(dict.fromkeys(beside, "cpu"), threads_by_engine(beside, [], "cpu", on))
    if len(engines) > 1 and engine_bridge.needs_features(engines[0]):
        first = [*first, engines[0]]
    return Places({}, threads_by_engine(engines, first, resolved, on))


def planned(
    dataset: Dataset,
    configs: Mapping[str, Mapping[str, Any]],
    *,
    device: str,
    map_method: str,
    on_features: Collection[str],
    source: FeatureSource | None = None,
    places: Places | None = None,
) -> dict[str, float]:
    """Seconds of each engine with its map, and of each stage before them (``BEFORE``) that there is.

    By a probe of this machine: a second or two for each kind of work, then kept. ``source``: the features of all
    engines of ``on_features``; None where they train on what the first engine's network sees. ``places``: of
    engines that do not train on the device.
    """
    devices, threads = ({}, {}) if places is None else (places.devices, places.threads)
    before, num_features = ({}, None) if source is None else _look(dataset, source, device, map_method)
    found = engine_bridge.estimated_seconds(
        configs,
        (dataset.channels, dataset.height, dataset.width),
        dataset.num_samples,
        len(dataset.class_names),
        device=device,
        devices=devices,
        on_features=on_features,
        num_features=num_features,
        num_threads=threads,
    )
    if threads:
        before[START] = START_S + MAP_START_S * (source is None and map_method == "umap")
    own = [name for name in found if source is None or name not in on_features]
    if map_method == "umap":
        each = MAP_S * min(dataset.num_samples, UMAP_ROWS)
        found |= {name: found[name] + each for name in own}
        if own and not threads:
            found[own[0]] += MAP_START_S
    return before | found


def _look(
    dataset: Dataset, source: FeatureSource, device: str, map_method: str
) -> tuple[dict[str, float], int]:
    """Return what looking through a backbone takes (nothing where the features are there); how many engines
    read.
    """
    seconds, num_features = features.embedding_seconds(
        dataset.id, dataset.num_samples, (dataset.channels, dataset.height, dataset.width), source, device
    )
    found = {EMBEDDING: START_S + seconds} if seconds else {}
    drawn = MAP_START_S + MAP_S * min(dataset.num_samples, UMAP_ROWS)
    reduced = backbone_bridge.reduction_seconds(dataset.num_samples, num_features, len(dataset.class_names))
    num_features = min(num_features, backbone_bridge.expected_directions())
    near = neighbour_seconds(dataset.num_samples, num_features)
    return found | {MAP: reduced + near + (drawn if map_method == "umap" else 0.0)}, num_features


@dataclass(frozen=True)
class EngineChoices:
    """What each engine of the registry would take with a preset, before anybody chose some of them."""

    wanted: str
    """The device that was asked for."""
    device: str
    """What that means here."""
    on_images: Mapping[str, float]
    """Seconds by engine."""
    on_features: Mapping[str, float]
    before: Mapping[str, float]
    """Of the stages before them."""
    further: Collection[str] = ()
    """Engines that train a backbone on the images, in place of heads on its features."""

    def seconds(self, engines: Sequence[str], heads: Collection[str], *, on_features: bool) -> float:
        """For these engines, of which ``heads`` train on features of the plain one, or all on a backbone's."""
        of_features = set(engines if on_features else heads) - set(self.further)
        each = {name: (self.on_features if name in of_features else self.on_images)[name] for name in engines}
        first = [name for name in engines if heads and name not in heads]
        threads = places(engines, of_features, first, self.wanted).threads
        return until_all_are_done({**self.before, **each}, threads)

    @staticmethod
    def roughly(dataset: Dataset, preset: str, before: Sequence[Audit]) -> float | None:
        """About how long an audit takes, before anything is measured here; None where nothing tells.

        ``before``: audits of the dataset, the newest first; one with this preset takes as long again.
        """
        for one in before:
            if (one.status, one.preset) == ("finished", preset) and one.started_at and one.finished_at:
                return (one.finished_at - one.started_at).total_seconds()
        if dataset.task == SEGMENTATION:
            return START_S + OF_A_MASK * OF_PRESETS[preset] * dataset.num_samples
        if dataset.task == CLASSIFICATION and preset == "quick":
            return OF_ANY + OF_A_ROW * dataset.num_samples
        return None


def engine_choices(
    dataset: Dataset,
    preset: str,
    device: str,
    source: FeatureSource | None = None,
    finetune: str | None = None,
) -> EngineChoices:
    """Estimates for every engine, on images where it can and on features.

    ``source``: these features; None: those of a network that trained on the images. ``finetune``: of
    ``Finetune``, who trains its backbone further.

    Raises:
        AuditFailedError: an unknown preset or device, or no backbone to train.
    """
    resolved = engine_bridge.resolve_device(device)
    finetuned = further.meant(finetune, source, resolved)
    train_on = finetuned.engines([one.name for one in engine_bridge.engine_choices(on_features=True)])
    of_backbone = dict.fromkeys(train_on, further.backbone(source, finetuned)) if train_on else {}
    found = {}
    for on_features in (False, True):
        names = [each.name for each in engine_bridge.engine_choices(on_features=on_features)]
        network = None if on_features else of_backbone
        configs = engine_bridge.configs(names, preset, {}, on_features=on_features, finetuned=network)
        heads = names if on_features else []
        found[on_features] = planned(
            dataset,
            configs,
            device=resolved,
            map_method="umap",
            on_features=heads,
            source=source if on_features else None,
            places=places(names, heads, [], device),
        )
    stages = {name: found[source is not None].get(name, 0.0) for name in BEFORE}
    return EngineChoices(device, resolved, found[True] | found[False], found[True], stages, train_on)


def planned_seconds(audit: Audit) -> float:
    """Seconds that the plan says of the whole audit; 0 where it says nothing."""
    options = audit.options
    return until_all_are_done(options.estimate, options.threads)


def left(audit: Audit, runs: Sequence[EngineRun], *, ahead: float = 0.0) -> float | None:
    """Seconds until all of the audit's runs are done; None while nothing tells.

    ``ahead``: seconds until they start (``before``). See ``left_of``.
    """
    each = left_of(audit, runs)
    still = {run.engine: each[run.engine] for run in runs if run.status != "finished"}
    known = {name: seconds for name, seconds in still.items() if seconds is not None}
    if len(known) < len(still):
        return None
    return ahead + until_all_are_done(known, audit.options.threads)


def left_of(audit: Audit, runs: Sequence[EngineRun]) -> dict[str, float | None]:
    """Seconds until each run is done; None while nothing tells.

    What the plan says of the rest of its work, times how much slower the work so far was than the plan said: this
    engine's own as it comes to weigh more, before that all engines' together. What was measured weighs by the share
    that is done beside ``FIRM``, so that the first epochs change little, and counts as ``WIDEST`` at most. An audit
    without an estimate, as those of masks and numbers, takes the mean of its own runs.
    """
    estimate = audit.options.estimate
    if any(run.engine not in estimate for run in runs):
        return _without_estimate(runs)
    said = sum(estimate[run.engine] for run in runs)
    spent = sum(run.seconds for run in runs if run.progress > 0)
    done = sum(run.progress * estimate[run.engine] for run in runs)
    together = _slower(1.0, said, spent, done)
    found: dict[str, float | None] = {}
    for run in runs:
        whole = estimate[run.engine]
        own = _slower(together, whole, run.seconds, run.progress * whole)
        found[run.engine] = 0.0 if run.status == "finished" else (1 - run.progress) * whole * own
    return found


def before(audit: Audit, stage: str, done: float, seconds_left: float | None) -> float:
    """Seconds until the engines start, where none has begun.

    Args:
        audit: which.
        stage: that is at work, of ``BEFORE``, or any other text before the first.
        done: its share that is done, in [0, 1].
        seconds_left: of it, by its own pace; None while nothing tells.
    """
    estimate = audit.options.estimate
    waiting = BEFORE[BEFORE.index(stage) + 1 :] if stage in BEFORE else BEFORE
    found = sum(estimate.get(name, 0.0) for name in waiting)
    if stage not in estimate:
        return found + (seconds_left or 0.0)
    whole = estimate[stage]
    spent = seconds_left * done / (1 - done) if seconds_left is not None and done < 1 else done * whole
    return found + float((1 - done) * whole * _slower(1.0, whole, spent, done * whole))


def _slower(expected: float, said: float, spent: float, done: float) -> float:
    """Return how many times as long as said work takes: ``expected`` at first, later what was measured.

    Args:
        expected: before anything was measured.
        said: seconds of the whole work by the plan.
        spent: seconds so far.
        done: seconds of what is done by the plan.
    """
    if not done:
        return expected
    widest = WIDEST ** (1 + SURER * done / said)
    measured = min(widest, max(1 / widest, spent / done))
    weight = done / (done + FIRM * said)
    return expected + weight * (measured - expected)


def _without_estimate(runs: Sequence[EngineRun]) -> dict[str, float | None]:
    """By the runs' own pace; one that has hardly begun takes what the others take."""
    measured = {run.engine: seconds for run in runs if (seconds := _total(run)) is not None}
    mean = sum(measured.values()) / len(measured) if measured else None
    found: dict[str, float | None] = {}
    for run in runs:
        whole = measured.get(run.engine, mean)
        found[run.engine] = None if whole is None else max(0.0, whole - run.seconds)
    return found


def until_all_are_done(seconds: Mapping[str, float], threads: Mapping[str, int]) -> float:
    """Return how long engines take together that each take ``seconds``, those side by side that find cores.

    The engine with most threads goes first and alone, as one that others wait for does.
    """
    num_cores = training_cores()
    alone, clock, free = 0.0, 0.0, num_cores
    running: list[tuple[float, int]] = []
    for name in sorted(seconds, key=lambda name: (-threads.get(name, num_cores), -seconds[name])):
        cores = min(num_cores, threads.get(name, num_cores))
        if cores == num_cores:
            alone += seconds[name]
            continue
        while free < cores:
            running.sort()
            clock, given_back = running.pop(0)
            free += given_back
        running.append((clock + seconds[name], cores))
        free -= cores
    return alone + max((end for end, _ in running), default=clock)


def _total(run: EngineRun) -> float | None:
    """Seconds that the run takes in all, by its own pace; None where it has hardly begun."""
    if run.status == "finished":
        return run.seconds
    seconds_left = audits.seconds_left(run)
    return None if seconds_left is None or run.progress < FIRM else run.seconds + seconds_left
