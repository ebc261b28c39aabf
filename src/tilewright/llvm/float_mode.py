"""The floating-point mode of a thread: how it rounds, and whether it flushes subnormals to zero."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, int64
from tilewright.machine.arch import find_arch


def read_float_mode(f: Function) -> Value:
    """The mode of the current thread as a 64-bit integer; 0 if the architecture's is not known."""
    known = find_arch(f.module.triple).float_mode
    if known is None:
        return int64(0)
    kind = INT32 if known.bits == 32 else INT64
    if known.in_memory:
        place = f.alloca(kind, 1, 8)
        f.call(f.module.declare(known.read, VOID, (POINTER,)), [place])
        found = f.load(kind, place, 4)
    else:
        found = f.call(f.module.declare(known.read, kind, ()), [])
    return found if kind == INT64 else f.zext(found, INT64)


def write_float_mode(f: Function, mode: Value, now: Value) -> None:
    """Give the current thread a mode, unless that is equal to the mode now but for flags of operations."""
    known = find_arch(f.module.triple).float_mode
    if known is None:
        return
    kind = INT32 if known.bits == 32 else INT64
    with f.when(f.icmp("!=", f.and_(f.xor(mode, now), int64(~known.flags)), 0)):
        value = mode if kind == INT64 else f.trunc(mode, kind)
        if known.in_memory:
            place = f.alloca(kind, 1, 8)
            f.store(value, place, 4)
            f.call(f.module.declare(known.write, VOID, (POINTER,)), [place])
        else:
            f.call(f.module.declare(known.write, VOID, (kind,)), [value])
