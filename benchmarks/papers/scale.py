"""``--scale smoke|cpu|gpu`` and ``--device``, which every module of this package takes."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.result_files import result_file
from engines.contract import EngineInputError
from engines.shared.device import resolve_device

SCALES = ("smoke", "cpu", "gpu")
SMOKE = Path(tempfile.gettempdir()) / "label-auditor-smoke"
"""Where a smoke run writes, each time anew: its figures are none to keep."""


def parse_scaled(
    parser: argparse.ArgumentParser,
    scales: Mapping[str, Mapping[str, Any]],
    arguments: Sequence[str] | None = None,
) -> argparse.Namespace:
    """Parse with the defaults of the chosen scale; an option that is given stays as it is given.

    Args:
        parser: with all options of the module but ``--scale`` and ``--device``; the default of ``--out`` is the
            file of the kept results, beside which those of a card, and of the paper's budget, have their own.
        scales: for each of ``SCALES`` the defaults that differ from the parser's own; ``smoke`` ends in about a
            minute and shows that the module works, ``cpu`` made the kept results, ``gpu`` is nearest to the paper's
            budget.
        arguments: the command line; None: the process's own.

    Returns:
        The options; ``device`` is one that is there, and named as torch names it.
    """
    parser.add_argument(
        "--scale",
        choices=SCALES,
        default="cpu",
        help="smoke: does it run (a minute); cpu: the kept results; gpu: nearest to the paper's budget",
    )
    # Errors and --help wait for the second reading, which knows the defaults.
    chosen, _ = argparse.ArgumentParser(add_help=False, parents=[_scale_alone()]).parse_known_args(arguments)
    parser.add_argument("--device", default="auto" if chosen.scale == "gpu" else "cpu")
    kept: Path = parser.get_default("out")
    parser.set_defaults(**{**scales[chosen.scale], "out": None})
    found = parser.parse_args(arguments)
    try:
        found.device = str(resolve_device(found.device))
    except EngineInputError as error:
        parser.error(str(error))
    if found.out is None and chosen.scale == "smoke":
        SMOKE.mkdir(exist_ok=True)
        found.out = SMOKE / kept.name
        found.out.unlink(missing_ok=True)
    elif found.out is None:
        found.out = result_file(kept, "cuda" if chosen.scale == "gpu" else found.device)
    return found


def _scale_alone() -> argparse.ArgumentParser:
    alone = argparse.ArgumentParser(add_help=False)
    alone.add_argument("--scale", choices=SCALES, default="cpu")
    return alone
