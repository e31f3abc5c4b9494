"""The filters above the bench: widgets in, the queue that they describe out."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.session import choices as kept
from app.session import readers, state
from auditor.audits import arrays
from auditor.catalog.records import Audit, Dataset
from auditor.catalog.scores import STRONG_DISAGREEMENT
from auditor.statistics import MOST_SPLITS

SHOW = {
    "undecided": "Undecided",
    "issues": "Undecided label issues",
    "everything": "Everything",
    "decided": "Decided",
}
MOST_PAIRS = 200


def choose(dataset: Dataset, audit: Audit) -> dict[str, Any]:
    """Draw the filters in one row; class names in the options are shown as they are."""
    names = dataset.class_names
    counts = readers.class_counts(dataset)
    labels = [state.ALL, *sorted(label for label in counts if label >= 0)]

    def given_option(label: str | int) -> str:
        return "Given: any" if isinstance(label, str) else f"Given: {names[label]} ({counts.get(label, 0):,})"

    def suggested_option(label: str | int) -> str:
        return "Suggested: any" if isinstance(label, str) else f"Suggested: {names[label]}"

    def pair_option(pair: Any) -> str:
        return "Pair: any" if pair == state.ALL else f"{names[pair[0]]} → {names[pair[1]]} ({pair[2]:,})"

    pairs = [
        tuple(pair) for pair in readers.pair_counts(audit).head(MOST_PAIRS).astype(int).to_numpy().tolist()
    ]
    # On a phone the row folds away behind the bench's button "Filters" (frame.py).
    splits = list(readers.split_counts(dataset).items())[:MOST_SPLITS]
    if splits and splits[0][1] == dataset.num_samples:
        splits = []  # the one split of all samples divides nothing
    widths = [1.2, 1.1, 1.4, 1.1, 1.8] + [1.1] * bool(splits)
    row = st.container(key="suspects_filters").columns(widths)
    with row[0]:
        show = _select(dataset, "Show", list(SHOW), SHOW.__getitem__, state.QUEUE_SHOW)
    with row[1]:
        given = _select(dataset, "Given label", labels, given_option, state.QUEUE_GIVEN)
    with row[2]:
        suggested = _select(dataset, "Suggested label", labels, suggested_option, state.QUEUE_SUGGESTED)
    with row[3]:
        pair = _select(dataset, "Pair", [state.ALL, *pairs], pair_option, state.QUEUE_PAIR)
    with row[4]:
        against = _choose_engines(dataset, audit)
    split = state.ALL
    if splits:
        with row[5]:
            split = _choose_split(dataset, splits)
    queue: dict[str, Any] = {
        "undecided": show in ("undecided", "issues"),
        "issues": show == "issues",
        "decided": show == "decided",
        "given": None if given == state.ALL else int(given),
        "suggested": None if suggested == state.ALL else int(suggested),
    }
    if split != state.ALL:
        queue["split"] = split[0]
    if pair != state.ALL:
        queue |= {"given": pair[0], "suggested": pair[1]}
    return queue | against


def _choose_engines(dataset: Dataset, audit: Audit) -> dict[str, Any]:
    """How many engines, or which one, see another class than the given one."""
    engines = arrays.engines_of(audit.id)
    titles = {name: arrays.describe(audit.id, name)["title"] for name in engines}

    def option(choice: int | str) -> str:
        if isinstance(choice, str):
            return f"Against it: {titles[choice]}"
        words = {0: "Engines against it: any", -1: "Engines disagree strongly"}
        return words.get(choice, f"Engines against it: {choice} or more")

    choices = [0, *range(1, len(engines) + 1), -1, *engines]
    chosen = _select(dataset, "Engines against the label", choices, option, state.QUEUE_AGREEMENT)
    if isinstance(chosen, str):
        return {"engine": chosen}
    if chosen == -1:
        return {"disagreement": STRONG_DISAGREEMENT}
    return {"agreement": chosen} if chosen else {}


def _choose_split(dataset: Dataset, splits: list[tuple[str, int]]) -> Any:
    """``state.ALL``, or a (split, samples) pair."""
    return kept.select(
        "Split",
        [state.ALL, *splits],
        dataset=dataset.name,
        key=state.QUEUE_SPLIT,
        code=lambda one: one if isinstance(one, str) else state.split_code(one[0]),
        format_func=lambda one: "Split: any" if isinstance(one, str) else f"Split: {one[0]} ({one[1]:,})",
        label_visibility="collapsed",
    )


def _select(dataset: Dataset, label: str, options: list[Any], format_func: Any, key: str) -> Any:
    return kept.select(
        label,
        options,
        dataset=dataset.name,
        key=key,
        code=_code,
        format_func=format_func,
        label_visibility="collapsed",
    )


def _code(option: Any) -> str:
    """An option in the page's address; a pair goes without its count, which another audit changes."""
    return f"{option[0]}-{option[1]}" if isinstance(option, tuple) else str(option)
