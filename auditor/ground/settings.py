"""Where the product keeps its data: one folder and one database, both named by the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.ground.errors import AuditorError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL


@dataclass(frozen=True)
class Settings:
    """Resolved once per call, so that tests and several homes on one machine do not mix."""

    home: Path
    """Everything we write lives below it (``AUDITOR_HOME``, default ``~/.auditor``)."""
    named_database: str = ""
    """SQLAlchemy URL of the catalog (``AUDITOR_DATABASE_URL``); empty: SQLite below ``home``."""

    def make_home(self) -> None:
        """Create the home where it is missing, for its owner alone.

        Raises:
            OSError: the system does not let us.
        """
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def database_url(self) -> str | URL:
        """The address of the catalog."""
        return self.named_database or sqlite_url(self.home / "catalog.db")

    @property
    def catalog_name(self) -> str:
        """The database for people: its URL without the password."""
        # Here: they take a third of a second to load, in every process that trains.
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            return make_url(self.database_url).render_as_string(hide_password=True)
        except (ArgumentError, ValueError):  # a port that is no number is a ValueError
            return "in AUDITOR_DATABASE_URL"

    @property
    def datasets(self) -> Path:
        """One folder a dataset: the decoded image cache and extracted files."""
        return self.home / "datasets"

    @property
    def audits(self) -> Path:
        """One folder an audit: checkpoints, arrays and logs."""
        return self.home / "audits"

    @property
    def uploads(self) -> Path:
        """One folder a file that a browser sent; datasets that were imported from it read it there."""
        return self.home / "uploads"

    @property
    def jobs(self) -> Path:
        """One folder a job: its log, and the files that it made."""
        return self.home / "jobs"

    def dataset_folder(self, dataset_id: int) -> Path:
        """Folder of one dataset's arrays."""
        return self.datasets / str(dataset_id)

    def audit_folder(self, audit_id: int) -> Path:
        """Folder of one audit's arrays, checkpoints and log."""
        return self.audits / str(audit_id)

    def job_folder(self, job_id: int) -> Path:
        """Folder of one job's log and files."""
        return self.jobs / str(job_id)


def settings() -> Settings:
    """Read the environment: ``AUDITOR_HOME`` and ``AUDITOR_DATABASE_URL``.

    Raises:
        AuditorError: the home is that of a user whom this machine does not know.
    """
    named = os.environ.get("AUDITOR_HOME") or "~/.auditor"
    try:
        home = Path(named).expanduser().resolve()
    except RuntimeError as error:
        raise AuditorError(
            f"The folder {named} cannot be found ({error}); set AUDITOR_HOME to a folder that may be written."
        ) from error
    return Settings(home, os.environ.get("AUDITOR_DATABASE_URL", ""))


def sqlite_url(file: Path) -> URL:
    """The address of a SQLite file, whatever letters its path has."""
    from sqlalchemy.engine import URL

    return URL.create("sqlite", database=str(file))


def number(variable: str, default: float, *, least: float, most: float) -> float:
    """The number that a variable of the environment holds, or the default.

    Raises:
        AuditorError: it holds no number from ``least`` to ``most``.
    """
    text = os.environ.get(variable) or str(default)
    try:
        found = float(text)
    except ValueError:
        found = float("nan")
    if not least <= found <= most:
        raise AuditorError(f"{variable} is {text!r}; use a number from {least:g} to {most:g}.")
    return found
