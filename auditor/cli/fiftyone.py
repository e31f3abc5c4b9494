"""``auditor fiftyone NAME push|pull|open``: what the command does and prints."""

from __future__ import annotations

from typing import Any

import click

from auditor.cli import output
from auditor.fiftyone_bridge import Pulled, Pushed, prepare_app, pull_decisions, push_audit, serve_app
from auditor.ground.wording import plural

MOST_LISTED = 50


def run(
    name: str,
    action: str,
    *,
    to: str | None,
    audit_id: int | None,
    replace: bool,
    reviewer: str,
    port: int,
    view: str,
    browser: bool,
    as_json: bool,
) -> None:
    """Do one of the three and say what came of it.

    Raises:
        AuditorError: it cannot be done; the text has the remedy.
    """
    if action == "push":
        with output.step_progress() as progress:
            pushed = push_audit(name, to=to, audit_id=audit_id, replace=replace, progress=progress)
        print_pushed(pushed, as_json=as_json)
    elif action == "pull":
        with output.step_progress() as progress:
            pulled = pull_decisions(name, reviewer=reviewer, to=to, progress=progress)
        print_pulled(pulled, as_json=as_json)
    else:
        with output.step_progress() as progress:
            opened = prepare_app(name, to=to, audit_id=audit_id, port=port, view=view, progress=progress)
        serve_app(opened, reviewer=reviewer, browser=browser, say=click.echo)


def print_pushed(pushed: Pushed, *, as_json: bool) -> None:
    """Print what a push did."""
    if as_json:
        output.print_json(_plain(pushed))
        return
    click.echo(
        f"FiftyOne dataset {pushed.name}: {plural(pushed.num_samples, 'sample')}, {pushed.num_added:,} of them "
        f"new, {plural(len(pushed.views), 'saved view')}, {pushed.seconds:.1f} s."
    )
    if pushed.num_waiting:
        click.echo(
            f"{plural(pushed.num_waiting, 'sample', 'have')} decisions in FiftyOne; `pull` copies them here."
        )
    if pushed.num_foreign:
        click.echo(f"{plural(pushed.num_foreign, 'sample', 'were')} added in FiftyOne and not changed.")
    for note in pushed.notes:
        click.echo(note)


def print_pulled(pulled: Pulled, *, as_json: bool) -> None:
    """Print what a pull brought, and what a person should look at."""
    if as_json:
        output.print_json(_plain(pulled))
        return
    click.echo(f"From FiftyOne: {pulled.sentence}")
    for one in pulled.listed[:MOST_LISTED]:
        click.echo(f"  sample {one.sample_id} ({one.filepath}): {one.text}")
    if len(pulled.listed) > MOST_LISTED:
        click.echo(f"  ... and {len(pulled.listed) - MOST_LISTED} more; --json lists all")
    if pulled.num_foreign:
        click.echo(
            f"{plural(pulled.num_foreign, 'sample', 'exist')} in FiftyOne only; nothing was read there."
        )
    if pulled.num_missing:
        click.echo(
            f"{plural(pulled.num_missing, 'sample', 'were')} deleted in FiftyOne; tag samples exclude instead."
        )


def _plain(value: Any) -> dict[str, Any]:
    import dataclasses

    return dataclasses.asdict(value)
