"""What can be said about labels from arrays alone: trust, suggestions, rates, promises. Pure functions."""

from auditor.statistics.confusions import Confusions
from auditor.statistics.consensus import Consensus, combine
from auditor.statistics.influence import Influence, influence
from auditor.statistics.intervals import Interval, rate_interval
from auditor.statistics.noise import (
    ClassPair,
    ClassReport,
    ErrorsLeft,
    NoiseRate,
    OutOfFold,
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
from auditor.statistics.witnesses import (
    LEAST_WEIGHT,
    NO_CLASS,
    UNLABELED,
    UNSURE,
    Decided,
    Verified,
    Witness,
    row_chunks,
)
from auditor.statistics.zones import draw_zones, share_for_head

__all__ = [
    "LEAST_WEIGHT",
    "MOST_SPLITS",
    "NO_CLASS",
    "UNLABELED",
    "UNSURE",
    "ClassPair",
    "ClassReport",
    "Confusions",
    "Consensus",
    "Decided",
    "ErrorsLeft",
    "Exchangeability",
    "Influence",
    "Interval",
    "Looks",
    "MoreRows",
    "NoiseRate",
    "OutOfFold",
    "Promise",
    "RunningPromise",
    "SplitReport",
    "Stage",
    "Transition",
    "Verified",
    "Witness",
    "combine",
    "draw_zones",
    "engine_sentence",
    "first_interval",
    "guess_error_probability",
    "headline",
    "influence",
    "noise",
    "part_intervals",
    "probabilities_from_array",
    "probabilities_from_cells",
    "promises",
    "rate_interval",
    "read_predictions",
    "row_chunks",
    "rows_of_table",
    "running_promises",
    "share_for_head",
    "shared_pictures",
    "shared_sentence",
    "split_reports",
    "trust_in_given",
    "witness_from_frame",
    "witness_from_probabilities",
]
