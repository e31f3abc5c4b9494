"""Which given labels are probably wrong, and what does a person say about them?"""

from __future__ import annotations

import streamlit as st

from app import components
from app.panels import filters
from app.session import readers, state, words
from auditor.results import statements
from auditor.review import drawing

dataset, bar = state.screen("Suspects")
audit = state.require_audit(dataset)
reviewer = state.reviewer()
queue = filters.choose(dataset, audit, bar)
components.review_bench(
    key="suspects_bench",
    connection=readers.connection(dataset),
    audit_id=audit.id,
    class_names=dataset.names_of_today,
    reviewer=reviewer,
    queue=queue,
    mode="cards",
    links=True,
)
if audit.summary.error_probability_is_guess:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        num_drawn = drawing.num_drawn(dataset.id)
        why = "this ranking uses too few random samples" if num_drawn else "no random sample is drawn"
        st.caption(f"How likely a label is wrong is a guess: {why}.", width="content")
        if not num_drawn:
            state.link("verify", "How many are wrong? Verify", ":material/fact_check:")
shown = state.audit_number(audit)
number = audit.summary.num_label_issues
found = (
    f"{words.count(number)} of {dataset.num_samples:,} given labels are suspects of audit {shown}."
    if number
    else f"Audit {shown}: {statements.no_suspects(audit)}"
)
st.caption(found)
