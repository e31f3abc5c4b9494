"""A user's own predicted probabilities: kept beside the dataset, one file a model, until they are forgotten.

Every later audit of the dataset hears them as one more engine. The name of a model becomes the name of its
file and of its witness, so it is checked before anything is read or stored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.bridges import engine_bridge
from auditor.catalog import datasets, folders, reading
from auditor.catalog.db import session
from auditor.catalog.records import Audit, Dataset
from auditor.ground.errors import ImportRefusedError, NotFoundError
from auditor.ground.files import load_array, written_whole
from auditor.ground.names import Names
from auditor.ground.wording import plural
from auditor.statistics import (
    probabilities_from_array,
    probabilities_from_cells,
    read_predictions,
    witness_from_frame,
)

FOLDER = "own_predictions"
COLUMNS = "column:"
"""``column:PREFIX`` names the dataset's own columns PREFIX + class name instead of a file."""
NAME = re.compile(r"\w[\w .()+-]*")
MOST_BYTES = 200
"""Of a name: a file system takes 255, and some are ours."""
MOST_LISTED = 10
ISSUE_COLUMNS = ("label_score", "given_label", "predicted_label")
"""What is read of cleanlab's ``Datalab.get_issues("label")``."""


@dataclass(frozen=True)
class Added:
    """What was taken."""

    name: str
    num_rows: int
    """Samples on which the model has an opinion."""
    num_samples: int


@dataclass(frozen=True)
class Witness:
    """Checked predictions that are not kept yet."""

    dataset_id: int
    name: str
    pred_probs: NDArray[np.float32]
    """(N, K); a row of NaN has no opinion."""


def add(dataset_name: str, source: str | Path | NDArray[np.floating], *, name: str | None = None) -> Added:
    """Take predicted probabilities as one more engine of every later audit; those of the same name are replaced.

    ``source`` is a table with ``sample_id`` or paths and one column a class, named like the class; an (N, K) array,
    or an ``.npy`` of one, in the order of samples and classes; or ``column:PREFIX``, the dataset's own columns
    PREFIX + class name. Rows that are missing, empty or NaN have no opinion.

    Raises:
        ImportRefusedError: the name cannot be a witness's, or a class or row does not fit; the text names the row
            and the remedy, and nothing was stored.
    """
    return keep(read(dataset_name, source, name=name))


def add_label_issues(dataset_name: str, issues: pd.DataFrame, *, name: str = "datalab") -> Added:
    """Take what cleanlab's ``Datalab.get_issues("label")`` says as one more engine of every later audit.

    ``issues`` has one row a sample in the dataset's order, with ``label_score``, ``given_label`` and
    ``predicted_label``. The score goes to the given label and what is left to the predicted one, or to all others
    where that is the given one: cleanlab's issues say no more.

    Raises:
        ImportRefusedError: a column is missing, or a row does not fit the dataset; nothing was stored.
    """
    with session() as open_session:
        dataset = datasets.get(open_session, dataset_name)
        given = datasets.given_labels(open_session, dataset.id)
    return keep(Witness(dataset.id, _checked(name, ""), _from_issues(dataset, issues, given)))


def _classes_of(issues: pd.DataFrame, dataset: Dataset, given: NDArray[np.int64]) -> NDArray[np.int64]:
    """(2, N) given and predicted classes of Datalab's issues; -1 = none.

    Its cells name classes, or number them where it was given numbers. Classes may be called by other numbers (1, 2,
    3): the reading that agrees with the labels here holds for both columns.
    """
    cells = issues[list(ISSUE_COLUMNS[1:])]
    names = Names(dataset.class_names)
    named = cells.map(lambda cell: -1 if (n := names.number(str(cell).removesuffix(".0"))) is None else n)
    numbers = cells.apply(pd.to_numeric, errors="coerce")
    numbers = numbers.where(numbers.isin(range(len(dataset.class_names))), -1)
    by_name, by_number = (found.to_numpy(np.int64).T for found in (named, numbers))
    has_label = given >= 0
    agreeing = [int((found[0] == given)[has_label].sum()) for found in (by_name, by_number)]
    return by_number if agreeing[1] > agreeing[0] else by_name


