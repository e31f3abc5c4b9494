"""The demo dataset, made at the press of a button."""

from __future__ import annotations

import streamlit as st

from app.session import apart, state
from auditor.audits import start_audit
from auditor.cli import demo

NAME = demo.NAME


def offer() -> None:
    """A button that imports the demo's digits and starts their audit."""
    if st.button(
        "Make the demo dataset and audit it", type="primary", icon=":material/science:", key="home_demo"
    ):
        with st.spinner("Importing 1,797 digits …"):
            demo.prepare()
        start_audit(apart.plan(NAME, None, "quick", "auto", 0))
        state.go_to_dataset(NAME)
        state.go_to("audit")
