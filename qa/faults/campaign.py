"""A campaign of faults: ``python -m qa.faults.campaign --minutes 60`` (``make faults``).

Every trial runs in a process of its own, forked from one that has everything loaded, on a copy of a small home. It
has a number; seed, family and number alone decide what happens in it. What came of each is kept in
``build/faults.jsonl`` with the code it ran on, so a campaign goes on where it was stopped, and
``benchmarks/results/faults.md`` counts the trials of one seed. Another seed tries other inputs.

A trial ends well, or as one of ``lost`` (a decision or a dataset), ``wrong`` (data of something else, a half file,
litter that stays), ``traceback`` (what is no line for a person) or ``hang``.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from qa.faults import (
    beside,
    containers,
    doors,
    foreign,
    generated,
    layouts,
    newest,
    pages,
    postgres,
    small_disks,
    system_calls,
)
from qa.faults.trial import (
    AT_END,
    NUM,
    ROOT,
    SAID,
    FaultError,
    Trial,
    changed_bytes,
    check_home,
    command,
    ends_with_parent,
    killed,
    make_home,
    no_litter,
    one_line,
    pictures,
    temporary,
)

LOG = ROOT / "build" / "faults.jsonl"
TABLE = ROOT / "benchmarks" / "results" / "faults.md"
WRONG = ("lost", "wrong", "traceback", "hang")
"""How a trial ends that did not end well."""
MOST_S = 120.0
"""After this a trial hangs; on a busy machine the app alone takes half of it to start."""


def _do(work: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    work(*arguments, **options)


def kill_import(luck: random.Random, place: Path) -> None:
    """An import that is killed at any audited call: a whole dataset or none, no litter, the other one untouched."""
    from auditor.ground.settings import settings
    from auditor.importing import staging
    from auditor.importing.imports import import_dataset

    source = pictures(place / "second", 6, shade=99)
    after = luck.randrange(1, 900)
    killed(lambda: _do(import_dataset, source, name="second", image_size=8, workers=1), after)
    staging.sweep()
    no_litter(settings().datasets)
    check_home()
    import_dataset(source, name="again", image_size=8, workers=1)
    check_home()


def go_on_importing(luck: random.Random, place: Path) -> None:
    """An import that saves after each chunk is killed up to three times: the next one ends as if never killed."""
    from auditor.catalog import datasets, db
    from auditor.ground.settings import settings
    from auditor.importing import building, imports, journal, pool
    from auditor.pictures.cache import image_cache

    source = pictures(place / "second", 30, shade=99)
    files = sorted(file for file in source.rglob("*") if file.is_file())
    for file in luck.sample(files, 3):
        file.write_bytes(file.read_bytes()[: luck.choice([0, 40, 60])])
    journal.SAVE_EVERY_S, building.CHUNK, pool.chunks.__defaults__ = 0.0, 4, (4,)

    def work(name: str) -> None:
        imports.import_dataset(source, name=name, image_size=8, workers=1, skip_bad=True)

    for _ in range(luck.randrange(1, 4)):
        if not killed(lambda: work("second"), luck.randrange(1, 1_400)):
            break
        check_home()
        with db.session() as session:
            if datasets.exists(session, "second"):  # it was killed after its last step
                break
        if luck.random() < 0.3:
            changed = luck.choice(files)
            changed.write_bytes(luck.choice(files).read_bytes())
    with db.session() as session:
        is_done = datasets.exists(session, "second")
    if not is_done:
        work("second")
        work("whole")
        with db.session() as session:
            found = [datasets.get(session, name) for name in ("second", "whole")]
            rows = [
                [
                    (one.filepath, one.content_hash, one.perceptual_hash, one.duplicate_group)
                    for one in datasets.iterate_samples(session, dataset.id)
                ]
                for dataset in found
            ]
        pixels = [image_cache(one).tobytes() for one in found]
        if rows[0] != rows[1] or pixels[0] != pixels[1]:
            raise FaultError("wrong", "an import that went on is not the one that was never killed")
        if found[0].import_report["skipped"] != found[1].import_report["skipped"]:
            raise FaultError("wrong", "an import that went on names other bad rows")
    no_litter(settings().datasets)
    check_home()


def kill_export(luck: random.Random, place: Path) -> None:
    """An export that is killed: the earlier file or the new one, whole; the next export leaves nothing beside."""
    from auditor.outputs import export

    out = place / "out" / luck.choice(["a.csv", "a.parquet", "a.tsv"])
    export.export_table("first", out)
    before = out.read_bytes()
    killed(lambda: _do(export.export_table, "first", out, force=True), luck.randrange(1, 500))
    if out.read_bytes() != before and out.suffix != ".parquet":
        raise FaultError("wrong", "half an export")
    export.export_table("first", out.with_name("b.csv"))
    no_litter(out.parent)
    table = pd.read_parquet(out) if out.suffix == ".parquet" else pd.read_csv(out, sep=None, engine="python")
    if len(table) != NUM:
        raise FaultError("wrong", f"{len(table)} rows")


def kill_review(luck: random.Random, place: Path) -> None:
    """Verdicts that were acknowledged before a kill are there."""
    from auditor.review import decisions

    told = place / "told"

    def decide() -> None:
        with told.open("a") as file:
            for sample in range(3, NUM):
                decisions.decide(1, sample, "exclude", reviewer="bob")
                file.write(f"{sample}\n")
                file.flush()

    killed(decide, luck.randrange(1, 600))
    said = {int(line) for line in told.read_text().split()} if told.exists() else set()
    check_home({1, 2} | said)


def kill_backup(luck: random.Random, place: Path) -> None:
    """A backup that is killed is no file; one that is killed in coming back can come back elsewhere."""
    from auditor.catalog import backups, db

    out = place / "backup" / "all.tar"
    if luck.random() < 0.5:
        killed(lambda: _do(backups.backup, out), luck.randrange(1, 900))
        if out.exists():
            os.environ["AUDITOR_HOME"] = str(place / "other")
            backups.restore(out)
    else:
        backups.backup(out)
        os.environ["AUDITOR_HOME"] = str(place / "other")
        killed(lambda: _do(backups.restore, out), luck.randrange(1, 900))
        db.close_all()
        os.environ["AUDITOR_HOME"] = str(place / "third")
        backups.restore(out)
    check_home()


# Bad input


def cut_source(luck: random.Random, place: Path) -> None:
    """A source with bytes cut, changed or doubled: imported whole or refused with a line, no litter."""
    from auditor.ground.settings import settings
    from auditor.importing.imports import import_dataset

    kind = luck.choice(["png", "jpg", "gif", "palette", "csv", "zip", "parquet"])
    source = _source_of(kind, place, luck)
    with one_line():
        import_dataset(source, name="x", workers=1, skip_bad=luck.random() < 0.3)
    no_litter(settings().datasets)


def _source_of(kind: str, place: Path, luck: random.Random) -> Path:
    folder = pictures(place / "set", 6)
    if kind == "csv":
        lines = ["filepath,label,trusted,split"]
        lines += [f"{path.relative_to(folder)},{path.parent.name},1,train" for path in folder.rglob("*.png")]
        source = folder / "t.csv"
        source.write_bytes(changed_bytes("\n".join(lines).encode(), luck))
        return source
    if kind == "zip":
        source = place / "set.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for path in folder.rglob("*.png"):
                archive.write(path, str(path.relative_to(folder)))
        source.write_bytes(changed_bytes(source.read_bytes(), luck))
        return source
    if kind == "parquet":
        source = place / "set.parquet"
        rows = [(path.read_bytes(), path.parent.name) for path in folder.rglob("*.png")]
        pd.DataFrame(rows, columns=["image", "label"]).to_parquet(source)
        source.write_bytes(changed_bytes(source.read_bytes(), luck))
        return source
    image = Image.effect_noise((16, 16), 40)
    image = image.convert("P") if kind in ("gif", "palette") else image
    target = folder / "cat" / f"bad.{'png' if kind == 'palette' else kind}"
    image.save(target)
    target.write_bytes(changed_bytes(target.read_bytes(), luck))
    return folder


ODD = [
    *(
        "",
        " ",
        "0",
        "-1",
        "1e999",
        "nan",
        "inf",
        "²",
        "9" * 40,
        "\x1b[31m",
        "=1+1",
        "\n=1",
        "../..",
        "/dev/null",
    ),
    *(
        "~nouser/x",
        "x" * 5_000,
        "a,a",
        "umn,umn",
        "None",
        "1.5",
        "2026-13-01",
        "::",
        "auto",
        "é\u202e",
        "#",
        "{",
        "[[",
    ),
]


def odd_options(luck: random.Random, place: Path) -> None:
    """Commands with odd values: exit code 0, 1 or 2 and a line."""
    source = str(Path(os.environ["AUDITOR_HOME"]).parent / "source")
    odd = [*ODD, str(place / "nothing"), source]
    commands: list[list[str]] = [
        ["import", "{}", "--name", "x"],
        ["import", source, "--name", "{}", "--image-size", "8", "--workers", "1"],
        ["import", source, "--name", "x", "--image-size", "{}", "--workers", "1"],
        ["import", source, "--name", "x", "--root", "{}", "--workers", "1"],
        ["import", source, "--name", "x", "--label-column", "{}", "--workers", "1"],
        ["status", "{}"],
        ["suspects", "first", "--top", "{}"],
        ["suspects", "first", "--split", "{}"],
        ["suspects", "{}", "--json"],
        ["suspects", "first", "--audit", "{}"],
        ["verify", "first", "--draw", "{}", "--out", str(place / "d.csv")],
        ["verify", "first", "--draw", "3", "--seed", "{}", "--out", str(place / "d.csv")],
        ["verify", "first", "--draw", "3", "--out", "{}"],
        ["verify", "first", "--apply", "{}"],
        ["review", "first", "--apply", "{}"],
        ["export", "first", "--out", str(place / "e.csv"), "--max-fdr", "{}"],
        ["export", "first", "--out", str(place / "e.csv"), "--policy", "{}"],
        ["export", "{}", "--out", str(place / "e.csv")],
        ["audit", "first", "--engines", "{}", "--detach", "--preset", "nothing"],
        ["audit", "first", "--pred-probs", "{}", "--engines", "nothing"],
        ["audit", "first", "--features", "{}", "--engines", "nothing"],
        ["audit", "first", "--set", "{}", "--engines", "nothing"],
        ["audit", "first", "--seed", "{}", "--engines", "nothing"],
        ["move", "first", "{}"],
        ["remove", "{}", "--yes"],
        ["restore", "{}"],
        ["job", "{}"],
    ]
    value = luck.choice(odd)
    os.chdir(place)
    command(*[part.replace("{}", value) for part in luck.choice(commands)])


def odd_file(luck: random.Random, place: Path) -> None:
    """Decisions, verdicts and predictions from changed files: taken or refused with a line."""
    from auditor.results import own_models
    from auditor.review import decision_files, draw_files

    kind = luck.choice(["review", "verify", "probs.csv", "probs.npy"])
    file = place / ("f.npy" if kind.endswith("npy") else "f.csv")
    if kind == "review":
        cells = [
            f"{i},{luck.choice(['keep', 'exclude', 'relabel', ''])},cat,2026-01-01T00:00:00+00:00"
            for i in range(9)
        ]
        file.write_bytes(
            changed_bytes(
                "\n".join(["sample_id,review_decision,cleaned_label,reviewed_at", *cells]).encode(), luck
            )
        )
        with one_line():
            decision_files.apply_file("first", file, reviewer="bob")
    elif kind == "verify":
        file.unlink(missing_ok=True)
        draw_files.draw_csv("first", 2, file)
        file.write_bytes(changed_bytes(file.read_bytes().replace(b",\n", b",cat\n"), luck))
        with one_line():
            draw_files.apply_csv("first", file, reviewer="bob")
    else:
        if kind.endswith("npy"):
            np.save(file, np.full((NUM, 2), 0.5))
        else:
            file.write_text("\n".join(["sample_id,cat,dog", *(f"{i},0.25,0.75" for i in range(NUM))]))
        file.write_bytes(changed_bytes(file.read_bytes(), luck))
        with one_line():
            own_models.add("first", file)
    check_home()


def odd_body(luck: random.Random, place: Path) -> None:
    """Changed bodies to every route: 200, 400 or 404 and a line."""
    from tests.faults.test_bodies import PATHS, post

    verdict = {"token": "t", "dataset": 1, "draw": 1, "sample": 3, "decision": "relabel", "label": 1}
    verdict |= {"reviewer": "ann", "labels": [0, 1], "audit": 1, "seen": 1}
    where = {"given": 0, "split": "train", "issues": True, "agreement": 1, "engine": "cross_entropy"}
    where |= {"region": {"engine": "cross_entropy", "polygon": [[0, 0], [1, 0], [1, 1]]}, "max_rank": 5}
    body: Any = {"audit": 1, "sample": 3, "draw": 1, "reviewer": "ann", "verdicts": [verdict], "where": where}
    body |= {"after": 2, "limit": 5}
    for _ in range(luck.randrange(1, 4)):
        body = _mutated(body, luck)
    path = luck.choice(PATHS)
    answer = post(path, json.dumps(body).encode("utf-8", "surrogatepass"))
    if answer.status_code not in (200, 400) or "\n" in answer.text:
        raise FaultError("traceback", f"{path}: {answer.status_code} {answer.text[:200]} {body}")


ODD_VALUES: list[Any] = [
    *(None, True, 1.5, -1, 2**31, 2**63, 10**30, float("nan"), float("inf"), "", "x", "1", "a\0b", "\ud800"),
    *([], {}, [[]], [None], "9" * 5_000, {"x": 1}, [1, "2"]),
]


def _mutated(value: Any, luck: random.Random) -> Any:
    """One leaf, or one whole part, is another value, or missing."""
    if isinstance(value, dict) and value and luck.random() < 0.85:
        key = luck.choice(sorted(value))
        if luck.random() < 0.1:
            return {name: inner for name, inner in value.items() if name != key}
        return value | {key: _mutated(value[key], luck)}
    if isinstance(value, list) and value and luck.random() < 0.7:
        at = luck.randrange(len(value))
        return [*value[:at], _mutated(value[at], luck), *value[at + 1 :]]
    return luck.choice(ODD_VALUES)


# Damage


def damage(luck: random.Random, place: Path) -> None:
    """One file of the home is gone, empty, cut, garbage or swapped: every command says so with a line, and
    ``status`` and ``remove`` work. Pixels that were changed inside a whole image cache are not detected."""
    home = place / "home"
    files = sorted(
        path for path in home.rglob("*") if path.is_file() and not path.name.startswith("catalog.db-")
    )
    victim = luck.choice(files)
    way = luck.choice(["gone", "empty", "cut", "garbage"])
    data = victim.read_bytes()
    if way == "gone":
        victim.unlink()
    else:
        victim.write_bytes({"empty": b"", "cut": data[: len(data) // 2], "garbage": luck.randbytes(99)}[way])
    for arguments in (
        ["suspects", "first"],
        ["export", "first", "--out", str(place / "o.csv")],
        ["report", "first", "--out", str(place / "o.html")],
        ["audit", "first", "--resume"],
    ):
        command(*arguments)
    status = command("status")
    if victim.name != "catalog.db":
        if status != 0:
            raise FaultError("traceback", f"status does not work without {victim.name}")
        if command("remove", "first", "--yes") != 0:
            raise FaultError("traceback", f"remove does not work without {victim.name}")


def bad_cell(luck: random.Random, place: Path) -> None:
    """One cell of the catalog holds something else: a line, and ``status`` and ``remove`` work."""
    from auditor.catalog import db

    with db.session() as session:
        connection = session.connection()
        connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
        table = luck.choice(["dataset", "audit", "sample", "review", "score", "engine_run"])
        names = [row[1] for row in connection.exec_driver_sql(f"PRAGMA table_info({table})")]
        column = luck.choice(
            [name for name in names if name not in ("name", "id", "dataset_id", "audit_id", "uuid")]
        )
        value = luck.choice(["[", "{", "x", "", "99999-01-01", "[1"])
        with suppress(Exception):
            connection.exec_driver_sql(f"UPDATE {table} SET {column} = ?", (value,))
    db.close_all()
    for arguments in (["suspects", "first"], ["export", "first", "--out", "/dev/full"]):
        command(*arguments)
    if command("status") or command("remove", "first", "--yes"):
        raise FaultError("traceback", f"{table}.{column} = {value!r}: {SAID[-1].strip()}")


def swapped(luck: random.Random, place: Path) -> None:
    """Folders and catalogs of two times or homes: never another set's pictures."""
    from auditor.catalog import datasets, db
    from auditor.importing.imports import import_dataset
    from auditor.pictures import cache

    home = place / "home"
    import_dataset(pictures(place / "second", NUM, shade=90), name="second", image_size=8, workers=1)
    with db.session() as session:
        session.connection().exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        right = {one.name: np.array(cache.image_cache(one)) for one in datasets.list_all(session)}
    db.close_all()
    way = luck.randrange(3)
    if way == 0:  # folders change places
        (home / "datasets" / "1").rename(home / "datasets" / "x")
        (home / "datasets" / "2").rename(home / "datasets" / "1")
        (home / "datasets" / "x").rename(home / "datasets" / "2")
    elif way == 1:  # the catalog of before the second import
        for file in home.glob("catalog.db*"):
            file.unlink()
        shutil.copy(place / "home.db", home / "catalog.db")
        import_dataset(pictures(place / "third", NUM, shade=200), name="third", image_size=8, workers=1)
        right = {"first": right["first"]}
    else:  # the folders of another home
        shutil.rmtree(home / "datasets" / "2")
        shutil.copytree(home / "datasets" / "1", home / "datasets" / "2")
    with db.session() as session:
        for name, wanted in right.items():
            with one_line():
                if not np.array_equal(cache.image_cache(datasets.get(session, name)), wanted):
                    raise FaultError("wrong", f"way {way}: {name} shows another set")


