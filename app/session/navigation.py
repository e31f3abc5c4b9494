"""The list of screens. Its links carry the dataset and audit, so that one opened in another tab stays with them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape

import streamlit as st

from app.session import readers, sign_in, state


def draw(pages: Mapping[str, Sequence[st.Page]]) -> None:
    """The screens by section in the sidebar; of those about a dataset the ones for what its labels are, and none
    where there is no dataset.
    """
    name = st.session_state.get(state.CHOSEN)
    dataset = None if name is None else readers.dataset(name)
    with st.sidebar.container(key="screens", gap="xxsmall"):
        for section, members in pages.items():
            shown = [
                page
                for page in members
                if not section or (dataset is not None and state.is_for(page.title, dataset))
            ]
            if section and shown:
                st.caption(section)
            for page in shown:
                st.page_link(page, query_params=state.address())


def tell_palette() -> None:
    """A button for the palette of Ctrl + K (``palette.js``), with what it knows as data: the datasets, (number,
    name) of the chosen one's classes, and of its samples how many there are, (screen, field of its address, what
    precedes a number) and where their pictures lie.
    """
    name = st.session_state.get(state.CHOSEN)
    dataset = None if name is None else readers.dataset(name)
    of_others = None if dataset is None else state.PAGE_OF.get(dataset.task)
    of_samples = {}
    if dataset is not None:
        place = readers.connection(dataset)
        of_samples = {
            "samples": dataset.num_samples,
            "picture": "{base}/bench/image/{dataset}/SAMPLE?size=128&v={version}&t={token}".format_map(place),
        }
    known = of_samples | {
        "base": readers.base_path(),
        "dataset": name,
        "datasets": [row.name for row in readers.all_datasets()],
        "classes": [] if dataset is None or of_others else list(dataset.classes.items()),
        "sample": [of_others[1], state.SAMPLE, ""] if of_others else ["suspects", "suspects_search", "#"],
    }
    st.sidebar.html(
        f'<button id="palette" data-known="{escape(json.dumps(known))}">Go to … <kbd>Ctrl K</kbd></button>'
    )


def allowed(pages: Mapping[str, Sequence[st.Page]]) -> dict[str, list[st.Page]]:
    """Those that whoever is here may open, by section."""
    kept = {
        section: [page for page in members if sign_in.opens(page.url_path or "home")]
        for section, members in pages.items()
    }
    return {section: members for section, members in kept.items() if members}
