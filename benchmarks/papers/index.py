"""Every table and figure of the four papers: what was run again, how far off it was, and what the rest needs.

    python -m benchmarks.papers.index        (``make papers``)

What was measured is read from the result files, never written here; ``results/papers.json`` keeps the list and
``results/papers.md`` is its page. Status of a row: ``in small`` (run by the commands beside it, at a smaller scale
than the paper's) or ``not here`` (with why). No row was run at the paper's own scale.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.papers import l2b_family, masks
from benchmarks.papers.choicenet_tables import PAPER as CHOICENET_PAPER
from benchmarks.papers.choicenet_tables import PAPER_CIFAR as CHOICENET_CIFAR
from benchmarks.papers.choicenet_tables import PAPER_COMPONENTS
from benchmarks.papers.s2e_spaces import PAPER as S2E_PAPER
from benchmarks.papers.s2e_spaces import RIVALS as S2E_SPACES
from benchmarks.papers.s2e_spaces import TITLES as S2E_TITLES
from benchmarks.papers.umn_tables import PAPER_DETECTION, PAPER_ERROR, RATES

L2B_PAPER = {"α = 0": 47.1, "cross-entropy": 49.2, "β = 0": 57.5, "α + β = 1": 59.1, "L2B": 67.3}
"""Test accuracy in %, the ablation on CIFAR-100 with 40 % symmetric noise."""
RESULTS = Path(__file__).resolve().parent.parent / "results"
PAGE_HEAD = """# The four papers, table by table

Written by `make papers` from the result files. *In small*: run here on a smaller budget than the paper's, with our
figure minus the paper's where the two can be compared. *Not here*: why. Nothing was run at a paper's own scale.
The commands made what is shown, and go on where they were stopped. With `--scale smoke` each shows that it runs,
with `--scale gpu` it has a budget as near to the paper's as the module has: L2B's ablation, S2E's rules and the
curves stay on MNIST and a small network, L2B's family on CIFAR-10, masks on a U-Net with our kinds of noise.