# Several at once


def writers(luck: random.Random, place: Path) -> None:
    """Four processes decide at once; every acknowledged verdict is there."""
    from auditor.catalog import db, reviews
    from auditor.review import decisions

    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            code = 1
            with suppress(BaseException):
                for sample in range(NUM):
                    decisions.decide(1, sample, luck.choice(["exclude", "keep"]), reviewer=f"w{number}")
                code = 0
            os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if any(codes):
        raise FaultError("lost", f"writers ended with {codes}")
    with db.session() as session:
        log = reviews.log(session, 1)
        said = {(row.reviewer, row.sample_id) for row in log if row.reviewer.startswith("w")}
    if len(said) != 4 * NUM:
        raise FaultError("lost", f"{4 * NUM - len(said)} verdicts")
    check_home()


def imports_at_once(luck: random.Random, place: Path) -> None:
    """Three imports in one home, each seen by the others as one of another container; some are killed."""
    from auditor.catalog import leases
    from auditor.ground.settings import settings
    from auditor.importing import staging

    children = []
    for number in range(3):
        source = pictures(place / f"s{number}", 4, shade=40 * number)
        after = luck.randrange(1, 1_200) if luck.random() < 0.4 else 0
        child = os.fork()
        if child == 0:
            os._exit(_import_elsewhere(number, source, after))
        children.append(child)
    codes = {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children}
    if codes != {0}:
        raise FaultError("lost", f"imports ended with {codes}")
    check_home()
    leases.SILENCE_S = -1.0
    staging.sweep()
    no_litter(settings().datasets)
    check_home()


