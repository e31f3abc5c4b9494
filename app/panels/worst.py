"""Samples as rows of pictures with one line below each: the given label orange, the suggested one blue."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app.server import encoded_picture, lit_picture
from app.session import readers, words
from app.session.words import plain
from auditor import kind
from auditor.catalog.records import Audit, Dataset
from auditor.ground.numbers import figure, number_text
from auditor.ground.vocabulary import CLASSIFICATION, FOUND_WRONG, MULTILABEL, REGRESSION, SEGMENTATION
from auditor.results import queues
from auditor.review import decisions

SIDE, SMALL = 320, 96
"""Pixels that are sent; the page shows as many as fit six times into its width (``frame.py``)."""


def draw(dataset: Dataset, audit: Audit, count: int) -> int:
    """Draw the worst suspects that nobody has checked; returns how many there are."""
    page = _waiting(audit, count)
    if page.empty:
        return 0
    table = kind.of(dataset).table(dataset, audit, page)
    if dataset.task == SEGMENTATION:
        _draw_masks(dataset, audit, table)
    elif dataset.task == REGRESSION:
        rows = table[["sample_id", "given", "suggested"]]
        numbers = [
            (int(sample), number_text(given), figure(suggested))
            for sample, given, suggested in rows.itertuples(index=False)
        ]
        row(dataset, numbers, key=f"worst_{dataset.id}")
    elif dataset.task == MULTILABEL:
        labels_of = kind.of(dataset)
        sets = [(one["sample_id"], *labels_of.shown(one)) for one in kind.plain_rows(table)]
        row(dataset, sets, key=f"worst_{dataset.id}")
    else:
        names = dataset.class_names
        labels = page[["sample_id", "given_label", "suggested_label"]].astype(int).to_numpy().tolist()
        seen = [
            (sample, words.class_name(names, given), words.class_name(names, suggested))
            for sample, given, suggested in labels
        ]
        row(dataset, seen, key=f"worst_{dataset.id}")
    return len(page)


def draw_found(dataset: Dataset, count: int) -> int:
    """Draw labels that people found wrong, with what they said in their place; returns how many are shown."""
    given, names, decided = readers.given_labels(dataset), dataset.class_names, decisions.outcomes(dataset.id)
    found = [
        (sample, words.class_name(names, given[sample]), "" if row.label is None else names[row.label])
        for sample, row in decided.items()
        if row.decision in FOUND_WRONG
    ][:count]
    if found:
        row(dataset, found, key=f"found_{dataset.id}")
    return len(found)


def draw_some(dataset: Dataset, count: int, *, start: float = 0.5) -> None:
    """Draw a few samples of a set, from all over it, with their classes of today below.

    ``start`` (0 to 1) says which: the sample at that place of each of ``count`` equal parts.
    """
    with st.container(horizontal=True, gap="small", key=f"pictures_some_{dataset.id}"):
        for sample, current in readers.classes_of(dataset.id, _spread(dataset, count, start)).items():
            has_name = dataset.task == CLASSIFICATION
            label = words.class_name(dataset.class_names, current) if has_name else ""
            st.image(
                encoded_picture(dataset.id, sample, SIDE),
                caption=f":orange[{plain(label)}]" if label else None,
                alt=f"Sample {sample}{f': {label}' if label else ''}",
                width="stretch",
            )


def draw_small(dataset: Dataset, audit: Audit | None, count: int) -> None:
    """Draw a few samples small: the worst suspects that nobody has checked, or some from all over the set."""
    waiting = [] if audit is None else _waiting(audit, count).sample_id.astype(int).tolist()
    with st.container(horizontal=True, gap="small", key=f"pictures_mini_{dataset.id}"):
        for sample in waiting or _spread(dataset, count, 0.5):
            st.image(encoded_picture(dataset.id, sample, SMALL), alt=f"Sample {sample}", width="stretch")


def _waiting(audit: Audit, count: int) -> pd.DataFrame:
    return queues.page(audit, {"undecided": True, "issues": True}, limit=count)


def _spread(dataset: Dataset, count: int, start: float) -> list[int]:
    return list(dict.fromkeys(int((i + start) * dataset.num_samples / count) for i in range(count)))


def _draw_masks(dataset: Dataset, audit: Audit, table: pd.DataFrame) -> None:
    """Each with its likeliest region in the light."""
    labels_of = kind.of(dataset)
    with st.container(horizontal=True, gap="small", key=f"pictures_worst_{dataset.id}"):
        for each in kind.plain_rows(table):
            part = labels_of.most_doubted(dataset, audit, each)
            if part is not None:
                st.image(
                    lit_picture(dataset, each["sample_id"], SIDE, part.pixels),
                    caption=f":orange[{plain(part.given)}] → :blue[{plain(part.suggested)}]",
                    alt=f"Sample {each['sample_id']}: a region given {part.given}, suggested {part.suggested}",
                    width="stretch",
                )


def row(
    dataset: Dataset,
    seen: Sequence[tuple[int, str, str]],
    *,
    key: str,
    notes: Sequence[str] | None = None,
) -> None:
    """(sample, label before, label after) each as a square picture with both labels below it, six in a row.

    An empty label after means that the sample is excluded.
    ``notes`` are words of ours below each.
    """
    with st.container(horizontal=True, gap="small", key=f"pictures_{key}"):
        for (sample, before, after), note in zip(seen, notes or [""] * len(seen), strict=True):
            labels = f":orange[{plain(before)}] → " + (f":blue[{plain(after)}]" if after else "excluded")
            st.image(
                encoded_picture(dataset.id, sample, SIDE),
                caption=f"{labels}  \n{note}" if note else labels,
                alt=f"Sample {sample}: {before}, then {after or 'excluded'}",
                width="stretch",
            )
