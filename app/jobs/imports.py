"""Imports in processes of their own. ``python -m app.jobs.imports FOLDER`` is the process."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from app.jobs import background
from app.session import allowed
from auditor.catalog import datasets
from auditor.catalog.db import session
from auditor.errors import ImportRefusedError
from auditor.importing import imports

KIND = "imports"


@dataclass(frozen=True)
class Job:
    """One import as it stands."""

    folder: Path
    name: str
    stage: str
    """A stage of the import, or one of ``background.OVER``."""
    done: int = 0
    total: int | None = None
    seconds_left: float | None = None
    error: str | None = None
    problems: tuple[tuple[str, str, str], ...] = ()
    """(file, row, text) of rows that cannot be imported."""
    report: dict[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        """Nothing works on it any more."""
        return self.stage in background.OVER


def start(source: str, name: str, options: dict[str, Any], upload: str | None = None) -> Path:
    """Start an import; returns its folder. ``upload`` is deleted when the import fails."""
    request = {"source": source, "name": name, "options": options, "upload": upload}
    return background.start(KIND, "app.jobs.imports", request)


def jobs() -> list[Job]:
    """Imports that nobody dismissed, the newest first."""
    return [read(folder) for folder in background.folders(KIND)]


def read(folder: Path) -> Job:
    """One import as it stands."""
    seen = background.state(folder)
    problems = tuple((str(file), str(row), str(text)) for file, row, text in seen.pop("problems", ()))
    return Job(folder, str(background.request(folder)["name"]), problems=problems, **seen)


def dismiss(folder: Path) -> None:
    """Take an import that is over off the list, with the upload of one whose process went without a word."""
    request = background.request(folder)
    if not _is_imported(request["name"]):
        _forget_upload(request)
    background.dismiss(folder)


def _is_imported(name: str) -> bool:
    with session() as open_session:
        return datasets.exists(open_session, name)


def _forget_upload(request: dict[str, Any]) -> None:
    if request["upload"]:
        allowed.forget_upload(request["upload"])


def work(folder: Path) -> None:
    """Do the import that the folder describes."""

    def imported(request: dict[str, Any]) -> dict[str, Any]:
        try:
            report = imports.import_dataset(
                request["source"],
                name=request["name"],
                progress=lambda progress: background.tell(folder, asdict(progress)),
                **request["options"],
            )
        except KeyboardInterrupt as error:
            if _is_imported(request["name"]):  # the signal came while the last transaction ended
                raise ImportRefusedError(
                    f"{request['name']} was imported before it could be cancelled."
                ) from error
            _forget_upload(request)
            raise ImportRefusedError("Cancelled; nothing was imported.") from error
        except Exception:
            _forget_upload(request)
            raise
        return {"report": report.stored()}

    background.run(folder, imported)


if __name__ == "__main__":
    background.as_process(work)
