"""A user's own predicted probabilities as one more engine.

Whoever has a model already hands in its probabilities, one column a class named as in the data set, and they
count like an engine: trust is the log margin of the given label over the best other class. Rows may cover
only part of the samples; the rest get no opinion.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auditor.ground import apart, spreadsheets
from auditor.ground.delimited import Delimited
from auditor.ground.errors import ImportRefusedError
from auditor.ground.files import read_npy
from auditor.ground.names import normal
from auditor.ground.paths import Paths
from auditor.statistics.rates import SUM_TOLERANCE, given_margins
from auditor.statistics.trust.witnesses import Witness

if TYPE_CHECKING:
    import pandas as pd

PREFIX = "prob_"
"""A class column may carry it before the class name."""
PATH_COLUMNS = ("path", "file_path", "file", "filename", "file_name", "image", "image_path")
DECIMAL_COMMA = r"\s*-?[0-9]*,?[0-9]+(?:[eE][+-]?[0-9]+)?\s*"
ROUNDED = 0.05
"""Of a sum of 100: as far may percentages miss it that were rounded."""
NO_OPINION = ("", "nan", "none", "null")
"""Cells that say nothing, as tables write them."""


def witness_from_probabilities(
    pred_probs: NDArray[np.floating],
    given_labels: NDArray[np.integer],
    *,
    name: str = "own model",
    is_out_of_sample: bool = True,
) -> Witness:
    """Return a witness whose trust is log p(given) minus log of the best other class, read in chunks.

    Args:
        pred_probs: (N, K) rows sum to 1; a row with NaN has no opinion.
        given_labels: (N,) int, -1 unlabeled.
        name: how the witness is called everywhere.
        is_out_of_sample: the model did not learn from the labels that it judges.

    Raises:
        ImportRefusedError: the shape does not fit.
    """
    if pred_probs.ndim != 2 or len(pred_probs) != len(given_labels):
        raise ImportRefusedError(
            f"{name}: probabilities are {pred_probs.shape}, expected one row for each of "
            f"{len(given_labels)} samples."
        )
    trust = given_margins(pred_probs, given_labels)
    return Witness(name, trust, pred_probs, is_out_of_sample)


def witness_from_frame(
    frame: pd.DataFrame,
    given_labels: NDArray[np.integer],
    class_names: Sequence[str],
    *,
    filepaths: Sequence[str] | None = None,
    name: str = "own model",
) -> Witness:
    """Return a witness from a table with one column a class.

    Rows are matched by a column ``sample_id`` (0-based) or by one that holds the samples' paths, ``filepath`` or of
    any other name; where both are there, they have to agree. A row whose cells are all empty has no opinion. Other
    columns are ignored.

    Raises:
        ImportRefusedError: a class column is missing or doubled, a key is missing, unknown or doubled, or a row is
            no distribution; names the first offending row.
    """
    columns = [_class_column(frame, class_name, name) for class_name in class_names]
    target = rows_of_table(frame, len(given_labels), filepaths, columns, name)
    pred_probs = np.full((len(given_labels), len(class_names)), np.nan, dtype=np.float32)
    pred_probs[target] = _normalized(_numbers(frame, columns, name), name)
    return witness_from_probabilities(pred_probs, given_labels, name=name)


def probabilities_from_cells(
    rows: Iterable[tuple[str, Sequence[str]]], columns: Sequence[str], num_samples: int, *, name: str
) -> NDArray[np.float32]:
    """Return (N, K) probabilities from the text of the K ``columns``; a row whose cells are all empty is NaN.

    Args:
        rows: (filepath, its cells) of every sample in order, read once.
        columns: names of the cells, for messages.
        num_samples: N.
        name: how messages call the columns.

    Raises:
        ImportRefusedError: a row has some cells only, one that is no number, or is no distribution; or no row has
            any. Names the first offending sample.
    """
    values = np.full((num_samples, len(columns)), np.nan)
    filepaths = []
    for sample_id, (filepath, cells) in enumerate(rows):
        filepaths.append(filepath)
        if all(cell.strip().lower() in NO_OPINION for cell in cells):
            continue
        for place, cell in enumerate(cells):
            value = _number(cell)
            if value is None:
                raise ImportRefusedError(
                    f"{name}: sample {sample_id} ({filepath}) has {cell!r} in column {columns[place]!r}, which is "
                    "not a probability; fill in all classes of a row, or none where the model predicts nothing."
                )
            values[sample_id, place] = value
    return _normalized(values, name, [f"sample {i} ({path})" for i, path in enumerate(filepaths)])


def read_predictions(path: Path, *, what: str = "probabilities") -> pd.DataFrame | NDArray[Any]:
    """Read a table (CSV, TSV, ``.xlsx``, Parquet) or an array (``.npy``) of probabilities (``what``).

    Nothing in an array's file is ever unpickled.

    Raises:
        ImportRefusedError: the file is absent, of another kind, or cannot be parsed.
    """
    import pandas as pd

    kinds = f"a .csv, .tsv, .xlsx, .parquet or .npy of {what}"
    if not path.is_file():
        why = "is no regular file" if path.exists() else "does not exist"
        raise ImportRefusedError(f"{path} {why}; give {kinds}.")
    kind = path.suffix.lower()
    try:
        if kind == ".npy":
            return read_npy(path)
        if kind == ".parquet":
            return apart.call(pd.read_parquet, path)
        if kind in (".csv", ".tsv", spreadsheets.SUFFIX):
            return _read_delimited(path)
    except ImportRefusedError:
        raise
    except Exception as error:  # whatever the parsers of NumPy, pandas and Arrow raise on a damaged file
        reason = " ".join(str(error).split())[:160]
        raise ImportRefusedError(f"{path} cannot be read as {kind[1:]} ({reason}); save it again.") from error
    raise ImportRefusedError(f"{path} is {kind or 'without suffix'}; give {kinds}.")


def _read_delimited(path: Path) -> pd.DataFrame:
    import pandas as pd

    with spreadsheets.open_delimited(path) as stream:
        found = Delimited(str(path), stream, refused=ImportRefusedError)
        stream.seek(0)
        table = pd.read_csv(
            stream,
            sep=found.separator,
            encoding=found.encoding,
            skiprows=found.header_row - 1,
            dtype={"filepath": str},
            index_col=False,
        )
    for column in table.columns if found.separator != "," else ():
        cells = table[column]
        if cells.dtype == object and cells.dropna().astype(str).str.fullmatch(DECIMAL_COMMA).all():
            table[column] = cells.str.replace(",", ".").astype(float)
    return table


def probabilities_from_array(
    array: Any, num_samples: int, num_classes: int, *, name: str
) -> NDArray[np.float32]:
    """Return (N, K) probabilities from an array with a row a sample and a column a class in their orders.

    A row of NaN has no opinion.

    Raises:
        ImportRefusedError: it has another shape, a row is no distribution, or no row has an opinion; names the
            first offending row.
    """
    # A renamed .npz is no array at all.
    shape: tuple[int, ...] = array.shape if isinstance(array, np.ndarray) else ()
    if shape != (num_samples, num_classes):
        raise ImportRefusedError(
            f"{name} holds an array of shape {shape}; give {num_samples:,} rows, one per sample, and "
            f"{num_classes} columns, one per class, both in the order of the dataset."
        )
    if not np.issubdtype(array.dtype, np.number) or np.iscomplexobj(array):
        raise ImportRefusedError(f"{name} holds {array.dtype}; give numbers.")
    return _normalized(np.asarray(array, dtype=np.float64), name)


def _class_column(frame: pd.DataFrame, class_name: str, name: str) -> Hashable:
    wanted = {normal(str(class_name)), normal(f"{PREFIX}{class_name}")}
    found = [column for column in frame.columns if normal(str(column)) in wanted]
    if len(found) != 1:
        problem = "has no column" if not found else f"has {len(found)} columns"
        raise ImportRefusedError(
            f"{name}: the table {problem} for class {class_name!r}; name one column per class, "
            f"{class_name!r} or {PREFIX + str(class_name)!r}."
        )
    return found[0]


def rows_of_table(
    frame: pd.DataFrame,
    num_samples: int,
    filepaths: Sequence[str] | None,
    value_columns: Sequence[Hashable],
    name: str,
) -> NDArray[np.int64]:
    """sample_id of every row: by a column ``sample_id`` or by one of paths; where both are there they agree.

    Their order alone is no key: tables are sorted and shuffled. ``value_columns`` hold no paths.

    Raises:
        ImportRefusedError: there is no key, or one is unknown or doubled; names the first such row.
    """
    import pandas as pd

    by_path = _column_of_paths(frame, filepaths, value_columns)
    if "sample_id" in frame.columns:
        keys = pd.to_numeric(frame["sample_id"], errors="coerce").to_numpy(dtype=np.float64)
        known = (keys >= 0) & (keys < num_samples) & (keys == np.floor(keys))
        target = np.where(known, keys, -1).astype(np.int64)
        shown: Sequence[object] = frame["sample_id"].tolist()
    elif by_path is not None:
        target = _places_of(frame[by_path], filepaths)
        shown = frame[by_path].tolist()
    else:
        raise ImportRefusedError(
            f"{name}: no column says which row is about which sample; add sample_id (0-based) or filepath. Only an "
            "array (.npy) is taken in the order of the dataset."
        )
    unknown = np.flatnonzero(target < 0)
    if len(unknown):
        raise ImportRefusedError(
            f"{name}: row {int(unknown[0])} is for {shown[int(unknown[0])]!r}, which is not in the data set "
            f"({len(unknown)} such rows)."
        )
    doubled = np.flatnonzero(pd.Series(target).duplicated().to_numpy())
    if len(doubled):
        raise ImportRefusedError(
            f"{name}: row {int(doubled[0])} repeats {shown[int(doubled[0])]!r} ({len(doubled)} such rows)."
        )
    if "sample_id" in frame.columns and by_path is not None:
        _check_agree(target, _places_of(frame[by_path], filepaths), frame[by_path].tolist(), filepaths, name)
    return target


def _column_of_paths(
    frame: pd.DataFrame, filepaths: Sequence[str] | None, value_columns: Sequence[Hashable]
) -> Hashable | None:
    """``filepath``, or the first other column that holds paths of the data set alone."""
    if filepaths is None:
        return None
    if "filepath" in frame.columns:
        return "filepath"
    known = Paths(filepaths)
    rest = (column for column in frame.columns if column not in value_columns and column != "sample_id")
    # Any other column has to say exactly what a path is: numbers of rows may be names of files too.
    called = ((column, str(column).lower() in PATH_COLUMNS) for column in rest)
    return next((c for c, is_near in called if len(frame) and _are_among(frame[c], known, is_near)), None)


def _are_among(cells: pd.Series, known: Paths, is_near: bool) -> bool:
    return all(
        isinstance(cell, str) and (cell in known or (is_near and known.find(cell) is not None))
        for cell in cells
    )


def _places_of(paths: pd.Series, filepaths: Sequence[str] | None) -> NDArray[np.int64]:
    import pandas as pd

    known = Paths(filepaths or [])
    named = [known.find(str(path)) for path in paths]
    return pd.Index(filepaths or []).get_indexer(pd.Index(named, dtype=object)).astype(np.int64)


def _check_agree(
    by_id: NDArray[np.int64],
    by_path: NDArray[np.int64],
    shown: Sequence[object],
    filepaths: Sequence[str] | None,
    name: str,
) -> None:
    parted = np.flatnonzero(by_id != by_path)
    if len(parted) and filepaths is not None:
        row = int(parted[0])
        raise ImportRefusedError(
            f"{name}: row {row} has sample_id {by_id[row]}, which is {filepaths[by_id[row]]!r}, and the path "
            f"{shown[row]!r} ({len(parted)} such rows); correct one of the two columns or leave it out."
        )


def _numbers(frame: pd.DataFrame, columns: Sequence[Hashable], name: str) -> NDArray[np.float64]:
    try:
        return frame[list(columns)].to_numpy(dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ImportRefusedError(f"{name}: a probability is not a number ({error}).") from error


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _normalized(
    values: NDArray[np.float64], name: str, places: Sequence[str] | None = None
) -> NDArray[np.float32]:
    """Rows that sum to 1 exactly, and rows of NaN where the model has no opinion.

    ``places`` say what the rows are called, by default by their number.
    """

    def place(rows: NDArray[np.bool_]) -> tuple[int, str, str]:
        row = int(np.flatnonzero(rows)[0])
        called = places[row] if places else f"row {row}"
        return row, called, f"({int(rows.sum())} such rows)"

    silent: NDArray[np.bool_] = np.asarray(np.isnan(values).all(axis=1))
    spoken = ~silent
    if not spoken.any():
        raise ImportRefusedError(f"{name}: all cells are empty; there are no predictions to use.")
    broken: NDArray[np.bool_] = spoken & ~np.asarray(np.isfinite(values).all(axis=1))
    if broken.any():
        _, called, such = place(broken)
        raise ImportRefusedError(
            f"{name}: {called} has an empty or infinite probability {such}; fill in all classes of a row, or none "
            "where the model predicts nothing."
        )
    sums = values.sum(axis=1)
    bad: NDArray[np.bool_] = spoken & ((values < 0).any(axis=1) | (np.abs(sums - 1.0) > SUM_TOLERANCE))
    if bad.any():
        row, called, such = place(bad)
        raise ImportRefusedError(
            f"{name}: {called} sums to {sums[row]:.4f}, its smallest value is {values[row].min():.4f} {such}; "
            + (
                "these look like percentages: divide them by 100."
                if values[spoken].min() >= 0 and np.allclose(sums[spoken], 100, rtol=ROUNDED)
                else "hand in probabilities, apply softmax to scores."
            )
        )
    return np.asarray(values / sums[:, None], dtype=np.float32)
