"""How far each label is to be trusted: witnesses, one pool of them, and what is read off it."""

from auditor.statistics.trust.combining import Combined, combine
from auditor.statistics.trust.pool import UNKNOWN, CrossFit, Pool, told
from auditor.statistics.trust.predictions import (
    probabilities_from_array,
    probabilities_from_cells,
    read_predictions,
    rows_of_table,
    witness_from_frame,
    witness_from_probabilities,
)
from auditor.statistics.trust.reading import Reading, read
from auditor.statistics.trust.regrading import trust_in_given
from auditor.statistics.trust.sentences import trust_sentence
from auditor.statistics.trust.why import engine_sentence, headline
from auditor.statistics.trust.witnesses import Witness, knows_by_heart, rank_percentiles

__all__ = [
    "UNKNOWN",
    "Combined",
    "CrossFit",
    "Pool",
    "Reading",
    "Witness",
    "combine",
    "engine_sentence",
    "headline",
    "knows_by_heart",
    "probabilities_from_array",
    "probabilities_from_cells",
    "rank_percentiles",
    "read",
    "read_predictions",
    "rows_of_table",
    "told",
    "trust_in_given",
    "trust_sentence",
    "witness_from_frame",
    "witness_from_probabilities",
]
