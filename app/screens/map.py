"""Which samples lie together in what a backbone saw or an engine learned, and whose labels do not fit there?"""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import components
from app.panels import regions, worst
from app.session import next_steps, readers, sign_in, state
from auditor.results import arrays

COLOURS = {"given": "Label today", "suggested": "Suggested label", "trust": "Trust"}
COLOURS |= {"review": "Review", "reviewer": "Reviewer", "split": "Split"}
WORST = 12
HELP = (
    "A dot's colour is its label of today. A ring around it says that it is a suspect. Dots that lie together look "
    "alike in what the map was made from. Crowded parts are drawn wider than they are, empty ones narrower. The "
    "wheel zooms, Shift and drag move the view. By keys: arrows and + − move it."
)

dataset, bar = state.screen("Map")
audit = state.require_audit(dataset)


def title(name: str) -> str:
    """Return what a map was made from."""
    if name == arrays.FEATURES:
        return arrays.features_title(audit)
    return str(arrays.describe(audit.id, name)["title"])


maps = arrays.maps_of(audit.id)
if not maps:
    st.info("This audit has no map yet.")
    st.stop()
with bar:
    engine = maps[0]
    if len(maps) > 1:
        engine = st.selectbox(
            "Made from", maps, format_func=title, key="map_engine", label_visibility="collapsed", width=220
        )
    colour = st.selectbox(
        "Colour by",
        list(COLOURS),
        format_func=lambda name: f"Colour: {COLOURS[name].lower()}",
        key="map_colour",
        label_visibility="collapsed",
        width=220,
    )


def take_region() -> None:
    """Remember what was drawn, with the map that it was drawn on."""
    polygon: Any = st.session_state["map_view"].get("region")
    st.session_state[state.REGION] = None
    if polygon:
        st.session_state[state.REGION] = {"audit": audit.id, "engine": engine, "polygon": polygon}


region = st.session_state.get(state.REGION)
if region is not None and (region["audit"], region["engine"]) != (audit.id, engine):
    region = None
plot, side = st.columns([1.15, 1], gap="medium")
with plot:
    components.embedding_map(
        key="map_view",
        connection=readers.connection(dataset),
        audit_id=audit.id,
        engine=engine,
        class_names=dataset.names_of_today,
        colour=colour,
        region=None if region is None else region["polygon"],
        version=st.session_state.get("map_version", 0),
        on_region=take_region,
    )
with side.container(key="map_region"):
    is_reviewer = sign_in.opens("suspects")
    if region is None:
        with st.container(horizontal=True, vertical_alignment="center"):
            seen = readers.status(dataset)
            step, waits = next_steps.of(seen), next_steps.waiting(seen)
            title_of = "Suspects, the worst first" if waits else "Every suspect is checked"
            st.subheader(title_of, anchor=False, help=HELP, width="stretch")
            if sign_in.opens(step.page) and st.button(
                step.button, key="map_review", icon=":material/arrow_forward:", type="primary"
            ):
                state.go_to(step.page)
        if is_reviewer:
            regions.bench(dataset, audit, {"issues": True, "undecided": True}, state.reviewer())
        else:
            worst.draw(dataset, audit, WORST)
    elif is_reviewer:
        queue = {"region": {"engine": engine, "polygon": region["polygon"]}}
        regions.draw(dataset, audit, queue, state.reviewer())
