"""What a session remembers: the chosen dataset and audit, and who is reviewing.

Keys that more than one screen reads are named here; a screen's own keys start with the screen's name.
"""

from __future__ import annotations

import secrets
from typing import Any, NoReturn
from urllib.parse import unquote

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import components
from app.session import choices, readers, sign_in
from app.session.words import plain
from auditor.catalog import audits
from auditor.catalog.records import Audit, Dataset
from auditor.ground.errors import AuditorError
from auditor.ground.vocabulary import LABELS, MULTILABEL, REGRESSION, SEGMENTATION
from auditor.results import queues

DATASET = "dataset"
CHOSEN, NEXT = "chosen_dataset", "next_dataset"
"""Kept apart from the widget: Streamlit may forget what a select box of another page showed."""
AUDIT = "audit"
MASKS, NUMBERS, SETS, AUDIT_TITLE = "Masks", "Numbers", "Sets", "Audit"
"""Titles of the screens for masks, for numbers, for sets of classes, and for labels of every kind."""
PAGE_OF = {
    SEGMENTATION: (MASKS, "masks", ":material/texture:"),
    REGRESSION: (NUMBERS, "numbers", ":material/123:"),
    MULTILABEL: (SETS, "sets", ":material/label:"),
}
"""Title, file and icon of the page on which labels that are no classes are reviewed and exported."""
VERIFY, RANDOM_SAMPLE = "Verify", "Random sample"
"""Title of the screen for random samples of classes, and the name of the view for those of other labels."""
REVIEWER = "reviewer"
QUEUE_SHOW, QUEUE_GIVEN, QUEUE_SUGGESTED = "suspects_show", "suspects_given", "suspects_suggested"
QUEUE_PAIR, QUEUE_AGREEMENT, QUEUE_SPLIT = "suspects_pair", "suspects_agreement", "suspects_split"
QUEUE_PEOPLE = "suspects_people"
QUEUE_SEARCH = "suspects_search"
ALL = "all"
REGION = "map_region"
"""What was drawn on a map: its ``audit``, ``engine`` and ``polygon``."""
SAMPLE = "sample"
"""In the address of a page for masks, numbers or sets: the sample to begin with."""
NO_FILTER = {
    **dict.fromkeys((QUEUE_GIVEN, QUEUE_SUGGESTED, QUEUE_PAIR, QUEUE_SPLIT, QUEUE_PEOPLE), ALL),
    QUEUE_AGREEMENT: "0",
}
"""Choices of Suspects' filters that narrow nothing."""
NAME_LENGTH = 60
GUEST = "Guest"


def choose_dataset() -> Dataset | None:
    """The dataset that the sidebar names; draws the choice there. None on an empty machine."""
    names = [row.name for row in readers.all_datasets()]
    if not names:
        return None
    # What was just picked, then the address, then what this session looked at: never simply the newest.
    wanted = (st.session_state.pop(NEXT, None), st.query_params.get(DATASET), st.session_state.get(CHOSEN))
    chosen = next((name for name in wanted if name in names), names[0])
    st.session_state[DATASET] = st.session_state[CHOSEN] = chosen
    st.sidebar.selectbox("Dataset", names, key=DATASET, on_change=_take_choice)
    st.query_params[DATASET] = chosen
    return readers.dataset(chosen)


def _take_choice() -> None:
    go_to_dataset(st.session_state[DATASET])


def go_to_dataset(name: str) -> None:
    """Let the sidebar name this dataset from the next run on."""
    st.session_state[NEXT] = name


def address(**more: str) -> dict[str, str]:
    """Return what every link carries: the chosen dataset and audit, and what more is said."""
    dataset = st.session_state.get(NEXT) or st.session_state.get(CHOSEN)
    if dataset is None:
        return more
    audit = choices.remembered(dataset).get(AUDIT)
    return {DATASET: dataset, **({AUDIT: audit} if audit else {}), **more}


def link(page: str, label: str, icon: str, **look: Any) -> None:
    """A link to a screen that stays with the dataset and audit, in another tab too; none to a closed screen."""
    if not sign_in.opens(page.rstrip("_")):
        return
    st.page_link(f"screens/{page}.py", label=label, icon=icon, query_params=address(), **look)


