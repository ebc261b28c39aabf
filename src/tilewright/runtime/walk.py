"""Unary kernels over any number of outer axes, as one compiled loop: no Python per matrix."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from tilewright.llvm.build import Callee, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID, int64
from tilewright.machine.host import host_machine
from tilewright.runtime.cache import cached_object

#: NumPy's own limit on axes.
MOST_AXES = 64

_NAME = "tw_walk"
#: What the kernel of a strided problem takes behind its two pointers.
KERNEL_ARGUMENTS = ("rs_a", "cs_a", "rs_b", "cs_b", "m", "n")


def _emit() -> str:
    """The kernel at every position of the axes: the innermost as a loop, the others as an odometer.

    Axes come as three arrays, innermost first: lengths, and bytes from one position to the next in A and
    in B. `count` is the number of positions of all axes but the innermost.
    """
    machine = host_machine()
    module = Module(_NAME, machine.triple, data_layout(machine))
    arguments = [
        ("kernel", POINTER),
        ("a", POINTER),
        ("b", POINTER),
        *((name, INT64) for name in KERNEL_ARGUMENTS),
        ("axes", INT64),
        ("count", INT64),
        ("lengths", POINTER),
        ("steps_a", POINTER),
        ("steps_b", POINTER),
    ]
    f = module.define(_NAME, VOID, arguments, exported=True)
    g = f.arguments
    rest = [g[name] for name in KERNEL_ARGUMENTS]
    length, step_a, step_b = (f.load(INT64, g[name], 8) for name in ("lengths", "steps_a", "steps_b"))
    positions = f.stack(INT64, MOST_AXES, 8)
    with f.loop(int64(0), g["axes"], int64(1), "clear") as axis:
        f.store(int64(0), f.at(positions, f.mul(axis, 8)), 8)
    with f.carried_loop(int64(0), g["count"], int64(1), [g["a"], g["b"]], "outer") as (_, places, following):
        with f.carried_loop(int64(0), length, int64(1), places, "inner") as (_, (a, b), advance):
            f.call(Callee(VOID, g["kernel"].text), [a, b, *rest])
            advance([f.at(a, step_a), f.at(b, step_b)])
        # Every axis that the carry reaches moves on; one that is done starts again and carries on.
        state = [*places, int64(1)]
        with f.carried_loop(int64(1), g["axes"], int64(1), state, "carry") as (axis, moved, advance):
            a, b, carry = moved
            place = f.mul(axis, 8)
            extent, over_a, over_b = (
                f.load(INT64, f.at(g[name], place), 8) for name in ("lengths", "steps_a", "steps_b")
            )
            at = f.at(positions, place)
            position = f.add(f.load(INT64, at, 8), carry)
            done = f.compare("==", position, extent)
            back = f.select(done, extent, int64(0))
            f.store(f.sub(position, back), at, 8)
            moves = f.sub(carry, back)
            advance(
                [
                    f.at(a, f.mul(over_a, moves)),
                    f.at(b, f.mul(over_b, moves)),
                    f.select(done, carry, int64(0)),
                ]
            )
        following(advance.results[:2])
    f.ret()
    return str(module)


@cache
def _code() -> Linked:
    machine = host_machine()
    return Linked(cached_object(_NAME, machine, lambda: emit_object(_emit(), _NAME, machine)), (_NAME,), {})


@cache
def walk_function() -> Any:
    """The compiled loop as a ctypes function that runs without the GIL."""
    pointers = [ctypes.c_void_p] * 3
    kinds = [*pointers, *[ctypes.c_int64] * (len(KERNEL_ARGUMENTS) + 2), *pointers]
    return ctypes.CFUNCTYPE(None, *kinds)(_code().address(_NAME))
