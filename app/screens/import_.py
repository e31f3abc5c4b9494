"""What is in these files, and may it become a dataset?"""

from __future__ import annotations

import html
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.uploaded_file_manager import UploadedFile

from app.panels import demo, importing
from app.session import allowed, apart, previews, readers, state, words
from app.session.failures import shown
from app.session.words import plain
from auditor import jobs
from auditor.ground.vocabulary import CLASSIFICATION, MULTILABEL, REGRESSION, SEGMENTATION, TASKS

FOUND = "import_found"
CHOSEN, FOLDER, UPLOAD, PATH = "import_chosen", "folder", "upload", "path"
ANOTHER = "import_another"
STARTED = "import_started"
"""The name of the dataset that this session imports."""
LOOKED_AT = "import_looked_at"
"""The choice and options that the preview was made of, or that were imported."""
Find = Callable[[], tuple[str, str | None]]
LAYOUTS = {
    "A folder for each class": "photos/\n  cat/001.jpg\n  dog/002.jpg",
    "A table with a path and a label": "filepath,label\nimages/001.jpg,cat\nimages/002.jpg,dog",
    "Parquet with pictures": "image: {bytes, path}\nlabel: cat",
    "Masks, a class for each pixel": "street/\n  images/001.jpg\n  masks/001.png",
    "Numbers, one per picture": "filepath,age\nimages/001.jpg,34\nimages/002.jpg,61",
    "Several classes per picture": "filepath,labels\nimages/001.jpg,cat|dog\nimages/002.jpg,tree",
    "Several people's answers": "filepath,ada,ben\nimages/001.jpg,cat,cat\nimages/002.jpg,dog,cat",
    "What other tools wrote": "COCO  CVAT  Labelbox\nLabel Studio  WebDataset\nHugging Face  fiftyone:NAME",
}
USUAL = 5
"""So many of ``LAYOUTS`` are what most people have."""
IMAGE_SIZES = [None, 16, 28, 32, 64, 96, 128, 224]
ALIKE_WORDS = {None: "ask", True: "are one class", False: "are classes of their own"}
LAYOUT_WORDS = {
    None: "as the names say",
    "classes": "classes",
    "splits": "splits, the classes below them",
    "deepest": "neither: the deepest ones are the classes",
}
MASKS_ON_WORDS = {None: "as sizes tell", "stored": "on the stored pixels", "seen": "on what is seen"}
TASK_WORDS = {
    CLASSIFICATION: "classes, one per picture",
    SEGMENTATION: "masks: a class for each pixel",
    REGRESSION: "numbers, one per picture",
    MULTILABEL: "classes, several per picture or none",
}


def choose_source() -> tuple[object, Find] | None:
    """Return what was chosen last, apart from everything else, and what finds (path to import, the upload it
    is).
    """
    folder_tab, upload_tab, path_tab = st.tabs(["A folder", "A zip or a table", "Path on this server"])
    with folder_tab:
        files = st.file_uploader(
            f"A folder of pictures, with all that lies in it; up to {allowed.max_upload_mb():,} MB a file. "
            "Of very many on this server, type their path instead.",
            accept_multiple_files="directory",
            max_upload_size=allowed.max_upload_mb(),
            key="import_folder",
            on_change=_choose,
            args=(FOLDER,),
        )
    with upload_tab:
        file = st.file_uploader(
            f"A zip of class folders, or a CSV, TSV, Excel or Parquet table; up to {allowed.max_upload_mb():,} MB",
            type=list(allowed.UPLOAD_KINDS),
            max_upload_size=allowed.max_upload_mb(),
            key="import_file",
            on_change=_choose,
            args=(UPLOAD,),
        )
    with path_tab:
        left, right = st.columns(2)
        left.selectbox(
            "Pick a folder or file below the allowed folders",
            allowed.offered(st.session_state.get("import_path", "")),
            index=None,
            placeholder="type a part of its name",
            key="import_pick",
            on_change=_take_pick,
            help="What lies inside a folder can be picked once the folder is.",
        )
        typed = right.text_input(
            "Or type it",
            placeholder="/data/photos",
            key="import_path",
            on_change=_choose,
            args=(PATH,),
            help="A folder with one sub-folder per class, a table, Parquet, a zip or fiftyone:NAME; inside "
            + ", ".join(plain(str(root)) for root in allowed.roots()),
        ).strip()
    chosen = st.session_state.get(CHOSEN)
    if chosen == FOLDER and files:
        return tuple(one.file_id for one in files), partial(keep_folder, files)
    if chosen == UPLOAD and file is not None:
        return file.file_id, partial(keep_upload, file)
    return (typed, partial(allowed_path, typed)) if chosen == PATH and typed else None


def _choose(kind: str) -> None:
    """The newer choice counts: the upload or the path."""
    st.session_state[CHOSEN] = kind
    st.session_state.pop(LOOKED_AT, None)


