"""A user's own features: from an array, a table or the dataset's own columns, matched to its samples.

Rows of a table are matched by ``sample_id`` or by path, as own predictions are. Unlike predictions, features are
needed for every sample, equally many for each, all finite.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.backbones import features
from auditor.backbones.features import FeatureSource
from auditor.catalog import datasets, reading
from auditor.catalog.db import ask, session
from auditor.catalog.records import Dataset
from auditor.ground.errors import ImportRefusedError
from auditor.ground.wording import did_you_mean, plural
from auditor.statistics import read_predictions, rows_of_table

COLUMNS = "column:"
"""``column:NAME`` names columns of the dataset itself instead of a file."""
MOST_LISTED = 10
COLUMN_OPTION = "name it as the column of features"


def add(
    dataset_name: str,
    source: str | Path | NDArray[np.floating],
    *,
    column: str | None = None,
    name: str | None = None,
) -> FeatureSource:
    """Keep a user's own features of a dataset.

    Args:
        dataset_name: which dataset.
        source: an (N, D) or (N, V, D) array in the dataset's order, or an ``.npy`` of one; a ``.csv``, ``.tsv`` or
            ``.parquet`` with ``sample_id`` or paths; or ``column:NAME``, columns imported with the dataset.
        column: of a table: a column with lists, or what the names of several columns begin with (``emb_`` for
            ``emb_0``, ``emb_1``, ...). Not needed where one column alone holds lists.
        name: what an array is called.

    Raises:
        NotFoundError: no such dataset.
        ImportRefusedError: a file that cannot be read, or rows that do not fit; names the row and the remedy.
    """
    dataset = reading.dataset(dataset_name)
    if isinstance(source, np.ndarray):
        return features.add_own(dataset.id, dataset.num_samples, source, name=name or "array")
    if str(source).startswith(COLUMNS):
        wanted = column or str(source).removeprefix(COLUMNS)
        values = _of_columns(dataset, wanted)
        return features.add_own(dataset.id, dataset.num_samples, values, name=name or wanted)
    path = Path(source)
    if path.suffix.lower() == ".npy":
        if column is not None:
            raise ImportRefusedError(f"{path} is an array and has no columns; leave the column's name out.")
        return features.add_own(dataset.id, dataset.num_samples, path, name=name or path.stem)
    values = _of_table(dataset, path, column)
    return features.add_own(dataset.id, dataset.num_samples, values, name=name or path.stem)


def in_order(
    values: NDArray[np.float32],
    target: Sequence[int] | NDArray[np.int64],
    filepaths: Sequence[str],
    called: str,
) -> NDArray[np.float32]:
    """(M, D) rows put in the order of N samples, whose numbers are ``target`` (M,), each at most once.

    Raises:
        ImportRefusedError: a sample has no row.
    """
    found = np.full((len(filepaths), values.shape[1]), np.nan, dtype=np.float32)
    found[np.asarray(target)] = values
    missing = np.setdiff1d(np.arange(len(filepaths)), target)
    if len(missing):
        first = int(missing[0])
        raise ImportRefusedError(
            f"{called} has no row for sample {first} ({filepaths[first]}; {plural(len(missing), 'such sample')}); "
            "features are needed for every sample: add the rows that are missing."
        )
    return found


def stacked(cells: Sequence[Any], called: str, places: Sequence[str] | None = None) -> NDArray[np.float32]:
    """(M, D) from M cells, each a list of D numbers or the text of one, such as ``[0.1, 0.2]``.

    ``places`` say what the rows are called, by default by their number.

    Raises:
        ImportRefusedError: a cell is empty, no list of finite numbers, or of another length than the first.
    """
    found: NDArray[np.float32] | None = None
    for row, cell in enumerate(cells):
        place = places[row] if places is not None else f"row {row}"
        values = _numbers(cell, f"{called}: {place}")
        if found is None:
            found = np.empty((len(cells), len(values)), dtype=np.float32)
        if len(values) != found.shape[1]:
            first = places[0] if places is not None else "row 0"
            raise ImportRefusedError(
                f"{called}: {place} has {plural(len(values), 'value')} and {first} has {found.shape[1]:,}; every "
                "sample needs equally many: take all from the same network."
            )
        found[row] = values
    if found is None:
        raise ImportRefusedError(f"{called} has no rows; there are no features to use.")
    return found


def _numbers(cell: Any, place: str) -> NDArray[np.float32]:
    """The numbers of one cell."""
    again = "features must be finite numbers: embed that image again."
    is_empty = cell is None or (isinstance(cell, float) and cell != cell)
    if is_empty or (isinstance(cell, str) and not cell.strip()):
        raise ImportRefusedError(f"{place} has no features; {again}")
    words = re.sub(r"[\[\](),;]", " ", cell).split() if isinstance(cell, str) else cell
    if isinstance(cell, str) and "..." in words:
        raise ImportRefusedError(
            f"{place} was cut short where it was written ('...'); write whole lists, or use Parquet or .npy."
        )
    try:
        values = np.atleast_1d(np.asarray(words, dtype=np.float64)).astype(np.float32)
    except (ValueError, TypeError) as error:
        raise ImportRefusedError(
            f"{place} holds something that is not a number ({error}); {again}"
        ) from error
    if values.ndim != 1 or not len(values):
        raise ImportRefusedError(
            f"{place} holds values of the shape {values.shape}; give one list of numbers."
        )
    broken = np.flatnonzero(~np.isfinite(values))
    if len(broken):
        raise ImportRefusedError(
            f"{place} has {values[broken[0]]} as value {broken[0]} (counted from 0); {again}"
        )
    return values


# --- Tables -----------------------------------------------------------------------------------------------


def _of_table(dataset: Dataset, path: Path, column: str | None) -> NDArray[np.float32]:
    found = read_predictions(path, what="features")
    assert isinstance(found, pd.DataFrame), "arrays are read elsewhere"
    columns = _columns(found, column, str(path), COLUMN_OPTION)
    by_path = ask(datasets.sample_ids_by_path, dataset.id)
    paths = sorted(by_path, key=by_path.__getitem__)
    target = rows_of_table(found, dataset.num_samples, paths, columns, str(path))
    places = [f"row {row} ({paths[sample]})" for row, sample in enumerate(target.tolist())]
    return in_order(stacked(_cells(found, columns), str(path), places), target, paths, str(path))


def _of_columns(dataset: Dataset, wanted: str) -> NDArray[np.float32]:
    called = f"{COLUMNS}{wanted}"
    columns = _columns(pd.DataFrame(columns=dataset.user_columns), wanted, f"{dataset.name}", "name one")
    paths, rows = [], []
    with session() as open_session:
        for filepath, extra in datasets.iterate_extras(open_session, dataset.id):
            paths.append(filepath)
            rows.append([extra.get(str(each), "") for each in columns])
    cells = _cells(pd.DataFrame(rows, columns=columns, dtype=object), columns)
    return stacked(cells, called, [f"sample {row} ({path})" for row, path in enumerate(paths)])


def _cells(frame: pd.DataFrame, columns: Sequence[Hashable]) -> Sequence[Any]:
    """One list, or text of one, per row."""
    if len(columns) == 1:
        return frame[columns[0]].tolist()
    return list(frame[list(columns)].to_numpy())


def _columns(frame: pd.DataFrame, wanted: str | None, called: str, remedy: str) -> list[Hashable]:
    """The column that holds lists, or several with one number each, in the order of their numbers.

    Raises:
        ImportRefusedError: there are none of that name, or none is named and it is not clear which.
    """
    if wanted is None:
        lists: list[Hashable] = [
            each for each in frame.columns if len(frame) and _is_list(frame[each].iloc[0])
        ]
        if len(lists) == 1:
            return lists
        raise ImportRefusedError(
            f"{called}: it is not clear which column holds the features; {remedy}. {_listed(frame)}"
        )
    if wanted in frame.columns:
        return [wanted]
    numbered = {
        int(match.group(1)): each
        for each in frame.columns
        if (match := re.fullmatch(rf"{re.escape(wanted)}[_.\-]?(\d+)", str(each))) is not None
    }
    if not numbered:
        hint = did_you_mean(wanted, map(str, frame.columns), _listed(frame))
        raise ImportRefusedError(
            f"{called} has no column {wanted!r} and none {wanted}0, {wanted}1, ...; {hint}"
        )
    return [numbered[key] for key in sorted(numbered)]


def _is_list(cell: Any) -> bool:
    return isinstance(cell, (list, tuple, np.ndarray)) or (
        isinstance(cell, str) and cell.strip()[:1] == "[" and cell.strip()[-1:] == "]"
    )


def _listed(frame: pd.DataFrame) -> str:
    there = ", ".join(map(str, frame.columns[:MOST_LISTED])) or "none"
    return f"Its columns are {there}{', ...' if len(frame.columns) > MOST_LISTED else ''}."
