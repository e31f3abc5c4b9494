"""The page, the plot and the short tables of ``benchmarks.backbones``, from its figures alone.

python -m benchmarks.backbones_page
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.backbones import ENGINES, EVERYWHERE, PROBLEMS, RESULTS, Row, load, runs

PICTURE = RESULTS.parents[2] / "docs" / "images" / "directions.svg"
NAMES = {
    "noise_model": "noise model",
    "cross_entropy": "plain",
    "coteaching": "Co-teaching",
    "umn": "UMN",
    "l2b": "L2B",
    "choicenet": "ChoiceNet",
    "neighbours": "neighbours",
}
TIE = 0.003
"""Differences of AUROC up to this one count as equal."""
NETWORK = "lite0"
"""Of the tables of one network."""


class Group(NamedTuple):
    """Runs that differ in their seed alone."""

    problem: str
    rows: int
    network: str


class Found(NamedTuple):
    """Means over the seeds."""

    auroc: float
    ap: float

    def __str__(self) -> str:
        return f"{_short(self.auroc)} / {_short(self.ap)}"


class Figures:
    """The last rows of all runs, by group, method and seed; of whole seeds alone."""

    def __init__(self, stored: Mapping[str, Row]) -> None:
        self.stored = stored
        self.commits = sorted({row["commit"] for row in stored.values()})
        self.devices = sorted({row["device"] for row in stored.values()})
        self.rows: dict[Group, dict[str, dict[int, Row]]] = {}
        for row in stored.values():
            methods = self.rows.setdefault(Group(row["problem"], row["rows"], row["network"]), {})
            methods.setdefault(row["method"], {})[row["seed"]] = row
        for group, methods in list(self.rows.items()):
            whole = set.intersection(*(set(methods.get(name, {})) for name in EVERYWHERE))
            self.rows[group] = {
                name: {seed: row for seed, row in sorted(by_seed.items()) if seed in whole}
                for name, by_seed in methods.items()
            }
            if not whole:
                del self.rows[group]

    @property
    def groups(self) -> list[Group]:
        """In the order of the problems, few rows first."""
        order = list(PROBLEMS)
        networks = ("lite0", "lite2", "both")
        return sorted(
            self.rows, key=lambda one: (order.index(one.problem), one.rows, networks.index(one.network))
        )

    def seeds(self, group: Group) -> list[int]:
        """Those that are whole."""
        return list(self.rows[group]["consensus"])

    def mean(self, group: Group, method: str, name: str | None = None) -> Found:
        """Of one score of a method, by default the one that has its name."""
        scores = [row["scores"][name or method] for row in self.rows[group][method].values()]
        return Found(*(float(np.mean([one[key] for one in scores])) for key in ("auroc", "ap")))

    def best(self, group: Group, method: str) -> tuple[str, Found]:
        """The score of a method with the highest AUROC, and its name."""
        names = next(iter(self.rows[group][method].values()))["scores"]
        return max(((name, self.mean(group, method, name)) for name in names), key=lambda one: one[1].auroc)

    def best_peer(self, group: Group) -> tuple[str, Found]:
        """The best of cleanlab (every strength and score), Datalab and SimiFeat."""
        methods = ["cleanlab", "datalab", "simifeat"]
        return max((self.best(group, name) for name in methods), key=lambda one: one[1].auroc)

    def best_engine(self, group: Group) -> tuple[str, Found]:
        """The engine whose own trust finds most."""
        return max(((name, self.mean(group, name)) for name in ENGINES), key=lambda one: one[1].auroc)


def write(stored: Mapping[str, Row], out: Path) -> None:
    """Write the page, and the plot where its runs are there, beside the figures."""
    figures = Figures(stored)
    if not figures.rows:
        return
    curves = {key: row for key, row in stored.items() if row["method"] == "dimensions"}
    if curves:
        draw(curves, PICTURE)
    out.with_suffix(".md").write_text(page(figures, curves), encoding="utf-8")


HEAD = """
# What an audit finds on real features

EfficientNet-lite0 and lite2 with ImageNet weights, which come with the installation, look at every picture once
(160 px for CIFAR-10, 96 px for MNIST, 224 px for photos). Labels: those that people gave to CIFAR-10 (CIFAR-10N),
and planted ones; 341 photos of clothes with labels moved to a similar class. Engines run as under `auditor audit
--preset quick`; *consensus* is the pool of all of them, as the product makes it. Nothing is verified. Known truth
measures alone; only cleanlab's strength and score are chosen by it.

