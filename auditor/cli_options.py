"""What several commands of ``auditor`` share: options, the reviewer's name, a place that cannot be written."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from auditor.errors import AuditorError, cannot_write

PRESETS = click.Choice(["quick", "standard", "paper"])
PORTS = click.IntRange(1, 65535)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print machine-readable output.")
FORCE = click.option("--force", is_flag=True, help="Overwrite an existing file.")
REVIEWER = click.option("--reviewer", help="Who decided; default: your login name.")
POLICY = click.option(
    "--policy", type=click.Choice(["reviewed", "auto"]), default="reviewed", show_default=True
)
MAX_FDR = click.option("--max-fdr", type=click.FloatRange(0, 1, min_open=True, max_open=True))
AUDIT_ID = click.option(
    "--audit", "audit_id", type=int, metavar="ID", help="Another audit than the newest finished one."
)


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Show a place that cannot be written, or a full disk, as one line."""
    try:
        yield
    except OSError as error:
        raise AuditorError(cannot_write(out, error)) from error


def reviewer_or_login(reviewer: str | None) -> str:
    """Who decided: as the option says, else who is logged in.

    Raises:
        AuditorError: the system knows no name for this user, as in some containers.
    """
    if reviewer is not None and reviewer.strip():
        return reviewer.strip()
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError) as error:
        raise AuditorError(
            "Nobody is known to be logged in here; say who decided with --reviewer NAME."
        ) from error
