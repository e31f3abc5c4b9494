"""Which classes are mistaken for which, and which cannot be judged at all?"""

from __future__ import annotations

from collections import Counter

import pandas as pd
import streamlit as st

from app.panels import charts, class_changes, worst
from app.server import encoded_picture
from app.session import readers, state, words
from app.session.failures import shown
from app.session.words import plain
from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import FOUND_WRONG
from auditor.outputs import conflict_sentence
from auditor.results import queues, statements
from auditor.review import decisions
from auditor.statistics import Interval, NoiseRate, shared_sentence

MOST_PAIRS = 12
PICTURES = 4
"""Beside each of them."""
MARKS = (
    '<span class="cell"><b>7</b></span> suspects to check <span class="cell"><b>+4</b></span> found wrong '
    '<span class="quiet">31</span> not in doubt. A cell leads to its suspects.'
)
"""What the numbers of the matrix are."""
MOST_LISTED = 5_000
KINDS_OF_COPIES = (
    "Kinds of copies: exact has the same pixels, near has nearly the same ones, features was proposed by a "
    "backbone's features and has nearly the same pixels once the pictures are moved or mirrored."
)
SHARE_BAR = st.column_config.ProgressColumn(
    format="%.0f %%",
    min_value=0.0,
    max_value=100.0,
    width=190,
    color=charts.MARKED,
    help="The share of its labels that the engines expect to be wrong.",
)
EXPECTED, CHECKED = "likely wrong", "wrong, by random check"
"""Columns of two shares: the mean chance that a label is wrong, hidden while nothing verified calibrates it, and
the interval of the rows that people checked.
"""


def kind_of(found: NoiseRate) -> str:
    """``verified`` or ``a guess``."""
    return "verified" if found.kind == "interval" else "a guess"


def draw_figures(dataset: Dataset, said: statements.Statements) -> None:
    """Draw what is known of the whole dataset, in one line."""
    left = said.errors_left
    kind = kind_of(said.noise_rate)
    remaining = f"about {words.count(left.point)}"
    if not left.has_middle:
        remaining = f"{words.count(left.low)} – {words.count(left.high)}"
    figures = (
        (words.count(len(dataset.classes)), "classes"),
        (
            words.interval(said.noise_rate.low, said.noise_rate.high),
            f"wrong{' as given' if left.found else ''} ({kind})",
        ),
        (words.count(left.found), "found wrong by people"),
        (remaining, f"left ({kind})"),
    )
    st.markdown(
        " &ensp;·&ensp; ".join(f"**{plain(number)}** {text}" for number, text in figures),
        help=plain(left.sentence),
    )


def draw_matrix(dataset: Dataset, audit: Audit, said: statements.Statements) -> None:
    """Wrong and suspected labels by pair of classes; a chosen cell leads to its suspects."""
    names, moves = dataset.names_of_today, said.moves
    if not moves:
        st.write("Nobody found a wrong label, and no label is a suspect.")
        return
    matrix, pairs = st.columns([1.9, 1], gap="large")
    with pairs:
        draw_pairs(dataset, audit, moves)
    with matrix:
        left_out = " Classes without any are left out." if len(dataset.classes) > charts.MOST_CLASSES else ""
        st.html(f'<p class="marks">{MARKS}{left_out}</p>')
        seen = st.altair_chart(
            charts.move_chart(
                charts.move_cells(moves, names, {row.label: row.num_samples for row in said.classes}),
                charts.tones(),
            ),
            on_select="rerun",
            selection_mode="cell",
            key="classes_matrix",
        )
    picked = seen["selection"]["cell"] if seen else []
    if picked:
        given, right = names.index(picked[0]["given"]), names.index(picked[0]["right"])
        state.open_suspects(given=given, suggested=None if given == right else right)


