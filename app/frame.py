"""The frame of every screen: navigation, the chosen dataset, and the one place where errors end."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from app.session import choices, failures, navigation, sign_in, state
from auditor.catalog import folders

st.set_page_config(page_title="Label auditor", page_icon="🔎", layout="wide", initial_sidebar_state=236)
STYLE, SCRIPT, PALETTE = (
    (Path(__file__).parent / name).read_text(encoding="utf-8")
    for name in ("frame.css", "frame.js", "palette.js")
)
st.html(f"<style>{STYLE}</style><script>{SCRIPT}{PALETTE}</script>", unsafe_allow_javascript=True)

PAGES = {
    "": [
        st.Page("screens/home.py", title="Home", icon=":material/home:", default=True),
        st.Page("screens/import_.py", title="Import", icon=":material/upload:", url_path="import"),
        st.Page("screens/audit.py", title="Audit", icon=":material/play_circle:", url_path="audit"),
    ],
    "Review": [
        st.Page("screens/verify.py", title="Verify", icon=":material/fact_check:", url_path="verify"),
        st.Page("screens/suspects.py", title="Suspects", icon=":material/rule:", url_path="suspects"),
        st.Page("screens/masks.py", title="Masks", icon=":material/texture:", url_path="masks"),
        st.Page("screens/numbers.py", title="Numbers", icon=":material/123:", url_path="numbers"),
        st.Page("screens/sets.py", title="Sets", icon=":material/label:", url_path="sets"),
        st.Page("screens/map.py", title="Map", icon=":material/scatter_plot:", url_path="map"),
    ],
    "Understand": [
        st.Page("screens/classes.py", title="Classes", icon=":material/grid_on:", url_path="classes"),
        st.Page("screens/engines.py", title="Engines", icon=":material/compare:", url_path="engines"),
    ],
    "Finish": [
        st.Page("screens/export.py", title="Export", icon=":material/download:", url_path="export"),
    ],
}

with failures.shown(), folders.checked_once():
    sign_in.require()
    pages = navigation.allowed(PAGES)
    page = st.navigation(pages, position="hidden")
    choices.turn_page(page.url_path)
    state.choose_dataset()
    navigation.draw(pages)
    state.show_reviewer()
    navigation.tell_palette()
    page.run()
