"""The labels of a dataset as one object: it answers whatever differs between classes, masks and numbers.

The answers are parts, in ``auditor.labels``, and found by name, so no room below imports one.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import CLASSIFICATION, LABELS, REGRESSION, SEGMENTATION

PARTS = {CLASSIFICATION: "classes", SEGMENTATION: "masks.kind", REGRESSION: "numbers.kind"}
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

    @property
    def words(self) -> str:
        """Return what such labels are called: ``classes``, ``masks``, ``numbers``."""
        return LABELS[self.task]

    @abstractmethod
    def plan(self, dataset_name: str, engines: Sequence[str] | None = None, **choices: Any) -> int:
        """Register an audit and freeze its inputs, with the choices of ``plan.plan``; returns its id.

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
