"""Classes that people add, rename, merge and split, with the log of it and its undoing."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.session import readers, sign_in, state, words
from app.session.access import REVIEWER
from app.session.failures import shown
from app.session.words import plain
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset
from auditor.ground.errors import ReviewError
from auditor.results import class_changes, new_classes, queues

ADD, RENAME, MERGE, SPLIT = "Add", "Rename", "Merge", "Split"
LISTED = re.compile(r"#?(\d+)(?:\s*[-–]\s*#?(\d+))?")
"""A sample's number, or the first and the last of a range."""


def draw(dataset: Dataset, audit: Audit, bar: DeltaGenerator) -> None:
    """A button in the bar that opens all of it; none for who may only look."""
    if not sign_in.may(REVIEWER):
        return
    with bar.popover("Change classes", icon=":material/edit:", key="classes_change"):
        way = st.segmented_control(
            "What",
            list(FORMS),
            default=RENAME,
            required=True,
            key="classes_way",
            label_visibility="collapsed",
            width="stretch",
        )
        # Fields are empty again after a change: their keys say how many there were.
        number = f"{len(dataset.class_names)}_{len(dataset.class_changes or ())}"
        with shown():
            FORMS[way](dataset, audit, number)
        with shown():
            _draw_log(dataset)


def _rename(dataset: Dataset, audit: Audit, number: str) -> None:  # noqa: ARG001
    label = _choose(dataset, "Class", f"classes_which_{number}")
    name = _name("New name", number, "Exports keep the imported name in given_label.")
    if _pressed(RENAME):
        _change(
            lambda: class_changes.rename(
                dataset.name, dataset.classes[label], name, reviewer=state.reviewer()
            )
        )


def _merge(dataset: Dataset, audit: Audit, number: str) -> None:  # noqa: ARG001
    label = _choose(dataset, "Class", f"classes_which_{number}")
    others = [one for one in dataset.classes if one != label]
    into = _choose(dataset, "Becomes part of", f"classes_into_{number}", others)
    gone, stays = (plain(dataset.classes[one]) for one in (label, into))
    samples = words.plural(readers.class_counts(dataset).get(label, 0), "sample")
    st.caption(f"{samples} of {gone}, and every decision that names it, will be {stays}. It can be undone.")
    if _pressed(MERGE):
        names = dataset.classes[label], dataset.classes[into]
        _change(lambda: class_changes.merge(dataset.name, *names, reviewer=state.reviewer()))


def _split(dataset: Dataset, audit: Audit, number: str) -> None:
    label = _choose(dataset, "Class", f"classes_which_{number}")
    name = _name("Name of the new class", number, "Engines learn it in the next audit, from these samples.")
    text = st.text_input(
        "Samples that go there",
        key=f"classes_samples_{number}",
        placeholder="3, 17, 20-25",
        help="Their numbers, as Suspects and the grid show them; a range with a dash.",
    )
    circled = _circled(dataset, audit, label)
    if circled and not st.checkbox(
        f"Also the {words.count(len(circled))} in the region of the Map", key=f"classes_circled_{number}"
    ):
        circled = []
    if _pressed(SPLIT):
        names, chosen = (dataset.classes[label], name), [*numbers_in(text, dataset.num_samples), *circled]
        _change(lambda: class_changes.split(dataset.name, *names, chosen, reviewer=state.reviewer()))


def _add(dataset: Dataset, audit: Audit, number: str) -> None:  # noqa: ARG001
    about = "For pictures that fit no class. Engines learn it in the next audit, from decisions."
    name = _name("Name", number, about)
    if _pressed(ADD):
        _change(lambda: new_classes.add(dataset.name, name))
    number_of_last, last = len(dataset.class_names) - 1, dataset.class_names[-1]
    is_empty = number_of_last in dataset.classes and not readers.class_counts(dataset).get(number_of_last)
    if is_empty and st.button(f"Take {plain(last)} back", key="classes_back", width="stretch"):
        _change(lambda: new_classes.remove(dataset.name, last))


def numbers_in(text: str, num_samples: int) -> list[int]:
    """The numbers of samples that a person typed: ``3, 17, 20-25``.

    Raises:
        ReviewError: a part is no number and no range of the dataset's samples.
    """
    found: list[int] = []
    for part in filter(None, re.split(r"[,;\n]|(?<=\d)\s+(?=#?\d)", text.strip())):
        hit = LISTED.fullmatch(part.strip())
        first, last = (int(one) for one in (hit[1], hit[2] or hit[1])) if hit else (1, 0)
        if not first <= last < num_samples:
            raise ReviewError(
                f"{part.strip()!r} is no number of a sample (0 to {num_samples - 1:,}) and no range such as 20-25."
            )
        found += range(first, last + 1)
    return found


def _circled(dataset: Dataset, audit: Audit, label: int) -> list[int]:
    """The samples of the class in the region that was drawn on the map of this audit."""
    region = st.session_state.get(state.REGION)
    if region is None or region["audit"] != audit.id:
        return []
    members = ask(class_changes.members, dataset, label)
    return np.intersect1d(queues.inside(audit, region), members).tolist()


def _draw_log(dataset: Dataset) -> None:
    """List what was changed, by whom and when, the newest first; the newest can be taken back."""
    said = class_changes.sentences(dataset)
    if not said:
        return
    st.markdown("**Changed so far**")
    with st.container(gap="xxsmall", key="classes_log"):
        for one in reversed(said):
            st.caption(plain(one))
    if st.button("Undo the newest", icon=":material/undo:", key="classes_undo", width="stretch"):
        _change(lambda: class_changes.undo(dataset.name, reviewer=state.reviewer()))


def _choose(dataset: Dataset, title: str, key: str, labels: list[int] | None = None) -> int:
    offered = list(dataset.classes) if labels is None else labels
    return int(st.selectbox(title, offered, format_func=dataset.class_names.__getitem__, key=key))


def _name(title: str, number: str, about: str) -> str:
    return st.text_input(title, key=f"classes_name_{number}", help=about).strip()


def _pressed(way: str) -> bool:
    return st.button(way, type="primary", key="classes_do", width="stretch")


FORMS = {RENAME: _rename, MERGE: _merge, SPLIT: _split, ADD: _add}


def _change(act: Callable[[], object]) -> None:
    with st.spinner("Audits are ranked again …"):
        act()
    st.rerun()
