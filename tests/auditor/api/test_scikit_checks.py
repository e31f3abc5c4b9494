"""scikit-learn's own checks of an estimator: each trains, most of them more than once."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from auditor.api.estimator import LabelAuditor
from tests.auditor.api.test_estimator import TINY


@parametrize_with_checks([LabelAuditor(options=TINY, device="cpu")])
def test_label_auditor__scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)
