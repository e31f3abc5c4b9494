"""Where the engines part: the pictures on which they are furthest apart, and what each says of them."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from app.session import readers, sign_in, state, words
from auditor.catalog.records import Audit, Dataset, Review
from auditor.ground.vocabulary import DECISIONS, KEEP
from auditor.results import arrays
from auditor.review import decisions

PARTED, SIDE = 12, 320
"""Samples shown on which the engines are furthest apart, and pixels of their pictures."""
Row = tuple[int, int, int, Sequence[tuple[str, int]]]
"""Sample, its given and its suggested label, and (title, label that it sees) of every engine."""


def draw(dataset: Dataset, audit: Audit, table: pd.DataFrame) -> None:
    """The samples on which the engines' places for the label lie furthest apart, with the votes on each.

    ``table``: as ``readers.score_table`` gives it.
    """
    engines = len(audit.summary.witnesses)
    parted = readers.most_parted(audit, engines, PARTED)
    agreement = table.agreement.to_numpy(dtype=float)
    same = float(np.isin(agreement, (0, engines)).sum() / max(1, len(agreement)))
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(key="huge_engines", width="stretch"):
            st.markdown(f"All {engines} engines agree on **{words.percent(same)}** of the labels")
        if not parted.empty and st.button(
            "Review where the engines disagree",
            key="engines_disagree",
            icon=":material/rule:",
            type="primary",
        ):
            state.open_suspects(agreement=-1)
    if parted.empty:
        return
    votes = arrays.votes(audit, parted.sample_id.tolist())
    columns = parted[["sample_id", "given_label", "suggested_label"]].astype(int)
    rows = [
        (sample, given, suggested, votes[sample]) for sample, given, suggested in columns.to_numpy().tolist()
    ]
    outcomes, names = decisions.outcomes(dataset.id), dataset.class_names
    address_of = functools.partial(readers.picture_address, dataset, side=SIDE)
    st.caption(
        "Where they part most: how many see :orange[**the given class**], :blue[**the suggested one**] or "
        ":violet[**another**]. A click on a picture opens it."
    )
    with st.container(key="engines_parted"):
        for row in rows:
            sample = row[0]
            with st.container(key=f"engines_picture_{sample}", gap=None):
                st.html(card_of(row, names, address_of(sample), said_of(outcomes.get(sample), row[1], names)))
                if sign_in.opens("suspects") and st.button(
                    f"Review sample {sample}", key=f"engines_open_{sample}"
                ):
                    state.open_sample(sample)
    with st.expander("Which engine sees what", icon=":material/table_rows:"):
        st.html(table_of(rows, names, address_of))


def said_of(outcome: Review | None, given: int, names: Sequence[str]) -> str:
    """Return what people said of a sample with this given label; empty where nobody checked it."""
    if outcome is None:
        return ""
    if outcome.decision == KEEP:
        return f"checked: {words.class_name(names, given)}"
    if outcome.label is not None:
        return f"checked: {words.class_name(names, outcome.label)}"
    return (
        f"checked: {DECISIONS[outcome.decision].words if outcome.decision in DECISIONS else 'people differ'}"
    )


def card_of(row: Row, names: Sequence[str], address: str, said: str) -> str:
    """HTML: a sample's picture, a bar of its votes by class with their number, the classes in words, and what
    people said.

    The given class comes first, also where no engine sees it, then the suggested one, then those with most votes.
    """
    sample, given, suggested, votes = row
    by_class: dict[int, list[str]] = {given: []}
    for title, label in votes:
        by_class.setdefault(label, []).append(title)
    order = sorted(by_class, key=lambda one: (one != given, one != suggested, -len(by_class[one])))

    def tone(label: int) -> str:
        return "given" if label == given else "suggested" if label == suggested else "other"

    def named(label: int) -> str:
        return html.escape(words.class_name(names, label))

    parts = "".join(
        f'<span class="{tone(one)}" style="flex-grow:{len(by_class[one])}" '
        f'title="{named(one)}: {html.escape(", ".join(by_class[one]))}">{len(by_class[one])}</span>'
        for one in order
        if by_class[one]
    )
    counts = " · ".join(f'<b class="{tone(one)}">{named(one)}</b> {len(by_class[one])}' for one in order)
    told = f"<p><i>{html.escape(said)}</i></p>" if said else ""
    return (
        f'<div class="parted"><img src="{html.escape(address)}" alt="Sample {sample}"><div>{parts}</div>'
        f"<p>{counts}</p>{told}</div>"
    )


def table_of(rows: Sequence[Row], names: Sequence[str], address_of: Callable[[int], str]) -> str:
    """HTML: a line a sample with its picture, its given and its suggested label, and a column an engine with what
    it sees.

    ``address_of`` a sample is that of its picture. All rows have the votes of the same engines.
    """

    def named(label: int) -> str:
        return html.escape(words.class_name(names, label))

    def cell(label: int, given: int, suggested: int) -> str:
        if label == given:
            return f'<td class="same"><span title="{named(label)}">{named(label)}</span></td>'
        tone = "suggested" if label == suggested else "other"
        return f'<td class="{tone}"><b title="{named(label)}">{named(label)}</b></td>'

    heads = "".join(f'<th scope="col"><span>{html.escape(title)}</span></th>' for title, _ in rows[0][3])
    lines = []
    for sample, given, suggested, votes in rows:
        against = sum(label != given for _, label in votes)
        said = f"{against} of {len(votes)} {'says' if against == 1 else 'say'} wrong"
        lines.append(
            f'<tr><th scope="row"><img src="{html.escape(address_of(sample))}" alt="Sample {sample}">'
            f'<span><b class="given">{named(given)}</b><small>{said}</small></span></th>'
            + f'<td><b class="suggested">{named(suggested)}</b></td>'
            + "".join(cell(label, given, suggested) for _, label in votes)
            + "</tr>"
        )
    head = f'<tr><th scope="col">Given label</th><th scope="col"><span>Suggested</span></th>{heads}</tr>'
    return f'<table class="votes"><thead>{head}</thead><tbody>{"".join(lines)}</tbody></table>'
