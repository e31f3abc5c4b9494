"""Functions on the machines of a Ray cluster, with the interface of Python's own executors.

For work in many equal pieces that leave no file, as the images of an import. A piece whose machine is lost is done
again on another one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from typing import Any

import auditor
from auditor.ground.errors import AuditFailedError
from auditor.ground.processes import yield_to_others
from auditor.work.ray_executor import connect, other_version, passed_on, the_library

LIVES = 10
"""Times that a piece is done again because its machine was lost."""


class RayPool(Executor):
    """Each call is a task with one core."""

    def __init__(self, ray: Any) -> None:
        """``ray`` is connected."""
        self._work = ray.remote(num_cpus=1, max_retries=LIVES)(_work)
        self.num_cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._running: set[Future[Any]] = set()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See ``concurrent.futures.Executor``."""
        reference = self._work.remote(auditor.__version__, passed_on(), fn, args, kwargs)
        future: Future[Any] = reference.future()
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See ``concurrent.futures.Executor``; what is cancelled ends with the connection (see ``_Cluster``)."""
        if wait and not cancel_futures:
            wait_for(list(self._running))


@contextmanager
def open_pool(address: str | None) -> Iterator[RayPool]:
    """The cluster at an address; None is ``RAY_ADDRESS``, else a Ray of this machine that ends with the block.

    Raises:
        AuditFailedError: nobody answers there, or a piece was lost again and again.
    """
    ray = the_library()
    connect(ray, address or os.environ.get("RAY_ADDRESS") or None)
    try:
        found = RayPool(ray)
        try:
            yield found
        except BaseException:
            found.shutdown(cancel_futures=True)
            raise
        found.shutdown()
    except ray.exceptions.RayTaskError as error:
        raise error.cause or error from error
    except ray.exceptions.RayError as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise AuditFailedError(f"The cluster lost the work ({first}).") from error
    finally:
        ray.shutdown()


# --- On the machine that does the piece -------------------------------------------------------------------


def _work(
    version: str, env: dict[str, str], function: Callable[..., Any], arguments: Any, named: dict[str, Any]
) -> Any:
    text = other_version(version)
    if text is not None:
        raise AuditFailedError(text)
    os.environ.update(env)
    yield_to_others()
    return function(*arguments, **named)
