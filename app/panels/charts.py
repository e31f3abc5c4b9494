"""Charts of what an audit found: pairs of classes, distributions, agreement, rates. Tables in, charts out."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from auditor.results.statements import Move

SMALL_TEXT = 12.25
"""Pixels of every text in a chart: the small size of ``frame.css``."""


@alt.theme.register("auditor", enable=True)
def _theme() -> alt.theme.ThemeConfig:
    """Altair's own look with text of our size."""
    text: Any = {"labelFontSize": SMALL_TEXT, "titleFontSize": SMALL_TEXT}
    return {
        "config": {
            "view": {"continuousWidth": 300, "continuousHeight": 300},
            "axis": text,
            "legend": text,
            "header": text,
        }
    }


SMALL, LARGE = 140, 220
"""Heights in pixels: of one of many charts that stand side by side, and of one that stands alone."""
MOST_DIGITS, MOST_CLASSES, LABEL_PX = 24, 40, 120
"""Classes up to which a cell of the matrix has room for its number, classes it shows, and pixels of their names."""
CELL_PX, LETTER_PX = 48, 6.5
"""Pixels of a cell that has room for ``12 +3``, and of a letter."""
MARKED, OTHER = "#9a5bc4", "#8b949e"
"""Suspects or wrong labels, and what they are compared with. Orange and blue mean given and suggested."""
TEAL = "#2a9d8f"
KINDS = alt.Scale(
    domain=["suspect", "other label", "wrong label", "right label"], range=[MARKED, OTHER, MARKED, OTHER]
)


@dataclass(frozen=True)
class Tones:
    """Colours of a matrix's cells on a light or a dark page: more stands out more, and its digits can be read."""

    little: str
    much: str
    apart: str
    """Engines that rank the labels the other way round."""
    neither: str
    alike: str
    ink: str
    quiet: str
    """Of what matters less; at least 4.5 : 1 on the page."""


LIGHT = Tones("#efe3f7", "#b583d6", "#c79be0", "#f3f5f8", alike="#62bdb2", ink="#1b2430", quiet="#5f6873")
DARK = Tones("#2a2233", "#8448ad", "#7f46a6", "#2a313a", alike="#1d7268", ink="#f0f3f6", quiet="#a3acb7")


def move_cells(
    moves: Sequence[Move], names: Sequence[str | None], labeled: Mapping[int, int] = MappingProxyType({})
) -> pd.DataFrame:
    """One row a pair of classes: given, right (names), found, suspected, number, text, all (words or empty), and on
    the diagonal sure, the labels of the class that nobody doubts (0 elsewhere).

    ``names``: None for a class that was merged into another. ``labeled``: by class, its labels as given.

    Of more than ``MOST_CLASSES`` classes only those with something in their row or column, of the most frequent
    moves that fit.
    """
    rows = columns = [label for label, name in enumerate(names) if name is not None]
    if len(rows) > MOST_CLASSES:
        rows, columns = [], []
        for move in moves:
            wanted = sorted({*rows, move.given}), sorted({*columns, move.right})
            if max(map(len, wanted)) <= MOST_CLASSES:
                rows, columns = wanted
    by_pair = {(move.given, move.right): move for move in moves}
    doubted = Counter[int]()
    for move in moves:
        doubted[move.given] += move.found + move.suspected
    cells = []
    for given, right in itertools.product(rows, columns):
        move = by_pair.get((given, right)) or Move(given, right, 0, 0)
        parts = [f"{move.suspected:,}"] * bool(move.suspected) + [f"+{move.found:,}"] * bool(move.found)
        span = "{:,} to {:,}".format(*move.interval) if move.interval is not None else ""
        number = move.found + move.suspected
        sure = max(0, labeled.get(given, 0) - doubted[given]) if given == right else 0
        cells.append(
            (names[given], names[right], move.found, move.suspected, number, " ".join(parts), span, sure)
        )
    columns_of = ["given", "right", "found", "suspected", "number", "text", "all", "sure"]
    return pd.DataFrame(cells, columns=columns_of)


