"""An audit while it runs: bars, time left, curves, and how to stop it or go on."""

from __future__ import annotations

import streamlit as st

from app.panels import curves, engines_ran, pairs, progress, worst
from app.panels import jobs as panel
from app.session import next_steps, readers, sign_in, state, words
from app.session.failures import shown
from app.session.words import plain
from auditor.audits import AuditOverview, EngineProgress, audit_overview, cancel_audit, start_audit
from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import CLASSIFICATION, SEGMENTATION
from auditor.results import arrays, queues
from auditor.results.progress import wrong_in_words
from auditor.results.statements import no_suspects
from auditor.review import blind

POLL_S = 1.0
WORST, PAIRS, OF_A_PAIR = 12, 6, 4
"""Suspects shown one by one; pairs of classes, and pictures of each."""
STATES = {
    "queued": ("waiting to start", "gray"),
    "running": ("running", "gray"),
    "finished": ("finished", "green"),
    "failed": ("failed", "red"),
    "cancelled": ("cancelled", "gray"),
    "dead": ("its process ended too early", "red"),
}


def watch(dataset: Dataset, audit: Audit) -> None:
    """Draw the audit: its result, or while it runs what was found so far, and how far it is once a second."""
    seen = audit_overview(audit.id)
    with shown():
        if seen.state == "finished":
            _land(dataset, audit)
            _worst(dataset, audit)
            with st.expander("How the engines ran", icon=":material/model_training:"):
                _head(seen, state.audit_number(audit))
                engines_ran.draw(dataset, audit)
                _curves(audit.id, _titles(seen), is_over=True)
            return
    has_list, poll = _has_list(dataset, audit), None if seen.is_over else POLL_S
    if has_list:
        with shown():
            _land(dataset, audit)
    st.fragment(_far, run_every=poll)(dataset, audit, was_over=seen.is_over, had_list=has_list)
    with shown():  # once: a picture is not read anew every second
        if has_list:
            _worst(dataset, audit)
        elif not seen.is_over:
            st.caption(
                "Some of the pictures as they were given. Suspects show here as soon as there are any."
            )
            worst.draw_some(dataset, WORST, start=0.2)
    with st.expander("Engines and curves", icon=":material/model_training:"):
        st.fragment(_details, run_every=poll)(audit)


def _has_list(dataset: Dataset, audit: Audit) -> bool:
    """Return whether there are suspects already: the first engine ranks them before the engines train."""
    return any(one.id == audit.id and one.summary.settled_at for one in readers.audits_of(dataset.id))


def _far(dataset: Dataset, audit: Audit, *, was_over: bool, had_list: bool) -> None:
    """Draw how far the audit is, what it does now and how to stop it or go on."""
    with shown():
        seen = audit_overview(audit.id)
        if seen.is_over != was_over or _has_list(dataset, audit) != had_list:
            # Stops the polling and lets the rest of the page know, before pictures are drawn (``jobs``).
            st.rerun()
        if seen.seconds_left and not seen.is_over and not had_list:
            state.headline("audit_left", f"About {words.duration(seen.seconds_left)}", "left")
        _head(seen, state.audit_number(audit))
        if seen.error:
            st.error(plain(seen.error), icon=":material/error:")
        left = f" · about {words.duration(seen.seconds_left)} left" if had_list and seen.seconds_left else ""
        st.progress(_share(seen), text=f"{_now(seen, _titles(seen))}{left}")


def _details(audit: Audit) -> None:
    """Draw a bar an engine, and the curves of all."""
    with shown():
        seen = audit_overview(audit.id)
        titles = _titles(seen)
        for row in seen.engines:
            _bar(row, titles[row.engine])
        _curves(audit.id, titles)


def _titles(seen: AuditOverview) -> dict[str, str]:
    return {row.engine: arrays.describe(seen.audit_id, row.engine)["title"] for row in seen.engines}


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
    """Draw what the audit found so far: how many labels look wrong, what to do next, and how sure it is."""
    status = readers.status(dataset)
    step = next_steps.of(status)
    number, text, sure = _found(dataset, audit, status)
    state.headline("audit_found", number, text)
    with st.container(horizontal=True, vertical_alignment="center"):
        if sign_in.opens(step.page) and st.button(step.button, type="primary", key="audit_next", width=240):
            state.go_to(step.page)
        with st.container(gap=None, width="stretch", key="audit_says"):
            is_review = step.page == "suspects" or step.page in next_steps.SUSPECTS_OF.values()
            if status.decided or status.running or not is_review:  # else it repeats the number
                st.markdown(plain(_of_them(audit, status, step) if is_review else step.sentence))
            if sure:
                st.markdown(sure)