def draw_pairs(dataset: Dataset, audit: Audit, moves: list[statements.Move]) -> None:
    """The most frequent confusions as buttons, which a keyboard reaches too, each beside some of its pictures."""
    names, given = dataset.class_names, readers.given_labels(dataset)
    found: dict[tuple[int, int], list[int]] = {}
    for sample, row in decisions.outcomes(dataset.id).items():
        if row.decision in FOUND_WRONG and row.label is not None:
            found.setdefault((int(given[sample]), row.label), []).append(sample)
    st.caption("The most frequent: :orange[given label] → :blue[suggested or right one].")
    with st.container(gap="xxsmall", key="classes_pairs"):
        for move in moves[:MOST_PAIRS]:
            with st.container(horizontal=True, key=f"classes_row_{move.given}_{move.right}"):
                if st.button(
                    f":orange[**{plain(names[move.given])}**] → :blue[**{plain(names[move.right])}**]"
                    f" :small[{said_of(move)}]",
                    key=f"classes_pair_{move.given}_{move.right}",
                    type="tertiary",
                ):
                    state.open_suspects(given=move.given, suggested=move.right)
                draw_some(dataset, audit, move, found.get((move.given, move.right), []))


def draw_some(dataset: Dataset, audit: Audit, move: statements.Move, found: list[int]) -> None:
    """The worst suspects of a pair of classes, small, and then some of those that were ``found`` wrong."""
    waiting = {"issues": True, "undecided": True, "given": move.given, "suggested": move.right}
    worst_of = (
        readers.first_of(audit, queues.suspect_filter(waiting, audit), PICTURES) if move.suspected else []
    )
    with st.container(horizontal=True, key=f"pictures_mini_pair_{move.given}_{move.right}"):
        for sample in [*worst_of, *found][:PICTURES]:
            st.image(
                encoded_picture(dataset.id, sample, worst.SMALL), alt=f"Sample {sample}", width="stretch"
            )


def said_of(move: statements.Move) -> str:
    """``12 suspects · 3 found wrong``, without what is zero."""
    parts = [words.plural(move.suspected, "suspect")] * bool(move.suspected)
    parts += [f"{words.count(move.found)} found wrong"] * bool(move.found)
    return " · ".join(parts)


def suspects_by_class(audit: Audit, **narrowed: object) -> pd.Series:
    """Suspects that nobody has checked by given label, as the queue that a row leads to counts them."""
    waiting = {"issues": True, "undecided": True, **narrowed}
    pairs = readers.pair_counts(audit, queues.suspect_filter(waiting, audit))
    return pairs.groupby("given_label")["count"].sum()


def draw_classes(
    dataset: Dataset,
    audit: Audit,
    said: statements.Statements,
    trust: list[list[float]],
    *,
    is_guess: bool,
) -> None:
    """One row a class, and a door to its suspects.

    ``is_guess``: nothing verified says how likely a label is wrong, so no sum of that is shown.
    """
    st.subheader("Each class", anchor=False)
    suspects, found = suspects_by_class(audit), Counter[int]()
    for move in said.moves:
        found[move.given] += move.found
    table = pd.DataFrame(
        {
            "class": [dataset.class_names[row.label] for row in said.classes],
            "given": [row.num_samples for row in said.classes],
            "suspects": [suspects.get(row.label, 0) for row in said.classes],
            "found wrong": [found[row.label] for row in said.classes],
            "trust": [trust[row.label] for row in said.classes],
            EXPECTED: [100 * row.expected_wrong / max(1, row.num_samples) for row in said.classes],
            CHECKED: [_verified(row.interval) for row in said.classes],
            "note": [row.why if row.cannot_be_judged else "" for row in said.classes],
        }
    )
    table = table.drop(columns=EXPECTED) if is_guess else table
    if is_long := len(table) > charts.MOST_CLASSES:
        table = table[(table.suspects > 0) | (table["found wrong"] > 0) | (table.note != "")].sort_values(
            "suspects", ascending=False
        )
    note = st.column_config.TextColumn("cannot be judged because", width="large")
    chosen = st.dataframe(
        table,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key="classes_table",
        height="auto" if is_long else "content",
        column_config={
            "given": st.column_config.NumberColumn(
                width=75, help="Labels of the class as they were given. The Map counts labels of today."
            ),
            "found wrong": st.column_config.NumberColumn(width=100),
            "trust": st.column_config.BarChartColumn(
                "trust, low to high",
                help="How many labels of the class the engines doubt (bars on the left) and trust (on the right). "
                "All classes have one scale.",
                width=170,
                y_min=0,
                y_max=max((max(row) for row in trust), default=1.0),
                color=charts.MARKED,
            ),
            "suspects": st.column_config.NumberColumn(
                width=80, help="Labels that nobody has checked, as in the matrix."
            ),
            EXPECTED: SHARE_BAR,
            CHECKED: st.column_config.TextColumn(
                width=190,
                help="From the labels of the class that people checked at random: between these two, at 95 %.",
            )
            if table[CHECKED].any()
            else None,
            "note": note if table.note.any() else None,
        },
    )
    if chosen["selection"]["rows"]:
        row = said.classes[table.index[chosen["selection"]["rows"][0]]]
        state.open_suspects(given=row.label, suggested=None)
    left_out = len(said.classes) - len(table)
    others = f" {words.plural(left_out, 'class', 'have')} none." if left_out else ""
    st.caption(f"A chosen row leads to the suspects of that class.{others}")


