"""What each engine says of a picture, as a table."""

from __future__ import annotations

import re

from app.panels import parting

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
