"""Where the engines part: the pictures on which they are furthest apart, and what each says of them."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.session import readers, state, words
from auditor.catalog.records import Audit, Dataset
from auditor.results import arrays

PARTED, SIDE = 8, 192
"""Samples shown on which the engines are furthest apart, and pixels of their pictures."""
Row = tuple[int, int, int, Sequence[tuple[str, int]]]
"""Sample, its given and its suggested label, and (title, label that it sees) of every engine."""


def draw(dataset: Dataset, audit: Audit, table: pd.DataFrame) -> None:
    """The samples on which the engines' places for the label lie furthest apart, with the vote of each.

    ``table``: as ``readers.score_table`` gives it.
    """
    engines = len(audit.summary.witnesses)
    parted = readers.most_parted(audit, engines, PARTED)
    agreement = table.agreement.to_numpy(dtype=float)
    same = float(np.isin(agreement, (0, engines)).sum() / max(1, len(agreement)))
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(key="huge_engines", width="stretch"):
            st.markdown(
                f"All {engines} engines say the same of **{words.percent(same)}** of the labels: right, or wrong"
            )
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
    st.caption(
        "Here they part most. :blue[The suggestion] in place of :orange[the given label] also counts which classes "
        "are often given for each other, so it may be one that no engine names alone. Below each engine is what it "
        "sees: grey the given label, :blue[blue the suggested one], :violet[violet another]."
    )
    st.html(table_of(rows, dataset.class_names, functools.partial(_address, readers.connection(dataset))))


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


def _address(connection: Mapping[str, Any], sample: int) -> str:
    """The address at which the browser finds the picture of a sample."""
    place = f"{connection['base']}/bench/image/{connection['dataset']}/{sample}"
    return f"{place}?size={SIDE}&v={connection['version']}&t={connection['token']}"
