"""What will change, and how do I take it home?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.panels import before_after, downloads, fiftyone, pairs, progress, worst
from app.session import next_steps, readers, sign_in, state, words
from app.session.failures import shown
from app.session.readers import Status
from app.session.words import plain
from auditor.catalog.records import Audit, Dataset
from auditor.ground.errors import AuditorError
from auditor.outputs import ExportSummary, preview_export
from auditor.results import statements
from auditor.review import decisions
from auditor.review import log as decision_log

POLICIES = {
    "reviewed": "Only what a person decided",
    "auto": "Also the surest suggestions, as many as random checks allow",
}
CARDS = 12
READ, LISTED = 500, 50
"""Changes that are read for the cards, and those in the table."""
WORST = 6
FDR_CHOICES = (0.05, 0.10, 0.20)


def choose_policy(audit: Audit | None) -> tuple[str, float | None]:
    """Policy and bound of the export: at first the strictest bound at which something is promised."""
    left, right = st.columns([2, 1])
    policy = left.radio(
        "Change", list(POLICIES), format_func=POLICIES.__getitem__, key="export_policy", horizontal=True
    )
    if policy == "reviewed":
        return policy, None
    standing = statements.load(audit.id) if audit is not None else None
    kept = [
        place
        for place, one in enumerate(FDR_CHOICES)
        if standing is not None and statements.promise_changes(standing, one).is_kept
    ]
    bound = right.selectbox(
        "At most this share of the automatic changes is wrong, on average",
        FDR_CHOICES,
        kept[0] if kept else 1,
        format_func=words.percent,
        key="export_fdr",
    )
    return policy, float(bound)


def told(summary: ExportSummary) -> tuple[str, str]:
    """Return how many labels change, and how, in a line that names no zero."""
    if summary.num_keep == summary.num_rows:
        return "No", f"label changes: all {summary.num_rows:,} stay as they are."
    changed = summary.num_rows - summary.num_keep
    what = {"relabeled": summary.num_relabel, "excluded": summary.num_exclude} if summary.num_exclude else {}
    how = {
        "by people": summary.num_by_people,
        "by the audit alone": summary.num_automatic,
        "by a change of classes": changed - summary.num_by_people - summary.num_automatic,
    }
    counts = [_told_of(what), _told_of(how)]
    if changed in how.values():
        (by,) = (name for name, number in how.items() if number)
        counts, end = counts[:1], f", {by}" if changed == 1 else f", all {by}"
    else:
        end = ""
    said = " · ".join(filter(None, counts))
    many = f"of {words.plural(summary.num_rows, 'label')} {'changes' if changed == 1 else 'change'}"
    return f"{changed:,}", f"{many}{said and ': '}{said}{end}."


def _told_of(counts: Mapping[str, int]) -> str:
    """``3 relabeled, 2 excluded``."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)


def show_changes(
    dataset: Dataset,
    policy: str,
    max_fdr: float | None,
    first: DeltaGenerator,
    files: DeltaGenerator,
    *,
    audit: Audit | None,
    seen: Status,
) -> tuple[ExportSummary, pd.DataFrame]:
    """In ``first`` one line on what would change and what random checks say, in ``files`` those to take home; then
    the changes as cards. Returns the changes by pair and by row.

    Where nothing would change, the worst suspects in place of the changes.
    """
    audit_id = audit.id if audit else None
    try:
        summary, rows = preview_export(
            dataset.name, policy=policy, max_fdr=max_fdr, audit_id=audit_id, rows=READ
        )
    except AuditorError as error:
        if policy == "reviewed":
            raise
        with st.container(border=True):
            st.markdown(f":material/info: {plain(str(error))} What people decided can be exported now.")
            state.link("verify", "Verify random samples", ":material/fact_check:")
        policy, max_fdr = "reviewed", None
        summary, rows = preview_export(
            dataset.name, policy=policy, max_fdr=None, audit_id=audit_id, rows=READ
        )
    with first:
        state.headline("export_changes", *told(summary))
        if rows.empty:
            st.caption("Changes come from what people decide on suspects, or with the second choice below.")
            page, says = ("suspects", "Review the suspects") if audit_id else ("audit", "Go to Audit")
            if sign_in.opens(page) and st.button(
                says, key="export_next", type="primary", icon=":material/rule:"
            ):
                state.go_to(page)
        elif said := progress.how_sure(seen, says_left=policy == "reviewed"):
            st.markdown(said)
    with files:
        downloads.offer(dataset, policy, max_fdr, audit_id=audit_id, is_next=not rows.empty)
    if not rows.empty:
        draw_cards(dataset, summary, rows)
        return summary, rows
    says_what = st.container()
    if audit and worst.draw(dataset, audit, WORST):
        says_what.caption("The worst suspects: :orange[given label] → :blue[suggested label].")
    return summary, rows


