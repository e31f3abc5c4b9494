"""The head of a ranking in random order: reviewing that says, after every verdict, what can be promised of the
rest.

The most suspicious labels of an audit that nobody has looked at, twice as many as are guessed to be wrong, are put
into a random order once and for all. Whoever reviews in this order calibrates: what holds of the first looks holds
of the others (``statistics.rates.running``), at whichever look people stop. Two kinds of looks are kept apart:

* *blind* ones, of draws for promises (``blind``): nobody sees the suggestion;
* *shown* ones, of the review bench: the suggestion is in view and may pull a verdict its way. Then more labels seem
  wrong than are, and a promise would be too good. So they back one only where a person chooses so.

A draw that came after the order may take labels of it too. Their blind verdicts hold at their places in the order
(what makes the beginning random is the order, not who looked), but they are counted apart (``SoFar.num_blind``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlmodel import Session

from auditor.catalog import audits, datasets, draws, reviews
from auditor.catalog.db import ask, session
from auditor.catalog.records import Audit, Draw, NewDraw
from auditor.ground.vocabulary import BLIND, FOUND_WRONG, HEAD_ORDER, LEVELS, PROMISES
from auditor.review import drawing, verifying
from auditor.review.blind import pending
from auditor.statistics import (
    Looks,
    NoiseRate,
    RunningPromise,
    draw_zones,
    running_promises,
    share_for_head,
)

MOST_PASSED = 0.05
"""Share of the looks that may have been passed over; each of them counts as a false flag."""
SHOWN = (
    "These looks had the suggestion in view. If it influenced them, more labels seem wrong than are, and the "
    "promise is too good; blind looks (Verify) do not have this."
)
"""Beside every promise from shown looks, where all looks were shown ones (``SoFar.caution``)."""


@dataclass(frozen=True, eq=False)
class SoFar:
    """What the looks at a head say so far."""

    num_head: int
    num_looks: int
    promises: dict[float, RunningPromise]
    num_blind: int
    """Of the looks, those without the suggestion in view."""

    @property
    def sentence(self) -> str:
        """The strictest promise that is kept, else how far people are."""
        kept = next((one for one in self.promises.values() if one.is_kept), None)
        last = list(self.promises.values())[-1].sentence if self.promises else ""
        return kept.sentence if kept else last

    @property
    def caution(self) -> str:
        """What to keep in mind of looks with the suggestion in view; empty where there are none."""
        if not self.num_blind:
            return SHOWN
        if self.num_blind == self.num_looks:
            return ""
        return SHOWN.replace("These", f"{self.num_looks - self.num_blind:,} of these {self.num_looks:,}", 1)


def start(audit_id: int) -> Draw:
    """The order of the audit's head; made where there is none yet, and the same ever after."""
    with session() as open_session:
        audit = audits.get(open_session, audit_id)
        datasets.lock(open_session, audit.dataset_id)  # two who ask at once must get the same order
        return draws.order_of(open_session, audit_id) or _new(open_session, audit)


def of_audit(audit_id: int) -> Draw | None:
    """The order of the audit's head; None where nobody asked for one."""
    return ask(draws.order_of, audit_id)


def shown(audit_id: int, *, levels: Sequence[float] = LEVELS) -> SoFar | None:
    """What looks at the beginning of the order say about the head, with the suggestion in view or not; None
    without an order.

    Show its promises only where a person chose to, with ``caution`` beside them.
    """
    order = of_audit(audit_id)
    if order is None:
        return None
    known = ask(reviews.outcomes, order.dataset_id, order.sample_ids)
    seen = {sample: row.decision in FOUND_WRONG for sample, row in known.items() if row.is_seen}
    place_of = {sample: place for place, sample in enumerate(order.head)}
    places = np.array([place_of[one] for one in order.sample_ids], dtype=np.int64)
    is_seen = np.array([one in seen for one in order.sample_ids], dtype=bool)
    is_false = np.array([not seen.get(one, False) for one in order.sample_ids], dtype=bool)
    end = _end(is_seen)
    others = np.flatnonzero(is_seen[end:]) + end
    looks = Looks(places[:end], is_false[:end], places[others], is_false[others])
    is_blind = np.array([one in seen and known[one].kind == BLIND for one in order.sample_ids], dtype=bool)
    return _so_far(looks, len(order.head), (int(is_seen.sum()), int(is_blind.sum())), levels)