def _of_them(audit: Audit, seen: readers.Status, step: next_steps.Step) -> str:
    """``9 of them are checked, 25 wait.``: of the number above; where none is checked yet, what the step says."""
    waiting = next_steps.waiting(seen)
    checked = (audit.summary.num_label_issues or 0) - waiting
    if seen.finished is None or seen.finished.id != audit.id or checked <= 0 or not waiting:
        return step.sentence
    _, _, rest = step.sentence.partition(".")
    waits = f"{waiting:,} {'waits' if waiting == 1 else 'wait'}"
    return f"{checked:,} of them {'is' if checked == 1 else 'are'} checked, {waits}.{rest}"


def _found(dataset: Dataset, audit: Audit, seen: readers.Status) -> tuple[str, str, str]:
    """A number, what it counts, and how sure that is: the suspects, and what random checks say of all labels; once
    no suspect waits, the latter alone.
    """
    number, total = audit.summary.num_label_issues or 0, dataset.num_samples
    if not number:
        return "", no_suspects(audit), ""
    is_checked = dataset.task == CLASSIFICATION and not next_steps.waiting(seen)
    if is_checked and (rate := seen.noise) is not None and rate.kind == "interval":
        return words.interval(rate.low, rate.high), wrong_in_words("labels", seen.left), ""
    if dataset.task == SEGMENTATION:
        return f"{number:,}", f"of {words.plural(total, 'mask')} have a suspect region", ""
    about = "" if blind.num_judged(dataset.id) else "About "
    return (
        f"{about}{number:,}",
        f"of {words.plural(total, 'label')} look wrong, {words.percent(number / total)}",
        progress.how_sure(seen),
    )


def _worst(dataset: Dataset, audit: Audit) -> None:
    """Draw the pairs of classes that are mistaken most, or the worst suspects as pictures; once none waits, what
    people found wrong.
    """
    if dataset.task == CLASSIFICATION and _pairs(dataset, audit):
        return
    says_what = st.container()
    if shows := worst.draw(dataset, audit, WORST):
        what = "worst" if shows == WORST else "suspects to check"
        of_them = "outlines" if dataset.task == SEGMENTATION else "label"
        says_what.caption(f"The {shows} {what}: :orange[given {of_them}] → :blue[suggested {of_them}].")
    elif dataset.task == CLASSIFICATION and worst.draw_found(dataset, WORST):
        says_what.caption("No suspect waits. What people found wrong: :orange[before] → :blue[after].")


def _pairs(dataset: Dataset, audit: Audit) -> bool:
    """Draw the most frequent pairs of classes among the suspects that nobody has checked, each a door to its own;
    returns whether any is more than a single picture.
    """
    waiting = {"issues": True, "undecided": True}
    counts = readers.pair_counts(audit, queues.suspect_filter(waiting, audit))
    found = counts[["given_label", "suggested_label", "count"]].astype(int).to_numpy().tolist()
    if not found or found[0][2] < 2:
        return False
    names, cards = dataset.class_names, []
    for given, suggested, many in found[:PAIRS]:
        where = queues.suspect_filter(waiting | {"given": given, "suggested": suggested}, audit)
        labels = words.class_name(names, given), words.class_name(names, suggested)
        cards.append(pairs.Pair(*labels, many, readers.first_of(audit, where, OF_A_PAIR)))

    def open_pair(place: int) -> None:
        given, suggested, _ = found[place]
        state.open_suspects(given=given, suggested=suggested)

    which = f", the {PAIRS} most frequent of {len(found)} pairs" if len(found) > PAIRS else ""
    leads = " A click leads to a pair's pictures." if sign_in.opens("suspects") else ""
    waits = words.plural(sum(many for *_, many in found), "suspect", "wait")
    st.caption(f"{waits}{which}: :orange[given label] → :blue[suggested label].{leads}")
    pairs.draw(dataset, "audit", cards, on_open=open_pair if leads else None)
    return True


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


def _curves(audit_id: int, titles: dict[str, str], *, is_over: bool = False) -> None:
    points = curves.table(readers.epochs(audit_id), titles)
    accuracy = curves.chart(points, curves.ACCURACY, "accuracy")
    selection = curves.chart(points, curves.SELECTION, "share")
    if accuracy is None and selection is None:
        if not is_over:
            st.caption("Curves appear with the first epoch.")
        return
    left, right = st.columns(2)
    if accuracy is not None:
        left.markdown("**Accuracy**")
        left.altair_chart(accuracy, key=f"audit_accuracy_{audit_id}")
    if selection is not None:
        right.markdown("**What the selecting engines keep**")
        right.altair_chart(selection, key=f"audit_selection_{audit_id}")
