"""The wheel in an environment of its own: it carries all that runs, and starts away from the checkout."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from pathlib import Path

import pytest
from dockerfile_parse import DockerfileParser

from tests.helpers import WAIT_S, free_port

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("app", "auditor", "engines")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, as nothing may be left in the checkout."""
    place = tmp_path_factory.mktemp("wheel")
    for name in [*LAYERS, "pyproject.toml", "README.md"]:
        ignored = shutil.ignore_patterns("__pycache__")
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, place / name, **({"ignore": ignored} if copy is shutil.copytree else {}))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(place / "dist"), str(place)], check=True)
    return next((place / "dist").glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that has the wheel; what it requires comes from this environment, the checkout does not."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place)
    there = Path(sysconfig.get_path("purelib", vars={"base": str(place)}))
    (there / "required.pth").write_text(sysconfig.get_path("purelib"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(there)
    return str(place / "bin" / "python")


def test_wheel__has_every_file_of_the_layers(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    known = subprocess.run(
        ["git", "ls-files", *LAYERS], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert packed == {name for name in known if (ROOT / name).exists()}


def test_wheel__serves_the_app_and_answers_the_containers_health_check(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "app").mkdir()  # where it starts: a folder that happens to have the name of a layer
    last = {part["instruction"]: part["value"] for part in DockerfileParser(path=str(ROOT)).structure}
    program, *command = json.loads(last["CMD"])
    _, *health = json.loads(last["HEALTHCHECK"].split("CMD", 1)[1])
    port = str(free_port())
    assert program == "auditor"
    assert "8501" in health[-1]
    check = [python, *health[:-1], health[-1].replace("8501", port)]
    environment = os.environ | {"HOME": str(tmp_path), "AUDITOR_HOME": str(tmp_path / "data")}
    server = subprocess.Popen(
        [python, "-m", program, *command, "--port", port],
        cwd=tmp_path / "app",
        env=environment,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + WAIT_S
        while subprocess.run(check, env=environment, capture_output=True, check=False).returncode:
            assert server.poll() is None, "the container's command ended by itself"
            assert time.monotonic() < until, "the health check was never answered"
            time.sleep(0.5)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@pytest.mark.timeout(900)  # every module is compiled, and all engines train
def test_wheel__audits_the_demo_to_its_end(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As somebody tries it who installed the wheel, in a folder of their own."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    environment = os.environ | {"HOME": str(tmp_path), "AUDITOR_HOME": str(tmp_path / "data")}
    done = subprocess.run(
        [python, "-m", "auditor", "demo", "--no-app", "--out", str(tmp_path / "cleaned.csv")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "cleaned.csv").read_text().splitlines()) == 1_798


def test_wheel__main_py_runs_under_streamlit_with_nothing_but_pythonpath(tmp_path: Path) -> None:
    """A copy of the sources, which is not installed; ``-S`` and a path of packages keep the checkout out."""
    for name in LAYERS:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    path = os.pathsep.join([str(tmp_path), sysconfig.get_path("purelib")])
    code = (
        "from streamlit.testing.v1 import AppTest\n"
        f"page = AppTest.from_file({str(tmp_path / 'app' / 'main.py')!r}, default_timeout=120).run()\n"
        "import auditor, gc\n"
        "is_frozen = gc.get_freeze_count() > 100_000\n"
        "print(auditor.__file__, [each.value for each in page.exception], is_frozen)\n"
    )
    environment = os.environ | {"PYTHONPATH": path, "AUDITOR_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=tmp_path / "app",
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n")[-2] == f"{tmp_path / 'auditor' / '__init__.py'} [] True"
