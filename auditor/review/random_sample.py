"""The verified sample: rows drawn at random, judged by a person who does not see the suggestion.

It alone lets anybody say how many labels are wrong, so it is kept apart from reviews of suspects, which are
not random. Rows at even places of a draw calibrate, rows at odd places may be trusted by the next audit; the
draw fixes which is which before anybody looks.

A draw *for the rate* takes every label with the same chance. A draw *for promises* takes most rows from the head
of an audit's ranking, twice as many labels as are guessed to be wrong, and some from the rest: about half of its
looks settle a wrong label, and inside the head few of them back a promise. The head is chosen from scores alone,
so inside it, and inside the rest, every label has the same chance; the draw keeps both chances.
"""

from __future__ import annotations

import csv
import difflib
import functools
import math
import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlmodel import Session

from auditor.catalog import audits, datasets, draws, reviews, scores
from auditor.catalog.db import session
from auditor.catalog.records import Audit, Dataset, Draw, NewDraw, NewReview, Review, Sample
from auditor.ground.errors import VerificationError, cannot_write
from auditor.ground.files import written_whole
from auditor.ground.names import Names
from auditor.ground.numbers import number_text, read_number
from auditor.ground.settings import Settings, settings
from auditor.ground.tables import SEPARATORS, is_place, quoted, read_table, readings
from auditor.ground.vocabulary import (
    BLIND,
    CLASSIFICATION,
    EXCLUDE,
    HEAD_ORDER,
    KEEP,
    LABEL,
    LABELS,
    NOT_CLEAR,
    PROMISES,
    PURPOSES,
    RATE,
    REGRESSION,
    RELABEL,
    SEGMENTATION,
    SUSPECT,
    UNDO,
    VERDICTS,
    from_verdict,
)
from auditor.ground.vocabulary import UNSURE as UNCLEAR
from auditor.ground.wording import plural
from auditor.review import schema
from auditor.statistics import NO_CLASS, UNSURE, NoiseRate, Stage, Verified, draw_zones, share_for_head

MOST_NAMED = 20
"""Rows of a file that one message names."""
FIRST_SIZE = 200
"""Rows of a first draw: enough to see a list of a tenth of the labels."""
FEWEST = 20
"""Rows of a first draw of a small set, if it has as many: fewer say next to nothing."""
COLUMNS = ("draw_id", "sample_id", "filepath", "given_label", "verdict_label")
"""Of a draw's file; ``filepath`` and ``given_label`` may be left out of one that comes back."""


MASK_VERDICTS = {"right": KEEP, "wrong": RELABEL, EXCLUDE: EXCLUDE, UNCLEAR: UNCLEAR}
"""A verdict on a mask as a file says it, and the decision that it amounts to. Nobody sees a suggestion, so a wrong
mask is only known to be wrong: its decision takes no region."""


class Said(NamedTuple):
    """What a verdict amounts to."""

    decision: str
    label: int | None = None
    number: float | None = None
    """Of numbers: what the person saw, also where the given number is near enough."""


def draw(
    dataset_name: str, size: int, *, seed: int = 0, purpose: str = RATE, tolerance: float | None = None
) -> Draw:
    """Draw ``size`` labeled samples that no earlier draw holds, at random.

    ``purpose``: ``rate`` draws uniformly, so that uniform draws together are again a uniform sample; ``promises``
    draws most from the head of the newest finished audit's ranking and some from the rest. ``tolerance``, of
    numbers only: a given one is wrong where it is farther than this from what the person says.

    Raises:
        VerificationError: fewer labeled samples are left than asked for, the purpose is unknown, no audit has
            ranked the labels yet, or numbers without a tolerance or with another one than in earlier draws.
    """
    with session() as open_session:
        return _draw(open_session, dataset_name, size, seed, purpose, tolerance)


def draw_csv(
    dataset_name: str,
    size: int,
    out: Path,
    *,
    seed: int = 0,
    purpose: str = RATE,
    tolerance: float | None = None,
    force: bool = False,
) -> Draw:
    """``draw`` and ``write_csv`` in one: a draw whose file cannot be written is not stored either.

    Raises:
        VerificationError: as ``draw``, or the file cannot be written.
    """
    _check_out(out, force=force)
    with session() as open_session:
        row = _draw(open_session, dataset_name, size, seed, purpose, tolerance)
        _write(open_session, row, out)
        return row


