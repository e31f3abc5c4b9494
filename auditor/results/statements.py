"""What may be said about the flags and the whole data set, with the verdicts as they are at this moment.

The scores are those of the audit's last settling; the verified rows are read afresh, so that a screen can show
after every verdict what has become certain.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.catalog import audits, datasets, folders, scores
from auditor.catalog.db import ask, session
from auditor.catalog.records import Audit, Dataset
from auditor.ground import wording
from auditor.ground.errors import AuditFailedError, NotFoundError
from auditor.ground.vocabulary import CLASSIFICATION, FOUND_WRONG, LEVELS, RELABEL
from auditor.kind import Suspects
from auditor.pictures.sources import printable
from auditor.results import settle
from auditor.review import blind, decisions
from auditor.review.decisions import Findings
from auditor.statistics import (
    MOST_SPLITS,
    ClassReport,
    ErrorsLeft,
    Exchangeability,
    MoreRows,
    NoiseRate,
    Promise,
    SplitReport,
    Verified,
    noise,
    part_intervals,
    shared_pictures,
    split_reports,
)
from auditor.statistics import promises as calibration

MOST_INTERVALS = 10
"""Pairs of classes whose number has an interval: the first of the list, as many as a page names."""
STANDING = ("trust_score", "error_probability", "suggested_label", "is_label_issue")
"""Columns of the scores that statements are computed from."""


@dataclass(frozen=True, eq=False)
class Standing:
    """An audit's scores and the verified rows, as arrays in sample order."""

    audit: Audit
    dataset: Dataset
    given_labels: NDArray[np.integer]
    trust_score: NDArray[np.float64]
    error_probability: NDArray[np.float64]
    suggested_label: NDArray[np.integer]
    is_doubtful: NDArray[np.bool_]
    verified: Verified
    exchangeability: Exchangeability
    """Whether the verified rows look like the random sample that they should be."""

    @property
    def is_random_sample(self) -> bool:
        """There are verified rows, and nothing shows that they were picked."""
        return self.verified.size > 0 and self.exchangeability.verdict != "refused"

    @property
    def in_question(self) -> NDArray[np.bool_]:
        """(N,) bool: labeled samples whose label the source does not already call trusted."""
        return self.verified.drawn_from(self.given_labels)

    def findings(self) -> Findings:
        """Return what people found among these."""
        known, asked = decisions.outcomes(self.dataset.id), self.in_question
        return decisions.findings(known, {one for one in known if asked[one]})


@dataclass(frozen=True)
class Move:
    """Labels of one class that are wrong, or may be, and the class that is right in their place."""

    given: int
    right: int
    found: int
    """As many people saw."""
    suspected: int
    """Suspects that nobody decided on: what a queue of the two classes holds."""
    interval: tuple[int, int] | None = None
    """As many there are in all, found ones among them, at 95 %; None where none came up in a random sample."""


@dataclass(frozen=True)
class Statements:
    """What the audit and the people say about the whole data set."""

    noise_rate: NoiseRate
    errors_left: ErrorsLeft
    moves: list[Move]
    """Most labels first."""
    classes: list[ClassReport]
    conflicts: pd.DataFrame
    """Groups of duplicates with different given labels; certain only where ``is_certain`` says so."""
    splits: list[SplitReport]
    """Empty where the source named none, or one for all samples."""
    shared: pd.DataFrame
    """Samples whose picture or a near copy is also in another split (``splits.shared_pictures``)."""


@folders.checked_once()
def load(audit_id: int) -> Standing:
    """Everything that promises and statements are computed from.

    Raises:
        AuditFailedError: the audit has no scores yet.
        VerificationError: the verified rows cannot belong to this dataset.
    """
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        dataset = datasets.by_id(open_session, audit.dataset_id)
        if not scores.of_samples(open_session, audit_id, [0]):
            raise AuditFailedError(f"Audit {audit_id} has no scores yet; wait for it or resume it.")
    # First, for it reads columns that it does not keep.
    verified = settle.verified_rows(audit_id)
    with session() as open_session:
        given = datasets.given_labels(open_session, audit.dataset_id).astype(np.int32)
        known = scores.columns(open_session, audit_id, STANDING)
    trust_score = known["trust_score"]
    verified.check(given, len(dataset.class_names))
    return Standing(
        audit=audit,
        dataset=dataset,
        given_labels=given,
        trust_score=trust_score,
        error_probability=known["error_probability"],
        suggested_label=known["suggested_label"],
        is_doubtful=known["is_label_issue"],
        verified=verified,
        exchangeability=calibration.check_draws(trust_score, given, verified, ~verified.trusted_mask),
    )


