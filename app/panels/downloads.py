"""Files to take home. Each is made when its button is pressed, never before."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import streamlit as st

from auditor.catalog.models import DatasetTable
from auditor.outputs import export, report
from auditor.review import log as decision_log


def offer(dataset: DatasetTable, policy: str, max_fdr: float | None, *, audit_id: int | None) -> None:
    """Buttons for the cleaned table as CSV and Parquet, and for the report where there is an audit."""
    stem = file_stem(dataset.name)
    with st.container(horizontal=True):
        for suffix, mime in ((".csv", "text/csv"), (".parquet", "application/vnd.apache.parquet")):
            st.download_button(
                "Cleaned CSV" if suffix == ".csv" else "Parquet",
                partial(table_bytes, dataset.name, suffix, policy, max_fdr, audit_id),
                f"{stem}-cleaned{suffix}",
                mime,
                key=f"export_{suffix[1:]}",
                type="primary" if suffix == ".csv" else "secondary",
                on_click="ignore",
                icon=":material/download:",
            )
        if audit_id is not None:
            st.download_button(
                "HTML report",
                partial(report.report, dataset.name, audit_id=audit_id),
                f"{stem}-report.html",
                "text/html",
                key="export_report",
                on_click="ignore",
                icon=":material/summarize:",
            )


def table_bytes(name: str, suffix: str, policy: str, max_fdr: float | None, audit_id: int | None) -> bytes:
    """The cleaned table as a file's bytes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / f"cleaned{suffix}"
        export.export(name, out, policy=policy, max_fdr=max_fdr, audit_id=audit_id)
        return out.read_bytes()


def log_csv(dataset: DatasetTable, log: pd.DataFrame) -> bytes:
    """The log as CSV with paths and class names, formulas disarmed."""
    assert dataset.id is not None
    table = decision_log.with_samples(dataset.id, log)
    for column in ("given_label", "label"):
        table[column] = named(table[column], dataset.class_names)
    for column in table.select_dtypes(include=["object", "string"]).columns:
        table[column] = table[column].map(lambda cell: export.quoted(cell) if isinstance(cell, str) else cell)
    return table.to_csv(index=False).encode("utf-8")


def named(labels: pd.Series, class_names: Sequence[str]) -> pd.Series:
    """Class names for label numbers; empty where there is none."""
    return labels.map(lambda label: "" if pd.isna(label) or label < 0 else class_names[int(label)])


def file_stem(name: str) -> str:
    """A dataset's name as a part of a file name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "dataset"
