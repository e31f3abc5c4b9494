"""One home, several containers: real namespaces of processes, mounts, networks and host names, as root only.

Holders are killed, or stopped for longer than others wait (a machine that sleeps) and then go on.
"""

from __future__ import annotations

import ctypes
import functools
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import numpy as np

from qa.faults.trial import FaultError, check_home, no_litter, pictures

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x4000000, 0x20000000, 0x40000000
SILENCE_S = 1.0
"""After this a holder in another container counts as gone; hours of a real home are seconds here."""
REFUSED, KILLED = 3, 200


class Container:
    """A process with number 1 of a container of its own, which does ``work``."""

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        reader, writer = os.pipe()
        self._outer = os.fork()
        if self._outer == 0:
            code = 98
            with suppress(BaseException):
                code = self._begin(name, work, writer)
            os._exit(code)
        os.close(writer)
        self.pid = int(os.read(reader, 20) or b"0")
        os.close(reader)
        if not self.pid:
            raise OSError("no namespaces here")

    @staticmethod
    def _begin(name: str, work: Callable[[], object], writer: int) -> int:
        spaces = CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWNS | CLONE_NEWNET
        if ctypes.CDLL(None, use_errno=True).unshare(spaces):
            return 98
        inner = os.fork()
        if inner:
            os.write(writer, str(inner).encode())
            code = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
            return KILLED if code < 0 else code
        code = 1
        try:
            subprocess.run(["mount", "--make-rprivate", "/"], check=True)
            subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
            socket.sethostname(name)
            code = _work(work)
        finally:
            os._exit(code)

    def stop(self) -> None:
        """As a machine that falls asleep."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """It wakes up."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """It is gone, whatever it was doing."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def end(self) -> int:
        """Wait for it: 0 done, ``REFUSED`` with a line, ``KILLED``, else its fault."""
        return os.waitstatus_to_exitcode(os.waitpid(self._outer, 0)[1])


def _work(work: Callable[[], object]) -> int:
    from auditor.catalog import jobs
    from auditor.ground.errors import AuditorError
    from auditor.jobs import TakenOver

    jobs.this_host.cache_clear()
    _hurry()
    with open(os.devnull, "w") as null, redirect_stderr(null), redirect_stdout(null):
        try:
            work()
        except (AuditorError, TakenOver):
            return REFUSED
        except KeyboardInterrupt:
            return 4
    return 0


def _hurry() -> None:
    """Heartbeats and silences of a tenth of a second."""
    from auditor.catalog import jobs, leases
    from auditor.jobs import running

    jobs.HEARTBEAT_S = leases.HEARTBEAT_S = 0.1
    jobs.SILENCE_S = leases.SILENCE_S = SILENCE_S
    running.TICK_S = 0.05


def _import(source: Path, name: str) -> Callable[[], object]:
    from auditor.importing.imports import import_dataset

    return lambda: import_dataset(source, name=name, image_size=8, workers=1)


def imports(luck: random.Random, place: Path) -> None:
    """An import that is killed, or stopped and woken, while another container imports: whole or not at all."""
    from auditor.ground.settings import settings
    from auditor.importing import staging

    first = Container("a", _import(pictures(place / "s1", 12, shade=50), "n1"))
    time.sleep(luck.uniform(0.0, 0.5))
    way = luck.choice(["kill", "stop", "stop", "leave"])
    if way == "kill":
        first.kill()
    elif way == "stop":
        first.stop()
        time.sleep(luck.choice([0.0, SILENCE_S + 0.2]))
    second = Container("b", _import(pictures(place / "s2", 6, shade=90), luck.choice(["n1", "n2"])))
    if luck.random() < 0.5:
        first.go_on()
    ended = second.end()
    first.go_on()
    codes = [first.end(), ended]
    if (
        set(codes) - {0, REFUSED, KILLED}
        or (codes[0] == KILLED and way != "kill")
        or (way == "leave" and 0 not in codes)
    ):
        raise FaultError("lost", f"{way}: imports ended with {codes}")
    _hurry()
    time.sleep(SILENCE_S + 0.2 if way == "kill" else 0)
    staging.sweep()
    no_litter(settings().datasets)
    check_home()


