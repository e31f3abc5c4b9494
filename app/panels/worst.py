"""Samples as rows of pictures with one line below each: the given label orange, the suggested one blue."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from app.server import bench, pictures
from app.session import words
from app.session.words import plain
from auditor.catalog.records import Audit, Dataset

SIDE = 320
"""Pixels that are sent; the page shows as many as fit six times into its width (``frame.py``)."""


def draw(dataset: Dataset, audit: Audit, count: int, *, width: int | None = None) -> int:
    """Draw the worst unchecked suspects, or of those checked where all are; returns how many are shown."""
    page = bench.queue_page(audit, {"undecided": True, "issues": True}, limit=count)
    if page.empty:
        page = bench.queue_page(audit, {"issues": True}, limit=count)
    names = dataset.class_names
    rows = page[["sample_id", "given_label", "suggested_label"]].astype(int).to_numpy().tolist()
    seen = [
        (sample, words.class_name(names, given), words.class_name(names, suggested))
        for sample, given, suggested in rows
    ]
    row(dataset, seen, key=f"worst_{dataset.id}", width=width)
    return len(seen)


def row(
    dataset: Dataset, seen: Sequence[tuple[int, str, str]], *, key: str, width: int | None = None
) -> None:
    """(sample, label before, label after) each as a square picture with both labels below it, six in a row.

    An empty label after means that the sample is excluded. ``width`` fixes the side in pixels instead.
    """
    with st.container(horizontal=True, gap="small", key=f"{'strip' if width else 'pictures'}_{key}"):
        for sample, before, after in seen:
            st.image(
                pictures.png(dataset.id, sample, SIDE),
                caption=f":orange[{plain(before)}] → " + (f":blue[{plain(after)}]" if after else "excluded"),
                alt=f"Sample {sample}: {before}, then {after or 'excluded'}",
                width=width or "stretch",
            )
