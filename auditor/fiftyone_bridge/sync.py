"""FiftyOne and an audit: push it there, pull decisions back, open the App on it.

Everything that other rooms call is here; the work is done in the other files beside it. FiftyOne takes seconds to
import and holds one database connection a process, so the app never loads it and pushes by jobs.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import quote

from auditor.bridges import fiftyone_door
from auditor.catalog import reading
from auditor.fiftyone_bridge import app as fiftyone_app
from auditor.fiftyone_bridge import processes, views
from auditor.fiftyone_bridge import push as fiftyone_push
from auditor.fiftyone_bridge.app import PORT, RunningApp
from auditor.fiftyone_bridge.pull import Listed, Pulled, pull_decisions
from auditor.fiftyone_bridge.push import Pushed, push_audit
from auditor.ground.errors import FiftyOneError
from auditor.ground.progress import OnProgress
from auditor.pictures import cache

__all__ = [
    "PORT",
    "Listed",
    "Prepared",
    "Pulled",
    "Pushed",
    "RunningApp",
    "open_pushed",
    "prepare_app",
    "pull_decisions",
    "push_audit",
    "serve_app",
    "start",
]

PLUGIN = Path(__file__).with_name("plugin")


def open_pushed(name: str, to: str | None = None) -> Any:
    """The ``fiftyone.Dataset`` that ``name`` was pushed to.

    Raises:
        NotFoundError: no such dataset.
        FiftyOneError: it was never pushed, or FiftyOne cannot be used.
    """
    dataset = reading.dataset(name)
    fiftyone = fiftyone_door.connect()
    with fiftyone_door.explained():
        return fiftyone_push.find(fiftyone, dataset, to)


@dataclass(frozen=True)
class Prepared:
    """What the App will open."""

    dataset: str
    name: str
    """Of the FiftyOne dataset."""
    path: str
    """The rest of the App's address: the dataset and the view."""
    roots: tuple[Path, ...]
    """Where its pictures are."""
    port: int


def prepare_app(
    name: str,
    *,
    to: str | None = None,
    audit_id: int | None = None,
    port: int = PORT,
    view: str = views.SUSPECTS,
    progress: OnProgress | None = None,
) -> Prepared:
    """Push what is new, so that the App shows it.

    Raises:
        NotFoundError: no such dataset, or no finished audit.
        FiftyOneError: FiftyOne cannot be used, or the port is taken.
    """
    fiftyone_app.refuse_port(port)
    pushed = push_audit(name, to=to, audit_id=audit_id, progress=progress)
    fiftyone = fiftyone_door.connect()
    with fiftyone_door.explained():
        slug = views.slug_of(fiftyone, fiftyone.load_dataset(pushed.name), view)
    query = f"?view={slug}" if slug else ""
    dataset = reading.dataset(name)
    roots = (Path(dataset.root), cache.folder(dataset))
    return Prepared(name, pushed.name, f"/datasets/{quote(pushed.name)}{query}", roots, port)


def start(prepared: Prepared, *, reviewer: str = "") -> RunningApp:
    """Serve the App on 127.0.0.1 from a process of its own; ``url`` opens dataset and view. The caller stops it.

    Raises:
        FiftyOneError: the App does not start.
    """
    fiftyone = fiftyone_door.connect()
    return fiftyone_app.start_app(
        prepared.path,
        roots=prepared.roots,
        plugins=_plugins(Path(fiftyone.config.plugins_dir)),
        reviewer=reviewer,
        port=prepared.port,
    )


def serve_app(
    prepared: Prepared, *, reviewer: str = "", browser: bool = True, say: Callable[[str], None] = print
) -> None:
    """Open the App and stay until Ctrl-C or SIGTERM, then stop it.

    Raises:
        FiftyOneError: the App does not start, or ended by itself.
    """
    previous = signal.signal(signal.SIGTERM, _end)
    app: RunningApp | None = None
    try:
        app = start(prepared, reviewer=reviewer)
        say(f"FiftyOne's App: {app.url}   (Ctrl-C stops it; the address has your key)")
        if browser:
            webbrowser.open(app.url)
        _wait(app.process)
    except KeyboardInterrupt:
        pull = f"auditor fiftyone {shlex.quote(prepared.dataset)} pull"
        say(f"Stopped. `{pull}` copies tags and edited labels back.")
    finally:
        if app is not None:
            app.stop()
        signal.signal(signal.SIGTERM, previous)


def _wait(process: subprocess.Popen[bytes]) -> None:
    if process.wait() != 0:
        raise FiftyOneError(f"FiftyOne's App stopped by itself; {processes.folder() / 'app.log'} says why.")


def _end(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _plugins(own: Path) -> Path:
    """A folder with our plugin and links to those that the user has installed."""
    place = processes.folder() / "plugins"
    place.mkdir(parents=True, exist_ok=True)
    for old in place.iterdir():
        if old.is_symlink():
            old.unlink()
    (place / "label-auditor").symlink_to(PLUGIN, target_is_directory=True)
    if own.is_dir() and own.resolve() != place.resolve():
        for path in own.iterdir():
            if path.is_dir() and not (place / path.name).exists():
                (place / path.name).symlink_to(path.resolve(), target_is_directory=True)
    return Path(os.path.abspath(place))