def usual_purpose(dataset_name: str) -> str:
    """What a further draw is for unless somebody says: promises once an audit has ranked the labels."""
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        return RATE if audits.latest_finished(open_session, dataset.id) is None else PROMISES


def zones_in_words(row: Draw) -> str:
    """``, 140 of the 9,000 most suspicious labels and 60 of the rest``; empty for a uniform draw."""
    if not row.head:
        return ""
    head, rest = row.zones
    suspicious = plural(head["size"], "most suspicious label")
    return f", {head['drawn']} of the {suspicious} and {rest['drawn']} of the rest"


def record(
    draw_id: int,
    sample_id: int,
    decision: str,
    *,
    label: int | None = None,
    number: float | None = None,
    reviewer: str,
) -> None:
    """Record one blind verdict: ``label`` (with the class or number the person sees), ``exclude`` or ``unsure``.

    Raises:
        VerificationError: the sample is not in the draw, or the verdict is none of these.
        ReviewError: a value is of another type, such as a class 1.5.
    """
    fields = {
        "draw": draw_id,
        "sample": sample_id,
        "decision": decision,
        "label": label,
        "number": number,
        "reviewer": reviewer,
    }
    said = schema.read(schema.BlindVerdict, fields)
    with session() as open_session:
        _record(open_session, said)


def undo(draw_id: int, sample_id: int, *, reviewer: str) -> None:
    """Take back the reviewer's verdict; the sample waits to be judged again. Nothing happens where there is none.

    Raises:
        VerificationError: somebody else's later verdict counts.
    """
    with session() as open_session:
        row = draws.get(open_session, draw_id)
        datasets.lock(open_session, row.dataset_id)
        stands = _standing(open_session, row, sample_id)
        if stands is None:
            return
        if stands.reviewer != reviewer.strip():
            raise VerificationError(
                f"{stands.reviewer} judged sample {sample_id} after you; that verdict is not yours to undo."
            )
        key, taken_back = (draw_id, sample_id), Said(UNDO)
        _add_new(open_session, row.dataset_id, key, taken_back, reviewer.strip(), stands)


def pending(dataset_id: int) -> list[tuple[int, int]]:
    """(draw_id, sample_id) still to be judged, in drawing order."""
    with session() as open_session:
        done = reviews.verdicts(open_session, dataset_id)
        rows = draws.of_dataset(open_session, dataset_id)
    return [
        (row.id, sample)
        for row in rows
        for sample in row.sample_ids
        if row.id and (row.id, sample) not in done
    ]


def num_drawn(dataset_id: int) -> int:
    """Rows of all draws, judged or not."""
    with session() as open_session:
        return sum(len(row.sample_ids) for row in draws.of_dataset(open_session, dataset_id))


def num_judged(dataset_id: int) -> int:
    """Verdicts that count."""
    with session() as open_session:
        return len(reviews.verdicts(open_session, dataset_id))


def standing(dataset_id: int, *, trusted: NDArray[np.bool_] | None = None) -> Verified:
    """All verdicts that count (the latest of each sample, not undone), in drawing order.

    ``trusted``: (N,) bool, rows that the audit in question trained on as trusted or corrected. A sample that
    is not judged to its end, or that was enlarged by a further draw, may have been stopped or enlarged because
    of what it showed: it says so, and its intervals then hold at every size. Promises rest on one draw alone,
    of those judged to their end the one that resolves most: its size was fixed before anybody saw it, and what
    earlier draws showed cannot change how random it is. A sample that was passed over for a later one of its draw
    counts as unsure: whoever skips does so because of what the image shows. So does one whose verdict a later
    review contradicts.
    """
    with session() as open_session:
        done = reviews.verdicts(open_session, dataset_id)
        rows = draws.of_dataset(open_session, dataset_id)
        pool = in_question(open_session, dataset_id)
        given = datasets.given_labels(open_session, dataset_id)
        contradicted = _contradicted(open_session, dataset_id, done, given)
    seen: list[tuple[int, int, int, int]] = []  # draw, place in it, sample, true label
    complete: set[int] = set()
    for row in rows:
        labels = [
            UNSURE
            if (row.id, sample) in contradicted
            else _true_label(done.get((row.id, sample)), int(given[sample]))
            for sample in row.sample_ids
        ]
        last = max(
            (place for place, sample in enumerate(row.sample_ids) if (row.id, sample) in done), default=-1
        )
        seen += [(row.id, place, row.sample_ids[place], labels[place]) for place in range(last + 1)]
        if last + 1 == row.size:
            complete.add(row.id)
    ids = np.array([sample for _, _, sample, _ in seen], dtype=np.int64)
    draw_of_row = np.array([one for one, _, _, _ in seen], dtype=np.int64)
    num_drawn = sum(row.size for row in rows)
    backing = _Backing.of([row for row in rows if row.id in complete], rows, pool)
    return Verified(
        sample_ids=ids,
        true_labels=np.array([label for _, _, _, label in seen], dtype=np.int64),
        trusted=None if trusted is None else trusted[ids],
        calibrates=np.array([place % 2 == 0 for _, place, _, _ in seen], dtype=bool),
        is_watched=len(seen) < num_drawn or len(rows) > 1,
        pool=pool,
        treated=trusted,
        backing=(draw_of_row == backing.draw_id) & backing.pool[ids],
        num_draws=len(rows),
        num_waiting=num_drawn - len(seen),
        largest_draw=max((row.size for row in rows), default=0),
        stages=_stages(rows, draw_of_row, pool),
        backing_pool=backing.pool,
        backing_words=backing.words,
        strata=_strata(rows[0], pool) if len(rows) == 1 else None,
    )


