"""Tasks of an audit on a Ray cluster, or on a Ray of this machine alone.

Ray decides which machine does a task; everything else is as with processes: the same tasks, the same bits. All
machines must have this version installed. They read and write the home's files where they see the same folder;
where they do not, ``AUDITOR_STORAGE`` names a place that all reach, and each keeps copies of what it reads.

A machine that is lost costs what was done since the last checkpoint: its tasks go on elsewhere.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import auditor
from auditor.ground.errors import AuditFailedError
from auditor.ground.processes import usable_cores, yield_to_others
from auditor.work import tasks
from auditor.work.graph import LOST, STOP_S, TICK_S, Graph
from auditor.work.kinds import Layout, of_json
from auditor.work.storage import VARIABLE, Storage, fingerprint
from auditor.work.tasks import Event, Listener, Outcome, Task

SMALL_SIDE = 64
SHARE_OF_A_CARD = 0.25
"""What a training on features, or on images of up to ``SMALL_SIDE`` px, takes of a card: four share one."""
ANSWERS_WITHIN_S = 10.0
KEPT_S = 24 * 3600.0
"""How long a machine keeps a copied input that no task asks for."""
PASSED_ON = ("AUDITOR_CHECKPOINT_INTERVAL_S", "AWS_ENDPOINT_URL")


class RayExecutor:
    """See ``Executor``; ``address`` None is ``RAY_ADDRESS``, else a Ray of this machine that ends with the work."""

    def __init__(self, address: str | None = None) -> None:
        self._address = address or os.environ.get("RAY_ADDRESS") or None
        place = os.environ.get(VARIABLE)
        self._storage = Storage(place) if place else None

    def run(self, specs: Sequence[Task], listener: Listener) -> None:
        """See ``Executor``."""
        ray = the_library()
        connect(ray, self._address)
        try:
            _refuse_cards(ray, specs)
            sent = {spec.name: _Sent(spec, self._storage) for spec in specs}
            with _Cluster(ray, sent, listener) as cluster:
                cluster.run(Graph(list(specs), listener))
        finally:
            ray.shutdown()


def connect(ray: Any, address: str | None) -> None:
    """Join the cluster at that address; None = a Ray of this machine.

    Raises:
        AuditFailedError: nobody answers there.
    """
    how: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        how |= {"address": "local", "num_cpus": usable_cores(), "include_dashboard": False}
    else:
        how["address"] = address
    try:
        if address is not None and address.rpartition(":")[2].isdecimal():
            host, _, port = address.removeprefix("ray://").rpartition(":")
            # Ray itself waits minutes.
            socket.create_connection((host, int(port)), ANSWERS_WITHIN_S).close()
        ray.init(**how)
    except Exception as error:  # ConnectionError, ValueError, gRPC's: each has its own words
        with suppress(Exception):  # half a connection would refuse the next one
            ray.shutdown()
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise AuditFailedError(
            f"Ray at {address or 'this machine'} cannot be reached ({first}); check the address "
            "(ray://HOST:10001) and that its version is the same."
        ) from error


def the_library() -> Any:
    """Ray, as it is used here.

    Raises:
        AuditFailedError: it is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise AuditFailedError("ray is missing: pip install 'label-auditor[cluster]'.") from error
    return ray


def _refuse_cards(ray: Any, specs: Sequence[Task]) -> None:
    wants_card = next((spec.name for spec in specs if spec.device != "cpu"), None)
    if wants_card is not None and not ray.cluster_resources().get("GPU"):
        raise AuditFailedError(
            f"{wants_card} wants a GPU and no machine of the cluster has one; use the device cpu.",
            field="device",
        )