Without options an audit on a CPU looks through both networks (up to 10,000 pictures), and trains longer where ten
minutes allow it.

AUROC is the chance that a wrong label is ranked before a right one: .5 is a coin, 1 is perfect. AP, average
precision, is the share of wrong labels in the list down to a wrong one, averaged over them. Cells are AUROC / AP,
means over the seeds.

Commit {commits}. {devices}, one thread, machine shared with other work. `python -m benchmarks.backbones` makes
every row again.
"""


def page(figures: Figures, curves: Mapping[str, Row]) -> str:
    """The whole page."""
    commits = ", ".join(f"`{one}`" for one in figures.commits)
    parts = [
        HEAD.format(commits=commits, devices=", ".join(figures.devices)),
        _reached(figures),
        _all_methods(figures),
        _through_t(figures),
        _curve(curves),
        _guesses(figures),
        _costs(figures, curves),
        _engines_alone(figures),
        _missing(figures),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _reached(figures: Figures) -> str:
    wanted = [one for one in figures.groups if one.network == NETWORK]
    ahead = within = 0
    behind: dict[str, list[float]] = {name: [] for name in ENGINES}
    lines = _table("labels", "rows", "best peer", "consensus", "ahead of it", "best engine", "ahead of it")
    for group in wanted:
        (peer, theirs), (engine, own) = figures.best_peer(group), figures.best_engine(group)
        ours = figures.mean(group, "consensus")
        lines.append(
            _line(
                PROBLEMS[group.problem].title,
                f"{group.rows:,}",
                f"{peer.partition(',')[0].replace('_', ' ')} {theirs}",
                f"**{ours}**",
                f"{_ahead(ours, theirs):+.3f}",
                f"{NAMES[engine]} {own}",
                f"{_ahead(ours, own):+.3f}",
            )
        )
        ahead += ours.auroc > theirs.auroc
        within += ours.auroc >= own.auroc - TIE
        for name in ENGINES:
            if (lack := theirs.auroc - figures.mean(group, name).auroc) >= 0:
                behind[name].append(lack)
    lacks = ", ".join(
        f"{NAMES[name]} on {len(found)} (by {_short(max(found))} at most)"
        for name, found in behind.items()
        if found
    )
    told = (
        f"On lite0's features the consensus is ahead of every peer on {ahead} of {len(wanted)} sets, and at most "
        f"{_short(TIE)} behind the best single engine on {within}. By their own trust, before they are pooled, "
        f"these engines are behind the best peer: {lacks or 'none'}."
    )
    return "\n".join(["## Against peers and single engines", "", told, "", *lines])


def _all_methods(figures: Figures) -> str:
    lines = _table(
        *("labels", "rows", "network", "seeds", "cleanlab", "Datalab", "SimiFeat"),
        *(NAMES[name] for name in ENGINES),
        "consensus",
    )
    for group in figures.groups:
        lines.append(
            _line(
                *(PROBLEMS[group.problem].title, f"{group.rows:,}", group.network, len(figures.seeds(group))),
                *(figures.best(group, name)[1] for name in ("cleanlab", "datalab", "simifeat")),
                *(figures.mean(group, name) for name in ENGINES),
                f"**{figures.mean(group, 'consensus')}**",
            )
        )
    told = (
        "cleanlab: out-of-fold logistic regression on the same reduced features, the best of C = .001, .01, .1 and "
        "1 and of both scores. Datalab: as its documentation calls it, on the same. SimiFeat: votes of the ten "
        "nearest rows on all of the network's numbers. Both networks: side by side, each divided by its deviation. "
        "With the seed CIFAR-10 gives other rows (but for 25,000), the photos other planted errors."
    )
    return "\n".join(["## Every method", "", told, "", *lines])


def _through_t(figures: Figures) -> str:
    lines = _table("labels", "rows", *(NAMES[name] for name in ENGINES))
    for group in figures.groups:
        if group.network == NETWORK:
            found = (figures.mean(group, name, f"{name} through T") for name in ENGINES)
            lines.append(_line(PROBLEMS[group.problem].title, f"{group.rows:,}", *found))
    told = (
        "An engine's probabilities say which class a picture shows. The pool asks besides which classes are given "
        "for which (T), fitted by the likelihood of the given labels. Here each engine is pooled alone, on lite0's "
        "features."
    )
    return "\n".join(["## Engines through T", "", told, "", *lines])


def _curve(curves: Mapping[str, Row]) -> str:
    if not curves:
        return ""
    told = (
        "Between the network and the engines stand the principal components that explain given labels best that a "
        "noise model did not learn from. The dots are what an audit chose, without the truth. The right end is all "
        "1,280 numbers of the network."
    )
    chosen = [
        f"{PROBLEMS[row['problem']].title}: {row['dimension']} (likelihood "
        + ", ".join(f"{size}: {value:.3f}" for size, value in row["likelihood"].items())
        + ")"
        for row in curves.values()
    ]
    return "\n".join(
        [
            *("## How many directions", "", told, ""),
            "![Held-out likelihood and AUROC by the number of directions](../../docs/images/directions.svg)",
            "",
            *(f"- {one}" for one in chosen),
        ]
    )


def _guesses(figures: Figures) -> str:
    lines = _table(
        *("labels", "rows", "network", "seed", "true", "guess", "range", "noise model's", "cleanlab's"),
        *("flags, right, wrong", "suggestions right"),
    )
    off: dict[bool, list[float]] = {True: [], False: []}
    for group in figures.groups:
        problem = PROBLEMS[group.problem]
        for seed, row in figures.rows[group]["consensus"].items():
            low, point, high = row["guess"]
            truth = row["noise_rate"]
            off[problem.depends_on_class].append(point - truth)
            alone = figures.rows[group]["noise_model"][seed]["mean_doubt"]
            name, _ = figures.best(group, "cleanlab")
            joint = figures.rows[group]["cleanlab"][seed]["by_strength"][name.rpartition("= ")[2]]["guess"]
            wrong = round(truth * group.rows)
            lines.append(
                _line(
                    *(problem.title, f"{group.rows:,}", group.network, seed, _short(truth), _short(point)),
                    *(f"{_short(low)} to {_short(high)}", _short(alone), _short(joint)),
                    *(
                        f"{row['flags']:,}, {row['flags_right']:,}, {wrong:,}",
                        _short(row["suggestions_right"]),
                    ),
                )
            )
    told = []
    for kind, name in ((True, "errors that depend on the class alone"), (False, "human errors")):
        if off[kind]:
            lack = np.abs(off[kind])
            told.append(
                f"On {name} it is off by {_short(float(lack.mean()))} on average and {_short(float(lack.max()))} "
                f"at most ({len(lack)} runs, mean {np.mean(off[kind]):+.3f})."
            )
    head = (
        "The guess of the share of wrong labels by the consensus, with its range, beside the noise model's own and "
        "that of cleanlab's confident joint at the strength that ranks best. Flags: labels more likely wrong than "
        "right, how many of them are wrong, and how many wrong ones there are."
    )
    return "\n".join(["## Guess against truth", "", head, " ".join(told), "", *lines])


def _costs(figures: Figures, curves: Mapping[str, Row]) -> str:
    sizes = sorted({group.rows for group in figures.groups})

    def seconds(method: str, size: int) -> float:
        wanted = [one for one in figures.groups if one.rows == size and one.network == NETWORK]
        rows = [row for group in wanted for row in figures.rows[group][method].values()]
        return float(np.mean([row["cpu_seconds"] for row in rows])) if rows else float("nan")

    lines = _table("method", *(f"{size:,} rows" for size in sizes))
    for method in EVERYWHERE:
        lines.append(_line(NAMES.get(method, method), *(f"{seconds(method, size):.1f}" for size in sizes)))
    audit = (*ENGINES, "consensus")
    sums = (f"**{sum(seconds(one, size) for one in audit):.0f}**" for size in sizes)
    lines.append(_line("**all engines and the consensus**", *sums))
    told = "On lite0's features, once the directions are chosen."
    choosing = [row["cpu_seconds"] for row in curves.values() if row["rows"] == 3_000]
    if choosing:
        told += (
            f" Choosing them took less than {np.mean(choosing):.0f} s on 3,000 rows: so long it took together with "
            "the six plain networks of the plot."
        )
    return "\n".join(["## CPU seconds of one thread, features given", "", told, "", *lines])


def _engines_alone(figures: Figures) -> str:
    """Engines of sets whose consensus waits, each by its own trust."""
    lines = _table("labels", "rows", "network", *(NAMES[name] for name in ENGINES))
    count = len(lines)
    for run in dict.fromkeys(run for run, _ in runs()):
        rows = [figures.stored.get(f"{run.key}|{name}") for name in ENGINES]
        if f"{run.key}|consensus" not in figures.stored and all(rows):
            found = [
                Found(row["scores"][name]["auroc"], row["scores"][name]["ap"])
                for name, row in zip(ENGINES, rows, strict=True)
                if row
            ]
            lines.append(_line(PROBLEMS[run.problem].title, f"{run.rows:,}", run.network, *found))
    if len(lines) == count:
        return ""
    told = "Sets whose consensus was not made, each engine by its own trust."
    return "\n".join(["## Engines alone", "", told, "", *lines])


def _missing(figures: Figures) -> str:
    whole = {(group, seed) for group in figures.groups for seed in figures.seeds(group)}
    left: dict[tuple[int, str], int] = {}
    for run in dict.fromkeys(run for run, _ in runs()):
        if (Group(run.problem, run.rows, run.network), run.seed) not in whole:
            left[run.rows, run.network] = left.get((run.rows, run.network), 0) + 1
    if not left:
        return ""
    told = ", ".join(
        f"{count} of {rows:,} rows on {network}" for (rows, network), count in sorted(left.items())
    )
    return f"## Not run yet\n\nOf the benchmark's sets these wait: {told}. The command goes on with them."


def draw(curves: Mapping[str, Row], path: Path) -> None:
    """Held-out likelihood and AUROC by the number of directions."""
    import matplotlib as mpl  # takes seconds to import: only where something is drawn

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "backbones"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    for number, row in enumerate(curves.values()):
        found = {int(name.rpartition(" ")[2]): one["auroc"] for name, one in row["scores"].items()}
        told = {int(size): value for size, value in row["likelihood"].items()}
        for axis, line in zip(axes, (told, found), strict=True):
            axis.plot(
                list(line), list(line.values()), color=f"C{number}", label=PROBLEMS[row["problem"]].title
            )
            if row["dimension"] in line:
                axis.plot([row["dimension"]], [line[row["dimension"]]], "o", color=f"C{number}")
    titles = ("held-out log-likelihood a label", "AUROC of the plain network")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_xscale("log", base=2)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("directions")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def short_table(rows: Sequence[int], problems: Sequence[str] = tuple(PROBLEMS)) -> str:
    """Markdown for README and docs: lite0, sets of so many rows and the photos, of these problems."""
    figures = Figures(load(RESULTS))
    lines = _table(
        "labels",
        "pictures",
        "cleanlab, at its best",
        "Datalab",
        "SimiFeat",
        "noise model",
        "**consensus**",
        "result",
    )
    for group in figures.groups:
        if group.network != NETWORK or group.problem not in problems:
            continue
        if group.rows not in rows and group.problem != "photos":
            continue
        theirs = figures.best_peer(group)[1]
        ours = figures.mean(group, "consensus")
        ahead = _ahead(ours, theirs)
        lines.append(
            _line(
                *(PROBLEMS[group.problem].title, f"{group.rows:,}"),
                *(_short(figures.best(group, name)[1].auroc) for name in ("cleanlab", "datalab", "simifeat")),
                *(_short(figures.mean(group, name).auroc) for name in ("noise_model", "consensus")),
                "ties"
                if abs(ahead) <= TIE
                else f"{'leads' if ahead > 0 else 'loses'} by {_short(abs(ahead))}",
            )
        )
    return "\n".join(lines) + "\n"


def _ahead(ours: Found, theirs: Found) -> float:
    """The difference of the two AUROC as a reader sees them."""
    return round(round(ours.auroc, 3) - round(theirs.auroc, 3), 3) + 0.0


def _table(*head: str) -> list[str]:
    return [_line(*head), _line(*("---" for _ in head))]


def _line(*cells: Any) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _short(value: float) -> str:
    text = f"{value:.3f}"
    return text.removeprefix("0") if value < 1 else text


if __name__ == "__main__":
    write(load(RESULTS), RESULTS)
