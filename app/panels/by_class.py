"""Each class as a row of its pictures, the longer the larger the class."""

from __future__ import annotations

import html

import numpy as np
import streamlit as st

from app.session import readers, words
from auditor.catalog.records import Dataset

MOST = 12
"""Rows; further classes are counted below."""
SLOTS = {3: 10, 6: 14, MOST: 20}
"""By the number of rows that it is for at most, pictures of the largest class."""
SIDE = 128


def draw(dataset: Dataset) -> None:
    """Draw the classes of a set, the largest first, each with its number of pictures and some of them."""
    counts = sorted(readers.class_counts(dataset).items(), key=lambda one: -one[1])
    counts = [one for one in counts if one[1]]
    rows, given = counts[:MOST], readers.given_labels(dataset)
    slots = next(number for most, number in SLOTS.items() if len(rows) <= most)
    parts = []
    for label, many in rows:
        some = max(1, round(slots * many / rows[0][1]))
        members = np.flatnonzero(given == label)
        chosen = members[((np.arange(min(some, many)) + 0.5) * many / min(some, many)).astype(int)]
        pictures = "".join(
            f'<img alt="" src="{html.escape(readers.picture_address(dataset, sample, SIDE))}">'
            for sample in chosen.tolist()
        )
        name = html.escape(words.class_name(dataset.class_names, label))
        parts.append(f"<b>{name}</b><span>{words.count(many)}</span><div>{pictures}</div>")
    st.html(f'<div class="by-class" style="--slots: {slots}">{"".join(parts)}</div>')
    if others := len(counts) - len(rows):
        st.caption(f"and {words.plural(others, 'smaller class')}")
