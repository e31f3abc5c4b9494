"""Labels drawn at random on the pages of masks and of numbers: the draw, and what its verdicts say."""

from __future__ import annotations

import streamlit as st

from app.session.failures import shown
from app.session.words import plain
from auditor import kind
from auditor.catalog.records import Audit, Dataset
from auditor.ground.wording import percent
from auditor.results import statements
from auditor.review import blind, drawing

WHY = (
    "Labels chosen at random and checked without seeing the suggestion tell it: with an interval, and with a "
    "promise how many suspects are false."
)


def offer(dataset: Dataset) -> None:
    """Ask for a random sample, of numbers with its tolerance; nothing where every label was drawn."""
    most = drawing.next_size(dataset.id)
    if not most:
        return
    with st.form("random_draw", width=560):
        labels = kind.of(dataset)
        st.subheader(f"How many {labels.words} are wrong?", anchor=False)
        st.write(WHY)
        size = st.number_input("Samples to check", 1, value=most)
        tolerance = None
        if labels.needs_tolerance:
            tolerance = st.number_input(
                "Tolerance",
                0.0,
                value=drawing.tolerance_of(dataset.id),
                format="%.6g",
                placeholder="for example 0.5",
                help="A given number is wrong where it is farther than this from the one that you see. All samples "
                "of a dataset have the same.",
            )
        if st.form_submit_button("Choose at random and start", type="primary"):
            with shown():
                purpose = drawing.usual_purpose(dataset.name, int(size))
                drawing.draw(dataset.name, int(size), purpose=purpose, tolerance=tolerance)
                st.rerun()


def known(dataset: Dataset, audit: Audit) -> None:
    """Draw how many labels are wrong and what is promised about the list, once somebody has judged."""
    if not blind.num_judged(dataset.id):
        return
    standing = statements.load(audit.id)
    st.markdown(plain(statements.noise_rate(standing).sentence))
    for level, promise in statements.promises(standing).items():
        st.caption(f"At {percent(level)}: {plain(promise.sentence)}")
