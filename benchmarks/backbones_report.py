"""The page and the plot of ``benchmarks.backbones``, from its figures alone.

python -m benchmarks.backbones_report
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

from benchmarks.backbones import MAIN, PROBLEMS, RESULTS, SLOW

TITLES = {
    "aggre": "CIFAR-10N aggre, human",
    "random1": "CIFAR-10N random1, human",
    "asym40": "planted asymmetric 40 %",
    "pair45": "planted pair flips 45 %",
    "clothing": "341 photos of clothes, planted confusions",
    "pair30": "planted pair flips 30 %",
    "asym20": "planted asymmetric 20 %",
    "sym40": "planted uniform 40 %",
    "part_aggre": "the first 1,000 of CIFAR-10N aggre, human",
    "part_random1": "the first 1,000 of CIFAR-10N random1, human",
    "early_aggre": "CIFAR-10N aggre, weak features",
    "early_asym40": "planted asymmetric 40 %, weak features",
    "early_pair45": "planted pair flips 45 %, weak features",
}
ROBUST = ("coteaching", "l2b", "choicenet", "umn")
PLAIN_NAMES = {
    "cross_entropy": "plain network",
    "coteaching": "Co-teaching + S2E",
    "l2b": "L2B",
    "choicenet": "ChoiceNet",
    "umn": "UMN",
    "neighbours": "neighbours",
    "cleanlab": "cleanlab on logistic regression",
    "datalab": "Datalab with features",
    **{
        name: f"plain network from scratch, {name.rpartition('_')[2]} epochs"
        for name in SLOW
        if name.startswith("scratch")
    },
    "finetuned_cross_entropy": "plain network, fine-tuned",
    "finetuned_cross_entropy_3": "plain network, fine-tuned, 3 epochs",
    "finetuned_choicenet": "ChoiceNet, fine-tuned",
    "finetuned_coteaching": "Co-teaching + S2E, fine-tuned",
    "finetuned_l2b": "L2B, fine-tuned",
    "finetuned_umn": "UMN, fine-tuned",
}
BUDGETS = tuple(f"from scratch, budget of {minutes} min" for minutes in (2, 10, 30))
"""Rows of ``--budget``; the engines of which it is the consensus stand below it."""
OURS, SCRATCH, PEERS = "#0072B2", "#6b7280", "#D55E00"
ENGINE_ROWS = tuple(PLAIN_NAMES[name] for name in (*ROBUST, "cross_entropy", "neighbours"))
MARKS = {
    "consensus": ("*", OURS),
    "chosen by 40 looks": ("*", "#009E73"),
    **{name: (marker, OURS) for name, marker in zip(ENGINE_ROWS, "os^DvX", strict=True)},
    **{PLAIN_NAMES[name]: ("P", SCRATCH) for name in SLOW if name.startswith("scratch")},
    **dict.fromkeys(BUDGETS, ("*", SCRATCH)),
    **{PLAIN_NAMES[name]: ("P", "#CC79A7") for name in SLOW if name.startswith("finetuned")},
    "cleanlab: self-confidence": ("o", PEERS),
    "cleanlab: normalized margin": ("s", PEERS),
    "Datalab with features": ("X", PEERS),
}
"""Marker and colour of a row in the plot: blue is ours, orange are peers, grey is from scratch, pink fine-tuned."""


def main() -> None:
    """Write ``backbones.md`` and ``backbones.png`` beside the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    stored = json.loads(options.results.read_text())
    draw(stored, options.results.with_suffix(".png"))
    options.results.with_suffix(".md").write_text(page(stored), encoding="utf-8")


def page(stored: Mapping[str, Any]) -> str:
    """The whole page."""
    parts = [HEAD.format(**_about(stored))]
    for problem in PROBLEMS:
        if _rows(stored, problem.name):
            parts.append(_problem_section(stored, problem.name))
    parts += [_reach_section(stored), _rates_section(stored), _published_section(stored), TAIL]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


