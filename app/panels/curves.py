"""Charts of what engines did over their epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from app.panels import charts
from auditor.catalog.records import Epoch

METRICS = {
    "train_accuracy": "on given labels",
    "heldout_accuracy": "held-out",
    "keep_rate": "R(t): share kept",
    "label_precision": "label precision",
}
ACCURACY = ("train_accuracy", "heldout_accuracy")
SELECTION = ("keep_rate", "label_precision")
HEIGHT = 380


def table(epochs: Sequence[Epoch], titles: Mapping[str, str]) -> pd.DataFrame:
    """One row an epoch and metric: engine, stage, epoch (running through the stages), metric, value."""
    rows, running = [], dict.fromkeys(titles, 0)
    for epoch in epochs:
        running[epoch.engine] = running.get(epoch.engine, 0) + 1
        rows += [
            {
                "engine": titles.get(epoch.engine, epoch.engine),
                "stage": epoch.stage,
                "epoch": running[epoch.engine],
                "metric": name,
                "value": value,
            }
            for name, value in epoch.metrics.items()
        ]
    return pd.DataFrame(rows, columns=["engine", "stage", "epoch", "metric", "value"])


def chart(points: pd.DataFrame, metrics: Sequence[str], title: str) -> alt.Chart | None:
    """Lines over epochs, one colour an engine, one dash a metric; None without a point."""
    shown = points[points.metric.isin(metrics)]
    if shown.empty:
        return None
    # Searches and warm-ups stay pale: what judges the labels is each engine's last stage.
    last = shown.groupby("engine").stage.transform("last")
    shown = shown.assign(metric=shown.metric.map(METRICS), is_last_stage=shown.stage == last)
    order = [METRICS[name] for name in metrics]
    several = shown.metric.nunique() > 1
    return (
        alt.Chart(shown)
        .mark_line(point=alt.OverlayMarkDef(size=14), clip=True)
        .encode(
            x=alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y("value:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
            color=alt.Color("engine:N", title=None, legend=alt.Legend(orient="bottom", columns=3)),
            strokeDash=alt.StrokeDash(
                "metric:N",
                title=None,
                sort=order,
                legend=alt.Legend(
                    orient="top", symbolType="stroke", symbolSize=500, symbolStrokeColor=charts.OTHER
                )
                if several
                else None,
            ),
            detail="stage:N",
            opacity=alt.condition(alt.datum.is_last_stage, alt.value(1), alt.value(0.3)),
            tooltip=["engine", "stage", "epoch", "metric", alt.Tooltip("value", format=".1%")],
        )
        .properties(height=HEIGHT)
    )
