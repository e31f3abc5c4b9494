"""Push into the real FiftyOne and MongoDB: what is there, again, after a kill, and beside a person's own work."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from auditor import api
from auditor.catalog import datasets, reviews, scores
from auditor.catalog.db import session
from auditor.catalog.records import NewReview
from auditor.fiftyone_bridge import fields, sync
from auditor.ground.errors import FiftyOneError
from auditor.importing import imports
from auditor.pictures import cache
from auditor.results import arrays
from auditor.review import blind, decisions, drawing
from tests.helpers import QUICK_OPTIONS, Digits, write_digits

TINY_COTEACHING = {
    "coteaching": {
        "search_iterations": 1,
        "search_samples": 1,
        "search_epochs": 2,
        "rank_epochs": 1,
        "epochs": 2,
    }
    | {"network": "mlp", "views": 1}
}


def in_order(target: Any, field: str) -> list[Any]:
    """A field's values by our sample_id."""
    pairs = zip(*target.values(["sample_index", field]), strict=True)
    return [value for index, value in sorted((p for p in pairs if p[0] is not None), key=lambda p: p[0])]


def test_push__everything_of_the_audit_is_there(pushed: Any, audited: tuple[Digits, int]) -> None:
    digits, audit_id = audited
    with session() as open_session:
        table = scores.table(open_session, audit_id)
    assert len(pushed) == 300
    assert in_order(pushed, "ground_truth.label") == [str(label) for label in digits.given_labels]
    assert in_order(pushed, "suggested.label") == [str(label) for label in table.suggested_label]
    assert in_order(pushed, "suggested.confidence") == [None] * 300  # nothing verified backs a number
    np.testing.assert_allclose(in_order(pushed, "trust_score"), table.trust_score, atol=1e-5)
    assert in_order(pushed, "suspicion_rank") == [rank + 1 for rank in table["rank"]]
    assert in_order(pushed, "cleaned.label") == in_order(pushed, "ground_truth.label")
    probs = arrays.pred_probs(audit_id, "cross_entropy")
    assert in_order(pushed, "pred_cross_entropy.label") == [str(label) for label in probs.argmax(axis=1)]
    np.testing.assert_allclose(
        np.exp(np.stack(in_order(pushed, "pred_cross_entropy.logits"))), probs, atol=1e-5
    )
    assert (
        pushed.evaluate_classifications("pred_cross_entropy", gt_field="ground_truth").metrics()["accuracy"]
        > 0
    )
    assert {"cross_entropy_trust", "is_label_issue", "engines_disagree"} <= set(pushed.get_field_schema())
    assert pushed.count_sample_tags() == {"label_issue": int(table.is_label_issue.sum())}
    assert in_order(pushed, "filepath")[7] == str(digits.table.parent / "images" / "0007.png")


def test_load__blind_verdicts_stand_apart_from_decisions(audited: tuple[Digits, int]) -> None:
    digits, _ = audited
    draw = drawing.draw("digits", 3, seed=0)
    seen, excluded, waiting = draw.sample_ids
    blind.record(draw.id, seen, "label", label=int(digits.true_labels[seen]), reviewer="ada")
    blind.record(draw.id, excluded, "exclude", reviewer="ada")
    columns = fields.load("digits")
    found = [None if review is None else review["blind"] for review in columns.reviews]
    assert (found[seen], found[excluded], found[waiting]) == (str(digits.true_labels[seen]), "exclude", None)
    assert sum(value is not None for value in found) == 2
    assert columns.decisions == {}


