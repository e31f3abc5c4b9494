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
from auditor.ground.vocabulary import CLASSIFICATION
from auditor.results import arrays
from auditor.results.statements import no_suspects
from auditor.review import blind
from auditor.statistics import NoiseRate

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
        if seen.is_over and not was_over:
            # Stops the polling and lets the rest of the page know, before pictures are drawn (``jobs``).
            st.rerun()
        titles = {row.engine: arrays.describe(audit.id, row.engine)["title"] for row in seen.engines}
        if seen.state == "finished":
            _land(dataset, audit)
            _worst(dataset, audit)
            with st.expander("How the engines ran", icon=":material/model_training:"):
                _head(seen, state.audit_number(audit))
                for row in seen.engines:
                    _bar(row, titles[row.engine])
                _curves(audit.id, titles)
            return
        if first_list := [
            one for one in readers.audits_of(dataset.id) if one.id == audit.id and one.summary.settled_at
        ]:
            _land(dataset, first_list[0])
        if seen.seconds_left and not seen.is_over:
            state.headline("audit_left", f"About {words.duration(seen.seconds_left)}", "left")
        _head(seen, state.audit_number(audit))
        if seen.error:
            st.error(plain(seen.error), icon=":material/error:")
        st.progress(_share(seen), text=_now(seen, titles))
        with st.expander("Engines and curves", icon=":material/model_training:"):
            for row in seen.engines:
                _bar(row, titles[row.engine])
            _curves(audit.id, titles)


def _share(seen: AuditOverview) -> float:
    """Return how much of an audit is done: of the look at the pictures, if there is one, and of each engine."""
    steps = [1.0 if row.status == "finished" else row.progress for row in seen.engines]
    if seen.preparing is not None:
        steps.append(seen.preparing.progress)
    return min(1.0, sum(steps) / max(1, len(steps)))


def _now(seen: AuditOverview, titles: dict[str, str]) -> str:
    """Return what is being done now."""
    if seen.preparing is not None:
        return "First a network looks at every picture"  # the bar is about the whole audit
    done = sum(row.status == "finished" for row in seen.engines)
    running = [plain(titles[row.engine]) for row in seen.engines if row.status == "running"]
    return " · ".join([f"{done} of {words.plural(len(seen.engines), 'engine')} done", *running])


def _land(dataset: Dataset, audit: Audit) -> None:
    """Draw what the audit found so far: how many labels are wrong, and the one thing to do next."""
    status = readers.status(dataset)
    step = next_steps.of(status)
    with st.container(border=True, key="audit_found"):
        state.headline("audit_found", *_found(dataset, audit, status.noise))
        if sign_in.opens(step.page) and st.button(step.button, type="primary", key="audit_next", width=240):
            state.go_to(step.page)
        if status.decided or status.running or step.page != "suspects":  # else it repeats the number
            st.caption(plain(step.sentence))


def _found(dataset: Dataset, audit: Audit, rate: NoiseRate | None) -> tuple[str, str]:
    """A number and what it counts: what random samples say, else the suspects, a guess until people looked."""
    number, total = audit.summary.num_label_issues or 0, dataset.num_samples
    if not number:
        return "", no_suspects(audit)
    if dataset.task == CLASSIFICATION and rate is not None and rate.kind == "interval":
        return words.interval(rate.low, rate.high), "of the labels are wrong"
    about = "" if blind.num_judged(dataset.id) else "About "
    return (
        f"{about}{number:,}",
        f"of {words.plural(total, 'label')} look wrong, {words.percent(number / total)}",
    )


def _worst(dataset: Dataset, audit: Audit) -> None:
    """Draw the worst suspects as pictures."""
    says_what = st.container()
    if shows := worst.draw(dataset, audit, WORST):
        what = "worst" if shows == WORST else "suspects to check"
        says_what.caption(f"The {shows} {what}: :orange[given label] → :blue[suggested label].")


def _head(seen: AuditOverview, number: int) -> None:
    said, colour = STATES[seen.state]
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**Audit {number}** :{colour}-badge[{said}]", width="content")
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