HEAD = """
# What a backbone changes

{rows} images of CIFAR-10 that the backbone never saw, and 341 photos of clothes. The backbone is a stand-in for
pretrained weights: `{backbone}` trained on the *clean* labels of the other 25,000 images of CIFAR-10 at {side} px
(`benchmarks.standin`). So its features suit CIFAR-10 far better than the photos, and a real pretrained network
would do otherwise on both. Every engine runs under `quick` with its `for_features()` on {views} views. Known truth
measures and never trains. Values are means over seeds, ± half the range from worst to best.

Cost is CPU time of one thread; the machine ({device}) was in use by others, so wall times would say little. The
features of {rows} images cost {embedding:.0f} CPU seconds once ({rate:.0f} views a second); rows on features are
given without it, and the plot adds it.

Fine-tuning, and the plain network from scratch with a number of epochs, are of a first stand-in (or of none)
and of older code, as is the budget of 30 minutes on the photos. All others are of the third stand-in (each was
trained anew, 85 % of the other half right) and of today's code. The three agree within .004 on human errors;
under structured errors and on the photos they differ more (Co-teaching under pair flips .827, .890 and .827,
cleanlab on the photos .694 and .712 on the last two).

Rows that begin with "weights", "chosen" and "consensus" join the witnesses by the rules that [one
model](ranking.md) took the place of; the script that joined them went with them. Rows of budgets do too; below
"of it" are the engines of which they consist. On the 25,000 images a budget of 2 minutes chooses 12 epochs of one
network and four heads on what it saw, budgets of 10 and 30 minutes 45 epochs and four heads, which take seven CPU
minutes; on the photos five trainings on the images.

`python -m benchmarks.backbones` fills the tables (resumable), `backbones_report` writes this page.

![AUROC and average precision against minutes](backbones.png)
"""

TAIL = """
## Not measured

- Real pretrained weights: none can be had where this was run.
- What the tables do not show of fine-tuning, `--budget` and longer trainings from scratch: `--methods` runs the
  cells that are missing (`finetuned_...`, `budget_30`, `scratch_45`); most take from half an hour to hours.
- A GPU.
"""


def _about(stored: Mapping[str, Any]) -> dict[str, Any]:
    cost = stored["embedding"]["cifar"]
    device = next(iter(stored["cells"].values()))["device"]
    rows, views, _ = cost["shape"]
    return {
        "rows": f"{rows:,}",
        "views": views,
        "backbone": cost["backbone"],
        "side": cost["side"],
        "embedding": cost["cpu_seconds"],
        "rate": rows * views / cost["cpu_seconds"],
        "device": device,
    }


def _rows(stored: Mapping[str, Any], problem: str) -> dict[str, list[dict[str, Any]]]:
    """By row of the table, one entry a seed: scores, seconds and what else was measured."""
    found: dict[str, list[dict[str, Any]]] = {}
    for cell in stored["cells"].values():
        # A seed that is not complete would compare methods on different labels.
        if cell["problem"] != problem or f"{problem}|{cell['seed']}" not in stored.get("consensus", {}):
            continue
        for number, (name, scores) in enumerate(cell["scores"].items()):
            entry = {
                **scores,
                "seconds": cell["cpu_seconds"] if number == 0 else None,
                "method": cell["method"],
            }
            found.setdefault(
                PLAIN_NAMES.get(cell["method"], name) if len(cell["scores"]) == 1 else name, []
            ).append(entry)
    for key, together in stored.get("consensus", {}).items():
        if key.partition("|")[0] == problem:
            for name, scores in together["rows"].items():
                found.setdefault(name, []).append({**scores, "seconds": None, "method": "consensus"})
    return found


