"""The fields of each engine's config, for those who want other values than the preset's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.session.apart import EngineTitle
from app.session.words import documented, plain
from auditor.bridges import engine_bridge
from auditor.bridges.engine_bridge import Setting

SEEN = "audit_settings_seen"


def choose(
    engines: Sequence[EngineTitle], preset: str, *, trained_on: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """An expander with one group an engine; returns the fields that differ from the preset, by engine.

    ``trained_on``: by engine, a key of ``EngineTitle.settings``.
    What is typed is read like the command line's ``--set`` and checked when the audit is planned.
    """
    changed: dict[str, dict[str, Any]] = {}
    fold = st.expander(
        "Settings of each engine", key="audit_settings", icon=":material/tune:", on_change="rerun"
    )
    # Two hundred fields take half a second: not before somebody looks, and from then on, since what is typed in a
    # field that is not drawn is forgotten.
    if not (fold.open or st.session_state.get(SEEN)):
        return changed
    st.session_state[SEEN] = True
    with fold:
        st.caption(f"Grey values are those of the preset {preset}; an empty field uses its grey value.")
        if not engines:
            return changed
        for tab, engine in zip(st.tabs([one.title for one in engines]), engines, strict=True):
            with tab, st.container(height=420, border=False):
                fields = engine.settings[trained_on[engine.name]]
                values = {one.name: _draw(engine.name, one, preset) for one in fields}
            kept = {
                one.name: values[one.name]
                for one in fields
                if values[one.name] is not None
                and json.dumps(values[one.name]) != json.dumps(one.defaults[preset])
            }
            if kept:
                changed[engine.name] = kept
    return changed


def _draw(engine: str, setting: Setting, preset: str) -> Any:
    """One field with what it means; the value that was filled in, or None."""
    field, meaning = st.columns([1, 2.4], vertical_alignment="center")
    default, key = setting.defaults[preset], f"audit_set_{engine}_{setting.name}"
    shown = default if isinstance(default, str) else json.dumps(default)
    kind = f"({plain(setting.kind)})" if setting.kind else ""
    meaning.caption(f"{documented(setting.meaning)} {kind}")
    if isinstance(default, bool):
        return field.selectbox(
            setting.name, [True, False], index=None, format_func=json.dumps, placeholder=shown, key=key
        )
    typed = (field.text_input(setting.name, placeholder=shown, key=key) or "").strip()
    return engine_bridge.typed_value(typed) if typed else None