def _import_elsewhere(number: int, source: Path, after: int) -> int:
    """Import in this process as in a container of its own; ``after`` calls it is killed, never where 0."""
    from auditor.catalog import leases
    from auditor.importing.imports import import_dataset

    leases.this_host = lambda: f"container {number} of the campaign"  # type: ignore[assignment]

    def work() -> None:
        import_dataset(source, name=f"n{number}", image_size=8, workers=1)

    with suppress(BaseException):
        if after:
            killed(work, after)
        else:
            work()
        return 0
    return 1


BATCHES = {
    "source with changed bytes": 50,
    "command with odd values": 100,
    "decisions, verdicts, predictions with changed bytes": 10,
    "route with a changed body": 250,
    "six writers at once on PostgreSQL": 15,
    "odd request at the app's port": 250,
    "page of another site in Chromium": 20,
    "names that are scripts in Chromium": 10,
    "generated options of every command": 20,
    "generated source": 10,
    "layout of several files, some damaged": 10,
    "generated body of a route (schemathesis)": 250,
    "generated call of the Python API": 20,
    "route on masks and numbers": 260,
    "generated options on masks and numbers": 30,
    "table of numbers": 10,
    "masks of other tools": 15,
    "own features, probabilities, weights": 20,
    "environment that holds nonsense": 10,
    "command on PostgreSQL that is cut off": 10,
    "command on PostgreSQL killed at a system call": 10,
    "two real containers on PostgreSQL": 5,
    "foreign file of any format with changed bytes": 245,
    "rows that moved at the source": 20,
    "link in place of a file, every other moment": 10,
    "hostile web server": 20,
    "homes of odd names": 10,
}
"""Trials that spoil nothing for the next one share a process and a home."""
FAMILIES: dict[str, tuple[Trial, int]] = {
    "import killed at a call": (kill_import, 1_500),
    "import killed again and again": (go_on_importing, 600),
    "export killed at a call": (kill_export, 600),
    "review killed at a call": (kill_review, 600),
    "backup, restore killed at a call": (kill_backup, 400),
    "source with changed bytes": (cut_source, 2_000),
    "command with odd values": (odd_options, 1_500),
    "decisions, verdicts, predictions with changed bytes": (odd_file, 1_500),
    "route with a changed body": (odd_body, 2_500),
    "file of the home damaged": (damage, 600),
    "cell of the catalog damaged": (bad_cell, 400),
    "catalog and folders of different times": (swapped, 300),
    "four writers at once": (writers, 200),
    "imports in three containers at once": (imports_at_once, 200),
    "generated options of every command": (generated.options, 2_000),
    "generated source": (generated.sources, 2_000),
    "layout of several files, some damaged": (layouts.layouts, 1_500),
    "generated body of a route (schemathesis)": (generated.routes, 2_000),
    "generated call of the Python API": (generated.python_api, 1_500),
    "table of numbers": (newest.numbers, 1_000),
    "masks of other tools": (newest.masks, 1_000),
    "own features, probabilities, weights": (newest.own_files, 1_500),
    "environment that holds nonsense": (newest.environment, 600),
    "foreign file of any format with changed bytes": (foreign.mutations, 3_920),
    "rows that moved at the source": (foreign.moved, 600),
    "link in place of a file, every other moment": (foreign.links, 300),
    "hostile web server": (foreign.web, 400),
    "homes of odd names": (foreign.homes, 200),
    "clock that jumps": (foreign.clocks, 400),
    "dataset removed beside work on it": (beside.removals, 300),
    "route on masks and numbers": (newest.routes, 1_500),
    "generated options on masks and numbers": (newest.options, 1_000),
    "command killed at a system call": (system_calls.kills, 1_000),
    "command with a system call that fails": (system_calls.errors, 1_000),
    "command on a full disk": (small_disks.full, 500),
    "commands on a read-only home": (small_disks.read_only, 100),
    "imports in two real containers": (containers.imports, 150),
    "commit window of one of two real containers": (containers.commits, 150),
    "audit that another container goes on with": (containers.audits, 60),
    "removal beside another container's work": (containers.removals, 80),
    "six writers at once on PostgreSQL": (postgres.writers, 150),
    "command on PostgreSQL that is cut off": (postgres.cuts, 300),
    "command on PostgreSQL killed at a system call": (postgres.calls_killed, 300),
    "two real containers on PostgreSQL": (postgres.two_containers, 200),
    "odd request at the app's port": (doors.knocks, 1_500),
    "page of another site in Chromium": (pages.visits, 100),
    "names that are scripts in Chromium": (pages.scripts, 60),
}
"""By name: the trial and how many make a whole campaign."""


