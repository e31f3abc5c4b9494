"""Which numbers are wrong, what should they be, and what does a person say about them?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import streamlit as st

from app.panels import downloads, fiftyone, random_looks
from app.server import pictures
from app.session import readers, sign_in, state, words
from app.session.access import OWNER
from app.session.failures import shown
from app.session.words import plain
from auditor.audits import statements
from auditor.catalog.records import Audit, Dataset
from auditor.ground.numbers import figure, number_text
from auditor.ground.vocabulary import DECISIONS, EXCLUDE, KEEP, LABEL, RELABEL, UNSURE, VERDICTS
from auditor.numbers import exporting, listing
from auditor.review import decisions, random_sample

MOST_LISTED = 2_000
SIDE = 480
ALIKE, ALIKE_SIDE = 4, 160
"""Samples beside each number to compare with, and the pixels a side that are sent of them."""
SUSPECTS, SAMPLE, DONE = "Suspects", "Random sample", "Checked"


def picture(dataset: Dataset, sample_id: int) -> None:
    """The sample as large as there is room."""
    st.image(pictures.encoded(dataset.id, sample_id, SIDE), alt=f"Sample {sample_id}", width=SIDE)


def answers(
    names: dict[str, tuple[str, str]],
    act: Callable[[str], None],
    *,
    number: float | None,
    key: str,
    undo: Callable[[], Any] | None = None,
) -> None:
    """One button each of ``names`` (its words and its key) by decision, and a field for another number."""
    with st.container(horizontal=True, gap="xsmall"):
        for name, (text, shortcut) in names.items():
            st.button(text, shortcut=shortcut, on_click=act, args=(name,), key=f"{key}_{name}")
        if undo is not None:
            st.button("Undo", icon=":material/undo:", shortcut="z", on_click=undo)
    with (
        st.form(f"{key}_form", border=False),
        st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"),
    ):
        st.number_input("Another number", value=number, format="%.10g", key=f"{key}_number")
        st.form_submit_button("Save this number", on_click=act, args=(LABEL,))


def alike(dataset: Dataset, audit: Audit, sample_id: int, number: float, tone: str) -> None:
    """Trusted samples with about this number, to compare with."""
    found = listing.alike(
        readers.given_numbers(dataset), readers.score_table(audit), number, ALIKE, sample_id
    )
    st.caption(f"Trusted, near :{tone}[{figure(number)}]")
    with st.container(horizontal=True, key=f"alike_{tone}"):
        for one, given in found:
            st.image(
                pictures.encoded(dataset.id, one, ALIKE_SIDE),
                caption=number_text(given),
                alt=f"Sample {one}: {number_text(given)}",
                width="stretch",
            )


def typed(key: str) -> float | None:
    """What stands in the number field."""
    value = st.session_state[f"{key}_number"]
    return None if value is None else float(value)


def decide(
    dataset: Dataset, audit: Audit, reviewer: str, row: dict[str, Any], key: str, decision: str
) -> None:
    """Record what a person pressed about a suspect."""
    number = None
    if decision in (RELABEL, LABEL):  # what is taken is what is shown
        number = float(row["suggested"]) if decision == RELABEL else typed(key)
        decision = RELABEL
    with shown():
        decisions.decide(
            dataset.id, row["sample_id"], decision, number=number, reviewer=reviewer, audit_id=audit.id
        )


def review(dataset: Dataset, audit: Audit, reviewer: str) -> None:
    """The most suspicious number that nobody has decided on."""
    page = listing.suspects(dataset, audit, top=MOST_LISTED).page
    waiting, suspects = page[page.decision.isna()], page[page.is_label_issue]
    finish = (
        f"{words.count(suspects.decision.notna().sum())} of {words.plural(len(suspects), 'suspect')} checked"
    )
    st.caption(f"{finish}, the most suspicious first.")
    if waiting.empty:
        st.success("Every number of this list is checked.")
        return
    row: dict[str, Any] = {str(name): value for name, value in waiting.iloc[0].items()}
    row["sample_id"] = int(row["sample_id"])
    left, right = st.columns(2)
    with left:
        picture(dataset, row["sample_id"])
    with right:
        st.caption(f"{plain(row['filepath'])}")
        with st.container(horizontal=True, gap="large"):
            given = f":orange[Given {plain(dataset.class_names[0])}]"
            st.metric(given, number_text(row["given"]), width="content")
            between = f"{figure(row['suggested_low'])} to {figure(row['suggested_high'])}"
            st.metric(f":blue[Suggested] {between}", figure(row["suggested"]), width="content")
        key = f"number_{audit.id}_{row['sample_id']}"
        offered = {
            name: (DECISIONS[name].button, DECISIONS[name].key) for name in (KEEP, RELABEL, EXCLUDE, UNSURE)
        }
        act = partial(decide, dataset, audit, reviewer, row, key)
        undo = partial(decisions.undo_last, dataset.id, reviewer)
        answers(offered, act, number=float(row["given"]), key=key, undo=undo)
        before, after = st.columns(2)
        with before:
            alike(dataset, audit, row["sample_id"], row["given"], "orange")
        with after:
            alike(dataset, audit, row["sample_id"], row["suggested"], "blue")


def verify(dataset: Dataset, audit: Audit, reviewer: str) -> None:
    """Judge randomly drawn samples without a look at what is given or suggested."""
    waiting = random_sample.pending(dataset.id)
    if not waiting:
        random_looks.offer(dataset)
    else:
        draw_id, sample_id = waiting[0]
        key = f"blind_{draw_id}_{sample_id}"

        def act(verdict: str) -> None:
            number = typed(key) if verdict == LABEL else None
            with shown():
                random_sample.record(draw_id, sample_id, verdict, number=number, reviewer=reviewer)

        left, right = st.columns(2)
        with left:
            picture(dataset, sample_id)
        with right:
            st.caption(f"{words.plural(len(waiting), 'sample')} to judge. What is the right number?")
            offered = {
                EXCLUDE: ("No number fits", VERDICTS[EXCLUDE].keys[0]),
                UNSURE: (VERDICTS[UNSURE].button, VERDICTS[UNSURE].keys[0]),
            }
            answers(offered, act, number=None, key=key)
    random_looks.take_back(dataset, reviewer)
    random_looks.known(dataset, audit)


def decided(dataset: Dataset, audit: Audit) -> None:
    """What people decided, as a table."""
    page = listing.suspects(dataset, audit, top=dataset.num_samples).page
    columns = ["sample_id", "filepath", "given", "suggested", "decision", "cleaned", "reviewer"]
    found: pd.DataFrame = page[page.decision.notna()][columns]
    st.dataframe(found, hide_index=True)


def cleaned_table(name: str, audit_id: int) -> bytes:
    """The cleaned numbers as a CSV."""
    with TemporaryDirectory() as place:
        out = Path(place) / "cleaned.csv"
        exporting.export(name, out, audit_id=audit_id)
        return out.read_bytes()


dataset, bar = state.screen("Numbers")
audit = state.require_audit(dataset)
with bar:
    if sign_in.may(OWNER):
        st.download_button(
            "Download the cleaned numbers",
            partial(cleaned_table, dataset.name, audit.id),
            f"{downloads.file_stem(dataset.name)}-cleaned.csv",
            "text/csv",
            key="cleaned_download",
            on_click="ignore",
            icon=":material/download:",
        )
reviewer = state.require_reviewer("Every decision is kept with your name, and you can undo each one.")
view = st.radio(
    "View", [SUSPECTS, SAMPLE, DONE], key="numbers_view", horizontal=True, label_visibility="collapsed"
)
with shown():
    if view == SAMPLE:
        verify(dataset, audit, reviewer)
    elif view == DONE:
        decided(dataset, audit)
    else:
        review(dataset, audit, reviewer)
        st.caption(plain(statements.noise_rate_now(audit).sentence))
if sign_in.may(OWNER):
    with shown(), st.expander("FiftyOne", icon=":material/open_in_new:"):
        fiftyone.draw(dataset)
