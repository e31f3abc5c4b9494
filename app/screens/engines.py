"""Where do the engines part, how far do they agree, and what did each do over its epochs?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from app.panels import charts, contradicted, curves, parting
from app.session import readers, state, words
from app.session.failures import shown
from app.session.words import plain
from auditor.catalog.records import Audit, Dataset, EngineRun
from auditor.pictures import cache
from auditor.results import arrays, settle

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
MOST_ROWS = 10_000  # a distribution over epochs is drawn from so many rows
FEW_ENGINES, MATRIX_FEW = 3, 340
"""Up to so many engines the matrix is that wide, in pixels: as wide as its column it would be blown up."""


@dataclass(frozen=True)
class View:
    """What every panel of the screen is about."""

    audit: Audit
    runs: Mapping[str, EngineRun]
    titles: Mapping[str, str]
    table: pd.DataFrame
    """As ``readers.score_table`` gives it; distributions are drawn from these rows."""
    is_marked: NDArray[np.bool_]
    marks: tuple[str, str]
    """What ``is_marked`` means, and what the other labels are."""
    knows_truth: bool
    num_samples: int

    @property
    def rows(self) -> NDArray[np.int64]:
        """The samples of ``table``."""
        return self.table.sample_id.to_numpy(dtype=np.int64)


def cited(paper: str) -> str:
    """A paper as a link by its title."""
    title, address = PAPERS.get(paper, paper), paper if paper in PAPERS else ADDRESSES.get(paper)
    return plain(title) if address is None else f"[{plain(title)}]({address})"


def titled(sentence: str, view: View) -> str:
    """A stored sentence with the engines' titles in place of their names."""
    for name, title in sorted(view.titles.items(), reverse=True):  # a name may begin with another one
        sentence = sentence.replace(name, title)
    return sentence


def draw_agreement(dataset: Dataset, view: View) -> None:
    """Draw how alike the engines rank, and what weight each has."""
    summary = view.audit.summary
    names, correlations = summary.witnesses, summary.rank_correlations
    weights = summary.weights or {}
    said = pooled_sentence(weights, names) if weights else titled(summary.trust_sentence, view)
    if not correlations or len(names) < 2:
        st.write(
            "One engine speaks. With two or more, this page shows how alike they rank and where they part."
        )
        choose_runs(view)
        return
    with st.container(key="engines_agreement"):
        matrix, words_of_it = st.columns([3, 2], gap="large")
    with words_of_it:
        st.markdown(
            plain(said),
            help="The numbers of the matrix are rank correlations of two engines over all labels, from −1 to 1.",
        )
        contradicted.draw(dataset, view.audit, view.titles, view.table)
        choose_runs(view)
    matrix.altair_chart(
        charts.agreement_chart(
            correlations,
            [view.titles.get(name, name) for name in names],
            [weights.get(name) for name in names],
            charts.tones(),
        ),
        width=MATRIX_FEW if len(names) <= FEW_ENGINES else "stretch",
    )


def pooled_sentence(weights: Mapping[str, float], names: Sequence[str]) -> str:
    """Say what the column of weights means; the numbers stand there."""
    said = "Trust comes from one pool of the engines; the last column of the matrix is the weight of each."
    if any(name not in weights for name in names):
        said += " One without a weight learned from the labels and ranks only what no other judges."
    return said


def choose_runs(view: View) -> None:
    """Draw which runs speak, and ask about those of earlier audits."""
    audit = view.audit
    numbers = {one.id: state.audit_number(one) for one in readers.audits_of(audit.dataset_id)}
    if heard := arrays.heard_in_words(audit, numbers):
        st.caption(plain(titled(heard, view)))
    alone = audit.options.alone
    earlier = [one for one in arrays.speaking_runs(audit.id, alone=False) if one.audit_id != audit.id]
    if not earlier:
        return
    said = ", ".join(
        f"{view.titles.get(one.engine, one.engine)} on {one.model} (audit {numbers[one.audit_id]})"
        for one in earlier
    )
    wanted = st.toggle(
        "Use the latest runs of earlier audits too",
        value=not alone,
        key=f"engines_hear_{audit.id}_{alone}",
        help=plain(
            f"There are: {said}. The audit is ranked again at once. Choose before you read a promise: whoever "
            "takes of two rankings the one with the better promise makes it too good."
        ),
    )
    if wanted == alone:
        with st.spinner("Ranking again …"), shown():
            settle.hear(audit.id, alone=not wanted)
        st.rerun()