def _from_issues(dataset: Dataset, issues: pd.DataFrame, given: NDArray[np.int64]) -> NDArray[np.float32]:
    missing = [column for column in ISSUE_COLUMNS if column not in issues.columns]
    if missing:
        raise ImportRefusedError(
            f'the issues have no column {missing[0]!r}; hand in Datalab.get_issues("label") as it is.'
        )
    if len(issues) != dataset.num_samples:
        raise ImportRefusedError(
            f"the issues have {plural(len(issues), 'row')} and {dataset.name} "
            f"{plural(dataset.num_samples, 'sample')}; hand in one "
            "row a sample, in the dataset's order."
        )
    scores = pd.to_numeric(issues["label_score"], errors="coerce").to_numpy(np.float64)
    if (bad := np.flatnonzero((scores < 0) | (scores > 1))).size:
        raise ImportRefusedError(f"issues, row {bad[0]}: label_score is {scores[bad[0]]}, outside 0..1.")
    theirs, predicted = _classes_of(issues, dataset, given)
    has_label = np.isfinite(scores) & (given >= 0)
    for row in np.flatnonzero(has_label & ((theirs != given) | (predicted < 0))):
        column = "given_label" if theirs[row] != given[row] else "predicted_label"
        here = f"{dataset.class_names[given[row]]!r} here" if column == "given_label" else "no class"
        raise ImportRefusedError(
            f"issues, row {row}: {column} is {issues[column].iloc[row]!r} and {here}; hand in the issues of this "
            "dataset, with its class names."
        )
    num_classes = len(dataset.class_names)
    pred_probs = np.full((len(issues), num_classes), np.nan, np.float32)
    rows = np.flatnonzero(has_label)
    is_other = predicted[rows] != given[rows]
    share = np.where(is_other, 0.0, (1 - scores[rows]) / max(1, num_classes - 1))
    pred_probs[rows] = share[:, None]
    pred_probs[rows[is_other], predicted[rows[is_other]]] = 1 - scores[rows[is_other]]
    pred_probs[rows, given[rows]] = scores[rows] if num_classes > 1 else 1.0
    return pred_probs


def read(dataset_name: str, source: str | Path | NDArray[np.floating], *, name: str | None = None) -> Witness:
    """``add`` without keeping anything yet: everything is checked.

    Raises:
        ImportRefusedError: as ``add``.
    """
    dataset = reading.dataset(dataset_name)
    if isinstance(source, np.ndarray):
        model = _checked(name or "own", "")
        pred_probs = _from_array(dataset, source, model)
    elif str(source).startswith(COLUMNS):
        prefix = str(source).removeprefix(COLUMNS)
        model = _checked(name or _name_of_columns(prefix), "")
        pred_probs = _from_columns(dataset, prefix)
    else:
        model = _checked(name or Path(source).stem, Path(source).suffix)
        found = read_predictions(Path(source))
        if isinstance(found, pd.DataFrame):
            pred_probs = _from_table(dataset, found, model)
        else:
            pred_probs = _from_array(dataset, found, str(source))
    return Witness(dataset.id, model, pred_probs)


def keep(witness: Witness) -> Added:
    """Keep what ``read`` checked, instead of earlier predictions of the same name.

    Raises:
        ImportRefusedError: it cannot be written; the earlier ones stay.
    """
    pred_probs = witness.pred_probs
    _store(_folder(witness.dataset_id) / f"{witness.name}.npy", pred_probs)
    return Added(witness.name, int(np.isfinite(pred_probs).all(axis=1).sum()), len(pred_probs))


def names(dataset_id: int | None) -> list[str]:
    """The models whose predictions the user handed in."""
    return sorted(path.stem for path in _folder(dataset_id).glob("*.npy"))


def forget(dataset_name: str, model: str) -> None:
    """Remove a model's predictions; scores that used them stay until their audit is settled again.

    Raises:
        NotFoundError: there are none of that name; the text lists those that there are.
    """
    dataset = reading.dataset(dataset_name)
    there = names(dataset.id)
    if model not in there:
        have = f"it has those of {', '.join(there)}" if there else "it has none"
        raise NotFoundError(f"{dataset_name} has no predictions of {model!r}; {have}.")
    (_folder(dataset.id) / f"{model}.npy").unlink(missing_ok=True)


