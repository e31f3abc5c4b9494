"""Any job on a page: how far it is, how to stop it, what ended it and what to do then, and its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from app.session import failures, words
from app.session.failures import shown
from app.session.words import plain
from auditor import jobs
from auditor.catalog.records import Dataset
from auditor.ground.errors import AuditorError
from auditor.jobs import Job, Overview

POLL_S = 0.5

Find = Callable[[], list[Overview]]
"""The jobs to draw, asked again at every look."""


def start_button(
    label: str,
    kind: str,
    dataset: Dataset,
    *,
    arguments: dict[str, Any] | None = None,
    who: str | None = None,
    **look: Any,
) -> None:
    """A button that starts a job, which takes the place of the one of its kind (and file) before it."""
    asked = arguments or {}
    is_at_work = any(not seen.is_over for seen in _before(kind, dataset, asked))
    if st.button(label, disabled=is_at_work, **look):
        start(kind, dataset, asked, who)
        st.rerun()


def start(kind: str, dataset: Dataset, arguments: dict[str, Any], who: str | None = None) -> None:
    """Start a job in the place of the one of its kind (and file) before it; nothing where that is still at work."""
    before = _before(kind, dataset, arguments)
    if any(not seen.is_over for seen in before):
        return
    for seen in before:
        jobs.remove(seen.job.id)
    jobs.start(kind, dataset.name, dataset_id=dataset.id, arguments=arguments, who=who)


def _before(kind: str, dataset: Dataset, arguments: dict[str, Any]) -> list[Overview]:
    of_kind = jobs.listed(kind, dataset_id=dataset.id)
    return [seen for seen in of_kind if seen.job.arguments.get("file") == arguments.get("file")]


def watch(
    find: Find, draw_result: Callable[[Job], None], *, forget: Callable[[Job], None] | None = None
) -> None:
    """Draw the jobs, again and again while one of them is at work, then the page once more.

    ``forget`` is called before a job is dismissed.
    """
    seen = find()
    if seen:
        is_open = any(not one.is_over for one in seen)
        # No fragment once it is over: Streamlit can lose a press in one while the rest of the page is still drawn.
        draw = st.fragment(_draw, run_every=POLL_S) if is_open else _draw
        draw(find, draw_result, forget, is_open)


def controls(
    number: int,
    state: str,
    *,
    goes_on: bool,
    cancel: Callable[[int], None] = jobs.cancel,
    resume: Callable[[int], object] = jobs.resume,
    key: str = "job",
) -> None:
    """A button that stops what is at work, or one that goes on with what ended without a result."""
    if state in ("waiting", "queued", "running"):
        if st.button("Cancel", key=f"{key}_cancel_{number}", icon=":material/stop:"):
            cancel(number)
            kept = "what is finished is kept" if goes_on else "no half-finished result is kept"
            st.toast(f"It stops at the next step; {kept}.")
    elif state != "finished":
        label = "Resume" if goes_on else "Start again"
        if st.button(label, key=f"{key}_resume_{number}", type="primary", icon=":material/play_arrow:"):
            resume(number)
            st.rerun()


def draw_problems(rows: list[tuple[object, object, object]]) -> None:
    """Rows of a source that cannot be used: file, row, what is wrong."""
    st.markdown("**Problems**")
    table = pd.DataFrame(rows, columns=["file", "row", "problem"]).astype(str).replace("None", "")
    st.dataframe(table, hide_index=True, height=min(240, 40 + 36 * len(rows)))


def _draw(
    find: Find,
    draw_result: Callable[[Job], None],
    forget: Callable[[Job], None] | None,
    was_open: bool,
) -> None:
    seen = find()
    if was_open and all(one.is_over for one in seen):
        # Stops the polling and lets the rest of the page know. Before anything is drawn: a picture drawn now would
        # be gone from the server when the browser asks for it.
        st.rerun()
    for one in seen:
        with shown(), st.container(border=True):
            _draw_one(one, draw_result, forget)


def _draw_one(
    seen: Overview, draw_result: Callable[[Job], None], forget: Callable[[Job], None] | None
) -> None:
    job, found = seen.job, seen.job.result or {}
    is_well = seen.state == "finished"  # and needs no button beside it
    if is_well:
        st.empty()  # in place of the columns, whose content would stand above the result until all is drawn
    line, action, away = [st.container()] * 3 if is_well else st.columns([6, 1.4, 0.5])
    with line:
        if is_well:
            draw_result(job)
        elif seen.is_over:
            tell = st.info if seen.state == "cancelled" else st.error
            tell(f"{plain(seen.title)}: {plain(_why(seen))}")
        else:
            st.progress(job.progress, text=f"**{plain(seen.title)}** · {_how_far(seen)}")
        if "about" in found:
            st.caption(plain(found["about"]))
    with action:
        controls(job.id, seen.state, goes_on=seen.goes_on)
    if seen.is_over and away.button(
        "", icon=":material/close:", type="tertiary", key=f"job_dismiss_{job.id}", help="Dismiss"
    ):
        if forget is not None:
            forget(job)
        jobs.remove(job.id)
        st.rerun()
    if found.get("problems"):
        draw_problems(found["problems"])


def _why(seen: Overview) -> str:
    """Return what ended it, with the page's own field that mends it."""
    field = (seen.job.result or {}).get("field")
    return failures.sentence(AuditorError(seen.error or "it failed", field=field))


def _how_far(seen: Overview) -> str:
    job = seen.job
    if not job.stage:
        return "starting"
    share = ""
    if job.total is not None and seen.goes_on:
        share = f" {words.percent(job.progress)}"
    elif job.total is not None:
        share = f" {job.done:,.0f} of {job.total:,.0f}"
    elif job.done:
        share = f" {job.done:,.0f}"
    left = f" · {words.duration(job.seconds_left)} left" if job.seconds_left else ""
    stopping = " · stopping" if job.cancel_requested else ""
    return f"{plain(job.stage)}{share}{left}{stopping}"
