"""Which labels of a picture are missing or too many, and what does a person say about them?"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app import components
from app.panels import judging, random_looks
from app.session import readers, state
from app.session.failures import shown
from app.session.words import plain
from auditor.catalog import datasets, scores
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset
from auditor.labels.sets import KIND
from auditor.results import statements

MOST_LISTED = 2_000
BENCH, VIEW = "sets_bench", "sets_view"


def listed(dataset: Dataset, audit: Audit, top: int) -> pd.DataFrame:
    """The pictures of least trust."""
    return KIND.table(dataset, audit, KIND.suspects(dataset, audit, top=top).page)


def asked(dataset: Dataset, row: dict[Hashable, Any]) -> dict[str, Any]:
    """A suspect as the screen shows it: all classes, those given, and those that are missing or too many."""
    doubts = dict.fromkeys(row["missing"], "missing") | dict.fromkeys(row["extra"], "extra")
    given = [label for label, name in enumerate(dataset.class_names) if name in row["given"]]
    turned = {label for label, name in enumerate(dataset.class_names) if name in doubts}
    return {
        "sample": int(row["sample_id"]),
        "path": row["filepath"],
        "chips": [{"name": name, "doubt": doubts.get(name, "")} for name in dataset.class_names],
        "given": given,
        "suggested": sorted(turned ^ set(given)),
    }


def review(dataset: Dataset, audit: Audit, reviewer: str) -> None:
    """The suspects that nobody has decided on."""
    page = listed(dataset, audit, MOST_LISTED)
    suspects = page[page.is_label_issue]
    waiting = suspects[suspects.decision.isna()]
    st.caption(plain(statements.noise_rate_now(audit).sentence))
    wanted = state.asked_sample(dataset)
    if wanted is not None:
        first = KIND.table(dataset, audit, ask(scores.page_of, audit, [wanted]))
        waiting = pd.concat([first, waiting[waiting.sample_id != wanted]])
    components.judge(
        key=BENCH,
        connection=readers.connection(dataset),
        reviewer=reviewer,
        items=[asked(dataset, row) for row in waiting.head(judging.AT_ONCE).to_dict("records")],
        left=int(suspects.decision.isna().sum()),
        total=len(suspects),
        noun="suspect",
        actions=judging.ON_NUMBER,
        finished=judging.ending(suspects),
        next_steps=judging.after(dataset),
        last=bool(page.decision.notna().any()),
        audit_id=audit.id,
        on_next=partial(judging.go_on, dataset, audit, BENCH, VIEW),
    )


def sampled(dataset: Dataset, sample_id: int) -> dict[str, Any]:
    """A random sample as the screen shows it: its given labels, and nothing of what is suggested."""
    sample = ask(datasets.sample, dataset.id, sample_id)
    return {
        "question": "Are these the right labels?",
        "chips": [{"name": name, "doubt": ""} for name in dataset.class_names],
        "given": list(sample.labels or ()),
    }


def verify(dataset: Dataset, audit: Audit, reviewer: str) -> None:
    """Judge randomly drawn samples without a look at what is suggested."""
    item = partial(sampled, dataset)
    random_looks.ask(dataset, audit, lambda: judging.blind(dataset, reviewer, judging.BLIND_SET, item))


def decided(dataset: Dataset, audit: Audit) -> None:
    """Draw what people decided, as a table."""
    page = listed(dataset, audit, dataset.num_samples)
    columns = ["sample_id", "filepath", "given", "missing", "extra", "decision", "cleaned", "reviewer"]
    found: pd.DataFrame = page[page.decision.notna()][columns]
    if found.empty:
        st.write("Nobody has checked a picture yet.")
        return
    st.dataframe(found, hide_index=True)


dataset, bar = state.screen("Sets")
audit = state.require_audit(dataset)
view = judging.choose_view(dataset, audit, bar, VIEW)
reviewer = state.reviewer()
with shown():
    if view == state.RANDOM_SAMPLE:
        verify(dataset, audit, reviewer)
    elif view == judging.CHECKED:
        decided(dataset, audit)
    else:
        review(dataset, audit, reviewer)