def lacking() -> dict[str, str]:
    """Families that cannot run here, each with what is missing."""
    no_root = "" if os.geteuid() == 0 and sys.platform == "linux" else "Linux and the rights of root"
    no_strace = "" if shutil.which("strace") else "strace"
    no_server = "" if postgres.PROGRAMS else "PostgreSQL"
    no_browser = "" if pages.found() else "Chromium"
    needs = {
        "command killed at a system call": no_strace,
        "command with a system call that fails": no_strace,
        "command on a full disk": no_root,
        "commands on a read-only home": no_root,
        "imports in two real containers": no_root,
        "commit window of one of two real containers": no_root,
        "audit that another container goes on with": no_root,
        "removal beside another container's work": no_root,
        "six writers at once on PostgreSQL": no_server,
        "command on PostgreSQL that is cut off": no_server,
        "command on PostgreSQL killed at a system call": no_server or no_strace,
        "two real containers on PostgreSQL": no_server or no_root,
        "page of another site in Chromium": no_browser,
        "names that are scripts in Chromium": no_browser,
    }
    return {name: missing for name, missing in needs.items() if missing}


QUICK = list(FAMILIES)[:20]
"""What the tests run a little of; the others start servers, mount disks or trace processes."""


def run_trials(name: str, numbers: Sequence[int], template: Path, seed: int = 0) -> list[tuple[str, str]]:
    """(``ok`` or how it went wrong, text) of each trial, all in one process with a time limit a trial."""
    reader, writer = os.pipe()
    found: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        place = Path(folder).resolve()
        shutil.copytree(template, place, dirs_exist_ok=True)
        child = os.fork()
        if child == 0:
            os.setsid()
            ends_with_parent()
            for sign in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(sign, signal.SIG_DFL)
            os.close(reader)
            with open(os.devnull, "w") as null:
                os.dup2(null.fileno(), 2)
            os.environ["AUDITOR_HOME"] = str(place / "home")
            _move_source(template, place)
            for number in numbers:
                work = place / f"t{number}" if len(numbers) > 1 else place
                outcome = _one_trial(name, f"{seed} {name} {number}", place, work)
                os.write(writer, (json.dumps(outcome) + "\n").encode())
            for end in reversed(AT_END):
                with suppress(Exception):
                    end()
            os._exit(0)
        os.close(writer)
        try:
            with os.fdopen(reader, "rb", buffering=0) as lines:
                text = b""
                while len(found) < len(numbers):
                    ready, _, _ = select.select([lines], [], [], MOST_S)
                    more = lines.read(65_536) if ready else b""
                    if not more:
                        found.append(
                            ("traceback", "the process died") if ready else ("hang", f"over {MOST_S:.0f} s")
                        )
                        break
                    *whole, text = (text + more).split(b"\n")
                    found += [(kind, what) for kind, what in map(json.loads, whole)]
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return found


