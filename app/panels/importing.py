"""A source's preview, and imports while they run."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.jobs import background, imports
from app.jobs.imports import Job
from app.session import state, words
from app.session.previews import Look
from app.session.words import plain

POLL_S = 0.7


def draw_look(seen: Look) -> None:
    """What the source holds: figures, pictures, classes, first rows, problems."""
    preview = seen.preview
    st.subheader("Preview", anchor=False)
    figures = st.columns(5)
    figures[0].metric("Kind", preview.kind)
    figures[1].metric("Samples", words.count(preview.num_rows))
    figures[2].metric("Classes", words.count(len(preview.class_names)))
    figures[3].metric("Unlabeled", words.count(preview.counts.get("", 0)))
    figures[4].metric("Problems", words.count(preview.num_problems))
    if seen.pictures:
        st.image(
            [png for _, png in seen.pictures],
            caption=[plain(label) for label, _ in seen.pictures],
            width=84,
            alt=[label for label, _ in seen.pictures],
        )
    left, right = st.columns([1, 2])
    classes = [(name, preview.counts.get(name, 0)) for name in preview.class_names]
    left.dataframe(pd.DataFrame(classes, columns=["class", "samples"]), hide_index=True, height=240)
    rows = [
        {"path": row.filepath, "given label": row.label or "", **(row.extra or {})}
        for row in preview.first_rows
    ]
    right.dataframe(pd.DataFrame(rows), hide_index=True, height=240)
    if preview.problems:
        _draw_problems([(one.file, one.row, one.text) for one in preview.problems])
    for note in preview.notes:
        st.info(plain(note), icon=":material/info:")
    if preview.ignored:
        st.caption(f"{words.plural(len(preview.ignored), 'file')} passed over because they are no images.")


def draw_jobs() -> None:
    """Imports under way and those that ended, until each is dismissed."""
    seen = imports.jobs()
    if not seen:
        return
    is_open = any(not job.is_over for job in seen)
    st.fragment(_draw_jobs, run_every=POLL_S if is_open else None)(is_open)


def _draw_jobs(was_open: bool) -> None:
    seen = imports.jobs()
    for job in seen:
        with st.container(border=True):
            _draw_job(job)
    if was_open and all(job.is_over for job in seen):
        st.rerun()


def _draw_job(job: Job) -> None:
    line, action, away = st.columns([5, 1.2, 0.8], vertical_alignment="center")
    if job.stage == "finished" and job.report is not None:
        line.success(f"{plain(job.name)}: {_told(job.report)}")
        for note in job.report.get("notes", ()):
            line.caption(plain(note))
        if action.button("Start an audit", key=f"import_audit_{job.folder.name}", type="primary"):
            state.go_to_dataset(job.name)
            background.dismiss(job.folder)
            st.switch_page("screens/audit.py")
    elif job.stage == "cancelled":
        line.info(f"{plain(job.name)}: {plain(job.error or '')}")
    elif job.is_over:
        line.error(f"{plain(job.name)}: {plain(job.error or 'it failed')}")
    else:
        share = min(1.0, job.done / job.total) if job.total else 0.0
        left = f" · {words.duration(job.seconds_left)} left" if job.seconds_left else ""
        total = f" of {job.total:,}" if job.total else ""
        line.progress(share, text=f"**{plain(job.name)}** · {job.stage} {job.done:,}{total}{left}")
        if action.button("Cancel", key=f"import_cancel_{job.folder.name}", icon=":material/stop:"):
            background.cancel(job.folder)
    if job.is_over and away.button("Dismiss", key=f"import_dismiss_{job.folder.name}"):
        imports.dismiss(job.folder)
        st.rerun()
    if job.problems:
        _draw_problems(list(job.problems))


def _told(report: dict[str, object]) -> str:
    parts = [f"{words.plural(int(str(report['num_samples'])), 'sample')} imported"]
    duplicates = report.get("duplicates")
    if isinstance(duplicates, dict) and duplicates.get("groups"):
        parts.append(f"{words.plural(int(duplicates['groups']), 'group')} of equal or nearly equal pictures")
        if duplicates.get("conflicting_groups"):
            parts.append(f"{int(duplicates['conflicting_groups']):,} of them with different labels")
    if report.get("num_skipped"):
        parts.append(f"{words.plural(int(str(report['num_skipped'])), 'row')} left out")
    return ", ".join(parts) + "."


def _draw_problems(rows: list[tuple[object, object, object]]) -> None:
    st.markdown("**Problems**")
    table = pd.DataFrame(rows, columns=["file", "row", "problem"]).astype(str).replace("None", "")
    st.dataframe(table, hide_index=True, height=min(240, 40 + 36 * len(rows)))
