"""Does training go better with the cleaned labels? Asked on rows that neither side trains on."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.panels import jobs as panel
from app.session import words
from app.session.words import plain
from auditor import jobs
from auditor.catalog.records import Dataset


def draw(dataset: Dataset, policy: str, max_fdr: float | None, *, audit_id: int) -> None:
    """The newest comparison, and a button for a new one with the labels of such an export."""
    st.write(
        "The plain baseline is trained on the given labels and on those of the export above, with the same seeds, "
        "and judged on the verified rows, which neither side trains on."
    )
    panel.start_button(
        "Train on both and compare",
        "compare",
        dataset,
        arguments={
            "preset": "quick",
            "device": "auto",
            "policy": policy,
            "max_fdr": max_fdr,
            "audit_id": audit_id,
        },
        key="export_compare",
        icon=":material/balance:",
    )
    panel.watch(lambda: jobs.listed("compare", dataset_id=dataset.id), _draw_result)


def _draw_result(job: jobs.Job) -> None:
    found = job.result or {}
    (st.success if found["is_clear"] else st.info)(plain(found["sentence"]))
    table = pd.DataFrame(found["by_seed"], columns=["seed", "given labels", "cleaned labels"])
    st.dataframe(table, hide_index=True, width=420)
    st.caption(
        f"Accuracy on {words.plural(found['held_out'], 'verified row')}; "
        f"{words.plural(found['changed'], 'training label')} changed. " + plain(" ".join(found["notes"]))
    )
