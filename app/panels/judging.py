"""Screens of labels that are no classes: their views, what is asked with a bench's keys, and what follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import components
from app.panels import downloads
from app.session import readers, sign_in, state
from app.session.access import OWNER
from app.session.failures import shown
from auditor import kind
from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import (
    DECISIONS,
    EXCLUDE,
    KEEP,
    LABEL,
    MULTILABEL,
    RELABEL,
    SEGMENTATION,
    UNSURE,
    VERDICTS,
)
from auditor.review import blind as verdicts
from auditor.review import drawing

SUSPECTS, CHECKED = "Suspects", "Checked"
"""The views of what waits, and of what people decided; between them is ``state.RANDOM_SAMPLE``."""
EXPORT = "export"
"""The step that makes the cleaned labels."""
OUTCOMES = {name: one.words for name, one in DECISIONS.items()} | {RELABEL: "changed"}
"""What became of a label, by the decision on it."""
AT_ONCE = 30
"""Labels that travel to the screen at once; it asks for more when they are answered."""


def action(name: str, button: str, key: str, text: str, **more: Any) -> dict[str, Any]:
    """A button of the screen and its key; ``id`` where its key is not that of the answer's name."""
    return {"id": name, "name": name, "button": button, "key": key, "text": text, "tone": "", **more}


ON_NUMBER = [
    action(name, one.button, one.key, one.help, tone=name)
    for name in (KEEP, RELABEL, EXCLUDE, UNSURE)
    for one in (DECISIONS[name],)
]
"""What a person can decide on a given number or set; the suggestion is taken as it is shown."""
BLIND_NUMBER = [
    action(EXCLUDE, "No number fits", VERDICTS[EXCLUDE].keys[0], "no number fits: exclude the sample"),
    action(UNSURE, VERDICTS[UNSURE].button, VERDICTS[UNSURE].keys[0], VERDICTS[UNSURE].help),
]
BLIND_SET = [
    action(LABEL, VERDICTS[LABEL].button, VERDICTS[LABEL].keys[0], "the given labels are right", tone=KEEP),
    action(EXCLUDE, "Leave the picture out", VERDICTS[EXCLUDE].keys[0], "exclude the picture"),
    action(UNSURE, VERDICTS[UNSURE].button, VERDICTS[UNSURE].keys[0], VERDICTS[UNSURE].help),
]
BLIND_MASK = [
    action(KEEP, "It is right", DECISIONS[KEEP].key, "the outline is right", tone=KEEP),
    # A key of its own: W takes a suggestion, and here is none.
    action(RELABEL, "It is wrong", "i", "the outline is wrong", id="wrong", tone=RELABEL),
    action(EXCLUDE, "Leave the picture out", DECISIONS[EXCLUDE].key, "exclude the picture"),
    action(UNSURE, VERDICTS[UNSURE].button, VERDICTS[UNSURE].keys[0], VERDICTS[UNSURE].help),
]
"""What a person answers about a random sample of numbers, of sets and of masks."""


def ending(suspects: pd.DataFrame) -> str:
    """Return what the end of the suspects says: how many they were and, once all are checked, how that ended."""
    if suspects.empty:
        return "Nothing here is a suspect."
    many = len(suspects) > 1
    said = f"All {len(suspects):,} suspects are checked" if many else "The one suspect is checked"
    if suspects.decision.isna().any():
        return f"{said}."
    counts = suspects.decision.map(OUTCOMES).value_counts()
    return f"{said}: {', '.join(f'{count:,} {outcome}' for outcome, count in counts.items())}."


def choose_view(dataset: Dataset, audit: Audit, bar: DeltaGenerator, key: str) -> str:
    """Draw in ``bar`` the views beside the button of the cleaned labels, below it the file; return the view."""
    views = [SUSPECTS, state.RANDOM_SAMPLE, CHECKED]
    with bar, shown():
        st.radio("View", views, key=key, horizontal=True, label_visibility="collapsed")
        if sign_in.may(OWNER):
            downloads.button(
                dataset,
                _export(dataset),
                _file(dataset),
                {"audit_id": audit.id},
                key="cleaned_download",
                icon=":material/download:",
                help="Only what a person decided changes a label.",
            )
    if sign_in.may(OWNER):
        downloads.made(dataset)
    return str(st.session_state[key])


def after(dataset: Dataset) -> dict[str, str]:
    """Return what follows the suspects: a random sample until one is checked, then the cleaned labels."""
    steps = {state.RANDOM_SAMPLE: "Check a random sample"}
    if sign_in.may(OWNER):
        steps[EXPORT] = _export(dataset)
    is_known = drawing.num_drawn(dataset.id) and not verdicts.pending(dataset.id)
    return dict(reversed(steps.items())) if is_known else steps


def go_on(dataset: Dataset, audit: Audit, bench: str, view: str) -> None:
    """Take the step that was chosen on ``bench``: the file is made, or the radio ``view`` turned to that view."""
    chosen = st.session_state[bench]["next"]
    if chosen == EXPORT:
        downloads.start(dataset, _file(dataset), {"audit_id": audit.id})
    else:
        st.session_state[view] = chosen


def _export(dataset: Dataset) -> str:
    """``Export the cleaned masks``."""
    return f"Export the cleaned {'labels' if dataset.task == MULTILABEL else kind.of(dataset).words}"


def _file(dataset: Dataset) -> str:
    return "masks.zip" if dataset.task == SEGMENTATION else "cleaned.csv"


def blind(
    dataset: Dataset, reviewer: str, actions: list[dict[str, Any]], asked: Callable[[int], dict[str, Any]]
) -> None:
    """The random samples that wait, as ``asked`` describes each, or that none is left."""
    waiting = verdicts.pending(dataset.id)
    last = readers.last_blind_item(dataset.id, reviewer)
    if not waiting and last is None:
        return
    components.judge(
        key="judge_blind",
        connection=readers.connection(dataset),
        reviewer=reviewer,
        items=[{"sample": sample, "draw": draw, **asked(sample)} for draw, sample in waiting[:AT_ONCE]],
        left=len(waiting),
        noun="sample",
        actions=actions,
        finished="Done: every chosen sample is checked.",
        last=last,
    )
