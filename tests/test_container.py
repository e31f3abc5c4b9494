"""The Dockerfile: its style, account and volume. `tests/test_wheel.py` starts what it starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.auditor.cli.test_serve import ROOT
from tools.container import parsed

DOCKERFILE = ROOT / "Dockerfile"
BIN = Path(sys.executable).parent


@pytest.mark.skipif(not (BIN / "hadolint").exists(), reason="hadolint has no wheel for this machine")
def test_dockerfile__hadolint_has_nothing_to_say() -> None:
    said = subprocess.run([BIN / "hadolint", DOCKERFILE], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout) == (0, "")


def test_dockerfile__runs_as_somebody_else_than_root() -> None:
    assert parsed().user > 0


def test_dockerfile__what_people_made_lies_in_the_volume(tmp_path: Path) -> None:
    here = parsed().environment(tmp_path)
    assert here["AUDITOR_HOME"] == f"{tmp_path}/data"
    assert here["FIFTYONE_DATABASE_DIR"].startswith(f"{tmp_path}/data/")
