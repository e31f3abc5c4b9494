"""The list of screens. Its links carry the dataset and audit, so that one opened in another tab stays with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from app.session import sign_in, state


def draw(pages: Mapping[str, Sequence[st.Page]]) -> None:
    """The screens by section in the sidebar."""
    with st.sidebar.container(key="screens", gap="xxsmall"):
        for section, members in pages.items():
            if section:
                st.caption(section)
            for page in members:
                st.page_link(page, query_params=state.address())


def allowed(pages: Mapping[str, Sequence[st.Page]]) -> dict[str, list[st.Page]]:
    """Those that whoever is here may open, by section."""
    kept = {
        section: [page for page in members if sign_in.opens(page.url_path or "home")]
        for section, members in pages.items()
    }
    return {section: members for section, members in kept.items() if members}
