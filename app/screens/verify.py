"""How many labels are wrong, and what can be promised about the list of suspects?"""

from __future__ import annotations

import streamlit as st

from app import components
from app.panels import reviewers, statements
from app.session import readers, state, words
from app.session.failures import shown
from auditor.audits import settle
from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import PROMISES, RATE
from auditor.review import random_sample


def choose_purpose(dataset: Dataset, key: str) -> str:
    """Where a ranking stands: from its head, for promises, or uniformly."""
    usual = random_sample.usual_purpose(dataset.name)
    if usual == RATE:
        return RATE
    says = {
        PROMISES: "Promises: most rows from the head of the ranking, and about every second one is a wrong label",
        RATE: "Noise rate: every label with the same chance",
    }
    chosen = st.radio("What the draw is for", list(says), format_func=says.__getitem__, key=key)
    return str(chosen)


def offer_draw(dataset: Dataset) -> None:
    """The first draw, with the reason for it."""
    with st.container(border=True, width=720):
        st.markdown(
            "A list of suspects cannot say how many labels are wrong, because it is not a random sample. "
            "A few hundred labels, drawn at random and judged without seeing the suggestion, can: they give the "
            "noise rate with an interval and a promise about how many flags are false."
        )
        labeled = dataset.num_samples - readers.class_counts(dataset).get(-1, 0)
        size = st.number_input(
            "Samples to draw",
            1,
            max(1, labeled),
            max(1, random_sample.next_size(dataset.id)),
            step=10,
            key="verify_size",
            width=220,
        )
        purpose = choose_purpose(dataset, "verify_purpose")
        if st.button("Draw at random and start", type="primary", key="verify_draw"):
            random_sample.draw(dataset.name, int(size), purpose=purpose)
            st.rerun()
        st.caption("You may skip this. Then nothing is promised: the list stays a ranking with a guess.")
        state.link("suspects", "Skip to Suspects", ":material/arrow_forward:")


def offer_more(dataset: Dataset, audit: Audit | None) -> None:
    """What to do when everything drawn is judged."""
    with st.container(border=True):
        st.markdown("**Every drawn sample is judged.** Use the verdicts in the ranking, or draw more.")
        left, right = st.columns(2)
        if audit is not None and left.button(
            "Use these verdicts in the ranking", type="primary", key="verify_settle"
        ):
            with st.spinner("Computing the weights of the engines and calibrating …"):
                settle.settle(audit.id)
            state.go_to("suspects")
        more = random_sample.next_size(dataset.id)
        with right:
            purpose = choose_purpose(dataset, "verify_more_purpose") if more else RATE
        if more and right.button(f"Draw {more:,} more", key="verify_more"):
            random_sample.draw(dataset.name, more, purpose=purpose)
            st.rerun()


dataset, bar = state.screen("Verify")
audit = state.chosen_audit(dataset)
drawn = random_sample.num_drawn(dataset.id)
if not drawn:
    with shown():
        offer_draw(dataset)
    st.stop()
reviewer = state.require_reviewer("Every verdict is kept with your name, and you can undo each one.")
bench, known = st.columns([2.6, 1], gap="large")
pending = random_sample.pending(dataset.id)
items = readers.dealt_items(dataset.id, pending, reviewer)
with bench:
    # Also when all is judged: the last verdict can be taken back.
    components.verify_bench(
        key="verify_bench",
        connection=readers.connection(dataset),
        class_names=dataset.class_names,
        reviewer=reviewer,
        items=items,
        total=drawn + len(items) - len(pending),  # planted controls are told apart nowhere
        last=readers.last_blind_item(dataset.id, reviewer),
        on_milestone=lambda: None,
    )
    if not pending:
        with shown():
            offer_more(dataset, audit)
with known, shown():
    st.subheader("What is known so far", anchor=False)
    statements.verified(dataset, audit, judged=drawn - len(pending))
    st.caption(
        f"{words.count(drawn - len(pending))} of {words.count(drawn)} judged. "
        "New numbers appear after every ten, promises at the end; half of the rows calibrate them, "
        "half may be trusted by the next audit."
    )
with st.expander("How well people judge"), shown():
    reviewers.draw(dataset)
