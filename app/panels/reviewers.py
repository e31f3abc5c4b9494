"""How well people judge, for who owns the dataset: controls and agreement, apart from all promises."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.session import sign_in, words
from app.session.access import OWNER
from app.session.words import plain
from auditor.catalog.records import Dataset
from auditor.review import people
from auditor.statistics import Interval

RATE_KEY = "verify_controls"


def draw(dataset: Dataset) -> None:
    """The rate of planted controls and how to change it, a row a person and a row a pair."""
    choose_rate(dataset)
    found = people.people(dataset.id)
    if not found.persons:
        st.caption("Nobody has checked a label yet.")
        return
    persons = [
        {
            "person": plain(one.name),
            "labels checked": one.num_verdicts,
            "controls right": _share(one.right),
            "as most others": _share(one.agrees),
        }
        for one in found.persons
    ]
    st.dataframe(pd.DataFrame(persons), hide_index=True)
    if found.pairs:
        pairs = [
            {
                "people": plain(f"{one.first} and {one.second}"),
                "same answer": f"{words.count(one.num_same)} of {words.count(one.num_shared)}",
                "Cohen's kappa": "" if one.kappa is None else f"{one.kappa:.2f}",
            }
            for one in found.pairs
        ]
        st.dataframe(pd.DataFrame(pairs), hide_index=True)
    if found.alpha is not None:
        shared = words.plural(found.num_shared, "label")
        st.markdown(
            f"All together: Krippendorff's alpha **{found.alpha:.2f}** on {shared} of two people or more."
        )
    if found.lacks:
        st.caption(found.lacks)
    st.caption("In brackets: 95 % intervals. Kappa and alpha: 1 = always the same answer, 0 = as by chance.")


def choose_rate(dataset: Dataset) -> None:
    """The share of looks that are controls; owners change it here."""
    rate = people.control_rate(dataset.id)
    if sign_in.may(OWNER):
        st.session_state[RATE_KEY] = round(100 * rate)
        st.number_input(
            "Controls among 100 looks",
            0,
            round(100 * people.MOST_RATE),
            key=RATE_KEY,
            step=5,
            on_change=lambda: people.set_control_rate(dataset.id, st.session_state[RATE_KEY] / 100),
            width=220,
            help="Counts at once, for everybody who judges this dataset on Verify. 0 plants none.",
        )
    if rate:
        st.markdown(
            f"**{words.percent(rate)} of the looks on Verify are controls**, whose answer is settled."
        )
    else:
        st.markdown("**No controls are planted.**")
    st.caption(
        "A control is a label that two people judged alike, or one that is typical of its class. It looks like any "
        "other and is shown to somebody who never judged it. Controls decide no label and count for no promise."
    )


def _share(share: Interval) -> str:
    """``15 of 20 (51 % to 91 %)``; empty where there is nothing to compare."""
    if not share.num_rows:
        return ""
    return (
        f"{words.count(share.num_hits)} of {words.count(share.num_rows)} "
        f"({words.percent(share.low)} to {words.percent(share.high)})"
    )
