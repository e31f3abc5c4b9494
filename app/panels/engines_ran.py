"""The engines of an audit: what each does, what it doubts of the labels that people checked, and how it ran."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

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
from auditor.ground.vocabulary import BLIND
from auditor.results import arrays, progress
from auditor.review import decisions

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
DOES = {
    "noise_model": "learns which class is given in place of which",
    "cross_entropy": "a plain network; doubts what it cannot learn well",
    "coteaching": "two networks that leave out for each other what looks wrong",
    "umn": "two networks that judge a label without having seen it",
    "l2b": "learns how far to trust each label",
    "choicenet": "parts what a picture shows from what makes labels wrong",
    "neighbours": "asks the pictures that look most alike",
}
"""What each engine does, in a line."""
TOGETHER = "All together"
MOST_ROWS = 10_000
"""Labels that are looked at for what the engines doubt, evenly spread."""
WRONG_DOUBTED, RIGHT_DOUBTED = "Wrong ones doubted", "Right ones doubted"
MEANINGS = {
    WRONG_DOUBTED: "Of the labels that people found wrong: for how many it sees another class",
    RIGHT_DOUBTED: "Of the labels that people found right: how many it doubts in error",
    "Doubts": "For how many of all labels it sees another class",
    "Weight": "How much it counts where the engines are pooled",
    "Area under ROC": "How well it tells wrong labels, which are known here, from right ones (1: perfectly)",
}
"""What the columns say that do not speak for themselves."""


def doubted_of(doubted: NDArray[np.bool_], found: NDArray[np.bool_]) -> str:
    """``9 of 12``: of what people found, so many are doubted; (N,) each."""
    return f"{int((doubted & found).sum()):,} of {int(found.sum()):,}"


@st.cache_data(max_entries=8, show_spinner=False)
def predictions(
    audit_id: int, version: str, engines: Sequence[str], rows: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """By engine (R,) the class that it predicts for these samples."""
    del version
    return {name: np.argmax(arrays.pred_probs(audit_id, name)[rows], axis=1) for name in engines}


def columns_of_scores(
    dataset: Dataset, audit: Audit, scores: pd.DataFrame, is_wrong: NDArray[np.bool_] | None
) -> dict[str, dict[str, str]]:
    """By column and engine, and for all of them together, what the table says of these labels.

    ``scores``: as ``readers.score_table`` gives them. ``is_wrong`` of these; None where nobody knows.
    """
    names, known = arrays.engines_of(audit.id), progress.findings(dataset)
    samples = scores.sample_id.to_numpy(dtype=np.int64)
    spread = np.linspace(0, len(scores) - 1, min(MOST_ROWS, len(scores))).astype(int)
    rows = np.union1d(spread, np.flatnonzero(np.isin(samples, list(known.right | known.wrong))))
    given, suspect = scores.given_label.to_numpy()[rows], scores.is_label_issue.to_numpy(dtype=bool)[rows]
    seen = predictions(audit.id, f"{audit.created_at} {arrays.ranked_at(audit)}", names, samples[rows])
    doubted = {name: (labels != given) & (given >= 0) for name, labels in seen.items()} | {TOGETHER: suspect}
    found: dict[str, dict[str, str]] = {}
    if known.right | known.wrong:
        right, wrong = np.isin(samples[rows], list(known.right)), np.isin(samples[rows], list(known.wrong))
        found[WRONG_DOUBTED] = {name: doubted_of(one, wrong) for name, one in doubted.items()}
        found[RIGHT_DOUBTED] = {name: doubted_of(one, right) for name, one in doubted.items()}
    else:
        labeled = max(1, int((given >= 0).sum()))
        found["Doubts"] = {name: words.percent(float(one.sum() / labeled)) for name, one in doubted.items()}
    if is_wrong is not None and 0 < is_wrong[rows].sum() < len(rows):
        trusts = {name: np.asarray(arrays.trust(audit.id, name), dtype=np.float64) for name in names}
        trusts = {name: trust[samples[rows]] for name, trust in trusts.items()}
        trusts[TOGETHER] = scores.trust_score.to_numpy(dtype=np.float64)[rows]
        found["Area under ROC"] = {
            name: f"{roc_auc_score(is_wrong[rows][ok], -trust[ok]):.3f}"
            for name, trust in trusts.items()
            if (ok := np.isfinite(trust)).any()
        }
    return found


def reading(dataset: Dataset, columns: Mapping[str, Mapping[str, str]]) -> str:
    """Return in words what the columns say of the labels that people checked, or that nobody checked one."""
    if WRONG_DOUBTED not in columns:
        return "Once people have checked labels, the table says which engine was right about them."
    known, outcomes = progress.findings(dataset), decisions.outcomes(dataset.id)
    checked = known.right | known.wrong
    drawn = sum(outcomes[sample].kind == BLIND for sample in checked)
    at_random = "all" if drawn == len(checked) else f"{drawn:,} of them"
    doubted = {name: int(text.split()[0].replace(",", "")) for name, text in columns[RIGHT_DOUBTED].items()}
    together = doubted.pop(TOGETHER)
    why = ", which is why all are asked" if together < min(doubted.values()) else ""
    said = (
        f"People checked {words.plural(len(checked), 'label')}, {at_random} drawn at random. Together the "
        f"engines doubt **{columns[WRONG_DOUBTED][TOGETHER]}** wrong ones and "
        f"**{columns[RIGHT_DOUBTED][TOGETHER]}** right ones. One engine alone doubts "
        f"{words.count(min(doubted.values()))} to {words.count(max(doubted.values()))} of the right ones{why}."
    )
    return said if 2 * drawn >= len(checked) else f"{said} Most were suspects, so all engines doubt many."


def draw(
    dataset: Dataset,
    audit: Audit,
    scores: pd.DataFrame | None = None,
    is_wrong: NDArray[np.bool_] | None = None,
) -> None:
    """A table with a row an engine that speaks in the audit; with ``scores`` also what it doubts."""
    runs = readers.speaking_runs(audit.id)
    models = {one.name: one.model for one in arrays.speaking_runs(audit.id)}
    if not runs:  # of others than classes, none speaks by class
        runs = {run.engine: run for run in ask(audits.runs, audit.id)}
        models = {name: arrays.model_of(audit, name) for name in runs}
    about = {name: arrays.describe(audit.id, name) for name in runs}
    weights = audit.summary.weights or {}
    trained = {
        name: "the pictures"
        if model == arrays.IMAGES
        else " + ".join(one.removeprefix("timm:") for one in model.split(","))
        for name, model in models.items()
    }
    columns: dict[str, Mapping[str, str]] = {}
    if scores is not None and len(scores):
        columns |= columns_of_scores(dataset, audit, scores, is_wrong)
        st.markdown(reading(dataset, columns))
    if weights:
        columns["Weight"] = {name: words.percent(weight) for name, weight in weights.items()}
    if len(set(trained.values())) > 1:
        columns["Trained on"] = trained
    columns["Time"] = {name: words.duration(run.seconds) for name, run in runs.items()}
    st.html(table_of(about, columns))
    if len(set(trained.values())) == 1:
        (one,) = set(trained.values())
        st.caption(plain(f"All were trained on {one}." if len(trained) > 1 else f"It was trained on {one}."))
    warned = [
        f"**{plain(about[name]['title'])}:** {plain(said)}"
        for name, run in runs.items()
        for said in arrays.warnings_of(run)
    ]
    if warned:
        with st.popover(words.plural(len(warned), "caution"), icon=":material/warning:"):
            for said in warned:
                st.markdown(said)


def table_of(about: Mapping[str, Mapping[str, Any]], columns: Mapping[str, Mapping[str, str]]) -> str:
    """HTML: a line an engine with what it does and each column, and one for all together where a column has it.

    ``about``: by engine, its title and its paper.
    """
    says = {name: f' title="{MEANINGS[name]}"' if name in MEANINGS else "" for name in columns}
    heads = "".join(f'<th scope="col"{says[name]}>{name}</th>' for name in columns)
    lines = []
    for name in [*about, TOGETHER]:
        if name not in about and not any(name in said for said in columns.values()):
            continue
        cells = "".join(f"<td>{html.escape(said.get(name, ''))}</td>" for said in columns.values())
        who = _named(name, about[name]) if name in about else f"<b>{TOGETHER}</b><small>the suspects</small>"
        lines.append(f'<tr><th scope="row">{who}</th>{cells}</tr>')
    head = f'<tr><th scope="col">Engine</th>{heads}</tr>'
    return f'<table class="ran"><thead>{head}</thead><tbody>{"".join(lines)}</tbody></table>'


def _named(name: str, about: Mapping[str, Any]) -> str:
    """An engine's title, which leads to its paper, and what it does."""
    title, paper = html.escape(about["title"]), about["paper"]
    address = paper if paper in PAPERS else ADDRESSES.get(paper)
    if address:
        said = html.escape(PAPERS.get(paper, paper))
        title = f'<a href="{html.escape(address)}" title="{said}" target="_blank" rel="noopener">{title}</a>'
    does = f"<small>{DOES[name]}</small>" if name in DOES else ""
    return f"<b>{title}</b>{does}"
