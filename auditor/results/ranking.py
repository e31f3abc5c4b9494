"""Rank the rest anew while people review: what they decided teaches what each class is given as, without training.

Where nothing is drawn at random yet, trust, flags and suggestions of what nobody decided are anew too. Once
something is, statements and promises rest on these: they stay, and only the order of the list moves; so it does
where nothing stands out, until people find a wrong label: then all is said anew. What is decided keeps its place
and its numbers.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.catalog import audits, datasets, draws, reading, reviews, scores
from auditor.catalog.db import ask, session
from auditor.catalog.records import Audit, Review, now
from auditor.ground.settings import settings
from auditor.ground.vocabulary import FOUND_WRONG
from auditor.ground.wording import plural
from auditor.results import arrays, own_models, settle
from auditor.results.progress import NEXT
from auditor.review import decisions
from auditor.statistics import CrossFit, Reading, read, told

STEP = 20
"""Verdicts after which the rest is ranked anew."""
FEWEST = 1_000
"""Undecided labels at the head of a ranking that are ranked anew at least."""


@dataclass(frozen=True)
class Moved:
    """What ranking anew changed."""

    corrections: int
    """Labels that people found wrong since the ranking before."""
    up: int
    """Undecided labels among the next ``NEXT`` of the list that were not before."""

    @property
    def sentence(self) -> str:
        """Empty where nothing came up."""
        if not self.up:
            return ""
        who = f"Your {plural(self.corrections, 'correction')}" if self.corrections else "What you kept"
        return f"{who} moved {self.up} new {'one' if self.up == 1 else 'ones'} up."


def after_verdicts(audit_id: int) -> Moved | None:
    """``anew``, if ``STEP`` verdicts came since the audit was last ranked and it is not at work already; else None.

    Raises:
        NotFoundError: there is no such audit.
    """
    at_work = _at_work(settings().home, audit_id)
    if not at_work.acquire(blocking=False):
        return None
    try:
        with session() as open_session:
            audit = audits.get(open_session, audit_id)
            heard = audit.summary.heard
            is_due = reviews.num_since(open_session, audit.dataset_id, heard) >= STEP
        return anew(audit_id) if is_due else None
    finally:
        at_work.release()


@functools.cache
def _at_work(home: Path, audit_id: int) -> threading.Lock:  # noqa: ARG001
    """Held while the audit is ranked anew: every key asks, and a second one would do the same work beside it."""
    return threading.Lock()


def of_newest(dataset_name: str) -> Moved | None:
    """``after_verdicts`` for the newest audit that has scores; None without one."""
    audit = reading.newest_audited(dataset_name)[1]
    return None if audit is None else after_verdicts(audit.id)


def anew(audit_id: int) -> Moved | None:
    """Rank what nobody decided anew, by all verdicts of now; None where there is no model to learn from them.

    Raises:
        NotFoundError: there is no such audit.
    """
    audit = ask(audits.get, audit_id)
    fits = arrays.pools(audit)
    # A consensus of several answers asks the pool about the picture alone, which verdicts teach nothing.
    if not audit.summary.weights or fits is None or audit.summary.annotators is not None:
        return None
    if not audit.summary.stands_out and _shows_errors(audit):
        return _settled(audit)
    num_classes = len(fits.transition)
    if num_classes != len(ask(datasets.by_id, audit.dataset_id).class_names):
        return None  # it was settled before a class came or went
    heard = ask(reviews.newest, audit.dataset_id)
    given = ask(datasets.given_labels, audit.dataset_id)
    own = own_models.load(audit.dataset_id)
    opinions = [
        arrays.of_all_classes(own[name] if name in own else arrays.pred_probs(audit_id, name), num_classes)
        for name in fits.names
    ]
    fits = told(fits, opinions, given, decisions.known_classes(audit.dataset_id))
    return _store(audit, fits, read(fits, opinions, given), heard)


def _shows_errors(audit: Audit) -> bool:
    """People found a wrong label, and no statement rests on a random draw."""
    known = decisions.outcomes(audit.dataset_id).values()
    return any(row.decision in FOUND_WRONG for row in known) and not ask(draws.of_dataset, audit.dataset_id)


def _settled(audit: Audit) -> Moved:
    """All that the audit says anew: with a label that is known to be wrong, not all labels are right."""
    before = ask(scores.columns, audit.id, ("rank", "trust_score"))
    settle.settle(audit.id)
    standing, later = decisions.outcomes(audit.dataset_id), ask(scores.columns, audit.id, ("rank",))["rank"]
    free = np.isfinite(before["trust_score"])
    free[list(standing)] = False
    return _moved(standing, audit.summary.heard, before["rank"], later, free)


def _moved(
    standing: Mapping[int, Review],
    heard: int,
    rank: NDArray[np.integer],
    later: NDArray[np.integer],
    free: NDArray[np.bool_],
) -> Moved:
    found = [one for one in standing.values() if one.id > heard]
    return Moved(
        corrections=sum(one.decision in FOUND_WRONG for one in found),
        up=len(np.setdiff1d(_next(later, free), _next(rank, free))),
    )


def _store(audit: Audit, fits: CrossFit, reading: Reading, heard: int) -> Moved:
    with session() as open_session:
        datasets.lock(open_session, audit.dataset_id)
        standing = reviews.outcomes(open_session, audit.dataset_id)
        known = scores.columns(open_session, audit.id, ("rank", "is_label_issue"))
        summary = audits.get(open_session, audit.id).summary
        is_kept = not summary.stands_out or bool(draws.of_dataset(open_session, audit.dataset_id))
        num_issues = summary.num_label_issues or 0
        rank, was_issue = known["rank"], known["is_label_issue"]
        free = np.isfinite(reading.trust_score)
        free[list(standing)] = False
        is_issue = was_issue if is_kept else reading.trust_score < 0.5
        chosen = _head(rank, reading.trust_score, free, free & (is_issue | was_issue))
        order = chosen[np.argsort(reading.trust_score[chosen], kind="stable")]
        later = rank.copy()
        later[order] = np.sort(rank[chosen])
        columns: dict[str, NDArray[Any]] = {"rank": later[chosen]}
        if not is_kept:
            columns |= {
                "trust_score": reading.trust_score[chosen],
                "error_probability": 1.0 - reading.trust_score[chosen],
                "is_label_issue": is_issue[chosen],
                "suggested_label": reading.other_label[chosen],
                "suggested_probability": np.nan_to_num(reading.other_probability[chosen]),
            }
            num_issues += int(is_issue[chosen].sum()) - int(was_issue[chosen].sum())
        ranked_at = now().isoformat()
        later_summary = dataclasses.replace(
            summary, num_label_issues=num_issues, heard=heard, ranked_at=ranked_at
        )
        scores.change(open_session, audit.id, chosen, columns)
        audits.change(open_session, audit.id, summary=later_summary)
        if not is_kept:
            arrays.keep_pools(audit.id, fits, str(summary.settled_at))
    arrays.keep_ranks(audit.id, later, ranked_at)
    return _moved(standing, summary.heard, rank, later, free)


def _head(
    rank: NDArray[np.integer],
    trust: NDArray[np.float64],
    free: NDArray[np.bool_],
    in_doubt: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return what is worth ranking anew: what was or is among the least trusted, or a suspect."""
    size = max(FEWEST, 2 * int(in_doubt.sum()))
    ids = np.flatnonzero(free)
    least = [ids[np.argsort(values[ids], kind="stable")[:size]] for values in (rank, trust)]
    return np.unique(np.concatenate([*least, np.flatnonzero(in_doubt)]))


def _next(rank: NDArray[np.integer], free: NDArray[np.bool_]) -> NDArray[np.int64]:
    ids = np.flatnonzero(free)
    return ids[np.argsort(rank[ids], kind="stable")[:NEXT]]
