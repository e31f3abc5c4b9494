"""The labels of a dataset as one object: it answers whatever differs between classes, masks and numbers.

The answers are parts, in ``auditor.labels``, and found by name, so no room below imports one.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.catalog import datasets
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset, Draw, NewReview, Sample
from auditor.ground.errors import ReviewError, VerificationError
from auditor.ground.names import Names
from auditor.ground.tables import readings
from auditor.ground.vocabulary import (
    CLASSIFICATION,
    EXCLUDE,
    KEEP,
    LABELS,
    MULTILABEL,
    REGRESSION,
    RELABEL,
    SEGMENTATION,
    UNSURE,
    VERDICTS,
)

PARTS = {
    CLASSIFICATION: "classes",
    SEGMENTATION: "masks.kind",
    REGRESSION: "numbers.kind",
    MULTILABEL: "sets.kind",
}
"""Modules of ``auditor.labels``, each with its ``KIND``."""


@dataclass(frozen=True)
class Suspects:
    """The head of a list of suspects."""

    statement: str
    """What can be said about the list."""
    page: pd.DataFrame
    """As ``scores.page`` gives it."""
    total: int
    """How many there are, listed or not."""


class Part(NamedTuple):
    """A part of a picture with a label of its own."""

    pixels: NDArray[np.bool_]
    """(H, W) bool, in the cache's square."""
    given: str
    suggested: str


class Said(NamedTuple):
    """A verdict, or the decision that it amounts to."""

    decision: str
    label: int | None = None
    number: float | None = None
    """Of numbers: what the person saw, also where the given number is near enough."""
    labels: tuple[int, ...] | None = None
    """Of sets of classes: what the person saw, where that is not the given set."""


