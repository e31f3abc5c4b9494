"""How the dataset looks in the App: saved views, sidebar, colours, the map and the search for similar images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.catalog.records import Dataset
from auditor.catalog.scores import STRONG_DISAGREEMENT
from auditor.fiftyone_bridge import fields
from auditor.fiftyone_bridge.fields import BASE, INDEX, MARK, REVIEW_FIELDS, Columns
from auditor.fiftyone_bridge.samples import Here
from auditor.ground.vocabulary import EXCLUDE, KEEP, RELABEL, UNSURE

SUSPECTS = "suspected mislabels"
DISAGREE = "engines disagree"
REVIEWED = "reviewed"
COPIES = "duplicates with different labels"
MAX_CLASS_VIEWS = 100
"""The App lists every view in one menu."""
RUN_KEY = "audit"
"""Of the custom run that says which audit stands in the fields."""
MAP_KEY = "audit_map"
SIMILARITY_KEY = "audit_similarity"
MAX_COMPONENTS = 48
"""Directions of the embeddings that the search for similar images keeps."""
RED, GREEN, BLUE, GREY = "#FF8182", "#4AC26B", "#80CCFF", "#D0D7DE"
AMBER, PURPLE = "#F2CC60", "#D2A8FF"
"""Light enough for the black text that the App sets on them."""
LIGHT = [RED, GREEN, BLUE, AMBER, PURPLE, "#FFB77C", "#7FD8D0", "#F7A8D0", "#B8D67A", GREY]
DECISION_COLOURS = {KEEP: GREEN, RELABEL: BLUE, EXCLUDE: PURPLE, UNSURE: AMBER}


def write(fiftyone: Any, target: Any, columns: Columns, here: Here) -> list[str]:
    """Everything of the App; returns notes for the person who pushed.

    Views and settings of a person's own stay; ours are brought up to date.
    """
    notes = _views(fiftyone, target, columns)
    _editing(target, columns)
    is_theirs = bool(target.info[MARK].get("is_theirs"))
    is_set = bool(target.info[MARK].get("app_is_set"))
    if is_set or (is_theirs and target.app_config.sidebar_groups):
        _add_to_sidebar(target, columns)
    else:
        _sidebar(fiftyone, target, columns, is_theirs)
    if not is_set:
        if not is_theirs or target.app_config.color_scheme is None:
            _colours(fiftyone, target)
        target.info[MARK] = {**target.info[MARK], "app_is_set": True}
        target.save()
    notes += _brain(target, columns, here)
    return notes


# --- Saved views ----------------------------------------------------------------------------------------


def _views(fiftyone: Any, target: Any, columns: Columns) -> list[str]:
    field = fiftyone.ViewField
    wanted: list[tuple[str, Any, str, str]] = [
        (
            SUSPECTS,
            target.match(
                (field("is_label_issue") == True) & (field("review.decision") == None)  # noqa: E711, E712
            ).sort_by("suspicion_rank"),
            "Labels that the audit flags and nobody has decided on, the most suspicious first",
            RED,
        ),
        (
            DISAGREE,
            target.match(field("engines_disagree") >= STRONG_DISAGREEMENT).sort_by(
                "engines_disagree", reverse=True
            ),
            "Samples that one engine trusts and another one does not",
            AMBER,
        ),
        (
            REVIEWED,
            target.match(field("review.decision") != None).sort_by("review.time", reverse=True),  # noqa: E711
            "Samples that a person decided on, the latest first",
            BLUE,
        ),
        (
            COPIES,
            target.match(field("duplicate_conflict") == True).sort_by("duplicate_group"),  # noqa: E712
            "Copies and near copies of a picture with different labels",
            PURPLE,
        ),
    ]
    classes, notes = _classes_to_show(columns)
    given = target.info[MARK]["label_field"]
    for label in classes:
        name = columns.labels.names[label]
        # There the given label is called as it was before classes were changed.
        before = {columns.labels.imported[one] for one in _parts(columns.dataset, label)}
        view = target.match(field(f"{given}.label").is_in(sorted({name, *before}))).sort_by("suspicion_rank")
        wanted.append((_class_view(label, name), view, f"Labelled {name}, the most suspicious first", GREY))
    ours = set(target.info[MARK].get("views", []))
    taken = set(target.list_saved_views()) - ours
    slugs = {target._get_saved_view_doc(name).slug for name in taken}
    saved = []
    for name, view, about, colour in wanted:
        own_name = _free_name(fiftyone, name, slugs)
        slugs.add(_slug(fiftyone, own_name))
        target.save_view(own_name, view, description=about, color=colour, overwrite=own_name in ours)
        saved.append(own_name)
    for gone in ours - set(saved):
        if target.has_saved_view(gone):
            target.delete_saved_view(gone)
    target.info[MARK] = {**target.info[MARK], "views": saved}
    target.save()
    return notes


def slug_of(fiftyone: Any, target: Any, view: str) -> str:
    """Return how the App's address names a saved view of ours ("" where it is not there)."""
    names = [name for name in target.list_saved_views() if name == view or name.startswith(f"{view} (")]
    return _slug(fiftyone, names[0]) if names else ""