def _take_pick() -> None:
    st.session_state["import_path"] = st.session_state["import_pick"] or ""
    _choose(PATH)


def show_layouts() -> None:
    """Draw what a source may look like, for who has none ready: what most people have, and a fold with the rest."""
    titles = list(LAYOUTS)
    _draw_layouts(titles[:USUAL])
    with st.expander("Several classes per picture, several people, other tools", icon=":material/category:"):
        _draw_layouts(titles[USUAL:])
    if not readers.all_datasets():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("No pictures at hand?", width="content")
            demo.offer()


def _draw_layouts(titles: list[str]) -> None:
    # Not st.code: it loads half a megabyte to colour these lines.
    each = [f'<div><p>{one}</p><pre class="layout">{html.escape(LAYOUTS[one])}</pre></div>' for one in titles]
    st.html(f'<div class="layouts">{"".join(each)}</div>')


def keep_upload(file: UploadedFile) -> tuple[str, str | None]:
    """(path, the same path) of an upload, written below the home."""
    path = str(allowed.keep_upload(file.name, file, file.size))
    return path, path


def keep_folder(files: list[UploadedFile]) -> tuple[str, str | None]:
    """(path, the same path) of a folder, written below the home as it was."""
    path = str(allowed.keep_folder([(one.name, one, one.size) for one in files]))
    return path, path


def allowed_path(typed: str) -> tuple[str, str | None]:
    """(path, no upload) of a path that may be read."""
    return allowed.checked(typed), None


def choose_options() -> tuple[dict[str, Any], DeltaGenerator]:
    """Return how the source is read, where empty means found out from the file, and the room above that."""
    with st.expander("Settings", icon=":material/tune:"):
        room = st.container()
        st.caption("Where a field is empty, the source decides.")
        columns = st.columns(3)
        label = columns[0].text_input(words.FIELDS["label_column"], key="import_label_column")
        path = columns[1].text_input(words.FIELDS["path_column"], key="import_path_column")
        truth = columns[2].text_input(
            words.FIELDS["true_label_column"], key="import_true_column", help="for benchmarks only"
        )
        root = st.text_input(words.FIELDS["root"], key="import_root")
        task = st.radio("The labels are", list(TASKS), format_func=TASK_WORDS.__getitem__, key="import_task")
        is_masks = task == SEGMENTATION
        left, right = st.columns(2)
        masks = left.text_input(
            "Folder of the masks",
            key="import_masks",
            disabled=not is_masks,
            help="empty: images/ and masks/, the layouts of VOC and Cityscapes, or a file of COCO",
        )
        alike = left.radio(
            words.FIELDS["merge_classes"],
            list(ALIKE_WORDS),
            format_func=ALIKE_WORDS.__getitem__,
            key="import_merge",
            help="such as Cat and cat",
        )
        encoding = left.text_input(
            words.FIELDS["encoding"], key="import_encoding", help="empty: UTF-8; else such as cp1252"
        )
        joined = right.checkbox(
            "A label such as cat|dog is a class of its own",
            key="import_joined",
            help="else it is two classes",
        )
        layout = right.radio(
            words.FIELDS["layout"],
            list(LAYOUT_WORDS),
            format_func=LAYOUT_WORDS.__getitem__,
            key="import_layout",
        )
        masks_on = left.radio(
            words.FIELDS["masks_on"],
            list(MASKS_ON_WORDS),
            format_func=MASKS_ON_WORDS.__getitem__,
            key="import_masks_on",
            disabled=not is_masks,
        )
        annotators = left.text_input(
            words.FIELDS["annotators"],
            key="import_annotators",
            help="with commas between them; for Label Studio and Labelbox: all",
        )
        who = left.text_input(words.FIELDS["annotator_column"], key="import_annotator_column")
        names = right.text_input(
            "File of class names",
            key="import_class_names",
            help="one per line; R G B NAME for coloured masks",
        )
    options = {
        "label_column": label.strip() or None,
        "path_column": path.strip() or None,
        "true_label_column": truth.strip() or None,
        "root": root.strip() or None,
        "task": None if task == CLASSIFICATION else task,
        "masks": (masks.strip() or None) if is_masks else None,
        "class_names": names.strip() or None,
        "merge_classes": alike,
        "encoding": encoding.strip() or None,
        "joined_classes": joined,
        "layout": layout,
        "masks_on": masks_on if is_masks else None,
        "annotators": [one for each in annotators.split(",") if (one := each.strip())],
        "annotator_column": who.strip() or None,
    }
    return options, room


def preview(find: Find, options: dict[str, Any]) -> None:
    """Look at what was asked for, and offer nothing else from now on, also when it cannot be read."""
    forget_preview()
    source, upload = find()
    try:
        for field in ("root", "masks", "class_names"):
            if (place := options[field]) is not None:
                options = options | {field: allowed.checked(place)}
        with st.spinner("Reading …"):
            named = source.startswith(allowed.NAMED_SOURCES)
            seen = apart.call(previews.look, source, options) if named else previews.look(source, options)
    except BaseException:
        if upload:
            allowed.forget_upload(upload)
        raise
    st.session_state[FOUND] = {"source": source, "upload": upload, "options": options, "look": seen}
    # The name is offered afresh for every source.
    st.session_state["import_name"] = free_name(source)