def test_push__views_map_similarity_and_sidebar(pushed: Any) -> None:
    suspects = pushed.load_saved_view("suspected mislabels")
    assert suspects.values("trust_score") == sorted(suspects.values("trust_score"))
    assert len(suspects) == pushed.count_sample_tags()["label_issue"]
    views = pushed.list_saved_views()
    assert views[:4] == [
        "suspected mislabels",
        "engines disagree",
        "reviewed",
        "duplicates with different labels",
    ]
    assert set(pushed.load_saved_view("class 3").values("ground_truth.label")) == {"3"}
    assert pushed.load_brain_results("audit_map").points.shape == (300, 2)
    first = pushed.first()
    similar = pushed.sort_by_similarity(first.id, k=3, brain_key="audit_similarity")
    assert similar.first().id == first.id
    brain = pytest.importorskip("fiftyone.brain")
    index = brain.compute_near_duplicates(pushed, similarity_index="audit_similarity", progress=False)
    assert index.total_index_size == 300
    assert pushed.list_brain_runs() == ["audit_map", "audit_similarity", "hardness", "mistakenness"]
    assert pushed.get_run_info("audit").config.engines == ["cross_entropy"]
    fields = {field["path"]: field["valueColors"] for field in pushed.app_config.color_scheme.fields}
    for path in ("tags", "review.decision"):
        colours = {each["value"]: each["color"] for each in fields[path]}
        assert len({colours[name] for name in ("keep", "relabel", "exclude")}) == 3
    groups = {group.name: group.paths for group in pushed.app_config.sidebar_groups}
    assert groups["audit"][0] == "trust_score"
    assert groups["trust of each engine"] == ["cross_entropy_trust"]


def test_push__again_updates_and_keeps_what_a_person_added(pushed: Any, database: Any) -> None:
    before = in_order(pushed, "trust_score")
    calm = [i for i, flag in enumerate(in_order(pushed, "is_label_issue")) if not flag]
    some = pushed.match({"sample_index": {"$in": calm[:3]}})
    some.tag_samples(["my own", "label_issue"])
    pushed.add_sample_field("note", database.StringField)
    some.set_values("note", ["a", "b", "c"])
    pushed.save_view("mine", some)
    pushed.add_sample(database.Sample(filepath="/nowhere/else.png"))
    api.Dataset("digits").audit(["cross_entropy"], options=QUICK_OPTIONS, seed=5, map_method="pca")
    again = sync.push_audit("digits")
    pushed.reload()
    assert (again.num_added, again.num_foreign, len(pushed)) == (0, 1, 301)
    assert in_order(pushed, "trust_score") != before
    kept = pushed.match_tags("my own")
    assert sorted(kept.values("sample_index")) == calm[:3]
    assert all("label_issue" in tags for tags in kept.values("tags"))
    assert sorted(kept.values("note")) == ["a", "b", "c"]
    assert "mine" in pushed.list_saved_views()
    assert pushed.load_brain_results("audit_map").points.shape == (300, 2)


def test_push__somebody_elses_dataset_is_left_alone(audited: tuple[Digits, int], database: Any) -> None:
    theirs = database.Dataset("digits", persistent=True)
    theirs.add_sample(database.Sample(filepath="/nowhere/else.png"))
    with pytest.raises(FiftyOneError, match="not made by us; push under another name"):
        sync.push_audit("digits")
    with pytest.raises(FiftyOneError, match="not made by us"):
        sync.push_audit("digits", replace=True)
    assert sync.push_audit("digits", to="digits audit").name == "digits audit"
    assert len(sync.open_pushed("digits")) == 300  # the name is remembered
    assert len(database.load_dataset("digits")) == 1


def test_push__replace_drops_only_what_an_earlier_import_left(pushed: Any) -> None:
    pushed.match({"sample_index": 0}).tag_samples("exclude")
    with pytest.raises(FiftyOneError, match=r"belongs to this import.*`auditor fiftyone digits pull` brings"):
        sync.push_audit("digits", replace=True)
    assert sync.push_audit("digits").num_waiting == 1
    pushed.info[fields.MARK] |= {"key": "2020-01-01T00:00:00+00:00"}
    pushed.save()
    with pytest.raises(FiftyOneError, match="belongs to an earlier import; to replace it drops what"):
        sync.push_audit("digits")
    assert sync.push_audit("digits", replace=True).num_added == 300
    assert "exclude" not in sync.open_pushed("digits").distinct("tags")