def move_chart(cells: pd.DataFrame, tones: Tones = LIGHT) -> Any:
    """Labels found wrong and suspected as a heat map of numbers; where there are none a cell is empty."""
    pick = alt.selection_point(name="cell", fields=["given", "right"], toggle=False)
    rows, columns = list(cells.given.unique()), list(cells.right.unique())
    side = max(300, min(620, 80 + 40 * len(rows)))
    is_short = max(map(len, columns)) <= 3
    is_narrow = f"width < {CELL_PX * len(columns)}"
    # Side by side they would run into each other in narrow columns: there they stand upright.
    angle: Any = 0 if is_short else alt.expr(f"{is_narrow} ? -90 : -40")
    upright: dict[str, Any] = {} if is_short else {"labelAlign": "left", "labelBaseline": "middle"}
    text: dict[str, Any] = {"labelColor": tones.quiet, "titleColor": tones.quiet}
    base = alt.Chart(cells).encode(
        x=alt.X(
            "right:N",
            sort=columns,
            title="→ suggested or right label",
            axis=alt.Axis(
                orient="top", labelAngle=angle, labelOverlap=False, labelLimit=LABEL_PX, **upright, **text
            ),
        ),
        y=alt.Y(
            "given:N",
            sort=rows,
            title="given label",
            axis=alt.Axis(labelOverlap=False, labelLimit=LABEL_PX, **text),
        ),
        tooltip=[
            "given",
            "right",
            alt.Tooltip("suspected", title="suspects to check"),
            alt.Tooltip("found", title="found wrong"),
            alt.Tooltip("all", title="wrong in all, at 95 %"),
            alt.Tooltip("sure", title="not in doubt"),
        ],
    )
    scale = alt.Scale(domain=[0, max(1, int(cells.number.max()))], range=[tones.little, tones.much])
    tint = alt.Color("number:Q", scale=scale, legend=None)
    boxes = base.mark_rect(stroke="#8883", cursor="pointer").encode(
        color=alt.condition("datum.number > 0", tint, alt.value("transparent"))
    )
    layers = [boxes.add_params(pick)]
    if len(columns) <= MOST_DIGITS:
        # In a narrow cell what people found stands below the suspects.
        is_double = f"{is_narrow} && datum.found > 0 && datum.suspected > 0"
        digits = base.transform_filter("datum.number > 0").mark_text(
            text=alt.expr(f"{is_double} ? split(datum.text, ' ') : datum.text"),
            dy=alt.expr(f"{is_double} ? -{SMALL_TEXT // 2} : 0"),
            fontSize=SMALL_TEXT,
            cursor="pointer",
        )
        layers.append(digits.encode(color=alt.value(tones.ink)))
        sure = base.transform_filter("datum.sure > 0 && datum.number == 0")
        layers.append(
            sure.mark_text(fontSize=SMALL_TEXT, cursor="pointer").encode(
                text=alt.Text("sure:Q", format=","), color=alt.value(tones.quiet)
            )
        )
    # The last name above the columns leans over the edge.
    beyond = 0 if is_short else round(0.77 * min(LABEL_PX, LETTER_PX * len(columns[-1])))
    padding = {"left": 5, "top": 5, "right": 5 + beyond, "bottom": 5}
    return alt.layer(*layers).properties(height=side, padding=padding)


def _ticks(form: str, number: int) -> alt.Axis:
    return alt.Axis(
        format=form, tickCount=number, labelFlush=True, tickMinStep=1 if form == "d" else alt.Undefined
    )


def _frame(height: int, title: str) -> dict[str, Any]:
    """A small chart with its title above it, and room for its last tick's label."""
    above = alt.TitleParams(title, anchor="start", fontSize=SMALL_TEXT, fontWeight="normal", offset=6)
    return {"height": height, "title": above, "padding": {"left": 0, "right": 8, "top": 4, "bottom": 4}}


def places(history: NDArray[np.floating], high_means: str) -> NDArray[np.float64]:
    """(E, N) place of each value among those of its epoch, in [0, 1]; 1 = the most suspicious.

    Signals that are high for right labels are turned round, so that all engines are on one scale.
    """
    found = pd.DataFrame(np.asarray(history, dtype=np.float32)).rank(axis=1, pct=True).to_numpy()
    return 1 - found if high_means == "clean" else found


def bands(
    history: NDArray[np.floating], is_marked: NDArray[np.bool_], marks: tuple[str, str]
) -> pd.DataFrame:
    """Median and middle 80 % by recorded epoch of the marked and the other rows: epoch, kind, low, mid, high."""
    rows = []
    for kind, chosen in zip(marks, (is_marked, ~is_marked), strict=True):
        if not chosen.any():
            continue
        part = np.asarray(history[:, chosen], dtype=np.float64)
        for epoch, (low, middle, high) in enumerate(np.nanquantile(part, (0.1, 0.5, 0.9), axis=1).T, start=1):
            rows.append({"epoch": epoch, "kind": kind, "low": low, "mid": middle, "high": high})
    return pd.DataFrame(rows, columns=["epoch", "kind", "low", "mid", "high"])


