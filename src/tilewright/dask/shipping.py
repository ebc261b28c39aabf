"""Compiled objects between workers of the same core, so that a cluster compiles each once.

A worker takes an object from another one only under the key that it computes itself, from its own machine,
generator and LLVM: workers of other cores, or of another version, have other keys and get nothing. Objects
come from workers of the same cluster alone, by its own connections, which TLS protects where the cluster uses
it; whoever can join the cluster can run any code on its workers, with or without this. An object then goes
through the worker's object cache, private directory and checksums included.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import threading
import time
from collections.abc import Mapping
from typing import Any

from tilewright.llvm.object_cache import exchange, key_of
from tilewright.machine.host import host_machine
from tilewright.store import MOST_OBJECT_BYTES, object_cache

logger = logging.getLogger("tilewright.dask")

#: Names of the calls that workers answer.
GIVE_ALL, GIVE_ONE = "tilewright_objects", "tilewright_object"
#: Workers that are asked for an object.
_MOST_ASKED = 3
#: Workers whose objects a new worker takes: each has used some of what the cluster uses.
_MOST_GIVERS = 8
#: Seconds that a new worker waits for all objects, a task for one, and for a worker that is compiling it.
_ALL_SECONDS, _ANSWER_SECONDS, _COMPILING_SECONDS = 30.0, 5.0, 20.0
_POLL_SECONDS = 0.02
#: The answer of a worker that is compiling the object.
_COMPILING = b"compiling"


def core_of_host() -> bytes:
    """What workers have in common that can run each other's objects."""
    return key_of("core", host_machine())


class ObjectShipping:
    """What one worker gives to others and takes from them.

    Parameters
    ----------
    worker : distributed.Worker
    core : `core_of_host`

    Attributes
    ----------
    received : how many objects came from other workers.
    """

    def __init__(self, worker: Any, core: bytes) -> None:
        self.worker, self._core = worker, core
        self.received = 0
        self._compiling: dict[bytes, float] = {}  # since when
        self._loop_thread = threading.get_ident()

    def start(self) -> None:
        """Answer other workers, and ask them before anything is compiled."""
        self.worker.handlers[GIVE_ALL] = self._give_all
        self.worker.handlers[GIVE_ONE] = self._give_one
        exchange.sources.append(self._ask)

    def stop(self) -> None:
        """Neither answer nor ask any longer."""
        for name in (GIVE_ALL, GIVE_ONE):
            self.worker.handlers.pop(name, None)
        with contextlib.suppress(ValueError):
            exchange.sources.remove(self._ask)

    # --- giving -----------------------------------------------------------------------------------

    async def _give_all(self, core: bytes) -> list[tuple[str, bytes, bytes]]:
        """The objects that this process used, for a worker of the same core."""
        return await asyncio.to_thread(self._used) if core == self._core else []

    def _used(self) -> list[tuple[str, bytes, bytes]]:
        store = object_cache()
        if store is None:
            return []
        loaded = ((what, key, store.load(key)) for key, what in list(exchange.names.items()))
        return [(what, key, found) for what, key, found in loaded if found is not None]

    async def _give_one(self, key: bytes, asker: str) -> bytes | None:
        """An object; or that it is being compiled, to all but workers that go first."""
        store = object_cache()
        found = (
            None if store is None or key not in exchange.names else await asyncio.to_thread(store.load, key)
        )
        since = time.monotonic() - self._compiling.get(key, -_COMPILING_SECONDS)
        compiling = found is None and since < _COMPILING_SECONDS
        return _COMPILING if compiling and self.worker.address < asker else found

    # --- taking -----------------------------------------------------------------------------------

    async def take_all(self, peers: list[str]) -> None:
        """Take the objects that workers of the same core used, into the object cache."""
        for peer in random.sample(peers, min(len(peers), _MOST_GIVERS)):
            try:
                answer = self.worker.rpc(peer).tilewright_objects(core=self._core)
                objects = await asyncio.wait_for(answer, _ALL_SECONDS)
            except Exception as error:  # it left, or has no plugin; objects can be compiled
                logger.debug("no objects from %s: %s", peer, error)
                continue
            taken = await asyncio.to_thread(self._store, objects)
            logger.debug("%d objects from %s", taken, peer)

    def _store(self, objects: Any) -> int:
        """Store the objects whose keys are those of this machine; returns how many."""
        store, machine, taken = object_cache(), host_machine(), 0
        if store is None or not isinstance(objects, (list, tuple)):
            return 0
        for what, key, payload in objects:
            own = key_of(what, machine) == key and 0 < len(payload) <= MOST_OBJECT_BYTES
            if own and store.load(key) is None:
                store.store(key, bytes(payload))
                taken += 1
        self.received += taken
        return taken

    def _ask(self, what: str, key: bytes) -> bytes | None:
        """An object from another worker, for a thread that would compile it otherwise."""
        if threading.get_ident() == self._loop_thread or key_of(what, host_machine()) != key:
            return None
        self._compiling[key] = time.monotonic()
        try:
            question = self._ask_peers(key)
            future = asyncio.run_coroutine_threadsafe(question, self.worker.loop.asyncio_loop)
            found = future.result(_MOST_ASKED * _ANSWER_SECONDS + _COMPILING_SECONDS)
        except Exception as error:
            logger.debug("no object from other workers: %s", error)
            return None
        if found is not None:
            self.received += 1
        return found

    async def _ask_peers(self, key: bytes) -> bytes | None:
        """An object from one of some peers, waiting for one that is compiling it."""
        workers = await peers_of(self.worker)
        names = sorted(workers)
        for peer in names[:1] + random.sample(names[1:], min(len(names[1:]), _MOST_ASKED - 1)):
            end = time.monotonic() + _COMPILING_SECONDS
            while time.monotonic() < end:
                try:
                    answer = self.worker.rpc(peer).tilewright_object(key=key, asker=self.worker.address)
                    found = await asyncio.wait_for(answer, _ANSWER_SECONDS)
                except Exception as error:
                    logger.debug("no object from %s: %s", peer, error)
                    break
                if found != _COMPILING:
                    if isinstance(found, bytes) and 0 < len(found) <= MOST_OBJECT_BYTES:
                        return found
                    break
                await asyncio.sleep(_POLL_SECONDS)
        return None


async def peers_of(worker: Any) -> Mapping[str, Any]:
    """The other workers of the cluster, by address: their hosts and threads."""
    known = await asyncio.wait_for(worker.scheduler.identity(), _ALL_SECONDS)
    return {address: one for address, one in known["workers"].items() if address != worker.address}
