"""``--scale smoke|cpu|gpu``, which every module of this package takes: named defaults for its other options."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.result_files import result_file

SCALES = ("smoke", "cpu", "gpu")
SMOKE = Path(tempfile.gettempdir()) / "label-auditor-smoke"
"""Where a smoke run writes: its figures are none to keep."""


def parse_scaled(
    parser: argparse.ArgumentParser,
    scales: Mapping[str, Mapping[str, Any]],
    arguments: Sequence[str] | None = None,
) -> argparse.Namespace:
    """Parse with the defaults of the chosen scale; an option that is given stays as it is given.

    Args:
        parser: with all options of the module but ``--scale``; ``--out`` is the file of its results, beside which
            those of a GPU are kept.
        scales: for each of ``SCALES`` the defaults that differ from the parser's own; ``smoke`` ends in about a
            minute and shows that the module works, ``cpu`` made the kept results, ``gpu`` is the paper's budget.
        arguments: the command line; None: the process's own.
    """
    parser.add_argument(
        "--scale",
        choices=SCALES,
        default="cpu",
        help="smoke: does it run (a minute); cpu: the kept results; gpu: the paper's own budget",
    )
    # Errors and --help wait for the second reading, which knows the defaults.
    chosen, _ = argparse.ArgumentParser(add_help=False, parents=[_scale_alone()]).parse_known_args(arguments)
    out: Path = parser.get_default("out")
    if chosen.scale == "smoke":
        SMOKE.mkdir(exist_ok=True)
        out = SMOKE / out.name
    elif chosen.scale == "gpu":
        out = result_file(out, "cuda")
    parser.set_defaults(**{"out": out, **scales[chosen.scale]})
    return parser.parse_args(arguments)


def _scale_alone() -> argparse.ArgumentParser:
    alone = argparse.ArgumentParser(add_help=False)
    alone.add_argument("--scale", choices=SCALES, default="cpu")
    return alone