def _one_trial(name: str, luck: str, place: Path, work: Path) -> tuple[str, str]:
    work.mkdir(exist_ok=True)
    try:
        FAMILIES[name][0](random.Random(luck), work)
    except FaultError as error:
        return error.kind, str(error)[:600]
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} at {Path(last.filename).name}:{last.lineno}"
        return "traceback", text[:600]
    return "ok", ""


def _move_source(template: Path, place: Path) -> None:
    """The copy's images lie in the copy."""
    from auditor.catalog import db

    with db.session() as session:
        session.connection().exec_driver_sql(
            "UPDATE dataset SET root = replace(root, ?, ?)", (str(template), str(place))
        )
    db.close_all()


def campaign(
    minutes: float,
    families: list[str],
    log: Path,
    *,
    seed: int = 0,
    most: int | None = None,
    again: bool = False,
) -> Counter[tuple[str, str]]:
    """Run trials, family after family in turns, until all are done or the time is up; returns the seed's counts.

    ``most``: trials of each family, instead of the whole campaign. ``again``: first those that went wrong before.
    """
    on = {"seed": seed, "date": datetime.now(UTC).date().isoformat(), "commit": _commit()}
    _load_everything()
    for name, missing in lacking().items():
        print(f"Left out: {name}; it needs {missing}.")
    families = [name for name in families if name not in lacking()]
    log.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="faults-home-") as folder, log.open("a") as file:
        template = Path(folder).resolve()
        child = os.fork()  # no connection of this process must be shared with trials
        if child == 0:
            make_home(template)
            shutil.copy(template / "home" / "catalog.db", template / "home.db")
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            raise SystemExit("the small home could not be made")

        def run(name: str, numbers: Sequence[int]) -> None:
            for number, (outcome, text) in zip(
                numbers, run_trials(name, numbers, template, seed), strict=False
            ):
                row = {"family": name, "number": number, "outcome": outcome, "text": text} | on
                file.write(json.dumps(row) + "\n")
            file.flush()

        wrong = [key for key, row in _last(log, seed).items() if again and row["outcome"] != "ok"]
        for name in families:
            numbers = [number for family, number in wrong if family == name]
            for start in range(0, len(numbers), BATCHES.get(name, 1)):
                if time.monotonic() < until:
                    run(name, numbers[start : start + BATCHES.get(name, 1)])
        while time.monotonic() < until:
            done, _ = _read(log, seed)
            ends = {one: FAMILIES[one][1] if most is None else most for one in families}
            waiting = {one: ends[one] - done[one] for one in families if done[one] < ends[one]}
            if not waiting:
                break
            # The family that is furthest from its end is next.
            name = max(waiting, key=lambda one: waiting[one] / FAMILIES[one][1])
            first = done[name]
            run(name, range(first, first + min(BATCHES.get(name, 1), waiting[name])))
    return _read(log, seed)[1]


