"""The filters above the bench: widgets in, the queue that they describe out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.session import choices as kept
from app.session import readers, state
from app.session.words import plain
from auditor.catalog.records import Audit, Dataset
from auditor.catalog.scores import STRONG_DISAGREEMENT
from auditor.results import arrays, queues
from auditor.statistics import MOST_SPLITS

SHOW = {
    "suspects": "Suspects to check",
    "undecided": "All unchecked",
    "everything": "Everything",
    "decided": "Checked",
    "disputed": "People differ",
    "copies": "Near duplicates",
    "outliers": "Unlike all others",
    "dim": "Dark or blurred",
}
WHERE: dict[str, dict[str, Any]] = {
    "suspects": {"undecided": True, "issues": True},
    "undecided": {"undecided": True},
    "everything": {},
    "decided": {"decided": True},
    "disputed": {"disputed": True},
    "copies": {"pictures": queues.COPIES},
    "outliers": {"pictures": queues.OUTLIERS},
    "dim": {"pictures": queues.DIM},
}
"""What each choice asks of a queue."""
SORT = {"suspicious": "Most suspicious first", "files": "In the order of files"}
QUEUE_WIDTH, SORT_WIDTH, SEARCH_WIDTH = 165, 175, 160
"""Pixels of the choices in the bar."""
SHARES = tuple((part, parts) for parts in (2, 3, 4) for part in range(1, parts + 1))
"""Parts of a queue for so many people."""
MOST_PAIRS = 200


def choose(dataset: Dataset, audit: Audit, bar: DeltaGenerator) -> dict[str, Any]:
    """Draw the queue, its order and the search in the bar, the other filters in a row below that folds away.

    What narrows the queue is said by a chip of its own, with a cross that takes just this filter away.

    Class names in the options are shown as they are. The bench puts its own part of the bar, with the button that
    opens the row, over the empty slot (``figures.js``).
    """
    with bar:
        st.container(key="bench_slot").html("<span></span>")
        shown = _select(dataset, "Show", list(SHOW), SHOW.__getitem__, state.QUEUE_SHOW, width=QUEUE_WIDTH)
    queue = dict(WHERE[shown])
    with bar:
        order = _select(dataset, "Sort", list(SORT), SORT.__getitem__, "suspects_sort", width=SORT_WIDTH)
    if order == "files":
        queue["sort"] = order
    splits = list(readers.split_counts(dataset).items())[:MOST_SPLITS]
    if splits and splits[0][1] == dataset.num_samples:
        splits = []  # the one split of all samples divides nothing
    line = st.container(key="suspects_chips", horizontal=True)
    chips: dict[str, str] = {}
    row = st.container(key="suspects_filters").columns([1.1, 1.2, 1.2, 1.3, 1.1] + [1] * bool(splits) + [0.7])
    with row[3]:
        queue |= _choose_engines(dataset, audit, chips)
    with row[4]:
        queue |= _choose_people(dataset, chips)
    if splits:
        with row[5]:
            split = _choose_split(dataset, splits)
        if split != state.ALL:
            queue["split"] = split[0]
            chips[state.QUEUE_SPLIT] = f"Split: {split[0]}"
    if search := _search(dataset, bar):
        queue = {"search": search, "sort": queue.get("sort")}
        chips.clear()  # a search looks at all samples
    queue |= _choose_classes(dataset, audit, queue, row[:3], chips)
    for key, text in chips.items():
        line.button(
            plain(text),
            key=f"suspects_chip_{key}",
            icon=":material/close:",
            icon_position="right",
            on_click=_clear,
            args=(dataset.name, key),
        )
    row[-1].button(
        "Clear",
        key="suspects_clear",
        icon=":material/close:",
        width="stretch",
        help="Remove all filters",
        on_click=_clear,
        args=(dataset.name, *state.NO_FILTER),
    )
    return queue


def _clear(dataset: str, *filters: str) -> None:
    kept.put(dataset, **{key: state.NO_FILTER[key] for key in filters})


def _search(dataset: Dataset, bar: DeltaGenerator) -> str:
    """A part of a path, or # and a sample's number: looked for among all samples, whatever else is chosen."""
    key = f"{state.QUEUE_SEARCH}_{dataset.id}"
    if key not in st.session_state:
        st.session_state[key] = st.query_params.get(state.QUEUE_SEARCH, "")
    text = bar.text_input(
        "Search",
        key=key,
        placeholder="File or #number",
        label_visibility="collapsed",
        width=SEARCH_WIDTH,
        icon=":material/search:",
    ).strip()
    if text:
        st.query_params[state.QUEUE_SEARCH] = text
    elif state.QUEUE_SEARCH in st.query_params:
        del st.query_params[state.QUEUE_SEARCH]
    return text


