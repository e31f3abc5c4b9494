"""What is here, how far is it, and what comes next?"""

from __future__ import annotations

import streamlit as st

from app.panels import demo
from app.session import readers, state, words
from app.session.readers import Status
from app.session.words import plain
from auditor.audits.progress import left_in_words
from auditor.statistics import NoiseRate

st.title("Label auditor")


def next_step(seen: Status) -> tuple[str, str, str]:
    """(sentence, page, what its link says) of the one thing to do next."""
    if seen.finished is None:
        if seen.running is not None:
            return "An audit is running; its curves show how it learns.", "audit", "Watch the audit"
        return "Start an audit: it trains the engines and ranks every label.", "audit", "Start an audit"
    if seen.drawn == 0:
        text = "Judge a small random sample first: it says how many labels are wrong, and promises need it."
        return text, "verify", "Verify 200 samples"
    if seen.verified < seen.drawn:
        return (
            f"{seen.verified} of {seen.drawn} random samples are judged; finish them.",
            "verify",
            "Continue verifying",
        )
    if seen.left is None or (seen.left.high < 1 and seen.left.kind == "interval"):
        return "No wrong label should be left; export the cleaned table.", "export", "Export"
    text = left_in_words(seen.left)
    if seen.left.point >= 1:
        return f"{text}.", "suspects", "Review suspects"
    return f"{text}; export the cleaned table, or review more suspects.", "export", "Export"


def _rate_in_words(noise: NoiseRate | None) -> str:
    """The interval, never a guess: a figure in large type is read as known."""
    if noise is None:
        return "–"
    return words.interval(noise.low, noise.high) if noise.kind == "interval" else "not verified"


def draw_card(seen: Status) -> None:
    """One dataset as a card."""
    row = seen.dataset
    with st.container(border=True):
        head, action = st.columns([4, 1.3], vertical_alignment="center")
        head.subheader(plain(row.name), anchor=False)
        size = f"{row.width} × {row.height} px, {'grey' if row.channels == 1 else 'colour'}"
        head.caption(
            f"{words.plural(row.num_samples, 'sample')} · {words.plural(len(row.class_names), 'class')} · {size} · "
            f"imported {words.ago(row.created_at)}"
        )
        sentence, page, link = next_step(seen)
        if action.button(link, key=f"home_next_{row.id}", type="primary", width="stretch"):
            state.go_to_dataset(row.name)
            st.switch_page(f"screens/{page}.py")
        figures = st.columns(5)
        running = " (1 running)" if seen.running else ""
        figures[0].metric("Audits", f"{seen.audits}{running}")
        figures[1].metric(
            "Verified at random", f"{seen.verified:,} of {seen.drawn:,}" if seen.drawn else "none"
        )
        noise = seen.noise
        figures[2].metric(
            "Wrong labels, estimated",
            _rate_in_words(noise),
            help="Where random samples were judged, the interval. Otherwise: "
            + ("nothing is known yet." if noise is None else noise.sentence),
        )
        figures[3].metric("Found so far", words.count(seen.found), help=f"{seen.decided:,} samples decided")
        left = seen.left
        guess = "a guess: " if left and left.kind == "guess" else ""
        figures[4].metric(
            "Expected left",
            "–" if left is None else words.count(left.point),
            None if left is None else f"{guess}{left.low:,} – {left.high:,}",
            delta_color="off",
            delta_arrow="off",
            help=left.sentence if left else None,
        )
        st.markdown(f":material/arrow_forward: {plain(sentence)}")


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
        st.page_link("screens/import_.py", label="Import a dataset", icon=":material/upload:")


statuses = [readers.status(row) for row in readers.all_datasets()]
for status in statuses:
    draw_card(status)
if not statuses:
    draw_start()
elif not any(status.dataset.name == demo.NAME for status in statuses):
    with st.expander("Try the demo dataset"):
        st.write("1,797 real handwritten digits with planted wrong labels; nothing is downloaded.")
        demo.offer()