def _load_everything() -> None:
    """What trials need is imported once, before the first fork."""
    import datasets  # noqa: F401
    import fsspec.implementations.http  # noqa: F401
    import timm  # noqa: F401
    from tqdm import tqdm

    import app.server.routes  # noqa: F401
    import auditor.__main__
    import auditor.cli.output
    import auditor.experiments.before_after
    import auditor.fiftyone_bridge
    import auditor.outputs.report  # noqa: F401
    from auditor.bridges import engine_bridge

    engine_bridge.engine_choices()
    tqdm.monitor_interval = 0  # its thread would make every process apart of a trial start anew
    gc.freeze()


def _commit() -> str:
    """The code that runs, ``+`` where it was changed since; empty outside a repository."""
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def _read(log: Path, seed: int) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """How many trials of each family were done, and how each ended the last time, counted."""
    last = _last(log, seed)
    done = Counter(family for family, _ in last)
    return done, Counter((family, row["outcome"]) for (family, _), row in last.items())


def _rows(log: Path, seed: int) -> list[dict[str, Any]]:
    rows = []
    for line in log.read_text().splitlines() if log.exists() else []:
        with suppress(ValueError):  # cut off by a kill
            rows.append(json.loads(line))
    return [row for row in rows if row.get("seed") == seed]


