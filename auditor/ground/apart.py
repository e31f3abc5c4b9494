"""Work in processes apart: what a foreign file does to the library that parses it, it does there.

Such a process takes one call after another. It has limits of memory and of computing time, and whatever ends it is
a ``DiedError`` here. Where this process may fork, a new one takes milliseconds; elsewhere it is a fresh Python.
"""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, NoReturn, ParamSpec, TypeVar

import psutil

from auditor.ground.errors import AuditorError
from auditor.ground.processes import BETWEEN_FORKS, between_forks, may_fork, usable_cores

resource: Any
try:
    import resource
except ModuleNotFoundError:  # on Windows, which has no such limits
    resource = None

MOST_BYTES = max(2**32, psutil.virtual_memory().total // 2)
"""Of memory that a process apart may take. (Linux keeps to it; macOS does not.)"""
MOST_S = 3_600
"""Of computing time for one call; what waits for a disk or a network takes none."""
IDLE_S = 120.0
"""How long a process waits for another call."""
PR_SET_PDEATHSIG = 1

Args = ParamSpec("Args")
Answer = TypeVar("Answer")

_is_apart = False


class DiedError(AuditorError):
    """A process apart ended, or came to its limits, during a call; the text goes on after the name of a file."""


class Apart:
    """One process that does one call after another for this one, in its own thread's order."""

    def __init__(
        self, *, most_bytes: int | None = MOST_BYTES, most_s: int | None = MOST_S, is_fresh: bool = False
    ) -> None:
        """Start it. None is no limit; ``is_fresh``: never a fork, for libraries that do not outlive one."""
        self._limits = (most_bytes, most_s)
        self._environment = None if is_fresh else dict(os.environ)
        self.is_over, self._code, self._owner = False, 0, os.getpid()
        self._wait: Callable[[], int]
        if sys.platform == "linux" and may_fork() and not is_fresh:
            self._fork()
        else:
            self._start()

    def _fork(self) -> None:
        asked, self._asked = _pipe()
        self._answers, answers = _pipe()
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            try:
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                _serve(asked, answers, parent, *self._limits)
            finally:
                os._exit(1)
        asked.close()
        answers.close()
        self._pid = pid
        self._wait = lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def _start(self) -> None:
        limits = [str(limit or 0) for limit in self._limits]
        process = subprocess.Popen(
            [sys.executable, "-c", "from auditor.ground import apart; apart.main()", *limits],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._asked, self._answers, self._pid, self._wait = (
            process.stdin,
            process.stdout,
            process.pid,
            process.wait,
        )

    @property
    def is_of_now(self) -> bool:
        """Return whether a new one would be the same: the environment names homes, stores and who may read them."""
        return self._environment is None or self._environment == os.environ

    def call(self, function: Callable[Args, Answer], *args: Args.args, **kwargs: Args.kwargs) -> Answer:
        """``function(*args)`` there; it is one of a module. Its errors arrive here as they are.

        Raises:
            DiedError: the process ended, or came to one of its limits.
        """
        question = pickle.dumps((function, args, kwargs))
        try:
            self._asked.write(question)
            self._asked.flush()
            is_answer, value = pickle.load(self._answers)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            raise DiedError(self._how()) from error
        except BaseException:  # Ctrl-C: an answer that nobody waits for must not become that of the next call
            self.kill()
            raise
        if isinstance(value, MemoryError) or getattr(value, "errno", None) == errno.ENOMEM:
            self.kill()  # what is left of that memory is gone for the next call, too
            raise DiedError(self._needs_memory()) from value
        if not is_answer:
            raise value
        found: Answer = value
        return found

    def close(self) -> None:
        """Let it end by itself, tidied up."""
        if self.is_over or self._owner != os.getpid():  # a fork of this process has nothing to end here
            return
        with suppress(OSError, ValueError):
            self._asked.write(pickle.dumps(None))
            self._asked.flush()
            self._answers.read()
        self.kill()

    def kill(self) -> int:
        """End it now; how it ended."""
        if self.is_over:  # its number may be another one's by now
            return self._code
        self.is_over = True
        with suppress(OSError):
            os.kill(self._pid, signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
        for pipe in (self._asked, self._answers):
            with suppress(OSError):
                pipe.close()
        with suppress(OSError):
            self._code = self._wait()
        return self._code

    def _how(self) -> str:
        """Return why it ended, as what a sentence about a file goes on with."""
        code = self.kill()
        named = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        if named == "SIGPROF":
            return f"takes more than {self._limits[1] or 0:,} s of computing time to read"
        if named == "SIGKILL":
            return "was being read when its process was killed, probably because memory ran out"
        return f"is damaged so that the library which reads it breaks down ({named})"

    def _needs_memory(self) -> str:
        return f"needs more than {(self._limits[0] or 0) / 2**30:,.1f} GB of memory to be read"


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb"), os.fdopen(writing, "wb")


def main() -> NoReturn:
    """Serve the process that started this one, by standard input and output."""
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    most_bytes, most_s = (int(limit) or None for limit in sys.argv[1:3])
    _serve(asked, answers, os.getppid(), most_bytes, most_s)


def _serve(
    asked: IO[bytes], answers: IO[bytes], parent: int, most_bytes: int | None, most_s: int | None
) -> NoReturn:
    global _is_apart
    _is_apart = True
    # What a library prints in breaking down is no line for a person, and standard output may be the pipe.
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    faulthandler.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the other end's to answer
    if resource is not None:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        if most_bytes is not None and sys.platform == "linux":
            most = psutil.Process().memory_info().data + most_bytes
            hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
            soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    threading.Thread(target=_end_with, args=(parent,), name=BETWEEN_FORKS, daemon=True).start()
    while (question := pickle.load(asked)) is not None:
        function, args, kwargs = question
        _clock(most_s)
        try:
            answer = (True, function(*args, **kwargs))
        except Exception as error:
            answer = (False, error)
        _clock(None)
        answers.write(_packed(answer))
        answers.flush()
    for tidy in AT_END:
        tidy()
    os._exit(0)


AT_END: list[Callable[[], object]] = []
"""What a process apart does before it ends."""


def _clock(most_s: int | None) -> None:
    if resource is not None:
        signal.setitimer(signal.ITIMER_PROF, most_s or 0)


def _packed(answer: tuple[bool, Any]) -> bytes:
    try:
        return pickle.dumps(answer)
    except MemoryError as error:
        return pickle.dumps((False, error))
    except Exception as error:  # an error that holds what cannot be sent
        return pickle.dumps((False, RuntimeError(f"{answer[1]!r} ({error!r})")))


def _end_with(parent: int) -> None:
    """Never outlive who asks: one that is killed says nothing."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


class Readers:
    """Up to ``most`` processes apart, for calls from any thread; they end when nobody called for ``IDLE_S``."""

    def __init__(self, most: int, **limits: Any) -> None:
        """``limits``: those of ``Apart``."""
        self._most, self._limits = most, limits
        self._forget()

    def _forget(self) -> None:
        """Nothing runs: the processes of the parent are not those of a fork."""
        self._owner = os.getpid()
        self._lock, self._room = threading.Lock(), threading.BoundedSemaphore(self._most)
        self._free: list[Apart] = []
        self._last_call = 0.0
        self._is_watched = False

    def begin(self, number: int) -> None:
        """Start so many processes now, while this one may fork."""
        self._free += [Apart(**self._limits) for _ in range(number - len(self._free))]

    def call(self, function: Callable[Args, Answer], *args: Args.args, **kwargs: Args.kwargs) -> Answer:
        """``function(*args)`` in a process apart; within one, here.

        Raises:
            DiedError: the process ended, or came to one of its limits; the next call has a fresh one.
        """
        if _is_apart:
            return function(*args, **kwargs)
        if self._owner != os.getpid():
            self._forget()
        with self._room:
            with self._lock:
                process = self._free.pop() if self._free else None
            if process is not None and not process.is_of_now:
                process.close()
                process = None
            if process is None:
                process = Apart(**self._limits)
            try:
                return process.call(function, *args, **kwargs)
            finally:
                if not process.is_over:
                    self._give_back(process)

    def _give_back(self, process: Apart) -> None:
        with self._lock:
            self._last_call = time.monotonic()
            self._free.append(process)
            if not self._is_watched:
                self._is_watched = True
                threading.Thread(target=self._watch, name=BETWEEN_FORKS, daemon=True).start()

    def _watch(self) -> None:
        while (left := self._last_call + IDLE_S - time.monotonic()) > 0:
            time.sleep(left)
        with between_forks():
            self.close()

    def close(self) -> None:
        """End the processes that are in no call."""
        with self._lock:
            free, self._free, self._is_watched = self._free, [], False
        for process in free:
            process.close()


_READERS = Readers(usable_cores())


def call(function: Callable[Args, Answer], *args: Args.args, **kwargs: Args.kwargs) -> Answer:
    """``function(*args)`` in one of the processes that read for this one; see ``Readers.call``.

    Raises:
        DiedError: the process ended, or came to one of its limits.
    """
    return _READERS.call(function, *args, **kwargs)


def is_apart() -> bool:
    """Return whether this process is one apart."""
    return _is_apart
