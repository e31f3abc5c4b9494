"""How many labels each engine contradicts, alone or with others, and what people said of those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from app.session.words import plain
from auditor.catalog.records import Audit, Dataset
from auditor.ground.wording import percent
from auditor.results import arrays, progress

MOST_ROWS = 10_000
"""Labels that are looked at, evenly spread."""


def contradictions(
    predicted: Mapping[str, NDArray[np.integer]],
    given: NDArray[np.integer],
    right: NDArray[np.bool_],
    wrong: NDArray[np.bool_],
) -> pd.DataFrame:
    """Count what each engine contradicts: engine, contradicts and alone as shares, checked and wrong as counts.

    Args:
        predicted: by engine (N,) the class that it predicts.
        given: (N,) labels, -1 without.
        right: (N,) people found the label right.
        wrong: (N,) people found it wrong.
    """
    against = {name: (labels != given) & (given >= 0) for name, labels in predicted.items()}
    by_how_many = np.sum(list(against.values()), axis=0)
    labeled = max(1, int((given >= 0).sum()))
    rows = [
        {
            "engine": name,
            "contradicts": float(seen.sum() / labeled),
            "alone": float((seen & (by_how_many == 1)).sum() / labeled),
            "checked": int((seen & (right | wrong)).sum()),
            "wrong": int((seen & wrong).sum()),
        }
        for name, seen in against.items()
    ]
    return pd.DataFrame(rows)


@st.cache_data(max_entries=8, show_spinner=False)
def predictions(
    audit_id: int, version: str, engines: Sequence[str], _rows: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """By engine (R,) the class that it predicts for these samples."""
    del version
    return {name: np.argmax(arrays.pred_probs(audit_id, name)[_rows], axis=1) for name in engines}


def draw(dataset: Dataset, audit: Audit, titles: Mapping[str, str], scores: pd.DataFrame) -> None:
    """A table with a row an engine that speaks in the audit, by its title.

    ``scores``: sample_id and given_label of the labels to look at, as ``readers.score_table`` gives them.
    """
    scores = scores.iloc[np.linspace(0, len(scores) - 1, min(MOST_ROWS, len(scores))).astype(int)]
    rows, known = scores.sample_id.to_numpy(dtype=np.int64), progress.findings(dataset)
    version = f"{audit.created_at} {arrays.ranked_at(audit)} {len(rows)}"
    table = contradictions(
        predictions(audit.id, version, arrays.engines_of(audit.id), rows),
        scores.given_label.to_numpy(),
        np.isin(rows, list(known.right)),
        np.isin(rows, list(known.wrong)),
    )
    is_checked = bool(table.checked.sum())
    head = ["Engine", "Contradicts", "Alone", *(["Wrong of checked"] if is_checked else [])]
    lines = [" | ".join(head), " | ".join([":--", *["--:"] * (len(head) - 1)])]
    for one in table.to_dict("records"):
        name = str(one["engine"])
        cells = [plain(titles.get(name, name)), percent(one["contradicts"]), percent(one["alone"])]
        if is_checked:
            cells.append(f"{one['wrong']:,} of {one['checked']:,}" if one["checked"] else "–")
        lines.append(" | ".join(cells))
    with st.container(key="engines_contradict"):
        st.markdown("\n".join(f"| {line} |" for line in lines))
    said = "Contradicts: it predicts another class than the given one. Alone: no other engine does."
    if is_checked:
        said += " The last column: of those that people checked, so many labels were wrong."
    st.caption(said)