def show_table(dataset: Dataset, summary: ExportSummary, rows: pd.DataFrame) -> None:
    """The changes by pair, and the first rows of the file."""
    if rows.empty:
        st.write("No label changes.")
        return
    rows = rows.head(LISTED)
    left, right = st.columns([1, 2.2])
    by_pair = pd.DataFrame(summary.pairs, columns=["given label", "cleaned label", "samples"])
    left.dataframe(by_pair, hide_index=True, height="auto" if len(by_pair) < 9 else 320)
    leading = [
        name for name in ("sample_id", "filepath", "given_label", "cleaned_label", "action") if name in rows
    ]
    # The source's own columns of these are in the file; here they would say the same twice.
    leading_or_same = {*leading, dataset.path_column, dataset.label_column}
    rest = [name for name in rows.columns if name not in leading_or_same]
    right.dataframe(
        rows[leading + rest].astype(str), hide_index=True, height="auto" if len(rows) < 9 else 320
    )


def draw_cards(dataset: Dataset, summary: ExportSummary, rows: pd.DataFrame) -> None:
    """The changes as cards; those that nobody looked at stand apart, below."""
    alone = summary.automatic_pairs
    if not alone:
        _draw_cards(dataset, "export", summary.pairs, rows)
        return
    by_people = Counter({(before, after): number for before, after, number in summary.pairs})
    by_people.subtract({(before, after): number for before, after, number in alone})
    decided = [(before, after, number) for (before, after), number in by_people.most_common() if number]
    is_alone = rows.review_decision.fillna("").eq("") & (rows.cleaned_label == rows.suggested_label)
    if changed := summary.num_rows - summary.num_keep - summary.num_automatic:
        st.subheader(f"{words.count(changed)} that people decided", anchor=False)
        _draw_cards(dataset, "export", decided, rows[~is_alone])
    st.subheader(f"{words.count(summary.num_automatic)} that nobody looked at", anchor=False)
    _draw_cards(dataset, "export_alone", alone, rows[is_alone])


def _draw_cards(
    dataset: Dataset, key: str, found: Sequence[tuple[str, str, int]], rows: pd.DataFrame
) -> None:
    """Cards of pairs, the most frequent first."""
    cards = []
    for before, after, number in found[:CARDS]:
        chosen = rows.sample_id[(rows.given_label == before) & (rows.cleaned_label == after)]
        cards.append(pairs.Pair(before, after, number, chosen.astype(int).tolist()))
    pairs.draw(dataset, key, cards)


def show_log(dataset: Dataset) -> None:
    """The log of decisions and blind verdicts, what people differ on, and batches to revert."""
    log = decision_log.entries(dataset.id)
    if log.empty:
        st.write("Nobody has decided anything yet.")
        return
    st.download_button(
        f"Download the whole log ({words.plural(len(log), 'row')})",
        partial(downloads.log_csv, dataset, log),
        f"{downloads.file_stem(dataset.name)}-log.csv",
        "text/csv",
        key="export_log",
        on_click="ignore",
        icon=":material/history:",
    )
    differing = decision_log.conflicts(dataset.id)
    if len(differing):
        st.markdown(f"**{words.plural(differing.sample_id.nunique(), 'sample')} on which people differ**")
        differing["label"] = downloads.named(differing.label, dataset.class_names)
        st.dataframe(differing, hide_index=True)
    batches = decisions.batches(dataset.id)
    for row in batches.head(20).to_dict("records"):
        batch, number, undone = str(row["batch"]), int(row["decisions"]), int(row["undone"])
        line, button = st.columns([4, 1], vertical_alignment="center")
        line.markdown(
            f"{words.plural(number, 'decision')} in one step by {plain(row['reviewer'])} ({row['source']}), "
            f"{words.ago(row['created_at'])}" + (f", {undone} undone" if undone else "")
        )
        if undone < number and button.button("Revert", key=f"export_revert_{batch}"):
            name = state.reviewer()
            st.toast(f"{words.plural(decisions.undo_batch(dataset.id, batch, name), 'decision')} taken back.")
            st.rerun()


dataset, bar = state.screen("Export")
audit, seen = state.chosen_audit(dataset), readers.status(dataset)
if waiting := next_steps.waiting(seen):
    with bar:
        says = f"{words.plural(waiting, 'suspect')} {'waits' if waiting == 1 else 'wait'} to be checked"
        state.link("suspects", says, ":material/rule:")
first, changes = st.container(), None
policy, max_fdr = choose_policy(audit)
with shown():
    changes = show_changes(dataset, policy, max_fdr, first, st.container(), audit=audit, seen=seen)
parts: dict[str, Callable[[], object]] = {"Log of decisions": partial(show_log, dataset)}
if changes is not None:
    parts = {"The table": partial(show_table, dataset, *changes)} | parts
if audit is not None:
    parts["Does training go better with it?"] = partial(
        before_after.draw, dataset, policy, max_fdr, audit_id=audit.id
    )
    parts["FiftyOne"] = partial(fiftyone.draw, dataset)
with st.expander("The table, the log of decisions and more", icon=":material/more_horiz:"):
    for tab, draw in zip(st.tabs(list(parts)), parts.values(), strict=True):
        with tab, shown():
            draw()
