"""A Ray cluster of three machines with one core each, all on this one, and an object store beside it."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from auditor.catalog.db import close_all
from benchmarks import private_postgres, scale
from tests.helpers import free_port

CLIENTS = free_port()
"""Where the head listens for programs that do not join the cluster."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The URL of a database of our own."""
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        with private_postgres.running(folder) as url:
            yield url
            close_all()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster(bucket: str) -> Iterator[Any]:
    """``ray.cluster_utils.Cluster``: a head that does no work, and three machines with one core each.

    They are started with the credentials of the bucket, as machines of a cloud are.
    """
    assert bucket
    ray = pytest.importorskip("ray")
    with scale.cluster(3, clients_port=CLIENTS) as found:
        yield found
        ray.shutdown()  # of a test that was cut off


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """``s3://BUCKET/tasks`` on a server of our own."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    s3fs = pytest.importorskip("s3fs")
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        s3fs.S3FileSystem.clear_instance_cache()
        # All servers of a process share what they hold: another test file's bucket may be there.
        s3fs.S3FileSystem().mkdir("cluster")
        yield "s3://cluster/tasks"
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


class Line:
    """A line to a server that can be slow, or cut: whoever asks gets no answer then."""

    def __init__(self, address: str) -> None:
        there = urlsplit(address)
        self._there = (str(there.hostname), int(there.port or 80))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.delay_s = 0.0
        self.is_cut = False
        self.refused = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Nobody is answered any more."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                here, _ = self._listener.accept()
                if self.is_cut:
                    self.refused += 1
                    here.close()
                    continue
                try:
                    there = socket.create_connection(self._there)
                except OSError:  # who asks hears so, and asks again
                    here.close()
                    continue
                for source, target in ((here, there), (there, here)):
                    threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError), source, target:
            while data := source.recv(1 << 16):
                if self.is_cut:
                    self.refused += 1
                    break
                time.sleep(self.delay_s)
                target.sendall(data)
            # Both ends hear it at once: a thread that waits on the other one would keep it open.
            for end in (source, target):
                end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def line(bucket: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    """The way to the bucket's server, for this process and the tasks that it sends away."""
    import s3fs

    found = Line(os.environ["AWS_ENDPOINT_URL"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", found.address)
    s3fs.S3FileSystem.clear_instance_cache()
    yield found
    s3fs.S3FileSystem.clear_instance_cache()
    found.close()
