"""A source's preview, and imports while they run."""

from __future__ import annotations

import html
from typing import Any

import pandas as pd
import streamlit as st

from app.panels import by_class, worst
from app.panels import jobs as panel
from app.session import allowed, readers, state, words
from app.session.previews import Look
from app.session.words import plain
from auditor import jobs
from auditor.ground import wording
from auditor.ground.vocabulary import CLASSIFICATION
from auditor.importing import Preview

SHOWN = 12
"""Pictures of what was imported."""
FEW_CLASSES = 6
"""With as many classes or more the preview has one picture of each, with fewer several."""


def draw_found(seen: Look) -> None:
    """Draw what the source holds in one line, and its problems."""
    preview = seen.preview
    state.headline("import_found", words.count(preview.num_rows), _found(preview))
    if preview.problems:
        panel.draw_problems([(one.file, one.row, one.text) for one in preview.problems])


def draw_look(seen: Look) -> None:
    """A picture of each class with how many it has, how the source is read, its first rows."""
    preview = seen.preview
    first: dict[str, bytes] = {}
    for label, picture in seen.pictures:
        first.setdefault(label, picture)
    is_one_each = len(first) >= FEW_CLASSES
    with st.container(horizontal=True, key="pictures_small_import"):
        for label, picture in first.items() if is_one_each else seen.pictures:
            many = words.count(preview.counts[label]) if is_one_each and label in preview.counts else ""
            st.image(picture, caption=f":orange[{plain(label)}] {many}", width="stretch", alt=label)
    lines = preview.tree()
    if len(preview.splits) > 1:
        st.html(f'<pre class="layout" aria-label="How it is read">{html.escape(chr(10).join(lines))}</pre>')
    elif preview.because:
        st.caption(plain(lines[-1]))
    for note in preview.notes:
        st.caption(f":material/info: {plain(note)}")
    if preview.ignored:
        st.caption(f"{words.plural(len(preview.ignored), 'file')} skipped because they are no pictures.")


def _found(preview: Preview) -> str:
    """``pictures, 10 classes, 3 without a label, 1 problem``: after the number of rows."""
    noun = "picture" if preview.num_rows == 1 else "pictures"
    parts = [f"{noun} with masks" if preview.kind == "masks" else noun]
    if preview.class_names:
        parts.append(words.plural(len(preview.class_names), "class"))
    if unlabeled := preview.counts.get("", 0):
        parts.append(f"{words.count(unlabeled)} without a label")
    if preview.num_problems:
        parts.append(words.plural(preview.num_problems, "problem"))
    return ", ".join(parts)


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
    state.headline(f"import_{job.id}", words.count(report["num_samples"]), _told(report))
    if st.button(
        "Start an audit",
        key=f"import_audit_{job.id}",
        type="primary",
        icon=":material/play_circle:",
        width=240,
    ):
        state.go_to_dataset(job.name)
        jobs.remove(job.id)
        state.go_to("audit")
    if dataset := next((one for one in readers.all_datasets() if one.name == job.name), None):
        if dataset.task == CLASSIFICATION:
            by_class.draw(dataset)
        else:
            worst.draw_some(dataset, SHOWN)
    if report["notes"]:
        with st.expander("How it was read"):
            for note in report["notes"]:
                st.caption(plain(note))


def _forget(job: jobs.Job) -> None:
    """The upload of an import that came to nothing goes with it."""
    if job.status != "finished" and job.arguments["upload"]:
        allowed.forget_upload(job.arguments["upload"])


def _told(report: dict[str, Any]) -> str:
    """``pictures imported: 10 classes, 12 copies, nothing left out``: after the number of rows."""
    parts = [wording.kind_of_labels(report["task"], int(report["num_classes"]))]
    found = report.get("duplicates") or {}
    copies = (
        int(found.get("exact_samples", 0)) + int(found.get("near_samples", 0)) - int(found.get("groups", 0))
    )
    parts.append(("1 copy" if copies == 1 else f"{copies:,} copies") if copies > 0 else "no copies")
    if found.get("conflicting_groups"):
        parts.append(f"{words.plural(found['conflicting_groups'], 'set')} of copies with different labels")
    left_out = int(report.get("num_skipped") or 0)
    parts.append(f"{words.plural(left_out, 'row')} left out" if left_out else "nothing left out")
    noun = "picture" if report["num_samples"] == 1 else "pictures"
    return f"{noun} imported: {', '.join(parts)}"
