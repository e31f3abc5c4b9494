"""Many decisions in one step, each batch undone in one: what it will cost is said before it happens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from app.server import bench
from app.session import words
from app.session.failures import shown
from auditor.catalog.records import Audit, Dataset
from auditor.review import decisions

MOST = 5_000
"""Largest batch: more than a person would answer for in one step."""
MOST_PAIRS = 6
"""Pairs of classes that are listed one by one; the rest is counted."""


def offer(dataset: Dataset, audit: Audit, reviewer: str, queue: Mapping[str, Any]) -> None:
    """A popover that accepts the top of the list on screen, and undoes what was accepted."""
    with st.popover("Accept many", icon=":material/done_all:", width="stretch"), shown():
        _accept(dataset, audit, reviewer, queue)
        _undo(dataset, reviewer)


def _accept(dataset: Dataset, audit: Audit, reviewer: str, queue: Mapping[str, Any]) -> None:
    top = st.number_input(
        "Accept the suggestions of the most suspicious",
        1,
        MOST,
        20,
        step=10,
        key="suspects_top",
        help="undecided samples of the list shown here",
    )
    page = bench.queue_page(audit, {**queue, "undecided": True}, limit=int(top))
    changes, wrong = decisions.suggestions(page)
    if not changes:
        st.write("No undecided sample of this list has a suggestion.")
        return
    basis = (
        "a guess"
        if audit.summary.get("error_probability_is_guess", True)
        else "calibrated on verified samples"
    )
    st.write(
        f"{words.plural(len(changes), 'label')} would change; about **{wrong:.1f}** of these changes are expected "
        f"to be wrong ({basis}). They go into the export as accepted unseen: they do not count as found errors, "
        "and the next audit does not trust them."
    )
    pairs = _pairs(page, dataset.class_names)
    st.dataframe(pairs.head(MOST_PAIRS), hide_index=True, height="content")
    rest = pairs.iloc[MOST_PAIRS:]
    if len(rest):
        st.caption(f"and {rest.labels.sum():,} more in {words.plural(len(rest), 'other pair')}")
    if st.button(f"Accept {len(changes)}", type="primary", key="suspects_accept"):
        batch = decisions.accept(dataset.id, audit.id, changes, reviewer=reviewer)
        st.session_state["suspects_batch"] = (batch, len(changes), wrong)
        _refresh()
        st.rerun()


def _pairs(page: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """What would change into what, the most frequent first."""
    page = page[(page.suggested_label >= 0) & (page.suggested_label != page.given_label)]
    counted = page.groupby(["given_label", "suggested_label"]).size().sort_values(ascending=False)
    return pd.DataFrame(
        {
            "given": [names[given] for given, _ in counted.index],
            "becomes": [names[suggested] for _, suggested in counted.index],
            "labels": counted.to_numpy(),
        }
    )


def _undo(dataset: Dataset, reviewer: str) -> None:
    last = st.session_state.get("suspects_batch")
    if last is None:
        return
    batch, number, wrong = last
    st.success(f"{words.plural(number, 'suggestion')} accepted, about {wrong:.1f} of them wrong.")
    if st.button("Undo this batch", key="suspects_undo_batch", icon=":material/undo:"):
        undone = decisions.undo_batch(dataset.id, batch, reviewer)
        del st.session_state["suspects_batch"]
        st.toast(f"{words.plural(undone, 'decision')} taken back.")
        _refresh()
        st.rerun()


def _refresh() -> None:
    """Let the bench read its page again."""
    st.session_state["suspects_refresh"] = st.session_state.get("suspects_refresh", 0) + 1
