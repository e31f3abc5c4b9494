"""Which given labels are probably wrong, and what does a person say about them?"""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import bulk, components, data, state, words
from app.words import plain

SHOW = {
    "undecided": "Undecided",
    "issues": "Undecided label issues",
    "everything": "Everything",
    "decided": "Decided",
}
head, door = st.columns([4, 1.2], vertical_alignment="bottom")
head.title("Suspects")
dataset = state.require_dataset()
audit = state.require_audit(dataset)
names = dataset.class_names
counts = data.class_counts(dataset.id)
labels = [state.ALL, *sorted(label for label in counts if label >= 0)]


def class_option(label: str | int) -> str:
    """How a filter names a class; option texts are shown as they are."""
    return "Any" if isinstance(label, str) else f"{names[label]} ({counts.get(label, 0):,})"


def suggested_option(label: str | int) -> str:
    """As above, without a count: it is the count of given labels."""
    return "Any" if isinstance(label, str) else names[label]


def pair_option(pair: tuple[int, int, int] | str) -> str:
    """``six → zero (12)``."""
    if isinstance(pair, str):
        return "Any pair"
    return f"{names[pair[0]]} → {names[pair[1]]} ({pair[2]:,})"


def filters() -> dict[str, Any]:
    """The queue that the filters above the bench describe."""
    row = st.columns([1.5, 1.3, 1.3, 1.5, 1.5])
    show = row[0].selectbox("Show", list(SHOW), format_func=SHOW.__getitem__, key=state.QUEUE_SHOW)
    given = row[1].selectbox("Given label", labels, format_func=class_option, key=state.QUEUE_GIVEN)
    suggested = row[2].selectbox("Suggested", labels, format_func=suggested_option, key=state.QUEUE_SUGGESTED)
    pairs = [tuple(pair) for pair in data.pair_counts(audit).head(200).astype(int).to_numpy().tolist()]
    pair = row[3].selectbox("Pair", [state.ALL, *pairs], format_func=pair_option, key=state.QUEUE_PAIR)
    voters = [0, *range(1, len(audit.engines) + 1)]
    against = row[4].selectbox(
        "Engines against the label",
        [*voters, -1],
        format_func=lambda n: {0: "Any number", -1: "They disagree strongly"}.get(n, f"At least {n}"),
        key=state.QUEUE_AGREEMENT,
    )
    queue: dict[str, Any] = {
        "undecided": show in ("undecided", "issues"),
        "issues": show == "issues",
        "decided": show == "decided",
        "given": None if given == state.ALL else int(given),
        "suggested": None if suggested == state.ALL else int(suggested),
    }
    if pair != state.ALL:
        queue |= {"given": pair[0], "suggested": pair[1]}
    if against == -1:
        queue["disagreement"] = 0.5
    elif against:
        queue["agreement"] = against
    return queue


if not data.draws(dataset.id):
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.page_link(
            "app_pages/verify.py", label="**Verify 200 random samples first**", icon=":material/fact_check:"
        )
        st.caption(
            "It says how many labels are wrong at all; without it nothing about this list can be promised."
        )
reviewer = state.require_reviewer("Every decision is kept with your name, and you can take each back.")
queue = filters()
with door:
    bulk.offer(dataset, audit, reviewer)
components.review_bench(
    key="suspects_bench",
    connection=data.connection(dataset),
    audit_id=audit.id or 0,
    class_names=names,
    reviewer=reviewer,
    queue=queue,
    refresh=st.session_state.get("suspects_refresh", 0),
)
st.caption(
    f"{words.count(audit.summary.get('num_label_issues'))} of {dataset.num_samples:,} given labels stand above the "
    f"suggested cut of audit {audit.id}. The queue is ordered by the chance that the label is wrong, which at an even "
    f"pace is the order of most errors found a minute. Root of the files: {plain(dataset.root)}"
)