def test_push__decisions_of_the_app_become_tags(pushed: Any, audited: tuple[Digits, int]) -> None:
    with session() as open_session:
        dataset = datasets.get(open_session, "digits")
        for i, decision, label in ((1, "keep", None), (2, "relabel", 8), (3, "unreadable", None)):
            reviews.append(
                open_session,
                NewReview(dataset_id=dataset.id, sample_id=i, decision=decision, label=label, reviewer="ann"),
            )
    sync.push_audit("digits")
    tags = [set(tags) - {"label_issue"} for tags in in_order(pushed, "tags")[:5]]
    assert tags == [set(), {"keep"}, {"relabel"}, {"exclude"}, set()]
    assert in_order(pushed, "review.decision")[:4] == [None, "keep", "relabel", "unreadable"]
    assert in_order(pushed, "review.label")[2] == "8"
    assert in_order(pushed, "ground_truth.label")[2] == str(audited[0].given_labels[2])
    assert sorted(pushed.load_saved_view("reviewed").values("sample_index")) == [1, 2, 3]


@pytest.mark.usefixtures("home")
def test_image_paths__parquet_is_taken_out_once(tmp_path: Path) -> None:
    stream, rows = io.BytesIO(), []
    for i in range(6):
        stream = io.BytesIO()
        Image.fromarray(np.full((8, 8), 40 * i, dtype=np.uint8)).save(stream, "PNG")
        rows.append({"bytes": stream.getvalue(), "path": None})
    pq.write_table(pa.table({"image": rows, "label": ["a", "b"] * 3}), tmp_path / "set.parquet")
    imports.import_dataset(tmp_path / "set.parquet", name="set", workers=1)
    with session() as open_session:
        dataset = datasets.get(open_session, "set")
    paths = list(fields.image_paths(dataset))
    assert all(Path(path).read_bytes() == row["bytes"] for path, row in zip(paths, rows, strict=True))
    assert all(Path(path).is_relative_to(cache.folder(dataset)) for path in paths)
    assert list(fields.image_paths(dataset)) == paths


def test_push__brain_scores_are_brains_own(pushed: Any) -> None:
    brain = pytest.importorskip("fiftyone.brain")
    ours = {name: in_order(pushed, name) for name in ("mistakenness", "hardness")}
    brain.compute_mistakenness(
        pushed, "pred_cross_entropy", "ground_truth", "again", use_logits=True, progress=False
    )
    brain.compute_hardness(pushed, "pred_cross_entropy", "hard_again", progress=False)
    np.testing.assert_allclose(in_order(pushed, "again"), ours["mistakenness"], atol=1e-4)
    np.testing.assert_allclose(in_order(pushed, "hard_again"), ours["hardness"], atol=1e-4)
    sync.push_audit("digits")  # the runs can be written again, and the fields stay
    pushed.reload()
    assert in_order(pushed, "mistakenness") == ours["mistakenness"]


def test_push__a_newer_audit_with_other_engines_clears_nothing(pushed: Any) -> None:
    before = in_order(pushed, "cross_entropy_trust")
    newer = api.Dataset("digits").audit(["coteaching"], options=TINY_COTEACHING, map_method="pca")
    sync.push_audit("digits")
    pushed.reload()
    assert in_order(pushed, "cross_entropy_trust") == before
    assert None not in in_order(pushed, "coteaching_trust")
    assert pushed.get_field("coteaching_trust").description.endswith(f"(audit {newer})")
    assert pushed.get_field("cross_entropy_trust").description.endswith("(audit 1)")
    trust = in_order(pushed, "trust_score")
    sync.push_audit("digits", audit_id=1)
    assert in_order(pushed, "trust_score") != trust


