"""Auditing numbers: which are wrong, and what they should be."""

from auditor.labels.numbers.kind import KIND, nearest_examples
from auditor.labels.numbers.results import suggested_numbers

__all__ = ["KIND", "nearest_examples", "suggested_numbers"]
