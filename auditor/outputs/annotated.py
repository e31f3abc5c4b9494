"""A table with several answers a picture: its consensus, what is said of each annotator, and whom to ask next."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditor.catalog import reading
from auditor.ground.errors import ExportRefusedError
from auditor.ground.files import is_part_of, written_whole
from auditor.ground.tables import read_table
from auditor.pictures import cache
from auditor.pictures.sources import ordered_class_names
from auditor.statistics.annotators import Answers, consensus, described, gains_of_one_more, whom_to_ask

CONSENSUS, PROBABILITY, GAIN, WHOM = "consensus", "consensus_probability", "gain_of_one_more", "ask"
ADDED = (CONSENSUS, PROBABILITY, GAIN, WHOM)
MOST_ASKED = 1_000
"""Pictures for which the annotator to ask is chosen; the others get the gain alone."""


@dataclass(frozen=True, eq=False)
class Annotated:
    """What is known of a table with several answers a picture."""

    source: Path
    """The file that the answers were read from."""
    table: pd.DataFrame
    """One row a picture: its own columns, a column an annotator, and ``ADDED``."""
    summary: dict[str, Any]
    """pictures, answers, alpha, classes, annotators, dependent and ask_first, as plain values."""


def read_annotated(
    path: str | os.PathLike[str],
    *,
    annotators: Sequence[str] = (),
    annotator_column: str | None = None,
    label_column: str | None = None,
    path_column: str | None = None,
    top: int = 20,
) -> Annotated:
    """Read a table and find the consensus of its answers.

    Args:
        path: a CSV, TSV or Parquet file.
        annotators: columns with one annotator's answers each; an empty cell is no answer.
        annotator_column: of a table with one row an answer: the column with the annotator's name.
        label_column: there, the column with the answer.
        path_column: there, the column with the picture.
        top: pictures in ``summary["ask_first"]``.

    Raises:
        AuditorError: unreadable, a column is missing or its name is taken, or no answers; one line with the remedy.
    """
    name = Path(path).name
    read = read_table(Path(path))
    if annotator_column is not None:
        needed = [annotator_column, label_column, path_column]
        if annotators or None in needed:
            raise ExportRefusedError(
                f"{name} has one row an answer: name its columns of annotators, labels and pictures, and no other."
            )
        read, annotators = _one_row_a_picture(read, name, [str(one) for one in needed])
    _check_columns(read, name, annotators)
    told = read[list(annotators)].map(str.strip)
    classes = ordered_class_names({cell for cell in np.unique(told.to_numpy(dtype=str)) if cell})
    place = {one: number for number, one in enumerate(classes)} | {"": -1}
    answers = Answers.of_table(told.map(place.__getitem__).to_numpy(dtype=np.int64), len(classes))
    found = consensus(answers)
    gains = gains_of_one_more(found)
    order = np.argsort(-gains, kind="stable")
    whom = np.full(len(read), "", dtype=object)
    for row in order[: max(top, MOST_ASKED)]:
        asked = whom_to_ask(found, answers, int(row))
        whom[row] = "" if asked is None else annotators[asked[0]]
    table = read.copy()
    table[CONSENSUS] = [classes[one] if one >= 0 else "" for one in found.labels]
    table[PROBABILITY] = found.probability().astype(np.float64).round(4)
    table[GAIN] = gains.round(4)
    table[WHOM] = whom
    shown = next((at for at, one in enumerate(read.columns) if one not in annotators), 0)
    summary = described(found, answers, annotators, classes, top)
    for one in summary["ask_first"]:
        one["picture"] = table.iloc[one["row"], shown]
    return Annotated(Path(path), table, summary)


def answers_of_dataset(name: str, audit_id: int | None = None, top: int = 20) -> dict[str, Any]:
    """``Annotated.summary`` of a dataset's answers, with what its newest audit says of the pictures.

    Raises:
        NotFoundError: there is no such dataset or audit.
        ExportRefusedError: each of its pictures has one label.
    """
    dataset, audit = reading.newest_audited(name, audit_id)
    answers = cache.answers(dataset)
    if answers is None:
        raise ExportRefusedError(
            f"{name} has one label a picture; import the columns of its annotators (auditor import --annotators)."
        )
    stored = None if audit is None else audit.summary.annotators
    if stored is None:
        stored = described(consensus(answers), answers, dataset.annotators or [], dataset.class_names)
    first = stored["ask_first"][:top]
    samples = reading.samples_by_id(dataset.id, [one["row"] for one in first])
    return stored | {"ask_first": [one | {"picture": samples[one["row"]].filepath} for one in first]}


def write_annotated(found: Annotated, out: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write the table as CSV; import it with the column ``consensus`` as its labels.

    Raises:
        ExportRefusedError: the file is there and ``force`` is not given, or it is the table of answers itself.
    """
    place = Path(out)
    if is_part_of(place, str(found.source)):
        raise ExportRefusedError(f"{place} holds the answers themselves; choose another name.")
    if place.exists() and not force:
        raise ExportRefusedError(f"{place} exists already; give another name, or overwrite it (--force).")
    with written_whole(place) as beside:
        found.table.to_csv(beside, index=False)


def _one_row_a_picture(read: pd.DataFrame, name: str, needed: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """The table with a column an annotator; of several answers of one about a picture, the last."""
    _check_columns(read, name, needed)
    who, label, picture = needed
    answered = read[(read[who] != "") & (read[picture] != "")]
    wide = answered.pivot_table(index=picture, columns=who, values=label, aggfunc="last", sort=False)
    wide = wide.fillna("").reset_index()
    return wide.rename_axis(columns=None), [str(one) for one in wide.columns[1:]]


def _check_columns(read: pd.DataFrame, name: str, wanted: Sequence[str]) -> None:
    missing = [one for one in wanted if one not in read.columns]
    if missing or not wanted:
        what = f"has no column {missing[0]!r}" if missing else "needs the names of its annotators' columns"
        raise ExportRefusedError(f"{name} {what}. Its columns are: {', '.join(read.columns)}.")
    taken = [one for one in ADDED if one in read.columns]
    if taken:
        raise ExportRefusedError(
            f"{name} has a column {taken[0]!r} already; rename it, for the result is called so."
        )
