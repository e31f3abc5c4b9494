"""How long will an audit take? A probe of this machine says before it starts, its own epochs while it runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.audits import executors
from auditor.bridges import engine_bridge
from auditor.catalog import audits
from auditor.catalog.records import Audit, Dataset, EngineRun

MAP_START_S = 14.0
"""Seconds until UMAP is compiled, once a process."""
MAP_S = 0.0015
"""Seconds a sample that UMAP places, up to ``MAP_ROWS`` of them."""
MAP_ROWS = 20_000
FIRM = 0.15
"""Share of an engine's work from which its own pace replaces the estimate; the first epochs are slower."""
WIDEST = 1.5
"""What the plan says is corrected by at most this factor from the engines that are done."""


def planned(
    dataset: Dataset,
    configs: Mapping[str, Mapping[str, Any]],
    *,
    device: str,
    map_method: str,
    on_features: Collection[str],
    threads: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """Seconds of each engine with its map, by a probe of this machine: a second or two, then kept."""
    found = engine_bridge.estimated_seconds(
        configs,
        (dataset.channels, dataset.height, dataset.width),
        dataset.num_samples,
        len(dataset.class_names),
        device=device,
        on_features=on_features,
        num_threads=threads,
    )
    if map_method != "umap":
        return found
    each = MAP_S * min(dataset.num_samples, MAP_ROWS)
    first = next(iter(found))
    return {name: seconds + each + MAP_START_S * (name == first) for name, seconds in found.items()}


@dataclass(frozen=True)
class Choices:
    """What each engine of the registry would take with a preset, before anybody chose some of them."""

    device: str
    """What the wanted device means here."""
    on_images: Mapping[str, float]
    """Seconds by engine."""
    on_features: Mapping[str, float]

    def seconds(self, engines: Sequence[str], heads: Collection[str], *, on_features: bool) -> float:
        """For these engines, of which ``heads`` train on features of the plain one, or all on a backbone's."""
        of_features = set(engines if on_features else heads)
        each = {name: (self.on_features if name in of_features else self.on_images)[name] for name in engines}
        first = [name for name in engines if heads and name not in heads]
        return until_all_are_done(each, executors.threads(engines, first, self.device))


def choices(
    dataset: Dataset, preset: str, device: str, finetuned: engine_bridge.Pretrained | None = None
) -> Choices:
    """Estimates for every engine, on images where it can (training ``finetuned`` further) and on features.

    Raises:
        AuditFailedError: an unknown preset or device.
    """
    resolved = engine_bridge.resolve_device(device)
    found = {}
    for on_features in (False, True):
        names = [each.name for each in engine_bridge.engine_choices(on_features=on_features)]
        further = None if on_features else finetuned
        configs = engine_bridge.configs(names, preset, {}, on_features=on_features, finetuned=further)
        heads = names if on_features else []
        threads = executors.threads(names, [], resolved)
        found[on_features] = planned(
            dataset, configs, device=resolved, map_method="umap", on_features=heads, threads=threads
        )
    return Choices(resolved, found[True] | found[False], found[True])


def left(audit: Audit, runs: Sequence[EngineRun]) -> float | None:
    """Seconds until all of the audit's runs are done; None while nothing tells.

    An engine that is well under way goes on at its own pace. The others take what the plan says, times what the
    plan was wrong by so far. An audit without an estimate, of an earlier version, takes the mean of its own runs.
    """
    estimate: Mapping[str, float] = audit.options.get("estimate", {})
    waiting = [run for run in runs if run.status != "finished"]
    measured = {run.engine: seconds for run in runs if (seconds := _total(run)) is not None}
    known = [engine for engine in measured if engine in estimate]
    factor = 1.0
    if known:
        factor = sum(measured[engine] for engine in known) / max(
            sum(estimate[engine] for engine in known), 1e-9
        )
        factor = min(WIDEST, max(1 / WIDEST, factor))
    mean = sum(measured.values()) / len(measured) if measured else None
    still: dict[str, float] = {}
    for run in waiting:
        whole = measured.get(run.engine)
        if whole is None:
            whole = estimate[run.engine] * factor if run.engine in estimate else mean
        if whole is None:
            return None
        still[run.engine] = max(0.0, whole - run.seconds)
    return until_all_are_done(still, audit.options.get("threads", {}))


def until_all_are_done(seconds: Mapping[str, float], threads: Mapping[str, int]) -> float:
    """How long engines take together that each take ``seconds``, those side by side for which there are cores.

    The engine with most threads goes first and alone, as one that others wait for does.
    """
    num_cores, ends = executors.cores(), 0.0
    lanes: list[float] = []
    for name in sorted(seconds, key=lambda name: (-threads.get(name, num_cores), -seconds[name])):
        num = max(1, num_cores // max(1, threads.get(name, num_cores)))
        if num == 1:
            ends += seconds[name]
        else:
            lanes = sorted([*lanes, *[0.0] * (num - len(lanes))])
            lanes[0] += seconds[name]
    return ends + max(lanes, default=0.0)


def _total(run: EngineRun) -> float | None:
    """Seconds that the run takes in all, by its own pace; None where it has hardly begun."""
    if run.status == "finished":
        return run.seconds
    seconds_left = audits.seconds_left(run)
    return None if seconds_left is None or run.progress < FIRM else run.seconds + seconds_left
