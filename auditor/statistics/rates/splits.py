"""The parts of a data set (train, validation, test): how wrong the labels of each are, and what they share.

A wrong label in the test set misleads every later decision, and a picture that is in train and test flatters
it; so both are said part by part.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from auditor.ground.wording import plural
from auditor.statistics.rates.intervals import Interval
from auditor.statistics.rates.parts import part_intervals
from auditor.statistics.rates.verified import Verified, row_chunks

if TYPE_CHECKING:
    import pandas as pd

ROWS_AT_ONCE = 200_000
MOST_SPLITS = 20
"""Splits that are listed, the largest first; a column with more values divides nothing that people name."""


@dataclass(frozen=True)
class SplitReport:
    """One split as its labels and pictures show it."""

    name: str
    num_labeled: int
    num_doubtful: int
    expected_wrong: float
    """Sum of error probabilities over the split's samples."""
    num_found: int
    """Labels that people found wrong."""
    interval: Interval | None
    """Share wrong from the verified rows of this split; None without any."""
    num_copied: int
    """Samples whose picture, identical in every pixel, is also in another split."""
    num_alike: int
    """Further samples with a near copy in another split: look at them."""


def split_reports(
    splits: NDArray[Any],
    given_labels: NDArray[np.integer],
    error_probability: NDArray[np.floating],
    is_doubtful: NDArray[np.bool_],
    *,
    found_wrong: Collection[int] = (),
    shared: pd.DataFrame | None = None,
    verified: Verified | None = None,
) -> list[SplitReport]:
    """One report a split, the largest first; empty where none is named, or one that holds every sample.

    Rows drawn at random among all labels are random among those of a split too, so each interval holds for itself.

    Args:
        splits: (N,) names as objects, None where a sample names none.
        given_labels: (N,) int, -1 unlabeled.
        error_probability: (N,) float, NaN where unknown.
        is_doubtful: (N,) bool.
        found_wrong: sample_ids that people found wrong.
        shared: of ``shared_pictures``.
        verified: rows judged at random; None where they do not count.
    """
    codes, names = _coded(splits)
    num_splits = len(names)
    if not num_splits or (num_splits == 1 and (codes >= 0).all()):
        return []

    sizes, doubtful = np.zeros(num_splits, np.int64), np.zeros(num_splits, np.int64)
    wrong = np.zeros(num_splits)
    for rows in row_chunks(len(codes), 1):
        counts = (given_labels[rows] >= 0) & (codes[rows] >= 0)
        part = codes[rows][counts]
        sizes += np.bincount(part, minlength=num_splits)
        doubtful += np.bincount(part[is_doubtful[rows][counts]], minlength=num_splits)
        share = np.nan_to_num(error_probability[rows][counts])
        wrong += np.bincount(part, weights=share, minlength=num_splits)
    of_found = codes[np.array(sorted(found_wrong), dtype=np.int64)]
    found = np.bincount(of_found[of_found >= 0], minlength=num_splits)
    copied = alike = np.zeros(num_splits, dtype=np.int64)
    if shared is not None and len(shared):
        at = codes[shared.sample_id.to_numpy(dtype=np.int64)]
        copied = np.bincount(at[shared.is_copied], minlength=num_splits)
        alike = np.bincount(at[~shared.is_copied], minlength=num_splits)
    intervals = None if verified is None else _intervals(codes, num_splits, given_labels, verified)
    reports = [
        SplitReport(
            name=str(names[k]),
            num_labeled=int(sizes[k]),
            num_doubtful=int(doubtful[k]),
            expected_wrong=float(wrong[k]),
            num_found=int(found[k]),
            interval=intervals[k] if intervals is not None and intervals[k].num_rows else None,
            num_copied=int(copied[k]),
            num_alike=int(alike[k]),
        )
        for k in range(num_splits)
    ]
    return sorted(reports, key=lambda one: (-one.num_labeled, one.name))[:MOST_SPLITS]


def _coded(splits: NDArray[Any]) -> tuple[NDArray[np.int32], list[Any]]:
    """(N,) numbers of the names, -1 where there is none, and the names; never a copy of all of them."""
    import pandas as pd

    numbers: dict[Any, int] = {}
    codes = np.empty(len(splits), np.int32)
    for start in range(0, len(splits), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        part, names = pd.factorize(splits[rows], use_na_sentinel=True)
        known = [numbers.setdefault(name, len(numbers)) for name in names]
        codes[rows] = np.array([*known, -1], np.int32)[part]
    return codes, list(numbers)


def _intervals(
    codes: NDArray[np.integer], num_splits: int, given_labels: NDArray[np.integer], verified: Verified
) -> list[Interval]:
    """Each split's share of wrong labels; samples without a split count as one more, which is left out."""
    parts = np.where(codes >= 0, codes, num_splits)
    drawable = np.where(verified.drawn_from(given_labels), parts, -1)
    return part_intervals(drawable, verified, verified.is_wrong(given_labels), num_splits + 1)[:num_splits]


def shared_pictures(splits: NDArray[Any], duplicates: pd.DataFrame) -> pd.DataFrame:
    """The rows of ``catalog.datasets.duplicates`` whose group has members in several splits.

    Adds ``split`` and ``is_copied`` (bool): the same pixels are in another split; else only a near copy is.
    """
    table = duplicates.assign(split=splits[duplicates.sample_id.to_numpy(dtype=np.int64)])
    table = table[table.split.notna()]
    table = table[table.groupby("duplicate_group").split.transform("nunique") > 1]
    same_pixels = table.groupby("content_hash").split.transform("nunique") > 1
    return table.assign(is_copied=same_pixels & (table.content_hash != "")).reset_index(drop=True)


def shared_sentence(reports: list[SplitReport]) -> str:
    """Return how many pictures are in more than one split; empty where none is."""
    copied, alike = (sum(getattr(one, name) for one in reports) for name in ("num_copied", "num_alike"))
    said = []
    if copied:
        said.append(
            f"{plural(copied, 'sample', 'show')} a picture that is also in another split, identical in "
            f"every pixel: "
            "a model trained on one split is tested on pictures that it has seen."
        )
    if alike:
        said.append(
            f"{plural(alike, 'more sample' if copied else 'sample', 'have')} a near copy in another split: "
            f"look at them."
        )
    return " ".join(said)
