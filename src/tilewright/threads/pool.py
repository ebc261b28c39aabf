"""The thread pool: one per process, of daemon threads that wait inside compiled code.

Python starts the threads; each calls the worker loop of `pool_code.py` once, without the GIL, and stays in
it. Work is passed to them through shared memory (`pool_memory.py`). A call opens a `TeamMemory`, whose
address kernels take.
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

from tilewright.errors.callers import named_in_errors
from tilewright.llvm.generation import generation
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.quick import quick_code
from tilewright.llvm.target import QUICK_LEVEL, emit_object
from tilewright.machine.host import default_thread_count, host_facts, host_machine
from tilewright.preparing import Late, Section, once, once_property, preparing
from tilewright.recorder import current
from tilewright.settings import Settings, read_settings
from tilewright.spec.arguments import check_thread_count
from tilewright.threads.lifetime import outlive, private_memory, reset_after_forks
from tilewright.threads.pool_memory import (
    CLOSE,
    FREE,
    MOST_WORKERS,
    OPEN,
    RUN,
    TEAM_ALIGNMENT,
    WORK,
    PoolState,
    TeamMemory,
    WorkerSlot,
)
from tilewright.threads.pool_system import Wait, host_wait, imported_symbols

logger = logging.getLogger("tilewright.threads")

#: Writes the machine code, which a process with the object cache does not need.
_emit_pool = Late("tilewright.threads.pool_code:emit_pool")

#: The most threads of a call, including the caller: scratch is reserved for each.
MOST_THREADS = min(max(64, os.cpu_count() or 1), MOST_WORKERS + 1)

#: Products of fewer multiply-adds run on one thread: they take 8 us on a core, fork and join cost 0.3 us, and
#: moving operands to the other core about as much again.
TEAM_WORK = 1 << 20
#: The same for the threads of a program's OpenMP: on two cores with AVX2, 144·144·144 in float32 takes 63 us
#: on one thread, 48 on two of LLVM's runtime, and 38 on the pool.
OPENMP_WORK = 1 << 21
#: Multiply-adds from which sleeping workers are woken: waking takes the caller 3 us, and such a call 16 us on
#: one core from registers, much longer from memory.
WAKE_WORK = 1 << 21
#: Multiply-adds from which a single thread also polls for signals between its tasks: 0.6 ms of vector code,
#: 20 ms of scalar code or of first-touched memory.
POLL_WORK = 1 << 25

#: Spinning time before a thread sleeps: about twice the cost of sleeping and waking, so that spinning in vain
#: never doubles the time of a call.
SPIN_US = 50.0

#: Interval of polling for signals; a handler runs with at most this delay, plus one task.
POLL_NS = 30_000_000

#: Stack size of a worker, independent of the system's default (musl: 128 KiB): tile buffers take a few KiB.
STACK_BYTES = 1 << 20

#: Signals go to Python's main thread, except these, which a thread gets for its own faults.
_OWN_SIGNALS = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGPROF"}


def check_threads(name: str, value: object) -> int:
    """A valid thread count.

    Raises
    ------
    InvalidThreads : if it is not an integer from 1 to `MOST_THREADS`.

    >>> check_threads("threads", 2)
    2
    """
    return check_thread_count(name, value, MOST_THREADS)


class ThreadPool:
    """Worker threads, and the teams that calls form of them.

    Parameters
    ----------
    size : default number of threads of a call, including the caller.
    cores : awake threads above which none of them spins.
    spin_us : spinning time before a thread sleeps.
    wait : how threads sleep.
    """

    def __init__(self, size: int, cores: int, spin_us: float = SPIN_US, wait: Wait | None = None) -> None:
        self.wait = wait or host_wait()
        self._memory = private_memory(ctypes.sizeof(PoolState))
        outlive(self._memory)
        self.state = PoolState.from_buffer(self._memory)
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
        """Address of the pool's state, for native code."""
        return ctypes.addressof(self.state)

    @property
    def size(self) -> int:
        """Default number of threads of a call."""
        return int(self.state.size)

    @property
    def workers(self) -> int:
        """Number of workers started; those beyond `size` sleep."""
        return int(self.state.started)

    def resize(self, size: int) -> None:
        """Change the number of threads of later calls; surplus workers keep sleeping."""
        self.state.size = size

    def supply(self, threads: int) -> None:
        """Start the workers that this many threads need; fewer if the system refuses."""
        if self.state.open and self.state.started >= threads - 1:
            return
        with self._starting as first:
            if not first:  # a signal handler interrupted its own thread: the workers that run are enough
                return
            # Machine code opens teams as soon as it finds these functions.
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
        """Reset in the child of a fork, which has no workers and no other callers."""
        state = self.state
        ctypes.memset(ctypes.addressof(state.slots), 0, ctypes.sizeof(state.slots))
        state.started = state.active = state.awake = state.closed_at = state.alone_until = 0
        state.main_thread = threading.get_ident()

    @contextmanager
    def team(self, threads: int | None = None, *, long: bool = True) -> Iterator[int]:
        """The address of a team for the duration of one call, which must release the GIL.

        Parameters
        ----------
        threads : upper limit including the caller; `size` by default. Concurrent callers share the workers.
        long : whether the call is long enough to wake sleeping workers, which costs some microseconds.

        Raises
        ------
        The exception of a signal handler that ran meanwhile, such as KeyboardInterrupt.
        """
        wanted = self.size if threads is None else threads
        self.supply(wanted)
        team = TeamMemory()
        address = ctypes.addressof(team)
        assert address % TEAM_ALIGNMENT == 0
        self._open.unrecorded(self.address, address, wanted, long)
        try:
            yield address
        finally:
            self._close.unrecorded(address)
        if team.cancelled:
            raise_cancelled(team)


