"""A person's own features for an audit: from an upload, a path on this server, columns, or a field of FiftyOne."""

from __future__ import annotations

import streamlit as st

from app.session import allowed, apart, words
from app.session.failures import shown
from app.session.words import plain
from auditor.backbones import features
from auditor.backbones.features import FeatureSource
from auditor.catalog.records import Dataset
from auditor.ground.errors import ImportRefusedError

CHOSEN = "audit_own_chosen"
"""The features that were just added, until the choice above shows them."""


def title(source: FeatureSource) -> str:
    """Return how a choice names features that are kept."""
    return f"your own features: {plain(source.name.removeprefix(features.OWN))}"


def add(dataset: Dataset) -> None:
    """Ask where the features are; once they fit the dataset they are kept and can be chosen."""
    st.caption(
        "Numbers that your own network says of each picture, one row a picture. They are checked and kept with the "
        "dataset; later audits can use them again."
    )
    with st.form("audit_own_form", border=True), shown():
        left, right = st.columns(2)
        file = left.file_uploader(
            f"Upload a .npy in the dataset's order, or a table (up to {allowed.max_upload_mb():,} MB)",
            type=list(allowed.FEATURE_KINDS),
            max_upload_size=allowed.max_upload_mb(),
            key="audit_own_file",
        )
        typed = right.text_input(
            "Or a path on this server, column:NAME, or fiftyone:FIELD",
            placeholder="/data/features.npy",
            help="column:NAME takes columns that were imported with the dataset: NAME holds lists, or there are "
            "NAME_0, NAME_1, ... fiftyone:FIELD is a field of the FiftyOne dataset that was imported, "
            "fiftyone:OTHER/FIELD of another.",
            key="audit_own_path",
        )
        column = right.text_input(
            "Column of a table (empty where one column alone holds lists)", key="audit_own_column"
        )
        if st.form_submit_button("Use these features", type="primary"):
            upload = None
            if file is not None:
                if typed.strip():
                    raise ImportRefusedError("Upload a file or name a path, not both.")
                upload = str(allowed.keep_upload(file.name, file, file.size, kinds=allowed.FEATURE_KINDS))
            source = upload or allowed.checked_features(typed)
            try:
                with st.spinner("Reading the features …"):
                    found = apart.own_features(dataset.name, source, column.strip() or None)
            finally:
                if upload is not None:
                    allowed.forget_upload(upload)
            st.session_state[CHOSEN] = found.key
            st.toast(f"Kept {words.plural(dataset.num_samples, 'row')} of features.")
            st.rerun()
