"""Kills and errors at each system call with which a command changes the home or writes a file.

``strace`` counts the calls of a command once; a trial then kills the process before one of them, or lets one fail
with what a full, broken or read-only disk answers. After this the home is whole, and the next command works.
"""

from __future__ import annotations

import functools
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from pathlib import Path

from qa.faults.trial import (
    NUM,
    SAID,
    FaultError,
    check_home,
    command,
    no_litter,
    pictures,
)

CALLS = (
    *("openat", "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "fallocate", "close"),
    *("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir", "mkdir", "flock"),
    *("chmod", "fchmod", "fchmodat", "lseek", "mmap"),
)
"""The last ones are counted for kills only; a call that fails is one of ``FAILING``."""
KILLING = frozenset(CALLS) - {"close", "lseek", "mmap"}
FAILING = {
    "write": ("ENOSPC", "EIO", "EDQUOT"),
    "pwrite64": ("ENOSPC", "EIO", "EDQUOT"),
    "fsync": ("EIO", "ENOSPC", "EDQUOT"),
    "fdatasync": ("EIO", "ENOSPC"),
    "ftruncate": ("ENOSPC", "EIO"),
    "fallocate": ("ENOSPC", "EDQUOT"),
    "rename": ("EIO", "EACCES", "EROFS", "ENOSPC"),
    "mkdir": ("ENOSPC", "EACCES", "EROFS", "EDQUOT"),
    "openat": ("EIO", "EACCES", "EMFILE", "ENFILE", "ENOSPC", "EROFS", "ENOMEM"),
    "unlink": ("EACCES", "EROFS", "EIO"),
    "flock": ("ENOLCK", "EINTR"),
}
TOLD = 6
"""The exit code of a command under strace that went well, but for files that it could not delete and names."""
LINE = re.compile(r"^(?:\d+ +)?(\w+)\(")


def works(place: Path) -> dict[str, list[str]]:
    """Commands with commit windows, by name; what they need lies below ``place``."""
    out, files = place / "out", place / "files"
    if not files.exists():
        files.mkdir()
        out.mkdir()
        pictures(place / "second", 4, shade=77)
        (files / "review.csv").write_text(
            "sample_id,review_decision\n" + "".join(f"{i},exclude\n" for i in range(4, 9))
        )
        cells = [f"{i},0.25,0.75" for i in range(NUM)]
        (files / "probs.csv").write_text("\n".join(["sample_id,cat,dog", *cells]) + "\n")
        for name in ("e.csv", "e.parquet", "r.html"):
            (out / name).write_text("of before")
    return {
        "import": [
            "import",
            str(place / "second"),
            "--name",
            "second",
            "--image-size",
            "8",
            "--workers",
            "1",
        ],
        "export": ["export", "first", "--out", str(out / "e.csv"), "--force"],
        "parquet": ["export", "first", "--out", str(out / "e.parquet"), "--force"],
        "tree": ["export", "first", "--out", str(out / "tree")],
        "report": ["report", "first", "--out", str(out / "r.html"), "--force"],
        "review": ["review", "first", "--apply", str(files / "review.csv"), "--reviewer", "bob"],
        "draw": ["verify", "first", "--draw", "3", "--out", str(out / "draw.csv")],
        "probs": ["audit", "first", "--pred-probs", str(files / "probs.csv"), "--resume"],
        "backup": ["backup", str(out / "all.tar")],
        "remove": ["remove", "first", "--yes"],
    }


def traced(arguments: list[str], *options: str, quiet: bool = True) -> int:
    """Run a command in a child of this process under strace; returns its code, ``TOLD`` or negative for a kill."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException), open(os.devnull, "w") as null, redirect_stderr(null):
            os.kill(os.getpid(), signal.SIGSTOP)
            code = command(*arguments)
            os._exit(code or (TOLD if "Not deleted: " in SAID[-1] else 0))
        os._exit(99)
    os.waitpid(child, os.WUNTRACED)
    tracer = subprocess.Popen(
        ["strace", "-f", "-qq", "-p", str(child), *options],
        stderr=subprocess.DEVNULL if quiet else None,
        stdout=subprocess.DEVNULL,
    )
    until = time.monotonic() + 120
    while f"TracerPid:\t{tracer.pid}" not in Path(f"/proc/{child}/status").read_text():
        if time.monotonic() > until or tracer.poll() is not None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise OSError("strace cannot follow a process here")
        time.sleep(0.002)
    os.kill(child, signal.SIGCONT)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    tracer.wait()
    return code


@functools.cache
def counted(work: str, template: str) -> Counter[str]:
    """How often the command makes each call; counted on a copy of the home, once."""
    place = Path(template)
    place.mkdir(parents=True, exist_ok=True)
    before = os.environ["AUDITOR_HOME"]
    shutil.copytree(before, place / "home")
    os.environ["AUDITOR_HOME"] = str(place / "home")
    log = place / "calls"
    traced(works(place)[work], "-e", f"trace={','.join(sorted(KILLING))}", "-o", str(log))
    os.environ["AUDITOR_HOME"] = before
    found = Counter(
        match[1] for match in map(LINE.match, log.read_text("utf-8", "replace").splitlines()) if match
    )
    shutil.rmtree(place)
    return found


def whole(place: Path, work: str, *, ended_well: bool) -> None:
    """What must be true after the trouble, whatever it was."""
    from auditor.ground.settings import settings
    from auditor.importing import staging

    out = place / "out"
    for name in ("e.csv", "e.parquet", "r.html"):
        data = (out / name).read_bytes()
        whole = {"e.csv": data.count(b"\n") == NUM + 1, "e.parquet": data[-4:] == b"PAR1"}
        if data != b"of before" and not whole.get(name, data.rstrip().endswith(b"</html>")):
            raise FaultError("wrong", f"half of {name}")
    staging.sweep()
    no_litter(settings().datasets)
    if command("status") != 0:
        raise FaultError("traceback", f"status after {work}")
    if work == "remove" and not _is_there("first"):
        left = [path.name for path in settings().datasets.iterdir()]
        if ended_well and left:
            raise FaultError("wrong", f"left of a removed dataset: {left}")
        return
    check_home()
    if work == "tree" and (out / "tree").exists():
        number = len(list((out / "tree").rglob("*.png")))
        if number != NUM - 2:
            raise FaultError("wrong", f"half a tree: {number}")
    if work == "backup" and (out / "all.tar").exists():
        os.environ["AUDITOR_HOME"] = str(place / "other")
        if command("restore", str(out / "all.tar")) != 0:
            raise FaultError("lost", "a backup that does not come back")
        check_home()
    elif command(*works(place)[work if work != "tree" else "export"]) not in (0, 1):
        raise FaultError("traceback", f"{work} again")
    if work != "backup":
        no_litter(out)


def _is_there(name: str) -> bool:
    from auditor.catalog import datasets, db

    with db.session() as session:
        return datasets.exists(session, name)


def _chosen(luck: random.Random, place: Path, calls: Callable[[str], bool]) -> tuple[str, str, int]:
    """A work, a call that it makes, and the how manieth."""
    work = luck.choice(sorted(works(place)))
    seen = counted(work, f"{tempfile.gettempdir()}/count-{os.getpid()}-{work}")
    windows = sorted(name for name in seen if calls(name))
    call = luck.choice(windows)
    return work, call, luck.randrange(1, seen[call] + 1)


def kills(luck: random.Random, place: Path) -> None:
    """A command killed before one of its system calls."""
    from auditor.catalog import db

    work, call, number = _chosen(luck, place, KILLING.__contains__)
    db.close_all()
    inject = f"inject={call}:signal=SIGKILL:when={number}"
    code = traced(works(place)[work], "-e", f"trace={call}", "-e", inject, "-o", os.devnull)
    if code not in (0, 1, TOLD, -signal.SIGKILL):
        raise FaultError("traceback", f"{work} at {call} {number}: {code}")
    whole(place, work, ended_well=code == 0)


def errors(luck: random.Random, place: Path) -> None:
    """A command one of whose system calls fails, once or from then on: a line, and the home is whole."""
    from auditor.catalog import db

    work, call, number = _chosen(luck, place, FAILING.__contains__)
    fault = luck.choice(FAILING[call])
    # No system interrupts a call for ever, and Python begins an interrupted one again.
    lasts = luck.random() < 0.4 and call != "openat" and fault != "EINTR"
    when = f"{number}+" if lasts else str(number)
    db.close_all()
    inject = f"inject={call}:error={fault}:when={when}"
    code = traced(works(place)[work], "-e", f"trace={call}", "-e", inject, "-o", os.devnull)
    if code not in (0, 1, TOLD):
        raise FaultError("traceback", f"{work} with {fault} at {call} {when}: {code}")
    whole(place, work, ended_well=code == 0)
