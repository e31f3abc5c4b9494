"""Which masks are wrong, where, and what does a person say about them?"""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path

import streamlit as st

from app import components
from app.panels import downloads
from app.session import readers, sign_in, state
from app.session.access import OWNER
from app.session.failures import shown
from auditor.catalog.records import Audit, Dataset
from auditor.masks import deciding, exporting, listing

MOST_LISTED = 2_000


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
        key="masks_download",
        on_click="ignore",
        icon=":material/download:",
        help="Only what a person decided changes a mask. For large sets: `auditor export NAME --out FOLDER`.",
    )


dataset, bar = state.screen("Masks")
audit = state.require_audit(dataset)
with bar, shown():
    if sign_in.may(OWNER):
        offer_masks(dataset, audit)
reviewer = state.require_reviewer("Every decision is kept with your name, and you can undo each one.")
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
            "decision": row["decision"],
        }
        for row in listed.page.to_dict("records")
    ],
    decisions=deciding.OFFERED,
)
st.caption(listed.statement)
with st.expander("Classes"), shown():
    st.dataframe(listing.class_table(dataset, audit).round(3), hide_index=True)
