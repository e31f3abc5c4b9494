"""Many writers at once on a real PostgreSQL; some are killed, some lose their connection, one meets a restart."""

from __future__ import annotations

import functools
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path

from qa.faults import containers, system_calls
from qa.faults.trial import AT_END, NUM, FaultError, check_home, command, make_home

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
SMALL = "small"


class Cluster:
    """A server of its own, reached by a socket in its folder; it ends with the process that made it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="faults-pg-"))
        self.user = "postgres" if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(self.folder, self.user)
            self.folder.chmod(0o755)
        data = self.folder / "data"
        make = [str(PROGRAMS[-1] / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "--no-sync"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL, user=self.user)
        self.process = self.start()
        AT_END.append(self.end)

    def start(self) -> subprocess.Popen[bytes]:
        """Start the server and wait until it answers."""
        command = [str(PROGRAMS[-1] / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)]
        command += ["-c", "listen_addresses=", "-c", "max_connections=60"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, user=self.user)
        until = time.monotonic() + 30
        while True:
            with suppress(Exception):
                self.tell("SELECT 1")
                return self.process
            if time.monotonic() > until:
                raise OSError("PostgreSQL does not start")
            time.sleep(0.05)

    def url(self, name: str) -> str:
        """Of a database."""
        return f"postgresql+psycopg://postgres@/{name}?host={self.folder}"

    def tell(self, statement: str) -> None:
        """Run a statement for the administrator."""
        import psycopg

        with psycopg.connect(
            f"user=postgres dbname=postgres host={self.folder}", autocommit=True
        ) as connection:
            connection.execute(statement)

    def end(self) -> None:
        """Stop it and remove it."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@functools.cache
def cluster(owner: int) -> tuple[Cluster, Path]:
    """The cluster of this process, with a small home's catalog as a database to copy, and that home."""
    from auditor.catalog import db

    one = Cluster()
    place = one.folder / "made"
    one.tell(f"CREATE DATABASE {SMALL}")
    child = os.fork()  # training leaves threads
    if child == 0:
        code = 1
        with suppress(BaseException), open(os.devnull, "w") as null, redirect_stderr(null):
            os.environ["AUDITOR_DATABASE_URL"] = one.url(SMALL)
            make_home(place)
            code = 0
        os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise OSError("the small home could not be made on PostgreSQL")
    db.close_all()
    return one, place


@contextmanager
def small_home(luck: random.Random, place: Path) -> Iterator[Cluster]:
    """A copy of the small home and its database; the environment names them."""
    from auditor.catalog import db

    one, made = cluster(os.getpid())
    name = f"trial_{luck.randrange(10**12)}"
    one.tell(f"CREATE DATABASE {name} TEMPLATE {SMALL}")
    before = os.environ["AUDITOR_HOME"]
    os.environ["AUDITOR_DATABASE_URL"] = one.url(name)
    os.environ["AUDITOR_HOME"] = str(place / "pg")
    shutil.copytree(made / "home", place / "pg")
    try:
        yield one
    finally:
        db.close_all()
        del os.environ["AUDITOR_DATABASE_URL"]
        os.environ["AUDITOR_HOME"] = before
        with suppress(Exception):
            one.tell(f"DROP DATABASE {name} WITH (FORCE)")


def cuts(luck: random.Random, place: Path) -> None:
    """A command whose connection is cut, whose server crashes, or that is killed: a line, and all is whole."""
    from auditor.catalog import db

    with small_home(luck, place) as one:
        works = system_calls.works(place)
        work = luck.choice(
            sorted(set(works) - {"backup"})
        )  # its check restores into another home, where the environment still names this database
        way = luck.choice(["terminate", "terminate", "crash", "stop", "kill"])
        db.close_all()
        child = os.fork()
        if child == 0:
            code = 99
            with suppress(BaseException), open(os.devnull, "w") as null, redirect_stderr(null):
                try:
                    code = command(*works[work])
                except FaultError as error:
                    (place / "fault").write_text(str(error))
            os._exit(code)
        time.sleep(luck.uniform(0.0, 0.25))
        _cut(one, way, child)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code not in (0, 1, -signal.SIGKILL):
            told = (place / "fault").read_text() if (place / "fault").exists() else ""
            raise FaultError("traceback", f"{work}, {way}: {code} {told}")
        system_calls.whole(place, work, ended_well=code == 0)