def commits(luck: random.Random, place: Path) -> None:
    """An import or a removal killed around its commit, before or beside another container's: whole or not."""
    from auditor import api
    from auditor.catalog import datasets, db
    from auditor.ground.settings import settings
    from auditor.importing import staging

    _import(pictures(place / "s2", 6, shade=90), "second")()
    db.close_all()
    sources = [pictures(place / f"s{number}", 5, shade=20 * number) for number in (3, 4, 5)]
    removes = luck.random() < 0.4
    work = (lambda: api.remove("second")) if removes else _import(sources[0], "n1")
    begins, after = "shutil.rmtree" if removes else "os.rename", luck.choice([0.0, luck.uniform(0.0, 0.02)])
    first = Container("a", lambda: _killed_in_window(work, begins, after))
    is_after = luck.random() < 0.4
    codes = [first.end()] if is_after else []
    other = luck.choice([lambda: api.remove("second"), _import(sources[1], luck.choice(["n1", "n3"]))])
    codes.append(Container("b", other).end())
    codes += [] if is_after else [first.end()]
    if codes[not is_after] not in (KILLED, REFUSED, 0) or codes[is_after] not in (0, REFUSED):
        raise FaultError("lost", f"{begins}, {after:.3f} s: ended with {codes}")
    _hurry()
    time.sleep(SILENCE_S + 0.2)
    staging.sweep()
    no_litter(settings().datasets)
    check_home()
    with db.session() as session:
        known = {str(dataset.id) for dataset in datasets.list_all(session)}
    left = {path.name for path in settings().datasets.iterdir()} - known
    if left and not removes:  # what a removal had no time to delete is named by `doctor`
        raise FaultError("wrong", f"{begins}, {after:.3f} s: {sorted(left)} belong to nothing")
    _import(sources[2], "again")()
    api.remove("again")
    check_home()


def _killed_in_window(work: Callable[[], object], begins: str, after: float) -> None:
    """Do ``work``; be killed ``after`` seconds from the audited call on a folder with which its window begins.

    The work is done by a child: a container's first process cannot kill itself.
    """
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(KILLED if code < 0 else code)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == begins and os.path.isdir(str(arguments[0])) and "/datasets/" in str(arguments[0]):
            if not after:
                os.kill(os.getpid(), signal.SIGKILL)
            signal.setitimer(signal.ITIMER_REAL, after)  # its signal ends a process wherever it is

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    sys.addaudithook(hook)
    work()
    signal.setitimer(signal.ITIMER_REAL, 0)


def audits(luck: random.Random, place: Path) -> None:
    """An audit whose container is killed or sleeps; another goes on; the first wakes up: the same result."""
    from auditor.audits import plan, worker
    from auditor.catalog import db
    from auditor.results import arrays
    from tests.helpers import QUICK_OPTIONS

    more = {"cross_entropy": QUICK_OPTIONS["cross_entropy"] | {"epochs": 30}}
    whole, disturbed = (
        plan.plan_audit("first", ["cross_entropy"], options=more, map_method="pca", device="cpu", alone=True)
        for _ in range(2)
    )
    db.close_all()
    first = Container("a", lambda: worker.run_audit(disturbed))
    time.sleep(luck.uniform(0.05, 1.2))
    way = luck.choice(["kill", "stop", "stop early"])
    if way == "kill":
        first.kill()
    else:
        first.stop()
    time.sleep(0 if way == "stop early" else SILENCE_S + 0.3)
    second = Container("b", lambda: worker.run_audit(disturbed))
    time.sleep(luck.uniform(0.0, 0.6))
    first.go_on()
    codes = [second.end(), first.end()]
    if set(codes) - {0, REFUSED, KILLED, 4}:
        raise FaultError("traceback", f"{way}: {codes}")
    _hurry()
    for audit_id in (whole, disturbed):
        last = Container("c", functools.partial(worker.run_audit, audit_id))
        if last.end() not in (0, REFUSED):
            raise FaultError("traceback", f"audit {audit_id} after {way}")
    if plan.audit_overview(disturbed).state != "finished":
        raise FaultError("lost", f"{way}: {codes}, then {plan.audit_overview(disturbed).state}")
    for name in ("pred_probs", "trust_score"):
        once, again = (arrays.array(one, "cross_entropy", name) for one in (whole, disturbed))
        if not np.array_equal(once, again):
            raise FaultError("wrong", f"{way}: another {name}")
    check_home()


def removals(luck: random.Random, place: Path) -> None:
    """A dataset that one container works on and another removes: one of them is refused, nothing is left over."""
    from auditor import api
    from auditor.audits import plan, worker
    from auditor.catalog import datasets, db
    from auditor.ground.settings import settings
    from auditor.review import decisions
    from tests.helpers import QUICK_OPTIONS

    name = "second"
    _import(pictures(place / "s2", 24, shade=30), name)()
    with db.session() as session:
        number = datasets.get(session, name).id
    audit = plan.plan_audit(
        name, ["cross_entropy"], options=QUICK_OPTIONS, map_method="pca", device="cpu", alone=True
    )
    db.close_all()

    def decide() -> None:
        for sample in range(24):
            decisions.decide(number, sample, "exclude", reviewer="bob")

    first = Container("a", luck.choice([lambda: worker.run_audit(audit), decide]))
    time.sleep(luck.uniform(0.0, 0.8))
    second = Container("b", lambda: api.remove(name))
    codes = [first.end(), second.end()]
    if set(codes) - {0, REFUSED}:
        raise FaultError("traceback", f"{codes}")
    with db.session() as session:
        is_there = datasets.exists(session, name)
    left = sorted(path.name for path in settings().datasets.iterdir())
    if is_there != (str(number) in left):
        raise FaultError("wrong", f"registered: {is_there}, folders {left}")
    check_home()
