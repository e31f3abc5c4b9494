"""Choices that outlive their widgets: kept by dataset in the session, and in the address of the page.

Streamlit forgets a widget's value as soon as a page does not draw it. What was chosen is therefore kept as short
text under a key that belongs to no widget, where other pages and a reload find it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

KEPT = "kept_choices"
DRAWN_FOR = "kept_drawn_for"
PAGE = "kept_page"


def turn_page(page: str) -> None:
    """Tell which page is drawn. A select box of another page starts anew, so its choice has to be given to it."""
    if st.session_state.get(PAGE) != page:
        st.session_state[PAGE] = page
        drawn_for = st.session_state.setdefault(DRAWN_FOR, {})
        drawn_for.update(dict.fromkeys(drawn_for))


def remembered(dataset: str) -> dict[str, str]:
    """Choices of a dataset by the widget's key, as text."""
    return st.session_state.setdefault(KEPT, {}).setdefault(dataset, {})


def put(dataset: str, **choices: str) -> None:
    """Choose for widgets of another page, or of this one in a callback: they show these values from then on."""
    for key, code in choices.items():
        st.session_state.pop(key, None)
        remembered(dataset)[key] = code


def select(
    label: str,
    options: list[Any],
    *,
    dataset: str,
    key: str,
    code: Callable[[Any], str] = str,
    **drawing: Any,
) -> Any:
    """A select box whose choice survives other pages and a reload; the first option is the default.

    Args:
        label: of the select box.
        options: what can be chosen.
        dataset: whose choice it is; every dataset has its own.
        key: of the widget; also the name in the page's address.
        code: an option as short text.
        drawing: passed on to ``st.selectbox``.
    """
    kept, drawn_for = remembered(dataset), st.session_state.setdefault(DRAWN_FOR, {})
    if drawn_for.get(key) != dataset or st.session_state.get(key) not in options:
        # Only a page that was just loaded is told by its address; later the address follows the choice.
        linked = None if key in drawn_for else st.query_params.get(key)
        wanted = kept.get(key, linked)
        st.session_state[key] = next((one for one in options if code(one) == wanted), options[0])
    drawn_for[key] = dataset
    chosen = st.selectbox(label, options, key=key, **drawing)
    kept[key] = code(chosen)
    if chosen != options[0]:
        st.query_params[key] = kept[key]
    elif key in st.query_params:
        del st.query_params[key]
    return chosen
