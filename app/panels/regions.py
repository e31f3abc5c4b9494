"""The samples inside a region of the map: their images on the bench, or one decision for all of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from app import components
from app.session import readers, words
from app.session.failures import shown
from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import DECISIONS
from auditor.results import queues
from auditor.review import decisions

MOST_AT_ONCE = 5_000
TAGS = {name: one.of_many for name, one in DECISIONS.items() if one.of_many}


def draw(dataset: Dataset, audit: Audit, queue: dict[str, Any], reviewer: str) -> None:
    """Draw what is inside, the bench on it, and the batch decision."""
    inside = queues.inside(audit, queue["region"])
    given = readers.given_labels(dataset)[inside]
    head, tag = st.columns([2.3, 1.1], vertical_alignment="bottom")
    head.subheader(f"{words.plural(len(inside), 'sample')} in the region", anchor=False)
    numbers, counts = np.unique(given, return_counts=True)
    common = Counter(dict(zip(numbers.tolist(), counts.tolist(), strict=True))).most_common(4)
    head.text(
        ", ".join(f"{words.class_name(dataset.class_names, label)} {number:,}" for label, number in common)
    )
    with tag:
        _tag_all(dataset, audit, inside, reviewer)
    if len(inside):
        bench(dataset, audit, queue, reviewer)


def bench(dataset: Dataset, audit: Audit, queue: dict[str, Any], reviewer: str) -> None:
    """The grid beside the map: what is selected in one is marked in the other."""
    components.review_bench(
        key="map_bench",
        connection=readers.connection(dataset),
        audit_id=audit.id,
        class_names=dataset.names_of_today,
        reviewer=reviewer,
        queue=queue,
        mode="grid",
        refresh=st.session_state.get("map_version", 0),
    )


def _tag_all(dataset: Dataset, audit: Audit, inside: NDArray[np.int64], reviewer: str) -> None:
    with (
        st.popover("Decide on all", icon=":material/select_all:", width="stretch", disabled=not len(inside)),
        shown(),
    ):
        decision = st.selectbox("All of them", list(TAGS), format_func=TAGS.__getitem__, key="map_tag")
        label = None
        if DECISIONS[decision].takes == "class":
            label = st.selectbox(
                "Class",
                list(dataset.classes),
                format_func=dataset.class_names.__getitem__,
                key="map_tag_class",
            )
        only_open = st.checkbox("Only those that nobody decided on", value=True, key="map_tag_open")
        decided = decisions.outcomes(dataset.id)
        chosen = np.setdiff1d(inside, list(decided)) if only_open else inside
        if len(chosen) > MOST_AT_ONCE:
            st.warning(
                f"At most {MOST_AT_ONCE:,} samples can be decided in one step; circle a smaller region."
            )
            return
        if st.button(
            f"Decide on {len(chosen):,}", type="primary", key="map_tag_go", disabled=not len(chosen)
        ):
            batch = decisions.decide_many(
                dataset.id,
                [(one, decision, label) for one in chosen.tolist()],
                reviewer=reviewer,
                audit_id=audit.id,
            )
            st.session_state["map_batch"] = (batch, len(chosen))
            st.session_state["map_version"] = st.session_state.get("map_version", 0) + 1
            st.rerun()
        if "map_batch" in st.session_state:
            batch, number = st.session_state["map_batch"]
            if st.button(
                f"Undo the last {words.plural(number, 'decision')}", key="map_undo", icon=":material/undo:"
            ):
                decisions.undo_batch(dataset.id, batch, reviewer)
                del st.session_state["map_batch"]
                st.session_state["map_version"] = st.session_state.get("map_version", 0) + 1
                st.rerun()
