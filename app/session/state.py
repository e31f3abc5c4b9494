"""What a session remembers: the chosen dataset and audit, and who is reviewing.

Keys that more than one screen reads are named here; a screen's own keys start with the screen's name.
"""

from __future__ import annotations

from urllib.parse import unquote

import streamlit as st

from app import components
from app.session import choices, readers
from app.session.words import plain
from auditor.catalog import audits
from auditor.catalog.records import Audit, Dataset

DATASET = "dataset"
AUDIT = "audit"
REVIEWER = "reviewer"
QUEUE_SHOW, QUEUE_GIVEN, QUEUE_SUGGESTED = "suspects_show", "suspects_given", "suspects_suggested"
QUEUE_PAIR, QUEUE_AGREEMENT, QUEUE_SPLIT = "suspects_pair", "suspects_agreement", "suspects_split"
ALL = "all"
NAME_LENGTH = 60


def choose_dataset() -> Dataset | None:
    """The dataset that the sidebar names; draws the choice there. None on an empty machine."""
    names = [row.name for row in readers.all_datasets()]
    if not names:
        return None
    wanted = st.session_state.pop("next_dataset", None)
    if wanted in names:
        st.session_state[DATASET] = wanted
    elif st.session_state.get(DATASET) not in names:
        linked = st.query_params.get(DATASET)
        st.session_state[DATASET] = linked if linked in names else names[0]
    st.sidebar.selectbox("Dataset", names, key=DATASET)
    st.query_params[DATASET] = st.session_state[DATASET]
    return readers.dataset(st.session_state[DATASET])


def go_to_dataset(name: str) -> None:
    """Let the sidebar name this dataset from the next run on."""
    st.session_state["next_dataset"] = name


def require_dataset() -> Dataset:
    """The chosen dataset; stops the page with a hint where there is none."""
    name = st.session_state.get(DATASET)
    if name is None:
        st.info(
            "There is no dataset yet. Import one, or try the demo on the page Home.", icon=":material/info:"
        )
        st.page_link("screens/import_.py", label="Import a dataset", icon=":material/upload:")
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
        st.page_link("screens/audit.py", label="Go to Audit", icon=":material/play_circle:")
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
        st.caption(f":material/history: Audit {chosen} is shown; audit {finished[0].id} is newer.")
    return by_id[chosen]


def open_suspects(
    *,
    given: int | None = None,
    suggested: int | None = None,
    agreement: int = 0,
    split: str | None = None,
) -> None:
    """Go to Suspects with these filters."""
    filters = {
        QUEUE_SHOW: "undecided",
        QUEUE_GIVEN: ALL if given is None else str(given),
        QUEUE_SUGGESTED: ALL if suggested is None else str(suggested),
        QUEUE_PAIR: ALL,
        QUEUE_AGREEMENT: str(agreement),
        QUEUE_SPLIT: ALL if split is None else split_code(split),
    }
    choices.put(st.session_state[DATASET], **filters)
    st.switch_page("screens/suspects.py")


def split_code(split: str) -> str:
    """A split in the page's address, apart from "any": a split may be called ``all``."""
    return f"in-{split}"


def audit_title(audit: Audit) -> str:
    """How a list names an audit."""
    engines = "1 engine" if len(audit.engines) == 1 else f"{len(audit.engines)} engines"
    return f"No. {audit.id} · {audit.preset} · {engines} · {audit.created_at:%d %b %H:%M}"


def reviewer() -> str | None:
    """The reviewer's name: of this session, or as this browser remembers it."""
    if REVIEWER not in st.session_state:
        remembered = st.context.cookies.get(components.NAME_COOKIE)
        if isinstance(remembered, str) and remembered:
            st.session_state[REVIEWER] = unquote(remembered)[:NAME_LENGTH]
    return st.session_state.get(REVIEWER)


def require_reviewer(purpose: str) -> str:
    """The reviewer's name; asks for it once and stops the page until it is there."""
    name = reviewer()
    if name:
        return name
    with st.form("reviewer_form", width=460):
        st.markdown(f"**Who is reviewing?** {purpose}")
        typed = st.text_input(
            "Your name", max_chars=NAME_LENGTH, placeholder="for example Ada", key="reviewer_name"
        )
        if st.form_submit_button("Start", type="primary") and typed.strip():
            st.session_state[REVIEWER] = typed.strip()
            st.rerun()
    st.stop()
    raise AssertionError("st.stop() ends the page")


def show_reviewer() -> None:
    """The reviewer in the sidebar, with a way to change it."""
    name = reviewer()
    if name is None:
        return
    with st.sidebar.popover(f"Reviewer: {plain(name)}", icon=":material/person:", width="stretch"):
        changed = st.text_input("Your name", value=name, max_chars=NAME_LENGTH, key="reviewer_change").strip()
        if changed and changed != name:
            st.session_state[REVIEWER] = changed
            st.rerun()
    with st.sidebar:
        components.remember_name(name)
