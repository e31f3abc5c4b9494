"""The readable page of the detection benchmark, from its figures alone.

    python -m benchmarks.detection_report

Reads ``benchmarks/results/detection.json`` and writes ``detection.md`` beside it.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.detection import PROBLEMS, RESULTS, load_results

PLAIN_X3 = "plain, three times the epochs"
"""The control to beat."""
METRICS = (
    ("auroc", "AUROC"),
    ("ap", "average precision"),
    ("precision_at_errors", "precision at as many flags as errors"),
)


class Table(NamedTuple):
    """What may be averaged over seeds: one problem at one number of rows and epochs, with one network."""

    problem: str
    rows: int
    epochs: int
    network: str

    def cells(self, stored: dict[str, Any]) -> list[dict[str, Any]]:
        """The finished cells of this table."""
        return [one for one in stored["cells"].values() if _table_of(one) == self]


def tables_of(stored: dict[str, Any]) -> list[Table]:
    """Every table there is something of, problems in their order, small settings first."""
    order = [problem.name for problem in PROBLEMS]
    found = {_table_of(one) for one in stored["cells"].values()}
    return sorted(found, key=lambda table: (order.index(table.problem), *table[1:]))


def _table_of(cell: dict[str, Any]) -> Table:
    return Table(cell["problem"], cell["rows"], cell["epochs"], cell["network"])


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    arguments.results.with_suffix(".md").write_text(page(load_results(arguments.results)))


def page(stored: dict[str, Any]) -> str:
    """The readable page."""
    cells = list(stored["cells"].values())
    devices = sorted({f"{cell['device']}, {cell['threads']} thread(s)" for cell in cells})
    versions = cells[0]["versions"]
    lines = [
        "# Which method finds wrong labels best?",
        "",
        "Same images, network, epochs and augmentation for every method in a run; known truth measures and never "
        "trains. Mean over seeds, ± half the range between the best and the worst seed. "
        "`python -m benchmarks.detection` fills the table (resumable), "
        "`python -m benchmarks.detection_report` writes this page.",
        "",
        f"Device: {'; '.join(devices)}. Versions: {', '.join(f'{k} {v}' for k, v in versions.items())}. "
        "MNIST: MLP; CIFAR-10: three convolutions (`conv3`) where no other network is named.",
        "",
    ]
    for table in tables_of(stored):
        lines += _section(table, stored)
    lines += _verdict(stored)
    return "\n".join(lines) + "\n"


def _section(table: Table, stored: dict[str, Any]) -> list[str]:
    mine = table.cells(stored)
    scores = scores_by_method(table, stored)
    costs: dict[str, list[float]] = defaultdict(list)
    for cell in mine:
        for name in cell["scores"]:
            if not name.endswith("as published") and cell["cpu_seconds"] is not None:
                costs[name].append(cell["cpu_seconds"])
    noise = np.mean([cell["noise_rate"] for cell in mine])
    lines = [f"## {table.problem} ({noise:.1%} of the given labels are wrong)", ""]
    lines += [f"{table.rows:,} rows, {table.epochs} epochs, network `{table.network}`.", ""]
    head = ["method", *(title for _, title in METRICS), "seeds", "CPU seconds"]
    lines += ["| " + " | ".join(head) + " |", "| --- | --- | --- | --- | --- | --- |"]
    plain_first = sorted(
        scores, key=lambda name: (name.endswith("as published"), -_mean(scores[name], "auroc"))
    )
    for name in plain_first:
        spread = [_spread([row[key] for row in scores[name]]) for key, _ in METRICS]
        cost = f"{np.mean(costs[name]):.0f}" if costs[name] else ""
        lines.append(f"| {name} | {' | '.join(spread)} | {len(scores[name])} | {cost} |")
    return [*lines, "", *_flags(mine), *_suggestions(mine), ""]


def scores_by_method(table: Table, stored: dict[str, Any]) -> dict[str, list[dict[str, float]]]:
    """The figures of every row of a table, one entry a seed."""
    scores: dict[str, list[dict[str, float]]] = defaultdict(list)
    for cell in table.cells(stored):
        for name, values in cell["scores"].items():
            scores[name].append(values)
    return scores


def _flags(mine: list[dict[str, Any]]) -> list[str]:
    rows = [cell["extra"] for cell in mine if "find_label_issues precision" in cell["extra"]]
    if not rows:
        return []
    values = {
        key: np.mean([row[f"find_label_issues {key}"] for row in rows])
        for key in ("precision", "recall", "rate")
    }
    return [
        f"cleanlab `find_label_issues`: precision {values['precision']:.3f}, recall {values['recall']:.3f}; "
        f"it takes {values['rate']:.1%} of the labels for wrong.",
        "",
    ]


def _suggestions(mine: list[dict[str, Any]]) -> list[str]:
    by_method: dict[str, list[float]] = defaultdict(list)
    for cell in mine:
        by_method[cell["method"]].append(cell["suggestion_accuracy"])
    best = sorted(by_method.items(), key=lambda item: -np.mean(item[1]))
    return [
        "Suggested class right, among wrong labels: "
        + ", ".join(f"{name} {np.mean(values):.3f}" for name, values in best)
        + ".",
        "",
    ]


def _verdict(stored: dict[str, Any]) -> list[str]:
    lines = ["## Where Co-teaching is no better than a plain baseline", ""]
    for table in tables_of(stored):
        scores = scores_by_method(table, stored)
        if "coteaching" not in scores or "cross_entropy" not in scores:
            continue
        yardsticks = {
            name: _mean(scores[name], "auroc")
            for name in ("cross_entropy", "three plain networks")
            if name in scores
        }
        best, value = max(yardsticks.items(), key=lambda item: item[1])
        gain = _mean(scores["coteaching"], "auroc") - value
        word = "better" if gain > 0.005 else "no better" if gain > -0.005 else "worse"
        lines.append(
            f"- {table.problem}, {table.rows:,} rows, `{table.network}`: {word} than the best plain yardstick "
            f"({best}) by {gain:+.3f} AUROC."
        )
    return lines


def _mean(rows: list[dict[str, float]], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def _spread(values: list[float]) -> str:
    half = (max(values) - min(values)) / 2
    return f"{np.mean(values):.3f}" + (f" ± {half:.3f}" if len(values) > 1 else "")


if __name__ == "__main__":
    main()
