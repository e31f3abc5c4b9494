"""What is in these files, and may it become a dataset?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from app import allowed, apart, import_jobs, importing_view, previews, words
from app.failures import shown
from app.words import plain

IMAGE_SIZES = [None, 16, 28, 32, 64, 96, 128, 224]


def choose_source() -> tuple[str, str | None] | None:
    """(path to import, the upload it is), once a person asked for a preview."""
    upload_tab, path_tab = st.tabs(["Upload", "Path on this server"])
    with upload_tab, st.form("import_upload", border=False):
        file = st.file_uploader(
            f"A zip of class folders, a CSV, TSV or Parquet (up to {allowed.max_upload_mb():,} MB)",
            type=list(allowed.UPLOAD_KINDS),
            max_upload_size=allowed.max_upload_mb(),
            key="import_file",
        )
        if st.form_submit_button("Preview the upload", type="primary") and file is not None:
            path = allowed.keep_upload(file.name, file, file.size)
            return str(path), str(path)
    with path_tab, st.form("import_path_form", border=False):
        typed = st.text_input(
            "A folder with one sub-folder a class, a table, Parquet, a zip, torchvision:NAME or fiftyone:NAME",
            placeholder="/data/photos",
            key="import_path",
        )
        st.caption("Paths may lie below " + ", ".join(plain(str(root)) for root in allowed.roots()))
        if st.form_submit_button("Preview the path", type="primary"):
            return allowed.checked(typed), None
    return None


def choose_options() -> dict[str, str | None]:
    """How the source is read; empty means found out from the file."""
    with st.expander("How to read it (found out from the file where left empty)"):
        columns = st.columns(3)
        label = columns[0].text_input("Column of labels", key="import_label_column")
        path = columns[1].text_input("Column of image paths", key="import_path_column")
        truth = columns[2].text_input(
            "Column of known true labels", key="import_true_column", help="for benchmarks only"
        )
        root = st.text_input("Folder that the paths of a table are relative to", key="import_root")
    return {
        "label_column": label.strip() or None,
        "path_column": path.strip() or None,
        "true_label_column": truth.strip() or None,
        "root": allowed.checked(root) if root.strip() else None,
    }


def offer_import(found: dict[str, Any]) -> None:
    """Name, size and the button that registers it."""
    seen: previews.Look = found["look"]
    left, middle, right = st.columns([2, 1, 1.4], vertical_alignment="bottom")
    stem = Path(found["source"].removeprefix("torchvision:").removeprefix("fiftyone:")).stem
    name = left.text_input("Name of the dataset", value=stem, max_chars=100, key="import_name")
    size = middle.selectbox(
        "Image size",
        IMAGE_SIZES,
        format_func=lambda side: f"{side} px" if side else f"auto ({seen.preview.image_size or '?'} px)",
        key="import_size",
    )
    skip = right.checkbox("Leave out rows with problems", value=False, key="import_skip")
    if seen.preview.num_problems and not skip:
        st.warning(
            f"{words.plural(seen.preview.num_problems, 'problem')} found: "
            "the import is refused unless those rows are left out."
        )
    if st.button("Import", type="primary", key="import_start", icon=":material/upload:"):
        options = found["options"] | {"image_size": size, "skip_bad": skip}
        import_jobs.start(found["source"], name.strip(), options, found["upload"])
        del st.session_state["import_found"]
        st.rerun()


st.title("Import")
importing_view.draw_jobs()
with shown():
    options = choose_options()
    chosen = choose_source()
    if chosen is not None:
        with st.spinner("Reading …"):
            named = chosen[0].startswith(allowed.NAMED_SOURCES)
            found = (
                apart.call(previews.look, chosen[0], options) if named else previews.look(chosen[0], options)
            )
        st.session_state["import_found"] = {
            "source": chosen[0],
            "upload": chosen[1],
            "options": options,
            "look": found,
        }
if "import_found" in st.session_state:
    with shown():
        importing_view.draw_look(st.session_state["import_found"]["look"])
        offer_import(st.session_state["import_found"])