def draw_splits(audit: Audit, said: statements.Statements, *, is_guess: bool) -> None:
    """One row a split, and a door to its suspects; ``is_guess`` as for classes."""
    if not said.splits:
        return
    st.subheader("Each split", anchor=False)
    table = pd.DataFrame(
        {
            "split": [row.name for row in said.splits],
            "labels": [row.num_labeled for row in said.splits],
            "suspects": [int(suspects_by_class(audit, split=row.name).sum()) for row in said.splits],
            EXPECTED: [100 * row.expected_wrong / max(1, row.num_labeled) for row in said.splits],
            "found wrong": [row.num_found for row in said.splits],
            CHECKED: [_verified(row.interval) for row in said.splits],
            "also in another split": [row.num_copied for row in said.splits],
            "near copy there": [row.num_alike for row in said.splits],
        }
    )
    table = table.drop(columns=EXPECTED) if is_guess else table
    table = table if table[CHECKED].any() else table.drop(columns=CHECKED)
    chosen = st.dataframe(
        table,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key="classes_splits",
        column_config={EXPECTED: SHARE_BAR},
    )
    if chosen["selection"]["rows"]:
        state.open_suspects(split=said.splits[chosen["selection"]["rows"][0]].name)
    st.caption("A chosen row leads to the suspects of that split.")
    if len(said.shared):
        st.caption(shared_sentence(said.splits))
        columns = ["duplicate_group", "sample_id", "filepath", "split", "duplicate_kind", "is_copied"]
        with st.expander("Pictures in more than one split"):
            st.dataframe(said.shared[columns], hide_index=True, key="classes_shared")
            st.caption(KINDS_OF_COPIES)


def _verified(interval: Interval | None) -> str:
    return words.interval(interval.low, interval.high) if interval else ""


def draw_conflicts(dataset: Dataset, said: statements.Statements) -> None:
    """Copies or near copies with different labels."""
    names = dataset.class_names
    if len(said.conflicts):
        groups = said.conflicts.duplicate_group.nunique()
        st.subheader(f"{words.plural(groups, 'group')} of copies with different labels", anchor=False)
        st.caption(conflict_sentence(said.conflicts))
        first = said.conflicts.head(MOST_LISTED)
        shown_rows = first.assign(given=[words.class_name(names, one) for one in first.given_label])
        if len(first) < len(said.conflicts):
            st.caption(f"The first {MOST_LISTED:,} of {len(said.conflicts):,} samples are listed.")
        columns = ["duplicate_group", "sample_id", "filepath", "given", "duplicate_kind", "is_certain"]
        st.dataframe(shown_rows[columns], hide_index=True, height="auto")
        st.caption(KINDS_OF_COPIES)


dataset, bar = state.screen("Classes")
audit = state.require_audit(dataset)
class_changes.draw(dataset, audit, bar)
with shown():
    found = readers.findings(audit)
    said = found.said
    draw_matrix(dataset, audit, said)
    draw_figures(dataset, said)
    is_guess = audit.summary.error_probability_is_guess
    draw_classes(dataset, audit, said, found.trust_by_class.tolist(), is_guess=is_guess)
    draw_splits(audit, said, is_guess=is_guess)
    draw_conflicts(dataset, said)
