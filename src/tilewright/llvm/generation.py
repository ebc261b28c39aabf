"""Machine code of several modules at once: LLVM generates it on threads, each module in a context of its own.

llvmlite holds one lock around every call of LLVM. What needs it (parsing, verifying, making target machines)
is done by the caller before any thread starts; the threads call the code generator alone, without the lock,
which LLVM allows for modules of different contexts. So a thread waits for nothing that the caller may hold.
"""

from __future__ import annotations

import ctypes
import gc
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from tilewright.llvm.matrix import PREFIX
from tilewright.llvm.target import compilations, emit_object, new_target_machine, parse
from tilewright.machine.host import default_thread_count, host_facts
from tilewright.machine.machine import Machine
from tilewright.preparing import preparing
from tilewright.settings import read_settings

#: Lines of LLVM text from which a thread is worth its start, 0.1 ms: LLVM takes about 1 ms for 40 to 60.
_LEAST_LINES = 200

#: Stack of a thread: LLVM recurses, and some systems give threads 128 KiB.
_STACK_BYTES = 8 << 20


def without_lock(name: str) -> Any:
    """A function of llvmlite's library by its name, without the lock that llvmlite's wrapper holds."""
    return getattr(llvm.ffi.lib, name)._cfn  # noqa: SLF001


class Job(NamedTuple):
    """A module to compile: its text, and the level of optimisation."""

    text: str
    level: int


class _Prepared(NamedTuple):
    """What the code generator needs, made under llvmlite's lock; `context` outlives the module."""

    context: Any
    module: Any
    target: Any
    failure: Any

    @classmethod
    def of(cls, job: Job, name: str, machine: Machine) -> _Prepared:
        context = llvm.create_context()
        module = parse(job.text, name, context)
        return cls(context, module, new_target_machine(machine, job.level), llvm.ffi.OutputString())

    def taken(self, buffer: Any) -> bytes:
        """The object file in a buffer of LLVM, which is given back."""
        if not buffer:
            raise RuntimeError(str(self.failure))
        lib = llvm.ffi.lib
        try:
            return ctypes.string_at(lib.LLVMPY_GetBufferStart(buffer), lib.LLVMPY_GetBufferSize(buffer))
        finally:
            lib.LLVMPY_DisposeMemoryBuffer(buffer)


class Generation:
    """The threads that generate code now, and how many may.

    As a context manager it waits for them: a fork copies none of them, and may find LLVM in the middle of
    something. Only a signal handler can fork then, in the thread that waits for them.
    """

    def __init__(self) -> None:
        self.most: int | None = None
        self._running: list[threading.Thread] = []

    @property
    def threads(self) -> int:
        """How many threads may generate code, the caller among them."""
        if self.most is not None:
            return self.most
        settings = read_settings()
        return default_thread_count(settings, host_facts(settings))

    def __enter__(self) -> None:
        _join(tuple(self._running))

    def __exit__(self, *failure: object) -> None:
        pass

    def run(self, prepared: Sequence[_Prepared], helpers: int) -> list[bytes]:
        """The object files of some modules, which are begun in this order."""
        generate = without_lock("LLVMPY_TargetMachineEmitToMemory")
        waiting = deque(range(len(prepared)))
        buffers: list[Any] = [None] * len(prepared)

        def work() -> None:
            while True:
                try:
                    number = waiting.popleft()
                except IndexError:
                    return
                one = prepared[number]
                buffers[number] = generate(one.target, one.module, 1, one.failure)

        threads = [threading.Thread(target=work, name="tilewright-code", daemon=True) for _ in range(helpers)]
        self._running.extend(threads)
        try:
            _start(threads)
            work()
        finally:
            waiting.clear()  # where a signal has interrupted the caller
            _join(threads)
            self._running[:] = [thread for thread in self._running if thread not in threads]
        return [one.taken(buffer) for one, buffer in zip(prepared, buffers, strict=True)]


def _start(threads: Sequence[threading.Thread]) -> None:
    """Starts threads, or as many as the system has, or none where Python ends."""
    before = threading.stack_size(_STACK_BYTES)
    try:
        for thread in threads:
            thread.start()
    except RuntimeError:
        pass
    finally:
        threading.stack_size(before)


def _join(threads: Sequence[threading.Thread]) -> None:
    """Waits for those threads that were started."""
    for thread in threads:
        if thread.ident is not None:
            thread.join()


#: The code generation of this process.
generation = Generation()


class _WithoutCollection:
    """Keeps Python from collecting cycles: a finaliser in a thread may want a lock that the caller holds.

    The caller waits for the thread.
    """

    def __init__(self) -> None:
        self._enabled = False

    def __enter__(self) -> None:
        self._enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *failure: object) -> None:
        if self._enabled:
            gc.enable()


def emit_objects(jobs: Sequence[Job], name: str, machine: Machine) -> list[bytes]:
    """Machine code of some modules, as object files; the same as `emit_object` makes of each."""
    with preparing:
        helpers = min(generation.threads, len(jobs)) - 1
        lines = sorted(job.text.count("\n") for job in jobs)  # others share what is not the longest
        if helpers < 1 or sum(lines[:-1]) < _LEAST_LINES or any(PREFIX in job.text for job in jobs):
            return [emit_object(job.text, name, machine, job.level) for job in jobs]
        compilations.number += len(jobs)
        # Longest first, so that no thread begins a long one when the others are done.
        order = sorted(range(len(jobs)), key=lambda number: -len(jobs[number].text))
        prepared = [_Prepared.of(jobs[number], name, machine) for number in order]
        with _WithoutCollection():
            found = dict(zip(order, generation.run(prepared, helpers), strict=True))
        return [found[number] for number in range(len(jobs))]