@dataclass(frozen=True, eq=False)
class _Backing:
    """The draw that promises rest on, of those judged to their end, and what it can speak about."""

    draw_id: int | None
    pool: NDArray[np.bool_]
    """(N,) bool."""
    words: str = ""

    @classmethod
    def of(cls, complete: list[Draw], rows: list[Draw], pool: NDArray[np.bool_]) -> _Backing:
        """The one that resolves most, by sizes alone and so whatever it showed; the earliest of equals."""
        if not complete:
            return cls(None, pool)

        def labels_per_row(row: Draw) -> float:
            if not row.head:
                return float(pool.sum()) / (row.size + 1)
            return len(row.head) / (int(row.zones[0]["drawn"]) + 1)

        best = min(complete, key=labels_per_row)
        inside = np.zeros_like(pool)
        if best.head:
            inside[best.head] = True
            words = f"the {len(best.head):,} most suspicious labels of audit {best.audit_id}"
            return cls(best.id, inside, words)
        inside |= pool
        for row in rows:
            if row.id < best.id:
                inside[row.sample_ids] = False
        return cls(best.id, inside)


def _strata(row: Draw, pool: NDArray[np.bool_]) -> NDArray[np.int8] | None:
    """(N,) 0 = the ranking before a uniform draw thought the label wrong, 1 = not, -1 = outside the pool."""
    if not row.likely_wrong:
        return None
    strata = np.where(pool, 1, -1).astype(np.int8)
    wrong = np.array(row.likely_wrong, dtype=np.int64)
    strata[wrong[pool[wrong]]] = 0
    return strata


def _stages(rows: list[Draw], draw_of_row: NDArray[np.int64], pool: NDArray[np.bool_]) -> tuple[Stage, ...]:
    """One stage a draw, uniform ones after each other together; empty where all were uniform."""
    if not any(row.head for row in rows):
        return ()
    stages: list[Stage] = []
    left = pool.copy()
    was_uniform = False
    for row in rows:
        mine = draw_of_row == row.id
        if not row.head and was_uniform:
            stages[-1] = Stage(stages[-1].rows | mine, stages[-1].zones)
        else:
            zones = np.where(left, 2 if row.head else 0, -1).astype(np.int8)
            for place, sample in enumerate(row.head):
                if left[sample]:
                    zones[sample] = int(2 * place >= len(row.head))
            stages.append(Stage(mine, zones))
        left[row.sample_ids] = False
        was_uniform = not row.head
    return tuple(stages)


def _contradicted(
    open_session: Session,
    dataset_id: int,
    done: Mapping[tuple[int, int], Review],
    given: NDArray[np.int64],
) -> set[tuple[int, int]]:
    """Verdicts instead of which a later review says something else: two looks that differ settle nothing."""
    if not done:
        return set()
    ids = sorted({sample for _, sample in done})
    said = {
        sample: _true_label(one, int(given[sample]))
        for sample, one in reviews.outcomes(open_session, dataset_id, ids).items()
        if one.kind == SUSPECT and one.decision not in NOT_CLEAR
    }
    return {
        key
        for key, row in done.items()
        if key[1] in said and said[key[1]] != _true_label(row, int(given[key[1]]))
    }


