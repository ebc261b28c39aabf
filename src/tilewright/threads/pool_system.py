"""How threads of the pool sleep on this operating system, and the functions that its machine code imports."""

from __future__ import annotations

import ctypes
from enum import Enum

from tilewright.llvm.builtin import address_of
from tilewright.machine.arch import SystemCalls, linux_arch


class Wait(Enum):
    """How a thread sleeps until a word changes."""

    FUTEX = "futex"
    CONDITION = "pthread condition"


def host_wait() -> Wait:
    """Futexes on Linux, pthread condition variables elsewhere."""
    return Wait.CONDITION if system_calls() is None else Wait.FUTEX


def system_calls() -> SystemCalls | None:
    """The numbers of this host's system calls, if they are known."""
    arch = linux_arch()
    return None if arch is None else arch.system_calls


def known_system_calls() -> SystemCalls:
    """Those of a host that waits by futexes."""
    found = system_calls()
    assert found is not None
    return found


_LIBRARY = {
    Wait.FUTEX: ("clock_gettime", "syscall", "sched_getcpu"),
    Wait.CONDITION: (
        "clock_gettime",
        "pthread_mutex_lock",
        "pthread_mutex_unlock",
        "pthread_cond_wait",
        "pthread_cond_broadcast",
    ),
}
_INTERPRETER = (
    "PyThread_get_thread_ident",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyErr_CheckSignals",
    "PyErr_Fetch",
)


def imported_symbols(wait: Wait) -> dict[str, int]:
    """Addresses of the functions imported from the C library and the interpreter."""
    sources = ((ctypes.CDLL(None), _LIBRARY[wait]), (ctypes.pythonapi, _INTERPRETER))
    return {f"tw_{name}": address_of(getattr(library, name)) for library, names in sources for name in names}