def legend(*entries: tuple[str, str]) -> None:
    """One line that names the colours of all charts below it; the entries are words of ours."""
    parts = [f'<span style="color:{colour}" aria-hidden="true">■</span> {text}' for text, colour in entries]
    st.html(f'<p style="margin:0;font-size:var(--text-small)">{" &emsp; ".join(parts)}</p>')


@st.cache_data(max_entries=64, show_spinner=False)
def bands(audit_id: int, version: str, engine: str, name: str, marks: tuple[str, str], *, is_place: bool,
          high_means: str, _rows: NDArray[np.int64], _is_marked: NDArray[np.bool_]) -> pd.DataFrame:  # fmt: skip
    """Bands of a signal's history, as places among all labels or as published."""
    del version
    chosen = np.linspace(0, len(_rows) - 1, min(MOST_ROWS, len(_rows))).astype(int)
    history = np.asarray(arrays.history(audit_id, engine, name)[:, _rows[chosen]], dtype=np.float32)
    values = charts.places(history, high_means) if is_place else history
    return charts.bands(values, _is_marked[chosen], marks)


def bands_of(view: View, engine: str, name: str, about: Mapping[str, Any], *, is_place: bool) -> pd.DataFrame:
    """``bands`` of this view; they change with the marks, which settling moves."""
    version = f"{view.audit.created_at} {arrays.ranked_at(view.audit)}"
    return bands(view.audit.id, version, engine, name, view.marks, is_place=is_place,
                 high_means=str(about.get("high_means")), _rows=view.rows, _is_marked=view.is_marked)  # fmt: skip


@st.fragment
def draw_engine(
    view: View, engine: str, histogram: pd.DataFrame, top: float, accuracy: pd.DataFrame, points: pd.DataFrame
) -> None:
    """One engine: what it cost, its trust, its signal and accuracy over the epochs, and what it finds."""
    run, about = view.runs[engine], arrays.describe(view.audit.id, engine)
    with st.container(key=f"engines_one_{engine}", gap="xsmall"):
        st.markdown(f"**{plain(about['title'])}**")
        device = plain(str(run.provenance.get("device") or "an unknown device"))
        warnings = " ".join(arrays.warnings_of(run))
        warned = " · :material/warning: careful" if warnings else ""
        st.caption(f"{words.duration(run.seconds)} on {device}{warned}", help=plain(warnings) or None)
        st.caption(cited(str(about["paper"])))
        st.altair_chart(charts.histogram_chart(histogram, top, "Trust in the given label"))
        history = arrays.history_names(view.audit.id, engine)
        names = [
            name
            for name in about["signals"]
            if name in history and len(arrays.history(view.audit.id, engine, name)) > 1
        ]
        if names:
            chosen = st.session_state.get(f"engines_signal_{engine}", names[0])
            name = st.selectbox(
                "Signal",
                names,
                format_func=lambda key: about["signals"][key]["title"],
                key=f"engines_signal_{engine}",
                help=plain(about["signals"].get(chosen, about["signals"][names[0]])["meaning"]),
            )
            table = bands_of(view, engine, name, about["signals"][name], is_place=True)
            st.altair_chart(charts.bands_chart(table, "Its place among all labels"))
        lines = {
            curves.METRICS[metric]: accuracy[accuracy.metric == metric].value.tolist()
            for metric in curves.ACCURACY
            if (accuracy.metric == metric).any()
        }
        if drawn := curves.of_several_epochs(lines):
            st.altair_chart(charts.lines_chart(drawn, "Accuracy"))
        if view.knows_truth:
            area = area_of(points, about["title"])
            both = points[points.engine.isin([about["title"], charts.CONSENSUS])]
            st.altair_chart(charts.detection_chart(both, "Precision by recall"))
            st.caption(f"Area under ROC {area:.3f}")


