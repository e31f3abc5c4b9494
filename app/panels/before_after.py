"""Does a network learn better from the cleaned labels? Asked on rows that neither side trains on."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import streamlit as st

from app.jobs import background, comparisons
from app.session import words
from app.session.words import plain
from auditor.catalog.models import DatasetTable

POLL_S = 1.0


def draw(dataset: DatasetTable, policy: str, max_fdr: float | None, *, audit_id: int) -> None:
    """The newest comparison, and a button for a new one with the labels of such an export."""
    st.write(
        "The plain baseline is trained on the given labels and on those of the export above, with the same seeds, "
        "and judged on the verified rows, which neither side trains on."
    )
    folder = comparisons.newest(dataset)
    is_busy = folder is not None and background.state(folder)["stage"] not in background.OVER
    if st.button(
        "Train on both and compare", key="export_compare", disabled=is_busy, icon=":material/balance:"
    ):
        comparisons.start(dataset, "quick", "auto", policy, max_fdr, audit_id=audit_id)
        st.rerun()
    if folder is not None:
        st.fragment(_draw_newest, run_every=POLL_S if is_busy else None)(folder, is_busy)


def _draw_newest(folder: Path, was_busy: bool) -> None:
    seen = background.state(folder)
    if seen["stage"] in ("failed", "cancelled", "dead"):
        st.warning(plain(seen["error"]), icon=":material/info:")
    elif seen["stage"] == "finished":
        (st.success if seen["is_clear"] else st.info)(plain(seen["sentence"]))
        table = pd.DataFrame(seen["by_seed"], columns=["seed", "given labels", "cleaned labels"])
        st.dataframe(table, hide_index=True, width=420)
        st.caption(
            f"Accuracy on {words.plural(seen['held_out'], 'verified row')}; "
            f"{words.plural(seen['changed'], 'training label')} changed. " + plain(" ".join(seen["notes"]))
        )
    else:
        line, action = st.columns([5, 1], vertical_alignment="center")
        done, total, seconds_left = seen.get("done", 0.0), seen.get("total"), seen.get("seconds_left")
        text = f"Network {min(int(done) + 1, total)} of {total}" if total else "Starting"
        left = f" · {words.duration(seconds_left)} left" if seconds_left is not None else ""
        line.progress(done / total if total else 0.0, text=text + left)
        if action.button("Cancel", key="export_compare_cancel", icon=":material/stop:"):
            background.cancel(folder)
        if seen.get("about"):
            st.caption(plain(seen["about"]))
    if was_busy and seen["stage"] in background.OVER:
        st.rerun()
