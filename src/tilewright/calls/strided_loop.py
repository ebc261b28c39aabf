"""Unary kernels over any number of outer axes as one compiled loop, without Python code for each matrix."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

from tilewright.calls.operands import Array, data_address
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID, int64
from tilewright.machine.host import host_machine
from tilewright.preparing import once
from tilewright.recorder import current
from tilewright.spec.arguments import MOST_AXES

_MODULE = "tw_walk"

#: Arguments of a strided kernel after its two pointers.
KERNEL_ARGUMENTS = ("rs_a", "cs_a", "rs_b", "cs_b", "m", "n")
#: Layout of a loop record in 64-bit words. After these come the lengths of the axes, innermost first; then
#: for each axis the byte strides of A and of B. `count` is the number of positions of all axes except the
#: innermost.
_WORDS = ("kernel", *KERNEL_ARGUMENTS, "axes", "count")


def strided_loop_record(kernel: int, arguments: Sequence[int], axes: Sequence[tuple[int, int, int]]) -> Any:
    """The record of a strided loop: kernel, arguments, and axes as (length, step in A, step in B).

    >>> list(strided_loop_record(4096, (1, 8, 8, 1, 5, 8), ()))
    [4096, 1, 8, 8, 1, 5, 8, 0, 1]
    """
    count = math.prod(length for length, _, _ in axes[1:])
    words = [
        kernel,
        *arguments,
        len(axes),
        count,
        *(word for column in zip(*axes, strict=True) for word in column),
    ]
    return (ctypes.c_int64 * len(words))(*words)


def _emit() -> str:
    """The module."""
    machine = host_machine()
    module = Module(_MODULE, machine.triple, data_layout(machine))
    arguments = [("record", POINTER), ("a", POINTER), ("b", POINTER)]
    _emit_walk(module.define(_MODULE, VOID, arguments, exported=True))
    return str(module)


def _emit_walk(f: Function) -> None:
    """The kernel at every position of the axes: a loop over the innermost, an odometer over the others."""
    g = f.arguments
    word = {name: f.load(INT64, f.at(g["record"], 8 * index), 8) for index, name in enumerate(_WORDS)}
    kernel = Callee(VOID, f.inttoptr(word["kernel"]).text)
    rest = [word[name] for name in KERNEL_ARGUMENTS]
    axes = word["axes"]
    with f.when(f.icmp("==", axes, 0)):
        f.call(kernel, [g["a"], g["b"], *rest])
        f.ret()
    column = f.mul(axes, 8)
    lengths = f.at(g["record"], 8 * len(_WORDS))
    steps_a = f.at(lengths, column)
    columns = (lengths, steps_a, f.at(steps_a, column))
    length, step_a, step_b = (f.load(INT64, at, 8) for at in columns)
    positions = f.alloca(INT64, MOST_AXES, 8)
    with f.loop(int64(0), axes, int64(1), "clear") as axis:
        f.store(int64(0), f.at(positions, f.mul(axis, 8)), 8)
    with f.carried_loop(int64(0), word["count"], int64(1), [g["a"], g["b"]], "outer") as (
        _,
        places,
        following,
    ):
        with f.carried_loop(int64(0), length, int64(1), places, "inner") as (_, (a, b), advance):
            f.call(kernel, [a, b, *rest])
            advance([f.at(a, step_a), f.at(b, step_b)])
        # Every axis that the carry reaches advances; an axis that overflows restarts and carries on.
        with f.carried_loop(int64(1), axes, int64(1), [*places, int64(1)], "carry") as (axis, moved, advance):
            a, b, carry = moved
            place = f.mul(axis, 8)
            extent, over_a, over_b = (f.load(INT64, f.at(at, place), 8) for at in columns)
            at = f.at(positions, place)
            position = f.add(f.load(INT64, at, 8), carry)
            done = f.icmp("==", position, extent)
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


@once
def _code() -> Linked:
    machine = host_machine()
    code = cached_object(_MODULE, machine, lambda: emit_object(_emit(), _MODULE, machine))
    return Linked(code, (_MODULE,), {})


@once
def _loop() -> Any:
    return _code().function(_MODULE, [ctypes.c_void_p] * 3)


def loop_over_arrays(record: Any, a: Array, b: Array) -> None:
    """Runs a record on two arrays; it releases the GIL."""
    recorder = current.recorder
    address = ctypes.addressof(record)
    if recorder is not None:
        recorder.constant(record, address, ctypes.sizeof(record))
        recorder.team(None, a.size)
    _loop()(address, data_address(a), data_address(b))
