"""Cards of pairs of classes: the label before, the label after, and their pictures side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from app.server import encoded_picture
from app.session import words
from app.session.words import plain
from auditor.catalog.records import Dataset

MOST = 8
"""Pictures of a card: as many as a row of the page holds."""
SIDE = 256


@dataclass(frozen=True)
class Pair:
    """Samples whose label is, or would be, changed from one class to another."""

    before: str
    after: str
    number: int
    """How many there are; ``samples`` are some of them."""
    samples: Sequence[int]


def draw(
    dataset: Dataset, key: str, cards: Sequence[Pair], *, on_open: Callable[[int], object] | None = None
) -> None:
    """Draw the pairs as cards; with ``on_open`` a press on a card calls it with the card's place."""
    with st.container(key=f"pairs_{key}"):
        for place, pair in enumerate(cards):
            seen = pair.samples[:MOST]
            title = (
                f"**{words.count(pair.number)}** :orange[{plain(pair.before)}] → :blue[{plain(pair.after)}]"
            )
            with st.container(border=True, key=f"pair_{key}_{place}"):
                if on_open is None:
                    st.markdown(title)
                elif st.button(title, key=f"open_{key}_{place}", type="tertiary"):
                    on_open(place)
                with st.container(horizontal=True, key=f"pictures_pair_{key}_{place}"):
                    for sample in seen:
                        st.image(
                            encoded_picture(dataset.id, sample, SIDE),
                            alt=f"Sample {sample}: {pair.before}, then {pair.after}",
                            width="stretch",
                        )
