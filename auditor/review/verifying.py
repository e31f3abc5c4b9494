"""What the random samples of a dataset say, as arrays: every verdict that counts, and how it was drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlmodel import Session

from auditor.catalog import datasets, draws, reviews
from auditor.catalog.db import ask, session
from auditor.catalog.records import Draw, Review
from auditor.ground.vocabulary import BLIND, DISPUTED, FOUND_WRONG, KEEP, NOT_CLEAR
from auditor.review import blind, drawing
from auditor.statistics import NO_CLASS, UNSURE, Decided, Stage, Verified


def rows(dataset_id: int, *, trusted: NDArray[np.bool_] | None = None) -> Verified:
    """All verdicts that count (the latest of each sample, not undone), in drawing order.

    ``trusted``: (N,) bool, rows that the audit in question trained on as trusted or corrected. A sample that
    is not judged to its end, or that was enlarged by a further draw, may have been stopped or enlarged because
    of what it showed: it says so, and its intervals then hold at every size. Promises rest on one draw alone,
    of those judged to their end the one that resolves most: its size was fixed before anybody saw it, and what
    earlier draws showed cannot change how random it is. A sample that was passed over for a later one of its draw
    counts as unsure: whoever skips does so because of what the image shows. So does one whose verdict somebody
    contradicts. What people decided outside the draws is known (``Verified.decided``).
    """
    with session() as open_session:
        done = reviews.verdicts(open_session, dataset_id)
        drawn = draws.of_dataset(open_session, dataset_id)
        pool = drawing.in_question(open_session, dataset_id)
        given = datasets.given_labels(open_session, dataset_id)
        counting = reviews.outcomes(open_session, dataset_id)
        decided = _decided(open_session, dataset_id, counting, pool, drawn)
    seen: list[tuple[int, int, int, int]] = []  # draw, place in it, sample, true label
    complete: set[int] = set()
    for row in drawn:
        labels = [
            _true_label(done.get((row.id, sample)), counting.get(sample), int(given[sample]))
            for sample in row.sample_ids
        ]
        judged = [place for place, sample in enumerate(row.sample_ids) if (row.id, sample) in done]
        last = max(judged, default=-1)
        seen += [(row.id, place, row.sample_ids[place], labels[place]) for place in range(last + 1)]
        if last + 1 == row.size:
            complete.add(row.id)
    ids = np.array([sample for _, _, sample, _ in seen], dtype=np.int64)
    draw_of_row = np.array([one for one, _, _, _ in seen], dtype=np.int64)
    num_drawn = sum(row.size for row in drawn)
    could = _could_draw(drawn, pool)
    backing = _Backing.of([row for row in drawn if row.id in complete], could, pool)
    known = np.array(sorted(decided.keys() - set(ids.tolist())), dtype=np.int64)
    return Verified(
        sample_ids=ids,
        true_labels=np.array([label for _, _, _, label in seen], dtype=np.int64),
        trusted=None if trusted is None else trusted[ids],
        is_watched=len(seen) < num_drawn or len(drawn) > 1,
        pool=pool,
        treated=trusted,
        backing=(draw_of_row == backing.draw_id) & backing.pool[ids],
        num_waiting=num_drawn - len(seen),
        stages=_stages(drawn, draw_of_row, could, complete),
        backing_pool=backing.pool,
        backing_words=backing.words,
        strata=_strata(drawn[0], could[drawn[0].id]) if drawn else None,
        decided=Decided(known, np.array([decided[one] for one in known.tolist()], dtype=bool)),
    )


def _decided(
    open_session: Session,
    dataset_id: int,
    counting: Mapping[int, Review],
    pool: NDArray[np.bool_],
    drawn: Sequence[Draw],
) -> dict[int, bool]:
    """By sample in question that somebody settled: whether its given label is wrong, as the draws count it."""
    found = {i: row for i, row in counting.items() if pool[i] and drawing.is_settled(row)}
    tolerance = drawn[0].tolerance if drawn else None
    if tolerance is None:  # the labels are no numbers
        return {i: row.decision in FOUND_WRONG for i, row in found.items()}
    numbers = datasets.given_numbers(open_session, dataset_id)
    return {
        i: row.decision in FOUND_WRONG
        and (row.number is None or not blind.is_near(row.number, float(numbers[i]), tolerance))
        for i, row in found.items()
    }


def _could_draw(drawn: Sequence[Draw], pool: NDArray[np.bool_]) -> dict[int, NDArray[np.bool_]]:
    """By draw, the (N,) samples that it could take: in question, drawn by no earlier one, and not decided then."""
    left, could = pool.copy(), {}
    for row in drawn:
        could[row.id] = left.copy()
        could[row.id][row.decided] = False
        left[row.sample_ids] = False
    return could


@dataclass(frozen=True, eq=False)
class _Backing:
    """The draw that promises rest on, of those judged to their end, and what it can speak about."""

    draw_id: int | None
    pool: NDArray[np.bool_]
    """(N,) bool."""
    words: str = ""

    @classmethod
    def of(
        cls, complete: Sequence[Draw], could: Mapping[int, NDArray[np.bool_]], pool: NDArray[np.bool_]
    ) -> _Backing:
        """The one that resolves most, by sizes alone and so whatever it showed; the earliest of equals."""
        if not complete:
            return cls(None, pool)

        def labels_per_row(row: Draw) -> float:
            if not row.head:
                return float(could[row.id].sum()) / (row.size + 1)
            return len(row.head) / (int(row.zones[0]["drawn"]) + 1)

        best = min(complete, key=labels_per_row)
        if not best.head:
            return cls(best.id, could[best.id])
        inside = np.zeros_like(could[best.id])
        inside[best.head] = True
        words = f"the {len(best.head):,} most suspicious labels of audit {best.audit_id}"
        return cls(best.id, inside, words)


def _strata(row: Draw, could: NDArray[np.bool_]) -> NDArray[np.int8] | None:
    """(N,) 0 = the ranking before a uniform draw thought the label wrong, 1 = not, -1 = it could not be drawn."""
    if not row.likely_wrong:
        return None
    strata = np.where(could, 1, -1).astype(np.int8)
    wrong = np.array(row.likely_wrong, dtype=np.int64)
    strata[wrong[could[wrong]]] = 0
    return strata


def _stages(
    drawn: Sequence[Draw],
    draw_of_row: NDArray[np.int64],
    could: Mapping[int, NDArray[np.bool_]],
    complete: set[int],
) -> tuple[Stage, ...]:
    """One stage a draw; a uniform one that goes on where a uniform one ended is part of its stage."""
    stages: list[Stage] = []
    goes_on: NDArray[np.bool_] | None = None
    for row in drawn:
        mine = draw_of_row == row.id
        if not row.head and goes_on is not None and np.array_equal(could[row.id], goes_on):
            stages[-1] = Stage(stages[-1].rows | mine, stages[-1].zones, stages[-1].fixed)
        else:
            zones = np.where(could[row.id], 2 if row.head else 0, -1).astype(np.int8)
            for place, sample in enumerate(row.head):
                if could[row.id][sample]:
                    zones[sample] = int(2 * place >= len(row.head))
            is_fixed = not stages and row.id in complete
            stages.append(Stage(mine, zones, mine if is_fixed else np.zeros_like(mine)))
        goes_on = None
        if not row.head:
            goes_on = could[row.id].copy()
            goes_on[row.sample_ids] = False
    return tuple(stages)


def calibrating_ids(dataset_id: int) -> NDArray[np.int64]:
    """Samples that calibrate promises: even places of every draw, judged or not."""
    drawn = ask(draws.of_dataset, dataset_id)
    return np.array([s for row in drawn for s in row.sample_ids[::2]], dtype=np.int64)


def trusted_weight(dataset_id: int, trusted: NDArray[np.bool_]) -> NDArray[np.float32] | None:
    """(N,) how many labels each trusted sample stands for; None where no draw looked at a head more often.

    A row that chance drew stands for its share of its zone. One that somebody picked stands for itself alone.

    Args:
        dataset_id: of the draws.
        trusted: (N,) bool, the samples that are trained on as trusted.
    """
    verified = rows(dataset_id)
    if all(stage.is_uniform for stage in verified.stages):
        return None
    weight = np.ones(len(trusted), dtype=np.float32)
    kept = verified.subset(trusted[verified.sample_ids])
    if kept.size:
        num_labels = int((kept.stages[0].zones >= 0).sum())
        weight[kept.sample_ids] = np.maximum(1.0, kept.weights * num_labels / kept.size)
    return weight


def _true_label(verdict: Review | None, counts: Review | None, given_label: int) -> int:
    """The class that was seen, ``NO_CLASS`` where none fits, or ``UNSURE``; that too where two looks differ."""
    seen = _class_seen(verdict, given_label)
    if counts is not None and counts.decision == DISPUTED:
        return UNSURE
    if counts is None or not drawing.is_settled(counts):
        return seen
    return seen if counts.kind == BLIND or _class_seen(counts, given_label) == seen else UNSURE


def _class_seen(row: Review | None, given_label: int) -> int:
    if row is None or row.decision in NOT_CLEAR:
        return UNSURE
    if row.decision == KEEP:
        return given_label
    return NO_CLASS if row.label is None else row.label