def passed_on() -> dict[str, str]:
    """Variables of this process that the machines of the cluster get."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}


def other_version(asked: str) -> str | None:
    """On a machine of the cluster: why it cannot work for who has that version of this program."""
    if asked == auditor.__version__:
        return None
    return f"A machine of the cluster has label-auditor {auditor.__version__}, this one {asked}. Install the same."


class _Sent:
    """A task as another machine is told of it: its files as they are, or as objects of the storage."""

    def __init__(self, spec: Task, storage: Storage | None) -> None:
        self.spec, self._storage = spec, storage
        self._inputs: dict[str, str] = {}

    @property
    def _key(self) -> str:
        named = {**dataclasses.asdict(self.spec), "out": "", "checkpoint": "", **self._inputs}
        return f"tasks/{fingerprint(sorted(named.items()))}"

    def message(self) -> dict[str, Any]:
        """Return what ``_work`` takes. The inputs are copied into the storage first."""
        message = {"task": self.spec.as_json(), "version": auditor.__version__, "env": passed_on()}
        if self._storage is None:
            return message
        for name, path in self.spec.files.items():
            if name not in self._inputs:
                file = Path(path)
                found = file.stat()
                key = f"inputs/{fingerprint(file.resolve(), found.st_size, found.st_mtime_ns)}{file.suffix}"
                if not self._storage.has(key):
                    self._storage.put(file, key)
                self._inputs[name] = key
        return message | {"storage": self._storage.address, "inputs": self._inputs, "key": self._key}

    def fetch(self) -> None:
        """Bring the result home."""
        if self._storage is None:
            return
        with tempfile.TemporaryDirectory() as place:
            self._storage.get_folder(f"{self._key}.tar", Path(place))
            plain = tasks.finished(dataclasses.replace(self.spec, out=place))
            arrays = {file.stem: np.load(file, mmap_mode="r") for file in sorted(Path(place).glob("*.npy"))}
            tasks.store_arrays(Path(self.spec.out), arrays, plain)

    def forget(self) -> None:
        """Remove what the storage holds of this task alone; inputs that others read stay."""
        if self._storage is not None and self._inputs:
            self._storage.remove(f"{self._key}.tar")
            self._storage.remove(f"{self._key}.checkpoint")

    def forget_inputs(self) -> None:
        """Remove the inputs too; but the features that were laid out are read next by the audit's trainings."""
        if self._storage is not None and not isinstance(self.spec, Layout):
            for key in self._inputs.values():
                self._storage.remove(key)


class _Mailbox:
    """An actor: tasks tell it of their epochs, and hear from it whether they shall stop.

    Where its machine is lost it begins anew elsewhere, with another name, and knows nothing.
    """

    def __init__(self) -> None:
        self._name = uuid.uuid4().hex
        self._events: list[dict[str, Any]] = []
        self._num_heard = 0
        self._begun: set[str] = set()
        self._dropped: set[str] = set()
        self._should_stop = False

    def begin(self, task: str, attempt: str) -> bool:
        """An attempt at a task begins; returns whether it shall not."""
        self._begun.add(task)
        return self._should_stop or attempt in self._dropped

    def drop(self, attempt: str) -> None:
        """Another attempt takes its place, should it ever begin."""
        self._dropped.add(attempt)

    def say(self, event: dict[str, Any]) -> bool:
        """A task tells of an epoch; returns whether it shall stop."""
        self._begun.add(event["task"])
        self._events.append(event)
        return self._should_stop

    def news(self, name: str, num_heard: int) -> tuple[str, int, list[dict[str, Any]]]:
        """Its name, how many events it ever got, and those after the first ``num_heard`` of the box ``name``.

        Whoever asks again with the same number, because the answer never came, hears them again.
        """
        if name == self._name:
            del self._events[: num_heard - self._num_heard]
            self._num_heard = num_heard
        return self._name, self._num_heard + len(self._events), list(self._events)

    def stop(self) -> set[str]:
        """From now on all tasks shall stop; returns those that have begun."""
        self._should_stop = True
        return self._begun


@dataclasses.dataclass(frozen=True)
class _Attempt:
    """A task that was given to the cluster."""

    spec: Task
    name: str
    cores: int
    """That it asked for."""


