"""Sets of classes as arrays and as text: what is given, decided and suggested."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.catalog.records import Audit, Review, Sample
from auditor.ground.names import Names
from auditor.ground.vocabulary import RELABEL
from auditor.pictures.sources import read_set
from auditor.results import arrays

TOGETHER = "sets"
"""In place of an engine's name: what all engines say together."""
SIGN = "|"
"""Between the names of a set in our own files."""


@dataclass(frozen=True, eq=False)
class Found:
    """What an audit says of N pictures and K classes."""

    trust: NDArray[np.float32]
    """(N, K) probability that a class is rightly given, or rightly not; NaN where a picture has no label."""
    shown: NDArray[np.float32]
    """(N, K) probability that a class is shown."""
    suggested: NDArray[np.int8]
    """(N, K) 1 or 0: the given set with its suspects turned round."""


def found(audit: Audit) -> Found:
    """Return what an audit left."""
    return Found(*(arrays.array(audit.id, TOGETHER, name) for name in ("trust", "shown", "suggested")))


def given_set(sample: Sample) -> tuple[int, ...] | None:
    """Return the classes that a sample's source gives it; None where it has no label."""
    return None if sample.labels is None else tuple(sample.labels)


def decided_set(row: Review | None) -> tuple[int, ...] | None:
    """Return the classes that people put in place of the given ones; None where they did not."""
    if row is None or row.decision != RELABEL or row.labels is None:
        return None
    return tuple(row.labels)


def text_of(labels: Sequence[int] | None, class_names: Sequence[str]) -> str:
    """Return a set in one cell: ``cat|dog``, ``[]`` where none is in it, nothing for no label.

    A JSON list where a class has the sign between them in its name, or where the one name looks like a list.
    """
    if labels is None:
        return ""
    names = [class_names[label] for label in labels]
    joined = SIGN.join(names)
    is_plain = names and read_set(joined, SIGN) == names
    return joined if is_plain else json.dumps(names, ensure_ascii=False)


def set_in(text: str, classes: Names) -> tuple[int, ...] | None:
    """Return what ``text_of`` wrote, in any order; None where a name is no class, or nothing stands there."""
    if not text.strip():
        return None
    found = [classes.number(name) for name in read_set(text.strip(), SIGN)]
    return None if None in found else tuple(sorted(one for one in set(found) if one is not None))
