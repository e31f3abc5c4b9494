"""What can be said about a dataset now: in a few lines beside the bench, and as one picture when all is judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from app.panels import charts
from app.session import readers, words
from app.session.words import plain
from auditor import kind
from auditor.catalog.records import Audit, Dataset
from auditor.ground.vocabulary import CLASSIFICATION, LEVELS
from auditor.results import statements
from auditor.results.progress import wrong_in_words
from auditor.results.statements import Standing
from auditor.review import drawing, verifying
from auditor.statistics import MoreRows, NoiseRate, Promise, first_interval, noise

CURVE = tuple(sorted({0.02, 0.03, 0.07, 0.15, 0.30, *LEVELS}))
"""Levels at which the curve of promises is computed; those of ``LEVELS`` carry their figures."""
RATE_HEIGHT, CURVE_HEIGHT, LOOKS_HEIGHT = 170, 300, 230
NONE_BELOW = 0.0005
"""A share that is written as 0 % or as less than 0.1 %."""
LOOKS, USUAL_SHARE = 20, 0.1
"""The fewest looks that a draw is compared with, and the share of wrong labels in that picture."""


def labels_in_words(dataset: Dataset) -> str:
    """``labels``, or what the labels of a dataset are where they are no classes: ``masks``, ``numbers``."""
    return "labels" if dataset.task == CLASSIFICATION else kind.of(dataset).words


def so_far(dataset: Dataset, audit: Audit | None, *, judged: int) -> None:
    """The noise rate and what is promised, in lines that fit beside the bench."""
    if judged < LOOKS:
        st.write(f"The share of wrong {labels_in_words(dataset)} stands here after {LOOKS} checks.")
        return
    standing, rate = _standing(dataset, audit)
    st.metric(
        f"Wrong {labels_in_words(dataset)}", words.interval(rate.low, rate.high), help=plain(rate.sentence)
    )
    st.caption("Holds at 95 % whenever you stop, so it is wide; narrower once all are checked.")
    if standing is None:
        return
    found = statements.promises(standing)
    for one in (one for one in found.values() if one.is_kept):
        st.markdown(f"**{words.plural(one.num_flags, 'suspect')}**, at most {words.percent(one.q)} false")


def before_draw(*, size: int, labeled: int, words_of_labels: str) -> None:
    """Draw what a draw of this size would tell, beside some others, as intervals around a usual share.

    Of a draw of all pictures, say that it leaves nothing to guess.
    """
    if size >= labeled:
        st.caption(
            f"That is every picture that is left ({labeled:,}): when they are checked, nothing has to be guessed."
        )
        return
    sizes = sorted({one for one in (LOOKS, 3 * LOOKS, size, 3 * size) if one < labeled})
    seen = [first_interval(round(USUAL_SHARE * one), one, labeled) for one in sizes]
    rows = {
        "what": [words.plural(one, "picture") for one in sizes],
        "low": [one.low for one in seen],
        "high": [one.high for one in seen],
        "point": [None] * len(sizes),
        "opacity": [1.0 if one == size else 0.45 for one in sizes],
    }
    of_size = seen[sizes.index(size)]
    share, pictures = words.percent(USUAL_SHARE), words.plural(size, "picture", "tell")
    st.subheader(
        f"{pictures} the share of wrong ones to about ±{max(1, round(50 * (of_size.high - of_size.low)))} points",
        anchor=False,
        help="Exact intervals at 95 % for labels chosen with the same chance each. More pictures make them "
        "narrower; those taken from the most suspicious say more about the list of suspects.",
    )
    st.caption(
        f"If {share} of the {words_of_labels} are wrong, they say {words.interval(of_size.low, of_size.high)}."
    )
    st.altair_chart(_intervals_chart(pd.DataFrame(rows), LOOKS_HEIGHT), key="verify_looks")


def picture(
    dataset: Dataset, audit: Audit | None, next_step: Callable[[str], object], *, judged: int
) -> None:
    """One sentence, one picture (the interval, and what more would buy), one next step; promises behind a fold.

    ``next_step`` draws what to do with it, below the interval; it is told what is promised of the list of suspects.
    """
    standing, rate = _standing(dataset, audit)
    with st.container(border=True, key="verify_picture"):
        with st.container(key="huge_verify"):
            wrong = wrong_in_words(labels_in_words(dataset), readers.errors_left(dataset, audit))
            st.markdown(_plainly(rate, wrong), help=plain(rate.sentence))
        _rate(dataset, standing, rate, judged)
        next_step("" if standing is None else _kept(standing))
    if standing is not None:
        with st.expander("What is promised about the list of suspects"):
            _promises(standing)


def _plainly(rate: NoiseRate, wrong: str) -> str:
    """``Between 3.1 % and 5.4 % of the labels are wrong``; of no low end, ``At most 5.4 %``. Shares are bold.

    ``wrong``: what follows the share, from ``wrong_in_words``.
    """
    low, high = f"**{words.percent(rate.low)}**", f"**{words.percent(rate.high)}**"
    said = f"at most {high}" if rate.low < NONE_BELOW else f"between {low} and {high}"
    said = said if rate.kind == "interval" else f"perhaps {said}"
    return f"{said[0].upper()}{said[1:]} {wrong}"


def _kept(standing: Standing) -> str:
    """The promise about the longest part of the list of suspects, if any is kept."""
    kept = {q: one for q, one in statements.promises(standing).items() if one.is_kept}
    if not kept:
        return ""
    q, promise = max(kept.items(), key=lambda one: (one[1].num_flags, -one[0]))
    if promise.num_flags == 1:
        return f"The first suspect is wrong with a chance of at least {words.percent(1 - q)}."
    wrong = int((1 - q) * promise.num_flags + 1e-9)
    return f"Of the first {promise.num_flags:,} suspects, on average at least {wrong:,} are really wrong."


def _rate(dataset: Dataset, standing: Standing | None, rate: NoiseRate, judged: int) -> None:
    if standing is None:
        st.altair_chart(_rate_chart(rate, None, judged), key="verify_rate")
        return
    more = statements.what_more_buys(standing, drawing.next_size(dataset.id))
    st.altair_chart(_rate_chart(rate, more, judged), key="verify_rate")
    st.caption(
        f"{words.plural(more.num_more, 'more sample')} would make it this narrow.", help=plain(more.sentence)
    )


def _promises(standing: Standing) -> None:
    found = statements.promises(standing, levels=CURVE)
    kept = {q: one for q, one in found.items() if one.is_kept}
    if kept:
        st.subheader("How many suspects at which share of false ones", anchor=False)
        st.caption("Each point is a promise, kept on average.", help=plain(_first(kept).sentence))
        st.altair_chart(_promise_chart(kept), key="verify_promises")
    else:
        st.subheader("No promise about the list yet", anchor=False)
        st.caption("The samples so far are too few for one.", help=plain(found[LEVELS[1]].sentence))


def _standing(dataset: Dataset, audit: Audit | None) -> tuple[Standing | None, NoiseRate]:
    if audit is not None:
        standing = statements.load(audit.id)
        return standing, statements.noise_rate(standing)
    verified = verifying.rows(dataset.id)
    return None, noise.noise_rate_from_verified(readers.given_labels(dataset), verified)


def _first(found: dict[float, Promise]) -> Promise:
    return next(iter(found.values()))


def _ink() -> str:
    """Grey that reads on the page as it is, light or dark: orange and blue mean given and suggested."""
    return "#b4bfcc" if st.context.theme.type == "dark" else "#4c5868"


def _rate_chart(rate: NoiseRate, more: MoreRows | None, judged: int) -> Any:
    """The interval of the noise rate now, and below it the one that further rows should give."""
    rows = [
        {
            "what": f"{judged:,} checked",
            "low": rate.low,
            "high": rate.high,
            "point": rate.point,
            "opacity": 1.0,
        }
    ]
    if more is not None and more.num_more:
        further = {
            "what": f"{judged + more.num_more:,} checked",
            "low": more.rate_low,
            "high": more.rate_high,
        }
        rows.append({**further, "point": None, "opacity": 0.45})
    return _intervals_chart(pd.DataFrame(rows), RATE_HEIGHT)


def _intervals_chart(table: pd.DataFrame, height: int) -> Any:
    """Rows ``what``, ``low``, ``high``, ``point`` (or None) and ``opacity`` as bars on one scale of shares."""
    table["text"] = [words.interval(low, high) for low, high in zip(table.low, table.high, strict=True)]
    ink = _ink()
    axis: dict[str, Any] = {"labelColor": ink, "domain": False, "ticks": False}
    base = alt.Chart(table).encode(y=alt.Y("what:N", sort=None, title=None, axis=alt.Axis(**axis)))
    share = alt.Scale(domain=[0, max(0.01, 1.4 * float(table.high.max()))])  # with room for the figures
    bars = base.mark_bar(size=22, cornerRadius=4, color=ink).encode(
        x=alt.X("low:Q", title=None, scale=share, axis=alt.Axis(format=".0%", tickCount=4, **axis)),
        x2="high:Q",
        opacity=alt.Opacity("opacity:Q", scale=None),
        tooltip=["what", "text"],
    )
    points = base.mark_tick(thickness=3, size=30, color=ink).encode(x="point:Q")
    look: dict[str, Any] = {"align": "left", "dx": 8, "fontSize": charts.SMALL_TEXT, "color": ink}
    figures = base.mark_text(**look).encode(x="high:Q", text="text:N")
    return alt.layer(bars, points, figures).properties(height=height)


def _promise_chart(kept: dict[float, Promise]) -> Any:
    """Labels on the list by the share of them that may be false; 5, 10 and 20 % with their figures."""
    table = pd.DataFrame(
        {
            "false at most": [words.percent(q) for q in kept],
            "q": list(kept),
            "suspects": [one.num_flags for one in kept.values()],
            "of them false": [round(one.expected_false, 1) for one in kept.values()],
        }
    )
    table["text"] = [
        f"{one.num_flags:,}, {one.expected_false:.0f} false" if q in LEVELS else "" for q, one in kept.items()
    ]
    ink = _ink()
    axis: dict[str, Any] = {"labelColor": ink, "titleColor": ink}
    percents = alt.Axis(format=".0%", values=[0, *LEVELS, max(CURVE)], grid=False, **axis)
    x = alt.X(
        "q:Q", title="false at most", scale=alt.Scale(domain=[0, max(CURVE)], padding=12), axis=percents
    )
    top = alt.Scale(domain=[0, 1 + int(1.25 * table.suspects.max())])
    y = alt.Y("suspects:Q", title="suspects", scale=top, axis=alt.Axis(tickMinStep=1, tickCount=4, **axis))
    base = alt.Chart(table).encode(x=x, y=y, tooltip=["suspects", "false at most", "of them false"])
    area = base.mark_area(interpolate="step-after", color=ink, opacity=0.12)
    line = base.mark_line(interpolate="step-after", strokeWidth=2.5, color=ink)
    known = base.transform_filter("datum.text != ''")
    dots = known.mark_circle(size=110, color=ink, opacity=1)
    # The strictest level's figures stand below its point: the next one's are too near above.
    is_first = f"datum.q == {LEVELS[0]}"
    look: dict[str, Any] = {"fontSize": charts.SMALL_TEXT, "fontWeight": 600, "color": ink}
    below = known.transform_filter(is_first).mark_text(dy=20, align="left", **look)
    above = known.transform_filter(f"!({is_first})").mark_text(dy=-16, **look)
    texts = [one.encode(text="text:N") for one in (below, above)]
    return alt.layer(area, line, dots, *texts).properties(height=CURVE_HEIGHT)