class Kind(ABC):
    """One kind of labels."""

    task: ClassVar[str]
    """One of ``vocabulary.TASKS``."""
    unused: ClassVar[Mapping[str, Mapping[str, str]]] = {"audit": {}, "export": {}}
    """By command: its options that mean nothing for such labels, and what to do instead."""
    is_laid_out: ClassVar[bool] = False
    """An audit reduces features, draws a map and finds neighbours and near copies."""

    guesses_rate: ClassVar[bool] = True
    """An audit says by itself how many may be wrong."""

    decisions: ClassVar[Sequence[str]] = (KEEP, RELABEL, EXCLUDE, UNSURE)
    """What a person may decide on such a label."""
    verdicts: ClassVar[Collection[str]] = VERDICTS
    """What a person may say who judges one blind."""
    no_verdict: ClassVar[str]
    """What a cell says that is no verdict, before ``nor exclude or unsure``."""
    needs_tolerance: ClassVar[bool] = False
    """A draw names how far a right label may be from the one that a person sees."""

    @property
    def words(self) -> str:
        """Return what such labels are called: ``classes``, ``masks``, ``numbers``."""
        return LABELS[self.task]

    def values(self, dataset: Dataset) -> NDArray[Any]:
        """Return what a source says of every sample: (N,) classes, -1 = none."""
        return ask(datasets.given_labels, dataset.id)

    def checked(self, new: NewReview, dataset: Dataset, sample: Sample) -> NewReview:
        """Return a decision as the log keeps it: naming the given label keeps it.

        Raises:
            ReviewError: it cannot be taken on such a label.
        """
        del dataset, sample
        if new.decision not in self.decisions:
            raise ReviewError(f"{new.decision!r} is no decision; use one of {', '.join(self.decisions)}.")
        if not new.reviewer:
            raise ReviewError("A decision needs the reviewer's name.")
        return new

    def named(
        self, cells: Mapping[Any, Any], decision: str, classes: Names, given: float, where: str
    ) -> dict[str, Any]:
        """Return ``label``, ``number`` and ``labels`` that a row of a decisions' file names beside its decision.

        Raises:
            ReviewError: it names none, or the ``given`` one; the text begins with ``where``.
        """
        del cells, decision, classes, given, where
        return dict.fromkeys(("label", "number", "labels"))

    def given_text(self, dataset: Dataset, sample: Sample) -> str:
        """Return the given label as a file of a draw writes it."""
        return dataset.class_names[sample.given_label]

    def readings(self, text: str) -> Sequence[str]:
        """Return what a cell may say that holds ``given_text``."""
        return readings(text)

    def verdict_names(self, dataset: Dataset) -> Sequence[str]:
        """Return the texts one of which a cell may have meant."""
        return dataset.class_names

    @abstractmethod
    def verdict(self, text: str, dataset: Dataset) -> Said | None:
        """Return the verdict that a cell of a draw's file says; None where it says none."""

    def judged(self, said: Said, dataset: Dataset, sample: Sample, draw: Draw) -> Said:
        """Return the decision that a blind verdict amounts to.

        Raises:
            VerificationError: it is none, or lacks the class or number that is seen.
        """
        del dataset, sample, draw
        if said.decision not in self.verdicts:
            raise VerificationError(
                f"{said.decision!r} is no verdict; use one of {', '.join(self.verdicts)}."
            )
        return Said(said.decision)

    @abstractmethod
    def plan(self, dataset_name: str, engines: Sequence[str] | None = None, **choices: Any) -> int:
        """Register an audit and freeze its inputs, with the choices of ``plan.plan_audit``; returns its id.

        Raises:
            NotFoundError: no such dataset.
            AuditFailedError: something cannot be audited so; the text says what.
        """

    @abstractmethod
    def run(self, audit: Audit, dataset: Dataset, tell: Any) -> None:
        """Train the audit's engines and settle what they say; ``tell`` is a ``jobs.Reporter``."""

    @abstractmethod
    def suspects(
        self,
        dataset: Dataset,
        audit: Audit,
        *,
        top: int,
        max_fdr: float | None = None,
        split: str | None = None,
    ) -> Suspects:
        """Return the least trusted labels, or those that a promise covers; see ``statements.suspects``."""

    @abstractmethod
    def table(self, dataset: Dataset, audit: Audit, page: pd.DataFrame) -> pd.DataFrame:
        """Return a page of ``scores.page`` with names, numbers or regions in place of codes."""

    def rows(self, dataset: Dataset, audit: Audit, page: pd.DataFrame) -> list[dict[str, Any]]:
        """Return the page as plain values for programs; what is missing is None."""
        return plain_rows(self.table(dataset, audit, page))

    @abstractmethod
    def line(self, row: Mapping[str, Any]) -> str:
        """Return one of ``rows`` for people."""

    def most_doubted(self, dataset: Dataset, audit: Audit, row: Mapping[str, Any]) -> Part | None:
        """Return the part of the picture of one of ``rows`` that is doubted most; None where labels are of whole
        pictures.
        """
        del dataset, audit, row
        return None

    @abstractmethod
    def shown(self, row: Mapping[str, Any]) -> tuple[str, str]:
        """Return what is given and what is suggested in one of ``rows``, in a word or two each."""

    @abstractmethod
    def summary(self, dataset: Dataset, audit: Audit) -> list[str]:
        """Return what an audit found and what to do next, a line each."""

    @abstractmethod
    def status(self, dataset: Dataset, audit: Audit) -> list[str]:
        """Return what is known now, a sentence each."""

    @abstractmethod
    def export(self, name: str, out: Path, **choices: Any) -> Any:
        """Write the cleaned labels; returns a dataclass of what was written, with its ``sentence``.

        ``choices``: policy, max_fdr, audit_id, force, as_source, links and progress; those of ``unused`` are left.
        """

    @abstractmethod
    def download(self, name: str, out: Path, **choices: Any) -> Any:
        """Write, as ``export``, what the app offers as a file; one that is there is replaced."""


def of(dataset: Dataset) -> Kind:
    """Return the kind of a dataset's labels."""
    found: Kind = importlib.import_module(f"auditor.labels.{PARTS[dataset.task]}").KIND
    return found


def plain_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table's rows as plain values; what is missing is None."""
    return [{str(key): _plain(value) for key, value in row.items()} for row in table.to_dict("records")]


def _plain(value: Any) -> Any:
    if isinstance(value, list | str | bool):
        return value
    return None if pd.isna(value) else getattr(value, "item", lambda: value)()