def _last(log: Path, seed: int) -> dict[tuple[str, int], dict[str, Any]]:
    """What came of each trial the last time, by family and number."""
    return {(row["family"], row["number"]): row for row in _rows(log, seed)}


def counted(log: Path, seed: int) -> dict[str, Any]:
    """The counts of one seed: what the page shows, for programs."""
    last = _last(log, seed)
    rows: list[dict[str, Any]] = []
    for name in FAMILIES:
        ran = [row for (family, _), row in last.items() if family == name]
        ended = Counter(row["outcome"] for row in ran)
        counts = {kind: ended[kind] for kind in WRONG}
        on = {"date": max((row["date"] for row in ran), default="")}
        on["commits"] = " ".join(dict.fromkeys(row["commit"] for row in ran))
        rows.append({"family": name, "trials": len(ran)} | counts | on)
    return {"seed": seed, "trials": len(last), "families": rows}


def written(log: Path, seed: int) -> str:
    """The table of counts of one seed as Markdown, with what went wrong below it."""
    last = _last(log, seed)
    counts = counted(log, seed)
    lines = ["# Faults", "", "`make faults` goes on with the campaign and writes this page.", ""]
    lines += [f"| family | trials | {' | '.join(WRONG)} | last on | with the code of |"]
    lines += ["| --- |" + " ---: |" * 5 + " --- | --- |"]
    for row in counts["families"]:
        cells = [f"{row['trials']:,}", *(str(row[kind]) for kind in WRONG), row["date"], row["commits"]]
        lines.append(f"| {row['family']} | {' | '.join(cells)} |")
    sums = [str(sum(row[kind] for row in counts["families"])) for kind in WRONG]
    lines.append(f"| all | {counts['trials']:,} | {' | '.join(sums)} | | |")
    wrong = [
        f"- {family}, number {number}, {row['outcome']}: {' '.join(row['text'].split())[:160]}"
        for (family, number), row in sorted(last.items())
        if row["outcome"] != "ok"
    ]
    lines += ["", "What went wrong:", "", *wrong[:40]] if wrong else []
    ever_wrong = {(row["family"], row["number"]) for row in _rows(log, seed) if row["outcome"] != "ok"}
    mended = sum(last[key]["outcome"] == "ok" for key in ever_wrong)
    if mended:
        lines += [
            "",
            f"{mended} of these trials went wrong at first and ended well when they were run again.",
        ]
    lines += [
        "",
        f'These are the trials of seed {seed} (`FAULTS_ARGS="--seed {seed}"`); another seed tries other inputs.',
        "A trial of a foreign file changes one to four bytes of its first or last kilobyte, or of a Parquet's",
        "footer; one of links reads 100 times beside an attacker; one of the Python API makes six calls, one of",
        "writers 96 to 288 verdicts. Connections that leave the",
        "machine are counted by `tests/faults/test_offline.py`, in a network of its own.",
        "",
        "Not covered: bytes changed inside a whole image cache or array (nothing detects them), and power cuts",
        "(kills leave what the system has taken).",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run or go on with the campaign."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60, help="stop after this time")
    parser.add_argument("--family", action="append", choices=list(FAMILIES), help="only these")
    parser.add_argument("--most", type=int, help="trials of each family; default: the whole campaign")
    parser.add_argument("--seed", type=int, default=0, help="another seed tries other inputs")
    parser.add_argument("--again", action="store_true", help="first run again what went wrong")
    parser.add_argument("--log", type=Path, default=LOG)
    parser.add_argument("--table", type=Path, default=TABLE)
    chosen = parser.parse_args()
    from auditor.catalog import datasets

    datasets.ROWS_A_STATEMENT = 7  # so that imports of a few images write their rows in parts
    with temporary():
        counts = campaign(
            chosen.minutes,
            chosen.family or list(FAMILIES),
            chosen.log,
            seed=chosen.seed,
            most=chosen.most,
            again=chosen.again,
        )
    chosen.table.write_text(written(chosen.log, chosen.seed))
    chosen.table.with_suffix(".json").write_text(
        json.dumps(counted(chosen.log, chosen.seed), indent=1) + "\n"
    )
    print(chosen.table.read_text())
    sys.exit(int(any(kind != "ok" for _, kind in counts)))


if __name__ == "__main__":
    main()
