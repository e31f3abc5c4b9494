"""Which classes are mistaken for which, and which cannot be judged at all?"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.panels import charts
from app.session import readers, state, words
from app.session.failures import shown
from auditor.audits import statements
from auditor.catalog.records import Dataset
from auditor.outputs.report import conflict_sentence
from auditor.statistics import Interval, Transition, shared_sentence

MOST_IN_MATRIX = 40
KINDS_OF_COPIES = (
    "Kinds of copies: exact has the same pixels, near has nearly the same ones, features was proposed by a "
    "backbone's features and has nearly the same pixels once the pictures are moved or mirrored."
)
SHARE_BAR = st.column_config.ProgressColumn(format="percent", min_value=0.0, max_value=1.0, width=130)


def draw_matrix(dataset: Dataset, transition: Transition) -> None:
    """The transition matrix; a chosen cell leads to its suspects."""
    st.subheader("How true classes turn into given labels", anchor=False)
    st.caption(transition.sentence)
    names = dataset.class_names
    cells = charts.transition_cells(transition, names)
    if len(names) > MOST_IN_MATRIX:
        st.caption(f"With {len(names):,} classes, only the most frequent confusions are listed.")
        top = cells[cells.true != cells.given].nlargest(200, "share").reset_index(drop=True)
        chosen = st.dataframe(
            top[["true", "given", "share", "low", "high"]], hide_index=True, on_select="rerun",
            selection_mode="single-row", key="classes_pairs",
        )  # fmt: skip
        if chosen["selection"]["rows"]:
            row = top.iloc[chosen["selection"]["rows"][0]]
            state.open_suspects(given=int(row.given_label), suggested=int(row.true_label))
        return
    seen = st.altair_chart(
        charts.transition_chart(cells, names), on_select="rerun", selection_mode="cell", key="classes_matrix"
    )
    picked = seen["selection"]["cell"] if seen else []
    if picked:
        given, true = names.index(picked[0]["given"]), names.index(picked[0]["true"])
        state.open_suspects(given=given, suggested=None if given == true else true)
    st.caption(
        "Click a cell to see the suspects with that given label that probably belong to that true class."
    )


def draw_classes(dataset: Dataset, said: statements.Statements) -> None:
    """One row a class, and a door to its suspects."""
    st.subheader("Each class", anchor=False)
    table = pd.DataFrame(
        {
            "class": [dataset.class_names[row.label] for row in said.classes],
            "samples": [row.num_samples for row in said.classes],
            "doubtful": [row.num_doubtful for row in said.classes],
            "expected wrong": [round(row.expected_wrong, 1) for row in said.classes],
            "share wrong": [row.expected_wrong / max(1, row.num_samples) for row in said.classes],
            "verified share": [_verified(row.interval) for row in said.classes],
            "note": [row.why if row.cannot_be_judged else "" for row in said.classes],
        }
    )
    chosen = st.dataframe(
        table,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key="classes_table",
        column_config={
            "class": st.column_config.TextColumn(width=110),
            "samples": st.column_config.NumberColumn(width=75),
            "doubtful": st.column_config.NumberColumn(width=75),
            "expected wrong": st.column_config.NumberColumn(width=115),
            "share wrong": SHARE_BAR,
            "verified share": st.column_config.TextColumn(width=110),
            "note": st.column_config.TextColumn("cannot be judged because", width="large"),
        },
    )
    if chosen["selection"]["rows"]:
        state.open_suspects(given=said.classes[chosen["selection"]["rows"][0]].label, suggested=None)
    st.caption("Choose a row to see the suspects of that class.")


def draw_splits(said: statements.Statements) -> None:
    """One row a split, and a door to its suspects."""
    if not said.splits:
        return
    st.subheader("Each split", anchor=False)
    table = pd.DataFrame(
        {
            "split": [row.name for row in said.splits],
            "labels": [row.num_labeled for row in said.splits],
            "doubtful": [row.num_doubtful for row in said.splits],
            "expected wrong": [round(row.expected_wrong, 1) for row in said.splits],
            "share wrong": [row.expected_wrong / max(1, row.num_labeled) for row in said.splits],
            "found": [row.num_found for row in said.splits],
            "verified share": [_verified(row.interval) for row in said.splits],
            "also in another split": [row.num_copied for row in said.splits],
            "near copy there": [row.num_alike for row in said.splits],
        }
    )
    chosen = st.dataframe(
        table,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key="classes_splits",
        column_config={"share wrong": SHARE_BAR},
    )
    if chosen["selection"]["rows"]:
        state.open_suspects(split=said.splits[chosen["selection"]["rows"][0]].name)
    st.caption("Choose a row to see the suspects of that split.")
    if len(said.shared):
        st.caption(shared_sentence(said.splits))
        columns = ["duplicate_group", "sample_id", "filepath", "split", "duplicate_kind", "is_copied"]
        with st.expander("Pictures in more than one split"):
            st.dataframe(said.shared[columns], hide_index=True, key="classes_shared")
            st.caption(KINDS_OF_COPIES)


def _verified(interval: Interval | None) -> str:
    return words.interval(interval.low, interval.high) if interval else ""


def draw_conflicts(dataset: Dataset, said: statements.Statements) -> None:
    """Pairs that trade places, and copies or near copies with different labels."""
    names = dataset.class_names
    trading = [pair for pair in said.class_pairs if pair.trades_places]
    for pair in trading:
        st.warning("Two classes seem to trade places; labels alone cannot tell which is which:")
        st.text(f"{names[pair.first]} and {names[pair.second]}")
    if len(said.conflicts):
        groups = said.conflicts.duplicate_group.nunique()
        st.subheader(f"{words.plural(groups, 'group')} of copies with different labels", anchor=False)
        st.caption(conflict_sentence(said.conflicts))
        shown_rows = said.conflicts.assign(
            given=[words.class_name(names, one) for one in said.conflicts.given_label]
        )
        columns = ["duplicate_group", "sample_id", "filepath", "given", "duplicate_kind", "is_certain"]
        st.dataframe(shown_rows[columns], hide_index=True, height="auto")
        st.caption(KINDS_OF_COPIES)


dataset, bar = state.screen("Classes")
audit = state.require_audit(dataset)
with shown():
    seen = readers.standing(audit)
    said = statements.statements(seen)
    figures = st.columns(4)
    figures[0].metric("Classes", words.count(len(dataset.class_names)))
    figures[1].metric("Wrong labels", words.interval(said.noise_rate.low, said.noise_rate.high))
    figures[2].metric("Found by people", words.count(said.errors_left.found))
    span = f"{words.count(said.errors_left.low)} – {words.count(said.errors_left.high)}"
    figures[3].metric("Not found yet", span, help=said.errors_left.sentence)
    draw_matrix(dataset, statements.transition(seen))
    draw_classes(dataset, said)
    draw_splits(said)
    draw_conflicts(dataset, said)
