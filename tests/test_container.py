"""The Dockerfile: its style, and that what it starts answers its own health check."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dockerfile_parse import DockerfileParser

from tests.auditor.cli.test_serve import ROOT
from tests.helpers import WAIT_S, free_port

DOCKERFILE = ROOT / "Dockerfile"
BIN = Path(sys.executable).parent


def parsed() -> dict[str, str]:
    """Instruction -> its value, as built: the last one counts."""
    return {part["instruction"]: part["value"] for part in DockerfileParser(path=str(DOCKERFILE)).structure}


@pytest.mark.skipif(not (BIN / "hadolint").exists(), reason="hadolint has no wheel for this machine")
def test_dockerfile__hadolint_has_nothing_to_say() -> None:
    said = subprocess.run([BIN / "hadolint", DOCKERFILE], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout) == (0, "")


def test_dockerfile__runs_as_somebody_else_than_root() -> None:
    assert int(parsed()["USER"]) > 0


def test_dockerfile__what_it_starts_answers_its_health_check(tmp_path: Path) -> None:
    port = str(free_port())
    built = DockerfileParser(path=str(DOCKERFILE))
    folders = {"/data": tmp_path / "data", "/images": tmp_path / "images"}
    variables = {name: str(folders.get(value, value)) for name, value in built.envs.items() if name != "PATH"}
    environment = os.environ | variables
    command = [*json.loads(parsed()["CMD"]), "--port", port]
    check = json.loads(parsed()["HEALTHCHECK"].split("CMD", 1)[1])
    assert "8501" in check[-1]
    check = [sys.executable, *check[1:-1], check[-1].replace("8501", port)]
    assert command[0] == "auditor"
    server = subprocess.Popen(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, start_new_session=True
    )
    try:
        until = time.monotonic() + WAIT_S
        while subprocess.run(check, env=environment, capture_output=True, check=False).returncode:
            assert server.poll() is None
            assert time.monotonic() < until
            time.sleep(0.5)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        shutil.rmtree(tmp_path, ignore_errors=True)
