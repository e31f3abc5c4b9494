"""Which masks are wrong, where, and what does a person say about them?"""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

import streamlit as st

from app import components
from app.panels import downloads, random_looks
from app.server import masks
from app.session import readers, sign_in, state, words
from app.session.access import OWNER
from app.session.failures import shown
from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import EXCLUDE, KEEP, RELABEL, UNSURE, VERDICTS
from auditor.masks import deciding, exporting, listing
from auditor.review import random_sample

MOST_LISTED = 2_000
SIDE = 720
SUSPECTS, SAMPLE = "Suspects", "Random sample"
BLIND = {
    KEEP: ("It is right", "q"),
    RELABEL: ("It is wrong", "w"),
    EXCLUDE: ("Leave the image out", "e"),
    UNSURE: (VERDICTS[UNSURE].button, VERDICTS[UNSURE].keys[0]),
}
"""Words and key of every verdict on a mask that was drawn at random."""


def cleaned_zip(name: str, audit_id: int) -> bytes:
    """The cleaned masks in the layout that they came in, and their table, in one file."""
    stream = io.BytesIO()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "cleaned"
        exporting.export(name, folder, audit_id=audit_id)
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in sorted(folder.rglob("*")):
                if file.is_file():
                    packed.write(file, file.relative_to(folder))
    return stream.getvalue()


def offer_masks(dataset: Dataset, audit: Audit) -> None:
    """The cleaned masks to take home."""
    st.download_button(
        "Download the cleaned masks",
        lambda: cleaned_zip(dataset.name, audit.id),
        f"{downloads.file_stem(dataset.name)}-masks.zip",
        "application/zip",
        key="cleaned_download",
        on_click="ignore",
        icon=":material/download:",
        help="Only what a person decided changes a mask. For large sets: `auditor export NAME --out FOLDER`.",
    )


def review(dataset: Dataset, audit: Audit, reviewer: str) -> None:
    """The masks of least trust, on the bench."""
    listed = listing.suspects(dataset, audit, top=MOST_LISTED)
    components.mask_bench(
        key="masks_bench",
        connection=readers.connection(dataset),
        audit_id=audit.id,
        class_names=dataset.class_names,
        reviewer=reviewer,
        items=[
            {
                "sample": int(row["sample_id"]),
                "filepath": row["filepath"],
                "trust": float(row["trust_score"]),
                "weakest": row["weakest_class"],
                # A mask that is only known to be wrong still waits for its right regions.
                "decision": None
                if row["decision"] == RELABEL and not row["regions_taken"]
                else row["decision"],
            }
            for row in listed.page.to_dict("records")
        ],
        decisions=deciding.OFFERED,
    )
    st.caption(listed.statement)
    with st.expander("Classes"), shown():
        st.dataframe(listing.class_table(dataset, audit).round(3), hide_index=True)


def verify(dataset: Dataset, audit: Audit, reviewer: str) -> None:
    """Judge randomly drawn masks as they were given, without a look at what is suggested."""
    waiting = random_sample.pending(dataset.id)
    if not waiting:
        random_looks.offer(dataset)
    else:
        draw_id, sample_id = waiting[0]

        def act(verdict: str) -> None:
            with shown():
                random_sample.record(draw_id, sample_id, verdict, reviewer=reviewer)

        left, right = st.columns([3, 2])
        left.image(masks.outlined(dataset, sample_id, SIDE), alt=f"Sample {sample_id}", width="stretch")
        with right:
            st.caption(f"{words.plural(len(waiting), 'mask')} to judge. Is the orange outline right?")
            for verdict, (text, key) in BLIND.items():
                st.button(text, shortcut=key, on_click=act, args=(verdict,), key=f"blind_{verdict}")
    random_looks.take_back(dataset, reviewer)
    random_looks.known(dataset, audit)


dataset, bar = state.screen("Masks")
audit = state.require_audit(dataset)
with bar, shown():
    if sign_in.may(OWNER):
        offer_masks(dataset, audit)
reviewer = state.require_reviewer("Every decision is kept with your name, and you can undo each one.")
view = st.radio("View", [SUSPECTS, SAMPLE], key="masks_view", horizontal=True, label_visibility="collapsed")
if view == SAMPLE:
    with shown():
        verify(dataset, audit, reviewer)
else:
    review(dataset, audit, reviewer)
