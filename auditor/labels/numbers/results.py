"""Numbers that an audit suggests, with their intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd

from auditor.catalog.records import Audit
from auditor.results import arrays

TOGETHER = "numbers"
"""In place of an engine's name: what all engines say together."""


def suggested_numbers(audit: Audit) -> pd.DataFrame:
    """Return ``suggested``, ``suggested_low`` and ``suggested_high`` of every sample, (N,) float64 each."""
    middle = np.asarray(arrays.array(audit.id, TOGETHER, "predicted"))
    half_width = audit.summary.half_width or 0.0
    ends = {"suggested_low": middle - half_width, "suggested_high": middle + half_width}
    return pd.DataFrame({"suggested": middle, **ends})