def blind(audit_id: int, *, levels: Sequence[float] = LEVELS) -> SoFar | None:
    """What blind looks say about the head of the audit's first draw for promises; None without one.

    Further draws from the audit's ranking go on where the first one ended, as long as each could draw all that is
    left of the head.
    """
    with session() as open_session:
        dataset_id = audits.get(open_session, audit_id).dataset_id
        every = draws.of_dataset(open_session, dataset_id)
        given = datasets.given_labels(open_session, dataset_id)
    mine = [row for row in every if row.purpose == PROMISES and row.audit_id == audit_id]
    if not mine:
        return None
    head = mine[0].head
    place_of = {sample: place for place, sample in enumerate(head)}
    verified = verifying.rows(dataset_id)
    is_false = dict(zip(verified.sample_ids.tolist(), (~verified.is_wrong(given)).tolist(), strict=True))
    drawn: set[int] = set()
    seen: list[int] = []
    for row in mine:
        if not set(head) - drawn <= set(row.head):
            break
        drawn |= set(row.sample_ids)
        seen += [one for one in row.sample_ids if one in place_of and one in is_false]
    places = np.array([place_of[one] for one in seen], dtype=np.int64)
    looks = Looks(places, np.array([is_false[one] for one in seen], dtype=bool))
    return _so_far(looks, len(head), (len(seen), len(seen)), levels)


def waiting(order: Draw, *, after: int | None = None) -> dict[int, int]:
    """By sample_id, the place in the order of what nobody has decided on, behind the place ``after``.

    What waits for a blind look of a draw is left out: who saw the suggestion here would not be blind there.
    """
    known = ask(reviews.outcomes, order.dataset_id, order.sample_ids)
    settled = known.keys() | _to_be_drawn(order)
    places = enumerate(order.sample_ids)
    return {
        sample: place
        for place, sample in places
        if sample not in settled and (after is None or place > after)
    }


def num_blind_first(audit_id: int) -> int:
    """Labels of the audit's order that wait for a blind look of a later draw; 0 without an order."""
    order = of_audit(audit_id)
    return 0 if order is None else len(_to_be_drawn(order) & set(order.sample_ids))


def _to_be_drawn(order: Draw) -> set[int]:
    return {sample for _, sample in pending(order.dataset_id)}


def _new(open_session: Session, audit: Audit) -> Draw:
    pool = drawing.in_question(open_session, audit.dataset_id)
    pool[list(reviews.outcomes(open_session, audit.dataset_id))] = False
    for row in draws.of_dataset(open_session, audit.dataset_id):
        pool[row.sample_ids] = False
    ordered = drawing.ranked(open_session, audit, np.flatnonzero(pool))
    generator = np.random.default_rng([audit.seed % 2**31, audit.id])
    guessed = share_for_head(NoiseRate(**audit.summary.noise_rate))
    head = draw_zones(ordered, guessed, min(len(ordered) // 4, drawing.FIRST_SIZE), generator).head
    zone = {
        "name": "head",
        "size": len(head),
        "drawn": len(head),
        "probability": 1.0,
        "samples": head.tolist(),
    }
    order = NewDraw(
        dataset_id=audit.dataset_id,
        seed=audit.seed,
        size=len(head),
        sample_ids=generator.permutation(head).tolist(),
        purpose=HEAD_ORDER,
        audit_id=audit.id,
        zones=[zone],
    )
    return draws.add(open_session, order)


def _end(is_seen: NDArray[np.bool_]) -> int:
    """The longest beginning of the order of which at most ``MOST_PASSED`` was passed over.

    The bounds hold of all beginnings together, so any may be chosen.
    """
    passed = np.cumsum(~is_seen)
    good = np.flatnonzero(is_seen & (passed <= MOST_PASSED * np.arange(1, len(is_seen) + 1)))
    return int(good[-1]) + 1 if len(good) else 0


def _so_far(looks: Looks, num_head: int, num: tuple[int, int], levels: Sequence[float]) -> SoFar:
    """``num``: all looks, and the blind ones among them."""
    num_looks, num_blind = num
    return SoFar(num_head, num_looks, running_promises(looks, num_head, levels=levels), num_blind)