def _classes_to_show(columns: Columns) -> tuple[list[int], list[str]]:
    names, of_today = columns.labels.names, list(columns.dataset.classes)
    if len(of_today) <= MAX_CLASS_VIEWS:
        return of_today if names else [], []
    given = np.array([names.index(name) if name is not None else -1 for name in columns.given])
    issues = np.array(columns.values["is_label_issue"], dtype=bool) & (given >= 0)
    counts = np.bincount(given[issues], minlength=len(names))
    most = np.sort(np.argsort(-counts, kind="stable")[:MAX_CLASS_VIEWS])
    return most.tolist(), [f"Views for the {MAX_CLASS_VIEWS} of {len(of_today)} classes with the most flags."]


def _parts(dataset: Dataset, label: int) -> list[int]:
    """The numbers of a class and of those that were merged into it."""
    return [label, *(gone for gone, into in dataset.merged.items() if into == label)]


def _class_view(label: int, name: str) -> str:
    shown = " ".join(name.split())[:60]
    return (
        f"class {shown}" if shown.isascii() and any(c.isalnum() for c in shown) else f"class {label} {shown}"
    )


def _free_name(fiftyone: Any, name: str, slugs: set[str]) -> str:
    """The name, numbered where a view with the same address is there (``a b`` and ``a-b``)."""
    number, found = 1, name
    while _slug(fiftyone, found) in slugs:
        number += 1
        found = f"{name} ({number})"
    return found


def _slug(fiftyone: Any, name: str) -> str:
    return str(fiftyone.core.utils.to_slug(name))


# --- Sidebar and colours --------------------------------------------------------------------------------


def _groups(columns: Columns, given: str) -> list[tuple[str, list[str], bool]]:
    trusts = [f"{engine}_trust" for engine in columns.engines]
    other = ["trust_score", "error_probability", "suspicion_rank", "is_label_issue", "engines_against"]
    other += ["engines_disagree"]
    brain = ["mistakenness", "hardness"]
    signals = [name for name in columns.values if name not in {"given_label", *other, *trusts, *brain}]
    signals = [name for name in signals if not name.startswith("duplicate_")]
    return [
        ("labels", [given, "cleaned", "suggested", "doubt", "given_label"], True),
        ("decisions", ["review", *(f"review.{part}" for part in REVIEW_FIELDS)], True),
        ("audit", other, True),
        ("predictions", [f"pred_{engine}" for engine in columns.engines], True),
        ("trust of each engine", trusts, True),
        ("published signals", signals, False),
        ("brain", brain, False),
        ("duplicates", ["duplicate_group", "duplicate_conflict"], False),
        # The App shows an empty group of that name where there is none.
        ("metadata", [INDEX, BASE, "id", "filepath", "created_at", "last_modified_at", "metadata"], False),
    ]


def _sidebar(fiftyone: Any, target: Any, columns: Columns, is_theirs: bool) -> None:
    """Ours alone in a dataset that we made; in one of the user's own, ours after what FiftyOne shows by default."""
    schema = set(target.get_field_schema(flat=True))
    given = target.info[MARK]["label_field"]
    ours = [(name, [path for path in paths if path in schema]) for name, paths, _ in _groups(columns, given)]
    opened = {name: is_open for name, _, is_open in _groups(columns, given)}
    documents = [fiftyone.SidebarGroupDocument(name="tags", expanded=True)]
    if is_theirs:
        documents = list(fiftyone.DatasetAppConfig.default_sidebar_groups(target))
        # What is theirs stays where FiftyOne puts it.
        known = {INDEX, BASE, *target.info[MARK]["fields"], *(f"review.{part}" for part in REVIEW_FIELDS)}
        ours = [(name, [path for path in paths if path in known]) for name, paths in ours]
        for group in documents:
            group.paths = [path for path in group.paths or [] if path not in known]
        ours = [(f"audit: {name}" if name == "labels" else name, paths) for name, paths in ours]
        opened["audit: labels"] = True
    for name, paths in ours:
        if paths:
            documents.append(
                fiftyone.SidebarGroupDocument(name=name, paths=paths, expanded=opened.get(name, True))
            )
    target.app_config.sidebar_groups = documents
    target.app_config.active_fields = fiftyone.ActiveFields(
        paths=[given, "suggested", "cleaned", "trust_score", "review.decision"]
    )
    target.save()


