"""How many labels are wrong, and what can be promised about the list of suspects?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from app import components
from app.panels import random_looks, statements, worst
from app.session import next_steps, readers, state, words
from app.session.failures import shown
from app.session.words import plain
from auditor.catalog import reviews
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import FOUND_WRONG, PROMISES, RATE
from auditor.results import settle
from auditor.review import blind, drawing

MOST_WRONG = 12
EXAMPLES = 8
"""Samples with the same given label beside the one that is judged."""
AHEAD = 30
"""Samples whose examples travel; the page runs again after ten verdicts."""


def choose_purpose(dataset: Dataset, key: str, size: int) -> str:
    """Return where a ranking stands: from its head, for promises, or uniformly."""
    if drawing.usual_purpose(dataset.name, drawing.FIRST_SIZE) == RATE:
        return RATE
    says = {
        PROMISES: "How clean the list of suspects is: most pictures come from its top",
        RATE: "Only how many labels are wrong: each has the same chance",
    }
    first = list(says).index(drawing.usual_purpose(dataset.name, size))
    chosen = st.radio(
        "What to measure",
        list(says),
        first,
        format_func=says.__getitem__,
        key=key,
        label_visibility="collapsed",
    )
    return str(chosen)


def next_step(dataset: Dataset, audit: Audit | None, promise: str) -> None:
    """The one thing to do when everything drawn is judged, with the ``promise`` about it, and a further draw."""
    more, step = drawing.next_size(dataset.id), next_steps.of(readers.status(dataset))
    is_new = audit is not None and not readers.is_settled(audit)
    if is_new or step.page == "suspects":
        st.markdown(plain(" ".join(filter(None, ["" if is_new else step.sentence, promise]))))
    with st.container(horizontal=True, vertical_alignment="center"):
        if audit is not None and is_new:
            if st.button("Use these verdicts in the ranking", type="primary", key="verify_settle"):
                with st.spinner("Computing the weights of the engines and calibrating …"):
                    settle.settle(audit.id)
                state.go_to("suspects")
        else:
            if st.button(step.button, type="primary", key="verify_next"):
                state.go_to(step.page)
        if more:
            with st.popover(f"Check {more:,} more", icon=":material/add:"):
                purpose = choose_purpose(dataset, "verify_more_purpose", more)
                if st.button(f"Check {more:,} more", key="verify_more"):
                    drawing.draw(dataset.name, more, purpose=purpose)
                    st.rerun()


def draw_wrong(dataset: Dataset) -> None:
    """Draw some of the labels that random samples showed to be wrong: what the share above is made of."""
    given, names = readers.given_labels(dataset), dataset.class_names
    said = ask(reviews.verdicts, dataset.id)
    seen = {sample: row.label for (_, sample), row in said.items() if row.decision in FOUND_WRONG}
    if not seen:
        return
    st.markdown(
        f"**{len(seen):,} of the {words.plural(len(said), 'random picture')} "
        f"{'was' if len(seen) == 1 else 'were'} labeled wrong**: :orange[given label] → :blue[what it shows]"
    )
    shown_first = [
        (one, names[given[one]], "" if label is None else names[label])
        for one, label in list(seen.items())[:MOST_WRONG]
    ]
    worst.row(dataset, shown_first, key="verify_wrong")


dataset, bar = state.screen("Verify")
audit = state.chosen_audit(dataset)
drawn = drawing.num_drawn(dataset.id)
if not drawn:
    with shown():
        random_looks.offer(dataset, lambda size: choose_purpose(dataset, "verify_purpose", size))
    st.stop()
reviewer = state.reviewer()
pending = blind.pending(dataset.id)
items = readers.dealt_items(dataset.id, pending, reviewer)
judged = drawn - len(pending)
examples = readers.examples_of(
    dataset,
    audit,
    [one["given"] for one in items[:AHEAD] if one["given"] >= 0],
    apart_from={sample for _, sample in pending},
    limit=EXAMPLES,
)
# Also when all is judged: the last verdict can be taken back.
components.verify_bench(
    key="verify_bench",
    connection=readers.connection(dataset),
    class_names=dataset.names_of_today,
    reviewer=reviewer,
    items=items,
    total=drawn,
    examples=examples,
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
        draw_wrong(dataset)
