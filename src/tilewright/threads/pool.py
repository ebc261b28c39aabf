"""The thread pool: one per process, of daemon threads that wait inside compiled code.

Python starts the threads; each calls the loop of `pool_code.py` once, without the GIL, and stays in it. Work
is given to them through memory (`pool_memory.py`). A call opens a `TeamMemory`, whose address kernels take.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import emit_object
from tilewright.machine.host import default_thread_count, detect_host, host_machine
from tilewright.preparing import Section, once, once_property, preparing
from tilewright.settings import Settings, read_settings
from tilewright.spec.arguments import check_thread_count
from tilewright.threads.lifetime import outlive, private_memory, reset_after_forks
from tilewright.threads.pool_code import (
    CLOSE,
    OPEN,
    RUN,
    WORK,
    Wait,
    emit_pool,
    host_wait,
    imported_symbols,
)
from tilewright.threads.pool_memory import FREE, MOST_WORKERS, TEAM_ALIGNMENT, State, TeamMemory, WorkerSlot

logger = logging.getLogger("tilewright")

#: The most threads of a call, the caller among them: scratch has a part for each.
MOST_THREADS = min(max(64, os.cpu_count() or 1), MOST_WORKERS + 1)

#: Products of fewer multiply-adds are as fast on one thread: these take 8 us on a core, a fork and a join 0.3
#: us, and the way of operands to the other core as much again.
TEAM_WORK = 1 << 20
#: From here on waking a sleeping worker, which takes its caller 3 us, is little beside the call: 16 us on a
#: core in registers, many times that where operands come from memory.
WAKE_WORK = 1 << 21
#: From here on one thread too looks for signals between its tasks: 0.6 ms of vectors, 20 ms of single
#: elements or of fresh memory.
POLL_WORK = 1 << 25

#: How long threads poll before they sleep: about what falling asleep and being woken costs twice, so that
#: polling in vain never doubles the time of anything.
SPIN_US = 50.0

#: From one look for signals to the next; a handler runs that much later, and one task.
POLL_NS = 30_000_000

#: Stack of a worker, whatever the system's default is (musl: 128 KiB): tile buffers take a few KiB of it.
STACK_BYTES = 1 << 20

#: Signals are for Python's main thread; these a thread gets for what it does itself.
_OWN_SIGNALS = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGPROF"}


def check_threads(name: str, value: object) -> int:
    """A number of threads.

    Raises
    ------
    InvalidThreads : if it is not an integer from 1 to `MOST_THREADS`.

    >>> check_threads("threads", 2)
    2
    """
    return check_thread_count(name, value, MOST_THREADS)


class ThreadPool:
    """Workers, and the teams that callers make of them.

    Parameters
    ----------
    size : threads of a call that does not say how many, the caller included.
    cores : threads that may be awake at once before none of them polls.
    spin_us : for how long threads poll before they sleep.
    wait : how they sleep.
    """

    def __init__(self, size: int, cores: int, spin_us: float = SPIN_US, wait: Wait | None = None) -> None:
        self.wait = wait or host_wait()
        self._memory = private_memory(ctypes.sizeof(State))
        outlive(self._memory)
        self.state = State.from_buffer(self._memory)
        outlive(self.state)
        self.state.size, self.state.cores = size, cores
        self.state.spin_ns, self.state.poll_ns = int(spin_us * 1000), POLL_NS
        self.state.main_thread = threading.main_thread().ident or 0
        self._starting = Section()
        reset_after_forks(self._forget)

    @once_property
    def _code(self) -> Linked:
        return _code(self.wait)

    @once_property
    def _open(self) -> Any:
        kinds = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        return self._code.function(OPEN, kinds)

    @once_property
    def _close(self) -> Any:
        return self._code.function(CLOSE, [ctypes.c_void_p])

    @property
    def address(self) -> int:
        """Where the state stands, for native code."""
        return ctypes.addressof(self.state)

    @property
    def size(self) -> int:
        """Threads of a call that does not say how many."""
        return int(self.state.size)

    @property
    def workers(self) -> int:
        """Threads that were started; those beyond `size` sleep."""
        return int(self.state.started)

    def resize(self, size: int) -> None:
        """Changes the number of threads of later calls; workers that are too many sleep on."""
        self.state.size = size

    def supply(self, threads: int) -> None:
        """Starts the workers that so many threads need; with fewer where the system allows no more."""
        if self.state.open and self.state.started >= threads - 1:
            return
        with self._starting as first:
            if not first:  # a signal handler interrupted its own thread: the workers that run are enough
                return
            # Machine code opens teams once it finds the functions.
            self.state.close, self.state.open = self._code.address(CLOSE), self._code.address(OPEN)
            before = threading.stack_size(STACK_BYTES)
            try:
                while self.state.started < threads - 1:
                    self._start(int(self.state.started))
            except RuntimeError as error:  # no more threads, or the interpreter is about to end
                logger.warning("%d threads instead of %d: %s", self.workers + 1, threads, error)
                self.state.size = min(self.size, self.workers + 1)
            finally:
                threading.stack_size(before)

    def _start(self, index: int) -> None:
        self.state.slots[index].word = FREE  # callers may offer work before the thread is there
        slot = ctypes.addressof(self.state.slots[index])
        if self.wait is Wait.CONDITION:
            _initialise_condition(slot)
        arguments = (self._code.address(WORK), self.address, slot)
        name = f"tilewright-{index + 1}"
        threading.Thread(target=_work, args=arguments, name=name, daemon=True).start()
        self.state.started = index + 1

    def _forget(self) -> None:
        """In the child of a fork, which has no workers and no other callers."""
        state = self.state
        ctypes.memset(ctypes.addressof(state.slots), 0, ctypes.sizeof(state.slots))
        state.started = state.active = state.awake = state.closed_at = state.alone_until = 0
        state.main_thread = threading.get_ident()

    @contextmanager
    def team(self, threads: int | None = None, *, long: bool = True) -> Iterator[int]:
        """The address of a team for the duration of one call, which must release the GIL.

        Parameters
        ----------
        threads : at most so many, the caller included; `size` of them by default. Each caller that runs at
            the same time gets a share.
        long : whether waking workers that sleep is worth it, which costs some microseconds.

        Raises
        ------
        Whatever a signal handler raised meanwhile, such as KeyboardInterrupt.
        """
        wanted = self.size if threads is None else threads
        self.supply(wanted)
        team = TeamMemory()
        address = ctypes.addressof(team)
        assert address % TEAM_ALIGNMENT == 0
        self._open(self.address, address, wanted, long)
        try:
            yield address
        finally:
            self._close(address)
        if team.cancelled:
            raise_cancelled(team)


def raise_cancelled(team: TeamMemory) -> None:
    """Raises what a signal handler raised while the team ran."""
    restore = ctypes.pythonapi.PyErr_Restore
    restore.argtypes, restore.restype = (ctypes.c_void_p,) * 3, None
    restore(*team.exception)  # functions of `pythonapi` raise the error that is set when they return


@once
def _code(wait: Wait) -> Linked:
    machine, name = host_machine(), f"tw_pool {wait.value}"
    code = cached_object(name, machine, lambda: emit_object(emit_pool(machine, wait), name, machine))
    return Linked(code, (WORK, OPEN, CLOSE, RUN), imported_symbols(wait))


def _work(code: int, state: int, slot: int) -> None:
    """The whole life of a worker."""
    if hasattr(signal, "pthread_sigmask"):
        others = {number for number in signal.valid_signals() if _name_of(number) not in _OWN_SIGNALS}
        signal.pthread_sigmask(signal.SIG_BLOCK, others)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(code)(state, slot)


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return str(number)


def _initialise_condition(slot: int) -> None:
    """A fresh mutex and a fresh condition."""
    library: Any = ctypes.CDLL(None)
    for initialise, field in (
        (library.pthread_mutex_init, WorkerSlot.mutex),
        (library.pthread_cond_init, WorkerSlot.condition),
    ):
        initialise.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        initialise(slot + field.offset, None)


# --- the pool of this process -----------------------------------------------------------------------

#: The one pool, once made, and how many threads were asked for before that.
_pools: list[ThreadPool] = []
_asked: list[int] = []


@cache
def _defaults(settings: Settings) -> tuple[int, int]:
    """Threads of a call by default, and cores that this process may use."""
    facts = detect_host(settings)
    return default_thread_count(settings, facts), facts.usable_cores


def thread_pool() -> ThreadPool:
    """The pool of this process; its workers are started by the first team that needs them."""
    if not _pools:
        with preparing:
            if not _pools:
                settings = read_settings()
                size, cores = _defaults(settings)
                spin = SPIN_US if settings.spin_us is None else settings.spin_us
                _pools.append(ThreadPool(_asked[-1] if _asked else size, cores, spin))
    return _pools[0]


def get_num_threads() -> int:
    """How many threads a call uses; see `set_num_threads`.

    Examples
    --------
    >>> import tilewright as tw
    >>> tw.get_num_threads() >= 1
    True
    """
    if _pools:
        return _pools[0].size
    return _asked[-1] if _asked else _defaults(read_settings())[0]


def set_num_threads(count: object) -> None:
    """Sets how many threads a call uses, in every thread of this process.

    Parameters
    ----------
    count : threads of later calls, the caller among them; 1 computes on the caller alone. More than the
        process may use cores are allowed, but then threads take turns and never poll for work, so that most
        products take longer.

    Raises
    ------
    InvalidThreads : if `count` is not an integer from 1 to a bound of about a thousand.

    Notes
    -----
    By default it is the least of the CPUs that the process may run on, the whole cores in its control
    group's quota, OMP_NUM_THREADS and TILEWRIGHT_NUM_THREADS. Results have the same bits with any number.
    Threads are started when they are first needed; those that become too many sleep.

    Examples
    --------
    >>> import tilewright as tw
    >>> before = tw.get_num_threads()
    >>> tw.set_num_threads(1)
    >>> tw.get_num_threads()
    1
    >>> tw.set_num_threads(before)
    """
    checked = check_threads("set_num_threads: the number", count)
    with preparing:
        _asked[:] = [checked]
        if _pools:
            _pools[0].resize(checked)


def pool_facts() -> dict[str, object]:
    """The pool of this process, for a person to read."""
    pool = thread_pool()
    return {
        "size": pool.size,
        "started": pool.workers,
        "cores": int(pool.state.cores),
        "polls for": f"{pool.state.spin_ns / 1000:g} us",
        "sleeps on": pool.wait.value,
    }


# --- teams of calls ---------------------------------------------------------------------------------


class _Limits(threading.local):
    """What `threads=` of the running call says, in each thread of the application."""

    threads: int | None = None


_limits = _Limits()


@contextmanager
def limited(threads: object) -> Iterator[None]:
    """Calls inside use so many threads; as many as otherwise where it is None.

    Raises
    ------
    InvalidThreads : if it is no number of threads.
    """
    before = _limits.threads
    if threads is not None:
        _limits.threads = check_threads("threads", threads)
    try:
        yield
    finally:
        _limits.threads = before


def wanted_threads() -> int:
    """How many threads a call of this thread uses at most."""
    return get_num_threads() if _limits.threads is None else _limits.threads


class call_team:  # noqa: N801  (used as a function; a generator would take a microsecond)
    """The team of a call of so many multiply-adds; None where one thread is enough.

    Raises
    ------
    Whatever a signal handler raised meanwhile.

    >>> with call_team(100) as team:
    ...     print(team)
    None
    """

    __slots__ = ("_team", "_work")

    def __init__(self, work: int) -> None:
        self._work = work
        self._team: AbstractContextManager[int] | None = None

    def __enter__(self) -> int | None:
        work = self._work
        if work <= TEAM_WORK:
            return None
        threads = wanted_threads()
        if threads == 1 and work <= POLL_WORK:
            return None
        self._team = thread_pool().team(threads, long=work > WAKE_WORK)
        return self._team.__enter__()

    def __exit__(self, *failure: Any) -> None:
        if self._team is not None:
            self._team.__exit__(*failure)
