"""Charts of what an audit found: transition matrix, distributions, agreement, rates. Tables in, charts out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.statistics import Transition

BINS = 40
SMALL, LARGE = 240, 380
MOST_DIGITS = 14
"""Classes up to which a cell of the matrix has room for its number."""
LEAST_SHOWN = 0.005
"""Smallest share of a cell that is coloured and written; less would read "0%"."""
BLUE, ORANGE = "#0072B2", "#E69F00"
PALE, DEEP = "#fdeadb", "#e8843c"
KINDS = alt.Scale(
    domain=["suspect", "other label", "wrong label", "right label"], range=[ORANGE, BLUE, ORANGE, BLUE]
)


def transition_cells(transition: Transition, names: Sequence[str]) -> pd.DataFrame:
    """One row a cell: true, given (names), true_label, given_label, share, low, high."""
    size = len(names)
    true, given = np.divmod(np.arange(size * size), size)
    return pd.DataFrame(
        {
            "true": [names[i] for i in true],
            "given": [names[i] for i in given],
            "true_label": true,
            "given_label": given,
            "share": transition.matrix.ravel(),
            "low": transition.low.ravel(),
            "high": transition.high.ravel(),
        }
    )


def transition_chart(cells: pd.DataFrame, names: Sequence[str]) -> Any:
    """P(given | true) as a heat map; off-diagonal cells carry the colour, since the diagonal is what should be."""
    pick = alt.selection_point(name="cell", fields=["true", "given"], toggle=False)
    wrong = cells.assign(shade=np.where(cells.true_label == cells.given_label, np.nan, cells.share))
    side = max(300, min(560, 46 * len(names)))
    angle = 0 if max(map(len, names)) <= 3 else -40
    base = alt.Chart(wrong).encode(
        x=alt.X(
            "given:N",
            sort=list(names),
            title="given label",
            axis=alt.Axis(orient="top", labelAngle=angle, labelOverlap=False),
        ),
        y=alt.Y("true:N", sort=list(names), title="true class", axis=alt.Axis(labelOverlap=False)),
        tooltip=[
            "true",
            "given",
            alt.Tooltip("share", title="P(given | true)", format=".1%"),
            alt.Tooltip("low", format=".1%"),
            alt.Tooltip("high", format=".1%"),
        ],
    )
    top = max(0.01, float(wrong.shade.max(skipna=True)) if wrong.shade.notna().any() else 0.01)
    # Cells bring their own light colours, on which dark digits can be read on a light and on a dark page.
    tint = alt.Color("shade:Q", scale=alt.Scale(domain=[0, top], range=[PALE, DEEP]), legend=None)
    is_tinted = f"datum.shade >= {LEAST_SHOWN}"
    boxes = base.mark_rect(stroke="#8886", cursor="pointer").encode(
        color=alt.condition(is_tinted, tint, alt.value("transparent"))
    )
    layers = [boxes.add_params(pick)]
    if len(names) <= MOST_DIGITS:
        digits = base.transform_filter(f"datum.share >= {LEAST_SHOWN}").mark_text(
            fontSize=12, cursor="pointer"
        )
        tone = alt.condition(is_tinted, alt.value("#1b2430"), alt.value("#858c96"))
        layers.append(digits.encode(text=alt.Text("share:Q", format=".0%"), color=tone))
    return alt.layer(*layers).properties(height=side)


def histogram(
    values: NDArray[np.floating], is_marked: NDArray[np.bool_], marks: tuple[str, str]
) -> pd.DataFrame:
    """Shares by bin of [0, 1] for the marked and the other rows: bin, kind, share."""
    rows = []
    edges = np.linspace(0, 1, BINS + 1)
    for kind, chosen in zip(marks, (is_marked, ~is_marked), strict=True):
        part = values[chosen & np.isfinite(values)]
        counts, _ = np.histogram(part, bins=edges)
        shares = counts / max(1, len(part))
        rows += [{"bin": left, "end": right, "kind": kind, "share": share}
                 for left, right, share in zip(edges[:-1], edges[1:], shares, strict=True)]  # fmt: skip
    return pd.DataFrame(rows)


def histogram_chart(table: pd.DataFrame, title: str) -> Any:
    """Two overlaid histograms."""
    return (
        alt.Chart(table)
        .mark_bar(opacity=0.65)
        .encode(
            x=alt.X("bin:Q", bin="binned", title=title, scale=alt.Scale(domain=[0, 1])),
            x2="end",
            y=alt.Y("share:Q", stack=None, title="share of its kind", axis=alt.Axis(format="%")),
            color=alt.Color(
                "kind:N",
                scale=KINDS,
                title=None,
                legend=alt.Legend(orient="top", values=list(table.kind.unique())),
            ),
            tooltip=["kind", alt.Tooltip("bin", format=".2f"), alt.Tooltip("share", format=".1%")],
        )
        .properties(height=SMALL)
    )


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


def bands_chart(table: pd.DataFrame, title: str) -> Any:
    """A line and a band a kind."""
    color = alt.Color(
        "kind:N", scale=KINDS, title=None, legend=alt.Legend(orient="top", values=list(table.kind.unique()))
    )
    base = alt.Chart(table).encode(
        x=alt.X("epoch:Q", title="recorded epoch", axis=alt.Axis(format="d", tickMinStep=1))
    )
    shade = alt.Color("kind:N", scale=KINDS, title=None, legend=None)
    band = base.mark_area(opacity=0.22).encode(y=alt.Y("low:Q", title=title), y2="high:Q", color=shade)
    line = base.mark_line(strokeWidth=2).encode(y="mid:Q", color=color)
    return alt.layer(band, line).resolve_legend(color="independent").properties(height=SMALL)


def agreement_chart(correlations: Sequence[Sequence[float | None]], names: Sequence[str]) -> Any:
    """Rank correlation of every two engines."""
    rows = [
        {"a": names[i], "b": names[j], "value": value}
        for i, row in enumerate(correlations)
        for j, value in enumerate(row)
    ]
    base = alt.Chart(pd.DataFrame(rows)).encode(
        x=alt.X("a:N", sort=list(names), title=None, axis=alt.Axis(labelAngle=-30)),
        y=alt.Y("b:N", sort=list(names), title=None),
        tooltip=["a", "b", alt.Tooltip("value", format=".2f")],
    )
    boxes = base.mark_rect().encode(
        color=alt.Color("value:Q", scale=alt.Scale(scheme="blues", domain=[0, 1]), title=None, legend=None)
    )
    text = base.mark_text(fontSize=12).encode(
        text=alt.Text("value:Q", format=".2f"),
        color=alt.condition("datum.value > 0.6", alt.value("#fff"), alt.value("#333")),
    )
    return alt.layer(boxes, text).properties(height=LARGE)


def rates_chart(found: Sequence[float], default: Sequence[float]) -> Any:
    """R(t): what the search found beside Co-teaching's default."""
    rows = [
        {"epoch": epoch, "R(t)": value, "schedule": name}
        for name, values in (("found by S2E", found), ("Co-teaching's default", default))
        for epoch, value in enumerate(values, start=1)
    ]
    return (
        alt.Chart(pd.DataFrame(rows))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("epoch:Q", axis=alt.Axis(format="d", tickMinStep=1)),
            y=alt.Y(
                "R(t):Q",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%"),
                title="share of a batch kept",
            ),
            color=alt.Color("schedule:N", title=None, legend=alt.Legend(orient="top")),
            strokeDash=alt.StrokeDash("schedule:N", title=None, legend=None),
            tooltip=["schedule", "epoch", alt.Tooltip("R(t)", format=".1%")],
        )
        .properties(height=LARGE)
    )


