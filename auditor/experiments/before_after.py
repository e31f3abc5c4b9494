"""Before and after: is a network trained on the cleaned labels better than one trained on the given ones?

The plain baseline is trained on both with the same seeds and images, and judged on the same held-out rows:
verified ones, drawn at random and judged blind. Neither side trains on them or on their copies. They are never
dropped or corrected silently: rows that the judge could not decide or that belong to no class are counted and
named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.bridges import engine_bridge
from auditor.catalog import datasets, reading
from auditor.catalog.db import ask
from auditor.catalog.records import Dataset
from auditor.experiments import paired
from auditor.experiments.kept_trainings import Training, Trainings
from auditor.experiments.paired import Difference
from auditor.ground.errors import AuditFailedError
from auditor.ground.progress import OnProgress
from auditor.ground.wording import plural
from auditor.outputs import preview_export
from auditor.results import comparison
from auditor.review import verifying
from auditor.work import ExecutorChoice

MIN_HELD_OUT = 50
"""Verified rows below which nothing can be told."""
NETWORK = "cross_entropy"
"""The plain baseline that learns from both sides."""
SHORTER: Mapping[str, dict[str, Any]] = {"quick": {"epochs": 15}}
"""What differs from an audit's preset: a comparison trains six networks where an audit trains one."""
FEW_CHANGES = 10
"""Changed training labels below which no network is likely to show a difference."""


@dataclass(frozen=True)
class BeforeAfter:
    """The same network on given and on cleaned labels."""

    difference: Difference
    """``cleaned`` minus ``given``, paired over rows, majority of the seeds' predictions."""
    by_seed: list[tuple[int, float, float]]
    """(seed, accuracy with given labels, accuracy with cleaned labels)."""
    num_held_out: int
    num_changed: int
    """Training labels that differ between the two sides."""
    notes: list[str]

    @property
    def sentence(self) -> str:
        """The verdict for people."""
        return self.difference.sentence


def train_before_and_after(
    dataset_name: str,
    *,
    seeds: tuple[int, ...] = (0, 1, 2),
    preset: str = "quick",
    device: str = "auto",
    options: dict[str, Any] | None = None,
    policy: str = "reviewed",
    max_fdr: float | None = None,
    audit_id: int | None = None,
    on: str | None = None,
    on_ready: Callable[[str], None] | None = None,
    on_progress: OnProgress | None = None,
) -> BeforeAfter:
    """Train on given and on cleaned labels and compare on the verified rows.

    ``policy``, ``max_fdr`` and ``audit_id`` choose the cleaned labels as an export does. ``on``: where it trains
    (``executors.ExecutorChoice``). ``on_ready`` is told how
    many labels differ before anything is trained. Stopped and started again, it goes on where it stopped.

    Raises:
        AuditFailedError: too few verified rows, nothing changes any label that is trained on, or a training failed
            or was stopped.
        ExportRefusedError: the policy can change nothing, or is unknown.
    """
    ExecutorChoice.of(on)
    dataset = reading.dataset(dataset_name)
    given = ask(datasets.given_labels, dataset.id)
    held, truth, weights, notes = _held_out(dataset.id)
    cleaned = _cleaned(dataset, given, policy, max_fdr, audit_id)
    before, after = given.copy(), cleaned.copy()
    apart = apart_from_training(dataset.id, held)
    before[apart], after[apart] = -1, -1
    num_changed = int((before != after).sum())
    if not num_changed:
        raise AuditFailedError(
            f"No decision changes a label of {dataset_name!r} that could be trained on; review some suspects first."
        )
    if on_ready is not None:
        on_ready(_before_training(num_changed, len(held)))
    config = engine_bridge.configs([NETWORK], preset, {NETWORK: SHORTER.get(preset, {}) | (options or {})})[
        NETWORK
    ]
    trainings = Trainings(dataset, "compare", device=device, on=on, on_progress=on_progress)
    asked = [Training(NETWORK, labels, config, seed) for seed in seeds for labels in (before, after)]
    votes = [trained.predicted[held] for trained in trainings.train(asked)]
    votes_before, votes_after = votes[::2], votes[1::2]
    accuracy = [float(np.average(one == truth, weights=weights)) for one in votes]
    by_seed = list(zip(seeds, accuracy[::2], accuracy[1::2], strict=True))
    right_before, right_after = (_majority(votes) == truth for votes in (votes_before, votes_after))
    names = ("cleaned labels", "given labels")
    difference = paired.compare_accuracy(right_after, right_before, names=names, weights=weights)
    comparison.keep(dataset.id, [difference.sentence, *notes])
    trainings.forget()
    return BeforeAfter(difference, by_seed, len(held), num_changed, notes)


def apart_from_training(dataset_id: int, held: NDArray[np.int64]) -> NDArray[np.int64]:
    """``held`` and every sample with the same pixels: who trains on a copy is judged on what it has seen."""
    copies = ask(datasets.duplicates, dataset_id)
    same = copies.content_hash.isin(copies.content_hash[copies.sample_id.isin(held)])
    return np.union1d(held, copies.sample_id[same & (copies.content_hash != "")].to_numpy(dtype=np.int64))


def _held_out(
    dataset_id: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], list[str]]:
    """Samples, their true classes, how many samples each stands for, and remarks."""
    verified = verifying.rows(dataset_id)
    usable = np.asarray(verified.true_labels) >= 0
    notes = []
    if (~usable).any():
        notes.append(
            f"Of {plural(verified.size, 'verified row')}, {int((~usable).sum())} cannot be used: no single "
            f"true class."
        )
    if usable.sum() < MIN_HELD_OUT:
        raise AuditFailedError(
            f"{plural(int(usable.sum()), 'verified row', 'are')} too few to compare; verify at least "
            f"{MIN_HELD_OUT}, better 500."
        )
    if verified.stages:
        notes.append(
            "Most rows come from the head of a ranking; each is weighed by the labels that it stands for."
        )
    kept = verified.subset(usable)
    return np.asarray(kept.sample_ids), np.asarray(kept.true_labels), verified.weights[usable], notes


def _before_training(num_changed: int, num_held_out: int) -> str:
    differs = "differs" if num_changed == 1 else "differ"
    text = f"{plural(num_changed, 'training label')} {differs}; {plural(num_held_out, 'row')} held out."
    if num_changed >= FEW_CHANGES:
        return text
    return f"{text} So few changes will hardly show a difference; review more suspects, or stop here."


def _cleaned(
    dataset: Dataset, given: NDArray[np.int64], policy: str, max_fdr: float | None, audit_id: int | None
) -> NDArray[np.int64]:
    """The labels (N,) that an export would hold; -1 where it has none."""
    _, changed = preview_export(
        dataset.name, policy=policy, max_fdr=max_fdr, audit_id=audit_id, rows=dataset.num_samples
    )
    labels, index = given.copy(), {name: label for label, name in enumerate(dataset.class_names)}
    for row in changed.to_dict("records"):
        labels[row["sample_id"]] = index.get(row["cleaned_label"], -1)
    return labels


def _majority(votes: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    stacked = np.stack(votes)
    return np.array([np.bincount(column).argmax() for column in stacked.T], dtype=np.int64)
