"""How far each label is to be trusted: witnesses, one pool of them, and what is read off it."""

from auditor.statistics.trust.combining import Calibrated, Combined, Guess, Votes, combine
from auditor.statistics.trust.pool import UNKNOWN, CrossFit, Pool, told
from auditor.statistics.trust.reading import Reading, read
from auditor.statistics.trust.sentences import trust_sentence
from auditor.statistics.trust.witnesses import Witness, knows_by_heart, rank_percentiles

__all__ = [
    "UNKNOWN",
    "Calibrated",
    "Combined",
    "CrossFit",
    "Guess",
    "Pool",
    "Reading",
    "Votes",
    "Witness",
    "combine",
    "knows_by_heart",
    "rank_percentiles",
    "read",
    "told",
    "trust_sentence",
]
