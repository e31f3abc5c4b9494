"""``python -m auditor`` and the ``auditor`` command: run the command line, show mistakes as one line."""

from __future__ import annotations

import logging
import sys

from auditor.cli.commands import cli
from auditor.errors import AuditorError


def main() -> None:
    """Exit code 0 on success, 1 on Ctrl-C or a mistake that the user can mend, 2 on wrong usage."""
    try:
        cli.main(prog_name="auditor", standalone_mode=True)
    except AuditorError as error:
        option = f" See --{error.field.replace('_', '-')}." if error.field else ""
        print(f"auditor: {error}{option}", file=sys.stderr)
        logging.getLogger("auditor").debug("This error began here:", exc_info=error)
        sys.exit(1)


if __name__ == "__main__":
    main()
