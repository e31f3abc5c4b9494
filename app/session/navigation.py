"""The list of screens. Its links carry the dataset and audit, so that one opened in another tab stays with them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape

import streamlit as st

from app.session import readers, sign_in, state


def draw(pages: Mapping[str, Sequence[st.Page]]) -> None:
    """The screens by section in the sidebar; of those about a dataset the ones for what its labels are."""
    name = st.session_state.get(state.CHOSEN)
    dataset = None if name is None else readers.dataset(name)
    with st.sidebar.container(key="screens", gap="xxsmall"):
        for section, members in pages.items():
            shown = [
                page
                for page in members
                if not section or dataset is None or state.is_for(page.title, dataset)
            ]
            if section and shown:
                st.caption(section)
            for page in shown:
                st.page_link(page, query_params=state.address())


def tell_palette() -> None:
    """Give the palette of Ctrl + K (``palette.js``) the datasets, and the classes of the chosen one, as data."""
    name = st.session_state.get(state.CHOSEN)
    known = {
        "base": readers.base_path(),
        "dataset": name,
        "datasets": [row.name for row in readers.all_datasets()],
        "classes": [] if name is None else readers.dataset(name).class_names,
    }
    st.sidebar.html(f'<i id="palette" data-known="{escape(json.dumps(known))}"></i>')


def allowed(pages: Mapping[str, Sequence[st.Page]]) -> dict[str, list[st.Page]]:
    """Those that whoever is here may open, by section."""
    kept = {
        section: [page for page in members if sign_in.opens(page.url_path or "home")]
        for section, members in pages.items()
    }
    return {section: members for section, members in kept.items() if members}
