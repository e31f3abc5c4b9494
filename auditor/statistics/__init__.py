"""What can be said about labels from arrays alone: trust, suggestions, rates, promises. Pure functions."""

from auditor.statistics.intervals import Interval, rate_interval
from auditor.statistics.noise import (
    ClassPair,
    ClassReport,
    ErrorsLeft,
    NoiseRate,
    Transition,
)
from auditor.statistics.predictions import (
    probabilities_from_array,
    probabilities_from_cells,
    read_predictions,
    rows_of_table,
    witness_from_frame,
    witness_from_probabilities,
)
from auditor.statistics.probabilities import guess_error_probability
from auditor.statistics.promises import Exchangeability, MoreRows, Promise
from auditor.statistics.rates import first_interval, part_intervals
from auditor.statistics.regrading import trust_in_given
from auditor.statistics.running import Looks, RunningPromise, running_promises
from auditor.statistics.sentences import engine_sentence, headline
from auditor.statistics.splits import (
    MOST_SPLITS,
    SplitReport,
    shared_pictures,
    shared_sentence,
    split_reports,
)
from auditor.statistics.strata import Stage
from auditor.statistics.trust import (
    UNKNOWN,
    Combined,
    CrossFit,
    Pool,
    Reading,
    Witness,
    combine,
    knows_by_heart,
    read,
    told,
    trust_sentence,
)
from auditor.statistics.witnesses import (
    NO_CLASS,
    UNLABELED,
    UNSURE,
    Decided,
    Verified,
    row_chunks,
)
from auditor.statistics.zones import draw_zones, share_for_head

__all__ = [
    "MOST_SPLITS",
    "NO_CLASS",
    "UNKNOWN",
    "UNLABELED",
    "UNSURE",
    "ClassPair",
    "ClassReport",
    "Combined",
    "CrossFit",
    "Decided",
    "ErrorsLeft",
    "Exchangeability",
    "Interval",
    "Looks",
    "MoreRows",
    "NoiseRate",
    "Pool",
    "Promise",
    "Reading",
    "RunningPromise",
    "SplitReport",
    "Stage",
    "Transition",
    "Verified",
    "Witness",
    "annotators",
    "combine",
    "draw_zones",
    "engine_sentence",
    "first_interval",
    "guess_error_probability",
    "headline",
    "knows_by_heart",
    "noise",
    "part_intervals",
    "probabilities_from_array",
    "probabilities_from_cells",
    "promises",
    "rate_interval",
    "read",
    "read_predictions",
    "row_chunks",
    "rows_of_table",
    "running_promises",
    "share_for_head",
    "shared_pictures",
    "shared_sentence",
    "split_reports",
    "told",
    "trust_in_given",
    "trust_sentence",
    "witness_from_frame",
    "witness_from_probabilities",
]
