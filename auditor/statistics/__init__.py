"""What can be said about labels from arrays alone: trust, suggestions, rates, promises. Pure functions."""

from auditor.statistics.consensus import Consensus, combine
from auditor.statistics.intervals import Interval, per_class_intervals
from auditor.statistics.noise import ClassPair, ClassReport, ErrorsLeft, NoiseRate, Transition
from auditor.statistics.predictions import (
    probabilities_from_array,
    probabilities_from_cells,
    read_predictions,
    rows_of_table,
    witness_from_frame,
    witness_from_probabilities,
)
from auditor.statistics.promises import Exchangeability, MoreRows, Promise
from auditor.statistics.regrading import trust_in_given
from auditor.statistics.sentences import engine_sentence, headline
from auditor.statistics.splits import (
    MOST_SPLITS,
    SplitReport,
    shared_pictures,
    shared_sentence,
    split_reports,
)
from auditor.statistics.witnesses import (
    LEAST_WEIGHT,
    NO_CLASS,
    UNLABELED,
    UNSURE,
    Verified,
    Witness,
    row_chunks,
)

__all__ = [
    "LEAST_WEIGHT",
    "MOST_SPLITS",
    "NO_CLASS",
    "UNLABELED",
    "UNSURE",
    "ClassPair",
    "ClassReport",
    "Consensus",
    "ErrorsLeft",
    "Exchangeability",
    "Interval",
    "MoreRows",
    "NoiseRate",
    "Promise",
    "SplitReport",
    "Transition",
    "Verified",
    "Witness",
    "combine",
    "engine_sentence",
    "headline",
    "noise",
    "per_class_intervals",
    "probabilities_from_array",
    "probabilities_from_cells",
    "promises",
    "read_predictions",
    "row_chunks",
    "rows_of_table",
    "shared_pictures",
    "shared_sentence",
    "split_reports",
    "trust_in_given",
    "witness_from_frame",
    "witness_from_probabilities",
]
