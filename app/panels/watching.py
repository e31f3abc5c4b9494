"""An audit while it runs: bars, time left, curves, and how to stop it or go on."""

from __future__ import annotations

import streamlit as st

from app.panels import curves
from app.panels import jobs as panel
from app.session import readers, words
from app.session.failures import shown
from app.session.words import plain
from auditor.audits import arrays, plan
from auditor.audits.plan import AuditOverview, EngineProgress
from auditor.catalog.records import Audit

POLL_S = 1.0
STATES = {
    "queued": ("waiting to start", "blue"),
    "running": ("running", "blue"),
    "finished": ("finished", "green"),
    "failed": ("failed", "red"),
    "cancelled": ("cancelled", "orange"),
    "dead": ("its process ended too early", "red"),
}


def watch(audit: Audit) -> None:
    """Draw the audit, once a second while it runs."""
    is_over = plan.overview(audit.id).is_over
    st.fragment(_draw, run_every=None if is_over else POLL_S)(audit.id, is_over)


def _draw(audit_id: int, was_over: bool) -> None:
    with shown():
        seen = plan.overview(audit_id)
        _head(seen)
        titles = {row.engine: arrays.describe(audit_id, row.engine)["title"] for row in seen.engines}
        if seen.preparing is not None:
            first = seen.preparing
            left = f" · {words.duration(first.seconds_left)} left" if first.seconds_left is not None else ""
            st.progress(
                first.progress, text=f"**{plain(first.stage)}** · {words.percent(first.progress)}{left}"
            )
        for row in seen.engines:
            _bar(row, titles[row.engine])
        if seen.error:
            st.error(plain(seen.error), icon=":material/error:")
        _curves(audit_id, titles)
    if seen.is_over and not was_over:
        st.rerun()  # stops the polling and lets the rest of the page know


def _head(seen: AuditOverview) -> None:
    state, colour = STATES[seen.state]
    line, left, right = st.columns([4, 1, 1], vertical_alignment="center")
    remaining = (
        f" · about {words.duration(seen.seconds_left)} left" if seen.seconds_left and not seen.is_over else ""
    )
    line.markdown(f"**Audit {seen.audit_id}** :{colour}-badge[{state}]{remaining}")
    with left:
        panel.controls(
            seen.audit_id, seen.state, goes_on=True, cancel=plan.cancel, resume=plan.start, key="audit"
        )
    if seen.state == "finished":
        right.page_link("screens/verify.py", label="Verify", icon=":material/fact_check:")


def _bar(row: EngineProgress, title: str) -> None:
    spent = words.duration(row.seconds)
    if row.status == "finished":
        text = f"finished in {spent}"
    elif row.status == "running":
        stage = f"{plain(row.stage)} · " if row.stage else ""
        text = (
            f"{stage}{words.percent(row.progress)} · {spent} so far · {words.duration(row.seconds_left)} left"
        )
    else:
        text = row.status if row.progress == 0 else f"{row.status} at {words.percent(row.progress)}"
    st.progress(min(1.0, row.progress), text=f"**{plain(title)}** · {text}")
    if row.error:
        st.caption(plain(row.error))


def _curves(audit_id: int, titles: dict[str, str]) -> None:
    points = curves.table(readers.epochs(audit_id), titles)
    accuracy = curves.chart(points, curves.ACCURACY, "accuracy")
    selection = curves.chart(points, curves.SELECTION, "share")
    if accuracy is None and selection is None:
        st.caption("Curves appear with the first epoch.")
        return
    left, right = st.columns(2)
    if accuracy is not None:
        left.markdown("**Accuracy**")
        left.altair_chart(accuracy, key=f"audit_accuracy_{audit_id}")
    if selection is not None:
        right.markdown("**What the selecting engines keep**")
        right.altair_chart(selection, key=f"audit_selection_{audit_id}")