def _add_to_sidebar(target: Any, columns: Columns) -> None:
    """Put the fields that a later audit brought into their groups, and touch nothing else."""
    groups = target.app_config.sidebar_groups
    if not groups:
        return
    given = target.info[MARK]["label_field"]
    schema = set(target.get_field_schema(flat=True))
    shown = {path for group in groups for path in group.paths or []}
    by_name = {group.name: group for group in groups}
    for name, paths, _ in _groups(columns, given):
        new = [path for path in paths if path in schema and path not in shown]
        if new and name in by_name:
            by_name[name].paths = [*(by_name[name].paths or []), *new]
    target.save()


def _editing(target: Any, columns: Columns) -> None:
    """Let the App's Annotate tab offer the classes for ``cleaned``, so that two clicks correct a label."""
    if not columns.labels.names:  # the App's Annotate tab knows no Regression, and makes no mask of regions
        return
    if not hasattr(target, "generate_label_schemas"):
        return
    classes, known = list(columns.dataset.classes.values()), (target.label_schemas or {}).get("cleaned")
    if known is None:
        schema = target.generate_label_schemas("cleaned") | {"component": "dropdown", "classes": classes}
        target.update_label_schema("cleaned", schema)
        target.activate_label_schemas(["cleaned"])
    elif known.get("classes") == target.info[MARK].get("classes"):  # no person chose others
        target.update_label_schema("cleaned", {**known, "classes": classes})


def _colours(fiftyone: Any, target: Any) -> None:
    """By value: by field, every tag would have the one colour of the field ``tags``."""
    decided = [{"value": name, "color": colour} for name, colour in DECISION_COLOURS.items()]
    issue = [{"value": "True", "color": RED}, {"value": "False", "color": GREEN}]
    target.app_config.color_scheme = fiftyone.ColorScheme(
        color_by="value",
        color_pool=LIGHT,
        fields=[
            {
                "path": "tags",
                "fieldColor": RED,
                "valueColors": [{"value": "label_issue", "color": RED}, *decided],
            },
            {"path": "is_label_issue", "fieldColor": RED, "valueColors": issue},
            {"path": "review.decision", "fieldColor": BLUE, "valueColors": decided},
        ],
    )
    target.save()


# --- The map and similar images -------------------------------------------------------------------------


def _brain(target: Any, columns: Columns, here: Here) -> list[str]:
    _runs(target, columns)
    found = fields.map_and_embeddings(columns)
    if found is None:
        return ["There is no map; the Embeddings panel has nothing to show."]
    import fiftyone.brain as brain

    called, points, embeddings = found
    ids = sorted(i for i in here.ids if i < columns.num_samples)
    view = (
        target.select([here.ids[i] for i in ids], ordered=True)
        if here.num_foreign or here.doubled
        else target
    )
    order = list(target.values(INDEX)) if view is target else ids
    for key in (MAP_KEY, SIMILARITY_KEY):
        if target.has_brain_run(key):
            target.delete_brain_run(key)
    brain.compute_visualization(
        view, points=np.asarray(points)[order].astype(np.float64), brain_key=MAP_KEY, progress=False
    )
    vectors = _short(np.asarray(embeddings))[order]
    brain.compute_similarity(
        view, embeddings=vectors, brain_key=SIMILARITY_KEY, backend="sklearn", metric="cosine", progress=False
    )
    return [f"The map and the search for similar images are those of {called}."]


def _runs(target: Any, columns: Columns) -> None:
    """Register what is in the fields, so that the App and ``list_brain_runs`` name it."""
    from fiftyone.brain.internal.core.hardness import HardnessConfig
    from fiftyone.brain.internal.core.mistakenness import ClassificationMistakennessConfig

    audit = columns.audit
    target.register_run(
        RUN_KEY,
        target.init_run(
            method="label_auditor",
            audit=audit.id,
            engines=columns.engines,
            preset=audit.preset,
            seed=audit.seed,
            trust_field="trust_score",
        ),
        overwrite=True,
    )
    if not columns.probs:
        return
    pred, given = f"pred_{columns.engines[0]}", target.info[MARK]["label_field"]
    configs = {
        "mistakenness": ClassificationMistakennessConfig(pred, given, "mistakenness", True),
        "hardness": HardnessConfig(pred, "hardness"),
    }
    for key, config in configs.items():
        if target.has_brain_run(key):
            # Not delete_brain_run: that would delete the field, which is written already.
            target._doc.brain_methods.pop(key).delete()
            target.save()
        method = config.build()
        method.register_run(target, key, cleanup=False)
        method.save_run_results(target, key, None)


def _short(embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, d) directions that carry the most, so that the index of 50,000 samples stays small."""
    if embeddings.shape[1] <= MAX_COMPONENTS or len(embeddings) <= MAX_COMPONENTS:
        return np.asarray(embeddings, dtype=np.float32)
    from sklearn.decomposition import PCA  # takes most of a second to import: only where it is used

    kept: NDArray[np.float32] = PCA(MAX_COMPONENTS, svd_solver="randomized", random_state=0).fit_transform(
        embeddings
    )
    return kept.astype(np.float32)
