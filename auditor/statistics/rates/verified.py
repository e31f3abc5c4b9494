"""The verified sample, and predictions read in chunks.

The verified sample holds rows that were drawn at random and judged by a person who did not see
a suggestion. It is plain arrays. Predictions of (N, K) may be memory maps larger than memory, so they
are only ever read in chunks of rows.

Letters: N samples, K classes, m verified rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.ground.errors import VerificationError
from auditor.statistics.rates.strata import Stage

UNLABELED = -1
"""The given label of a sample that has none."""
NO_CLASS = -1
"""The true label of a verified row that belongs to no class; its given label is wrong."""
UNSURE = -2
"""The true label of a verified row whose judge could not tell; it widens every statement."""
CHUNK_CELLS = 4_000_000
"""Most cells of (N, K) predictions held in memory together: 16 MB of float32 a witness."""
SUM_TOLERANCE = 1e-2
"""How far a row of probabilities may be from 1; half precision needs some slack."""


@dataclass(frozen=True, eq=False)
class Decided:
    """Labels in question that people settled outside the draws; they are counted as they are."""

    sample_ids: NDArray[np.integer]
    """(k,) int, each once, none of them a verified row."""
    is_wrong: NDArray[np.bool_]
    """(k,) bool."""


@dataclass(frozen=True, eq=False)
class Verified:
    """Rows drawn at random among the labeled ones and judged blind, in the order of their draw."""

    sample_ids: NDArray[np.integer]
    """(m,) int, rows of the data set, each once."""
    true_labels: NDArray[np.integer]
    """(m,) int in 0..K-1, ``NO_CLASS`` (-1) where none fits, ``UNSURE`` (-2) where nobody could tell."""
    trusted: NDArray[np.bool_] | None = None
    """(m,) bool: this audit trained on the row as trusted, so the row may not calibrate this audit."""
    is_watched: bool = False
    """True where the judge looked at the results before the sample was complete; intervals are then
    confidence sequences."""
    pool: NDArray[np.bool_] | None = None
    """(N,) bool, samples that could have been drawn; None = every labeled one. Rates and promises are about
    these."""
    treated: NDArray[np.bool_] | None = None
    """(N,) bool, samples that this audit trained on as trusted, corrected or excluded, drawn or not; None = none.
    Their trust says nothing about whether the draw was random."""
    backing: NDArray[np.bool_] | None = None
    """(m,) bool, rows of the one draw that promises rest on, judged to its end; None = all of them."""
    num_waiting: int = 0
    """Drawn rows that wait for a verdict."""
    stages: tuple[Stage, ...] = ()
    """The draws in their order where one of them looked at a head more often; empty = all rows together are a
    uniform sample of the pool."""
    backing_pool: NDArray[np.bool_] | None = None
    """(N,) bool, samples that the backing rows were drawn from uniformly; None = every drawable one."""
    backing_words: str = ""
    """What ``backing_pool`` is, in words; empty where promises are about every label."""
    strata: NDArray[np.int8] | None = None
    """(N,) of the first draw, where it is uniform: 0 where a ranking that stood before it thought the label wrong,
    1 where not, -1 outside the pool; None where no audit came before. They sharpen intervals (``rates``)."""
    decided: Decided | None = None

    @property
    def size(self) -> int:
        """Number of verified rows, m."""
        return len(self.sample_ids)

    @property
    def trusted_mask(self) -> NDArray[np.bool_]:
        """(m,) bool, all False when the audit trusted none of the rows."""
        return (
            np.zeros(self.size, dtype=bool) if self.trusted is None else np.asarray(self.trusted, dtype=bool)
        )

    @property
    def backing_mask(self) -> NDArray[np.bool_]:
        """(m,) bool, all True where nothing says which draw promises rest on."""
        return (
            np.ones(self.size, dtype=bool) if self.backing is None else np.asarray(self.backing, dtype=bool)
        )

    @property
    def weights(self) -> NDArray[np.float64]:
        """(m,) mean 1: how many labels a row stands for, the inverse of the chance with which it was drawn."""
        if not self.stages or not self.size:
            return np.ones(self.size)
        weights = np.zeros(self.size)
        for stage in self.stages:
            zone_of_row = stage.zones[self.sample_ids]
            for zones in ((0, 1), (2,)):  # both halves of a head are drawn alike
                rows = stage.rows & np.isin(zone_of_row, zones)
                # Draws are mixed by their sizes.
                weights[rows] = stage.rows.sum() * np.isin(stage.zones, zones).sum() / max(1, rows.sum())
        return weights / weights.mean()

    @property
    def is_unsure(self) -> NDArray[np.bool_]:
        """(m,) bool: the judge could not tell."""
        return np.asarray(self.true_labels) == UNSURE

    def is_wrong(self, given_labels: NDArray[np.integer]) -> NDArray[np.bool_]:
        """(m,) bool: the given label was judged wrong; unsure rows are not."""
        return (np.asarray(self.true_labels) != given_labels[self.sample_ids]) & ~self.is_unsure

    def drawn_from(self, given_labels: NDArray[np.integer]) -> NDArray[np.bool_]:
        """(N,) bool: the samples that statements from this draw are about."""
        labeled: NDArray[np.bool_] = np.asarray(given_labels) != UNLABELED
        return labeled if self.pool is None else labeled & np.asarray(self.pool, dtype=bool)

    def subset(self, rows: NDArray[np.bool_]) -> Verified:
        """Return only the rows of the (m,) mask."""

        def part(mask: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
            return None if mask is None else np.asarray(mask)[rows]

        return Verified(
            sample_ids=np.asarray(self.sample_ids)[rows],
            true_labels=np.asarray(self.true_labels)[rows],
            trusted=part(self.trusted),
            is_watched=self.is_watched,
            pool=self.pool,
            treated=self.treated,
            backing=part(self.backing),
            num_waiting=self.num_waiting,
            stages=tuple(stage.subset(rows) for stage in self.stages),
            backing_pool=self.backing_pool,
            backing_words=self.backing_words,
            strata=self.strata,
            decided=self.decided,
        )

    def check(self, given_labels: NDArray[np.integer], num_classes: int) -> None:
        """Refuse a sample that cannot belong to these labels.

        Raises:
            VerificationError: a row is unknown, doubled or unlabeled, or a true label is out of range.
        """
        ids, labels = np.asarray(self.sample_ids), np.asarray(self.true_labels)
        for name, array in (
            ("true_labels", labels),
            ("trusted", self.trusted),
            ("backing", self.backing),
        ):
            if array is not None and np.shape(array) != ids.shape:
                raise VerificationError(
                    f"{name} has {np.shape(array)} entries but {len(ids)} rows are verified."
                )
        _refuse_rows(ids, (ids < 0) | (ids >= len(given_labels)), f"is outside 0..{len(given_labels) - 1}")
        if len(np.unique(ids)) != len(ids):
            raise VerificationError("a verified sample occurs twice; a random sample has each row once.")
        _refuse_rows(
            ids, given_labels[ids] == UNLABELED, "has no given label; draw among the labeled samples"
        )
        for name, mask in (
            ("pool", self.pool),
            ("treated", self.treated),
            ("backing_pool", self.backing_pool),
            ("strata", self.strata),
            *(("zones of a draw", stage.zones) for stage in self.stages),
        ):
            if mask is not None and np.shape(mask) != np.shape(given_labels):
                raise VerificationError(f"{name} is {np.shape(mask)}, expected {np.shape(given_labels)}.")
        _refuse_rows(ids, ~self.drawn_from(given_labels)[ids], "was not in the pool that was drawn from")
        out_of_range = (labels < UNSURE) | (labels >= num_classes)
        _refuse_rows(
            ids, out_of_range, f"has a true label outside 0..{num_classes - 1}, -1 (none), -2 (unsure)"
        )


def row_chunks(num_rows: int, num_columns: int) -> Iterator[slice]:
    """Yield slices of rows so that one chunk of (rows, columns) stays below ``CHUNK_CELLS``."""
    step = max(1, CHUNK_CELLS // max(1, num_columns))
    for start in range(0, num_rows, step):
        yield slice(start, min(num_rows, start + step))


def given_margins(
    pred_probs: NDArray[np.floating], given_labels: NDArray[np.integer], *, least: float = 1e-12
) -> NDArray[np.float32]:
    """Return (N,) log p(given) minus log p(best other class); NaN where unlabeled or without an opinion.

    Args:
        pred_probs: (N, K), array or memory map, read in chunks; a row with NaN has no opinion.
        given_labels: (N,) int, -1 unlabeled.
        least: smaller probabilities count as this.
    """
    found = np.full(len(given_labels), np.nan, dtype=np.float32)
    for rows in row_chunks(*pred_probs.shape):
        probs, labels = np.array(pred_probs[rows], dtype=np.float32), np.asarray(given_labels[rows])
        local = np.flatnonzero(labels != UNLABELED)
        at = local, labels[local]
        given = probs[at]
        probs[at] = -1.0
        other = probs[local].max(axis=1)
        found[rows.start + local] = np.log(np.maximum(given, least)) - np.log(np.maximum(other, least))
    return found


def _refuse_rows(ids: NDArray[np.integer], bad: NDArray[np.bool_], what: str) -> None:
    if bad.any():
        raise VerificationError(f"verified sample {int(ids[bad][0])} {what} ({int(bad.sum())} such rows).")
