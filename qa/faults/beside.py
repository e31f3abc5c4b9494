"""A dataset that is removed while other processes of this machine work on it."""

from __future__ import annotations

import os
import random
import time
from contextlib import redirect_stderr, suppress
from pathlib import Path

from qa.faults.trial import FaultError, check_home, command, no_litter, pictures


def _works(luck: random.Random, place: Path) -> dict[str, list[list[str]]]:
    """By name: the commands of one process on the dataset ``second``."""
    source = str(pictures(place / "third", 8, shade=10))
    table = place / "review.csv"
    table.write_text("sample_id,review_decision\n" + "".join(f"{i},exclude\n" for i in range(24)))
    training = ["--set", "cross_entropy.epochs=2", "--set", "cross_entropy.network=mlp", "--map", "pca"]
    training += ["--backbone", "none", "--on", "processes:1"]
    small = ["--image-size", "8", "--workers", "1"]
    return {
        "audit": [["audit", "second", "--engines", "cross_entropy", *training]],
        "export": [["export", "second", "--out", str(place / f"{n}.csv")] for n in range(4)],
        "tree": [["export", "second", "--out", str(place / f"tree{n}")] for n in range(3)],
        "report": [["report", "second", "--out", str(place / f"{n}.html")] for n in range(3)],
        "review": [["review", "second", "--apply", str(table), "--reviewer", f"r{n}"] for n in range(4)],
        "draw": [["verify", "second", "--draw", "3", "--out", str(place / f"d{n}.csv")] for n in range(4)],
        "status": [["status", "second"], ["status"], ["doctor"], ["status", "--json"]],
        "backup": [["backup", str(place / "all.tar")]],
        "import": [["import", source, "--name", luck.choice(["second", "third"]), *small]],
        "move": [["move", "second", str(place / "moved")]],
        "remove": [["remove", "second", "--yes"]],
    }


def removals(luck: random.Random, place: Path) -> None:
    """Each process is done or refused with a line; the dataset is gone as a whole; another of its name is whole."""
    from auditor.catalog import datasets, db
    from auditor.ground.settings import settings
    from auditor.importing.imports import import_dataset

    import_dataset(pictures(place / "second", 24, shade=30), name="second", image_size=8, workers=1)
    pictures(place / "moved", 24, shade=30)
    works = _works(luck, place)
    chosen = luck.sample(sorted(works), luck.choice([1, 2, 3]))
    db.close_all()
    children = [_apart(works[name], place / f"fault-{name}") for name in chosen]
    time.sleep(luck.uniform(0.0, 0.5) * (3 if "audit" in chosen else 1))
    children.append(_apart([["remove", "second", "--yes"]], place / "fault-removal"))
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(codes):
        told = " ".join(file.read_text() for file in sorted(place.glob("fault-*")))
        raise FaultError("traceback", f"{chosen}: {codes} {told}")
    with db.session() as session:
        numbers = {str(one.id) for one in datasets.list_all(session)}
    left = {path.name for path in settings().datasets.iterdir() if not path.name.startswith(".")}
    if left != numbers:
        raise FaultError("wrong", f"{chosen}: datasets {numbers}, folders {left}")
    no_litter(settings().datasets)
    check_home()


def _apart(commands: list[list[str]], fault: Path) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        with suppress(BaseException), open(os.devnull, "w") as null, redirect_stderr(null):
            try:
                for arguments in commands:
                    command(*arguments)
                code = 0
            except FaultError as error:
                fault.write_text(f"{error.kind} {error}")
        os._exit(code)
    return child