def load(dataset_id: int | None) -> dict[str, NDArray[np.float32]]:
    """By model, (N, K) float32 as a read-only memory map; a row of NaN has no opinion."""
    folder, known = _folder(dataset_id), names(dataset_id)
    found = {
        name: load_array(folder / f"{name}.npy", remedy=f"hand it in again, or forget the model {name}")
        for name in known
    }
    if not found:
        return {}
    with session() as open_session:
        dataset = datasets.by_id(open_session, int(dataset_id or 0))
    return {name: dataset.sums_of_today(probs) for name, probs in found.items()}


def heard_by(audit: Audit) -> dict[str, NDArray[np.float32]]:
    """``load``, without the models that came after the audit was settled."""
    heard = set(audit.summary.witnesses) - set(audit.engines)
    return {name: probs for name, probs in load(audit.dataset_id).items() if name in heard}


def _folder(dataset_id: int | None) -> Path:
    return folders.of_dataset(dataset_id) / FOLDER


def _checked(name: str, suffix: str) -> str:
    """The name, if it can be a file's and a witness's."""
    if not NAME.fullmatch(name) or len(name.encode()) > MOST_BYTES:
        raise ImportRefusedError(
            f"{name!r} cannot be a model's name; rename the file: only letters, digits, spaces and . _ - + ( ), "
            f"beginning with a letter or digit, at most {MOST_BYTES} bytes."
        )
    engines = {choice.name for choice in engine_bridge.engine_choices()}
    if name.casefold() in engines:
        raise ImportRefusedError(
            f"{name!r} is an engine's name, and two witnesses must not have the same name; rename the file, for "
            f"example to my_{name}{suffix}."
        )
    return name


def _name_of_columns(prefix: str) -> str:
    """A prefix is no file's name: what a file name cannot hold is left out. No engine's name ends like this."""
    kept = re.sub(r"[^\w .()+-]+", "_", prefix).strip(" ._-+()")
    return f"{kept}_columns" if kept else "columns"


def _from_array(dataset: Dataset, array: NDArray[np.floating], called: str) -> NDArray[np.float32]:
    return probabilities_from_array(array, dataset.num_samples, len(dataset.class_names), name=called)


def _from_table(dataset: Dataset, table: pd.DataFrame, name: str) -> NDArray[np.float32]:
    with session() as open_session:
        by_path = datasets.sample_ids_by_path(open_session, dataset.id)
        given = datasets.given_labels(open_session, dataset.id)
    paths = sorted(by_path, key=by_path.__getitem__)
    witness = witness_from_frame(table, given, dataset.class_names, filepaths=paths, name=name)
    return np.asarray(witness.pred_probs, dtype=np.float32)


def _from_columns(dataset: Dataset, prefix: str) -> NDArray[np.float32]:
    columns = [f"{prefix}{class_name}" for class_name in dataset.class_names]
    missing = [column for column in columns if column not in dataset.user_columns]
    if missing:
        there = ", ".join(dataset.user_columns[:MOST_LISTED]) or "none"
        more = ", ..." if len(dataset.user_columns) > MOST_LISTED else ""
        raise ImportRefusedError(
            f"{COLUMNS}{prefix}: {dataset.name} was imported without a column {missing[0]!r} ({len(missing)} of "
            f"{len(columns)} classes lack theirs); its columns are {there}{more}."
        )
    with session() as open_session:
        cells = (
            (filepath, [extra.get(column, "") for column in columns])
            for filepath, extra in datasets.iterate_extras(open_session, dataset.id)
        )
        return probabilities_from_cells(cells, columns, dataset.num_samples, name=f"{COLUMNS}{prefix}")


def _store(path: Path, pred_probs: NDArray[np.float32]) -> None:
    """Whole or not at all: what an audit reads meanwhile, or after a full disk, are the earlier ones."""
    try:
        with written_whole(path) as beside, beside.open("wb") as file:
            np.save(file, pred_probs)
    except OSError as error:
        raise ImportRefusedError(
            f"{path} cannot be written ({error.strerror or error}); nothing was changed."
        ) from error