def detection_curves(doubts: Mapping[str, NDArray[np.floating]], is_wrong: NDArray[np.bool_]) -> pd.DataFrame:
    """ROC and precision-recall points by engine: engine, recall, false_share, precision."""
    tables = []
    for name, doubt in doubts.items():
        known = np.isfinite(doubt)
        order = np.argsort(-doubt[known], kind="stable")
        hit = is_wrong[known][order]
        found, false = np.cumsum(hit), np.cumsum(~hit)
        keep = np.unique(np.linspace(0, len(hit) - 1, min(len(hit), 300)).astype(int))
        tables.append(
            pd.DataFrame(
                {
                    "engine": name,
                    "recall": found[keep] / max(1, hit.sum()),
                    "false_share": false[keep] / max(1, (~hit).sum()),
                    "precision": found[keep] / (keep + 1),
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def detection_chart(points: pd.DataFrame, x: str, y: str, titles: tuple[str, str]) -> Any:
    """One line an engine."""
    return (
        alt.Chart(points)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X(f"{x}:Q", title=titles[0], axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
            y=alt.Y(f"{y}:Q", title=titles[1], axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("engine:N", title=None, legend=alt.Legend(orient="bottom", columns=3)),
            order="recall:Q",
            tooltip=["engine", alt.Tooltip(x, format=".1%"), alt.Tooltip(y, format=".1%")],
        )
        .properties(height=LARGE)
    )


def area_under(recall: NDArray[np.floating], false_share: NDArray[np.floating]) -> float:
    """Area under a ROC curve given by its points."""
    x, y = np.concatenate([[0.0], false_share, [1.0]]), np.concatenate([[0.0], recall, [1.0]])
    return float(np.trapezoid(y, x))
