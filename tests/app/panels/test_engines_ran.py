"""What each engine doubts, as a table."""

from __future__ import annotations

import re

import numpy as np

from app.panels import engines_ran

ABOUT = {
    "umn": {"title": "A & B", "paper": "?"},
    "own": {"title": "Mine", "paper": "https://arxiv.org/abs/1805.06431"},
}


def test_doubted_of__counts_those_that_people_found() -> None:
    doubted, found = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert engines_ran.doubted_of(doubted, found) == "1 of 2"


def test_table_of__a_line_an_engine_with_what_it_does_and_one_for_all_where_it_is_known() -> None:
    columns = {
        engines_ran.WRONG_DOUBTED: {"umn": "3 of 4", engines_ran.TOGETHER: "4 of 4"},
        "Time": {"own": "2 s"},
    }
    lines = re.findall(r"<tr>(.*?)</tr>", engines_ran.table_of(ABOUT, columns))
    assert [re.findall(r"<td>(.*?)</td>", line) for line in lines] == [
        [], ["3 of 4", ""], ["", "2 s"], ["4 of 4", ""]
    ]  # fmt: skip
    assert "A &amp; B" in lines[1]
    assert engines_ran.DOES["umn"] in lines[1]
    assert f'title="{engines_ran.PAPERS[ABOUT["own"]["paper"]]}"' in lines[2]
    alone = engines_ran.table_of(ABOUT, {"Time": {"own": "2 s"}})
    assert engines_ran.TOGETHER not in alone