def _cut(one: Cluster, way: str, child: int) -> None:
    if way == "kill":
        os.kill(child, signal.SIGKILL)
    elif way == "terminate":
        for _ in range(4):
            one.tell("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'trial%'")
            time.sleep(0.02)
    else:
        one.process.send_signal(signal.SIGQUIT if way == "crash" else signal.SIGINT)
        one.process.wait()
        one.start()


def calls_killed(luck: random.Random, place: Path) -> None:
    """A command killed before one of its system calls, those that speak to the server too; nothing half is kept."""
    from auditor.catalog import db

    with small_home(luck, place):
        work = luck.choice(["import", "review", "draw", "probs", "remove"])
        call, most = luck.choice([("sendto", 90), ("sendto", 90), ("rename", 8), ("mkdir", 8), ("write", 60)])
        number = luck.randrange(1, most)
        db.close_all()
        inject = f"inject={call}:signal=SIGKILL:when={number}"
        arguments = system_calls.works(place)[work]
        code = system_calls.traced(arguments, "-e", f"trace={call}", "-e", inject, "-o", os.devnull)
        if code not in (0, 1, system_calls.TOLD, -signal.SIGKILL):
            raise FaultError("traceback", f"{work} at {call} {number}: {code}")
        system_calls.whole(place, work, ended_well=code == 0)


def two_containers(luck: random.Random, place: Path) -> None:
    """Two containers on one home, whose catalog is on a server: as ``containers`` does with SQLite."""
    trial = luck.choice([containers.imports, containers.audits, containers.removals, containers.commits])
    with small_home(luck, place):
        trial(luck, place)


def writers(luck: random.Random, place: Path) -> None:
    """Six writers of decisions, verdicts and undone ones; what was acknowledged is there, each once."""
    from auditor.catalog import db, reviews

    with small_home(luck, place) as one:
        told = _many(one, luck, place)
        with db.session() as session:
            log = reviews.log(session, 1)
            said = {(row.reviewer, row.note) for row in log}
        lost = told - said
        if lost:
            raise FaultError("lost", f"{len(lost)} acknowledged verdicts, such as {sorted(lost)[:3]}")
        twice = len([row for row in log if row.note]) - len({row.note for row in log if row.note})
        if twice:
            raise FaultError("wrong", f"{twice} verdicts are there twice")
        check_home()


def _many(one: Cluster, luck: random.Random, place: Path) -> set[tuple[str, str]]:
    """Let six processes write; returns (reviewer, note) of what they were told is kept."""
    trouble = luck.choice(["none", "kill", "terminate", "terminate", "restart"])
    children = []
    for number in range(6):
        child = os.fork()
        if child == 0:
            with suppress(BaseException), open(os.devnull, "w") as null, redirect_stderr(null):
                _write(number, place / f"told{number}")
            os._exit(0)
        children.append(child)
    until = time.monotonic() + luck.uniform(0.1, 0.8)
    while time.monotonic() < until:
        time.sleep(0.05)
        if trouble == "terminate":
            one.tell(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'trial%' "
                "ORDER BY random() LIMIT 1"
            )
    if trouble == "kill":
        for child in luck.sample(children, 3):
            os.kill(child, signal.SIGKILL)
    if trouble == "restart":
        one.process.send_signal(signal.SIGQUIT)  # as a crash: nothing is written down first
        one.process.wait()
        one.start()
    for child in children:
        os.waitpid(child, 0)
    told = set()
    for number in range(6):
        file = place / f"told{number}"
        for line in file.read_text().splitlines() if file.exists() else []:
            told.add((f"w{number}", line))
    return told


def _write(number: int, told: Path) -> None:
    from auditor.catalog import db
    from auditor.ground.errors import AuditorError
    from auditor.review import decisions, drawing

    db.close_all()
    with told.open("a") as file:
        for turn in range(2 * NUM):
            # What a reviewer has decided already is not written again: each round decides otherwise.
            again, sample = divmod(turn, NUM - 3)
            note, said = f"{number} {turn}", ["keep", "exclude", "unsure"][again]
            with suppress(AuditorError):
                decisions.decide(1, sample + 3, said, reviewer=f"w{number}", note=note)
                file.write(f"{note}\n")
                file.flush()
            with suppress(AuditorError):
                if turn % 9 == 8:
                    decisions.undo_last(1, f"w{number}")
                if turn == 5:
                    drawing.draw("first", 1, seed=number)