def _choose_classes(
    dataset: Dataset,
    audit: Audit,
    queue: dict[str, Any],
    columns: Sequence[DeltaGenerator],
    chips: dict[str, str],
) -> dict[str, Any]:
    """Given and suggested class; a number beside a choice is how many samples the queue then holds."""
    names = dataset.class_names
    labels = [state.ALL, *sorted(label for label in readers.class_counts(dataset) if label >= 0)]
    pairs, sizes = [], None
    if "engine" not in queue:  # what one engine sees is no column to count by
        table = readers.pair_counts(audit, queues.suspect_filter(queue, audit))
        whole = table[["given_label", "suggested_label", "count"]]
        pairs = whole.head(MOST_PAIRS).astype(int).to_numpy().tolist()
        sizes = {name: table.groupby(f"{name}_label")["count"].sum() for name in ("given", "suggested")}

    def option(kind: str, label: str | int) -> str:
        if isinstance(label, str):
            return f"{kind.title()}: any"
        return f"{kind.title()}: {names[label]}" + (f" ({sizes[kind].get(label, 0):,})" if sizes else "")

    def pair_option(pair: Any) -> str:
        return "Pair: any" if pair == state.ALL else f"{names[pair[0]]} → {names[pair[1]]} ({pair[2]:,})"

    with columns[0]:
        given = _select(dataset, "Given label", labels, partial(option, "given"), state.QUEUE_GIVEN)
    with columns[1]:
        suggested = _select(
            dataset, "Suggested label", labels, partial(option, "suggested"), state.QUEUE_SUGGESTED
        )
    with columns[2]:
        choices = [state.ALL, *(tuple(pair) for pair in pairs)]
        pair = _select(dataset, "Pair", choices, pair_option, state.QUEUE_PAIR)
    if pair != state.ALL:
        chips[state.QUEUE_PAIR] = f"Pair: {names[pair[0]]} → {names[pair[1]]}"
        return {"given": pair[0], "suggested": pair[1]}
    for kind, key, label in (
        ("Given", state.QUEUE_GIVEN, given),
        ("Suggested", state.QUEUE_SUGGESTED, suggested),
    ):
        if label != state.ALL:
            chips[key] = f"{kind}: {names[label]}"
    return {
        "given": None if given == state.ALL else int(given),
        "suggested": None if suggested == state.ALL else int(suggested),
    }


def _choose_people(dataset: Dataset, chips: dict[str, str]) -> dict[str, Any]:
    """A share of the queue for each of several people, or what one person decided."""

    def option(choice: Any) -> str:
        if choice == state.ALL:
            return "People: all"
        if isinstance(choice, tuple):
            return f"Share {choice[0]} of {choice[1]}"
        return f"Checked by {choice}"

    def code(choice: Any) -> str:
        if choice == state.ALL:
            return state.ALL
        return f"share-{choice[0]}-{choice[1]}" if isinstance(choice, tuple) else f"by-{choice}"

    chosen = kept.select(
        "People",
        [state.ALL, *SHARES, *readers.reviewers(dataset)],
        dataset=dataset.name,
        key=state.QUEUE_PEOPLE,
        code=code,
        format_func=option,
        label_visibility="collapsed",
    )
    if chosen == state.ALL:
        return {}
    chips[state.QUEUE_PEOPLE] = option(chosen)
    return {"share": list(chosen)} if isinstance(chosen, tuple) else {"by": chosen}


def _choose_engines(dataset: Dataset, audit: Audit, chips: dict[str, str]) -> dict[str, Any]:
    """Return how many engines, or which one, see another class than the given one."""
    engines = arrays.engines_of(audit.id)
    titles = {name: arrays.describe(audit.id, name)["title"] for name in engines}

    def option(choice: int | str) -> str:
        if isinstance(choice, str):
            return f"Against it: {titles[choice]}"
        words = {0: "Engines against it: any", -1: "Engines disagree strongly"}
        return words.get(choice, f"Engines against it: {choice} or more")

    choices = [0, *range(1, len(engines) + 1), -1, *engines]
    chosen = _select(dataset, "Engines against the label", choices, option, state.QUEUE_AGREEMENT)
    if chosen != 0:
        chips[state.QUEUE_AGREEMENT] = option(chosen)
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
        format_func=lambda one: "Split: any" if isinstance(one, str) else f"Split: {one[0]}",
        label_visibility="collapsed",
    )


def _select(dataset: Dataset, label: str, options: list[Any], format_func: Any, key: str, **look: Any) -> Any:
    return kept.select(
        label,
        options,
        dataset=dataset.name,
        key=key,
        code=_code,
        format_func=format_func,
        label_visibility="collapsed",
        **look,
    )


def _code(option: Any) -> str:
    """An option in the page's address; a pair goes without its count, which another audit changes."""
    return f"{option[0]}-{option[1]}" if isinstance(option, tuple) else str(option)