def go_to(page: str, **filters: str) -> NoReturn:
    """Go to a screen with these filters, staying with the dataset and audit.

    Raises:
        AuditorError: whoever is here may not open it.
    """
    if not sign_in.opens(page.rstrip("_")):
        raise AuditorError(sign_in.SENTENCES[sign_in.person().role])
    dataset = st.session_state.get(NEXT) or st.session_state[CHOSEN]
    choices.put(dataset, **filters)
    said = {key: code for key, code in filters.items() if code not in (ALL, "0")}
    st.switch_page(f"screens/{page}.py", query_params=address(**said))


def head(title: str, dataset: Dataset | None = None) -> DeltaGenerator:
    """The bar above a screen: its title and the dataset's name; returns the room on its right."""
    bar = st.container(
        key="top_bar",
        horizontal=True,
        vertical_alignment="center",
        horizontal_alignment="distribute",
        gap="small",
    )
    with bar.container(horizontal=True, vertical_alignment="center", width="content", gap="small"):
        st.title(title, anchor=False)
        if dataset is not None:
            st.markdown(f":material/database: **{plain(dataset.name)}**", width="content")
    return bar.container(
        horizontal=True,
        vertical_alignment="center",
        horizontal_alignment="right",
        width="content",
        gap="small",
    )


def headline(key: str, number: str, text: str) -> None:
    """Draw what a screen says first: one number, large, or none, and what it counts. Both are Markdown."""
    with st.container(key=f"huge_{key}"):
        st.markdown(f"**{number}** {text}" if number else text)


def screen(title: str) -> tuple[Dataset, DeltaGenerator]:
    """Open a screen about a dataset: draws its bar; returns the dataset and the bar's room on the right."""
    name = st.session_state.get(CHOSEN)
    room = head(title, None if name is None else readers.dataset(name))
    dataset = require_dataset()
    if not is_for(title, dataset):
        _say_where(dataset, title)
    return dataset, room


def is_for(title: str, dataset: Dataset) -> bool:
    """Return whether a screen about a dataset is about what this one's labels are."""
    if dataset.task in PAGE_OF:
        return title in (AUDIT_TITLE, PAGE_OF[dataset.task][0])
    return title not in [one for one, _, _ in PAGE_OF.values()]


def _say_where(dataset: Dataset, asked: str) -> NoReturn:
    """Point to the screen for what this dataset's labels are; ends the page."""
    if dataset.task in PAGE_OF:
        title, page, icon = PAGE_OF[dataset.task]
        if asked == VERIFY and sign_in.opens(page):  # a view of that page
            st.session_state[f"{page}_view"] = RANDOM_SAMPLE
            go_to(page)
        st.info(
            f"The labels of {plain(dataset.name)} are {LABELS[dataset.task]}: review and export them on the page "
            f"{title}.",
            icon=":material/info:",
        )
        link(page, f"Go to {title}", icon)
    else:
        st.info(
            f"The labels of {plain(dataset.name)} are classes: review them on the page Suspects.",
            icon=":material/info:",
        )
        link("suspects", "Go to Suspects", ":material/rule:")
    st.stop()
    raise AssertionError("st.stop() ends the page")


def asked_sample(dataset: Dataset) -> int | None:
    """The sample of the dataset that the page's address asks for, by number."""
    said = str(st.query_params.get(SAMPLE, ""))
    return int(said) if said.isdecimal() and int(said) < dataset.num_samples else None


def require_dataset() -> Dataset:
    """The chosen dataset; stops the page with a hint where there is none."""
    name = st.session_state.get(CHOSEN)
    if name is None:
        st.info(
            "There is no dataset yet. Import one, or try the demo on the page Home.", icon=":material/info:"
        )
        link("import_", "Import a dataset", ":material/upload:")
        st.stop()
    return readers.dataset(name)


