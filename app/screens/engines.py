"""What does each engine think of the labels, how far do they agree, and which finds the errors?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from app.panels import charts, curves
from app.session import readers, state, words
from app.session.failures import shown
from app.session.words import plain
from auditor.audits import arrays
from auditor.catalog.records import Audit, EngineRun
from auditor.pictures import cache

PAPERS = {
    "https://arxiv.org/abs/2001.10528": "Identifying Mislabeled Data using the Area Under the Margin Ranking",
    "https://arxiv.org/abs/1911.02377": "Searching to Exploit Memorization Effect in Learning with Noisy Labels",
    "https://arxiv.org/abs/2202.04291": "L2B: Learning to Bootstrap Robust Models for Combating Label Noise",
    "https://arxiv.org/abs/1805.06431": "ChoiceNet: Robust Learning by Revealing Output Correlations",
    "https://arxiv.org/abs/2408.14358": "An Embedding is Worth a Thousand Noisy Labels",
}
"""Titles of the papers that engines name by their address."""
MOST_ROWS = 20_000  # a distribution over epochs is drawn from so many rows


def draw_engine(
    audit_id: int, engine: str, run: EngineRun, is_marked: NDArray[np.bool_], marks: tuple[str, str]
) -> None:
    """One engine: its trust, its published signal over epochs, what it cost."""
    about = arrays.describe(audit_id, engine)
    with st.container(border=True, height="stretch"):
        st.markdown(f"**{plain(about['title'])}**")
        device = run.provenance.get("device", "")
        paper = str(about["paper"])
        cited = f"[{plain(PAPERS[paper])}]({paper})" if paper in PAPERS else plain(paper)
        st.caption(f"{words.duration(run.seconds)} on {plain(str(device)) or 'an unknown device'} · {cited}")
        for warning in arrays.warnings_of(run):
            st.caption(f":material/warning: {plain(warning)}")
        trust = np.asarray(arrays.trust(audit_id, engine), dtype=np.float64)
        st.altair_chart(
            charts.histogram_chart(charts.histogram(trust, is_marked, marks), "trust in the given label")
        )
        names = [name for name in about["signals"] if name in arrays.history_names(audit_id, engine)]
        if not names:
            return
        name = names[0] if len(names) == 1 else st.selectbox(
            "Signal over epochs", names, format_func=lambda key: about["signals"][key]["title"],
            key=f"engines_signal_{engine}",
        )  # fmt: skip
        signal = about["signals"][name]
        rows = np.linspace(0, len(is_marked) - 1, min(MOST_ROWS, len(is_marked))).astype(int)
        history = arrays.history(audit_id, engine, name)[:, rows]
        st.altair_chart(charts.bands_chart(charts.bands(history, is_marked[rows], marks), signal["title"]))
        st.caption(plain(signal["meaning"]))


def draw_agreement(audit: Audit, titles: dict[str, str]) -> None:
    """How alike the engines rank, what weight each has, and what that says about the noise."""
    names = [titles.get(name, name) for name in audit.summary.get("witnesses", [])]
    correlations = audit.summary.get("rank_correlations")
    if not correlations or len(names) < 2:
        st.write("Agreement needs two engines.")
        return
    left, right = st.columns([1.2, 1], gap="large")
    left.altair_chart(charts.agreement_chart(correlations, names))
    right.text(audit.summary.get("structured_noise_sentence", ""))
    weights = audit.summary.get("weights", {})
    of_audit = audit.summary.get("runs", {})
    table = pd.DataFrame(
        {
            "engine": [titles.get(name, name) for name in weights],
            "audit": [str(of_audit.get(name, "")) for name in weights],
            "weight": list(weights.values()),
        }
    )
    right.dataframe(
        table, hide_index=True, column_config={"weight": st.column_config.ProgressColumn(format="percent")}
    )
    right.caption(plain(audit.summary.get("weights_sentence", "")))
    if right.button("Review where the engines disagree", key="engines_disagree", icon=":material/rule:"):
        state.open_suspects(agreement=-1)


def draw_detection(audit: Audit, is_wrong: NDArray[np.bool_], titles: dict[str, str]) -> None:
    """ROC and precision-recall against the known truth."""
    doubts = {
        title: 1 - np.asarray(arrays.trust(audit.id, name), dtype=np.float64)
        for name, title in titles.items()
    }
    doubts["Consensus"] = 1 - readers.score_table(audit).trust_score.to_numpy(
        dtype=np.float64, na_value=np.nan
    )
    points = charts.detection_curves(doubts, is_wrong)
    left, right = st.columns(2)
    left.markdown("**ROC**")
    left.altair_chart(
        charts.detection_chart(
            points, "false_share", "recall", ("right labels flagged", "wrong labels found")
        )
    )
    right.markdown("**Precision and recall**")
    right.altair_chart(
        charts.detection_chart(
            points, "recall", "precision", ("wrong labels found", "flags that are wrong labels")
        )
    )
    rows = [
        (name, charts.area_under(part.recall.to_numpy(), part.false_share.to_numpy()))
        for name, part in points.groupby("engine", sort=False)
    ]
    st.dataframe(
        pd.DataFrame(rows, columns=["engine", "area under ROC"]).round(4), hide_index=True, width=420
    )


dataset, bar = state.screen("Engines")
audit = state.require_audit(dataset)
with shown():
    finished = arrays.engines_of(audit.id)
    runs = readers.speaking_runs(audit.id)
    titles = {name: arrays.describe(audit.id, name)["title"] for name in finished}
    truth = cache.true_labels(dataset)
    table = readers.score_table(audit)
    marks, is_marked = ("suspect", "other label"), table.is_label_issue.to_numpy(dtype=bool)
    if truth is not None:
        given = table.given_label.to_numpy()
        marks, is_marked = ("wrong label", "right label"), (given != truth) & (given >= 0) & (truth >= 0)
        st.caption("The true labels of this dataset are known: colours show which labels are wrong.")
    st.subheader("Agreement", anchor=False)
    draw_agreement(audit, titles)
    st.subheader("Each engine", anchor=False)
    a_row = min(3, max(2, len(finished)))
    for start in range(0, len(finished), a_row):
        for column, name in zip(st.columns(a_row), finished[start : start + a_row], strict=False):
            with column:
                draw_engine(audit.id, name, runs[name], is_marked, marks)
    st.subheader("Curves", anchor=False)
    points = curves.table(readers.epochs(audit.id), titles)
    left, right = st.columns(2)
    accuracy = curves.chart(points, curves.ACCURACY, "accuracy")
    if accuracy is not None:
        left.altair_chart(accuracy)
    notes = runs["coteaching"].provenance.get("notes", {}) if "coteaching" in runs else {}
    if notes.get("keep_rates"):
        right.markdown("**R(t): the share that Co-teaching keeps**")
        right.altair_chart(charts.rates_chart(notes["keep_rates"], notes["keep_rates_coteaching"]))
    if truth is not None:
        st.subheader("Against the known truth", anchor=False)
        draw_detection(audit, is_marked, titles)