class _Cluster:
    """The tasks that run on the cluster; those that have begun have stopped when the block ends.

    What has not ends with the connection. Ray's own ``cancel`` is never called: where a task ends at the same
    moment, Ray 2.60 ends this process ("Tried to complete task that was not pending").
    """

    def __init__(self, ray: Any, sent: dict[str, _Sent], listener: Listener) -> None:
        self._ray, self._sent, self._listener = ray, sent, listener
        self._mailbox = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(_Mailbox).remote()
        self._heard = ("", 0)
        """Name of the mailbox, and how many of its events are known."""
        self._running: dict[Any, _Attempt] = {}

    def __enter__(self) -> _Cluster:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._stop()

    def run(self, graph: Graph) -> None:
        """Do all tasks of the graph."""
        while True:
            while (spec := graph.next()) is not None:
                self._begin(spec)
            if not self._running:
                break
            done, _ = self._ray.wait(list(self._running), timeout=TICK_S)
            self._hear()
            for reference in done:
                spec = self._running.pop(reference).spec
                graph.ended(spec, self._outcome(spec, reference))
            if not done:
                self._take_back()
                self._listener.tick()
        if not graph.failed:
            for sent in self._sent.values():
                sent.forget_inputs()

    def _begin(self, spec: Task) -> None:
        most = self._most_cores()
        attempt = _Attempt(spec, uuid.uuid4().hex, min(spec.threads or most, most))
        needs = {"num_cpus": attempt.cores, "num_gpus": _share_of_a_card(spec)}
        work = self._ray.remote(max_retries=0, **needs)(_work)
        reference = work.remote(self._sent[spec.name].message(), attempt.name, self._mailbox)
        self._running[reference] = attempt

    def _most_cores(self) -> int:
        """Of one machine that is there."""
        found = [node["Resources"].get("CPU", 1) for node in self._ray.nodes() if node["Alive"]]
        return int(max(found, default=1))

    def _take_back(self) -> None:
        """Begin anew what asked for more cores than any machine has now: it would wait for ever."""
        most = self._most_cores()
        for reference, attempt in list(self._running.items()):
            if attempt.cores > most:
                self._mailbox.drop.remote(attempt.name)
                del self._running[reference]
                self._begin(attempt.spec)

    def _hear(self) -> None:
        try:
            *heard, events = self._ray.get(self._mailbox.news.remote(*self._heard), timeout=STOP_S)
        except self._ray.exceptions.RayError:  # it begins anew elsewhere, or is slow: it is asked again
            return
        self._heard = tuple(heard)
        at_work = {attempt.spec.name for attempt in self._running.values()}
        for event in events:
            if event["task"] in at_work:  # else an answer came so late that the task has ended since
                self._listener.heard(Event(**event))

    def _outcome(self, spec: Task, reference: Any) -> Outcome:
        try:
            # Never without a limit: whatever a signal's handler raises reaches nobody until Ray comes back.
            outcome = Outcome(**self._ray.get(reference, timeout=STOP_S))
        except self._ray.exceptions.RayTaskError as error:
            return Outcome(spec.name, error=f"{spec.name}: {error.cause or error}".splitlines()[0])
        except self._ray.exceptions.RayError:
            return Outcome(spec.name, error=f"{spec.name}: {LOST}", is_lost=True)
        if outcome.result is not None:
            self._sent[spec.name].fetch()
            self._sent[spec.name].forget()
        return outcome

    def _stop(self) -> None:
        """Ask every task to stop at its next epoch, so that its checkpoint is the newest there can be.

        Nobody waits for those that have not begun: they do not begin any more.
        """
        deadline = time.monotonic() + STOP_S
        while self._running and time.monotonic() < deadline:
            with suppress(self._ray.exceptions.RayError):
                # Each time: a mailbox that began anew meanwhile has not heard it.
                begun = self._ray.get(self._mailbox.stop.remote(), timeout=STOP_S)
                for reference, attempt in list(self._running.items()):
                    if attempt.spec.name not in begun:
                        del self._running[reference]
            if self._running:
                running = list(self._running)
                done, _ = self._ray.wait(running, num_returns=len(running), timeout=TICK_S)
                for reference in done:
                    del self._running[reference]


def _share_of_a_card(spec: Task) -> float:
    if spec.device == "cpu":
        return 0.0
    if "images" not in spec.files:
        return SHARE_OF_A_CARD
    side = max(np.load(spec.files["images"], mmap_mode="r").shape[2:])
    return SHARE_OF_A_CARD if side <= SMALL_SIDE else 1.0


