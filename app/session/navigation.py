"""The list of screens. Its links carry the dataset and audit, so that one opened in another tab stays with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from app.session import state


def draw(pages: Mapping[str, Sequence[st.Page]]) -> None:
    """The screens by section in the sidebar."""
    with st.sidebar.container(key="screens", gap="xxsmall"):
        for section, members in pages.items():
            if section:
                st.caption(section)
            for page in members:
                st.page_link(page, query_params=state.address())
