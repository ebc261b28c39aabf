"""Epilogues of every row on this host, its instructions as plain LLVM: every way that a tile can take.

Sums and operands are small integers, so that what is not a function of floats is exact to the bit. Functions
are those of `test_math.py`: results within their ulps and one rounding of C.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools

import numpy as np
import pytest
from emulated_rows import (
    LAYOUTS,
    LENGTHS,
    drawn,
    emulated_kernel,
    emulating,
    every_feature,
    in_layout,
    shapes_around,
    stored,
    without_amx,
)
from support import Array
from tiers import crossed, named

from tilewright.machine.isa import Isa
from tilewright.machine.isa_rows import ISAS
from tilewright.machine.machine import Machine
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import DType

#: Types of A, B and C, and steps on their sums; those with functions of floats behind the others.
EXACT = (
    ("f32", "f32", "f32", "bias,relu"),
    ("f32", "f32", "f32", "residual,clamp:-3:40,bias:row"),
    ("f64", "f64", "f64", "bias:row,relu"),
    ("f64", "f64", "f32", "bias,scale,residual:f64"),
    ("bf16", "bf16", "f32", "scale:column:bf16,bias:bf16"),
    ("bf16", "bf16", "bf16", "bias,relu"),
    ("f16", "f16", "f16", "bias:row:f16,residual,relu"),
    ("i8", "i8", "i32", "bias,relu"),
    ("u8", "i8", "f32", "bias,scale:column,bias:row,relu"),
    ("i8", "i8", "bf16", "scale,scale:row,residual"),
    ("i8", "i8", "i8", "bias,scale:column,saturate"),
    ("i8", "i8", "u8", "clamp:-9:700,saturate"),
    ("i32", "i32", "i32", "residual,clamp:-100:100"),
    ("c64", "c64", "c64", "bias,bias:row,residual"),
    ("c128", "c128", "c64", "bias:row"),
)
FUNCTIONS = (
    ("f32", "f32", "f32", "bias,gelu"),
    ("f64", "f64", "f64", "gelu_tanh,scale:row"),
    ("bf16", "bf16", "bf16", "bias,silu"),
    ("i8", "i8", "f32", "scale:column,sigmoid,tanh"),
)


def small(random: np.random.Generator, dtype: DType, shape: tuple[int, int]) -> Array:
    """Numbers whose sums are exact in floats too."""
    found = drawn(random, dtype, shape)
    return found % 7 if dtype.is_integer else found


def operand(random: np.random.Generator, problem: Gemm, name: str, shape: tuple[int, int]) -> Array:
    """Small integers; scales are powers of two, whose products are exact."""
    (found,) = (operand for operand in problem.step_operands if operand.name == name)
    if name.startswith("scale"):
        return np.asarray(2.0 ** random.integers(-4, 1, shape)).astype(found.dtype.numpy)
    return in_layout(small(random, found.dtype, shape), found.layout)


def operands_of(random: np.random.Generator, problem: Gemm, m: int, n: int) -> dict[str, Array]:
    """By name: vectors of every length that C needs, matrices."""
    shapes = {}
    for step, _, name in problem.steps:
        along = getattr(step, "along", None)
        if name is not None:
            shapes[name] = (m, n) if along is None else along.shape(m, n)
    return {name: operand(random, problem, name, shape) for name, shape in shapes.items()}


def tolerance(problem: Gemm, exact: Array) -> Array | float:
    """Eight ulps of the type in which functions are computed, half an ulp of C."""
    if not any(step.dtype.kind.value == "float" for step in problem.steps):
        return 0.0

    def ulps(dtype: DType) -> float:
        return 2 * dtype.unit_roundoff

    computed = problem.steps[-1].dtype
    return np.abs(exact) * (8 * ulps(computed) + ulps(problem.out_dtype) / 2) + 8 * ulps(computed)


def check(problem: Gemm, machine: Machine, shapes: list[tuple[int, int, int]], *, exactly: bool) -> None:
    kernel = emulated_kernel(problem, machine)
    random = np.random.default_rng(len(kernel.name))
    mixed = problem.out_dtype.is_integer is not problem.types.acc.is_integer
    factors = ((1, 0),) if mixed else ((1, 0), (2, -1), (0, 2))
    for (m, n, k), (alpha, beta) in zip(shapes, itertools.cycle(factors)):
        pairs = zip(problem.operands, ((m, k), (k, n), (m, n)), strict=True)
        a, b, c = (in_layout(small(random, one.dtype, shape), one.layout) for one, shape in pairs)
        given = operands_of(random, problem, m, n)
        exact = problem.reference(a, b, c, alpha=alpha, beta=beta, operands=list(given.values()))
        if beta == 0 and not problem.out_dtype.is_integer:
            c[...] = np.nan
        if alpha == 0 and not problem.dtype.is_integer:
            a[...] = np.nan
        kernel(a, b, c, alpha=alpha, beta=beta, **given)
        words = f"{kernel.name} {m}x{n}x{k} {alpha} {beta}"
        if exactly:
            np.testing.assert_array_equal(c, stored(exact, problem.out_dtype), err_msg=words)
        else:
            assert (np.abs(c.astype(exact.dtype) - exact) <= tolerance(problem, exact)).all(), words


@pytest.mark.parametrize(
    ("isa", "case"), crossed(ISAS, ([case] for case in (*EXACT, *FUNCTIONS)), len(ISAS)), ids=named
)
def test_every_row_and_epilogue(isa: Isa, case: tuple[str, str, str, str]) -> None:
    """Vector tiles, matrix units, their edges and several depth blocks; layouts and strategies take turns.

    Functions follow vector tiles: how a unit stores its sums does not depend on what is applied to them. AMX
    takes the operands that are to be packed.
    """
    a_type, b_type, c_type, epilogue = case
    number = [*EXACT, *FUNCTIONS].index(case) + ISAS.index(isa)
    a, b, c = LAYOUTS[number % len(LAYOUTS)]
    strategy = ("packing", "auto", "tiling")[number % 3]
    isa = isa.limited(every_feature(isa), LENGTHS[-1])
    if case in EXACT:
        machine = emulating(isa if strategy == "packing" else without_amx(isa))
    else:
        machine = emulating(isa, *(tile for tile in isa.tiles if tile.in_place))
    problem = Gemm(
        dtype=a_type,
        b_dtype=b_type,
        out_dtype=c_type,
        a=a,
        b=b,
        c=c,
        epilogue=epilogue,
        strategy=strategy,
    )
    check(problem, machine, shapes_around(problem, machine), exactly=case in EXACT)
