"""Fixtures of the catalog's tests: the command line as a user runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from auditor.__main__ import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``auditor ARGS``: exit code, standard output, standard error."""

    def call(*args: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["auditor", *map(str, args)])
        with pytest.raises(SystemExit) as ended:  # noqa: PT012 - main() ends by itself only after a mistake
            main()
            sys.exit(0)
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call
