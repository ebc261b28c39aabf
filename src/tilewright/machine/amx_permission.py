"""Linux's permission to use AMX tiles, which a process requests once before the first use.

Tile data makes signal frames 8 KiB larger, so the kernel enables tiles only for processes that request
them; without permission the first tile instruction ends the process with SIGILL.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

from tilewright.machine.arch import X86_64, linux_arch

#: arch_prctl of the x86-64 system call table, and its requests (arch/x86/include/uapi/asm/prctl.h).
_ARCH_PRCTL = 158
_ARCH_GET_XCOMP_SUPP = 0x1021
_ARCH_REQ_XCOMP_PERM = 0x1023
#: The component of the extended state that holds the tiles (Intel SDM vol. 1 §13.1: XTILEDATA).
_XFEATURE_XTILEDATA = 18


@cache
def amx_permitted() -> bool:
    """Request AMX tiles from the kernel and return whether this process may use them.

    The permission is the process's: all its threads have it, a fork inherits it, and nothing takes it away
    but another program. So one request at the first call is enough, and the answer is kept.

    Returns
    -------
    False where the processor has no AMX, where Linux is older than 5.16 or was started without AMX, where a
    thread has an alternate signal stack too small for the larger frame, and on other systems and processors.
    Then nothing has changed.

    Notes
    -----
    Source: Linux, Documentation/arch/x86/xstate.rst, "Using dynamically enabled XSTATE features in user space
    applications".

    Examples
    --------
    >>> amx_permitted() in (True, False)
    True
    """
    if linux_arch() is not X86_64 or sys.maxsize < 1 << 32:
        return False
    supported = ctypes.c_uint64()
    if _arch_prctl(_ARCH_GET_XCOMP_SUPP, ctypes.byref(supported)):
        return False
    if not supported.value >> _XFEATURE_XTILEDATA & 1:
        return False
    return not _arch_prctl(_ARCH_REQ_XCOMP_PERM, ctypes.c_long(_XFEATURE_XTILEDATA))


def _arch_prctl(request: int, argument: Any) -> int:
    """The system call, which has no function in the C library; 0 if it was granted."""
    system_call = ctypes.CDLL(None).syscall
    system_call.restype = ctypes.c_long
    return int(system_call(ctypes.c_long(_ARCH_PRCTL), ctypes.c_long(request), argument))