def draw_engines(view: View) -> None:
    """The engines side by side, every row of charts on one scale."""
    st.subheader(
        "Each engine",
        anchor=False,
        help="A place is that of a signal among those of all labels at the same epoch; 100 % is the most "
        "suspicious. The line is the median, the band the middle 80 %. Every row of charts has one scale.",
    )
    legend((view.marks[0], charts.MARKED), (view.marks[1], charts.OTHER))
    if len(view.table) < view.num_samples:
        st.caption(f"Made from {len(view.table):,} labels that are evenly spread over all.")
    trusts = {
        name: np.asarray(arrays.trust(view.audit.id, name)[view.rows], dtype=np.float64) for name in view.runs
    }
    histograms = {name: charts.histogram(trust, view.is_marked, view.marks) for name, trust in trusts.items()}
    top = max((float(table.share.max()) for table in histograms.values()), default=1.0)
    points = pd.DataFrame()
    if view.knows_truth:
        points = detection(view, trusts)
        area = area_of(points, charts.CONSENSUS)
        st.caption(f"The true labels are known. Dashed: all engines together, area under ROC {area:.3f}.")
    accuracy = curves.table(readers.epochs(view.audit.id), view.titles)
    accuracy = accuracy[accuracy.stage == accuracy.groupby("engine").stage.transform("last")]
    with st.container(key="engines_each"):
        for name in view.runs:
            own = accuracy[accuracy.engine == view.titles[name]]
            draw_engine(view, name, histograms[name], top, own, points)


def area_of(points: pd.DataFrame, engine: str) -> float:
    """Area under the ROC curve of one engine of ``detection``."""
    part = points[points.engine == engine]
    return charts.area_under(part.recall.to_numpy(), part.false_share.to_numpy())


def detection(view: View, trusts: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
    """Recall, false share and precision by engine and of the consensus, against the known truth."""
    doubts = {view.titles[name]: 1 - trust for name, trust in trusts.items()}
    doubts[charts.CONSENSUS] = 1 - view.table.trust_score.to_numpy(dtype=np.float64, na_value=np.nan)
    return charts.detection_curves(doubts, view.is_marked)


def draw_published(view: View) -> None:
    """Draw what two of the engines publish as numbers of their own: R(t) and ε, on one scale."""
    notes = view.runs["coteaching"].provenance.get("notes", {}) if "coteaching" in view.runs else {}
    has_epsilon = "umn" in view.runs and "epsilon" in arrays.history_names(view.audit.id, "umn")
    if not notes.get("keep_rates") and not has_epsilon:
        return
    st.subheader("R(t) and ε over the epochs, as published", anchor=False)
    left, right = st.columns(2, gap="medium")
    if notes.get("keep_rates"):
        with left:
            is_searched = "chosen_accuracy" in notes["search"]
            found = "found by S2E" if is_searched else "under the noise model's guess"
            legend((found, charts.TEAL), ("Co-teaching's own schedule", charts.OTHER))
            series = {found: notes["keep_rates"], "Co-teaching": notes["keep_rates_coteaching"]}
            st.altair_chart(charts.lines_chart(series, "R(t): share of a batch that is kept", charts.LARGE))
    if has_epsilon:
        with right:
            about = arrays.describe(view.audit.id, "umn")["signals"]["epsilon"]
            legend((view.marks[0], charts.MARKED), (view.marks[1], charts.OTHER))
            table = bands_of(view, "umn", "epsilon", about, is_place=False)
            st.altair_chart(charts.bands_chart(table, about["title"], charts.LARGE))
            st.caption(plain(about["meaning"]))


dataset, bar = state.screen("Engines")
audit = state.require_audit(dataset)
with shown():
    finished = arrays.engines_of(audit.id)
    runs = readers.speaking_runs(audit.id)
    truth, table = cache.true_labels(dataset), readers.score_table(audit)
    marks, is_marked = ("suspect", "other label"), table.is_label_issue.to_numpy(dtype=bool)
    if truth is not None:
        given, truth = table.given_label.to_numpy(), truth[table.sample_id.to_numpy()]
        marks, is_marked = ("wrong label", "right label"), (given != truth) & (given >= 0) & (truth >= 0)
    view = View(
        audit=audit,
        runs=runs,
        titles={name: arrays.describe(audit.id, name)["title"] for name in finished},
        table=table,
        is_marked=is_marked,
        marks=marks,
        knows_truth=truth is not None,
        num_samples=dataset.num_samples,
    )
    if len(audit.summary.witnesses) > 1:
        with st.container(key="engines_part"):
            parting.draw(dataset, view.audit, view.table)
    with st.expander(
        "How alike the engines are, and the weight of each",
        icon=":material/grid_on:",
        expanded=len(audit.summary.witnesses) < 2,
    ):
        draw_agreement(dataset, view)
    fold = st.expander(
        "Curves of each engine", key="engines_curves", icon=":material/show_chart:", on_change="rerun"
    )
    if fold.open:  # they are read and drawn for who asks
        with fold:
            draw_engines(view)
            draw_published(view)
