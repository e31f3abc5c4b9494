"""What the commands do with a dataset of numbers: the same names, another thing to look at."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.backbones.features import FeatureSource
from auditor.bridges import engine_bridge
from auditor.cli import output
from auditor.cli.options import refuse_beside, writing
from auditor.ground.numbers import figure
from auditor.numbers import auditing, exporting, listing

OF_CLASSES = ("budget", "map_method", "finetune", "pred_probs", "forget_pred_probs", "alone")
"""Options of ``audit`` that mean nothing for numbers."""


def plan(
    name: str,
    engines: Sequence[str] | None,
    *,
    preset: str,
    device: str,
    seed: int,
    settings: Sequence[str],
    features: FeatureSource | None,
    on: str | None,
) -> int:
    """Plan an audit of numbers; returns its id."""
    refuse_beside("a dataset of numbers", OF_CLASSES, "leave it out")
    return auditing.plan_audit(
        name,
        engines,
        preset=preset,
        device=device,
        seed=seed,
        options=engine_bridge.options_of(settings),
        features=features,
        on=on,
    )


def suspects(
    name: str, *, top: int, max_fdr: float | None, audit_id: int | None, split: str | None, as_json: bool
) -> None:
    """The numbers of least trust, or those that a promise carries."""
    dataset, audit = listing.newest(name, audit_id)
    listed = listing.suspects(dataset, audit, top=top, max_fdr=max_fdr, split=split)
    output.listed(listed, _line, as_json=as_json)


def _line(row: Mapping[str, Any]) -> str:
    between = f"{figure(row['suggested_low'])} to {figure(row['suggested_high'])}"
    decided = f"  [{row['decision']}]" if row["decision"] else ""
    return (
        f"{row['rank']:>6}  {row['filepath']}  {figure(row['given'])} -> {figure(row['suggested'])} ({between})  "
        f"trust {row['trust_score']:.3f}{decided}"
    )


def export(name: str, out: Path, *, policy: str, audit_id: int | None, force: bool, as_json: bool) -> None:
    """Write the cleaned numbers."""
    if policy != "reviewed":
        refuse_beside("a dataset of numbers", ("policy",), "only what people decided changes a number")
    unused = ("links", "as_source", "max_fdr")
    refuse_beside("a dataset of numbers", unused, "only what people decided changes a number, in a table")
    with writing(out), output.step_progress() as progress:
        done = exporting.export(name, out, audit_id=audit_id, force=force, progress=progress)
    output.done(f"{out}: {done.sentence}", {"out": str(out), **dataclasses.asdict(done)}, as_json=as_json)
