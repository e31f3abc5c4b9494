"""What can be said about a dataset now, in figures and sentences."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.session import readers, words
from auditor.audits import statements
from auditor.catalog.records import Audit, Dataset
from auditor.review import head_order, random_sample
from auditor.statistics import noise


def verified(dataset: Dataset, audit: Audit | None, *, judged: int) -> None:
    """The noise rate, what is promised at each level, and what more rows would buy."""
    if judged == 0:
        st.write("Nothing yet: judge the first samples.")
        return
    if audit is None:
        rate = noise.noise_rate_from_verified(
            readers.given_labels(dataset.id), random_sample.standing(dataset.id)
        )
        _rate(rate)
        st.write("After an audit has finished, promises about its list are also based on these rows.")
        return
    standing = statements.load(audit.id)
    _rate(statements.noise_rate(standing))
    st.markdown("**Promises about the list**")
    found = statements.promises(standing)
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
    if (running := head_order.blind(audit.id)) is not None:
        st.markdown("**At any moment**")
        st.caption(running.sentence)
    st.markdown("**What more rows would give**")
    st.caption(statements.what_more_buys(standing, random_sample.next_size(dataset.id)).sentence)


def _rate(rate: noise.NoiseRate) -> None:
    st.metric("Wrong labels", words.interval(rate.low, rate.high), help="with 95 % confidence")
    st.caption(rate.sentence)