@pytest.fixture
def theirs(database: Any, home: Path, tmp_path: Path) -> Any:
    """A dataset of the user's own with tags, fields and a view, imported as ``mine`` and audited."""
    digits = write_digits(tmp_path / "source", num=120)
    paths = [tmp_path / "source" / str(path) for path in pd.read_csv(digits.table).iloc[:, 0]]
    own = database.Dataset("their photos", persistent=True)
    own.add_samples(
        [
            database.Sample(filepath=str(path), label=database.Classification(label=str(given)), tags=["old"])
            for path, given in zip(paths, digits.given_labels, strict=True)
        ],
        progress=False,
    )
    own.add_sample_field("note", database.StringField)
    own.set_values("note", [str(i) for i in range(len(own))])
    own.save_view("some", own.limit(3))
    imports.import_dataset(
        "fiftyone:their photos", name="mine", label_column="label", image_size=16, workers=1
    )
    api.Dataset("mine").audit(["cross_entropy"], options=QUICK_OPTIONS, map_method="pca")
    return own


def test_push__onto_the_dataset_it_came_from(theirs: Any, database: Any) -> None:
    before = theirs.values(["id", "label.id", "label.label", "note", "filepath"])
    bystanders = [database.Dataset(name, persistent=True) for name in ("bystander", "second bystander")]
    for bystander in bystanders:
        bystander.add_sample(database.Sample(filepath="/nowhere.png", tags=["own"]))
    untouched = [bystander.first().to_dict(include_private=True) for bystander in bystanders]
    infos = [(one.info, one.list_saved_views(), list(one.get_field_schema())) for one in bystanders]
    pushed = sync.push_audit("mine")
    assert (pushed.name, pushed.num_added, pushed.num_foreign) == ("their photos", 0, 0)
    theirs.reload()
    assert theirs.values(["id", "label.id", "label.label", "note", "filepath"]) == before
    assert all("old" in tags for tags in theirs.values("tags"))
    assert "some" in theirs.list_saved_views()
    assert "ground_truth" not in theirs.get_field_schema()
    assert None not in theirs.values("trust_score")
    assert theirs.values("cleaned.label") == theirs.values("label.label")
    assert "note" in {path for group in theirs.app_config.sidebar_groups for path in group.paths}
    for bystander in bystanders:
        bystander.reload()
    assert [one.first().to_dict(include_private=True) for one in bystanders] == untouched
    assert [(one.info, one.list_saved_views(), list(one.get_field_schema())) for one in bystanders] == infos
    assert sorted(database.list_datasets()) == ["bystander", "second bystander", "their photos"]
    # Decisions come back by the same road, and edits of their own label field too.
    sample = theirs.match({"sample_index": 3}).first()
    sample["label"].label = next(name for name in ("0", "1") if name != sample["label"].label)
    sample.save()
    theirs.match({"sample_index": 4}).tag_samples("exclude")
    assert sync.pull_decisions("mine", reviewer="ann").counts == {"exclude": 1, "relabel": 1}
    sync.push_audit("mine")
    assert theirs.match({"sample_index": 4}).values("cleaned.label") == [None]


def test_push__fields_of_theirs_are_never_written_over(theirs: Any, database: Any) -> None:
    theirs.add_sample_field("cleaned", database.StringField)
    with pytest.raises(
        FiftyOneError, match="fields of its own named cleaned; rename them, or push mine under another"
    ):
        sync.push_audit("mine")
    assert sync.push_audit("mine", to="beside").num_added == 120
    # Without that other one, pushes go where they went before; a sidebar of theirs stays, colours are added.
    database.delete_dataset("beside")
    theirs.delete_sample_field("cleaned")
    theirs.app_config.sidebar_groups = database.DatasetAppConfig.default_sidebar_groups(theirs)
    theirs.save()
    sidebar = [group.name for group in theirs.app_config.sidebar_groups]
    assert sync.push_audit("mine").name == "their photos"
    theirs.reload()
    assert "decision" in str(theirs.app_config.color_scheme.fields)
    assert [group.name for group in theirs.app_config.sidebar_groups] == sidebar


