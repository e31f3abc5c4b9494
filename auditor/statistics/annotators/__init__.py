"""Several answers a picture: the likeliest class, and how good each annotator is."""

from auditor.statistics.annotators.agreement import Agreement, agreement
from auditor.statistics.annotators.answers import Answers
from auditor.statistics.annotators.asking import gains_of_one_more, whom_to_ask
from auditor.statistics.annotators.consensus import Consensus, consensus
from auditor.statistics.annotators.described import described, number

__all__ = [
    "Agreement",
    "Answers",
    "Consensus",
    "agreement",
    "consensus",
    "described",
    "gains_of_one_more",
    "number",
    "whom_to_ask",
]
