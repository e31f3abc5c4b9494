"""What every trial of the campaign shares: a small home, what must be true of it, and ways to kill a process."""

from __future__ import annotations

import ctypes
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from PIL import Image

from auditor.ground.apart import PR_SET_PDEATHSIG

ROOT = Path(__file__).resolve().parents[2]
NUM = 24
"""Samples of the small home's dataset."""


class FaultError(AssertionError):
    """A trial that did not end well: ``kind`` is one of lost, wrong, traceback, hang."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


Trial = Callable[[random.Random, Path], None]
AT_END: list[Callable[[], object]] = []
"""What a batch of trials started and must end: servers, mounts."""


def ends_with_parent() -> None:
    """This process is killed where its parent ends, on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextmanager
def temporary() -> Iterator[Path]:
    """A folder in which everything temporary of this process and its children lies.

    It goes at the end, at SIGTERM, SIGHUP and Ctrl-C too; after a SIGKILL the next one removes it, with the
    processes that were started in it.
    """
    common = Path(tempfile.gettempdir())
    for left in common.glob("faults-[0-9]*-*"):
        if not psutil.pid_exists(int(left.name.split("-")[1])):
            for process in psutil.process_iter():
                with suppress(psutil.Error):
                    if str(left) in " ".join([process.cwd(), *process.cmdline()]):
                        process.kill()
            shutil.rmtree(left, ignore_errors=True)
    for sign in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, lambda number, _: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix=f"faults-{os.getpid()}-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # PostgreSQL's user passes
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        try:
            yield Path(folder)
        finally:
            os.environ["TMPDIR"] = tempfile.tempdir = str(common)


# The small home and what must be true of it


def pictures(folder: Path, number: int = NUM, *, shade: int = 0) -> Path:
    """A folder of two classes with ``number`` images of 8 px."""
    for i in range(number):
        place = folder / ("cat" if i % 2 else "dog")
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (20 * i % 256, shade, 255 - 20 * i % 256)).save(place / f"{i}.png")
    return folder


def make_home(folder: Path) -> None:
    """One dataset, its audit and two decisions: what a trial starts from."""
    from auditor import api
    from auditor.catalog import db
    from auditor.importing.imports import import_dataset
    from auditor.review import decisions
    from tests.helpers import QUICK_OPTIONS

    os.environ["AUDITOR_HOME"] = str(folder / "home")
    import_dataset(pictures(folder / "source"), name="first", image_size=8, workers=1)
    api.Dataset("first").audit(["cross_entropy"], options=QUICK_OPTIONS, map_method="pca")
    for sample in (1, 2):
        decisions.decide(1, sample, "exclude", reviewer="ann")
    db.close_all()


def check_home(acknowledged: set[int] = frozenset({1, 2})) -> None:  # type: ignore[assignment]
    """The first dataset shows its own pictures, and no decision is lost."""
    from auditor.catalog import datasets, db, reviews
    from auditor.pictures import cache
    from auditor.pictures.decoding import decode

    with db.session() as session:
        connection = session.connection()
        is_file = connection.dialect.name == "sqlite"
        if is_file and connection.exec_driver_sql("PRAGMA integrity_check").scalar() != "ok":
            raise FaultError("lost", "the catalog is damaged")
        if not datasets.exists(session, "first"):
            raise FaultError("lost", "the dataset is gone")
        for dataset in datasets.list_all(session):
            images = cache.image_cache(dataset)
            for sample in datasets.iterate_samples(session, dataset.id):
                data = cache.original_bytes(dataset, sample)
                if not np.array_equal(
                    decode(data, size=dataset.height, channels=dataset.channels).pixels,
                    images[sample.sample_id],
                ):
                    raise FaultError("wrong", f"{dataset.name} shows another picture at {sample.sample_id}")
        lost = acknowledged - set(reviews.outcomes(session, 1))
        if lost:
            raise FaultError("lost", f"decisions on {sorted(lost)}")