def test_push__the_dataset_it_came_from_is_gone(theirs: Any, database: Any) -> None:
    theirs.delete_samples(theirs.limit(2))
    pushed = sync.push_audit("mine")
    assert pushed.notes[-1].startswith("2 samples of the import are no longer in FiftyOne's dataset")
    assert len(theirs) == 118
    database.delete_dataset("their photos")
    with pytest.raises(FiftyOneError, match="any more, from which mine came; another name makes a new one"):
        sync.push_audit("mine")


def test_push__a_second_import_takes_the_fields_over_only_when_told(theirs: Any) -> None:
    sync.push_audit("mine")
    imports.import_dataset(
        "fiftyone:their photos", name="two", label_column="label", image_size=16, workers=1
    )
    api.Dataset("two").audit(["cross_entropy"], options=QUICK_OPTIONS, map_method="pca")
    with pytest.raises(FiftyOneError, match="belongs to an earlier import"):
        sync.push_audit("two")
    assert sync.push_audit("two", replace=True).num_samples == 120
    assert all("old" in tags for tags in theirs.values("tags"))
    assert theirs.values("note")[:2] == ["0", "1"]


def test_push__after_classes_were_changed_says_todays_and_keeps_the_imported_one(
    pushed: Any, audited: tuple[Digits, int], database: Any
) -> None:
    digits, _ = audited
    given = [str(label) for label in digits.given_labels]
    today = ["8" if label == "3" else "50" if label == "5" else label for label in given]
    ours = api.Dataset("digits")
    ours.merge_classes("3", "8", reviewer="ann")
    ours.rename_class("5", "50", reviewer="ann")
    assert sync.pull_decisions("digits", reviewer="ann").counts == {}, "nobody said anything there"
    assert sync.push_audit("digits", to="digits anew").num_added == 300, (
        "a first push says the imported labels, too"
    )
    anew = database.load_dataset("digits anew")
    assert in_order(anew, "ground_truth.label") == in_order(anew, "given_label") == given
    sync.push_audit("digits", to="digits")
    pushed.reload()
    for field in ("given_label", "ground_truth.label"):
        assert in_order(pushed, field) == given
    assert in_order(pushed, "cleaned.label") == today
    for field in ("suggested.label", "pred_cross_entropy.label"):
        assert not {"3", "5"} & set(in_order(pushed, field))
    views = pushed.list_saved_views()
    assert "class 3" not in views
    assert "class 5" not in views
    assert len(pushed.load_saved_view("class 8")) == today.count("8")
    if hasattr(pushed, "label_schemas"):
        assert pushed.label_schemas["cleaned"]["classes"] == [one for one in ours.class_names if one != "3"]

    # What was called so before means the class of today.
    sample = pushed.match({"sample_index": given.index("1")}).first()
    sample["cleaned"].label = "3"
    sample.save()
    assert sync.pull_decisions("digits", reviewer="bob").counts == {"relabel": 1}
    (said,) = decisions.outcomes(ours.table.id).values()
    assert (said.sample_id, ours.class_names[said.label]) == (given.index("1"), "8")
    for _ in range(2):
        ours.undo_class_change(reviewer="ann")
    sync.push_audit("digits")
    pushed.reload()
    assert in_order(pushed, "cleaned.label") == [
        "8" if i == given.index("1") else label for i, label in enumerate(given)
    ]
    assert "class 3" in pushed.list_saved_views()


def test_push__onto_their_dataset_after_a_class_was_renamed(theirs: Any) -> None:
    before = theirs.values("label.label")
    sync.push_audit("mine")
    api.Dataset("mine").rename_class("1", "17", reviewer="ann")
    assert sync.pull_decisions("mine", reviewer="ann").counts == {}
    sync.push_audit("mine")
    theirs.reload()
    assert theirs.values("label.label") == theirs.values("given_label") == before, "theirs stays theirs"
    assert theirs.values("cleaned.label") == ["17" if label == "1" else label for label in before]
    assert theirs.load_saved_view("class 17").values("label.label") == ["1"] * before.count("1")
    assert sync.pull_decisions("mine", reviewer="ann").counts == {}