def promises(standing: Standing, *, levels: tuple[float, ...] = LEVELS) -> dict[float, Promise]:
    """The flags whose false-discovery rate is promised at each level, or why nothing is promised.

    A promise is about the list as the audit made it, whatever was decided on it since.

    Raises:
        AuditFailedError: a level is outside (0, 1).
    """
    _check_levels(levels)
    return calibration.promises(
        standing.trust_score,
        standing.given_labels,
        standing.verified,
        levels=levels,
    )


def suspects(audit: Audit, *, top: int, max_fdr: float | None = None, split: str | None = None) -> Suspects:
    """The least trusted labels of a finished audit, or those among them that a promise at ``max_fdr`` covers.

    ``split`` lists only those of that split; a promise is about all flags and does not carry over to a part.

    Raises:
        AuditFailedError: ``max_fdr`` is outside (0, 1).
        NotFoundError: no sample is of that split.
    """
    top = min(top, 2**31 - 1)  # as large as a database takes
    if split is not None:
        _check_split(audit.dataset_id, split)
    if max_fdr is None:
        where = scores.SuspectFilter(split=split)
        with session() as open_session:
            page = scores.page(open_session, audit, where, limit=top)
            total = scores.count(open_session, audit, where)
        statement = f"{first_list(audit.dataset_id)} {noise_rate_now(audit).sentence}".lstrip()
        return Suspects(statement, page, total)
    standing = load(audit.id)
    promise = promises(standing, levels=(max_fdr,))[max_fdr]
    statement, flags = promise.sentence, np.flatnonzero(promise.flags)
    rows = standing.verified.sample_ids
    # Where nothing can be promised the threshold is NaN, and nothing lies below it.
    num_judged = int((standing.trust_score[rows] < promise.threshold).sum())
    if num_judged:
        statement += (
            f" {num_judged:,} more have as little trust; they are not listed because they were verified."
        )
    if split is not None:
        of_split = flags[ask(datasets.splits, audit.dataset_id)[flags] == split]
        if len(flags):
            statement += f" {len(of_split):,} of them are in {split}; nothing is promised about these alone."
        flags = of_split
    first = flags[np.argsort(standing.trust_score[flags], kind="stable")][:top]
    return Suspects(statement, ask(scores.page_of, audit, first.tolist()), len(flags))


def first_list(dataset_id: int) -> str:
    """Return what a list is called of which nobody has looked at any label, by whatever name; empty once
    somebody has.
    """
    return "" if decisions.outcomes(dataset_id) else "First list: nobody has checked any of these labels yet."


def no_suspects(audit: Audit) -> str:
    """Return what is said of an audit that calls no label a suspect."""
    known = decisions.outcomes(audit.dataset_id).values()
    num_found = sum(row.decision in FOUND_WRONG for row in known)
    return wording.no_suspects(num_found, is_order_alone=audit.summary.is_order_alone)


def promise_changes(standing: Standing, q: float) -> Promise:
    """The suggestions that may be taken without a look: of all these changes at most ``q`` are wrong on average.

    As ``promises``, it is about the list as the audit made it: deciding on part takes nothing from the rest.

    Raises:
        AuditFailedError: ``q`` is outside (0, 1).
    """
    _check_levels((q,))
    return calibration.promise(
        standing.trust_score,
        standing.given_labels,
        standing.verified,
        q,
        suggested_labels=standing.suggested_label,
    )


def _check_split(dataset_id: int, split: str) -> None:
    known = ask(datasets.split_counts, dataset_id)
    if split not in known:
        named = ", ".join(map(printable, list(known)[:MOST_SPLITS]))
        there = f"its splits are {named}" if known else "the source has no splits"
        raise NotFoundError(f"There is no split {printable(split)!r}; {there}.")


def _check_levels(levels: tuple[float, ...]) -> None:
    wrong = [q for q in levels if not 0 < q < 1]
    if wrong:
        raise AuditFailedError(f"A false-discovery rate of {wrong[0]} is not possible; use 0.10 for 10 %.")


def noise_rate(standing: Standing) -> NoiseRate:
    """The share of wrong labels: an interval with verified rows, else the audit's range, marked as a guess.

    Verified rows that cannot be a random sample (taken from the top of the list, say) tell nothing about the
    rest; the guess stays then.
    """
    if standing.is_random_sample:
        # What others than classes guess is no share that a point could lean on: every mask may be in doubt.
        guess = _guess(standing.audit) if standing.dataset.task == CLASSIFICATION else None
        return noise.noise_rate_from_verified(standing.given_labels, standing.verified, guess)
    return _guess(standing.audit, f" {standing.exchangeability.sentence}" if standing.verified.size else "")


