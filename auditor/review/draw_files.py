"""A draw as a file: written to be judged outside the app, and taken back with its verdicts."""

from __future__ import annotations

import csv
import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlmodel import Session

from auditor import kind as kinds
from auditor.catalog import datasets, draws, reviews
from auditor.catalog.db import session
from auditor.catalog.records import Dataset, Draw, Sample
from auditor.ground.errors import VerificationError, cannot_write
from auditor.ground.files import is_part_of, written_whole
from auditor.ground.names import normal
from auditor.ground.tables import SEPARATORS, is_place, quoted, read_table, readings
from auditor.ground.vocabulary import RATE
from auditor.ground.wording import plural
from auditor.kind import Kind, Said
from auditor.review import blind, drawing

MOST_NAMED = 20
"""Rows of a file that one message names."""
COLUMNS = ("draw_id", "sample_id", "filepath", "given_label", "verdict_label")
"""Of a draw's file; ``filepath`` and ``given_label`` may be left out of one that comes back."""


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
        row = drawing.draw_in(open_session, dataset_name, size, seed, purpose, tolerance)
        _write(open_session, row, out)
        return row


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
    judged as the file says, how many it does not judge, how many were left to whom, and how many ask for another
    look because the reviewer or somebody else said something else before.

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
    kind, unknown = kinds.of(dataset), list[str]()
    listed: set[tuple[int, int]] = set()
    drawn_rows = {row.id: row for row in rows}
    verdicts: dict[tuple[int, int], tuple[int, Said]] = {}
    for number, cells in enumerate(table.to_dict("records"), start=2):  # row 1 is the header
        where = f"{path}, row {number}"
        key = _drawn_key(cells, drawn, where)
        sample = samples[key[1]]
        _check_about(cells, sample, key[0], dataset, kind, where)
        listed.add(key)
        said = str(cells["verdict_label"]).strip()
        verdict = kind.verdict(said, dataset)
        if verdict is None:
            if said:
                unknown.append(f"row {number}: {said!r}{_nearest(said, kind.verdict_names(dataset))}")
            continue
        if key in verdicts:  # refused even where both say the same: such a file was put together by mistake
            raise VerificationError(
                f"{path}, rows {verdicts[key][0]} and {number}: both judge sample {key[1]} of draw {key[0]}; "
                "delete one of them, or apply two people's verdicts as two files."
            )
        verdicts[key] = (number, kind.judged(verdict, dataset, sample, drawn_rows[key[0]]))
    if unknown:
        more = f"; and {len(unknown) - MOST_NAMED:,} more" if len(unknown) > MOST_NAMED else ""
        raise VerificationError(
            f"{path}: {'; '.join(unknown[:MOST_NAMED])}{more}: {kind.no_verdict}, nor exclude or unsure. Nothing "
            "was taken; correct these cells and apply the file again."
        )
    told = blind.record_all(dataset.id, {key: one for key, (_, one) in verdicts.items()}, reviewer.strip())
    num_left = sum(count for what, count in told.items() if what not in (blind.OWN, blind.OTHERS))
    counts = {"judged": len(verdicts) - num_left, "not judged": len(listed) - len(verdicts)}
    return counts | dict(told)


def _check_out(out: Path, *, force: bool) -> None:
    if out.suffix.lower() not in SEPARATORS:  # any other kind could be written, but not be applied
        raise VerificationError(f"{out}: the file's kind is unknown; use .csv or .tsv.")
    if not force and os.path.lexists(out):
        raise VerificationError(f"{out} exists; choose another name, or overwrite it.", field="force")


def _write(open_session: Session, row: Draw, out: Path) -> None:
    """The file is whole or absent; formulas are disarmed as in an export."""
    dataset = datasets.by_id(open_session, row.dataset_id)
    if is_part_of(out, dataset.source):
        raise VerificationError(
            f"{out} belongs to what {dataset.name} was imported from; choose another name."
        )
    found = datasets.samples(open_session, row.dataset_id, row.sample_ids)
    try:
        with written_whole(out) as beside, beside.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=SEPARATORS[out.suffix.lower()])
            writer.writerow(COLUMNS)
            for sample in found:
                given = kinds.of(dataset).given_text(dataset, sample)
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
    cells: Mapping[Any, Any], sample: Sample, draw_id: int, dataset: Dataset, kind: Kind, where: str
) -> None:
    """``Sample.filepath`` is relative to the root, so that a moved root changes nothing here."""
    given = ("given_label", kind.given_text(dataset, sample), kind.readings)
    for column, own, read in (("filepath", sample.filepath, readings), given):
        if column in cells and normal(own) not in map(normal, read(str(cells[column]))):
            raise VerificationError(
                f"{where}: {column} {cells[column]!r} is not that of sample {sample.sample_id}, which is {own!r}. "
                "Was a column sorted or moved alone? Sort whole rows, or get the file again with "
                f"--draw-id {draw_id} --out FILE."
            )


def _nearest(text: str, class_names: Sequence[str]) -> str:
    """A question for the class that may have been meant; empty where none is near."""
    folded = {name.casefold(): name for name in class_names}
    near = difflib.get_close_matches(text.casefold(), folded, n=1)
    return f" (did you mean {folded[near[0]]!r}?)" if near else ""
