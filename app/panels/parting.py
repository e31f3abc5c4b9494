"""Where the engines part: the pictures on which they are furthest apart, and what each says of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from app.panels import worst
from app.server import encoded_picture
from app.session import readers, state, words
from app.session.words import plain
from auditor.catalog.records import Audit, Dataset
from auditor.results import arrays

PARTED = 8
"""Samples shown on which the engines are furthest apart."""


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
            st.markdown(f"The {engines} engines agree on **{words.percent(same)}** of the labels")
        if not parted.empty and st.button(
            "Review where the engines disagree",
            key="engines_disagree",
            icon=":material/rule:",
            type="primary",
        ):
            state.open_suspects(agreement=-1)
    if parted.empty:
        return
    st.caption(
        "Here they part most. Each sees :orange[the given label], :blue[the suggested one] or :violet[another]."
    )
    votes = arrays.votes(audit, parted.sample_id.tolist())
    with st.container(horizontal=True, gap="small", key="pictures_engines_parted"):
        columns = parted[["sample_id", "given_label", "suggested_label"]].astype(int)
        for sample, given, suggested in columns.to_numpy().tolist():
            st.image(
                encoded_picture(dataset.id, sample, worst.SIDE),
                caption=vote_in_words(votes[sample], given, suggested, dataset.class_names),
                alt=f"Sample {sample}, given {words.class_name(dataset.class_names, given)}",
                width="stretch",
            )


def vote_in_words(votes: Sequence[tuple[str, int]], given: int, suggested: int, names: Sequence[str]) -> str:
    """Markdown: how many say that the label is wrong, a square a vote, and by class who says so."""
    said: dict[int, list[str]] = {}
    for title, label in votes:
        said.setdefault(label, []).append(title)
    order = sorted(said, key=lambda label: (label == given, -len(said[label])))
    colours = {given: "orange", suggested: "blue"}
    squares, lines = "", []
    for label in order:
        colour, name = colours.get(label, "violet"), plain(words.class_name(names, label))
        squares += f":{colour}[{'■' * len(said[label])}]"
        lines.append(f":{colour}[**{name}**] {plain(' · '.join(said[label]))}")
    against = sum(len(titles) for label, titles in said.items() if label != given)
    return "  \n".join(
        [f"**{against} of {len(votes)} {'says' if against == 1 else 'say'} wrong** {squares}", *lines]
    )