def noise_rate_now(audit: Audit) -> NoiseRate:
    """``noise_rate`` of an audit; its scores are only read where there are verdicts to set against them."""
    if blind.num_judged(audit.dataset_id):
        return noise_rate(load(audit.id))
    return _guess(audit)


def _guess(audit: Audit, why: str = "") -> NoiseRate:
    stored = audit.summary.noise_rate
    return NoiseRate(**stored | {"sentence": stored["sentence"] + why})


def what_more_buys(standing: Standing, num_more: int) -> MoreRows:
    """Return what ``num_more`` further verified rows would tighten."""
    return calibration.what_more_buys(standing.given_labels, standing.verified, num_more)


def statements(standing: Standing) -> Statements:
    """Return what can be said about the whole data set now."""
    names = standing.dataset.class_names
    with session() as open_session:
        conflicts = datasets.conflicts(open_session, standing.dataset.id)
        splits = datasets.splits(open_session, standing.dataset.id)
        duplicates = datasets.duplicates(open_session, standing.dataset.id, differ_in="split")
    in_question = standing.in_question
    known = standing.findings()
    is_wrong = standing.verified.is_wrong(standing.given_labels)
    rate = noise_rate(standing)
    left = noise.errors_left(
        rate,
        int(in_question.sum()),
        num_found_wrong=len(known.wrong),
        num_found_right=len(known.right),
    )
    intervals = None
    if standing.is_random_sample:
        drawable = np.where(in_question, standing.given_labels, -1)
        intervals = part_intervals(drawable, standing.verified, is_wrong, len(names))
    of_classes = noise.class_reports(
        standing.given_labels,
        standing.error_probability,
        standing.is_doubtful,
        len(names),
        intervals=intervals,
    )
    reports = [row for row in of_classes if row.label in standing.dataset.classes]
    shared = shared_pictures(splits, duplicates)
    parts = split_reports(
        splits,
        standing.given_labels,
        standing.error_probability,
        standing.is_doubtful,
        found_wrong=known.wrong,
        shared=shared,
        verified=standing.verified if standing.is_random_sample else None,
    )
    return Statements(rate, left, _moves(standing), reports, conflicts, parts, shared)


def _moves(standing: Standing) -> list[Move]:
    """Return what people found and what is suspected by pair of classes; the first few with intervals."""
    given, asked = standing.given_labels, standing.in_question
    known = {
        i: row.label
        for i, row in decisions.outcomes(standing.dataset.id).items()
        if asked[i] and row.decision == RELABEL and row.label is not None
    }
    found = Counter((int(given[i]), label) for i, label in known.items())
    with session() as open_session:
        where = scores.SuspectFilter(only_issues=True, only_undecided=True)
        pairs = scores.pair_counts(open_session, standing.audit, where)
    columns = pairs[["given_label", "suggested_label", "count"]]
    suspected = Counter({(row[0], row[1]): row[2] for row in columns.to_numpy().tolist()})
    order = sorted(found | suspected, key=lambda pair: (-found[pair] - suspected[pair], pair))
    moves = [Move(*pair, found[pair], suspected[pair]) for pair in order if -1 < pair[1] != pair[0]]
    if standing.is_random_sample:
        moves[:MOST_INTERVALS] = [_sampled(standing, known, one) for one in moves[:MOST_INTERVALS]]
    return moves


def _sampled(standing: Standing, known: dict[int, int], move: Move) -> Move:
    """With the interval of its number, where a random sample holds one of them."""
    verified = standing.verified
    part = standing.in_question & (standing.given_labels == move.given)
    is_hit = part[verified.sample_ids] & (np.asarray(verified.true_labels) == move.right)
    if not is_hit.any():
        return move
    if verified.decided is not None:
        ids = verified.decided.sample_ids
        moved = np.array([known.get(int(i)) == move.right for i in ids], dtype=bool)
        verified = replace(verified, decided=replace(verified.decided, is_wrong=moved))
    seen, size = part_intervals(np.where(part, 0, -1), verified, is_hit, 1)[0], int(part.sum())
    low = max(move.found, math.floor(seen.low * size + 1e-9))
    return replace(move, interval=(low, max(low, math.ceil(seen.high * size - 1e-9))))