"""


@dataclass(frozen=True)
class Item:
    """One table or figure.

    Attributes:
        paper: UMN, L2B, Co-teaching + S2E or ChoiceNet.
        name: what the paper calls it, or what it shows where the number is not known to us.
        shows: what it reports.
        needs: what keeps it from the paper's scale, or from being run at all.
        commands: the modules of this package that run it again, with their options; empty if none does.
        measured: reads our figures from the result files; None if nothing was run.
    """

    paper: str
    name: str
    shows: str
    needs: str
    commands: tuple[str, ...] = ()
    measured: Callable[[], str] | None = None


def _cells(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def _umn_cells(method: str, label_loss: str = "linear") -> list[Mapping[str, Any]]:
    return [
        cell
        for cell in _cells("umn_tables")["cells"]
        if cell["method"] == method and cell["settings"]["label_loss"] == label_loss
    ]


def _l2b_masks() -> str:
    rows = _cells("masks")["rows"]
    parts = []
    for name, _, here in masks.levels(rows):
        plain, ours = (
            mean(row["dice"] for row in here if row["run"] == run)
            for run in (masks.SCRATCH, "L2B, 6 trusted masks")
        )
        noisy = mean(row["label_dice"] for row in here)
        parts.append(f"{name} whose noisy masks have Dice {noisy:.2f} {ours - plain:+.3f}")
    return (
        f"Dice of L2B with trusted masks over plain: {', '.join(parts)} "
        "(paper: +.18, +.07 and +.02 at .41, .62 and .80)"
    )


def _between(values: Sequence[float], form: str) -> str:
    return f"{min(values):{form}} to {max(values):{form}}"


def _umn_error() -> str:
    parts = []
    for method, published in PAPER_ERROR.items():
        cells = _umn_cells(method)
        if cells:
            off = [
                mean(cell["test_error"] for cell in cells if cell["corruption"] == rate) - paper
                for rate, paper in zip(RATES, published, strict=True)
            ]
            parts.append(f"{method} {_between(off, '+.1f')}")
    return f"test error on MNIST, points over the paper's: {', '.join(parts)}"


def _umn_detection() -> str:
    parts = []
    for label_loss in ("linear", "log"):
        cells = _umn_cells("umn", label_loss)
        found = [
            mean(cell["detection"]["gmm"]["f1"] for cell in cells if cell["corruption"] == rate)
            for rate in RATES
        ]
        parts.append(
            f"{_between(found, '.2f')} with the {'printed' if label_loss == 'linear' else 'logarithmic'} loss"
        )
    return f"F1 by the mixture rule {', '.join(parts)} (paper {_between(PAPER_DETECTION['f1'], '.2f')})"


def _l2b_ablation() -> str:
    runs = {(run["noise"], run["run"]): run["heldout_accuracy"] for run in _cells("l2b_ablation")["runs"]}
    names = {
        "cross-entropy": "cross-entropy",
        "alpha0": "α = 0",
        "l2rw": "β = 0",
        "alpha+beta=1": "α + β = 1",
        "l2b": "L2B",
    }
    parts = [f"{shown} {100 * runs['pair', name]:.1f}" for name, shown in names.items()]
    return (
        f"accuracy on MNIST, pair flips of 45 %, one seed: {', '.join(parts)}; paper, CIFAR-100 at 40 %: "
        f"{', '.join(f'{name} {value}' for name, value in L2B_PAPER.items())}"
    )


def _s2e_off(problem: str = "mnist") -> str:
    cells = _cells("s2e_spaces")[problem]["cells"]
    run = {key.split(" | ")[0] for key in cells}
    off = []
    for noise in (noise for noise in S2E_PAPER[problem] if noise in run):
        for name, paper in S2E_PAPER[problem][noise].items():
            found = [
                cell["test_best_over_epochs"]
                for key, cell in cells.items()
                if key.startswith(f"{noise} | {S2E_SPACES[name]} | random |")
            ]
            off.append(mean(found) - paper)
    noises = (
        "every space and noise"
        if run == set(S2E_PAPER[problem])
        else f"every space, {', '.join(sorted(run))}"
    )
    return f"best test accuracy on {S2E_TITLES[problem]}, points off the paper's, {noises}: {_between(off, '+.1f')}"


def _s2e_rules() -> str:
    found: dict[str, list[float]] = {}
    for key, cell in _cells("s2e_spaces")["mnist"]["cells"].items():
        noise, space, rule, _ = key.split(" | ")
        if noise == "pair 45 %" and space == "paper":
            found.setdefault(rule, []).append(cell["test_best_over_epochs"])
    best = sorted(found, key=lambda rule: -mean(found[rule]))
    return f"pair flips of 45 % on MNIST: {', '.join(f'{rule} {mean(found[rule]):.1f}' for rule in best)}"


def _choicenet(table: str) -> dict[str, Mapping[str, Any]]:
    return {key: cell for key, cell in _cells("choicenet_tables").items() if key.split("/")[1] == table}


def _choicenet_mnist() -> str:
    cells, off, won = _choicenet("main"), [], 0
    for (noise, rate), (_, (published, _)) in CHOICENET_PAPER.items():
        plain, ours = (
            mean(cell["final"] for key, cell in cells.items() if f"/{noise}-{rate:g}/{method}/" in key)
            for method in ("ConvNet", "ChoiceNet")
        )
        off.append(ours - published)
        won += ours > plain
    return (
        f"ChoiceNet's test accuracy on MNIST, points against the paper's: {_between(off, '+.1f')}; "
        f"ahead of the same network in {won} of {len(off)} cells (paper: all)"
    )


def _choicenet_binary() -> str:
    parts = [
        f"{key.split('/')[3]} {cell['final']:.1f} (training {cell['train_accuracy']:.1f})"
        for key, cell in _choicenet("binary").items()
    ]
    return f"test accuracy {', '.join(parts)}; paper 98.1 (81.7)"


def _choicenet_cifar() -> str:
    cells, parts = _choicenet("cifar10"), []
    for (noise, rate), (_, published) in CHOICENET_CIFAR.items():
        plain_cells, our_cells = (
            [cell["final"] for key, cell in cells.items() if f"/{noise}-{rate:g}/{method}/" in key]
            for method in ("CNN-9", "ChoiceNet")
        )
        if not plain_cells or not our_cells:  # its run is not over
            continue
        plain, ours = mean(plain_cells), mean(our_cells)
        parts.append(
            f"{noise} {100 * rate:g} % {ours:.1f}, {ours - published:+.1f} (CNN-9 alone {plain:.1f})"
        )
    return f"test accuracy, points against the paper's: {', '.join(parts)}" if parts else ""


def _choicenet_ablation() -> str:
    cells = _choicenet("ablation")
    off = [
        mean(cell["final"] for key, cell in cells.items() if key.split("/")[3] == f"K = {components}")
        - published
        for components, published in PAPER_COMPONENTS.items()
    ]
    return f"test accuracy by K, points against the paper's: {_between(off, '+.1f')}; as flat in K as there"


def _choicenet_regression() -> str:
    rows: dict[tuple[str, str], float] = {}
    for key, cell in _choicenet("regression").items():
        _, _, data, method, _ = key.split("/")
        rows[data, method] = cell["rmse"]
    won = [
        data
        for data in sorted({data for data, _ in rows})
        if rows[data, "choicenet"]
        <= min(value for (other, name), value in rows.items() if other == data and name != "mdn")
    ]
    return (
        "lowest RMSE of ChoiceNet, robust, leaky robust, L1 and L2 losses in "
        f"{len(won)} of {len({data for data, _ in rows})} cells ({', '.join(won)})"
    )


def _numbers(table: str) -> dict[tuple[str, str], float]:
    """(rate, method) -> mean RMSE of ``choicenet_numbers``."""
    found: dict[tuple[str, str], list[float]] = {}
    for key, cell in _cells("choicenet_numbers")["cells"].items():
        name, rate, method, *_ = key.split(" | ")
        if name == table:
            found.setdefault((rate, method), []).append(cell["rmse"])
    return {key: mean(values) for key, values in found.items()}


def _choicenet_housing() -> str:
    rows = _numbers("housing")
    parts = [
        f"{method} {rows['0', method]:.2f} and {rows['0.4', method]:.2f}"
        for method in dict.fromkeys(method for _, method in rows)
    ]
    return (
        "RMSE on scikit-learn's diabetes set in deviations of the target, without outliers and with 40 %: "
        f"{', '.join(parts)}; 442 rows that no method here predicts well"
    )


def _choicenet_figures() -> str:
    rows = _numbers("flipped")
    parts = [
        f"{method} {_between([value for (_, name), value in rows.items() if name == method], '.2f')}"
        for method in dict.fromkeys(method for _, method in rows)
    ]
    return (
        f"RMSE with 10 to 40 % of the rows mirrored: {', '.join(parts)}; mean ρ of right and wrong labels at the "
        f"end, MNIST: {_at_the_end('choicenet', 'rho')}"
    )


def _at_the_end(engine: str, signal: str) -> str:
    parts = []
    for key, cell in _cells("paper_curves").items():
        noise, method, *_ = key.split(" | ")
        if method == engine:
            right, wrong = (cell["curves"][f"{signal}, {name} labels"][-1] for name in ("right", "wrong"))
            parts.append(f"{noise} {right:.2f} and {wrong:.2f}")
    return ", ".join(parts)


def _umn_curves() -> str:
    return f"mean ε of right and of wrong labels at the end, MNIST: {_at_the_end('umn', 'epsilon')}"


def _l2b_curves() -> str:
    return f"mean α of right and of wrong labels at the end, MNIST: {_at_the_end('l2b', 'alpha')}"


def _s2e_curves() -> str:
    parts = []
    for key, cell in _cells("paper_curves").items():
        noise, method, *_ = key.split(" | ")
        if "label_precision" in cell["curves"]:
            last = {name: values[-1] for name, values in cell["curves"].items()}
            parts.append(
                f"{noise}, {method} {100 * last['label_precision']:.1f} at R {last['keep_rate']:.2f} "
                f"(test accuracy {100 * last['heldout_accuracy']:.1f})"
            )
    return (
        f"label precision in % at the end, MNIST: {'; '.join(parts)}; drawn in docs/images/paper-curves.png"
    )


def _l2b_plain() -> str:
    parts = []
    for problem in ("cifar10-sym20", "cifar10-sym40"):
        found = {
            name: [
                cell["prediction_accuracy"]
                for cell in l2b_family.cells().values()
                if (cell["problem"], cell["method"], cell["network"]) == (problem, name, "conv3")
            ]
            for name in ("plain", "l2b")
        }
        parts.append(f"{problem} {100 * mean(found['plain']):.1f} and {100 * mean(found['l2b']):.1f}")
    return (
        "accuracy of predictions on 10,000 CIFAR-10 images, three convolutions, 10 epochs, cross-entropy and L2B: "
        f"{', '.join(parts)}"
    )


def _l2b_family() -> str:
    parts = []
    for setting, methods in l2b_family.means(l2b_family.cells()).items():
        names = [name for name in l2b_family.METHODS if name in methods]
        best = max(names, key=lambda name: methods[name]["auroc"])
        bases = [name for name in names if name.endswith(("divide_mix", "unicon", "c2d"))]
        first = max(bases, key=lambda name: methods[name]["auroc"])
        titles = l2b_family.METHODS
        problem, rows, *_ = setting.split("|")
        parts.append(
            f"{problem} ({int(rows):,} images) {titles[first]} {methods[first]['auroc']:.3f}"
            + ("" if first == best else f" ({titles[best]} {methods[best]['auroc']:.3f})")
        )
    return f"best AUROC of the six for wrong labels (in brackets who is better): {', '.join(parts)}"


_FACES = "the face images, which cannot be had any more"
_GPU = "a GPU for days"
ITEMS: tuple[Item, ...] = (
    Item(
        "UMN",
        "Table 1",
        "test error with 100 noisy labels",
        "350 epochs on a GPU; SVHN cannot be had here; CIFAR-10 and the ResNet-101 column need a GPU; "
        "MentorNet beyond its self-paced form, which is not built; Reweight, which is not run on these labels",
        (
            "umn_tables --methods supervised umn self_paced",
            "umn_tables --methods m_vae mean_teacher --seeds 0 1 2",
        ),
        _umn_error,
    ),
    Item(
        "UMN",
        "Table 2",
        "corrupt labels found",
        "350 epochs on a GPU, and a logarithmic label term: no scale of the printed one finds wrong labels "
        "(umn_tables.md says why); which rule the paper used is not printed",
        (
            "umn_tables --methods umn",
            """umn_tables --methods umn --seeds 0 1 2 --set 'label_loss="log"' lambda_y=3""",
        ),
        _umn_detection,
    ),
    Item(
        "UMN",
        "Figures 3 to 5",
        "ε over training, its histogram, error over epochs",
        "350 epochs on a GPU",
        ("curves",),
        _umn_curves,
    ),
    Item(
        "L2B",
        "Table 1 and the ISIC columns",
        "CIFAR-10, CIFAR-100 and ISIC 2019 under symmetric noise",
        f"{_GPU}; ISIC 2019's images",
        ("l2b_family --problems cifar10-sym20 cifar10-sym40 --methods plain l2b --seeds 0",),
        _l2b_plain,
    ),
    Item(
        "L2B",
        "Tables 2, 3 and 7",
        "with DivideMix, UniCon and C2D",
        f"PreActResNet-18 on CIFAR, 300 epochs: {_GPU}",
        (
            "l2b_family --problems mnist-sym20 mnist-sym50 mnist-pair45 mnist-asym40",
            "l2b_family --problems cifar10-asym40 --seeds 0",
        ),
        _l2b_family,
    ),
    Item(
        "L2B",
        "Table 4",
        "Clothing1M",
        "its images, on request from their owners",
    ),
    Item(
        "L2B",
        "Tables 5 and 6",
        "segmentation under mask noise",
        "PROMISE12, which cannot be had here; UNet++ at its size, five repetitions",
        ("masks",),
        _l2b_masks,
    ),
    Item(
        "L2B", "the ablation of α and β", "CIFAR-100 at 20 and 40 %", _GPU, ("l2b_ablation",), _l2b_ablation
    ),
    Item(
        "L2B",
        "Table 8 and Figures 1 to 5",
        "comparisons and curves over training",
        f"{_GPU}; M-correction, PENCIL, MLNT, MW-Net and others, which are not built",
        ("curves",),
        _l2b_curves,
    ),
    Item("Co-teaching + S2E", "Table 2", "face recognition", _FACES),
    Item(
        "Co-teaching + S2E",
        "Table 3, MNIST",
        "spaces of R(t), searched at random",
        f"200 epochs, 60,000 images, 50 draws: {_GPU}",
        ("s2e_spaces",),
        _s2e_off,
    ),
    Item(
        "Co-teaching + S2E",
        "Table 3, CIFAR-10 and CIFAR-100",
        "the same spaces",
        "the symmetric noises (each some minutes of a CPU) and more seeds, not run here; for the paper's budget, "
        f"and for CIFAR-100, {_GPU}",
        ("s2e_spaces --problem cifar10 --noises 'pair 45 %' --rule-noises",),
        lambda: _s2e_off("cifar10"),
    ),
    Item(
        "Co-teaching + S2E",
        "Table 7 and Figure 10",
        "search rules and weight sharing, on CIFAR-10 there",
        f"{_GPU}; RMSProp, which is not built",
        ("s2e_spaces",),
        _s2e_rules,
    ),
    Item(
        "Co-teaching + S2E",
        "Figures 1, 3, 5, 6 and 9",
        "accuracy, label precision and searched R(t) over epochs",
        _GPU,
        ("curves",),
        _s2e_curves,
    ),
    Item(
        "ChoiceNet",
        "MNIST",
        "nine cells of permuted, shuffled and biased labels",
        "the paper's residual network and 41 epochs: a GPU (--preset paper)",
        ("choicenet_tables",),
        _choicenet_mnist,
    ),
    Item(
        "ChoiceNet",
        "zeros against ones",
        "40 % of the zeros called one",
        "as above",
        ("choicenet_tables",),
        _choicenet_binary,
    ),
    Item(
        "ChoiceNet",
        "ablation",
        "K and τ, shuffle of 90 %",
        "as above",
        ("choicenet_tables",),
        _choicenet_ablation,
    ),
    Item(
        "ChoiceNet",
        "regression with outliers",
        "three functions, up to 60 % outliers",
        "longer training and more seeds",
        ("choicenet_tables",),
        _choicenet_regression,
    ),
    Item(
        "ChoiceNet",
        "Table 1",
        "Boston housing",
        "the set itself, which scikit-learn withdrew",
        ("choicenet_numbers",),
        _choicenet_housing,
    ),
    Item(
        "ChoiceNet",
        "Table 2",
        "CIFAR-10 with CNN-9; 70.3, 85.2 and 91.0 % under pair flips of 45 %, symmetric noise of 50 and 20 %",
        f"CNN-9 of 128 channels for 200 epochs of 50,000 images: {_GPU}",
        ("choicenet_tables",),
        _choicenet_cifar,
    ),
    Item(
        "ChoiceNet",
        "Table 3",
        "WideResNet-22-4 on five sets",
        f"{_GPU}; its CIFAR-100 column cannot be true as printed",
    ),
    Item(
        "ChoiceNet",
        "Figures 4 and 5",
        "flipped functions; correlations over training",
        "30,001 steps and more seeds",
        ("choicenet_numbers", "curves"),
        _choicenet_figures,
    ),
    Item(
        "ChoiceNet",
        "behaviour cloning and text",
        "MuJoCo; a text set",
        "MuJoCo and the texts: outside an auditor of images",
    ),
)


def main() -> None:
    """Read the results, keep the list, write the page and print it."""
    rows = [
        {
            "paper": item.paper,
            "item": item.name,
            "shows": item.shows,
            "status": "in small" if measured else "not here",
            "measured": measured or f"needs {item.needs}",
            "commands": [f"python -m benchmarks.papers.{command}" for command in item.commands],
            "needs": item.needs,
        }
        for item in ITEMS
        for measured in (item.measured() if item.measured else "",)
    ]
    (RESULTS / "papers.json").write_text(
        json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (RESULTS / "papers.md").write_text(page(rows), encoding="utf-8")
    for row in rows:
        print(f"{row['paper']:<18} {row['item']:<32} {row['status']:<9} {row['measured']}")


def page(rows: Sequence[Mapping[str, Any]]) -> str:
    """``rows`` as one table a paper."""
    text = PAGE_HEAD
    for paper in dict.fromkeys(row["paper"] for row in rows):
        text += f"## {paper}\n\n| what | shows | status | ours | the rest needs | commands |\n"
        text += "| --- | --- | --- | --- | --- | --- |\n"
        for row in rows:
            if row["paper"] == paper:
                commands = "; ".join(f"`{command}`" for command in row["commands"])
                cells = (row["item"], row["shows"], row["status"], row["measured"], row["needs"], commands)
                text += f"| {' | '.join(cells)} |\n"
        text += "\n"
    return text.rstrip() + "\n"


if __name__ == "__main__":
    main()
