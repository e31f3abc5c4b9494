"""What can be said about a dataset now, in figures and sentences."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import data, words
from auditor import estimates, promises, verification
from auditor.catalog.models import AuditTable, DatasetTable


def verified(dataset: DatasetTable, audit: AuditTable | None, *, judged: int) -> None:
    """The noise rate, what is promised at each level, and what more rows would buy."""
    assert dataset.id is not None
    if judged == 0:
        st.write("Nothing yet: judge the first samples.")
        return
    if audit is None or audit.id is None:
        rate = estimates.noise_rate_from_verified(
            data.given_labels(dataset.id), verification.standing(dataset.id)
        )
        _rate(rate)
        st.write("Once an audit has finished, these rows also back promises about its list.")
        return
    standing = promises.load(audit.id)
    _rate(promises.noise_rate(standing))
    st.markdown("**Promises about the list**")
    found = promises.promises(standing)
    table = pd.DataFrame(
        {
            "false at most": [words.percent(q) for q in found],
            "labels flagged": [one.num_flags if one.is_kept else 0 for one in found.values()],
            "expected false": [f"{one.expected_false:.1f}" if one.is_kept else "–" for one in found.values()],
        }
    )
    st.dataframe(table, hide_index=True)
    strictest = next((one for one in found.values() if one.is_kept), None)
    st.caption(strictest.sentence if strictest else next(iter(found.values())).sentence)
    st.markdown("**What more would buy**")
    st.caption(promises.what_more_buys(standing, verification.next_size(dataset.id)).sentence)


def _rate(rate: estimates.NoiseRate) -> None:
    st.metric("Wrong labels", words.interval(rate.low, rate.high), help="with 95 % confidence")
    st.caption(rate.sentence)
