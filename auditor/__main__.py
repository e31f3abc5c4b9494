"""``python -m auditor`` and the ``auditor`` command: run the command line, show mistakes as one line."""

from __future__ import annotations

import errno
import logging
import sys
from typing import NoReturn

from auditor.cli.commands import cli
from auditor.ground.errors import AuditorError
from auditor.ground.wording import visible

OPTIONS = {"to": "--as"}
"""What the command line calls an argument, where it has another name than in Python."""


def main() -> None:
    """Exit code 0 on success, 1 on Ctrl-C or a mistake that the user can mend, 2 on wrong usage."""
    try:
        cli.main(prog_name="auditor", standalone_mode=True)
    except AuditorError as error:
        logging.getLogger("auditor").debug("This error began here:", exc_info=error)
        option = (
            f" See {OPTIONS.get(error.field, '--' + error.field.replace('_', '-'))}." if error.field else ""
        )
        _fail(f"{error}{option}")
    except MemoryError:
        _fail("memory ran out; close other programs, or use fewer --workers or a smaller --image-size.")
    except OSError as error:
        if error.errno == errno.EPIPE or _is_verbose():
            raise
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        where = f" ({error.filename})" if error.filename else ""
        remedy = "free some space" if full else "see `auditor doctor`"
        _fail(f"{'the disk is full' if full else error.strerror or error}{where}; {remedy} and try again.")
    except Exception as error:
        if _is_verbose():
            raise
        if (damage := _damage()) is not None:
            _fail(damage)
        text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        _fail(f"a mistake of ours ({text}); `auditor -v` shows where: please report it.")


def _damage() -> str | None:
    """Return what of the catalog's values explains an error that nobody expected."""
    from auditor.catalog.db import damaged_value

    try:
        return damaged_value()
    except AuditorError as error:
        return str(error)


def _is_verbose() -> bool:
    return logging.getLogger("auditor").isEnabledFor(logging.DEBUG)


def _fail(text: str) -> NoReturn:
    line = " ".join(visible(text).splitlines())
    cli.say_in_json(line)
    print(f"auditor: {line}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
