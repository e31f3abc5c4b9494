"""Errors that are the user's to mend: each text is one line and names the file, the row and the remedy."""


class AuditorError(Exception):
    """Base of every error that a screen or the command line shows as one friendly line."""


class NotFoundError(AuditorError):
    """A dataset, an audit or a file of the given name does not exist."""


class ImportRefusedError(AuditorError):
    """A source cannot be imported as it stands; nothing was registered."""


class AuditFailedError(AuditorError):
    """An audit could not run or finish; what was reached is kept and can be resumed."""


class ReviewError(AuditorError):
    """A decision cannot be recorded; nothing was changed."""


class VerificationError(AuditorError):
    """A random sample cannot be drawn or its verdicts cannot be taken back; nothing was changed."""


class ExportRefusedError(AuditorError):
    """The export would lose or overwrite something, or has nothing to write."""


class FiftyOneError(AuditorError):
    """FiftyOne or its MongoDB is missing, of a wrong version or not reachable."""
