"""Weights of another network: fetched by a button that says their size and licence first, or from a file."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from app.session import allowed, apart
from app.session.failures import shown
from app.session.words import plain
from auditor.backbones import weights
from auditor.backbones.shelf import SHELF

CHOSEN = "audit_weights_chosen"
"""The network whose weights just came, until the choice above shows it."""
OFFER = "audit_weights_offer"
"""What the hub said of the network that is chosen."""
KINDS = ("safetensors", "pth", "bin")


def add() -> None:
    """Ask which network, and where its weights come from; once they fit it they are kept and can be chosen."""
    names = {one.name: one.good_for for one in SHELF if weights.present(one.name) is None}
    with st.container(border=True), shown():
        if not names:
            st.caption("The weights of all these networks are here.")
            return
        name = st.selectbox(
            "Network",
            list(names),
            format_func=lambda one: f"{one.partition(':')[2]}: {names[one]}",
            key="audit_weights_name",
        )
        fetch, drop = st.columns(2, gap="large", vertical_alignment="bottom")
        with drop:
            file = st.file_uploader("Or drop a file with its weights", list(KINDS), key="audit_weights_file")
        with fetch:
            offer = st.session_state.get(OFFER)
            if file is not None:
                if st.button("Use this file", type="primary", key="audit_weights_use"):
                    path = allowed.keep_upload(file.name, file, file.size, kinds=KINDS)
                    try:
                        with st.spinner("Checking the file …"):
                            apart.call(weights.add, name, Path(path))
                    finally:
                        allowed.forget_upload(str(path))
                    _take(name)
            elif offer is None or offer.name != name:
                if st.button("Fetch its weights …", key="audit_weights_ask"):
                    with st.spinner("Asking for their size and licence …"):
                        st.session_state[OFFER] = apart.call(weights.offer, name)
                    st.rerun()
            else:
                size = "of unknown size" if offer.size is None else f"{offer.size / 1e6:,.0f} MB"
                st.caption(plain(f"{offer.source}: {size}, licence {offer.licence}"))
                if st.button(f"Fetch {size}", type="primary", key="audit_weights_fetch"):
                    with st.spinner("Fetching …"):
                        apart.call(weights.get, name, progress=False)
                    _take(name)


def _take(name: str) -> None:
    st.session_state[CHOSEN] = name
    st.rerun()
