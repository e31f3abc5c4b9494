"""The words of the product, said once: decisions, their kinds, and the columns of an export."""

from __future__ import annotations

DECISIONS = ("keep", "relabel", "exclude", "unsure", "multiple", "none", "unreadable")
"""``unsure``: the reviewer cannot tell; ``multiple``: several classes apply; ``none``: no class applies."""
FOUND_WRONG = ("relabel", "exclude", "multiple", "none", "unreadable")
"""Decisions that say the given label alone is not right."""
UNSEEN = "unseen"
"""A suggestion that was accepted in one step, without a look at each sample."""
KINDS = ("suspect", "blind", UNSEEN)
"""How a label was decided: looking at the sample and the suggestion, looking at a randomly drawn sample without the
suggestion, or accepting a suggestion without a look."""
EXPORT_COLUMNS = (
    *("sample_id", "filepath", "given_label", "cleaned_label", "action", "is_label_issue", "trust_score"),
    *("suggested_label", "suggested_probability"),
    *("review_decision", "review_labels", "reviewer", "reviewed_at", "review_kind"),
    *("umn_epsilon", "l2b_alpha", "l2b_beta", "coteaching_selected", "choicenet_rho"),
    *("umn_trust", "l2b_trust", "coteaching_trust", "choicenet_trust", "cross_entropy_trust"),
)
"""Every column that our export adds, in its order."""
EXPORT_MARKS = frozenset(
    ["sample_id", "filepath", "given_label", "cleaned_label", "action", "review_decision"]
)
"""A header with all of these is an export of ours."""
REVIEW_COLUMNS = (
    *("review_decision", "review_labels", "cleaned_label", "reviewer", "reviewed_at", "review_kind"),
)
