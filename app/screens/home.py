"""What is here, how far is it, and what comes next?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from app.panels import demo, progress, worst
from app.session import next_steps, readers, sign_in, state, words
from app.session.access import OWNER
from app.session.failures import shown
from app.session.readers import Status
from app.session.words import plain
from auditor import api
from auditor.catalog.records import Dataset
from auditor.ground import wording
from auditor.ground.vocabulary import CLASSIFICATION

WORST, ALONE, FEW_THUMBS = 9, 12, 4
"""Pictures of a card, of the only one, and of a row."""
AT_A_GLANCE, A_PAGE = 6, 20
"""Datasets up to which each is a card and nothing is to be chosen; more are rows, so many a page."""
NEWEST = "newest first"
SORTS: dict[str, Callable[[Dataset], Any]] = {
    NEWEST: lambda row: row.created_at,
    "by name": lambda row: row.name.lower(),
    "largest first": lambda row: -row.num_samples,
}

bar = state.head("Label auditor")
is_owner = sign_in.may(OWNER)


def draw_dataset(seen: Status, *, as_row: bool, is_alone: bool, is_first: bool) -> None:
    """One dataset: its next step as one line and one button, how far it is as a bar, and some of its pictures.

    Of rows the button to press next is that of the first one.
    """
    row, step = seen.dataset, next_steps.of(seen)
    with st.container(border=True):
        if as_row:
            thumbs, head, action, more = st.columns([1.1, 2.9, 1.4, 0.35], vertical_alignment="center")
        else:
            head, action, more = st.columns([4, 1.4, 0.35], vertical_alignment="center")
        with head.container(gap="xxsmall", key=f"home_head_{row.id}"):
            st.markdown(f"**{plain(row.name)}** &ensp; {plain(what(row))}")
            if as_row:
                st.markdown(plain(step.sentence))
            else:
                number, rest = step.headline
                state.headline(f"home_{row.id}", number, plain(rest))
        if sign_in.opens(step.page) and action.button(
            step.button,
            key=f"home_next_{row.id}",
            type="primary" if is_first or not as_row else "secondary",
            width="stretch",
        ):
            state.go_to_dataset(row.name)
            state.go_to(step.page)
        if is_owner:
            with more.popover(
                "", icon=":material/more_horiz:", key=f"home_more_{row.id}", help="Rename or delete"
            ):
                draw_changes(row)
        if seen.decided:  # before that the sentence says it all
            with head if as_row else st.container():
                progress.draw(seen, says_left=step.page != "export")  # there the headline says it
        with shown():
            if as_row:
                with thumbs:
                    worst.draw_small(row, seen.finished, FEW_THUMBS)
            else:
                count = ALONE if is_alone else WORST
                has_suspects = seen.finished is not None and worst.draw(row, seen.finished, count)
                has_found = row.task == CLASSIFICATION and not has_suspects and worst.draw_found(row, count)
                if not (has_suspects or has_found):
                    worst.draw_some(row, count)


def what(row: Dataset) -> str:
    """``340 pictures, 10 classes``."""
    return f"{words.plural(row.num_samples, 'picture')}, {wording.kind_of_labels(row.task, len(row.classes))}"


def draw_changes(row: Dataset) -> None:
    """Another name, or no dataset at all; the files it was imported from stay."""
    name = st.text_input("Name", value=row.name, max_chars=100, key=f"home_name_{row.id}").strip()
    is_new = bool(name) and name != row.name
    if st.button("Rename", key=f"home_rename_{row.id}", disabled=not is_new):
        with shown():
            readers.rename(row, name)
            if st.session_state.get(state.CHOSEN) == row.name:
                state.go_to_dataset(name)
            st.rerun()
    st.divider()
    sure = st.checkbox(
        "Delete the dataset with its audits and decisions; your own files stay", key=f"home_sure_{row.id}"
    )
    if st.button("Delete", key=f"home_delete_{row.id}", disabled=not sure, icon=":material/delete:"):
        with shown():
            for folder in api.remove(row.name):
                st.toast(f"Not deleted: {plain(str(folder))} (see `auditor doctor`).")
            st.rerun()


def draw_start() -> None:
    """Draw what an empty machine offers, and how it looks."""
    with st.container(key="home_start"):
        words_of_it, picture = st.columns([5, 6], gap="large", vertical_alignment="center")
    with words_of_it:
        state.headline("home_start", "Find the wrong labels", "\\\namong your pictures.")
        st.write(
            "An audit learns from your pictures and shows what looks mislabeled. "
            "One key settles a whole card; at the end you take home a clean table."
        )
        with st.container(horizontal=True):
            if st.button("Import your pictures", type="primary", icon=":material/upload:", key="home_import"):
                st.switch_page("screens/import_.py")
            demo.offer()
        st.caption(
            "Your files are not changed. The demo is of 1,797 handwritten digits, a tenth of them mislabeled "
            "on purpose: nothing is downloaded, and it takes minutes on a laptop."
        )
    with picture:
        st.html(demo.card())


def choose(rows: list[Dataset]) -> tuple[list[Dataset], bool]:
    """The datasets of one page, and whether each is one row; nothing to choose where there are few."""
    if len(rows) <= AT_A_GLANCE:
        return rows, False
    with st.container(horizontal=True, vertical_alignment="bottom"):
        part = st.text_input("Search", key="home_search", placeholder="A part of a name", width=260)
        order = st.selectbox("Sort", list(SORTS), key="home_sort", width=180)
        look = st.segmented_control(
            "Show as", ["Rows", "Cards"], default="Rows", required=True, key="home_look"
        )
    found = [row for row in rows if part.strip().lower() in row.name.lower()]
    found.sort(key=SORTS[order], reverse=order == NEWEST)
    if not found:
        st.write("No dataset has that in its name.")
    pages = max(1, -(-len(found) // A_PAGE))
    page = st.pagination(pages, key=f"home_page_{pages}") if pages > 1 else 1
    return found[(page - 1) * A_PAGE : page * A_PAGE], look == "Rows"


datasets = readers.all_datasets()
if datasets and is_owner:
    with bar:
        state.link("import_", "Import", ":material/upload:")
some, as_rows = choose(datasets)
with st.container(key="home_alone" if len(datasets) == 1 else "home_cards"):
    for place, one in enumerate(some):
        draw_dataset(readers.status(one), as_row=as_rows, is_alone=len(datasets) == 1, is_first=place == 0)
if not datasets and is_owner:
    draw_start()
elif not datasets:
    st.write("There is no dataset yet. An owner of the app imports one.")
