"""What changed tags and labels mean, case by case."""

from __future__ import annotations

import pytest

from auditor.catalog.records import Review
from auditor.fiftyone_bridge.merge import Base, Said, has_changed, spoken, understand, wanted_tags

NAMES = ["cat", "dog", "owl"]
CLASSES = {name: label for label, name in enumerate(NAMES)}
FRESH = Base(label="cat")
KEPT = Base(tags=("keep",), label="cat", review_id=7)


def said(base: Base, tags: tuple[str, ...], label: str | None, suggested: str | None = "dog") -> Said:
    return understand(base, tags, label, given="cat", suggested=suggested, classes=CLASSES)


@pytest.mark.parametrize(
    ("base", "tags", "label", "decision", "corrected"),
    [
        (FRESH, ("keep",), "cat", "keep", None),
        (FRESH, ("exclude",), "cat", "exclude", None),
        (FRESH, ("relabel",), "cat", "relabel", "dog"),  # the suggestion
        (FRESH, (), "owl", "relabel", "owl"),
        (FRESH, ("relabel",), "owl", "relabel", "owl"),  # the edited label, not the suggestion
        (KEPT, (), "cat", "undo", None),
        (Base(("relabel",), "owl", 7), ("relabel",), "cat", "keep", None),  # set back to the given label
    ],
)
def test_understand__plain(
    base: Base, tags: tuple[str, ...], label: str, decision: str, corrected: str | None
) -> None:
    found = said(base, tags, label)
    assert (found.decision, found.problem) == (decision, None)
    assert found.label == (None if corrected is None else CLASSES[corrected])


@pytest.mark.parametrize(
    ("base", "tags", "label", "decision", "text"),
    [
        (FRESH, ("keep", "exclude"), "cat", "exclude", "exclude, set last, counts"),
        (FRESH, ("exclude", "keep"), "cat", "keep", "keep, set last, counts"),
        (KEPT, ("keep", "exclude"), "cat", "exclude", "contradict"),
        (FRESH, ("keep",), "owl", "relabel", "the label counts"),
        (FRESH, ("exclude",), "owl", "exclude", "exclude counts"),
        (FRESH, (), "cow", None, "'cow' is none of the classes"),
        (FRESH, ("keep",), "cow", None, "none of the classes"),
        (FRESH, (), None, None, "was deleted"),
    ],
)
def test_understand__what_a_person_should_know(
    base: Base, tags: tuple[str, ...], label: str | None, decision: str | None, text: str
) -> None:
    found = said(base, tags, label)
    assert found.decision == decision
    assert text in (found.problem or "")


def test_understand__relabel_without_a_label() -> None:
    for suggested in (None, "cat", "cow"):
        assert said(FRESH, ("relabel",), "cat", suggested).decision is None


def test_base__survives_its_text_and_a_foreign_one() -> None:
    base = Base(("keep",), 'a "quoted" 猫', 3)
    assert Base.from_text(base.to_text(), "cat") == base
    for broken in (None, "", "keep", "[1]", "{}"):
        assert Base.from_text(broken, "cat") == Base(label="cat")


def test_wanted__what_stands_is_no_change() -> None:
    for decision, label in (("keep", None), ("relabel", 2), ("none", None), ("unsure", None)):
        standing = Review(id=5, dataset_id=1, sample_id=0, decision=decision, label=label, reviewer="ann")
        base = Base(wanted_tags(standing), "cat", 5, "owl")
        assert not has_changed(base, wanted_tags(standing), "cat", "owl")
        assert has_changed(base, wanted_tags(standing), "cat", "dog")


@pytest.mark.parametrize(
    ("label", "cleaned", "decision", "corrected"),
    [
        ("cat", "owl", "relabel", "owl"),
        ("owl", "cat", "relabel", "owl"),
        ("owl", "dog", "relabel", "dog"),  # cleaned goes first
        ("owl", "owl", "relabel", "owl"),
    ],
)
def test_spoken__either_label_corrects(label: str, cleaned: str, decision: str, corrected: str) -> None:
    base = Base(label="cat", cleaned="cat")
    compared, edited = spoken(base, label, cleaned)
    found = understand(compared, (), edited, given="cat", suggested=None, classes=CLASSES)
    assert (found.decision, found.label) == (decision, CLASSES[corrected])


def test_spoken__cleaned_set_back_to_the_given_label_confirms_it() -> None:
    compared, edited = spoken(Base(("relabel",), "cat", 7, "owl"), "cat", "cat")
    found = understand(compared, ("relabel",), edited, given="cat", suggested=None, classes=CLASSES)
    assert found.decision == "keep"
