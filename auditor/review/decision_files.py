"""Decisions from files: a CSV, TSV or Parquet with the columns of an export goes back into the log.

All rows of a file are taken or none; applying a file twice changes nothing, and a decision that is older
than the latest one is not taken. An export says when each decision was taken and not that it was
edited since: a row that has the time of the latest decision, but decides something else, is a new decision.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from auditor import kind as kinds
from auditor.catalog import datasets, reviews
from auditor.catalog.db import session
from auditor.catalog.records import Dataset, Review
from auditor.ground import vocabulary
from auditor.ground.errors import ReviewError
from auditor.ground.names import Names
from auditor.ground.paths import Paths
from auditor.ground.tables import is_place, read_table, unquoted
from auditor.ground.vocabulary import DISPUTED, MULTIPLE
from auditor.review import decisions


def apply_file(dataset_name: str, path: Path, *, reviewer: str = "", source: str = "csv") -> dict[str, int]:
    """Take decisions from a CSV, TSV or Parquet with the columns of an export; all rows or none.

    Needs ``review_decision`` and ``sample_id`` or ``filepath``; ``relabel`` takes its class or number from
    ``cleaned_label``. ``reviewer`` and ``reviewed_at`` of a row are used where they are filled in, except where an
    exported row was edited: that decision is taken now, by ``reviewer`` unless the row names somebody new.
    Returns how many rows of each decision were applied, and ``unchanged``. Applying a file twice changes
    nothing.

    Raises:
        ReviewError: a column is missing or a row is wrong; the text names the file and the row.
    """
    table = read_table(path)
    if "review_decision" not in table.columns or not {"sample_id", "filepath"} & set(table.columns):
        raise ReviewError(
            f"{path} needs the columns review_decision and sample_id or filepath, it has "
            f"{', '.join(table.columns[:8])}; start from a file that `auditor export` wrote."
        )
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        by_path = datasets.sample_ids_by_path(open_session, dataset.id)
        several = {
            sample_id
            for sample_id, row in reviews.decisions(open_session, dataset.id).items()
            if row.decision == MULTIPLE
        }
        parsed = _parsed_rows(table, dataset, by_path, several, path, reviewer)
        rows = _without_untouched(parsed, decisions.outcomes(dataset.id), reviewer)
        counts = decisions.apply_rows(open_session, dataset.id, rows, source=source)
        return counts | {"unchanged": counts["unchanged"] + len(parsed) - len(rows)}


def _without_untouched(
    rows: Sequence[dict[str, Any]], stands: Mapping[int, Review], reviewer: str
) -> list[dict[str, Any]]:
    """The rows that say something new: exported rows that were left as they were are dropped, those that were
    edited in place are decisions of now.

    An export also holds blind verdicts, which are no reviews and must not become reviews by coming back.
    """
    said = []
    for row in rows:
        before = stands.get(row["sample_id"])
        if before is None or before.created_at != row.get("created_at"):
            said.append(row)
        elif not decisions.says_same(before, row):
            # The time and, unless it was edited too, the name in the row are those of the decision before.
            by = reviewer if reviewer and row["reviewer"] == before.reviewer else row["reviewer"]
            # Taken now, and whoever edits a row has looked.
            kept = {name: value for name, value in row.items() if name != "created_at"}
            said.append(kept | {"reviewer": by})
    return said


def _parsed_rows(
    table: pd.DataFrame,
    dataset: Dataset,
    by_path: dict[str, int],
    stand_at_several: Collection[int],
    path: Path,
    reviewer: str,
) -> list[dict[str, Any]]:
    kind = kinds.of(dataset)
    classes, given = Names(dataset.class_names), kind.values(dataset)
    paths = Paths(by_path)
    rows: list[dict[str, Any]] = []
    said: dict[tuple[int, datetime | None], tuple[int, tuple[Any, ...]]] = {}
    for number, row in enumerate(table.to_dict("records"), start=2):  # row 1 is the header
        decision = str(row.get("review_decision") or "").strip()
        if decision in ("", DISPUTED):  # nobody decided, or the export found people in dispute
            continue
        where = f"{path}, row {number}"
        if decision not in vocabulary.DECISIONS:
            raise ReviewError(
                f"{where}: {decision!r} is no decision; use one of {', '.join(vocabulary.DECISIONS)}."
            )
        sample_id = _sample_of(row, by_path, paths, dataset.num_samples, where)
        named = kind.named(row, decision, classes, float(given[sample_id]), where)
        # Naming no class at all repeats the decision that is there already.
        is_repeated = not named["labels"] and sample_id in stand_at_several
        if decision == MULTIPLE and len(set(named["labels"] or ())) < 2 and not is_repeated:
            raise ReviewError(
                f"{where}: multiple on sample {sample_id} needs at least two different classes in review_labels, "
                "as a|b."
            )
        at = _time_of(row, where)
        by = unquoted(str(row.get("reviewer") or "")) or reviewer
        if "\0" in by:
            raise ReviewError(f"{where}: the reviewer holds the character NUL; correct it.")
        this = (decision, named["label"], named["number"], tuple(sorted(named["labels"] or ())))
        before, other = said.setdefault((sample_id, at), (number, this))
        if other != this:
            raise ReviewError(
                f"{path}, rows {before} and {number}: they decide differently on sample {sample_id}, and no "
                "reviewed_at says which is the later one; delete one."
            )
        rows.append(
            {
                "sample_id": sample_id,
                "decision": decision,
                **named,
                "reviewer": by,
            }
            | ({"created_at": at} if at else {})
        )
    return rows


def _sample_of(
    row: Mapping[Any, Any], by_path: Mapping[str, int], paths: Paths, num_samples: int, where: str
) -> int:
    filepath = unquoted(str(row.get("filepath") or ""))
    text = str(row.get("sample_id") or "")
    named = paths.find(filepath) if filepath else None
    if named is not None:
        sample = by_path[named]
        if text and (not is_place(text) or int(text) != sample):
            raise ReviewError(
                f"{where}: {filepath!r} is sample {sample}, and sample_id says {text!r}; correct one of "
                "them, or leave the column out."
            )
        return sample
    if filepath:
        raise ReviewError(f"{where}: {filepath!r} is not in the dataset; was the file made for another one?")
    if not is_place(text) or int(text) >= num_samples:
        raise ReviewError(f"{where}: sample_id {text!r} is not in the dataset (0..{num_samples - 1}).")
    return int(text)


def _time_of(row: Mapping[Any, Any], where: str) -> datetime | None:
    text = str(row.get("reviewed_at") or "").strip()
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
        at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ReviewError(f"{where}: reviewed_at {text!r} is no ISO 8601 time.") from error
    return at
