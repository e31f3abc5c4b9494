"""Labels drawn at random: the offer of a first draw, and on the pages of other kinds what its verdicts say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

from app.panels import statements as panel
from app.panels import worst
from app.server import encoded_picture, outlined_picture
from app.session import readers
from app.session.failures import shown
from app.session.words import plain, plural
from auditor import kind
from auditor.catalog.records import Audit, Dataset
from auditor.ground.numbers import number_text
from auditor.ground.vocabulary import CLASSIFICATION, REGRESSION, SEGMENTATION
from auditor.results import statements
from auditor.review import blind, drawing

WHY = "Look at pictures chosen at random and say of each whether its label is right."
WHY_MASK = (
    "Look at pictures chosen at random and say of each whether its outlines and their classes are right."
)
WHY_NUMBER = "Look at pictures chosen at random and type the number that you see."
EXAMPLES = 6
"""Pictures of the set above the question."""
SECONDS = 3
"""Of a person for one class, as the offer reckons; for a mask or a number nobody measured it."""


def offer(
    dataset: Dataset,
    choose_purpose: Callable[[int], str] | None = None,
    usual_tolerance: float | None = None,
) -> None:
    """The first draw: pictures of the set, how many to look at, and beside it what so many tell.

    Nothing where every label was drawn. ``choose_purpose`` asks for the purpose of a draw of that size;
    ``usual_tolerance`` of numbers stands there until a draw has one.
    """
    most = drawing.num_left(dataset.id)
    if not most:
        return
    labels = panel.labels_in_words(dataset)
    with st.container(border=True, key="random_offer"):
        if drawing.num_drawn(dataset.id):
            st.subheader("Check more", anchor=False)
        else:
            st.header(f"How many {labels} are wrong?", anchor=False)
            st.write({REGRESSION: WHY_NUMBER, SEGMENTATION: WHY_MASK}.get(dataset.task, WHY))
            _examples(dataset)
        form, buys = st.columns(2, gap="large")
        with form:
            size, tolerance = _ask(dataset, most, usual_tolerance)
            is_started = st.button("Start", type="primary", key="verify_draw", width=220)
            if dataset.task == CLASSIFICATION:
                minutes = plural(max(1, round(SECONDS * size / 60)), "minute")
                st.caption(f"At {SECONDS} seconds each: about {minutes}.")
            purpose = drawing.usual_purpose(dataset.name, size)
            if choose_purpose is not None:
                with st.expander("What else to measure"):
                    purpose = choose_purpose(size)
            if is_started:
                with shown():
                    drawing.draw(dataset.name, size, purpose=purpose, tolerance=tolerance)
                    st.rerun()
        with buys:
            panel.before_draw(size=size, labeled=most, words_of_labels=labels)


def _examples(dataset: Dataset) -> None:
    """Some of the set as they were given: with their class, their outlines or, from low to high, their number."""
    if dataset.task not in (SEGMENTATION, REGRESSION):
        worst.draw_some(dataset, EXAMPLES)
        return
    order = np.arange(dataset.num_samples)
    given = readers.given_numbers(dataset) if dataset.task == REGRESSION else None
    if given is not None:
        order = np.argsort(given, kind="stable")[: np.isfinite(given).sum()]
    spread = np.unique(np.linspace(0, max(0, len(order) - 1), min(EXAMPLES, len(order))).astype(int))
    with st.container(horizontal=True, gap="small", key=f"pictures_some_{dataset.id}"):
        for sample in order[spread].tolist():
            number = "" if given is None else number_text(float(given[sample]))
            st.image(
                outlined_picture(dataset, sample, worst.SIDE)
                if given is None
                else encoded_picture(dataset.id, sample, worst.SIDE),
                caption=f":orange[{plain(number)}]" if number else None,
                alt=f"Sample {sample}{f': {number}' if number else ', with its outlines'}",
                width="stretch",
            )


def _ask(dataset: Dataset, most: int, usual_tolerance: float | None) -> tuple[int, float | None]:
    """Samples to check, and of numbers the tolerance."""
    size = st.number_input(
        "Pictures to check",
        1,
        most,
        min(most, drawing.next_size(dataset.id)),
        step=10,
        key="verify_size",
        width=220,
        help="A list of suspects cannot tell: its pictures are not chosen at random.",
    )
    tolerance = None
    if kind.of(dataset).needs_tolerance:
        known = drawing.tolerance_of(dataset.id)
        tolerance = st.number_input(
            "Tolerance",
            0.0,
            value=usual_tolerance if known is None else known,
            format="%.6g",
            placeholder="for example 0.5",
            key="verify_tolerance",
            width=220,
            help="A given number is wrong where it is farther than this from the one that you see. At first it is "
            "how near suggestions usually come: half the width of the likely range. All samples of a dataset have "
            "the same.",
        )
    return int(size), tolerance


def ask(dataset: Dataset, audit: Audit, judge: Callable[[], None]) -> None:
    """The whole view of random samples: what waits with ``judge``, else what is known and the offer of more."""
    if blind.pending(dataset.id):
        judge()
        known(dataset, audit)
    else:
        known(dataset, audit)
        judge()  # the last verdict can be taken back
        offer(dataset, usual_tolerance=audit.summary.half_width)


def known(dataset: Dataset, audit: Audit) -> None:
    """Draw how many labels are wrong and what is promised about the list, once somebody has judged."""
    judged = blind.num_judged(dataset.id)
    if not judged:
        return
    if blind.pending(dataset.id):
        st.markdown(plain(statements.noise_rate(statements.load(audit.id)).sentence))
    else:
        panel.picture(dataset, audit, lambda promise: st.markdown(promise), judged=judged)
