"""Many decisions in one step, each batch undone in one: what it will cost is said before it happens."""

from __future__ import annotations

import streamlit as st

from app import words
from app.failures import shown
from auditor import reviewing
from auditor.catalog.models import AuditTable, DatasetTable

MOST = 5_000
"""Largest batch: more than a person would answer for in one step."""


def offer(dataset: DatasetTable, audit: AuditTable, reviewer: str) -> None:
    """A popover that accepts the top of the list, and undoes what was accepted."""
    with st.popover("Accept many", icon=":material/done_all:", width="stretch"), shown():
        _accept(dataset, audit, reviewer)
        _undo(dataset, reviewer)


def _accept(dataset: DatasetTable, audit: AuditTable, reviewer: str) -> None:
    assert dataset.id is not None
    assert audit.id is not None
    top = st.number_input(
        "Accept the suggestions of the most suspicious",
        1,
        MOST,
        20,
        step=10,
        key="suspects_top",
        help="undecided samples",
    )
    changes, wrong = reviewing.preview_top(dataset.id, audit.id, int(top))
    if not changes:
        st.write("No undecided sample has a suggestion.")
        return
    basis = (
        "a guess"
        if audit.summary.get("error_probability_is_guess", True)
        else "calibrated on verified samples"
    )
    st.write(
        f"{words.plural(len(changes), 'label')} would change; about **{wrong:.1f}** of these changes are expected "
        f"to be wrong ({basis})."
    )
    if st.button(f"Accept {len(changes)}", type="primary", key="suspects_accept"):
        batch, wrong = reviewing.accept_top(dataset.id, audit.id, int(top), reviewer=reviewer)
        st.session_state["suspects_batch"] = (batch, len(changes), wrong)
        _refresh()
        st.rerun()


def _undo(dataset: DatasetTable, reviewer: str) -> None:
    assert dataset.id is not None
    last = st.session_state.get("suspects_batch")
    if last is None:
        return
    batch, number, wrong = last
    st.success(f"{words.plural(number, 'suggestion')} accepted, about {wrong:.1f} of them wrong.")
    if st.button("Undo this batch", key="suspects_undo_batch", icon=":material/undo:"):
        undone = reviewing.undo_batch(dataset.id, batch, reviewer)
        del st.session_state["suspects_batch"]
        st.toast(f"{words.plural(undone, 'decision')} taken back.")
        _refresh()
        st.rerun()


def _refresh() -> None:
    """Let the bench read its page again."""
    st.session_state["suspects_refresh"] = st.session_state.get("suspects_refresh", 0) + 1