# --- On the machine that does the task --------------------------------------------------------------------


def _work(message: dict[str, Any], attempt: str, mailbox: Any) -> dict[str, Any]:
    """One attempt at a task; returns its outcome as plain values."""
    import ray

    spec = of_json(message["task"])
    if answer(ray, mailbox.begin.remote(spec.name, attempt)):
        return dataclasses.asdict(Outcome(spec.name, error="Cancelled.", is_cancelled=True))
    if (text := other_version(message["version"])) is not None:
        return dataclasses.asdict(Outcome(spec.name, error=text, is_explained=True))
    os.environ.update(message["env"])
    yield_to_others()
    if spec.device != "cpu":  # Ray shows this process its own card alone
        spec = dataclasses.replace(spec, device="cuda")
    away = _Away(spec, message) if "storage" in message else None

    def say(event: Event) -> None:
        if away is not None:
            away.keep_checkpoint()
        if answer(ray, mailbox.say.remote(dataclasses.asdict(event))):
            raise KeyboardInterrupt

    if away is None:
        return dataclasses.asdict(tasks.attempt(spec, say))
    with away:
        return dataclasses.asdict(away.attempt(say))


def answer(ray: Any, reference: Any) -> bool:
    """Return whether the mailbox says stop; one that cannot be reached says nothing, and the work goes on.

    A thread waits for it. While the main thread of a task waits for Ray, its core is given to one more task, and a
    machine soon does more at once than it has cores.
    """
    with ThreadPoolExecutor(1) as apart:
        said = apart.submit(ray.get, reference, timeout=STOP_S)
        try:
            return bool(said.result())
        except ray.exceptions.RayError:
            return False


class _Away:
    """A task whose files lie in the storage: inputs are copied once a machine, what it writes goes back."""

    def __init__(self, spec: Task, message: dict[str, Any]) -> None:
        self._spec, self._inputs, self._key = spec, message["inputs"], message["key"]
        self._storage = Storage(message["storage"])
        self._copies = Path(tempfile.gettempdir(), f"label-auditor-{os.getuid()}")
        self._place = Path(tempfile.mkdtemp())
        self._kept_at = 0

    def __enter__(self) -> _Away:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._place, ignore_errors=True)

    def attempt(self, say: tasks.Say) -> Outcome:
        """The attempt; what cannot be read or written is an outcome too."""
        try:
            out, checkpoint = self._place / "out", self._place / "checkpoint"
            if self._storage.has(f"{self._key}.tar"):  # done; whoever asked was gone before it came home
                self._storage.get_folder(f"{self._key}.tar", out)
            elif self._storage.has(f"{self._key}.checkpoint"):
                self._storage.get(f"{self._key}.checkpoint", checkpoint)
            copied = {name: str(self._copy(key)) for name, key in self._inputs.items()}
            outcome = tasks.attempt(self._spec.moved(self._place, copied), say)
            self.keep_checkpoint()
            if outcome.result is not None:
                self._storage.put_folder(out, f"{self._key}.tar")
            return outcome
        except AuditFailedError as error:
            return Outcome(self._spec.name, error=str(error), is_explained=True)

    def keep_checkpoint(self) -> None:
        """Copy the newest checkpoint into the storage."""
        checkpoint = self._place / "checkpoint"
        with suppress(FileNotFoundError):
            written = checkpoint.stat().st_mtime_ns
            if written != self._kept_at:
                self._storage.put(checkpoint, f"{self._key}.checkpoint")
                self._kept_at = written

    def _copy(self, key: str) -> Path:
        """This machine's copy of an input."""
        self._copies.mkdir(exist_ok=True, mode=0o700)
        if self._copies.stat().st_uid != os.getuid():
            raise AuditFailedError(f"{self._copies} belongs to somebody else; remove it or set TMPDIR.")
        oldest = time.time() - KEPT_S
        file = self._copies / key
        if not file.exists():
            for other in self._copies.glob("inputs/*"):
                with suppress(OSError):
                    if other.stat().st_atime < oldest and other.stat().st_mtime < oldest:
                        other.unlink()
            self._storage.get(key, file)
        return file