def _problem_section(stored: Mapping[str, Any], problem: str) -> str:
    rows = _rows(stored, problem)
    cells = [cell for cell in stored["cells"].values() if cell["problem"] == problem]
    share = np.mean(list({cell["seed"]: cell["noise_rate"] for cell in cells}.values()))
    lines = [
        f"## {TITLES[problem]} ({share:.1%} of {cells[0]['rows']:,} labels are wrong)",
        "",
        "| method | AUROC | average precision | precision at as many flags as errors | seeds | CPU seconds |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, entries in sorted(rows.items(), key=lambda item: -_mean(item[1], "auroc")):
        seconds = [entry["seconds"] for entry in entries if entry["seconds"] is not None]
        shown = f"{np.mean(seconds):.0f}" if seconds else ""
        figures = " | ".join(_spread(entries, key) for key in ("auroc", "ap", "precision_at_errors"))
        bold = "**" if entries[0]["method"] == "consensus" else ""
        lines.append(f"| {bold}{name}{bold} | {figures} | {len(entries)} | {shown} |")
    return "\n".join(lines)


def _reach_section(stored: Mapping[str, Any]) -> str:
    lines = [
        "## What was to be reached",
        "",
        "Means over seeds of AUROC. *Peers* are the best of cleanlab's two scores, Datalab and our neighbours; "
        "*least robust* is the lowest of Co-teaching, L2B, ChoiceNet and UMN. The cost of adding is what the "
        "consensus of six loses in AUROC by the witness that costs most, over seeds.",
        "",
        "| labels | best peer | least robust engine | best single witness | consensus | cost of adding one |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for problem in PROBLEMS:
        rows = _rows(stored, problem.name)
        if "consensus" not in rows or any(PLAIN_NAMES[name] not in rows for name in ROBUST):
            continue
        value = {name: _mean(entries, "auroc") for name, entries in rows.items()}
        peer = _best(
            value,
            (
                "cleanlab: self-confidence",
                "cleanlab: normalized margin",
                "Datalab with features",
                "neighbours",
            ),
        )
        engines = {PLAIN_NAMES[name]: value[PLAIN_NAMES[name]] for name in ROBUST}
        least = min(engines, key=engines.__getitem__)
        single = _best(value, [PLAIN_NAMES[name] for name in (*ROBUST, "cross_entropy", "neighbours")])
        costs = [
            (cost, name)
            for key, together in stored["consensus"].items()
            if key.partition("|")[0] == problem.name
            for name, cost in together["cost of adding"].items()
        ]
        worst, who = max(costs)
        lines.append(
            f"| {TITLES[problem.name]} | {peer[0]} {_points(peer[1])} | {least} {_points(engines[least])} | "
            f"{single[0]} {_points(single[1])} | {_points(value['consensus'])} | "
            f"{PLAIN_NAMES[who]} {worst:+.4f} |"
        )
    return "\n".join(lines)


def _rates_section(stored: Mapping[str, Any]) -> str:
    lines = [
        "## The noise rate without verified rows",
        "",
        "What the consensus of six guesses (point, and range of its estimators), beside cleanlab's own estimators "
        "on the logistic regression: the confident joint, and the share that `find_label_issues` flags.",
        "",
        "| labels, seed | true | guess | range | cleanlab's joint | cleanlab flags | of which wrong |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for key, together in sorted(stored.get("consensus", {}).items()):
        problem, _, seed = key.partition("|")
        rate = together["noise_rate"]
        extra = stored["cells"].get(f"{problem}|{seed}|cleanlab", {}).get("extra", {})
        peer = [extra.get(name) for name in ("guessed rate", "flagged", "flags that are wrong labels")]
        shown = " | ".join("" if value is None else f"{value:.3f}" for value in peer)
        lines.append(
            f"| {TITLES[problem]}, {seed} | {rate['true']:.3f} | {rate['point']:.3f} | "
            f"{rate['low']:.3f} to {rate['high']:.3f} | {shown} |"
        )
    return "\n".join(lines)


def _published_section(stored: Mapping[str, Any]) -> str:
    found = stored.get("published", {})
    if not found:
        return ""
    lines = [
        "## Published probabilities of five pretrained networks as witnesses (aggre, the same rows)",
        "",
        "A weak witness must not cost more than .001. Weak are `neighbours` on the stand-in's features, and the "
        "plain network from scratch after five epochs.",
        "",
        "| networks | AUROC / AP | with neighbours | change | with a short scratch | change | guessed rate |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for names, row in sorted(found.items(), key=lambda item: item[0].count("+")):
        shown = []
        for weak in ("with neighbours", "with scratch_5"):
            joined = row.get(weak)
            change = "" if joined is None else f"{joined['auroc'] - row['alone']['auroc']:+.4f}"
            shown += ["" if joined is None else _both(joined), change]
        lines.append(
            f"| {names} | {_both(row['alone'])} | {' | '.join(shown)} | {row['noise_rate']['point']:.3f} |"
        )
    return "\n".join(lines)


def draw(stored: Mapping[str, Any], path: Path) -> None:
    """A column a problem, AUROC above average precision, each against CPU minutes with the embedding in them."""
    shown = [name for name in MAIN if _rows(stored, name)]
    figure, axes = pyplot.subplots(
        2, len(shown), figsize=(3.6 * len(shown), 7.5), squeeze=False, sharex="col"
    )
    handles: dict[str, Any] = {}
    for column, problem in enumerate(shown):
        source = "clothing" if problem == "clothing" else "cifar"
        embedding = stored["embedding"][source]["cpu_seconds"]
        rows = _rows(stored, problem)
        for line, measure in enumerate(("auroc", "ap")):
            axis = axes[line][column]
            for name, (marker, color) in MARKS.items():
                minutes = _minutes(name, rows, embedding)
                if minutes is None:
                    continue
                value = _mean(rows[name], measure)
                size = 13 if marker == "*" else 8
                (handles[name],) = axis.plot(
                    minutes, value, marker, color=color, markersize=size, linestyle=""
                )
            axis.grid(alpha=0.3)
            axis.spines[["top", "right"]].set_visible(False)
        axes[0][column].set_title(TITLES[problem].replace(", ", "\n", 1), fontsize=10)
        axes[1][column].set_xlabel("CPU minutes, embedding included")
    axes[0][0].set_ylabel("AUROC")
    axes[1][0].set_ylabel("average precision")
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=6, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.09, 1, 1))
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def _minutes(name: str, rows: Mapping[str, list[dict[str, Any]]], embedding: float) -> float | None:
    """CPU minutes of a row; the consensus costs what all its engines cost. None where a part is missing."""
    if name not in rows:
        return None
    if rows[name][0]["method"] == "consensus":
        if any(engine not in rows for engine in ENGINE_ROWS):
            return None
        each = [np.mean([one["seconds"] for one in rows[engine]]) for engine in ENGINE_ROWS]
        return float((embedding + sum(each)) / 60)
    # Scores of one run stand in several rows; its seconds are in the first.
    method = rows[name][0]["method"]
    seconds = [one["seconds"] for entries in rows.values() for one in entries if one["method"] == method]
    spent = np.mean([one for one in seconds if one is not None])
    return float((spent + (0.0 if method in SLOW else embedding)) / 60)


def _mean(entries: Iterable[Mapping[str, Any]], key: str) -> float:
    return float(np.mean([entry[key] for entry in entries]))


def _spread(entries: list[dict[str, Any]], key: str) -> str:
    values = [entry[key] for entry in entries]
    half = (max(values) - min(values)) / 2
    return f"{np.mean(values):.3f}" + (f" ± {half:.3f}" if len(values) > 1 else "")


def _best(value: Mapping[str, float], names: Iterable[str]) -> tuple[str, float]:
    return max(((name, value[name]) for name in names if name in value), key=lambda pair: pair[1])


def _points(value: float) -> str:
    return f"{value:.4f}"


def _both(scores: Mapping[str, float]) -> str:
    return f"{scores['auroc']:.4f} / {scores['ap']:.3f}"


if __name__ == "__main__":
    main()
