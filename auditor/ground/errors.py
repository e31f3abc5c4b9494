"""Errors that are the user's to mend: each text is one line and names the file, the row and the remedy."""

from __future__ import annotations

from pathlib import Path


class AuditorError(Exception):
    """Base of every error that a screen or the command line shows as one friendly line.

    The text speaks of the thing. ``field`` is the parameter that mends it, such as ``label_column``: the command
    line adds its option, a page adds its own field, and Python shows it as a note below the text.
    """

    def __init__(self, text: str = "", *, field: str | None = None) -> None:
        super().__init__(" ".join(text.splitlines()))  # names of files may hold line breaks
        self.field = field
        if field is not None:
            self.add_note(f"The argument: {field}")


class NotFoundError(AuditorError):
    """A dataset, an audit or a file of the given name does not exist."""


class MisplacedError(NotFoundError):
    """A folder of the home belongs to something else than what the catalog says; nothing of it was read."""


class DamagedError(NotFoundError):
    """A file of ours is cut off or does not hold what it should."""


class CatalogError(AuditorError):
    """The catalog cannot be read or written now (a full disk, no rights); nothing was changed."""


class CatalogBusyError(CatalogError):
    """Another process writes to the catalog for long; the same transaction may succeed in a minute."""


class JobRefusedError(AuditorError):
    """A job cannot be started, gone on with or removed as it is; nothing was changed."""


class ImportRefusedError(AuditorError):
    """A source cannot be imported as it is; nothing was registered."""


class AuditFailedError(AuditorError):
    """An audit could not run or finish; what was reached is kept and can be resumed."""


class ReviewError(AuditorError):
    """A decision cannot be recorded; nothing was changed."""


class VerificationError(AuditorError):
    """A random sample cannot be drawn or its verdicts cannot be taken back; nothing was changed."""


class ExportRefusedError(AuditorError):
    """The export would lose or overwrite something, or has nothing to write."""


class WeightsError(AuditorError):
    """Weights of a backbone cannot be fetched; nothing was kept."""


class FiftyOneError(AuditorError):
    """FiftyOne or its MongoDB is missing, of a wrong version or not reachable."""


def cannot_write(out: Path, error: OSError) -> str:
    """The line for a file that the system does not let us write: no rights, no folder, a full disk."""
    # The temporary file beside ``out`` is nothing that a user knows of; a folder above it may be the culprit.
    named = error.filename if error.filename and Path(error.filename).parent != out.parent else None
    why = str(error.strerror or error) + (f": {named}" if named else "")
    return f"{out} cannot be written ({why}); choose another place, one that you can write to."
