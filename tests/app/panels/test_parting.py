"""What each engine says of a picture, as a bar and as a table."""

from __future__ import annotations

import re

import pytest

from app.panels import parting
from auditor.catalog.records import Review

NAMES = ["cat", "dog", "a<b"]
VOTES = [("A", 0), ("B", 1), ("C & D", 2)]


def cells_of(line: str) -> list[str]:
    return re.findall(r"<td.*?</td>", line)


def test_table_of__a_column_an_engine_says_which_class_it_sees_in_place_of_the_given_one() -> None:
    table = parting.table_of([(7, 0, 1, VOTES), (9, 2, 1, VOTES)], NAMES, lambda sample: f"/at/{sample}?a&b")
    head, first, second = re.findall(r"<tr>.*?</tr>", table)
    assert re.findall(r"<span>(.*?)</span>", head) == ["Suggested", "A", "B", "C &amp; D"]
    assert "cat</b><small>2 of 3 say wrong" in first
    assert 'src="/at/7?a&amp;b" alt="Sample 7"' in first
    together, same, suggested, other = cells_of(first)
    assert '<b class="suggested">dog</b>' in together
    assert (
        'class="same"' in same and ">cat<" in same,
        'class="suggested"' in suggested,
        ">dog<" in suggested,
    ) == (True, True, True)
    assert ('class="other"' in other, ">a&lt;b<" in other) == (True, True)
    assert ['class="same"' in cell for cell in cells_of(second)] == [False, False, False, True]
    assert "1 of 2 says wrong" in parting.table_of([(7, 0, 1, VOTES[:2])], NAMES, str)


def test_card_of__a_bar_counts_the_engines_by_class_the_given_one_first() -> None:
    votes = [("A", 2), ("B", 2), ("C & D", 0), ("E", 1)]
    card = parting.card_of((7, 0, 1, votes), NAMES, "/at/7?a&b", "checked: cat")
    assert re.findall(r'<span class="(.*?)" style="flex-grow:(\d)" title="(.*?)">', card) == [
        ("given", "1", "cat: C &amp; D"),
        ("suggested", "1", "dog: E"),
        ("other", "2", "a&lt;b: A, B"),
    ]
    assert "<i>checked: cat</i>" in card
    unseen = parting.card_of((7, 0, 1, votes[:2]), NAMES, "/at/7", "")
    assert re.findall(r'<b class="(\w+)">(.+?)</b> (\d)', unseen) == [
        ("given", "cat", "0"),
        ("other", "a&lt;b", "2"),
    ]
    assert re.findall(r'<span class="(.*?)"', unseen) == ["other"], (
        "a class that no engine sees has no part of the bar"
    )


@pytest.mark.parametrize(
    ("decision", "label", "said"),
    [
        ("keep", None, "checked: dog"),
        ("relabel", 0, "checked: cat"),
        ("unreadable", None, "checked: unreadable"),
        ("disputed", None, "checked: people differ"),
    ],
)
def test_said_of__names_the_class_that_people_saw(decision: str, label: int | None, said: str) -> None:
    review = Review(id=1, dataset_id=1, sample_id=7, decision=decision, label=label, reviewer="Ada")
    assert parting.said_of(review, 1, NAMES) == said
    assert parting.said_of(None, 1, NAMES) == ""
