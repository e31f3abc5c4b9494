"""The app's buttons for FiftyOne: the same push and pull, in a process of their own."""

from __future__ import annotations

from typing import Any

import pytest

from app.panels import fiftyone
from auditor.errors import AuditorError
from auditor.review import decisions
from tests.helpers import Digits


def test_run__pushes_and_pulls(database: Any, audited: tuple[Digits, int]) -> None:
    pushed = fiftyone.run("digits", "push")
    assert (pushed["num_samples"], pushed["num_added"]) == (300, 300)
    view = database.load_dataset("digits")
    view.limit(2).tag_samples("exclude")
    pulled = fiftyone.run("digits", "pull", reviewer="ada")
    assert sum(pulled["counts"].values()) == 2
    log = decisions.log_frame(1)
    assert log.decision.tolist() == ["exclude", "exclude"]
    assert set(log.reviewer) == {"ada"}
    with pytest.raises(AuditorError, match="no dataset 'none'"):
        fiftyone.run("none", "push")
