"""A cluster of two processes for the tests of tilewright.dask, and workers that are killed in the middle."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster

import tilewright.dask as twd

#: Seconds that anything may take, beside other load.
PATIENCE = 120


@contextlib.contextmanager
def running_cluster() -> Iterator[tuple[LocalCluster, Client]]:
    """Two workers of one thread each, with the plugin."""
    # A worker that was killed is asked for its results until this time is over.
    patient: dict[str, Any] = {
        "distributed.comm.timeouts.connect": 10,
        "distributed.worker.memory.pause": False,
    }
    patient |= {"distributed.worker.memory.terminate": False, "distributed.logging.distributed": "critical"}
    with dask.config.set(patient):
        options = {"dashboard_address": None, "memory_limit": "4GiB", "silence_logs": 50}
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options)
        client = Client(cluster, timeout=PATIENCE)
        client.register_plugin(twd.TilewrightPlugin())
        try:
            yield cluster, client
        finally:
            client.close()
            cluster.close()


def slowly(chunk: Any) -> Any:
    """A chunk, some time after it was asked for: tests have to meet a product in the middle."""
    time.sleep(0.02)
    return chunk


def slow(array: Any) -> Any:
    """An array whose chunks take their time."""
    return array.map_blocks(slowly, dtype=array.dtype, meta=np.empty((0,) * array.ndim, array.dtype))


def names_in_memory(cluster: LocalCluster, prefix: str) -> dict[str, int]:
    """How many results of tasks of a name each worker has, by address."""
    found: dict[str, int] = dict.fromkeys(cluster.scheduler.workers, 0)
    for task in list(cluster.scheduler.tasks.values()):
        if task.state == "memory" and str(task.key).lstrip("('\"").startswith(prefix):
            for worker in list(task.who_has or ()):
                found[worker.address] = found.get(worker.address, 0) + 1
    return found


def kill_in_the_middle(
    cluster: LocalCluster, client: Client, future: Any, prefix: str, after: int = 2
) -> bool:
    """Kill the worker that has the most results, once it has some; whether the rest was unfinished."""
    pids = client.run(os.getpid)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and not future.done():
        held = {one: count for one, count in names_in_memory(cluster, prefix).items() if one in pids}
        victim = max(held, key=lambda one: held[one], default=None)
        if victim is not None and held[victim] >= after:
            unfinished = not future.done()
            os.kill(pids[victim], signal.SIGKILL)
            return unfinished
        time.sleep(0.002)
    return False


class MemoryWatch:
    """The most bytes of results that any worker had, as the scheduler knows them."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.most = 0
        self._cluster, self._ended = cluster, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._ended.wait(0.002):
            with contextlib.suppress(RuntimeError):  # workers come and go
                for worker in self._cluster.scheduler.workers.values():
                    self.most = max(self.most, worker.nbytes)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._ended.set()
        self._thread.join()


def products_of_a_worker() -> int:
    """Compute one of each operation, in a task; returns how many modules the process has compiled since."""
    import tilewright as tw
    from tilewright.llvm.target import compilations

    before = compilations.number
    a = np.ones((96, 96), np.float32)
    tw.matmul(a, a)
    tw.einsum("ij,jk->ki", a, a)
    tw.softmax(a)
    tw.attention(a[None, None], a[None, None], a[None, None])
    return compilations.number - before
