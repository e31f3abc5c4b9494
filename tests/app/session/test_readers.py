"""What the screens read: the samples to compare with."""

from __future__ import annotations

import numpy as np
import pytest

from app.session import readers
from auditor.catalog import reading
from auditor.review import decisions
from tests.app.conftest import DATASET

pytestmark = pytest.mark.usefixtures("copied_home")


@pytest.mark.parametrize("is_audited", [True, False])
def test_examples_of__those_found_right_come_first_and_none_that_was_found_wrong(is_audited: bool) -> None:
    dataset, audit = reading.audited(DATASET)

    def seen() -> list[int]:
        return readers.examples_of(dataset, audit if is_audited else None, [3], apart_from={7}, limit=8)[3]

    first = seen()
    others = np.flatnonzero(readers.given_labels(dataset) == 3).tolist()
    right = next(one for one in others if one not in (*first, 7))
    said = [(first[0], "relabel", 4), (first[1], "exclude", None), (right, "keep", None)]
    decisions.decide_many(dataset.id, said, reviewer="Ada", audit_id=audit.id)
    after = seen()
    assert after[0] == right
    assert len(after) == 8
    assert not {first[0], first[1]} & set(after)
