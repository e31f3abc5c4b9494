"""What the commands do with a dataset of masks: the same names, another thing to look at."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.bridges import engine_bridge
from auditor.cli import output
from auditor.cli.options import echo, refuse_beside, writing
from auditor.masks import auditing, exporting, listing

OF_CLASSES = (
    *("budget", "map_method", "backbone", "weights", "backbone_size", "views", "finetune", "own_features"),
    *("features_column", "pred_probs", "forget_pred_probs", "alone"),
)
"""Options of ``audit`` that mean nothing for masks."""


def plan(
    name: str,
    engines: Sequence[str] | None,
    *,
    preset: str,
    device: str,
    seed: int,
    settings: Sequence[str],
    on: str | None,
) -> int:
    """Plan an audit of masks; returns its id."""
    refuse_beside("a dataset of masks", OF_CLASSES, "leave it out")
    options = engine_bridge.options_of(settings)
    return auditing.plan_audit(name, engines, preset=preset, device=device, seed=seed, options=options, on=on)


def audit_summary(audit_id: int, *, as_json: bool) -> None:
    """What an audit found, in a few lines."""
    found = output.audit_engines(audit_id, as_json=as_json)
    if found is None:
        return
    audit, dataset = found
    echo(listing.statement(audit, dataset))
    echo(f"Next: auditor suspects {shlex.quote(dataset.name)}, or auditor app")


def suspects(
    name: str, *, top: int, max_fdr: float | None, audit_id: int | None, split: str | None, as_json: bool
) -> None:
    """The masks of least trust, or those that a promise carries."""
    dataset, audit = listing.newest(name, audit_id)
    listed = listing.suspects(dataset, audit, top=top, max_fdr=max_fdr, split=split)
    output.listed(listed, _line, as_json=as_json)


def _line(row: Mapping[str, Any]) -> str:
    change = "no region is doubtful"
    if row["largest_change_to"] is not None:
        change = f"{100 * row['changed_share']:.1f} % doubtful, most of it rather {row['largest_change_to']}"
    decided = f"  [{row['decision']}]" if row["decision"] else ""
    weakest = f"least sure of {row['weakest_class']}"
    return f"{row['sample_id']:>7}  {row['trust_score']:.3f}  {row['filepath']}: {change}; {weakest}{decided}"


def export(name: str, out: Path, *, policy: str, audit_id: int | None, as_json: bool) -> None:
    """Write the cleaned masks into a new folder."""
    if policy != "reviewed" or out.suffix:
        refuse_beside("a dataset of masks", ("policy", "max_fdr"), "only what people decided changes a mask")
    refuse_beside("a dataset of masks", ("links", "force", "max_fdr"), "name a new folder")
    with writing(out), output.step_progress() as progress:
        done = exporting.export(name, out, audit_id=audit_id, progress=progress)
    output.done(f"{out}: {done.sentence}", {"out": str(out), **dataclasses.asdict(done)}, as_json=as_json)
