"""How far a dataset is: a bar of what is checked, what waits and the rest, with its numbers below."""

from __future__ import annotations

from html import escape

import streamlit as st

from app.session import next_steps, words
from app.session.readers import Status
from auditor.ground.vocabulary import CLASSIFICATION
from auditor.results.progress import wrong_in_words

Part = tuple[int, str, str]
"""How many, what they are, and a tone of ``frame.css``: ``done``, ``doubt`` or ``rest``."""


def draw(seen: Status, *, says_left: bool = True) -> None:
    """Draw the parts that are not empty side by side, each as wide as it is large.

    ``says_left``: also how many wrong labels are left, where the page does not say it already.
    """
    parts = [one for one in _parts(seen) if one[0] > 0]
    pieces = "".join(f'<i class="{tone}" style="flex: {number} 0 3px"></i>' for number, _, tone in parts)
    legend = "".join(
        f'<span><i class="{tone}"></i><b>{words.count(number)}</b> {escape(what)}</span>'
        for number, what, tone in parts
    )
    note = f"<span>{escape(_left(seen))}</span>" if says_left and _left(seen) else ""
    st.html(f'<div class="parts"><div>{pieces}</div><p>{legend}{note}</p></div>')


def how_sure(seen: Status, *, says_left: bool = True) -> str:
    """Return what checks say of the labels, to be quoted; empty where labels are no classes.

    ``says_left``: also how many are left once people found some.
    """
    rate, left = seen.noise, seen.left
    if rate is None or left is None or seen.dataset.task != CLASSIFICATION:
        return ""
    if rate.kind != "interval":
        return "Nobody knows yet how many labels are wrong: random checks say it (Verify)."
    said = wrong_in_words("labels", left)
    share = words.interval(rate.low, rate.high)
    return f"Checks say: **{share}** {said if says_left else said.partition(',')[0]}."


def _parts(seen: Status) -> list[Part]:
    waiting = next_steps.waiting(seen)
    wrong = f" ({words.count(seen.found)} wrong)" if seen.found else ""
    return [
        (seen.decided, f"checked{wrong}", "done"),
        (waiting, f"{'suspect' if waiting == 1 else 'suspects'} to check", "doubt"),
        (seen.dataset.num_samples - seen.decided - waiting, "not checked", "rest"),
    ]


def _left(seen: Status) -> str:
    """``About 24 wrong labels left (15 to 38)``, where random samples say so; else nothing."""
    left = seen.left
    if left is None or left.kind != "interval":
        return ""
    if not left.has_middle:
        return f"At most {words.plural(left.high, 'wrong label')} left"
    span = f" ({left.low:,} to {left.high:,})" if left.low < left.high else ""
    return f"About {words.plural(left.point, 'wrong label')} left{span}"
