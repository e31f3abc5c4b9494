"""Where do the engines part, how did each run, and how far do they agree?"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from app.panels import charts, engines_ran, parting
from app.session import readers, state
from app.session.failures import shown
from app.session.words import plain
from auditor.catalog.records import Audit, EngineRun
from auditor.pictures import cache
from auditor.results import arrays, settle

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

    @property
    def rows(self) -> NDArray[np.int64]:
        """The samples of ``table``."""
        return self.table.sample_id.to_numpy(dtype=np.int64)


def titled(sentence: str, view: View) -> str:
    """A stored sentence with the engines' titles in place of their names."""
    for name, title in sorted(view.titles.items(), reverse=True):  # a name may begin with another one
        sentence = sentence.replace(name, title)
    return sentence


def draw_agreement(view: View) -> None:
    """Draw how alike the engines rank."""
    names, correlations = view.audit.summary.witnesses, view.audit.summary.rank_correlations
    titles = [view.titles.get(name, name) for name in names]
    st.caption("Rank correlation of every two over all labels: 1 is the same order, 0 none in common.")
    if said := most_and_least_alike(correlations or [], titles):
        st.markdown(plain(said))
    st.columns([3, 2])[0].altair_chart(
        charts.agreement_chart(correlations or [], titles, charts.tones()),
        width=MATRIX_FEW if len(names) <= FEW_ENGINES else "stretch",
    )


def most_and_least_alike(correlations: Sequence[Sequence[float | None]], titles: Sequence[str]) -> str:
    """Name the two engines that rank most alike, and the two least; empty with fewer than two pairs."""
    pairs = sorted(
        (value, first, second)
        for (i, first), (j, second) in itertools.combinations(enumerate(titles), 2)
        if correlations and (value := correlations[i][j]) is not None and value == value
    )
    if len(pairs) < 2:
        return ""
    (low, *least), (high, *most) = pairs[0], pairs[-1]
    return f"Most alike: {' and '.join(most)} ({high:.2f}). Least alike: {' and '.join(least)} ({low:.2f})."


def choose_runs(view: View) -> None:
    """Draw which runs speak, and ask about those of earlier audits."""
    audit = view.audit
    numbers = {one.id: state.audit_number(one) for one in readers.audits_of(audit.dataset_id)}
    if heard := arrays.heard_in_words(audit):
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
def draw_signal(view: View, engine: str, names: Sequence[str]) -> None:
    """One of an engine's signals over the epochs, as a place among all labels."""
    about = arrays.describe(view.audit.id, engine)
    with st.container(key=f"engines_one_{engine}", gap="xsmall"):
        chosen = st.session_state.get(f"engines_signal_{engine}", names[0])
        name = st.selectbox(
            about["title"],
            names,
            format_func=lambda key: about["signals"][key]["title"],
            key=f"engines_signal_{engine}",
            help=plain(about["signals"].get(chosen, about["signals"][names[0]])["meaning"]),
        )
        table = bands_of(view, engine, name, about["signals"][name], is_place=True)
        st.altair_chart(charts.bands_chart(table, "Its place among all labels"))


def signals_of(view: View) -> dict[str, list[str]]:
    """By engine, its signals that were recorded over two epochs and more: one point is no curve."""
    found = {}
    for engine in view.runs:
        kept = arrays.history_names(view.audit.id, engine)
        known = arrays.describe(view.audit.id, engine)["signals"]
        found[engine] = [
            one for one in known if one in kept and len(arrays.history(view.audit.id, engine, one)) > 1
        ]
    return {engine: names for engine, names in found.items() if names}


def draw_signals(view: View, signals: Mapping[str, Sequence[str]]) -> None:
    """The engines' signals side by side on one scale, and what two of them publish."""
    legend((view.marks[0], charts.MARKED), (view.marks[1], charts.OTHER))
    st.caption(
        "100 % is the most suspicious of all labels at that epoch. Line: the median; band: the middle 80 %. "
        "The further the two lines part, the better this engine tells the labels apart."
    )
    with st.container(key="engines_each"):
        for engine, names in signals.items():
            draw_signal(view, engine, names)
    draw_published(view)


def draw_published(view: View) -> None:
    """Draw what two of the engines publish as numbers of their own: R(t) and ε, on one scale."""
    notes = view.runs["coteaching"].provenance.get("notes", {}) if "coteaching" in view.runs else {}
    has_epsilon = "umn" in view.runs and "epsilon" in arrays.history_names(view.audit.id, "umn")
    if not notes.get("keep_rates") and not has_epsilon:
        return
    st.subheader("As published: R(t) and ε", anchor=False)
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
    )
    several = len(audit.summary.witnesses) > 1
    if several:
        with st.container(key="engines_part"):
            parting.draw(dataset, audit, view.table)
    else:
        st.write(
            "One engine speaks. With two or more, this page shows how alike they rank and where they part."
        )
    st.subheader("Which engine is right", anchor=False)
    engines_ran.draw(dataset, audit, view.table, view.is_marked if view.knows_truth else None)
    choose_runs(view)
    if several:
        with st.expander("How alike the engines rank", icon=":material/grid_on:"):
            draw_agreement(view)
    if signals := signals_of(view):
        fold = st.expander(
            "How each engine's doubt grew over its epochs",
            key="engines_signals",
            icon=":material/show_chart:",
            on_change="rerun",
        )
        if fold.open:  # they are read and drawn for who asks
            with fold:
                draw_signals(view, signals)
