"""Which samples lie together in what a backbone saw or an engine learned, and whose labels do not fit there?"""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import components
from app.panels import regions
from app.session import readers, state
from auditor.audits import arrays

COLOURS = {"given": "Given label", "suggested": "Suggested label", "trust": "Trust", "review": "Review"}
REGION = "map_region"

dataset, bar = state.screen("Map")
audit = state.require_audit(dataset)
left, right = st.columns([1, 1])


def title(name: str) -> str:
    """What a map was made from."""
    if name == arrays.FEATURES:
        return arrays.features_title(audit)
    return f"what was learned by {arrays.describe(audit.id, name)['title']}"


maps = arrays.maps_of(audit.id)
if not maps:
    st.info("This audit has no map yet.")
    st.stop()
engine = left.selectbox("Made from", maps, format_func=title, key="map_engine")
colour = right.selectbox("Colour by", list(COLOURS), format_func=COLOURS.__getitem__, key="map_colour")


def take_region() -> None:
    """Remember what was drawn, with the map that it was drawn on."""
    polygon: Any = st.session_state["map_view"].get("region")
    st.session_state[REGION] = None
    if polygon:
        st.session_state[REGION] = {"audit": audit.id, "engine": engine, "polygon": polygon}


region = st.session_state.get(REGION)
if region is not None and (region["audit"], region["engine"]) != (audit.id, engine):
    region = None
components.embedding_map(
    key="map_view",
    connection=readers.connection(dataset),
    audit_id=audit.id,
    engine=engine,
    class_names=dataset.class_names,
    colour=colour,
    region=None if region is None else region["polygon"],
    version=st.session_state.get("map_version", 0),
    on_region=take_region,
)
st.caption(
    f"Points that lie together look alike in {title(engine)}. A cross is a label issue: its given label is above "
    "the suggested cut. Wheel zooms, Shift and drag pans, a double click shows the whole map."
)
if region is not None:
    with st.container(key="map_region"):
        reviewer = state.require_reviewer("Every decision is kept with your name, and you can undo each one.")
        queue = {"region": {"engine": engine, "polygon": region["polygon"]}}
        regions.draw(dataset, audit, queue, reviewer)
