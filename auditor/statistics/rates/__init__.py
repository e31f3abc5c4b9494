"""How many labels are wrong: what random samples say of it, and what lists may promise. Knows nothing of trust."""

from auditor.statistics.rates import noise, promises
from auditor.statistics.rates.intervals import Interval
from auditor.statistics.rates.noise import ClassReport, ErrorsLeft, NoiseRate
from auditor.statistics.rates.parts import first_interval, part_intervals
from auditor.statistics.rates.probabilities import calibrate, guess_error_probability
from auditor.statistics.rates.promises import Exchangeability, MoreRows, Promise, check_draws
from auditor.statistics.rates.splits import (
    MOST_SPLITS,
    SplitReport,
    shared_pictures,
    shared_sentence,
    split_reports,
)
from auditor.statistics.rates.strata import Stage
from auditor.statistics.rates.verified import (
    NO_CLASS,
    SUM_TOLERANCE,
    UNLABELED,
    UNSURE,
    Decided,
    Verified,
    given_margins,
    row_chunks,
)
from auditor.statistics.rates.zones import draw_zones, share_for_head

__all__ = [
    "MOST_SPLITS",
    "NO_CLASS",
    "SUM_TOLERANCE",
    "UNLABELED",
    "UNSURE",
    "ClassReport",
    "Decided",
    "ErrorsLeft",
    "Exchangeability",
    "Interval",
    "MoreRows",
    "NoiseRate",
    "Promise",
    "SplitReport",
    "Stage",
    "Verified",
    "calibrate",
    "check_draws",
    "draw_zones",
    "first_interval",
    "given_margins",
    "guess_error_probability",
    "noise",
    "part_intervals",
    "promises",
    "row_chunks",
    "share_for_head",
    "shared_pictures",
    "shared_sentence",
    "split_reports",
]
