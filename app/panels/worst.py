"""The most suspicious samples of an audit as pictures, with what each is and should be."""

from __future__ import annotations

import streamlit as st

from app.server import bench, pictures
from app.session import words
from app.session.words import plain
from auditor.catalog.records import Audit, Dataset

SIDE = 320


def draw(dataset: Dataset, audit: Audit, count: int, *, width: int) -> int:
    """Draw the worst unchecked suspects, or of those checked where all are; returns how many are shown."""
    page = bench.queue_page(audit, {"undecided": True, "issues": True}, limit=count)
    if page.empty:
        page = bench.queue_page(audit, {"issues": True}, limit=count)
    names = dataset.class_names
    rows = page[["sample_id", "given_label", "suggested_label"]].astype(int).to_numpy().tolist()
    seen = [
        (
            pictures.png(dataset.id, sample, SIDE),
            f"{words.class_name(names, given)} → {words.class_name(names, suggested)}",
        )
        for sample, given, suggested in rows
    ]
    if seen:
        st.image(
            [png for png, _ in seen],
            caption=[plain(pair) for _, pair in seen],
            alt=[f"given {pair.replace('→', 'suggested')}" for _, pair in seen],
            width=width,
        )
    return len(seen)
