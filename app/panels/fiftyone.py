"""Hand the audit to FiftyOne and take decisions back, by jobs.

FiftyOne holds a database connection a process and takes seconds to import, so the app never loads it.
"""

from __future__ import annotations

import shlex

import streamlit as st

from app.panels import jobs as panel
from app.session import state, words
from app.session.words import plain
from auditor import jobs
from auditor.catalog.records import Dataset


def draw(dataset: Dataset) -> None:
    """Two buttons and what came of the last push and pull."""
    with st.container(horizontal=True):
        panel.start_button(
            "Push to FiftyOne", "push", dataset, key="export_fiftyone_push", icon=":material/upload:"
        )
        panel.start_button(
            "Pull decisions",
            "pull",
            dataset,
            who=state.reviewer(),
            key="export_fiftyone_pull",
            icon=":material/download:",
        )
    st.caption("A push takes the newest audit there; then open FiftyOne's own app from a terminal:")
    st.code(f"auditor fiftyone {shlex.quote(dataset.name)} open", language=None)
    panel.watch(lambda: jobs.listed("push", "pull", dataset_id=dataset.id), _draw_result)


def _draw_result(job: jobs.Job) -> None:
    found = job.result or {}
    if job.kind == "push":
        st.success(
            f"{words.plural(found['num_samples'], 'sample', 'are')} in FiftyOne, {found['num_added']:,} of "
            f"them new."
        )
        for note in found["notes"]:
            st.caption(plain(note))
        return
    taken = sum(found["counts"].values())
    st.success(f"{words.plural(taken, 'decision')} came from FiftyOne; {len(found['listed'])} to check.")
    for listed in found["listed"]:
        st.text(" ".join(str(value) for value in listed.values()))
