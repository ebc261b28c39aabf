"""Batches of products as one compiled loop over a kernel: no Python per matrix."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.llvm.build import Callee, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID, element_type, int64
from tilewright.machine.host import host_machine
from tilewright.macro.nest import SIZES
from tilewright.runtime.cache import cached_object
from tilewright.spec.dtype import ACCUMULATORS, DType

_OPERANDS = ("a", "b", "c")
_FIXED = "tw_batch_fixed"


#: What alpha and beta are in C, by the type of the sums.
C_TYPES: dict[str, Any] = {
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
}


class Axis(NamedTuple):
    """One batch axis: its length, and bytes from one matrix to the next in a, b and c."""

    length: int
    steps: tuple[int, ...]


def merge_axes(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[Axis, ...]:
    """Batch axes with neighbours fused where every operand walks on evenly; length-1 axes dropped.

    Before: shape (4, 5), strides (200, 40) in a, (0, 0) in b, (500, 100) in c. After: one axis of 20.

    >>> merge_axes((4, 5), ((200, 40), (0, 0), (500, 100)))
    (Axis(length=20, steps=(40, 0, 100)),)
    """
    merged: list[Axis] = []
    for length, *steps in zip(shape, *strides, strict=True):
        if length == 1:
            continue
        outer = merged[-1] if merged else None
        if outer is not None and all(o == i * length for o, i in zip(outer.steps, steps, strict=True)):
            merged[-1] = Axis(outer.length * length, tuple(steps))
        else:
            merged.append(Axis(length, tuple(steps)))
    return tuple(merged)


def _name(acc: DType) -> str:
    return f"tw_batch_{acc}"


def _emit() -> str:
    """One function per type of sums: the kernel `count` times, its three pointers advancing by bytes."""
    machine = host_machine()
    module = Module("tw_batch", machine.triple, data_layout(machine))
    for acc in ACCUMULATORS:
        scalar = element_type(acc)
        arguments = [
            ("kernel", POINTER),
            ("count", INT64),
            *((f"step_{name}", INT64) for name in _OPERANDS),
            *((name, POINTER) for name in _OPERANDS),
            *((name, INT64) for name in SIZES),
            ("alpha", scalar),
            ("beta", scalar),
            ("scratch", POINTER),
            ("team", POINTER),
        ]
        f = module.define(_name(acc), VOID, arguments, exported=True)
        g = f.arguments
        state = [g[name] for name in _OPERANDS]
        rest = [g[name] for name in (*SIZES, "alpha", "beta", "scratch", "team")]
        with f.carried_loop(int64(0), g["count"], int64(1), state, "batch") as (_, pointers, advance):
            f.call(Callee(VOID, g["kernel"].text), [*pointers, *rest])
            steps = (g[f"step_{name}"] for name in _OPERANDS)
            advance([f.at(pointer, step) for pointer, step in zip(pointers, steps, strict=True)])
        f.ret()
    _emit_fixed(module)
    return str(module)


def _emit_fixed(module: Module) -> None:
    """The same loop for kernels of hardcoded sizes, in the C signature of `BatchReduceGemm`."""
    leading = [f"ld_{name}" for name in _OPERANDS]
    arguments = [
        ("kernel", POINTER),
        ("count", INT64),
        *((f"step_{name}", INT64) for name in _OPERANDS),
        *((name, POINTER) for name in _OPERANDS),
        *((name, INT64) for name in leading),
    ]
    f = module.define(_FIXED, VOID, arguments, exported=True)
    g = f.arguments
    state = [g[name] for name in _OPERANDS]
    rest = [*(g[name] for name in leading), int64(0), int64(0)]
    with f.carried_loop(int64(0), g["count"], int64(1), state, "batch") as (_, pointers, advance):
        f.call(Callee(VOID, g["kernel"].text), [*pointers, *rest])
        steps = (g[f"step_{name}"] for name in _OPERANDS)
        advance([f.at(pointer, step) for pointer, step in zip(pointers, steps, strict=True)])
    f.ret()


@cache
def _code() -> Linked:
    names = [_FIXED, *map(_name, ACCUMULATORS)]
    machine = host_machine()
    code = cached_object("tw_batch", machine, lambda: emit_object(_emit(), "tw_batch", machine))
    return Linked(code, names, {})


@cache
def batch_function(acc: DType) -> Any:
    """The compiled loop over kernels of one type of sums, as a ctypes function that runs without the GIL."""
    scalar = C_TYPES[acc.name]
    kinds: list[Any] = [ctypes.c_void_p] + [ctypes.c_int64] * 4 + [ctypes.c_void_p] * 3
    kinds += [ctypes.c_int64] * len(SIZES) + [scalar] * 2 + [ctypes.c_void_p] * 2
    return ctypes.CFUNCTYPE(None, *kinds)(_code().address(_name(acc)))


@cache
def fixed_batch_function() -> Any:
    """The compiled loop over a kernel of hardcoded sizes, for every element type."""
    kinds: list[Any] = [ctypes.c_void_p] + [ctypes.c_int64] * 4 + [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 3
    return ctypes.CFUNCTYPE(None, *kinds)(_code().address(_FIXED))


def outer_offsets(axes: Sequence[Axis]) -> Iterator[tuple[int, ...]]:
    """Byte offsets of a, b and c for every position of the given axes.

    >>> list(outer_offsets((Axis(2, (8, 0, 16)),)))
    [(0, 0, 0), (8, 0, 16)]
    """
    for position in np.ndindex(*(axis.length for axis in axes)):
        sums = [0] * len(_OPERANDS)
        for index, axis in zip(position, axes, strict=True):
            sums = [total + index * step for total, step in zip(sums, axis.steps, strict=True)]
        yield tuple(sums)
