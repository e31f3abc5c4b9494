"""A Ray cluster of two machines with one core each, all on this one, and an object store beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def cluster(bucket: str) -> Iterator[Any]:
    """``ray.cluster_utils.Cluster``: a head that does no work, and two machines with one core each.

    They are started with the credentials of the bucket, as machines of a cloud are.
    """
    assert bucket
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    found = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": 10**8},
    )
    for _ in range(2):
        add_machine(found)
    yield found
    found.shutdown()


def add_machine(cluster: Any) -> Any:
    """One more machine with one core."""
    return cluster.add_node(num_cpus=1, object_store_memory=10**8)


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
        s3fs.S3FileSystem().mkdir("bucket")
        yield "s3://bucket/tasks"
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()