def no_litter(place: Path) -> None:
    """Nothing of an import or an export is left in a folder, nor rows that nobody sees in the catalog."""
    from auditor.catalog import datasets, db

    left = [path.name for path in place.iterdir() if path.name.startswith(".")] if place.is_dir() else []
    with db.session() as session:
        rows = session.connection().exec_driver_sql("SELECT DISTINCT dataset_id FROM sample")
        left += [f"rows of {row[0]}" for row in set(rows) - {(one.id,) for one in datasets.list_all(session)}]
    if left:
        raise FaultError("wrong", f"left behind: {left}")


@contextmanager
def one_line() -> Iterator[None]:
    """What is refused is refused with one line."""
    from auditor.ground.errors import AuditorError

    try:
        yield
    except AuditorError as error:
        if "\n" in str(error) or not str(error).strip():
            raise FaultError("traceback", f"not one line: {error!r}") from error


SAID: list[str] = []
"""What the commands of this process wrote to standard error."""


def command(*arguments: str) -> int:
    """Run the command line in this process; returns its exit code."""
    from auditor import __main__ as program

    # As in a terminal of UTF-8: what cannot be encoded there is a traceback.
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    sys.argv = ["auditor", *arguments]
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            program.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        except Exception as error:
            raise FaultError("traceback", f"{arguments}: {type(error).__name__}: {error}") from error
        out.flush()
        err.flush()
    printed, said = (stream.buffer.getvalue().decode() for stream in (out, err))
    SAID.append(said)
    if code not in (0, 1, 2) or "Traceback" in said or "a mistake of ours" in said or "Aborted!" in said:
        raise FaultError("traceback", f"{arguments}: {code} {said[-300:]}")
    if code == 1 and arguments[:1] != ("doctor",) and not said.splitlines()[-1:][0].startswith("auditor: "):
        raise FaultError("traceback", f"{arguments}: no line: {said[-300:]}")
    if code and "--json" in arguments and arguments[0] != "doctor":
        _check_error(arguments, printed)
    if any(ord(c) < 32 and c not in "\n\t" for c in printed + said):
        raise FaultError("wrong", f"{arguments}: control characters on the terminal")
    return code


def _check_error(arguments: tuple[str, ...], printed: str) -> None:
    """Programs read what went wrong as JSON."""
    try:
        told = json.loads(printed)["error"]
    except (ValueError, TypeError, KeyError) as error:
        raise FaultError("traceback", f"{arguments}: no error in JSON: {printed[-300:]!r}") from error
    if not told or "\n" in told:
        raise FaultError("traceback", f"{arguments}: not one line: {told!r}")


# Bytes


def changed_bytes(data: bytes, luck: random.Random) -> bytes:
    """Cut, a piece doubled or lost, or some bytes others."""
    way = luck.randrange(4)
    at = luck.randrange(len(data))
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + data[luck.randrange(len(data)) :]
    if way == 2:
        return data[:at] + bytes(luck.randrange(256) for _ in range(luck.randrange(1, 9))) + data[at:]
    found = bytearray(data)
    for _ in range(luck.randrange(1, 9)):
        found[luck.randrange(len(found))] = luck.choice([0, 10, 34, 44, 255, luck.randrange(256)])
    return bytes(found)


# Kills


def killed(work: Callable[[], None], after: int) -> bool:
    """Do the work in a child that is killed before its ``after``-th audited call; returns whether it was.

    Python's audit events name each opening, renaming, removing and database call before it happens.
    """
    from auditor.catalog import db

    db.close_all()  # SQLite takes what was opened before a fork for its own, locks included
    child = os.fork()
    if child == 0:
        seen = 0

        def hook(_event: str, _arguments: tuple[Any, ...]) -> None:
            nonlocal seen
            seen += 1
            if seen == after:
                os.kill(os.getpid(), signal.SIGKILL)

        with suppress(BaseException), open(os.devnull, "w") as null, redirect_stderr(null):
            sys.addaudithook(hook)
            work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
