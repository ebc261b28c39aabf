"""Rows of 8-bit integers with one scale each, by the compiled `QuantizeKernel`."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array, data_address
from tilewright.calls.pieces import PIECE
from tilewright.calls.recording import new_array
from tilewright.llvm.build import Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.machine.host import host_machine
from tilewright.micro.rows.quantize import QuantizeKernel
from tilewright.preparing import once
from tilewright.recorder import current
from tilewright.spec.dtype import F32, DType, Use, dtypes_for

#: The types of rows that are quantised as they are; others are converted to float32.
_TYPES = dtypes_for(Use.QUANTISED_ROWS)


class RowParts(NamedTuple):
    """Quantised rows: int8 (m, k), and the float32 scale and int32 sum of each."""

    q: Array
    scales: Array
    sums: Array


def type_to_quantise(dtype: np.dtype[Any]) -> DType | None:
    """The type that rows of an element type are quantised in; None if they are no floats.

    >>> [str(type_to_quantise(np.dtype(name))) for name in (">f2", "f8", "c8")]
    ['f16', 'f32', 'None']
    """
    native = dtype.newbyteorder("=")
    found = next((kind for kind in _TYPES if kind.numpy == native), F32)
    return None if found is F32 and not np.can_cast(native, np.float32, "same_kind") else found


@once
def row_function(dtype: DType) -> Any:
    """The kernel of a type, for the host as it was at the first use."""
    name, machine = f"rows_{dtype}", host_machine()

    def compile_it() -> bytes:
        module = Module(name, machine.triple, data_layout(machine), vector_bits=machine.function_bits)
        QuantizeKernel(machine.isa, dtype).emit(module, name)
        return emit_object(str(module), name, machine)

    code = Linked(cached_object(f"{name} {machine.vector_bits}", machine, compile_it), (name,), {})
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    kinds = (pointer, size, size, size, pointer, size, pointer, pointer)
    return code.function(name, kinds)


def quantised_rows(rows: Array, dtype: DType) -> RowParts:
    """Quantise the rows of a contiguous matrix (m, k) of a type; see `tilewright.quantize_rows`."""
    m, k = rows.shape
    found = RowParts(new_array((m, k), np.int8), new_array((m,), np.float32), new_array((m,), np.int32))
    if m:
        function = row_function(dtype)
        step = max(1, PIECE // max(k, 1))
        for first in range(0, m, step):  # signal handlers run between two calls
            part = slice(first, first + step)
            places = [data_address(array[part]) for array in (rows, *found)]
            if current.recorder is not None:
                current.recorder.team(None, rows[part].size)
            function(places[0], k, min(step, m - first), k, places[1], k, places[2], places[3])
    return found