def forget_preview() -> None:
    """Drop what was previewed, and the upload that nothing was imported from."""
    found = st.session_state.pop(FOUND, None)
    if found is not None and found["upload"]:
        allowed.forget_upload(found["upload"])


def free_name(source: str) -> str:
    """A name that no dataset has: the source's own, with a number where it is taken."""
    stem = Path(source.removeprefix("fiftyone:")).stem or "dataset"
    numbered = (f"{stem} {number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([stem], numbered) if not is_taken(name))


def is_taken(name: str) -> bool:
    """Return whether a dataset or an import under way has the name."""
    under_way = {seen.job.name for seen in jobs.listed("import") if not seen.is_over}
    return name in under_way or any(row.name == name for row in readers.all_datasets())


def offer_import(found: dict[str, Any], room: DeltaGenerator) -> None:
    """The name and the button that registers it; a name that is taken is told before the button works.

    ``room`` is where what few people change is drawn.
    """
    seen: previews.Look = found["look"]
    problems = seen.preview.num_problems
    size = room.selectbox(
        words.FIELDS["image_size"],
        IMAGE_SIZES,
        format_func=lambda side: f"{side} px" if side else f"{seen.preview.image_size or '?'} px, as found",
        key="import_size",
        help="The side of the square at which the engines see a picture: as found is the median side, at most "
        "224 px. Smaller is faster; on photos larger finds a little more. The pictures on the screens stay sharp.",
    )
    skip = (st if problems else room).checkbox(words.FIELDS["skip_bad"], value=False, key="import_skip")
    if problems and not skip:
        st.warning(
            f"{words.plural(problems, 'problem')} found: "
            "the import is refused unless those rows are left out."
        )
    left, right, rest = st.columns([2, 1, 2], vertical_alignment="bottom")
    name = left.text_input(words.FIELDS["name"], max_chars=100, key="import_name").strip()
    refused = "" if name else "Name the dataset."
    refused = plain(seen.preview.question) if seen.preview.question else refused
    if name and is_taken(name):
        refused = f"A dataset named {plain(name)} exists already; choose another name."
    if refused:
        st.warning(refused)
    wanted = right.button(
        "Import",
        type="primary",
        key="import_start",
        icon=":material/upload:",
        disabled=bool(refused),
        width="stretch",
    )
    rest.caption(f"from {plain(Path(found['source']).name)}")
    if wanted:
        options = found["options"] | {"image_size": size, "skip_bad": skip}
        arguments = {"source": found["source"], "options": options, "upload": found["upload"]}
        jobs.start("import", name, arguments=arguments)
        st.session_state[STARTED] = name
        for key in (FOUND, CHOSEN, LOOKED_AT, ANOTHER):
            st.session_state.pop(key, None)
        st.rerun()


def is_result() -> bool:
    """Return whether imports are under way or succeeded and nobody asked for another: the page is about them
    then.
    """
    seen = jobs.listed("import")
    is_well = all(one.state == "finished" or not one.is_over for one in seen)
    return bool(seen) and is_well and not st.session_state.keys() & {FOUND, CHOSEN, ANOTHER}


def show_imported() -> None:
    """Let the sidebar name the dataset whose import this session started, once it is there."""
    if any(row.name == st.session_state.get(STARTED) for row in readers.all_datasets()):
        state.go_to_dataset(st.session_state.pop(STARTED))
        st.rerun()


show_imported()
state.head("Import")
importing.draw_jobs()
if is_result():
    if st.button("Import another dataset", key="import_again", icon=":material/add:"):
        for seen in jobs.listed("import"):
            if seen.is_over:
                jobs.remove(seen.job.id)
        st.session_state[ANOTHER] = True
        st.rerun()
    st.stop()
with shown():
    chosen = choose_source()
    asked_for = st.container()
    options, further = choose_options()
    if chosen is None:
        if (
            LOOKED_AT not in st.session_state
        ):  # taken away here; who comes back to the page finds it as it was
            forget_preview()
    else:
        source, find = chosen
        # What cannot be read is looked at again with every run, so that the page keeps saying why.
        if (asked := (source, options)) != st.session_state.get(LOOKED_AT):
            with asked_for, shown():
                preview(find, options)
                st.session_state[LOOKED_AT] = asked
with asked_for, shown():
    if FOUND not in st.session_state:
        show_layouts()
    else:
        found = st.session_state[FOUND]
        importing.draw_found(found["look"])
        offer_import(found, further)
        importing.draw_look(found["look"])
        importing.draw_rows(found["look"])
