"""Readers for the screens. Caches take ids, never sessions; what people write is read afresh every time.

An id means something only in its home, and there only until it is removed: a later row may get it again. So caches
also take the home and when the row came to be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from app.session import sign_in
from auditor import kind
from auditor.catalog import audits, datasets, draws, reading, reviews, scores
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset, EngineRun, Epoch
from auditor.ground.errors import AuditorError, NotFoundError
from auditor.ground.settings import settings
from auditor.results import arrays, progress, queues, statements
from auditor.review import blind, decisions, drawing
from auditor.statistics import ErrorsLeft, NoiseRate

LEASED_AHEAD = 8
"""Samples of Verify that are leased before they are in view, as in ``verify.js``."""


TRUST_BINS = 12
ROWS_AT_ONCE = 250_000
MOST_SCORES = 200_000
"""Rows of scores that charts are drawn from."""


@dataclass(frozen=True)
class Status:
    """Progress of a dataset, for Home."""

    dataset: Dataset
    audits: int
    running: Audit | None
    finished: Audit | None
    """The newest that has scores: finished, or one that runs and has a first list."""
    decided: int
    found: int
    drawn: int
    verified: int
    left: ErrorsLeft | None
    noise: NoiseRate | None


def all_datasets() -> list[Dataset]:
    """Every dataset, the newest first."""
    return ask(datasets.list_all)


def dataset(name: str) -> Dataset:
    """The dataset of that name."""
    return reading.dataset(name)


def rename(row: Dataset, name: str) -> None:
    """Give a dataset another name.

    Raises:
        AuditorError: the name is taken.
    """
    if any(other.name == name for other in all_datasets()):
        raise AuditorError(f"A dataset named {name} exists already; choose another name.")
    ask(datasets.change, row.id, name=name)


def audits_of(dataset_id: int | None) -> list[Audit]:
    """Audits of a dataset, the newest first."""
    assert dataset_id is not None
    return ask(audits.of_dataset, dataset_id)


def audit_state(audit: Audit) -> str:
    """``queued``, ``running``, ``finished``, ``failed``, ``cancelled`` or ``dead``."""
    return ask(audits.state, audit)


def epochs(audit_id: int) -> list[Epoch]:
    """Every recorded epoch of an audit."""
    return ask(audits.epochs, audit_id)


def speaking_runs(audit_id: int) -> dict[str, EngineRun]:
    """By name of the witness, the run that speaks in the audit's consensus, of whichever audit."""
    return {
        run.name: next(one for one in ask(audits.runs, run.audit_id) if one.engine == run.engine)
        for run in arrays.speaking_runs(audit_id)
    }


def classes_of(dataset_id: int, samples: list[int]) -> dict[int, int]:
    """By sample, the number of its class: as a person decided, else as it was given; -1 where it has none."""
    told = {i: row.label for i, row in decisions.outcomes(dataset_id).items() if row.label is not None}
    return {i: told.get(i, row.given_label) for i, row in reading.samples_by_id(dataset_id, samples).items()}


