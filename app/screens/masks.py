"""Which masks are wrong, where, and what does a person say about them?"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app import components
from app.panels import judging, random_looks
from app.server import GIVEN, OUTLINES, colour, colours_of
from app.session import readers, state
from app.session.failures import shown
from auditor.catalog import datasets
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import RELABEL
from auditor.labels.masks import KIND

MOST_LISTED = 2_000
BENCH, VIEW = "masks_bench", "masks_view"


def standing(row: Mapping[Hashable, Any]) -> str | None:
    """Return what was decided on a mask; one that is only known to be wrong still waits for its right regions."""
    if pd.isna(row["decision"]) or (row["decision"] == RELABEL and not row["regions_taken"]):
        return None
    return str(row["decision"])


def review(dataset: Dataset, audit: Audit, reviewer: str, *, is_done: bool) -> None:
    """The masks with a likely wrong region, on the bench, and those that were found wrong without one.

    ``is_done``: what was decided on them is listed instead, and a press on a picture brings its mask back.
    """
    first = state.asked_sample(dataset)
    rows = KIND.table(dataset, audit, KIND.suspects(dataset, audit, top=MOST_LISTED).page)
    waits = (rows.decision == RELABEL) & ~rows.regions_taken.astype(bool)
    rows = rows[rows.is_label_issue.astype(bool) | waits | (rows.sample_id == first)]
    items = [
        {"sample": int(row["sample_id"]), "filepath": row["filepath"], "decision": standing(row)}
        for row in rows.to_dict("records")
    ]
    components.mask_bench(
        key=BENCH,
        connection=readers.connection(dataset),
        audit_id=audit.id,
        class_names=dataset.class_names,
        colours=[colour(label) for label in range(len(dataset.class_names))],
        reviewer=reviewer,
        first=first,
        shape=shape_of_first(dataset, items, first),
        is_done=is_done,
        items=items,
        decisions=KIND.decisions,
        next_steps=judging.after(dataset),
        on_next=partial(judging.go_on, dataset, audit, BENCH, VIEW),
    )
    if is_done:
        with st.expander("Classes"), shown():
            st.caption(KIND.statement(dataset, audit))
            table = KIND.class_table(dataset, audit).round(3)
            st.dataframe(table.rename(columns=lambda name: name.replace("_", " ")), hide_index=True)


def shape_of_first(dataset: Dataset, items: list[dict[str, Any]], first: int | None) -> tuple[int, int]:
    """Width and height of the picture that the bench opens: ``first``, or the first that waits; (1, 1) without."""
    waiting = [one["sample"] for one in items if one["decision"] is None]
    opened = first if first is not None else next(iter(waiting), None)
    if opened is None:
        return 1, 1
    sample = ask(datasets.sample, dataset.id, opened)
    return sample.original_width, sample.original_height


def asked(dataset: Dataset, audit: Audit, sample_id: int) -> dict[str, Any]:
    """A random sample as the screen shows it: what was given, its outline and its classes, and nothing else."""
    sample = ask(datasets.sample, dataset.id, sample_id)
    return {
        "question": "Are the outlines and their classes right?",
        "layers": [f"mask/{audit.id}/{sample_id}/{OUTLINES}.png"],
        "colours": f"mask/{audit.id}/{sample_id}/{GIVEN}.png",
        "legend": [
            {"name": dataset.class_names[label], "colour": colour}
            for label, colour in colours_of(dataset, sample_id)
        ],
        "shape": (sample.original_width, sample.original_height),
    }


def verify(dataset: Dataset, audit: Audit, reviewer: str) -> None:
    """Judge randomly drawn masks as they were given, without a look at what is suggested."""
    item = partial(asked, dataset, audit)
    random_looks.ask(dataset, audit, lambda: judging.blind(dataset, reviewer, judging.BLIND_MASK, item))


dataset, bar = state.screen("Masks")
audit = state.require_audit(dataset)
view = judging.choose_view(dataset, audit, bar, VIEW)
reviewer = state.reviewer()
if view == state.RANDOM_SAMPLE:
    with shown():
        verify(dataset, audit, reviewer)
else:
    review(dataset, audit, reviewer, is_done=view == judging.CHECKED)
