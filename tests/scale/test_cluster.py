"""Audits on a Ray cluster: the bits of one machine, machines that are lost, files behind an object store."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import json
import subprocess
import sys
import tarfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import auditor
from auditor.audits import plan, shards, worker
from auditor.backbones import features
from auditor.catalog import audits
from auditor.catalog.db import session
from auditor.ground.errors import AuditFailedError, ImportRefusedError
from auditor.importing import building, imports
from auditor.results import arrays
from auditor.work import executors, ray_executor, tasks
from auditor.work.kinds import Layout
from auditor.work.ray_executor import RayExecutor
from auditor.work.tasks import Event
from benchmarks.scale import add_machine
from tests.auditor.backbones.test_features import NAME, make_weights
from tests.auditor.sample_pictures import digits, encoded, write_folder, write_parquet
from tests.auditor.work.test_executors import Heard, results, specs
from tests.faults.test_import_faults import what_is_known
from tests.helpers import QUICK_OPTIONS, Digits, decide_some, write_digits
from tests.scale.conftest import CLIENTS, Line

EPOCHS = 40
HELD = 3
"""The epoch at which a machine is lost: a task tells of it when its state is saved."""
TINY: dict[str, dict[str, Any]] = {
    name: {"epochs": 2, "views": 1, "batch_size": 64, "network": "mlp"}
    for name in ("cross_entropy", "coteaching", "l2b", "umn", "choicenet")
}
TINY["coteaching"] |= {"search_epochs": 2, "search_iterations": 1, "search_samples": 2, "anchors": ()}
CLIENT = """
import sys
from auditor.work import executors
from tests.scale.test_cluster import comparison
executors.Processes = None  # nothing is trained here
print(comparison(sys.argv[1]))
"""
DRIVER = """
import json, sys
from auditor.work.ray_executor import RayExecutor
from auditor.work.kinds import of_json
from tests.auditor.work.test_executors import Heard
heard = Heard(lambda event: print(event.epoch, flush=True))
RayExecutor(sys.argv[1]).run([of_json(one) for one in json.loads(sys.argv[2])], heard)
"""
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(600)  # machines of a cluster start slowly where many do


@pytest.fixture
def every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks save their state after each epoch."""
    monkeypatch.setenv("AUDITOR_CHECKPOINT_INTERVAL_S", "0")


