"""Floats: operations on scalars and vectors, compiled and run on this host and compiled for every target."""

from __future__ import annotations

import ctypes
import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kinds import each_kind
from numpy.typing import NDArray
from shares import looped

import tilewright as tw
from tilewright.llvm.build import Module
from tilewright.llvm.floats import Floats
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_assembly, emit_object
from tilewright.llvm.values import POINTER, VOID, Value, element_type, vector_type
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.machine import Machine
from tilewright.spec.dtype import F32, F64, DType

Emit = Callable[[Floats, Value, Value], Value]

NAN = math.nan
PAIRS = [(1.5, -2.0), (-0.0, 0.0), (0.0, -0.0), (math.inf, 1.0), (NAN, 1.0), (1.0, NAN), (-3.0, -3.0)]

OPERATIONS: dict[str, tuple[Emit, Callable[[float, float], float]]] = {
    "add": (Floats.add, lambda x, y: x + y),
    "subtract": (Floats.subtract, lambda x, y: x - y),
    "multiply": (Floats.multiply, lambda x, y: x * y),
    "divide": (lambda v, x, y: v.divide(y, v.constant(4.0)), lambda x, y: y / 4),
    "multiply_add": (lambda v, x, y: v.multiply_add(x, y, y), lambda x, y: x * y + y),
    "negate": (lambda v, x, y: v.negate(x), lambda x, y: -x),
    "magnitude": (lambda v, x, y: v.magnitude(x), lambda x, y: abs(x)),
    "with_sign": (Floats.with_sign, math.copysign),
    "at_least": (Floats.at_least, max),
    "at_most": (Floats.at_most, min),
    "bits": (lambda v, x, y: v.from_bits(v.bits(x)), lambda x, y: x),
    "integer": (lambda v, x, y: v.from_bits(v.integer(0)), lambda x, y: 0.0),
}

RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
}


def chosen(relation: str) -> Emit:
    """1 where the relation holds, else -1/2."""
    return lambda v, x, y: v.f.select(v.compare(relation, x, y), v.constant(1.0), v.constant(-0.5))


def module_of(machine: Machine, dtype: DType, lanes: int, *operations: Emit) -> str:
    """f(x, y, out), f1, f2 and so on, on one vector, or on a scalar where there are no lanes."""
    module = Module("m", machine.triple, data_layout(machine))
    kind = vector_type(dtype, lanes) if lanes else element_type(dtype)
    for number, emit in enumerate(operations):
        arguments = [(name, POINTER) for name in ("x", "y", "out")]
        f = module.define(f"f{number or ''}", VOID, arguments, exported=True)
        x, y = (f.load(kind, f.arguments[name], dtype.size) for name in ("x", "y"))
        floats = Floats(f, dtype, kind, fused=machine.isa.fused)
        f.store(emit(floats, x, y), f.arguments["out"], dtype.size)
        f.ret()
    return str(module)


def run(dtype: DType, lanes: int, emit: Emit, pairs: list[tuple[float, float]]) -> NDArray[Any]:
    machine = tw.machine()
    code = Linked(emit_object(module_of(machine, dtype, lanes, emit), "m", machine), ("f",), {})
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(code.address("f"))
    width = lanes or 1
    x, y = (np.array([[value] * width for value in side], dtype.numpy) for side in zip(*pairs, strict=True))
    out = np.empty((len(pairs), width), dtype.numpy)
    for i in range(len(pairs)):
        function(x[i].ctypes.data, y[i].ctypes.data, out[i].ctypes.data)
    return out


@looped("name", OPERATIONS)
@looped("lanes", [0, 1, 3, 4, 16])
@looped("dtype", [F32, F64])
def test_operations(name: str, lanes: int, dtype: DType) -> None:
    emit, meaning = OPERATIONS[name]
    found = run(dtype, lanes, emit, PAIRS)
    expected = np.array([[meaning(x, y)] * found.shape[1] for x, y in PAIRS], dtype.numpy)
    np.testing.assert_array_equal(found, expected)
    signed = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[signed], np.signbit(expected)[signed])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("lanes", [0, 4])
def test_comparisons_are_false_for_nan(relation: str, lanes: int) -> None:
    found = run(F32, lanes, chosen(relation), PAIRS)
    expected = [1.0 if RELATIONS[relation](x, y) else -0.5 for x, y in PAIRS]
    assert found[:, 0].tolist() == expected


@pytest.mark.parametrize("name", each_kind(targets()))
def test_every_target_has_every_operation(name: str) -> None:
    machine = find_machine(name)
    for dtype in (F32, F64):
        for lanes in (0, 1, machine.isa.lanes(dtype), 2 * machine.isa.lanes(dtype) + 1):
            operations = (*(emit for emit, _ in OPERATIONS.values()), *map(chosen, RELATIONS))
            text = emit_assembly(module_of(machine, dtype, lanes, *operations), "m", machine)
            assert not re.search(r"^\s(callq?|bl)\s", text, re.MULTILINE)