def blind_items(dataset_id: int, pending: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """(draw_id, sample_id) pairs with what a blind judge may see: the given label and the path."""
    by_id = reading.samples_by_id(dataset_id, [sample for _, sample in pending])
    return [
        {
            "draw": draw,
            "sample": sample,
            "given": by_id[sample].given_label,
            "filepath": by_id[sample].filepath,
        }
        for draw, sample in pending
        if sample in by_id
    ]


def dealt_items(dataset_id: int, pending: list[tuple[int, int]], reviewer: str) -> list[dict[str, Any]]:
    """``blind_items`` for one of several judges: what others look at comes last, the first are leased."""
    return blind_items(dataset_id, queues.deal(dataset_id, pending, reviewer, LEASED_AHEAD))


def examples_of(
    row: Dataset, audit: Audit | None, labels: Iterable[int], *, apart_from: Collection[int], limit: int
) -> dict[int, list[int]]:
    """By given class, at most ``limit`` samples to compare with, none of ``apart_from``: those that people found
    right, then those that an audit trusts most, without one some from all over the set; none of another verdict.
    """
    known, given = progress.findings(row), given_labels(row)
    found: dict[int, list[int]] = {}
    for label in set(labels):
        if audit is not None:
            samples = ask(scores.most_trusted, audit.id, label, limit + len(apart_from) + len(known.decided))
        else:
            samples = np.flatnonzero(given == label).tolist()
        right = [one for one in sorted(known.right) if given[one] == label and one not in apart_from]
        rest = [one for one in samples if one not in apart_from and one not in known.decided]
        step = 1 if audit is not None else max(1, len(rest) // limit)
        found[label] = (right + rest[::step])[:limit]
    return found


def last_blind_item(dataset_id: int, reviewer: str) -> dict[str, Any] | None:
    """The reviewer's newest blind verdict that counts, so that it can be undone after a reload."""
    standing = ask(reviews.verdicts, dataset_id)
    own = [(row.id, key) for key, row in standing.items() if row.reviewer == reviewer]
    return blind_items(dataset_id, [max(own)[1]])[0] if own else None


def given_labels(row: Dataset) -> NDArray[np.integer]:
    """(N,) given labels; -1 = unlabeled. Only classes that are merged change them, so that they are kept, as small
    as they can be.
    """
    return _given_labels(settings().home, row.id, f"{row.created_at} {row.merged}")


@st.cache_resource(max_entries=2, show_spinner=False)
def _given_labels(home: Path, dataset_id: int, version: str) -> NDArray[np.integer]:  # noqa: ARG001
    labels = ask(datasets.given_labels, dataset_id)
    return labels.astype(np.min_scalar_type(-1 - int(labels.max(initial=0))))


def class_counts(row: Dataset) -> dict[int, int]:
    """Samples by given label; -1 counts the unlabeled."""
    return _class_counts(settings().home, row.id, f"{row.created_at} {row.merged}")


@st.cache_data(max_entries=64, show_spinner=False)
def _class_counts(home: Path, dataset_id: int, version: str) -> dict[int, int]:  # noqa: ARG001
    return ask(datasets.class_counts, dataset_id)


def split_counts(row: Dataset) -> dict[str, int]:
    """Samples by split, the largest first; empty where the source named none."""
    return _split_counts(settings().home, row.id, str(row.created_at))


@st.cache_data(max_entries=64, show_spinner=False)
def _split_counts(home: Path, dataset_id: int, version: str) -> dict[str, int]:  # noqa: ARG001
    return ask(datasets.split_counts, dataset_id)


def pair_counts(audit: Audit, where: scores.SuspectFilter) -> pd.DataFrame:
    """Return what a queue holds by (given_label, suggested_label), most frequent first; read after every
    decision.
    """
    newest = ask(reviews.newest, audit.dataset_id)
    return _pair_counts(settings().home, audit.id, queues.scores_version(audit), newest, where)


def first_of(audit: Audit, where: scores.SuspectFilter, number: int) -> list[int]:
    """The most suspicious samples of a queue, at most ``number``; read after every decision."""
    newest = ask(reviews.newest, audit.dataset_id)
    return _first_of(settings().home, audit.id, queues.scores_version(audit), newest, where, number)


def reviewers(row: Dataset) -> list[str]:
    """Everybody who decided something, by name."""
    return ask(reviews.reviewers, row.id)


@st.cache_data(max_entries=64, show_spinner=False, hash_funcs={scores.SuspectFilter: repr})
def _first_of(
    home: Path,  # noqa: ARG001
    audit_id: int,
    version: str,  # noqa: ARG001
    newest: int,  # noqa: ARG001
    where: scores.SuspectFilter,
    number: int,
) -> list[int]:
    page = ask(scores.page, ask(audits.get, audit_id), where, limit=number)
    return [int(one) for one in page.sample_id]


@st.cache_data(max_entries=32, show_spinner=False, hash_funcs={scores.SuspectFilter: repr})
def _pair_counts(
    home: Path,  # noqa: ARG001
    audit_id: int,
    version: str,  # noqa: ARG001
    newest: int,  # noqa: ARG001
    where: scores.SuspectFilter,
) -> pd.DataFrame:
    return ask(scores.pair_counts, ask(audits.get, audit_id), where)


def given_numbers(dataset: Dataset) -> NDArray[np.float64]:
    """(N,) numbers as they were imported; NaN where there is none."""
    return _given_numbers(settings().home, dataset.id, dataset.num_samples)


@st.cache_data(max_entries=2, show_spinner=False)
def _given_numbers(home: Path, dataset_id: int, num_samples: int) -> NDArray[np.float64]:  # noqa: ARG001
    return ask(datasets.given_numbers, dataset_id)


def score_table(audit: Audit) -> pd.DataFrame:
    """Scores of an audit in sample order: all of them, or of more than ``MOST_SCORES`` so many, evenly spread."""
    return _score_table(settings().home, audit.id, queues.scores_version(audit))


@st.cache_data(max_entries=2, show_spinner=False)
def _score_table(home: Path, audit_id: int, version: str) -> pd.DataFrame:  # noqa: ARG001
    num_samples = reading.dataset_of_audit(audit_id).num_samples
    if num_samples > MOST_SCORES:
        return ask(scores.spread, audit_id, num_samples, most=MOST_SCORES)
    return ask(scores.table, audit_id)


def most_parted(audit: Audit, num_voters: int, limit: int) -> pd.DataFrame:
    """As ``scores.most_parted`` finds them: read once for the audit's scores."""
    return _most_parted(settings().home, audit.id, queues.scores_version(audit), num_voters, limit)


@st.cache_data(max_entries=8, show_spinner=False)
def _most_parted(home: Path, audit_id: int, version: str, num_voters: int, limit: int) -> pd.DataFrame:  # noqa: ARG001
    return ask(scores.most_parted, audit_id, num_voters, limit)


def is_settled(audit: Audit) -> bool:
    """Return whether the audit's ranking rests on all blind verdicts that count."""
    standing = ask(reviews.verdicts, audit.dataset_id).values()
    settled = audit.summary.settled_at
    newest = max((one.created_at for one in standing), default=None)
    return newest is None or (settled is not None and newest <= datetime.fromisoformat(settled))


def status(row: Dataset) -> Status:
    """Progress of a dataset."""
    known_audits = audits_of(row.id)
    running = next((one for one in known_audits if audit_state(one) in ("running", "queued")), None)
    finished = next(iter(audits.finished(known_audits)), None)
    known = progress.findings(row)
    is_guessed = kind.of(row).guesses_rate
    return Status(
        dataset=row,
        audits=len(known_audits),
        running=running,
        finished=finished,
        decided=len(known.decided),
        found=len(known.wrong),
        drawn=drawing.num_drawn(row.id),
        verified=blind.num_judged(row.id),
        left=progress.errors_left(row, finished, known) if finished and is_guessed else None,
        noise=progress.noise_rate(finished) if finished and is_guessed else None,
    )


def errors_left(row: Dataset, audit: Audit | None) -> ErrorsLeft | None:
    """Return what an audit and the people say is left; None without an audit, or where no rate is known."""
    if audit is None or not kind.of(row).guesses_rate:
        return None
    return progress.errors_left(row, audit, progress.findings(row))


@dataclass(frozen=True)
class Findings:
    """What an audit and the people say about the whole dataset."""

    said: statements.Statements
    trust_by_class: NDArray[np.float64]
    """(K, ``TRUST_BINS``) share of each class's labels by bin of trust, from doubted to trusted."""


def findings(audit: Audit) -> Findings:
    """Scores and verified rows as they are this moment; computed again after every word of a person.

    Raises:
        NotFoundError: the audit was never stored.
    """
    if audit.id is None:
        raise NotFoundError("This audit does not exist any more.")
    told = (ask(reviews.newest, audit.dataset_id), len(ask(draws.of_dataset, audit.dataset_id)))
    return _findings(settings().home, audit.id, queues.scores_version(audit), told)


@st.cache_resource(max_entries=2, show_spinner="Counting …")
def _findings(home: Path, audit_id: int, version: str, told: tuple[int, int]) -> Findings:  # noqa: ARG001
    seen = statements.load(audit_id)
    # Not ``seen`` itself: of ten million samples it takes half a gigabyte.
    return Findings(statements.statements(seen), _trust_by_class(seen))


def _trust_by_class(seen: statements.Standing) -> NDArray[np.float64]:
    num = len(seen.dataset.class_names)
    counts = np.zeros((num, TRUST_BINS))
    for start in range(0, len(seen.given_labels), ROWS_AT_ONCE):
        given, trust = (one[start : start + ROWS_AT_ONCE] for one in (seen.given_labels, seen.trust_score))
        known = (given >= 0) & np.isfinite(trust)
        part, _, _ = np.histogram2d(
            given[known], trust[known], bins=(np.arange(num + 1), np.linspace(0, 1, TRUST_BINS + 1))
        )
        counts += part
    return np.asarray(counts / np.maximum(1, counts.sum(axis=1, keepdims=True)))


def base_path() -> str:
    """Return what comes before every address of ours, where the app is served below a path: ``""`` or ``/PATH``."""
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""


def picture_address(row: Dataset, sample: int, side: int) -> str:
    """Return the address at which the browser finds the picture of a sample, at most ``side`` pixels a side."""
    place = connection(row)
    return (
        f"{place['base']}/bench/image/{place['dataset']}/{sample}?size={side}&v={place['version']}"
        f"&t={place['token']}"
    )


def connection(row: Dataset) -> dict[str, Any]:
    """Return what a component needs to call our routes about a dataset."""
    return {
        "base": base_path(),
        "token": sign_in.token(),
        "dataset": row.id,
        "version": int(row.created_at.timestamp()),
    }
