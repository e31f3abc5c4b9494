"""The demo dataset, made at the press of a button."""

from __future__ import annotations

import streamlit as st

from app import state
from auditor import auditing

NAME = "demo"


def offer() -> None:
    """A button that imports the demo's digits and starts their audit."""
    if st.button("Make the demo dataset and audit it", type="primary", icon=":material/science:", key="home_demo"):
        from auditor import demonstration

        with st.spinner("Importing 1,797 digits …"):
            demonstration.prepare()
        auditing.start_in_background(auditing.plan(NAME))
        state.go_to_dataset(NAME)
        st.switch_page("app_pages/audit.py")