def require_audit(dataset: Dataset) -> Audit:
    """The finished audit to look at (the newest, or the one chosen in the sidebar); stops without one."""
    chosen = chosen_audit(dataset)
    if chosen is None:
        st.info(
            f"{plain(dataset.name)} has no finished audit yet: start one, or wait for the one that is running.",
            icon=":material/info:",
        )
        link("audit", "Go to Audit", ":material/play_circle:")
        st.stop()
        raise AssertionError("st.stop() ends the page")
    return chosen


def chosen_audit(dataset: Dataset) -> Audit | None:
    """The finished audit that the sidebar names (a choice only where there are several), or None without one."""
    finished = audits.finished(readers.audits_of(dataset.id))
    if len(finished) < 2:
        return finished[0] if finished else None
    by_id = {row.id: row for row in finished}
    with st.sidebar:
        chosen = choices.select(
            "Audit",
            list(by_id),
            dataset=dataset.name,
            key=AUDIT,
            format_func=lambda number: audit_title(by_id[number]),
        )
    if chosen != finished[0].id:
        shown, newer = audit_number(by_id[chosen]), audit_number(finished[0])
        st.caption(f":material/history: Audit {shown} is shown; audit {newer} is newer.")
    return by_id[chosen]


def open_suspects(
    *,
    given: int | None = None,
    suggested: int | None = None,
    agreement: int = 0,
    split: str | None = None,
) -> None:
    """Go to Suspects with these filters."""
    filters = NO_FILTER | {
        QUEUE_SHOW: "suspects",
        QUEUE_GIVEN: ALL if given is None else str(given),
        QUEUE_SUGGESTED: ALL if suggested is None else str(suggested),
        QUEUE_AGREEMENT: str(agreement),
        QUEUE_SPLIT: ALL if split is None else split_code(split),
    }
    go_to("suspects", **filters)


def open_sample(sample: int) -> None:
    """Go to Suspects with one sample, whatever is said of it."""
    go_to("suspects", **{**NO_FILTER, QUEUE_SEARCH: f"#{sample}"})


def split_code(split: str) -> str:
    """A split in the page's address, apart from "any": a split may be called ``all``."""
    return f"in-{split}"


def audit_number(audit: Audit) -> int:
    """Return which audit of its dataset it is, counted from 1."""
    return sum(one.id <= audit.id for one in readers.audits_of(audit.dataset_id))


def audit_title(audit: Audit) -> str:
    """Return how a list names an audit."""
    engines = "1 engine" if len(audit.engines) == 1 else f"{len(audit.engines)} engines"
    return f"No. {audit_number(audit)} · {audit.preset} · {engines} · {audit.created_at:%d %b %H:%M}"


def reviewer() -> str:
    """Return who reviews: as signed in, else of this session, else as this browser remembers it, else a guest
    of its own.

    Nobody is asked before the first verdict: the sidebar shows the name, which can be changed there.
    """
    if (signed_in := sign_in.person().name) is not None:
        return signed_in
    if REVIEWER not in st.session_state:
        remembered = st.context.cookies.get(components.NAME_COOKIE)
        known = unquote(remembered)[:NAME_LENGTH] if isinstance(remembered, str) else ""
        st.session_state[REVIEWER] = known or f"{GUEST} {secrets.token_hex(2)}"
    return str(st.session_state[REVIEWER])


def show_reviewer() -> None:
    """The reviewer in the sidebar, with a way to change it, or to sign out."""
    if (person := sign_in.person()).name is not None:
        sign_in.draw(person)
        return
    name = reviewer()
    is_guest = name.startswith(GUEST)
    says = "Give your name" if is_guest else f"Reviewer: {plain(name)}"
    with st.sidebar.popover(says, icon=":material/person:", width="stretch"):
        if is_guest:
            st.caption(f"Every verdict is kept with a name; yours is {plain(name)} until you give another.")
        changed = st.text_input(
            "Your name", value="" if is_guest else name, max_chars=NAME_LENGTH, key="reviewer_change"
        ).strip()
        if changed and changed != name:
            if is_guest:  # the same person: what this window holds waits for nobody else
                queues.leave(name)
            st.session_state[REVIEWER] = changed
            st.rerun()
    with st.sidebar:
        components.remember_name(name)
