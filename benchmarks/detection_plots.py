"""The detection table as a picture: which method ranks best on which noise.

    python -m benchmarks.detection_plots

Reads ``benchmarks/results/detection.json``; ``detection_auroc.png`` goes beside it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

from benchmarks.detection import RESULTS
from benchmarks.detection_report import Table, scores_by_method, tables_of

METHODS = {
    "l2b": "L2B",
    "coteaching": "Co-teaching + S2E",
    "choicenet": "ChoiceNet",
    "umn": "UMN",
    "cross_entropy": "plain network",
    "three plain networks": "three plain networks",
    "plain, three times the epochs": "plain, 3 x epochs",
    "plain: area under the margin": "area under the margin",
    "cleanlab self-confidence": "cleanlab",
    "FiftyOne mistakenness": "FiftyOne mistakenness",
}
OURS, CONTROLS, PEERS = "#0072B2", "#6b7280", "#D55E00"


def main() -> None:
    """Draw it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    stored = json.loads(options.results.read_text())
    draw_auroc(stored, options.results.with_name("detection_auroc.png"))


def draw_auroc(stored: dict[str, Any], path: Path) -> None:
    """One panel a problem: a dot is the mean over seeds, its line goes from the worst seed to the best."""
    # Where one network alone was run there is nothing to compare.
    compared = [table for table in tables_of(stored) if len(table.cells(stored)) > 1]
    shown = {
        _title(table, stored).replace(", ", "\n", 1): scores_by_method(table, stored) for table in compared
    }
    columns = 3
    rows = -(-len(shown) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(13, 3.3 * rows), sharey=True, squeeze=False)
    for axis in axes.flat[len(shown) :]:
        axis.axis("off")
    for axis, (name, table) in zip(axes.flat, shown.items(), strict=False):
        for place, (method, title) in enumerate(reversed(METHODS.items())):
            values = [row["auroc"] for row in table.get(method, [])]
            if values:
                colour = PEERS if title in ("cleanlab", "FiftyOne mistakenness") else CONTROLS
                colour = OURS if method in ("l2b", "coteaching", "choicenet", "umn") else colour
                axis.plot([min(values), max(values)], [place, place], color=colour, linewidth=2)
                axis.plot([np.mean(values)], [place], "o", color=colour, markersize=6)
        seeds = max(len(rows) for rows in table.values())
        axis.set_title(f"{name} ({seeds} seed{'s' * (seeds > 1)})", fontsize=10)
        axis.set_yticks(range(len(METHODS)), list(reversed(METHODS.values())), fontsize=8)
        axis.grid(axis="x", color="#ddd")
        axis.set_axisbelow(True)
    for axis in axes[-1]:
        axis.set_xlabel("AUROC for wrong labels")
    _save(figure, path)


def _title(table: Table, stored: dict[str, Any]) -> str:
    """The problem, with what tells its tables apart where it was run in several settings."""
    alike = [one for one in tables_of(stored) if one.problem == table.problem]
    parts = [f"{table.rows:,} rows", f"{table.epochs} epochs", table.network]
    told = [part for i, part in enumerate(parts, 1) if len({one[i] for one in alike}) > 1]
    return ", ".join([table.problem, *told])


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
