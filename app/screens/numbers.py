"""Which numbers are wrong, what should they be, and what does a person say about them?"""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app.panels import downloads, fiftyone, judging, random_looks
from app.session import readers, sign_in, state, words
from app.session.access import OWNER
from app.session.failures import shown
from app.session.words import plain
from auditor.audits import statements
from auditor.catalog.records import Audit, Dataset
from auditor.ground.numbers import figure, number_text
from auditor.numbers import listing
from auditor.review import blind

MOST_LISTED = 2_000
ALIKE = 4
"""Samples beside each number to compare with."""
SUSPECTS, SAMPLE, DONE = "Suspects", "Random sample", "Checked"


def alike(dataset: Dataset, audit: Audit, sample_id: int, number: float, kind: str) -> dict[str, Any]:
    """Trusted samples with about this number, to compare with."""
    found = listing.alike(
        readers.given_numbers(dataset), readers.score_table(audit), number, ALIKE, sample_id
    )
    samples = [(one, number_text(given)) for one, given in found]
    return {"kind": kind, "title": f"Trusted, near {figure(number)}", "samples": samples}


def asked(dataset: Dataset, audit: Audit, row: dict[str, Any]) -> dict[str, Any]:
    """A suspect as the screen shows it: its number, the suggested one, and what to compare it with."""
    sample, given, suggested = int(row["sample_id"]), float(row["given"]), float(row["suggested"])
    between = f"{figure(row['suggested_low'])} to {figure(row['suggested_high'])}"
    name = dataset.class_names[0]
    return {
        "sample": sample,
        "path": row["filepath"],
        "sides": [
            {"kind": "given", "title": f"Given {name}", "value": number_text(given)},
            {"kind": "suggested", "title": "Suggested", "note": between, "value": figure(suggested)},
        ],
        "number": given,
        "alike": [
            alike(dataset, audit, sample, given, "given"),
            alike(dataset, audit, sample, suggested, "suggested"),
        ],
    }


def review(dataset: Dataset, audit: Audit, reviewer: str) -> None:
    """The most suspicious number that nobody has decided on."""
    page = listing.suspects(dataset, audit, top=MOST_LISTED).page
    waiting, suspects = page[page.decision.isna()], page[page.is_label_issue]
    row = None if waiting.empty else {str(name): value for name, value in waiting.iloc[0].items()}
    item = None if row is None else asked(dataset, audit, row)
    if item is not None:
        checked = words.count(suspects.decision.notna().sum())
        item["progress"] = f"{checked} of {words.plural(len(suspects), 'suspect')} checked"
    judging.ask(
        dataset,
        "numbers_bench",
        partial(judging.decide_number, dataset, audit, reviewer),
        item=item,
        actions=judging.on_number(float(row["suggested"])) if row is not None else [],
        finished="Every number of this list is checked.",
        can_undo=len(waiting) < len(page),
    )


def verify(dataset: Dataset, audit: Audit, reviewer: str) -> None:
    """Judge randomly drawn samples without a look at what is given or suggested."""
    if not blind.pending(dataset.id):
        random_looks.offer(dataset)
    question = {"question": "What is the right number?", "number": None}
    judging.blind(dataset, reviewer, judging.BLIND_NUMBER, lambda _: question)
    random_looks.known(dataset, audit)


def decided(dataset: Dataset, audit: Audit) -> None:
    """What people decided, as a table."""
    page = listing.suspects(dataset, audit, top=dataset.num_samples).page
    columns = ["sample_id", "filepath", "given", "suggested", "decision", "cleaned", "reviewer"]
    found: pd.DataFrame = page[page.decision.notna()][columns]
    if found.empty:
        st.write("Nobody has checked a number yet.")
        return
    st.dataframe(found, hide_index=True)


dataset, bar = state.screen("Numbers")
audit = state.require_audit(dataset)
with bar:
    view = st.radio(
        "View", [SUSPECTS, SAMPLE, DONE], key="numbers_view", horizontal=True, label_visibility="collapsed"
    )
    if sign_in.may(OWNER):
        downloads.button(
            dataset,
            "Export the cleaned numbers",
            "cleaned.csv",
            {"audit_id": audit.id},
            key="cleaned_download",
            icon=":material/download:",
        )
if sign_in.may(OWNER):
    downloads.made(dataset)
reviewer = state.reviewer()
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