def next_size(dataset_id: int) -> int:
    """How many rows the next draw should have: of a small set half at first, then twice the largest so far.

    The intervals of an enlarged sample hold at every size, which makes them wider: a few more rows would not help.
    """
    with session() as open_session:
        rows = draws.of_dataset(open_session, dataset_id)
    num_left = num_in_question(dataset_id) - sum(row.size for row in rows)
    if not rows:  # a set that is all verified has nothing left to promise
        return min(num_left, FIRST_SIZE, max(FEWEST, num_left // 2))
    return min(num_left, max([FIRST_SIZE, *(2 * row.size for row in rows)]))


def num_in_question(dataset_id: int) -> int:
    """How many labels can be drawn; counted once, for an import settles it."""
    with session() as open_session:
        version = str(datasets.by_id(open_session, dataset_id).created_at)
    return _num_in_question(settings(), dataset_id, version)


@functools.lru_cache(maxsize=64)
def _num_in_question(home: Settings, dataset_id: int, version: str) -> int:  # noqa: ARG001
    with session() as open_session:
        return datasets.num_in_question(open_session, dataset_id)


def tolerance_of(dataset_id: int) -> float | None:
    """The tolerance of the draws of a dataset of numbers; None before the first."""
    with session() as open_session:
        return next((row.tolerance for row in draws.of_dataset(open_session, dataset_id)), None)


def tolerance_sentence(dataset_id: int) -> str:
    """Which numbers are wrong, by the tolerance of the draws; empty for other labels and before the first draw."""
    tolerance = tolerance_of(dataset_id)
    if tolerance is None:
        return ""
    return f"Wrong is a number that is farther than {number_text(tolerance)} from the one that a person saw."


def next_command(dataset_name: str) -> str:
    """The command that draws as many rows as there are to draw; empty where every label was drawn."""
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        size = next_size(dataset.id)
    known = tolerance_of(dataset.id)
    named = "T" if known is None else number_text(known)
    tolerance = f" --tolerance {named}" if dataset.task == REGRESSION else ""
    return (
        f"auditor verify {shlex.quote(dataset_name)} --draw {size}{tolerance} --out sample.csv"
        if size
        else ""
    )


def calibrating_ids(dataset_id: int) -> NDArray[np.int64]:
    """Samples that calibrate promises: even places of every draw, judged or not."""
    with session() as open_session:
        rows = draws.of_dataset(open_session, dataset_id)
    return np.array([s for row in rows for s in row.sample_ids[::2]], dtype=np.int64)


def trusted_weight(dataset_id: int, trusted: NDArray[np.bool_]) -> NDArray[np.float32] | None:
    """(N,) how many labels each trusted sample stands for; None where no draw looked at a head more often.

    A row that chance drew stands for its share of its zone. One that somebody picked stands for itself alone.

    Args:
        dataset_id: of the draws.
        trusted: (N,) bool, the samples that are trained on as trusted.
    """
    verified = standing(dataset_id)
    if not verified.stages:
        return None
    weight = np.ones(len(trusted), dtype=np.float32)
    rows = verified.subset(trusted[verified.sample_ids])
    if rows.size:
        num_labels = sum(int((stage.zones >= 0).sum()) for stage in rows.stages[:1])
        weight[rows.sample_ids] = np.maximum(1.0, rows.weights * num_labels / rows.size)
    return weight


def write_csv(draw_id: int, out: Path, *, force: bool = False) -> None:
    """Write a draw to be judged outside the app: draw_id, sample_id, filepath, given_label, verdict_label.

    Raises:
        VerificationError: the file exists and ``force`` is not set, or it cannot be written.
    """
    _check_out(out, force=force)
    with session() as open_session:
        _write(open_session, draws.get(open_session, draw_id), out)


def write_again(dataset_name: str, draw_id: int, out: Path, *, force: bool = False) -> tuple[Draw, int]:
    """Write the file of an earlier draw once more; returns the draw and how many of its samples are judged.

    Verdicts are left out of the file: whoever fills it in stays blind to what others said, and applying an
    empty cell takes no verdict back.

    Raises:
        VerificationError: the dataset has no such draw (the text names those it has), or the file cannot be
            written.
    """
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        rows = {row.id: row for row in draws.of_dataset(open_session, dataset.id)}
        judged = sum(of_draw == draw_id for of_draw, _ in reviews.verdicts(open_session, dataset.id))
    if draw_id not in rows:
        there = ", ".join(
            f"{row.id} ({plural(row.size, 'sample')}, {row.created_at:%Y-%m-%d})" for row in rows.values()
        )
        raise VerificationError(
            f"{dataset_name} has no draw {draw_id}; "
            + (f"its draws: {there}." if there else "it has none yet, --draw N --out FILE makes one.")
        )
    write_csv(draw_id, out, force=force)
    return rows[draw_id], judged


def apply_csv(dataset_name: str, path: Path, *, reviewer: str) -> dict[str, int]:
    """Take a filled draw back: a class name (a number; of masks ``right`` or ``wrong``), ``exclude``, ``unsure`` or
    empty (not judged); all rows or none.

    ``filepath`` and ``given_label`` are compared where the file has them: a column that was sorted alone would
    put the verdicts on other images. A cell that only repeats what ``reviewer`` said before, where somebody
    else's later verdict counts, leaves that one alone: the file was applied again. Returns how many samples are
    judged as the file says, how many it does not judge, and how many were left to whom.

    Raises:
        VerificationError: a row is not of the draw, is not about its sample, names no class, or judges what
            another row judges too; the text names the file and the row.
    """
    table = read_table(path)
    missing = {"draw_id", "sample_id", "verdict_label"} - set(table.columns)
    if missing:
        raise VerificationError(f"{path} lacks the column {sorted(missing)[0]}; start from `--draw N --out`.")
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        rows = draws.of_dataset(open_session, dataset.id)
        ids = sorted({sample for row in rows for sample in row.sample_ids})
        samples = {sample.sample_id: sample for sample in datasets.samples(open_session, dataset.id, ids)}
    drawn = {row.id: set(row.sample_ids) for row in rows if row.id is not None}
    unknown: list[str] = []
    listed: set[tuple[int, int]] = set()
    drawn_rows = {row.id: row for row in rows}
    verdicts: dict[tuple[int, int], tuple[int, Said]] = {}
    for number, cells in enumerate(table.to_dict("records"), start=2):  # row 1 is the header
        where = f"{path}, row {number}"
        key = _drawn_key(cells, drawn, where)
        sample = samples[key[1]]
        _check_about(cells, sample, key[0], dataset, where)
        listed.add(key)
        said = str(cells["verdict_label"]).strip()
        verdict = _verdict(said, dataset, sample, drawn_rows[key[0]])
        if verdict is None:
            if said:
                names = list(MASK_VERDICTS) if dataset.task == SEGMENTATION else dataset.class_names
                unknown.append(f"row {number}: {said!r}{_nearest(said, names)}")
            continue
        if key in verdicts:  # refused even where both say the same: such a file was put together by mistake
            raise VerificationError(
                f"{path}, rows {verdicts[key][0]} and {number}: both judge sample {key[1]} of draw {key[0]}; "
                "delete one of them, or apply two people's verdicts as two files."
            )
        verdicts[key] = (number, verdict)
    if unknown:
        more = f"; and {len(unknown) - MOST_NAMED:,} more" if len(unknown) > MOST_NAMED else ""
        raise VerificationError(
            f"{path}: {'; '.join(unknown[:MOST_NAMED])}{more}: {_one_of(dataset)}, nor exclude or unsure. Nothing "
            "was taken; correct these cells and apply the file again."
        )
    left = _record_all(dataset.id, {key: one for key, (_, one) in verdicts.items()}, reviewer.strip())
    counts = {"judged": len(verdicts) - left.total(), "not judged": len(listed) - len(verdicts)}
    return counts | {f"left to {name}, who judged later": count for name, count in left.items()}


def _draw(
    open_session: Session, dataset_name: str, size: int, seed: int, purpose: str, tolerance: float | None
) -> Draw:
    if purpose not in PURPOSES:
        raise VerificationError(f"A draw for {purpose!r} is unknown; use one of {', '.join(PURPOSES)}.")
    if not 0 <= seed < 2**31:
        raise VerificationError(f"The seed is {seed}; use a whole number from 0 to {2**31 - 1}.")
    dataset = datasets.get(open_session, dataset_name)
    datasets.lock(open_session, dataset.id)  # a draw at the same moment would take the same samples
    earlier = draws.of_dataset(open_session, dataset.id)
    _check_tolerance(dataset, tolerance, earlier)
    drawn = np.array([sample for one in earlier for sample in one.sample_ids], dtype=np.int64)
    pool = np.setdiff1d(np.flatnonzero(in_question(open_session, dataset.id)), drawn)
    if size < 1 or size > len(pool):
        raise VerificationError(
            f"{plural(size, 'sample')} cannot be drawn; {plural(len(pool), 'labeled sample', 'are')} left that "
            "nobody drew before."
        )
    generator = np.random.default_rng([seed, len(earlier)])
    audit = audits.latest_finished(open_session, dataset.id)
    if purpose == RATE:
        chosen = generator.choice(pool, size=size, replace=False)
        row = NewDraw(
            dataset_id=dataset.id,
            seed=seed,
            size=size,
            sample_ids=[int(one) for one in chosen],
            audit_id=None if audit is None else audit.id,
            zones=[] if audit is None else [_everything(open_session, audit, pool, size)],
            tolerance=tolerance,
        )
        return draws.add(open_session, row)
    if audit is None:
        raise VerificationError(
            f"No audit has ranked the labels of {dataset_name}, so there is no head to draw from; "
            "draw for the rate, or audit first."
        )
    guessed = share_for_head(NoiseRate(**audit.summary["noise_rate"]))
    drawn_now = draw_zones(ranked(open_session, audit, pool), guessed, size, generator)
    zones: list[dict[str, Any]] = [
        {"name": name, "size": len(zone), "drawn": num, "probability": num / max(1, len(zone))}
        for name, zone, num in (
            ("head", drawn_now.head, drawn_now.num_from_head),
            ("rest", drawn_now.rest, size - drawn_now.num_from_head),
        )
    ]
    zones[0]["samples"] = drawn_now.head.tolist()
    row = NewDraw(
        dataset_id=dataset.id,
        seed=seed,
        size=size,
        sample_ids=drawn_now.sample_ids.tolist(),
        purpose=PROMISES,
        audit_id=audit.id,
        zones=zones,
        tolerance=tolerance,
    )
    return draws.add(open_session, row)


def _everything(open_session: Session, audit: Audit, pool: NDArray[np.int64], size: int) -> dict[str, Any]:
    """The zone of a uniform draw, with the samples that the ranking thinks wrong: as many as are guessed to be."""
    guessed = share_for_head(NoiseRate(**audit.summary["noise_rate"]))
    likely_wrong = ranked(open_session, audit, pool)[: round(guessed * len(pool))]
    return {
        "name": "everything",
        "size": len(pool),
        "drawn": size,
        "probability": size / len(pool),
        "likely_wrong": likely_wrong.tolist(),
    }


def _check_tolerance(dataset: Dataset, tolerance: float | None, earlier: list[Draw]) -> None:
    """A tolerance belongs to numbers, and all draws of a dataset have the same: they are counted together."""
    if dataset.task != REGRESSION:
        if tolerance is not None:
            kind = LABELS[dataset.task]
            raise VerificationError(f"The labels of {dataset.name} are {kind}; leave the tolerance out.")
        return
    if tolerance is None or not (math.isfinite(tolerance) and tolerance >= 0):
        raise VerificationError(
            "Numbers need a tolerance, 0 or more: a given number is wrong where it is farther than this from the "
            "one that you see.",
            field="tolerance",
        )
    before = next((row.tolerance for row in earlier if row.tolerance != tolerance), None)
    if before is not None:
        raise VerificationError(
            f"The earlier draws of {dataset.name} have the tolerance {number_text(before)}; name the same, so that "
            "they can be counted together."
        )


def ranked(open_session: Session, audit: Audit, pool: NDArray[np.integer]) -> NDArray[np.int64]:
    """What can be drawn, the most suspicious first; what the audit has no score for stands last."""
    table = scores.table(open_session, audit.id)
    rank = np.full(int(max(table.sample_id.max(), pool.max())) + 1, np.inf)
    rank[table.sample_id.to_numpy(dtype=np.int64)] = table["rank"].to_numpy(dtype=np.float64)
    return np.asarray(pool[np.argsort(rank[pool], kind="stable")], dtype=np.int64)


def _check_out(out: Path, *, force: bool) -> None:
    if out.suffix.lower() not in SEPARATORS:  # any other kind could be written, but not be applied
        raise VerificationError(f"{out}: the file's kind is unknown; use .csv or .tsv.")
    if not force and os.path.lexists(out):
        raise VerificationError(f"{out} exists; choose another name, or overwrite it.", field="force")


def _write(open_session: Session, row: Draw, out: Path) -> None:
    """The file is whole or absent; formulas are disarmed as in an export."""
    dataset = datasets.by_id(open_session, row.dataset_id)
    found = datasets.samples(open_session, row.dataset_id, row.sample_ids)
    try:
        with written_whole(out) as beside, beside.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=SEPARATORS[out.suffix.lower()])
            writer.writerow(COLUMNS)
            for sample in found:
                given = _given_text(dataset, sample)
                writer.writerow([row.id, sample.sample_id, quoted(sample.filepath), quoted(given), ""])
    except OSError as error:
        raise VerificationError(cannot_write(out, error)) from error


def _drawn_key(cells: Mapping[Any, Any], drawn: Mapping[int, set[int]], where: str) -> tuple[int, int]:
    """(draw_id, sample_id) of a row."""
    if not is_place(str(cells["draw_id"])) or not is_place(str(cells["sample_id"])):
        raise VerificationError(f"{where}: draw_id and sample_id must be the numbers that were written.")
    draw_id, sample_id = int(cells["draw_id"]), int(cells["sample_id"])
    if sample_id not in drawn.get(draw_id, set()):
        raise VerificationError(f"{where}: sample {sample_id} was not drawn in draw {draw_id}.")
    return draw_id, sample_id


def _check_about(
    cells: Mapping[Any, Any], sample: Sample, draw_id: int, dataset: Dataset, where: str
) -> None:
    """``Sample.filepath`` is relative to the root, so that a moved root changes nothing here."""
    for column, own in (("filepath", sample.filepath), ("given_label", _given_text(dataset, sample))):
        if column in cells and own not in _readings(str(cells[column]), dataset, column):
            raise VerificationError(
                f"{where}: {column} {cells[column]!r} is not that of sample {sample.sample_id}, which is {own!r}. "
                "Was a column sorted or moved alone? Sort whole rows, or get the file again with "
                f"--draw-id {draw_id} --out FILE."
            )


def _given_text(dataset: Dataset, sample: Sample) -> str:
    """The given label as a file of a draw writes it; of a mask its own file."""
    if dataset.task == SEGMENTATION:
        return sample.mask or ""
    return dataset.class_names[sample.given_label] if sample.number is None else number_text(sample.number)


def _readings(text: str, dataset: Dataset, column: str) -> Sequence[str]:
    """What a cell may say: a spreadsheet writes 3.0 or 3 for the same number."""
    if dataset.task == REGRESSION and column == "given_label":
        try:
            return [number_text(read_number(text))]
        except ValueError:
            return [text]
    return readings(text)


def _verdict(text: str, dataset: Dataset, sample: Sample, row: Draw) -> Said | None:
    """What a cell amounts to, or None where nobody judged or the text is no verdict."""
    if dataset.task == REGRESSION:
        try:
            return number_verdict(read_number(text), sample, row)
        except ValueError:
            return Said(text) if text in VERDICTS and text != LABEL else None
    if dataset.task == SEGMENTATION:
        return Said(MASK_VERDICTS[text]) if text in MASK_VERDICTS else None
    # A class that is really called "exclude" or "unsure" is a class.
    names = Names(dataset.class_names)
    for name in readings(text):
        number = names.number(name)
        if number is not None:
            return Said(*from_verdict(LABEL, number, sample.given_label))
    return Said(text) if text in VERDICTS and text != LABEL else None


def number_verdict(number: float, sample: Sample, row: Draw) -> Said:
    """Who sees ``number`` keeps a given one that is no farther away than the draw's tolerance, else corrects it."""
    assert sample.number is not None
    assert row.tolerance is not None
    # One part in 10^9 of slack: 0.3 is 0.1 away from 0.2 for everybody but a computer.
    slack = 1e-9 * max(abs(number), abs(sample.number), row.tolerance)
    is_near = abs(number - sample.number) <= row.tolerance + slack
    return Said(KEEP if is_near else RELABEL, None, number)


def _one_of(dataset: Dataset) -> str:
    said = {REGRESSION: "no number", SEGMENTATION: "neither right nor wrong"}
    return said.get(dataset.task, "none of the classes")


def _nearest(text: str, class_names: list[str]) -> str:
    """A question for the class that may have been meant; empty where none is near."""
    folded = {name.casefold(): name for name in class_names}
    near = difflib.get_close_matches(text.casefold(), folded, n=1)
    return f" (did you mean {folded[near[0]]!r}?)" if near else ""


def in_question(open_session: Session, dataset_id: int) -> NDArray[np.bool_]:
    """(N,) bool: what can be drawn. Labels that the source itself calls trusted are not in question."""
    labels = datasets.given_labels(open_session, dataset_id)
    return (labels >= 0) & ~datasets.trusted_in_source(open_session, dataset_id)


def _record(open_session: Session, blind: schema.BlindVerdict) -> None:
    draw_id, sample_id, decision = blind.draw, blind.sample, blind.decision
    row = draws.get(open_session, draw_id)
    dataset = datasets.by_id(open_session, row.dataset_id)
    if row.purpose == HEAD_ORDER:
        raise VerificationError(f"Draw {draw_id} is the order of a review and takes no blind verdicts.")
    if sample_id not in row.sample_ids:
        raise VerificationError(f"Sample {sample_id} is not part of draw {draw_id}; only drawn ones count.")
    offered = MASK_VERDICTS.values() if dataset.task == SEGMENTATION else VERDICTS
    if decision not in offered:
        raise VerificationError(f"{decision!r} is no verdict; use one of {', '.join(offered)}.")
    label, is_number = blind.label, dataset.task == REGRESSION
    if decision == LABEL and is_number and blind.number is None:
        raise VerificationError("A verdict on a number needs the number that you see.")
    names_class = decision == LABEL and dataset.task == CLASSIFICATION
    if names_class and (label is None or not 0 <= label < len(dataset.class_names)):
        raise VerificationError(f"Class {label} is outside 0..{len(dataset.class_names) - 1}.")
    if not blind.reviewer.strip():
        raise VerificationError("A verdict needs the reviewer's name.")
    datasets.lock(open_session, row.dataset_id)
    sample = datasets.sample(open_session, row.dataset_id, sample_id)
    if decision == LABEL and blind.number is not None and is_number:
        said = number_verdict(blind.number, sample, row)
    elif dataset.task == SEGMENTATION:
        said = Said(decision)
    else:
        said = Said(*from_verdict(decision, label, sample.given_label))
    stands = _standing(open_session, row, sample_id)
    _add_new(open_session, row.dataset_id, (draw_id, sample_id), said, blind.reviewer.strip(), stands)


def _standing(open_session: Session, row: Draw, sample_id: int) -> Review | None:
    """The verdict that counts on a sample of the draw, or None."""
    log = reviews.log(open_session, row.dataset_id, sample_id)
    return reviews.latest_verdicts(log).get((row.id, sample_id))


def _record_all(dataset_id: int, verdicts: Mapping[tuple[int, int], Said], reviewer: str) -> Counter[str]:
    """Record checked verdicts by (draw_id, sample_id); returns how many were left to whom."""
    if verdicts and not reviewer:
        raise VerificationError("A verdict needs the reviewer's name.")
    left: Counter[str] = Counter()
    with session() as open_session:
        datasets.lock(open_session, dataset_id)  # a verdict given meanwhile would be overruled unseen
        # Once: reading it for every row takes minutes.
        log = reviews.log(open_session, dataset_id, kinds=[BLIND])
        standing_now = reviews.latest_verdicts(log)
        own = {
            (row.draw_id, row.sample_id, row.decision, row.label, row.number)
            for row in log
            if row.reviewer == reviewer
        }
        for key, said in verdicts.items():
            stands = standing_now.get(key)
            if stands is not None and stands.reviewer != reviewer and (*key, *said) in own:
                left[stands.reviewer] += 1
            else:
                _add_new(open_session, dataset_id, key, said, reviewer, stands)
    return left


def _add_new(
    open_session: Session,
    dataset_id: int,
    key: tuple[int, int],
    said: Said,
    reviewer: str,
    stands: Review | None,
) -> None:
    """Append a verdict; one that is resent is no second one."""
    if stands is None or (stands.decision, stands.label, stands.number, stands.reviewer) != (*said, reviewer):
        draw_id, sample_id = key
        verdict = NewReview(
            dataset_id=dataset_id,
            draw_id=draw_id,
            sample_id=sample_id,
            kind=BLIND,
            decision=said.decision,
            label=said.label,
            number=said.number,
            reviewer=reviewer,
            source="verify",
            reverts=stands.id if stands is not None and said.decision == UNDO else None,
        )
        reviews.append(open_session, verdict)


def _true_label(row: Review | None, given_label: int) -> int:
    """The class that the person saw, ``NO_CLASS`` where none fits, or ``UNSURE``."""
    if row is None or row.decision in NOT_CLEAR:
        return UNSURE
    if row.decision == KEEP:
        return given_label
    return NO_CLASS if row.label is None else row.label
