"""Files to take home. A job makes each when its button is pressed; the page only hands it over."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from app.panels import jobs as panel
from app.session import readers, sign_in, words
from app.session.words import plain
from auditor import jobs
from auditor.catalog.records import Dataset
from auditor.outputs import quoted
from auditor.review import log as decision_log

WANTED = "export_wanted"
"""The file whose button was pressed here: the browser takes it as soon as it is made."""
TAKE_ONCE = """
window.auditorTaken ||= new Set();
if (!auditorTaken.has(JOB)) { auditorTaken.add(JOB); document.getElementById("made-JOB")?.click(); }
"""


def offer(
    dataset: Dataset, policy: str, max_fdr: float | None, *, audit_id: int | None, is_next: bool
) -> None:
    """Buttons for the cleaned table, the pictures in a folder a class, and the report where there is an audit.

    ``is_next``: the table is what one came for, and its button the one that stands out.
    """
    arguments = {"policy": policy, "max_fdr": max_fdr, "audit_id": audit_id}
    quiet: dict[str, Any] = {"type": "tertiary" if is_next else "secondary"}
    with st.container(horizontal=True):
        look = "primary" if is_next else "secondary"
        button(
            dataset, "Cleaned CSV", "cleaned.csv", arguments, type=look, width=240 if is_next else "content"
        )
        button(dataset, "Parquet", "cleaned.parquet", arguments, **quiet)
        button(
            dataset, "Folder as a zip", "cleaned.zip", arguments, **quiet | {"icon": ":material/folder_zip:"}
        )
        if audit_id is not None:
            button(dataset, "HTML report", "report.html", arguments, **quiet)
    made(dataset)


def button(dataset: Dataset, label: str, end: str, arguments: dict[str, Any], **look: Any) -> None:
    """A button whose job makes the file that is named after the dataset and ``end``, with ``arguments``."""
    look = {"icon": ":material/description:", "key": f"export_{end.rpartition('.')[2]}"} | look
    asked = arguments | {"file": _file(dataset, end)}
    look["on_click"] = lambda: st.session_state.update({WANTED: asked["file"]})
    panel.start_button(label, "export", dataset, arguments=asked, **look)


def start(dataset: Dataset, end: str, arguments: dict[str, Any]) -> None:
    """Make the file as its ``button`` does."""
    asked = arguments | {"file": _file(dataset, end)}
    st.session_state[WANTED] = asked["file"]
    panel.start("export", dataset, asked)


def _file(dataset: Dataset, end: str) -> str:
    return f"{file_stem(dataset.name)}-{end}"


def made(dataset: Dataset) -> None:
    """The files of this dataset that are made now or wait to be taken home."""
    panel.watch(lambda: jobs.listed("export", dataset_id=dataset.id), _hand_over)


def _hand_over(job: jobs.Job) -> None:
    """A link, not a button of the page: while the page runs again, Streamlit would lose the click."""
    name = escape(Path(job.arguments["file"]).name)
    address = f"{readers.base_path()}/bench/file/{job.id}?t={sign_in.token()}"
    is_wanted = st.session_state.get(WANTED) == job.arguments["file"]
    take = f"<script>{TAKE_ONCE.replace('JOB', str(job.id))}</script>" if is_wanted else ""
    link = f'<a class="download" id="made-{job.id}" href="{address}" download="{name}">Download {name}</a>'
    st.html(link + take, unsafe_allow_javascript=True)
    st.caption(f"{plain((job.result or {})['sentence'])} Made {words.ago(job.finished_at)}.")


def log_csv(dataset: Dataset, log: pd.DataFrame) -> bytes:
    """The log as CSV with paths and class names, formulas disarmed."""
    table = decision_log.with_samples(dataset.id, log)
    for column in ("given_label", "label"):
        table[column] = named(table[column], dataset.class_names)
    for column in table.select_dtypes(include=["object", "string"]).columns:
        table[column] = table[column].map(lambda cell: quoted(cell) if isinstance(cell, str) else cell)
    return table.to_csv(index=False).encode("utf-8")


def named(labels: pd.Series, class_names: Sequence[str]) -> pd.Series:
    """Class names for label numbers; empty where there is none."""
    return labels.map(lambda label: "" if pd.isna(label) or label < 0 else class_names[int(label)])


def file_stem(name: str) -> str:
    """A dataset's name as a part of a file name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "dataset"
