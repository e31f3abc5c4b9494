"""Which given labels are probably wrong, and what does a person say about them?"""

from __future__ import annotations

import streamlit as st

from app import components
from app.panels import bulk, filters
from app.session import readers, state, words
from app.session.words import plain
from auditor.review import random_sample

head, hint, door = st.container(key="suspects_head").columns([1, 3.4, 1.5], vertical_alignment="center")
head.title("Suspects")
dataset = state.require_dataset()
audit = state.require_audit(dataset)
if not random_sample.num_drawn(dataset.id):
    with hint.container(horizontal=True, vertical_alignment="center", horizontal_alignment="right"):
        label = "**Verify 200 random samples first**: without them nothing can be promised."
        st.page_link("screens/verify.py", label=label, icon=":material/fact_check:")
reviewer = state.require_reviewer("Every decision is kept with your name, and you can undo each one.")
queue = filters.choose(dataset, audit)
with door:
    bulk.offer(dataset, audit, reviewer, queue)
components.review_bench(
    key="suspects_bench",
    connection=readers.connection(dataset),
    audit_id=audit.id,
    class_names=dataset.class_names,
    reviewer=reviewer,
    queue=queue,
    refresh=st.session_state.get("suspects_refresh", 0),
)
guesses = {
    "the chance that a label is wrong": audit.summary.get("error_probability_is_guess", True),
    "the chance that a suggestion is right": not audit.summary.get("suggestion_is_calibrated", False),
}
guessed = " and ".join(what for what, is_guess in guesses.items() if is_guess)
if guessed:
    st.caption(f"A guess, because too few samples are verified: {guessed}.")
st.caption(
    f"{words.count(audit.summary.get('num_label_issues'))} of {dataset.num_samples:,} given labels are above the "
    f"suggested cut of audit {audit.id}. The queue is ordered by the chance that the label is wrong: at a steady "
    f"pace this finds the most errors per minute. Root of the files: {plain(dataset.root)}"
)
