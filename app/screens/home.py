"""What is here, how far is it, and what comes next?"""

from __future__ import annotations

import streamlit as st

from app.panels import demo, worst
from app.session import readers, sign_in, state, words
from app.session.access import OWNER
from app.session.failures import shown
from app.session.readers import Status
from app.session.words import plain
from auditor import api
from auditor.audits.progress import left_in_words
from auditor.catalog.records import Dataset
from auditor.ground.vocabulary import LABELS, REGRESSION, SEGMENTATION
from auditor.review import drawing

WORST = 6

state.head("Label auditor")
is_owner = sign_in.may(OWNER)


def next_step(seen: Status) -> tuple[str, str, str]:
    """(sentence, page, what its link says) of the one thing to do next."""
    if seen.finished is None:
        if seen.running is not None:
            return "An audit is running; its curves show how it learns.", "audit", "Watch the audit"
        return "Start an audit: it trains the engines and ranks every label.", "audit", "Start an audit"
    if seen.dataset.task == SEGMENTATION:
        text = (
            f"{words.plural(seen.finished.summary.num_label_issues or 0, 'mask', 'have')} a doubtful region."
        )
        return text, "masks", "Review masks"
    if seen.dataset.task == REGRESSION:
        far = words.plural(seen.finished.summary.num_label_issues or 0, "number", "lie")
        text = f"{far} far from what is predicted: suspects to check."
        return text, "numbers", "Review numbers"
    if seen.drawn == 0:
        text = "Check a random sample first: it says how many labels are wrong, and promises need it."
        size = drawing.next_size(seen.dataset.id)
        return text, "verify", f"Verify {words.plural(size, 'sample')}"
    if seen.verified < seen.drawn:
        return (
            f"{seen.verified} of {words.plural(seen.drawn, 'random sample')} checked; finish the rest.",
            "verify",
            "Continue verifying",
        )
    if seen.left is None or (seen.left.high < 1 and seen.left.kind == "interval"):
        return "No wrong label should be left; export the cleaned table.", "export", "Export"
    text = left_in_words(seen.left)
    if seen.left.point >= 1:
        return f"{text}.", "suspects", "Review suspects"
    return f"{text}; export the cleaned table, or review more suspects.", "export", "Export"


def draw_card(seen: Status) -> None:
    """One dataset as a card: its worst suspects, one sentence, one button."""
    row = seen.dataset
    with st.container(border=True):
        head, action, more = st.columns([4, 1.4, 0.35], vertical_alignment="center")
        sentence, page, link = next_step(seen)
        head.subheader(plain(row.name), anchor=False)
        head.markdown(plain(sentence))
        if sign_in.opens(page) and action.button(
            link, key=f"home_next_{row.id}", type="primary", width="stretch"
        ):
            state.go_to_dataset(row.name)
            state.go_to(page)
        if is_owner:
            with more.popover(
                "", icon=":material/more_horiz:", key=f"home_more_{row.id}", help="Rename or delete"
            ):
                draw_changes(row)
        with shown():
            if seen.finished is None:
                worst.draw_some(row, WORST)
            else:
                worst.draw(row, seen.finished, WORST)
        st.caption(" · ".join(facts(seen)), help=seen.left.sentence if seen.left else None)


def facts(seen: Status) -> list[str]:
    """What is known of a dataset, in few words; nothing that is zero."""
    row = seen.dataset
    kinds = LABELS[row.task] if row.task == REGRESSION else words.plural(len(row.class_names), "class")
    samples = words.plural(row.num_samples, "sample")
    if seen.decided:
        part = "all" if seen.verified == seen.decided else f"{words.count(seen.verified)} of them"
        at_random = f", {part} at random" if seen.verified else ""
        samples = f"{words.count(seen.decided)} of {samples} checked{at_random}"
    known = [samples, kinds]
    if seen.found:
        known.append(f"{words.count(seen.found)} wrong")
    if seen.left is not None and seen.left.kind == "interval":
        left = seen.left
        many = f"about {words.count(left.point)}" if left.has_middle else f"at most {words.count(left.high)}"
        known.append(f"{many} left")
    if seen.audits:
        known.append(words.plural(seen.audits, "audit") + (" (1 running)" if seen.running else ""))
    return [*known, f"imported {words.ago(row.created_at)}"]


def draw_changes(row: Dataset) -> None:
    """Another name, or no dataset at all; the files it was imported from stay."""
    name = st.text_input("Name", value=row.name, max_chars=100, key=f"home_name_{row.id}").strip()
    is_new = bool(name) and name != row.name
    if st.button("Rename", key=f"home_rename_{row.id}", disabled=not is_new):
        with shown():
            readers.rename(row, name)
            if st.session_state.get(state.CHOSEN) == row.name:
                state.go_to_dataset(name)
            st.rerun()
    st.divider()
    sure = st.checkbox(
        "Delete the dataset with its audits and decisions; your own files stay", key=f"home_sure_{row.id}"
    )
    if st.button("Delete", key=f"home_delete_{row.id}", disabled=not sure, icon=":material/delete:"):
        with shown():
            for folder in api.remove(row.name):
                st.toast(f"Not deleted: {plain(str(folder))} (see `auditor doctor`).")
            st.rerun()


def draw_start() -> None:
    """What an empty machine offers."""
    st.write(
        "Finds the wrong labels in an image set, lets you decide on them fast, and gives you a clean table "
        "with an honest count of the wrong labels found and left."
    )
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        st.subheader("Try the demo", anchor=False)
        st.write(
            "1,797 real handwritten digits that come with scikit-learn, some of them relabeled wrongly on "
            "purpose. Nothing is downloaded; the audit takes a few minutes on a laptop."
        )
        demo.offer()
    with right.container(border=True, height="stretch"):
        st.subheader("Import your own", anchor=False)
        st.write(
            "A zip, a CSV or Parquet file, or a folder with one sub-folder per class. "
            "The source itself is not changed."
        )
        state.link("import_", "Import a dataset", ":material/upload:")


statuses = [readers.status(row) for row in readers.all_datasets()]
for status in statuses:
    draw_card(status)
if not statuses and is_owner:
    draw_start()
elif not statuses:
    st.write("There is no dataset yet. An owner of the app imports one.")
elif is_owner and not any(status.dataset.name == demo.NAME for status in statuses):
    with st.expander("Try the demo dataset"):
        st.write("1,797 real handwritten digits with planted wrong labels; nothing is downloaded.")
        demo.offer()
