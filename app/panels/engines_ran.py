"""How the engines ran: what each was trained on, for how long, its weight, and what it contradicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from app.session import readers, words
from app.session.words import plain
from auditor.catalog import audits
from auditor.catalog.db import ask
from auditor.catalog.records import Audit, Dataset
from auditor.results import arrays, progress

PAPERS = {
    "https://doi.org/10.1007/978-3-642-33460-3_15": (
        "Label-Noise Robust Logistic Regression and Its Applications"
    ),
    "https://arxiv.org/abs/2001.10528": "Identifying Mislabeled Data using the Area Under the Margin Ranking",
    "https://arxiv.org/abs/1911.02377": "Searching to Exploit Memorization Effect in Learning with Noisy Labels",
    "https://arxiv.org/abs/2202.04291": "L2B: Learning to Bootstrap Robust Models for Combating Label Noise",
    "https://arxiv.org/abs/1805.06431": "ChoiceNet: Robust Learning by Revealing Output Correlations",
    "https://arxiv.org/abs/2408.14358": "An Embedding is Worth a Thousand Noisy Labels",
}
"""Titles of the papers that engines name by their address."""
ADDRESSES = {
    # The submission has no public address; this is the talk of the paper that its authors published (BMVC 2021).
    "Is the Label Trustful: Training Better Deep Learning Model via Uncertainty Mining Net": (
        "https://papertalk.org/papertalks/34388"
    ),
}
"""Addresses of the papers that engines name by their title."""
MOST_ROWS = 10_000
"""Labels that are looked at for what the engines contradict, evenly spread."""
MEANINGS = {
    "Weight": "how much it counts where they are pooled to a trust",
    "Contradicts": "the labels in place of which it sees another class",
    "Wrong of checked": "of those it contradicts and people checked, so many labels were wrong",
    "Area under ROC": "how well it tells wrong labels, which are known here, from right ones (1: perfectly)",
}
"""What the columns say that do not speak for themselves."""


def contradictions(
    predicted: Mapping[str, NDArray[np.integer]],
    given: NDArray[np.integer],
    right: NDArray[np.bool_],
    wrong: NDArray[np.bool_],
) -> dict[str, tuple[float, int, int]]:
    """Return by engine the share of labels that it contradicts, and of these how many were wrong and checked.

    Args:
        predicted: by engine (N,) the class that it predicts.
        given: (N,) labels, -1 without.
        right: (N,) people found the label right.
        wrong: (N,) people found it wrong.
    """
    labeled, found = max(1, int((given >= 0).sum())), {}
    for name, labels in predicted.items():
        seen = (labels != given) & (given >= 0)
        checked = int((seen & (right | wrong)).sum())
        found[name] = (float(seen.sum() / labeled), int((seen & wrong).sum()), checked)
    return found


@st.cache_data(max_entries=8, show_spinner=False)
def predictions(
    audit_id: int, version: str, engines: Sequence[str], _rows: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """By engine (R,) the class that it predicts for these samples."""
    del version
    return {name: np.argmax(arrays.pred_probs(audit_id, name)[_rows], axis=1) for name in engines}


def columns_of_scores(
    dataset: Dataset, audit: Audit, scores: pd.DataFrame, is_wrong: NDArray[np.bool_] | None
) -> dict[str, dict[str, str]]:
    """By column and engine, what the table says of these labels.

    ``scores``: sample_id and given_label, as ``readers.score_table`` gives them. ``is_wrong`` of these; None where
    nobody knows.
    """
    names = arrays.engines_of(audit.id)
    few = np.linspace(0, len(scores) - 1, min(MOST_ROWS, len(scores))).astype(int)
    rows, known = scores.sample_id.to_numpy(dtype=np.int64)[few], progress.findings(dataset)
    version = f"{audit.created_at} {arrays.ranked_at(audit)} {len(rows)}"
    against = contradictions(
        predictions(audit.id, version, names, rows),
        scores.given_label.to_numpy()[few],
        np.isin(rows, list(known.right)),
        np.isin(rows, list(known.wrong)),
    )
    found = {"Contradicts": {name: words.percent(share) for name, (share, _, _) in against.items()}}
    if any(checked for _, _, checked in against.values()):
        found["Wrong of checked"] = {
            name: f"{wrong:,} of {checked:,}" for name, (_, wrong, checked) in against.items()
        }
    if is_wrong is not None and 0 < is_wrong[few].sum() < len(few):
        trusts = {name: np.asarray(arrays.trust(audit.id, name), dtype=np.float64)[rows] for name in names}
        found["Area under ROC"] = {
            name: f"{roc_auc_score(is_wrong[few][ok], -trust[ok]):.3f}"
            for name, trust in trusts.items()
            if (ok := np.isfinite(trust)).any()
        }
    return found


def draw(
    dataset: Dataset,
    audit: Audit,
    scores: pd.DataFrame | None = None,
    is_wrong: NDArray[np.bool_] | None = None,
) -> None:
    """A table with a row an engine that speaks in the audit; with ``scores`` also what it contradicts."""
    runs = readers.speaking_runs(audit.id)
    models = {one.name: one.model for one in arrays.speaking_runs(audit.id)}
    if not runs:  # of others than classes, none speaks by class
        runs = {run.engine: run for run in ask(audits.runs, audit.id)}
        models = {name: arrays.model_of(audit, name) for name in runs}
    about = {name: arrays.describe(audit.id, name) for name in runs}
    weights = audit.summary.weights or {}
    columns = {
        "Trained on": {
            name: "the pictures"
            if model == arrays.IMAGES
            else plain(" + ".join(one.removeprefix("timm:") for one in model.split(",")))
            for name, model in models.items()
        },
        "Time": {name: words.duration(run.seconds) for name, run in runs.items()},
    }
    if weights:
        columns["Weight"] = {name: words.percent(weight) for name, weight in weights.items()}
    if scores is not None and len(scores):
        columns |= columns_of_scores(dataset, audit, scores, is_wrong)
    lines = [["Engine", *columns], [":--", ":--", *["--:"] * (len(columns) - 1)]]
    for name in runs:
        title, paper = about[name]["title"], about[name]["paper"]
        address = paper if paper in PAPERS else ADDRESSES.get(paper)
        head = f'[{plain(title)}]({address} "{PAPERS.get(paper, paper)}")' if address else plain(title)
        lines.append([head, *(said.get(name, "–") for said in columns.values())])
    with st.container(key="engines_ran"):
        st.markdown("\n".join(f"| {' | '.join(line)} |" for line in lines))
    meanings = "; ".join(f"{name.lower()}: {MEANINGS[name]}" for name in columns if name in MEANINGS)
    if meanings:
        st.caption(f"{meanings[0].upper()}{meanings[1:]}.")
    warned = [
        f"**{plain(about[name]['title'])}:** {plain(said)}"
        for name, run in runs.items()
        for said in arrays.warnings_of(run)
    ]
    if warned:
        with st.popover(words.plural(len(warned), "caution"), icon=":material/warning:"):
            for said in warned:
                st.markdown(said)