def test_ray__a_lost_machine_changes_no_bit(
    cluster: Any, tmp_path: Path, every_epoch: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also not where it was the only one with the cores that a task which still waits asked for."""
    monkeypatch.setattr(ray_executor, "_Mailbox", mailbox_that_holds(tmp_path / "lost"))
    alone, away = (
        [dataclasses.replace(spec, threads=2) for spec in specs(tmp_path / place, "a", "b", epochs=EPOCHS)]
        for place in ("alone", "away")
    )
    executors.Processes(1).run(alone, Heard())
    large = [add_machine(cluster, cores=2)]

    def lose(event: Event) -> None:
        if event.epoch >= HELD and large:
            remove_at_once(cluster, large.pop())
            (tmp_path / "lost").touch()

    heard = Heard(lose)
    RayExecutor(cluster.address).run(away, heard)
    assert not large
    assert results(away) == results(alone)  # so what was on the lost machine began again
    for task in "ab":  # from its checkpoint: each training, one a fold, has its first epoch once
        begun = [event.stage for event in heard.events if event.task == task and event.epoch == 0]
        assert len(set(begun)) == len(begun) >= 2


def mailbox_that_holds(lost: Path) -> type:
    """A mailbox that answers no task about epoch ``HELD`` and later ones until that file is there.

    A task waits for the answer: however late its machine is lost, it has not ended before.
    """

    class Holding(ray_executor._Mailbox):
        async def say(self, event: dict[str, Any]) -> bool:  # meanwhile it is asked for news
            told = super().say(event)
            while event["epoch"] >= HELD and not lost.exists():
                await asyncio.sleep(0.02)
            return told

    return Holding


def remove_at_once(cluster: Any, machine: Any) -> None:
    """Take a machine from the cluster, and end what it does: Ray's own processes notice within a second."""
    raylet = machine.all_processes["raylet"][0].process
    at_work = psutil.Process(raylet.pid).children(recursive=True)
    assert any("_work" in word for one in at_work for word in one.cmdline())  # a task
    cluster.remove_node(machine, allow_graceful=False)
    for one in at_work:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(at_work)


def test_ray__a_task_that_asks_keeps_its_core(cluster: Any) -> None:
    """Three machines of one core do three tasks at once, however long an answer takes."""
    ray = pytest.importorskip("ray")

    class Slow:
        def say(self) -> bool:
            time.sleep(0.02)
            return False

    def ask(mailbox: Any) -> tuple[float, float]:
        began = time.time()
        for _ in range(60):
            ray_executor.answer(ray, mailbox.say.remote())
        return began, time.time()

    ray_executor.connect(ray, cluster.address)
    try:
        mailbox = ray.remote(num_cpus=0)(Slow).remote()
        spans = ray.get([ray.remote(num_cpus=1)(ask).remote(mailbox) for _ in range(9)])
    finally:
        ray.shutdown()
    assert max(sum(one <= began < end for one, end in spans) for began, _ in spans) <= 3


def test_audit__on_a_cluster_whose_driver_is_killed_is_the_one_of_this_machine(
    cluster: Any,
    bucket: str,
    postgres: str,
    tmp_path: Path,
    every_epoch: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All engines, one with a search, the catalog in PostgreSQL, files by an object store."""
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AUDITOR_DATABASE_URL", postgres)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    imports.import_dataset(write_digits(tmp_path, num=120).table, name="digits", workers=1)
    planned = []
    # Not by ray://: where every core is in use, Ray's own server of clients starts too late now and then.
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    for on in ("processes:1", "ray"):
        monkeypatch.setenv(executors.VARIABLE, on)
        planned.append(
            plan.plan_audit("digits", list(TINY), options=TINY, map_method="pca", device="cpu", alone=True)
        )
    here, away = planned
    monkeypatch.setenv(executors.VARIABLE, "processes:1")
    worker.run_audit(here)
    monkeypatch.setenv(executors.VARIABLE, on)
    # A place of its own: tasks of the killed driver may write there later still.
    monkeypatch.setenv("AUDITOR_STORAGE", f"{bucket}-of-an-audit")
    driver = subprocess.Popen(
        [sys.executable, "-c", f"from auditor.audits import worker; worker.run_audit({away})"], cwd=ROOT
    )
    while not any(one.progress for one in plan.audit_overview(away).engines):
        assert driver.poll() is None
        time.sleep(0.1)
    driver.kill()
    driver.wait()
    assert plan.audit_overview(away).state == "dead"
    worker.run_audit(away)
    for name in TINY:
        found, expected = (arrays.pred_probs(one, name) for one in (away, here))
        np.testing.assert_array_equal(found, expected, err_msg=name)
    with session() as open_session:
        found, expected = (audits.get(open_session, one) for one in (away, here))
    assert found.summary.settled_at
    assert expected.summary.settled_at
    same = {"settled_at": None, "runs": {}}  # the runs: by the audit's number
    assert dataclasses.replace(found.summary, **same) == dataclasses.replace(expected.summary, **same)


def test_compare__by_ray_as_a_client_says_what_it_says_here(
    cluster: Any, audited: tuple[Digits, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process, which can be ended: whatever Ray's client waits for, the tests go on."""
    decide_some(audited[0])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    client = [sys.executable, "-c", CLIENT, f"ray://127.0.0.1:{CLIENTS}"]
    answer = subprocess.run(client, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[-1] == comparison("processes:1")


def comparison(on: str) -> str:
    """What a comparison on the decided digits says, on one line."""
    options = QUICK_OPTIONS["cross_entropy"]
    found = auditor.open("digits").compare(seeds=1, options=options, device="cpu", on=on, progress=False)
    return f"{found.by_seed} {found.sentence}"


def test_ray__features_are_computed_away(
    cluster: Any, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A place of its own: what is laid out stays, for the trainings that would follow.
    monkeypatch.setenv("AUDITOR_STORAGE", f"{bucket}-of-features")
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path))
    monkeypatch.setattr(shards, "RANGES", 1)
    images = tmp_path / "images.npy"
    np.save(images, np.random.default_rng(0).integers(0, 256, (200, 3, 20, 24), dtype=np.uint8))
    source = features.of_backbone(NAME, make_weights(tmp_path), side=32)
    here, away = 1, 2
    expected = features.embed(here, images, source, device="cpu", workers=1)
    executor = RayExecutor(cluster.address)
    shards.embed(away, images, source, executor, device="cpu", on_rows=lambda _: None)
    np.testing.assert_array_equal(features.load(away, source), expected)
    file = features.folder(away, source) / "features.npy"
    at_home, afar = (
        Layout(features=str(file), out=str(tmp_path / place), draws="pca")
        for place in ("home layout", "away layout")
    )
    tasks.run(at_home, lambda _: None)
    executor.run([afar], Heard())
    for name in ("map", "neighbours"):
        arrays_of = [np.load(Path(one.out) / f"{name}.npy") for one in (afar, at_home)]
        np.testing.assert_array_equal(*arrays_of)


def test_ray__a_store_that_is_slow_and_refuses_for_seconds_changes_no_bit(
    cluster: Any,
    bucket: str,
    line: Line,
    tmp_path: Path,
    every_epoch: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AUDITOR_STORAGE", bucket)
    alone, away = (specs(tmp_path / place, "a", "b", epochs=EPOCHS) for place in ("alone", "away"))
    executors.Processes(1).run(alone, Heard())

    def restore() -> None:
        line.is_cut = False

    def cut_once(event: Event) -> None:
        if not line.refused:
            line.is_cut = True
            threading.Timer(1, restore).start()

    line.delay_s = 0.01
    heard = Heard(cut_once)
    RayExecutor(cluster.address).run(away, heard)
    assert results(away) == results(alone)
    assert line.refused
    assert heard.begun == ["a", "b"]  # they waited, and did not begin anew
    import s3fs

    assert not s3fs.S3FileSystem().find("cluster/tasks")  # nothing of it is left behind


def test_ray__a_driver_that_dies_while_the_store_is_slow_refuses_or_comes_back_is_gone_on_with(
    cluster: Any,
    bucket: str,
    line: Line,
    tmp_path: Path,
    every_epoch: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AUDITOR_STORAGE", f"{bucket}-of-drivers")
    alone, away = (specs(tmp_path / place, "a", epochs=100) for place in ("alone", "away"))
    executors.Processes(1).run(alone, Heard())
    asked = json.dumps([spec.as_json() for spec in away])
    line.delay_s, reached = 0.01, -1

    def restore() -> None:
        line.is_cut = False

    for state in ("refuses", "comes back"):
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, cluster.address, asked],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert driver.stdout is not None
        if state == "comes back":
            threading.Timer(1, restore).start()
        first = int(driver.stdout.readline())
        assert first >= reached  # what was done before is not done again
        reached = first
        while reached < first + 3:
            reached = int(driver.stdout.readline())
        if state == "refuses":
            refused, line.is_cut = line.refused, True
            while line.refused == refused:
                time.sleep(0.02)
        driver.kill()
        driver.wait()
        driver.stdout.close()
        assert not (Path(away[0].out) / "pred_probs.npy").exists()
    heard = Heard()
    RayExecutor(cluster.address).run(away, heard)
    assert results(away) == results(alone)
    assert heard.events[0].epoch >= reached


def test_ray__what_the_listener_raises_stops_the_tasks_and_they_go_on_later(
    cluster: Any, tmp_path: Path, every_epoch: None
) -> None:
    endless = specs(tmp_path, "a", "b", "c", "d", epochs=10**6)  # one more than there are machines

    def stop(event: Event) -> None:
        if event.task == "a" and event.epoch == 1:  # the state after the epoch before is saved
            raise KeyboardInterrupt

    heard, later = Heard(stop), Heard(stop_at_once)
    with pytest.raises(KeyboardInterrupt):
        RayExecutor(cluster.address).run(endless, heard)
    assert heard.begun == ["a", "b", "c", "d"]
    assert "d" not in {event.task for event in heard.events}  # it waited for a core, and was taken back
    with pytest.raises(KeyboardInterrupt):
        executors.Processes(1).run(endless[:1], later)
    assert later.events[0].epoch > 1


def stop_at_once(event: Event) -> None:
    """A listener that cancels."""
    raise KeyboardInterrupt


def test_ray__an_address_that_answers_nothing_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(AuditFailedError, match="Ray at ray://127.0.0.1:1 cannot be reached") as refused:
        RayExecutor("ray://127.0.0.1:1").run(specs(tmp_path, "a"), Heard())
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", ["folder here", "folder", "parquet", "webdataset"])
def test_ray__an_import_on_the_cluster_is_the_one_of_this_machine(
    cluster: Any, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Also where a machine is lost in it; no machine is asked for a file of this one."""
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    monkeypatch.setattr(building, "CHUNK_AWAY", 100)
    monkeypatch.setattr(imports, "FEW_IMAGES", 100)
    source = tmp_path / "set"
    if kind == "parquet":
        source = write_parquet(tmp_path / "set.parquet", 600)
    elif kind == "webdataset":
        write_shards(source, 600)
    else:
        write_folder(source, 600)
        image = min(source.rglob("*.png"))
        image.write_bytes(image.read_bytes()[:60])  # its header is good
    address = str(source)
    if kind != "folder here":
        import s3fs

        address = f"s3://cluster/imports/{source.name}-{kind}{source.suffix}"
        s3fs.S3FileSystem().put(str(source), address, recursive=source.is_dir())
    expected = imports.import_dataset(source, name="here", skip_bad=True)
    lost: list[Any] = []

    def lose_one(progress: imports.Progress) -> None:
        if progress.stage == "decoding" and progress.done and not lost:
            lost.append(next(iter(cluster.worker_nodes)))
            cluster.remove_node(lost[0], allow_graceful=False)
            add_machine(cluster)

    found = imports.import_dataset(address, name="away", skip_bad=True, on="ray", progress=lose_one)
    assert lost
    assert found.num_skipped == expected.num_skipped == kind.startswith("folder")
    assert what_is_known("away")[:2] == what_is_known("here")[:2]


def write_shards(folder: Path, count: int) -> None:
    """Two tar archives in the form of WebDataset."""
    folder.mkdir()
    images, labels = digits(count)
    for shard in range(2):
        with tarfile.open(folder / f"train-{shard:03d}.tar", "w") as tar:
            for number in range(shard * count // 2, (shard + 1) * count // 2):
                for end, data in (("png", encoded(images[number])), ("cls", labels[number].encode())):
                    member = tarfile.TarInfo(f"{number:05d}.{end}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))


def test_ray__an_import_says_in_one_line_that_nobody_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(imports, "FEW_IMAGES", 10)
    source = write_folder(tmp_path / "set", 20)
    with pytest.raises(
        ImportRefusedError, match="Ray at ray://127.0.0.1:1 cannot be reached.* Nothing was imported"
    ):
        imports.import_dataset(source, name="x", on="ray://127.0.0.1:1")
    with pytest.raises(ImportRefusedError, match="There is no executor 'rya'"):
        imports.import_dataset(source, name="x", on="rya")
