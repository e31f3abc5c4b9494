"""From an audit's arrays to stored scores: loads the witnesses, pools them, writes the rows.

Needs no training, so it also runs when verdicts were added: the same engines, told more.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.exc import IntegrityError

from auditor.catalog import audits, datasets, leases, reviews, scores
from auditor.catalog.db import ask, session
from auditor.catalog.records import Audit, AuditSummary, Dataset, now
from auditor.ground.errors import AuditFailedError
from auditor.pictures import cache
from auditor.results import arrays, own_models
from auditor.review import decisions, verifying
from auditor.statistics import (
    Combined,
    NoiseRate,
    Verified,
    Witness,
    combine,
    knows_by_heart,
    trust_sentence,
    witness_from_probabilities,
)
from auditor.statistics.annotators import described

WAIT_S = 0.2
"""Between two looks whether another process has stored the scores that it is at."""


def settle(audit_id: int) -> Combined:
    """Combine what the audit's engines and the verified rows say, and store scores and statements.

    Raises:
        AuditFailedError: no engine of the audit has finished.
    """
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        dataset = datasets.by_id(open_session, audit.dataset_id)
        given = datasets.given_labels(open_session, audit.dataset_id)
        heard = reviews.newest(open_session, audit.dataset_id)
    answers = cache.answers(dataset)
    if answers is not None:
        answers = replace(answers, labels=dataset.of_today(answers.labels))
    found = combine(
        witnesses(audit_id, dataset),
        given,
        len(dataset.class_names),
        verified=verified_rows(audit_id),
        known=decisions.known_classes(dataset.id),
        answers=answers,
    )
    columns = _columns(found, given)
    settled_at = now().isoformat()
    summary = replace(
        _summary(found), settled_at=settled_at, runs=arrays.runs_that_speak(audit_id), heard=heard
    )
    if answers is not None and found.consensus is not None:
        told = described(found.consensus, answers, dataset.annotators or [], dataset.class_names)
        summary = replace(summary, annotators=told)
    store(audit, columns, summary)
    arrays.keep_ranks(audit_id, columns["rank"], settled_at)
    arrays.keep_pools(audit_id, found.fits, settled_at)
    return found


def store(audit: Audit, columns: dict[str, NDArray[Any]], summary: AuditSummary) -> None:
    """Write scores and statements: in parts, between which others write and see the earlier ones.

    One short transaction makes the later ones those that people see; then the earlier ones are deleted, in parts
    too. What a kill leaves of either is deleted by whoever settles the audit next, or removes it.
    """
    with _alone(audit.id) as name:
        _clear(audit.id, name)
        start, more = 0, True
        while more:
            with session() as open_session:
                more = scores.add_part(open_session, audit.id, columns, start)
                leases.beat(open_session, name)
            start += scores.ROWS_A_STATEMENT
        with session() as open_session:
            scores.turn(open_session, audit.id)
            audits.change(open_session, audit.id, summary=summary)
        _clear(audit.id, name)


def _clear(audit_id: int, name: str) -> None:
    more = True
    while more:
        with session() as open_session:
            more = scores.clear_part(open_session, audit_id)
            leases.beat(open_session, name)


@contextmanager
def _alone(audit_id: int) -> Iterator[str]:
    """Nobody else stores scores of this audit meanwhile; who does already is waited for. The name of the lease."""
    name = f"{leases.SETTLING}{audit_id}"
    while not _took(name):
        time.sleep(WAIT_S)
    try:
        yield name
    finally:
        ask(leases.end, name)


def _took(name: str) -> bool:
    try:
        with session() as open_session:
            if name in leases.names(open_session):
                return leases.adopt(open_session, name) is not None
            leases.take(open_session, name, "")
    except IntegrityError:  # another one took it at the same moment
        return False
    return True


def hear(audit_id: int, *, alone: bool) -> Combined:
    """Let only the audit's own runs speak from now on, or the latest earlier ones of other engines too, and settle.

    Raises:
        AuditFailedError: no engine of the audit has finished.
    """
    with session() as open_session:
        before = audits.get(open_session, audit_id).options
        audits.change(open_session, audit_id, options=replace(before, alone=alone))
    try:
        return settle(audit_id)
    except Exception:
        # The scores are still those of before: what is said to speak must be what spoke.
        ask(audits.change, audit_id, options=before)
        raise


def witnesses(audit_id: int, dataset: Dataset) -> list[Witness]:
    """The engines that finished and the user's own predictions, as witnesses.

    Raises:
        AuditFailedError: there is none.
    """
    given = ask(datasets.given_labels, dataset.id)
    found = []
    for run in arrays.speaking_runs(audit_id):
        probs = arrays.of_all_classes(arrays.pred_probs(audit_id, run.name), len(dataset.class_names))
        trust, is_out_of_sample = (
            arrays.trust(audit_id, run.name),
            arrays.is_out_of_sample(audit_id, run.name),
        )
        if np.isin(arrays.trained_labels(run.audit_id)[0], list(dataset.merged)).any():
            # Its trust is that in a label which is another one now.
            found.append(
                witness_from_probabilities(probs, given, name=run.name, is_out_of_sample=is_out_of_sample)
            )
        else:
            found.append(Witness(run.name, trust, probs, is_out_of_sample))
    engines = [one.pred_probs for one in found if one.is_out_of_sample]
    for name, own in own_models.load(dataset.id).items():
        probs = arrays.of_all_classes(own, len(dataset.class_names))
        is_out_of_sample = not knows_by_heart(probs, engines, given)
        found.append(witness_from_probabilities(probs, given, name=name, is_out_of_sample=is_out_of_sample))
    if not found:
        raise AuditFailedError(f"No engine of audit {audit_id} has finished; resume it first.")
    return found


def verified_rows(audit_id: int) -> Verified:
    """The verified sample as this audit counts it, with the rows that it trained on as trusted."""
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        dataset = datasets.by_id(open_session, audit.dataset_id)
        given = datasets.given_labels(open_session, audit.dataset_id)
    # What any run that speaks was told about a sample moved its trust.
    treated = np.zeros(len(given), dtype=bool)
    for one in {audit_id, *arrays.runs_that_speak(audit_id).values()}:
        labels, trusted = arrays.trained_labels(one)
        treated |= trusted | (dataset.of_today(labels) != given)
    return verifying.rows(audit.dataset_id, trusted=treated)


def _columns(found: Combined, given: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    reading, shown = found.reading, found.calibrated
    return {
        "rank": arrays.ranks(reading.trust_score),
        "given_label": given,
        "trust_score": reading.trust_score,
        "error_probability": shown.error_probability,
        "is_label_issue": shown.is_label_issue,
        "suggested_label": reading.other_label,
        "suggested_probability": np.nan_to_num(shown.suggested_probability),
        "agreement": found.votes.against,
        "disagreement": np.nan_to_num(found.votes.spread),
    }


def _summary(found: Combined) -> AuditSummary:
    weights = found.weights
    unpooled = [name for name in found.witness_names if name not in weights]
    return AuditSummary(
        noise_rate=noise_rate_json(found.guess),
        witnesses=list(found.witness_names),
        weights=weights,
        stands_out=found.stands_out,
        trust_sentence=trust_sentence(weights, unpooled),
        rank_correlations=_rounded(found.votes.correlations),
        error_probability_is_guess=found.calibrated.error_probability_is_guess,
        suggestion_is_calibrated=found.calibrated.suggestion_is_calibrated,
        num_label_issues=int(found.calibrated.is_label_issue.sum()),
        num_ranked=int(np.isfinite(found.reading.trust_score).sum()),
    )


def noise_rate_json(rate: NoiseRate) -> dict[str, Any]:
    """A noise rate as plain values."""
    return {
        "low": float(rate.low),
        "point": float(rate.point),
        "high": float(rate.high),
        "kind": rate.kind,
        "sentence": rate.sentence,
    }


def _rounded(matrix: NDArray[np.float64]) -> list[list[float | None]]:
    return [[None if np.isnan(cell) else round(float(cell), 6) for cell in row] for row in matrix]