def bands_chart(table: pd.DataFrame, title: str, height: int = SMALL) -> Any:
    """A line and a band a kind over the epochs, on the scale 0 to 1."""
    color = alt.Color("kind:N", scale=KINDS, legend=None)
    base = alt.Chart(table).encode(x=alt.X("epoch:Q", title=None, axis=_ticks("d", 4)), color=color)
    share = alt.Scale(domain=[0, 1])
    low = alt.Y("low:Q", title=None, scale=share, axis=_ticks("%", 3))
    tips = ["kind", "epoch", *(alt.Tooltip(one, format=".2f") for one in ("low", "mid", "high"))]
    band = base.mark_area(opacity=0.22, clip=True).encode(y=low, y2="high:Q")
    line = base.mark_line(strokeWidth=2, clip=True).encode(y=alt.Y("mid:Q", scale=share), tooltip=tips)
    return alt.layer(band, line).properties(**_frame(height, title))


def agreement_chart(
    correlations: Sequence[Sequence[float | None]], names: Sequence[str], tones: Tones = LIGHT
) -> Any:
    """Rank correlation of every two engines, numbered as their rows are.

    The colours span -1 to 1: a negative correlation is a finding, not nothing.
    """
    rows = [f"{number}  {name}" for number, name in enumerate(names, start=1)]
    columns = [str(number) for number in range(1, len(names) + 1)]
    cells = pd.DataFrame(
        {"row": rows[i], "column": columns[j], "value": None if i == j else value, "text": _signed(value)}
        for i, line in enumerate(correlations)
        for j, value in enumerate(line)
    )
    cells.loc[cells.value.isna(), "text"] = ""
    bare: dict[str, Any] = {"ticks": False, "domain": False, "labelColor": tones.quiet}
    above = alt.Axis(orient="top", labelAngle=0, **bare)
    beside = alt.Axis(labelLimit=170, offset=4, **bare)
    base = alt.Chart(cells).encode(
        x=alt.X("column:N", sort=columns, title=None, axis=above),
        y=alt.Y("row:N", sort=rows, title=None, axis=beside),
    )
    tone = alt.Color(
        "value:Q",
        scale=alt.Scale(
            domain=[-1, 0, 1], range=[tones.apart, tones.neither, tones.alike], interpolate="rgb"
        ),
        legend=None,
    )
    boxes = base.mark_rect(stroke="#8883").encode(
        color=alt.condition("isValid(datum.value)", tone, alt.value("transparent")),
        tooltip=["row", "column", alt.Tooltip("value", format=".2f")],
    )
    digits = base.mark_text(fontSize=SMALL_TEXT, color=tones.ink).encode(text="text:N")
    return alt.layer(boxes, digits).properties(height=50 + 36 * len(names))


def _signed(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.2f}".replace("-", "−")


def lines_chart(series: Mapping[str, Sequence[float]], title: str, height: int = SMALL) -> Any:
    """Shares over the epochs on the scale 0 to 1; the first line is full, what it is compared with is dashed."""
    rows = [
        {"epoch": epoch, "share": value, "line": name}
        for name, values in series.items()
        for epoch, value in enumerate(values, start=1)
        if value == value
    ]
    names = list(series)
    return (
        alt.Chart(pd.DataFrame(rows, columns=["epoch", "share", "line"]))
        .mark_line(strokeWidth=2, clip=True)
        .encode(
            x=alt.X("epoch:Q", title=None, axis=_ticks("d", 4)),
            y=alt.Y("share:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=_ticks("%", 3)),
            color=alt.Color("line:N", scale=alt.Scale(domain=names, range=[TEAL, OTHER]), legend=None),
            strokeDash=alt.StrokeDash(
                "line:N", scale=alt.Scale(domain=names, range=[[1, 0], [4, 3]]), legend=None
            ),
            tooltip=["line", "epoch", alt.Tooltip("share", format=".1%")],
        )
        .properties(**_frame(height, title))
    )


def tones() -> Tones:
    """Those of the page as its reader has it."""
    return DARK if st.context.theme.type == "dark" else LIGHT