def raise_cancelled(team: TeamMemory) -> None:
    """Raise the exception that a signal handler raised while the team ran."""
    restore = ctypes.pythonapi.PyErr_Restore
    restore.argtypes, restore.restype = (ctypes.c_void_p,) * 3, None
    restore(*team.exception)  # functions of `pythonapi` raise the error that is set when they return


@once
def _code(wait: Wait) -> Linked:
    machine, name = host_machine(), f"tw_pool {wait.value}"
    # The code waits for other cores: forks and joins take the same time at either level.
    code = cached_object(
        name, machine, lambda: emit_object(_emit_pool(machine, wait), name, machine, QUICK_LEVEL)
    )
    return Linked(code, (WORK, OPEN, CLOSE, RUN), imported_symbols(wait))


def _work(code: int, state: int, slot: int) -> None:
    """Thread function of a worker."""
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
    """Initialise the mutex and the condition variable of a slot."""
    library: Any = ctypes.CDLL(None)
    for initialise, field in (
        (library.pthread_mutex_init, WorkerSlot.mutex),
        (library.pthread_cond_init, WorkerSlot.condition),
    ):
        initialise.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        initialise(slot + field.offset, None)


# --- the pool of this process -----------------------------------------------------------------------

#: The pool of this process, once created, and the thread count requested before that.
_pools: list[ThreadPool] = []
_asked: list[int] = []


@cache
def _defaults(settings: Settings) -> tuple[int, int]:
    """Default number of threads of a call, and cores available to this process."""
    facts = host_facts(settings)
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


@named_in_errors
def set_num_threads(count: int) -> None:
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
    checked = check_threads("count", count)
    with preparing:
        _asked[:] = [checked]
        generation.most = checked
        if _pools:
            _pools[0].resize(checked)


def pool_facts() -> dict[str, object]:
    """Human-readable facts about the pool of this process."""
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
    """The `threads=` argument of the running call, for each thread of the application."""

    threads: int | None = None


_limits = _Limits()


class _Limited:
    """Context in which calls of this thread use so many threads."""

    __slots__ = ("_before", "_threads")

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def __enter__(self) -> None:
        self._before = _limits.threads
        _limits.threads = self._threads

    def __exit__(self, *failure: object) -> None:
        _limits.threads = self._before


class _Unlimited:
    """Context in which calls use as many threads as around it."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *failure: object) -> None:
        pass


_UNLIMITED = _Unlimited()


def limited(threads: object) -> AbstractContextManager[None]:
    """Context in which calls use this many threads; None: the default.

    Raises
    ------
    InvalidThreads : if it is not a valid thread count.
    """
    return _UNLIMITED if threads is None else _Limited(check_threads("threads", threads))


def wanted_threads() -> int:
    """Upper limit of threads for a call of this thread."""
    return get_num_threads() if _limits.threads is None else _limits.threads


def without_team(work: int) -> None:
    """Tells a recording how many multiply-adds the functions that follow take, which have no team."""
    recorder = current.recorder
    if recorder is not None:
        recorder.team(None, work)


class call_team:  # noqa: N801  (used as a function; a generator would take a microsecond)
    """Context manager: the team of a call with this many multiply-adds; None if one thread is enough.

    Raises
    ------
    The exception of a signal handler that ran meanwhile.

    >>> with call_team(100) as team:
    ...     print(team)
    None
    """

    __slots__ = ("_team", "_work")

    def __init__(self, work: int) -> None:
        self._work = work
        self._team: AbstractContextManager[int] | None = None

    def __enter__(self) -> int | None:
        found = self._opened()
        recorder = current.recorder
        if recorder is not None:
            recorder.team(found, self._work)
        return found

    def _opened(self) -> int | None:
        work = self._work
        if work <= TEAM_WORK:
            return None
        quick_code.check(work)
        threads = wanted_threads()
        if threads == 1 and work <= POLL_WORK:
            return None
        self._team = thread_pool().team(threads, long=work > WAKE_WORK)
        return self._team.__enter__()

    def __exit__(self, *failure: Any) -> None:
        if self._team is not None:
            self._team.__exit__(*failure)
