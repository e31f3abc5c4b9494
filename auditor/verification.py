"""The verified sample: rows drawn at random, judged by a person who does not see the suggestion.

It alone lets anybody say how many labels are wrong, so it is kept apart from reviews of suspects, which are
not random. Rows at even places of a draw calibrate, rows at odd places may be trusted by the next audit; the
draw fixes which is which before anybody looks.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlmodel import Session

from auditor.catalog import datasets, verifications
from auditor.catalog.db import session
from auditor.catalog.models import DatasetTable, DrawTable, VerdictTable
from auditor.errors import VerificationError
from auditor.evidence import NO_CLASS, UNSURE, Verified
from auditor.tables import read_table

VERDICTS = ("label", "exclude", "unsure")


def draw(dataset_name: str, size: int, *, seed: int = 0) -> DrawTable:
    """Draw ``size`` labeled samples that no earlier draw holds, uniformly at random.

    Because earlier draws were uniform too, all draws together are again a uniform sample.

    Raises:
        VerificationError: fewer labeled samples are left than asked for.
    """
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        assert dataset.id is not None
        earlier = verifications.draws(open_session, dataset.id)
        drawn = np.array([sample for one in earlier for sample in one.sample_ids], dtype=np.int64)
        pool = np.setdiff1d(np.flatnonzero(_pool(open_session, dataset.id)), drawn)
        if size < 1 or size > len(pool):
            raise VerificationError(
                f"{size} samples cannot be drawn; {len(pool)} labeled samples are left that were never drawn."
            )
        chosen = np.random.default_rng([seed, len(earlier)]).choice(pool, size=size, replace=False)
        row = DrawTable(
            dataset_id=dataset.id, seed=seed, size=size, sample_ids=[int(sample) for sample in chosen]
        )
        verifications.add_draw(open_session, row)
        return row


def record(draw_id: int, sample_id: int, decision: str, *, label: int | None = None, reviewer: str) -> None:
    """Record one blind verdict: ``label`` (with the class the person sees), ``exclude`` or ``unsure``.

    Raises:
        VerificationError: the sample is not in the draw, or the verdict is none of these.
    """
    with session() as open_session:
        _record(open_session, draw_id, sample_id, decision, label, reviewer.strip())


def undo(draw_id: int, sample_id: int, *, reviewer: str) -> None:
    """Take a verdict back; the sample waits to be judged again."""
    with session() as open_session:
        row = verifications.get_draw(open_session, draw_id)
        verifications.add_verdict(
            open_session,
            VerdictTable(
                dataset_id=row.dataset_id,
                draw_id=draw_id,
                sample_id=sample_id,
                label=None,
                decision="undo",
                reviewer=reviewer.strip(),
            ),
        )


def pending(dataset_id: int) -> list[tuple[int, int]]:
    """(draw_id, sample_id) still to be judged, in drawing order."""
    with session() as open_session:
        done = verifications.verdicts(open_session, dataset_id)
        rows = verifications.draws(open_session, dataset_id)
    return [
        (row.id, sample)
        for row in rows
        for sample in row.sample_ids
        if row.id and (row.id, sample) not in done
    ]


def standing(dataset_id: int, *, trusted: NDArray[np.bool_] | None = None) -> Verified:
    """All verdicts that stand, in drawing order.

    ``trusted``: (N,) bool, rows that the audit in question trained on as trusted or corrected. A sample that
    is not judged to its end, or that was enlarged by a further draw, may have been stopped or enlarged because
    of what it showed: it says so, and its intervals then hold at every size.
    """
    with session() as open_session:
        done = verifications.verdicts(open_session, dataset_id)
        rows = verifications.draws(open_session, dataset_id)
        pool = _pool(open_session, dataset_id)
    places = [(place, row.id, sample) for row in rows for place, sample in enumerate(row.sample_ids)]
    judged = [
        (place, done[draw_id, sample])
        for place, draw_id, sample in places
        if draw_id and (draw_id, sample) in done
    ]
    ids = np.array([row.sample_id for _, row in judged], dtype=np.int64)
    return Verified(
        sample_ids=ids,
        true_labels=np.array([_true_label(row) for _, row in judged], dtype=np.int64),
        trusted=None if trusted is None else trusted[ids],
        calibrates=np.array([place % 2 == 0 for place, _ in judged], dtype=bool),
        is_watched=len(judged) < len(places) or len(rows) > 1,
        pool=pool,
    )


def calibrating_ids(dataset_id: int) -> NDArray[np.int64]:
    """Samples that calibrate promises: even places of every draw, judged or not."""
    with session() as open_session:
        rows = verifications.draws(open_session, dataset_id)
    return np.array([s for row in rows for s in row.sample_ids[::2]], dtype=np.int64)


def trusted_verdicts(dataset_id: int) -> dict[int, tuple[str, int | None]]:
    """(decision, label) by sample_id for the judged rows at odd places, which the next audit may trust."""
    with session() as open_session:
        done = verifications.verdicts(open_session, dataset_id)
        rows = verifications.draws(open_session, dataset_id)
    odd = {(row.id, sample) for row in rows for sample in row.sample_ids[1::2]}
    return {key[1]: (row.decision, row.label) for key, row in done.items() if key in odd}


def write_csv(draw_id: int, out: Path, *, force: bool = False) -> None:
    """Write a draw to be judged outside the app: draw_id, sample_id, filepath, given_label, verdict_label.

    Raises:
        VerificationError: the file exists and ``force`` is not set.
    """
    if out.exists() and not force:
        raise VerificationError(f"{out} exists; choose another name or pass --force.")
    with session() as open_session:
        row = verifications.get_draw(open_session, draw_id)
        dataset = open_session.get(DatasetTable, row.dataset_id)
        assert dataset is not None
        found = datasets.samples(open_session, row.dataset_id, row.sample_ids)
    beside = out.with_name(out.name + ".writing")
    with beside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["draw_id", "sample_id", "filepath", "given_label", "verdict_label"])
        for sample in found:
            given = dataset.class_names[sample.given_label]
            writer.writerow([draw_id, sample.sample_id, sample.filepath, given, ""])
    beside.replace(out)


def apply_csv(dataset_name: str, path: Path, *, reviewer: str) -> dict[str, int]:
    """Take a filled draw back: a class name, ``exclude``, ``unsure`` or empty (not judged); all rows or none.

    Raises:
        VerificationError: a row is not of the draw or names no class; the text names the file and the row.
    """
    table = read_table(path)
    missing = {"draw_id", "sample_id", "verdict_label"} - set(table.columns)
    if missing:
        raise VerificationError(f"{path} lacks the column {sorted(missing)[0]}; start from `--draw N --out`.")
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        assert dataset.id is not None
        drawn = {row.id: set(row.sample_ids) for row in verifications.draws(open_session, dataset.id)}
    classes = {name: index for index, name in enumerate(dataset.class_names)}
    verdicts: list[tuple[int, int, str, int | None]] = []
    for number, row in enumerate(table.to_dict("records"), start=2):
        text = str(row["verdict_label"]).strip()
        where = f"{path}, row {number}"
        if not str(row["draw_id"]).isdigit() or not str(row["sample_id"]).isdigit():
            raise VerificationError(f"{where}: draw_id and sample_id must be the numbers that were written.")
        draw_id, sample_id = int(row["draw_id"]), int(row["sample_id"])
        if sample_id not in drawn.get(draw_id, set()):
            raise VerificationError(f"{where}: sample {sample_id} was not drawn in draw {draw_id}.")
        if not text:
            continue
        # A class that is really called "exclude" or "unsure" is a class.
        if text in classes:
            verdicts.append((draw_id, sample_id, "label", classes[text]))
        elif text in ("exclude", "unsure"):
            verdicts.append((draw_id, sample_id, text, None))
        else:
            raise VerificationError(f"{where}: {text!r} is none of the classes, nor exclude or unsure.")
    with session() as open_session:
        for draw_id, sample_id, decision, label in verdicts:
            _record(open_session, draw_id, sample_id, decision, label, reviewer.strip())
    return {"judged": len(verdicts), "not judged": len(table) - len(verdicts)}


def _pool(open_session: Session, dataset_id: int) -> NDArray[np.bool_]:
    """(N,) bool: what can be drawn. Labels that the source itself calls trusted are not in question."""
    labels = datasets.given_labels(open_session, dataset_id)
    return (labels >= 0) & ~datasets.trusted_in_source(open_session, dataset_id)


def _record(
    open_session: Session, draw_id: int, sample_id: int, decision: str, label: int | None, reviewer: str
) -> None:
    row = verifications.get_draw(open_session, draw_id)
    dataset = open_session.get(DatasetTable, row.dataset_id)
    assert dataset is not None
    if sample_id not in row.sample_ids:
        raise VerificationError(f"Sample {sample_id} is not part of draw {draw_id}; only drawn ones count.")
    if decision not in VERDICTS:
        raise VerificationError(f"{decision!r} is no verdict; use one of {', '.join(VERDICTS)}.")
    if decision == "label" and (label is None or not 0 <= label < len(dataset.class_names)):
        raise VerificationError(f"Class {label} is outside 0..{len(dataset.class_names) - 1}.")
    if not reviewer:
        raise VerificationError("A verdict needs the reviewer's name.")
    label = label if decision == "label" else None
    stands = verifications.verdicts(open_session, row.dataset_id).get((draw_id, sample_id))
    if stands is not None and (stands.decision, stands.label, stands.reviewer) == (decision, label, reviewer):
        return  # a resent verdict is no second one
    verdict = VerdictTable(
        dataset_id=row.dataset_id,
        draw_id=draw_id,
        sample_id=sample_id,
        label=label,
        decision=decision,
        reviewer=reviewer,
    )
    verifications.add_verdict(open_session, verdict)


def _true_label(row: VerdictTable) -> int:
    if row.decision == "unsure":
        return UNSURE
    return NO_CLASS if row.label is None else row.label
