"""Auditing masks: which are wrong, where, and what they should be."""

from auditor.labels.masks.deciding import changed, classes_of, decide, in_words, is_only_wrong, regions_of
from auditor.labels.masks.kind import KIND
from auditor.labels.masks.pixels import Region
from auditor.labels.masks.results import given_masks, mask_verdicts, masks_of_engines
from auditor.labels.masks.why import region_sentences

__all__ = [
    "KIND",
    "Region",
    "changed",
    "classes_of",
    "decide",
    "given_masks",
    "in_words",
    "is_only_wrong",
    "mask_verdicts",
    "masks_of_engines",
    "region_sentences",
    "regions_of",
]
