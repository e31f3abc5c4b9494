"""How many labels are wrong, and what can be promised about the list of suspects?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from app import components
from app.panels import random_looks, statements
from app.session import readers, state
from app.session.failures import shown
from auditor.audits import settle
from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import PROMISES, RATE
from auditor.review import blind, drawing


def choose_purpose(dataset: Dataset, key: str, size: int) -> str:
    """Where a ranking stands: from its head, for promises, or uniformly."""
    if drawing.usual_purpose(dataset.name, drawing.FIRST_SIZE) == RATE:
        return RATE
    says = {
        PROMISES: "promises about the list: most rows from its head, and about every second one is wrong",
        RATE: "how many are wrong: every label with the same chance",
    }
    first = list(says).index(drawing.usual_purpose(dataset.name, size))
    chosen = st.radio("What the draw is for", list(says), first, format_func=says.__getitem__, key=key)
    return str(chosen)


def offer_draw(dataset: Dataset) -> None:
    """The first draw, with the reason for it, and beside it what so many looks tell."""
    form, buys = st.columns([3, 2], gap="large")
    with form.container(border=True, key="verify_offer"):
        st.subheader("How many labels are wrong?", anchor=False)
        st.write(random_looks.WHY)
        labeled = drawing.num_left(dataset.id)
        size = st.number_input(
            "Samples to draw",
            1,
            max(1, labeled),
            min(
                max(1, labeled),
                st.session_state.get(state.VERIFY_SIZE) or drawing.next_size(dataset.id),
            ),
            step=10,
            key="verify_size",
            width=220,
            help="A list of suspects cannot tell: it is not a random sample.",
        )
        purpose = choose_purpose(dataset, "verify_purpose", int(size))
        with st.container(horizontal=True, vertical_alignment="center"):
            is_wanted = st.button("Draw at random and start", type="primary", key="verify_draw")
            state.link("suspects", "Skip to Suspects", ":material/arrow_forward:", width="content")
        st.caption("Without it nothing is promised: the list stays a ranking with a guess.")
        if is_wanted:
            drawing.draw(dataset.name, int(size), purpose=purpose)
            st.session_state.pop(state.VERIFY_SIZE, None)
            st.rerun()
    if labeled:
        with buys:
            statements.before_draw(size=int(size), labeled=labeled)


def next_step(dataset: Dataset, audit: Audit | None) -> None:
    """The one thing to do when everything drawn is judged, and beside it a further draw."""
    more = drawing.next_size(dataset.id)
    with st.container(horizontal=True, vertical_alignment="center"):
        if audit is None:
            if st.button("Start an audit", type="primary", key="verify_audit"):
                state.go_to("audit")
        elif readers.is_settled(audit):
            if st.button("Review the suspects", type="primary", key="verify_review"):
                state.go_to("suspects")
        elif st.button("Use these verdicts in the ranking", type="primary", key="verify_settle"):
            with st.spinner("Computing the weights of the engines and calibrating …"):
                settle.settle(audit.id)
            state.go_to("suspects")
        if more:
            with st.popover(f"Check {more:,} more", icon=":material/add:"):
                purpose = choose_purpose(dataset, "verify_more_purpose", more)
                if st.button(f"Draw {more:,} more", key="verify_more"):
                    drawing.draw(dataset.name, more, purpose=purpose)
                    st.rerun()


dataset, bar = state.screen("Verify")
audit = state.chosen_audit(dataset)
drawn = drawing.num_drawn(dataset.id)
if not drawn:
    with shown():
        offer_draw(dataset)
    st.stop()
reviewer = state.require_reviewer("Every verdict is kept with your name, and you can undo each one.")
pending = blind.pending(dataset.id)
items = readers.dealt_items(dataset.id, pending, reviewer)
judged = drawn - len(pending)
# Also when all is judged: the last verdict can be taken back.
components.verify_bench(
    key="verify_bench",
    connection=readers.connection(dataset),
    class_names=dataset.class_names,
    reviewer=reviewer,
    items=items,
    total=drawn,
    last=readers.last_blind_item(dataset.id, reviewer),
    on_milestone=lambda: None,
)
with shown():
    if pending:
        with st.container(key="verify_known", horizontal=True, vertical_alignment="center", gap="large"):
            st.markdown(
                "**Known so far**",
                help="New numbers appear after every ten, promises at the end. Half of the rows are used for "
                "them, half may be trusted by the next audit.",
            )
            statements.so_far(dataset, audit, judged=judged)
    else:
        statements.picture(dataset, audit, partial(next_step, dataset, audit), judged=judged)
