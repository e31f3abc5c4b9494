"""The Dockerfile's steps in a new folder, where no Docker is at hand: ``python -m tools.container FOLDER``.

What would be copied is copied, what would be installed is installed into a fresh virtual environment, the command
is started (as the account of the Dockerfile where this runs as root), and the health check must be answered. Steps
that install packages of Debian are named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dockerfile_parse import DockerfileParser

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("/app", "/data", "/images")
"""The container's own folders, which lie in FOLDER instead."""


@dataclass(frozen=True)
class Container:
    """What the Dockerfile says.

    ``steps`` are RUN's shell commands, ``command`` and ``health`` words; ``user`` is the account's number.
    """

    steps: tuple[str, ...]
    variables: dict[str, str]
    arguments: dict[str, str]
    command: tuple[str, ...]
    health: tuple[str, ...]
    user: int

    def environment(self, folder: Path) -> dict[str, str]:
        """This machine's variables, changed as the container's are, with its folders in ``folder``."""
        ours = {name: _placed(value, folder) for name, value in self.variables.items() if name != "PATH"}
        return {**os.environ, **ours}


def parsed(file: Path = ROOT / "Dockerfile") -> Container:
    """Read ``file``; of an instruction that stands more than once (but RUN), the last one counts."""
    found = DockerfileParser(path=str(file))
    last = {part["instruction"]: part["value"] for part in found.structure}
    arguments = [part["value"].partition("=") for part in found.structure if part["instruction"] == "ARG"]
    return Container(
        steps=tuple(part["value"] for part in found.structure if part["instruction"] == "RUN"),
        variables=dict(found.envs),
        arguments={name: value.strip('"') for name, _, value in arguments},
        command=tuple(json.loads(last["CMD"])),
        health=tuple(json.loads(last["HEALTHCHECK"].split("CMD", 1)[1])),
        user=int(last["USER"]),
    )


def wait_for_health(
    container: Container, python: str, folder: Path, *, port: int, wait_s: float, user: int | None = None
) -> None:
    """Start the container's command with the interpreter ``python`` and end it when its health check is answered.

    Raises:
        RuntimeError: the command ended by itself, or ``wait_s`` seconds went by.
    """
    app, environment = folder / "app", container.environment(folder) | {"HOME": str(folder)}
    if container.command[0] != "auditor" or "8501" not in container.health[-1]:
        raise RuntimeError("the Dockerfile starts no `auditor`, or asks another port than 8501.")
    check = [python, *container.health[1:-1], container.health[-1].replace("8501", str(port))]
    server = subprocess.Popen(
        [python, "-m", *container.command, "--port", str(port)],
        cwd=app,
        env=environment,
        user=user,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + wait_s
        while subprocess.run(check, env=environment, capture_output=True, check=False).returncode:
            if server.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the health check was never answered.")
            time.sleep(0.5)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _placed(text: str, folder: Path) -> str:
    return f"{folder}{text}" if text.startswith(FOLDERS) else text


def _runs(python: str, user: int) -> bool:
    """Whether the account may start the interpreter: one below another account's home it may not."""
    try:
        return not subprocess.run([python, "-c", ""], user=user, check=False).returncode
    except PermissionError:
        return False


def _copied(folder: Path) -> None:
    """What COPY takes: the files that git knows, without those of ``.dockerignore``."""
    left_out = set((ROOT / ".dockerignore").read_text(encoding="utf-8").split())
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split("\0"):
        if name and not left_out & set(Path(name).parts) and (ROOT / name).exists():
            (folder / "app" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / "app" / name)


def main(args: Sequence[str] | None = None) -> int:
    """Run the steps; exit code 0 when the health check was answered."""
    parser = argparse.ArgumentParser(prog="python -m tools.container", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="A folder that does not exist yet; several GB.")
    parser.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE", help="As docker's.")
    parser.add_argument("--port", type=int, default=8599, help="A free one, for the health check.")
    options = parser.parse_args(args)
    folder, container = options.folder.resolve(), parsed()
    for name in FOLDERS:
        (folder / name.strip("/")).mkdir(parents=True)
    _copied(folder)
    values = container.arguments | dict(each.split("=", 1) for each in options.build_arg)
    for step in container.steps:
        if "apt-get" in step:
            print(f"left out: {step}", flush=True)
            continue
        print(f"run: {step}", flush=True)
        done = subprocess.run(["sh", "-ec", step], cwd=folder / "app", env=os.environ | values, check=False)
        if done.returncode:
            return done.returncode
    python = str(folder / "app" / ".venv" / "bin" / "python")
    user = container.user if os.geteuid() == 0 and _runs(python, container.user) else None
    if user is None:
        print("run as this account: the other one may not run this Python", flush=True)
    else:
        for path in [folder, folder / "data", folder / "images"]:
            os.chown(path, user, user)
    wait_for_health(container, python, folder, port=options.port, wait_s=180, user=user)
    told = container.environment(folder) | {"HOME": str(folder)}
    done = subprocess.run(
        [python, "-m", "auditor", "doctor"], cwd=folder, env=told | values, user=user, check=False
    )
    print("the health check is answered" if not done.returncode else "the doctor found something broken")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
