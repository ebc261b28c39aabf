"""The plugin of workers: threads, compiled objects from workers of the same core, placement by the scheduler.

The event loop of a worker never waits for the lock under which code is compiled: a task that holds it may be
waiting for the loop to ask other workers. Whatever takes it runs in a thread.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from tilewright.dask.library import distributed, get_address_host, pickled
from tilewright.dask.placement import PlacementPlugin
from tilewright.dask.shipping import ObjectShipping, core_of_host, peers_of
from tilewright.errors.callers import named_in_errors
from tilewright.llvm.object_cache import exchange
from tilewright.llvm.target import compilations
from tilewright.machine.host import host_facts, host_machine
from tilewright.settings import read_settings
from tilewright.spec.arguments import check_flag
from tilewright.threads.pool import check_threads, get_num_threads, set_num_threads

logger = logging.getLogger("tilewright.dask")

#: The call by which a worker asks others of its host to count again.
_COUNT = "tilewright_count"
_NAME = "tilewright"


class TilewrightPlugin(distributed.WorkerPlugin):
    """Threads and compiled objects of the workers of a cluster.

    Each worker's calls take so many threads that those of all workers of a host, times the threads that Dask
    runs tasks on, are no more than its cores. A new worker takes the objects that workers of the same core
    have compiled, and a worker asks others before it compiles. The scheduler is given `PlacementPlugin`.

    Parameters
    ----------
    threads : int, optional
        The most threads of a call.
    ship : bool
        Whether compiled objects are exchanged. Only workers of the cluster are asked; objects are machine
        code, so leave it off where you would not run what other workers send.
    place : bool
        Whether the scheduler prefers one worker for each tile of a product. It needs this package too.

    Examples
    --------
    >>> client.register_plugin(twd.TilewrightPlugin())  # doctest: +SKIP
    """

    name = _NAME
    idempotent = True

    def __init__(self, threads: int | None = None, *, ship: bool = True, place: bool = True) -> None:
        self.threads = None if threads is None else check_threads("threads", threads)
        self.ship = check_flag(ship, "ship")
        self.place = check_flag(place, "place")
        self.shipping: ObjectShipping | None = None
        self._before: int | None = None
        self._worker: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to a worker: the options alone."""
        return {**self.__dict__, "shipping": None, "_before": None, "_worker": None}

    async def setup(self, worker: Any) -> None:
        """Begin with a worker, before its first task."""
        self._worker, self._before = worker, await asyncio.to_thread(get_num_threads)
        worker.handlers[_COUNT] = self._count
        others = await self._others()
        await asyncio.to_thread(self._share_cores, others)
        for address, one in others.items():
            if one["host"] == self._host():
                await self._tell(address)
        if self.place:
            await self._place()
        if self.ship:
            self.shipping = ObjectShipping(worker, await asyncio.to_thread(core_of_host))
            self.shipping.start()
            await self.shipping.take_all(list(others))

    async def teardown(self, worker: Any) -> None:
        """End with a worker."""
        worker.handlers.pop(_COUNT, None)
        if self.shipping is not None:
            self.shipping.stop()
            self.shipping = None
        if self._before is not None:
            await asyncio.to_thread(set_num_threads, self._before)

    async def _others(self) -> dict[str, Any]:
        """The other workers, as far as the scheduler answers."""
        try:
            return dict(await peers_of(self._worker))
        except Exception as error:
            logger.debug("the scheduler does not say which workers there are: %s", error)
            return {}

    async def _place(self) -> None:
        """Give the scheduler the plugin that places products, unless it has it."""
        words = {"plugin": pickled(PlacementPlugin()), "name": PlacementPlugin.name, "idempotent": True}
        try:
            await self._worker.scheduler.register_scheduler_plugin(**words)
        except Exception as error:
            logger.info("products are placed by Dask alone: %s", error)

    async def _count(self) -> int:
        """Share the cores of the host again; returns the threads of a call."""
        return await asyncio.to_thread(self._share_cores, await self._others())

    async def _tell(self, address: str) -> None:
        """Have another worker of this host count again."""
        try:
            await self._worker.rpc(address).tilewright_count()
        except Exception as error:
            logger.debug("%s does not count its threads again: %s", address, error)

    def _host(self) -> str:
        """The host of this worker, as the scheduler names it."""
        return str(get_address_host(self._worker.address))

    def _share_cores(self, others: dict[str, Any]) -> int:
        """Set the threads of a call to this worker's share of the cores of its host."""
        host = self._host()
        tasks = self._worker.state.nthreads
        tasks += sum(one["nthreads"] for one in others.values() if one["host"] == host)
        share = max(1, host_facts(read_settings()).usable_cores // max(tasks, 1))
        wanted = share if self.threads is None else min(share, self.threads)
        set_num_threads(wanted)
        return wanted


@named_in_errors
def workers(client: Any) -> dict[str, dict[str, Any]]:
    """What each worker of a cluster runs on: a row by address.

    Parameters
    ----------
    client : distributed.Client

    Returns
    -------
    dict of dicts
        isa and cpu; threads of a call and of Dask; compilations of the process since it began; objects that
        came from other workers.
    """
    found: dict[str, dict[str, Any]] = client.run(_row)
    return found


def _row(dask_worker: Any) -> dict[str, Any]:
    """What one worker answers."""
    plugin = dask_worker.plugins.get(_NAME)
    shipping = getattr(plugin, "shipping", None)
    machine = host_machine()
    return {
        "isa": machine.isa.name,
        "cpu": machine.cpu,
        "threads": get_num_threads(),
        "dask_threads": dask_worker.state.nthreads,
        "compilations": compilations.number,
        "received": 0 if shipping is None else shipping.received,
        "objects": len(exchange.names),
    }
