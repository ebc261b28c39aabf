"""The logarithms of rows' sums of exponentials, by machine code in one pass."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tilewright.calls.operands import Array, data_address
from tilewright.calls.pieces import contiguous
from tilewright.calls.recording import new_array
from tilewright.llvm.build import Function, Module
from tilewright.llvm.floats import Floats
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID, Value, int64, vector_type
from tilewright.machine.host import host_machine
from tilewright.machine.isa import Isa
from tilewright.micro.elements.logarithm import log
from tilewright.preparing import once
from tilewright.spec.dtype import F32, F64, DType


def log_sum_exp(row_max: Array, row_sum: Array) -> Array:
    """The logarithm of each row's sum of exponentials: -inf where no key is seen.

    >>> log_sum_exp(np.array([3.0, -np.inf]), np.array([1.0, 0.0]))
    array([  3., -inf])
    """
    if row_max.shape != row_sum.shape:
        row_max = np.broadcast_to(row_max, row_sum.shape)
    found = new_array(row_sum.shape, row_sum.dtype)
    largest, total = (contiguous(array, row_sum.dtype) for array in (row_max, row_sum))
    function = _function(F64 if row_sum.dtype == F64.numpy else F32)
    function(*map(data_address, (found, largest, total)), found.size)
    return found


@once
def _function(dtype: DType) -> Any:
    """The compiled function of a type of sums."""
    name, machine = f"tw_log_sum_exp_{dtype}", host_machine()

    def compiled() -> bytes:
        module = Module(name, machine.triple, data_layout(machine), vector_bits=machine.function_bits)
        arguments = [("to", POINTER), ("row_max", POINTER), ("row_sum", POINTER), ("count", INT64)]
        _emit(module.define(name, VOID, arguments, exported=True), machine.isa, dtype)
        return emit_object(str(module), name, machine)

    code = Linked(cached_object(f"{name} {machine.vector_bits}", machine, compiled), (name,), {})
    return code.function(name, (*[ctypes.c_void_p] * 3, ctypes.c_int64))


def _emit(f: Function, isa: Isa, dtype: DType) -> None:
    """The loop over vectors, and the rest under a mask; in float64, rounded once."""
    g, lanes, size = f.arguments, isa.lanes(F64), dtype.size
    kind, wide = vector_type(dtype, lanes), vector_type(F64, lanes)
    v = Floats(f, F64, wide, fused=isa.fused)
    # A sum of 0 has a maximum of -inf, which stays the result. Other sums are at least 1, the exponential of
    # the maximum's distance from itself.
    least, one = v.constant(2.0**-1022), v.constant(1.0)

    def widened(x: Value) -> Value:
        return x if dtype == F64 else f.emit(wide, f"fpext {x.typed} to {wide.text}")

    def logarithm(narrow_total: Value, narrow_most: Value) -> Value:
        total, most = widened(narrow_total), widened(narrow_most)
        finite = v.compare("<", total, v.constant(float("inf")))
        found = log(v, v.add(f.select(finite, total, one), least))
        found = f.select(v.compare("<", total, v.constant(0.0)), v.root(total), found)  # NaN
        result = v.add(f.select(finite, found, total), most)
        return result if dtype == F64 else f.emit(kind, f"fptrunc {result.typed} to {kind.text}")

    def places(first: Value) -> list[Value]:
        return [f.at(g[name], f.mul(first, size)) for name in ("to", "row_max", "row_sum")]

    whole = f.and_(g["count"], int64(-lanes))
    with f.loop(int64(0), whole, int64(lanes), "rows") as first:
        to, most, total = places(first)
        f.store(logarithm(f.load(kind, total, size), f.load(kind, most, size)), to, size)
    with f.when(f.icmp("<", whole, g["count"])):
        to, most, total = places(whole)
        mask = f.lane_mask(f.sub(g["count"], whole), 0, lanes)
        found = logarithm(f.masked_load(kind, total, mask, size), f.masked_load(kind, most, mask, size))
        f.masked_store(found, to, mask, size)
    f.ret()
