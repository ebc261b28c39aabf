"""Matrix intrinsics: what they multiply, that the pass lowers them, and that the rest of a module stays."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

import tilewright as tw
from tilewright.llvm.build import Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.matrix import PREFIX, add_product, column_of, multiply_matrices
from tilewright.llvm.target import data_layout, emit_assembly, emit_object
from tilewright.llvm.values import POINTER, VOID, vector_type
from tilewright.machine.catalog import find_machine
from tilewright.machine.machine import Machine
from tilewright.spec.dtype import F32, F64, I32, DType

SIZES = [(1, 1, 1), (4, 1, 3), (3, 5, 2), (16, 4, 6), (7, 3, 1)]


def product(machine: Machine, dtype: DType, sizes: tuple[int, int, int]) -> str:
    """A module with the function C += A·B on column-major matrices."""
    rows, inner, columns = sizes
    module = Module("m", machine.triple, data_layout(machine))
    f = module.define("f", VOID, [(name, POINTER) for name in "abc"], exported=True)
    a, b, c = (f.arguments[name] for name in "abc")
    left, right, acc = (
        f.load(vector_type(dtype, count), pointer, dtype.size)
        for pointer, count in ((a, rows * inner), (b, inner * columns), (c, rows * columns))
    )
    f.store(add_product(f, acc, multiply_matrices(f, left, right, sizes)), c, dtype.size)
    f.ret()
    return str(module)


@pytest.mark.parametrize("dtype", [F32, F64, I32], ids=str)
@pytest.mark.parametrize("sizes", SIZES)
def test_products(sizes: tuple[int, int, int], dtype: DType) -> None:
    rows, inner, columns = sizes
    generator = np.random.default_rng(1)
    a, b, c = (
        generator.integers(-9, 9, shape).astype(dtype.numpy, order="F")
        for shape in ((rows, inner), (inner, columns), (rows, columns))
    )
    expected = c + a @ b
    code = Linked(emit_object(product(tw.machine(), dtype, sizes), "m", tw.machine()), ("f",), {})
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(code.address("f"))
    function(*(array.ctypes.data for array in (a, b, c)))
    np.testing.assert_array_equal(c, expected)


def test_the_call_of_seed_004() -> None:
    """Listing 1: 8 x 5 · 5 x 16, with what was loaded flat."""
    text = product(find_machine("pwr10"), F32, (8, 5, 16))
    (line,) = (line for line in text.splitlines() if "call" in line)
    called = "call contract <128 x float> @llvm.matrix.multiply.v128f32.v40f32.v80f32(<40 x float>"
    assert called in line
    assert line.endswith("i32 8, i32 5, i32 16)")


def test_products_are_added_by_multiply_adds() -> None:
    text = emit_assembly(
        product(find_machine("neoverse-v2"), F32, (4, 1, 4)), "m", find_machine("neoverse-v2")
    )
    assert text.count("fmla\t") == 4
    assert "fadd" not in text
    assert PREFIX.strip("@") not in text


def test_the_rest_of_a_module_stays_as_it_is() -> None:
    """No optimisation runs: a sum that nobody needs is still computed."""
    machine = find_machine("neoverse-v2")
    module = Module("m", machine.triple, data_layout(machine))
    f = module.define("plain", VOID, [("p", POINTER)], exported=True)
    value = f.load(vector_type(F32, 1), f.arguments["p"], 4)
    column = column_of(f, [f.extract(value, 0)] * 4)
    f.store(f.plus(column, column), f.alloca(vector_type(F32, 4), 1, 16), 16)
    f.ret()
    alone = emit_assembly(str(module), "m", machine)
    text = product(machine, F32, (4, 2, 4)).split("declare", 1)[1]
    together = emit_assembly(f"{module}declare{text}", "m", machine)
    body = re.compile(r"^plain:\n(.*?)^\.Lfunc_end", re.MULTILINE | re.DOTALL)
    (before,), (after,) = body.findall(alone), body.findall(together)
    assert before == after
    assert "fadd" in before
