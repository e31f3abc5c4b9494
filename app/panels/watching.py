"""An audit while it runs: bars, time left, curves, and how to stop it or go on."""

from __future__ import annotations

import streamlit as st

from app.panels import curves, worst
from app.panels import jobs as panel
from app.session import next_steps, readers, sign_in, state, words
from app.session.failures import shown
from app.session.words import plain
from auditor.audits import AuditOverview, EngineProgress, audit_overview, cancel_audit, start_audit
from auditor.catalog.records import Audit, Dataset
from auditor.results import arrays
from auditor.results.statements import no_suspects
from auditor.review import blind

POLL_S = 1.0
WORST = 12
STATES = {
    "queued": ("waiting to start", "gray"),
    "running": ("running", "gray"),
    "finished": ("finished", "green"),
    "failed": ("failed", "red"),
    "cancelled": ("cancelled", "gray"),
    "dead": ("its process ended too early", "red"),
}


def watch(dataset: Dataset, audit: Audit) -> None:
    """Draw the audit, once a second while it runs; when it has ended, its result first."""
    is_over = audit_overview(audit.id).is_over
    st.fragment(_draw, run_every=None if is_over else POLL_S)(dataset, audit, is_over)


def _draw(dataset: Dataset, audit: Audit, was_over: bool) -> None:
    with shown():
        seen = audit_overview(audit.id)
        _head(seen, state.audit_number(audit))
        titles = {row.engine: arrays.describe(audit.id, row.engine)["title"] for row in seen.engines}
        if seen.state == "finished":
            _land(dataset, audit)
            _worst(dataset, audit)
            with st.expander("How the engines ran"):
                for row in seen.engines:
                    _bar(row, titles[row.engine])
                _curves(audit.id, titles)
        else:
            if first_list := [
                one for one in readers.audits_of(dataset.id) if one.id == audit.id and one.summary.settled_at
            ]:
                _land(dataset, first_list[0])
            if seen.preparing is not None:
                first = seen.preparing
                left = (
                    f" · {words.duration(first.seconds_left)} left" if first.seconds_left is not None else ""
                )
                st.progress(
                    first.progress, text=f"**{plain(first.stage)}** · {words.percent(first.progress)}{left}"
                )
            for row in seen.engines:
                _bar(row, titles[row.engine])
            if seen.error:
                st.error(plain(seen.error), icon=":material/error:")
            with st.expander("Curves"):
                _curves(audit.id, titles)
    if seen.is_over and not was_over:
        st.rerun()  # stops the polling and lets the rest of the page know


def _land(dataset: Dataset, audit: Audit) -> None:
    """Draw what the audit found so far: how many suspects, and what to do with them."""
    number = audit.summary.num_label_issues or 0
    is_unverified = not blind.num_judged(dataset.id)
    about = "About " if is_unverified and number else ""  # a guess until people have looked at random samples
    many = f"{about}{words.plural(number, 'suspect')} among {words.plural(dataset.num_samples, 'label')}"
    st.subheader(many if number else no_suspects(audit), anchor=False)
    status = readers.status(dataset)
    step = next_steps.of(status)
    with st.container(horizontal=True, vertical_alignment="center"):
        if sign_in.opens(step.page) and st.button(step.button, type="primary", key="audit_next"):
            state.go_to(step.page)
        if status.decided or status.running or step.page != "suspects":  # else it repeats the number
            st.caption(plain(step.sentence))


def _worst(dataset: Dataset, audit: Audit) -> None:
    """Draw the worst suspects as pictures."""
    says_what = st.container()
    if shows := worst.draw(dataset, audit, WORST):
        what = "worst" if shows == WORST else "suspects to check"
        says_what.caption(f"The {shows} {what}: :orange[given label] → :blue[suggested label].")


def _head(seen: AuditOverview, number: int) -> None:
    said, colour = STATES[seen.state]
    remaining = (
        f" · about {words.duration(seen.seconds_left)} left" if seen.seconds_left and not seen.is_over else ""
    )
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**Audit {number}** :{colour}-badge[{said}]{remaining}", width="content")
        panel.controls(
            seen.audit_id, seen.state, goes_on=True, cancel=cancel_audit, resume=start_audit, key="audit"
        )


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
