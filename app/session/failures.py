"""What a person sees when something goes wrong: one friendly line, or an id that leads to the log."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler

import streamlit as st

from app.session.words import FIELDS, plain
from auditor.ground.errors import AuditorError
from auditor.ground.settings import settings

LOG_NAME = "app.log"
LOG_BYTES = 2_000_000


def log_unexpected(error: BaseException) -> str:
    """Write an unexpected error with its traceback to ``home/app.log``; returns the id to show."""
    number = secrets.token_hex(4)
    logger = logging.getLogger("auditor.app")
    path = settings().home / LOG_NAME
    if not any(getattr(handler, "baseFilename", None) == str(path) for handler in logger.handlers):
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=2, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
    logger.error("error %s", number, exc_info=error)
    return number


def sentence(error: BaseException) -> str:
    """The one line that a person reads; an unexpected error is logged first."""
    if isinstance(error, AuditorError):
        field = FIELDS.get(error.field or "")
        return f"{error} See “{field}”." if field else str(error)
    number = log_unexpected(error)
    return f"An unexpected error occurred. It is logged as {number} in {settings().home / LOG_NAME}."


def show(error: Exception) -> bool:
    """Show an error on the page instead of Streamlit's traceback; True says that it was shown."""
    st.error(plain(sentence(error)), icon=":material/error:")
    return True


@contextmanager
def shown() -> Iterator[None]:
    """Show whatever the block raises as one line and go on below it."""
    try:
        yield
    except Exception as error:  # the edge of the app: everything ends here as one line
        show(error)
