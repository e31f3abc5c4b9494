"""A source's preview, and imports while they run."""

from __future__ import annotations

import html

import pandas as pd
import streamlit as st

from app.panels import jobs as panel
from app.panels import worst
from app.session import allowed, readers, state, words
from app.session.previews import Look
from app.session.words import plain
from auditor import jobs

SHOWN = 12
"""Pictures of what was imported."""


def draw_look(seen: Look) -> None:
    """Draw what the source holds: figures, problems, pictures."""
    preview = seen.preview
    st.subheader("Preview", anchor=False)
    figures = {
        "Kind": preview.kind,
        "Samples": words.count(preview.num_rows),
        "Classes": words.count(len(preview.class_names)),
    }
    for name, number in (("Unlabeled", preview.counts.get("", 0)), ("Problems", preview.num_problems)):
        if number:
            figures[name] = words.count(number)
    with st.container(horizontal=True, gap="medium", key="import_figures"):
        for name, value in figures.items():
            st.metric(name, value, width="content")
    if preview.problems:
        panel.draw_problems([(one.file, one.row, one.text) for one in preview.problems])
    with st.container(horizontal=True, key="pictures_small_import"):
        for label, picture in seen.pictures:
            st.image(picture, caption=f":orange[{plain(label)}]", width="stretch", alt=label)
    lines = preview.tree()
    if preview.splits and (preview.because or len(preview.splits) > 1):
        st.html(f'<pre class="layout" aria-label="How it is read">{html.escape(chr(10).join(lines))}</pre>')
    for note in preview.notes:
        st.caption(f":material/info: {plain(note)}")
    if preview.ignored:
        st.caption(f"{words.plural(len(preview.ignored), 'file')} skipped because they are not images.")


def draw_rows(seen: Look) -> None:
    """Its classes and first rows."""
    preview = seen.preview
    with st.expander("Classes and first rows"):
        left, right = st.columns([1, 2])
        classes = [(name, preview.counts.get(name, 0)) for name in preview.class_names]
        left.dataframe(pd.DataFrame(classes, columns=["class", "samples"]), hide_index=True, height=240)
        rows = [
            {"path": row.filepath, "given label": row.label or "", **(row.extra or {})}
            for row in preview.first_rows
        ]
        right.dataframe(pd.DataFrame(rows), hide_index=True, height=240)


def draw_jobs() -> None:
    """Imports under way and those that ended, until each is dismissed."""
    panel.watch(lambda: jobs.listed("import"), _draw_result, forget=_forget)


def _draw_result(job: jobs.Job) -> None:
    report = (job.result or {})["report"]
    st.success(f"{plain(job.name)}: {_told(report)}")
    for note in report["notes"]:
        st.caption(plain(note))
    if st.button("Start an audit", key=f"import_audit_{job.id}", type="primary"):
        state.go_to_dataset(job.name)
        jobs.remove(job.id)
        state.go_to("audit")
    if dataset := next((one for one in readers.all_datasets() if one.name == job.name), None):
        worst.draw_some(dataset, SHOWN)


def _forget(job: jobs.Job) -> None:
    """The upload of an import that came to nothing goes with it."""
    if job.status != "finished" and job.arguments["upload"]:
        allowed.forget_upload(job.arguments["upload"])


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
