"""Symmetric products and products with triangular matrices declared."""

from __future__ import annotations

from dataclasses import replace

from tilewright.compiler.operation import Compilation, Op, layouts_text, matrix_meaning, sizes_text
from tilewright.macro.blocking import Blocking
from tilewright.ops.triangular.syr2k_call import symmetric_work
from tilewright.ops.triangular.syr2k_nest import build_symmetric, choose_symmetric, symmetric_instruction
from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
from tilewright.ops.triangular.trmm_call import trmm_work
from tilewright.ops.triangular.trmm_nest import build_trmm, choose_trmm, trmm_instruction
from tilewright.ops.triangular.trmm_problem import Side, Trmm
from tilewright.preparing import Late
from tilewright.spec.arguments import unchecked

_late_bounds = Late("tilewright.macro.bounds:blocking_bounds")


def _triangle(problem: Syrk | Trmm) -> str:
    return "lower" if problem.lower else "upper"


def _symmetric_stem(problem: Syrk) -> str:
    sizes = sizes_text("nk", (problem.n, problem.k))
    head = f"{problem.operation}_{problem.types.name}_{sizes}"
    return f"{head}_{layouts_text(problem)}_{_triangle(problem)}"


def _symmetric_formula(problem: Syrk) -> str:
    products = "(A * B^T + B * A^T)" if isinstance(problem, Syr2k) else "A * A^T"
    return f"C = alpha * {products} + beta * C, its {_triangle(problem)} triangle; beta 0 does not read C."


def _symmetric_meaning(state: Compilation, name: str) -> str:
    factors = {"alpha": "factor of what is added to C", "beta": "factor of C"}
    return factors.get(name) or matrix_meaning(state, name)


def _trmm_stem(problem: Trmm) -> str:
    sizes = sizes_text("mn", (problem.m, problem.n))
    marks = f"{problem.side.value}_{_triangle(problem)}{'_unit' * problem.unit}"
    return f"trmm_{problem.types.name}_{sizes}_{layouts_text(problem)}_{marks}"


def _trmm_formula(problem: Trmm) -> str:
    product = "T * B" if problem.side is Side.LEFT else "B * T"
    ones = " with ones on its diagonal" if problem.unit else ""
    return f"C = alpha * {product}, T the {_triangle(problem)} triangle of A{ones}; alpha 0 reads neither."


_SYMMETRIC_HELP = """Write the code for {0}: one triangle of C = {1}.

Parameters
----------
n : rows and columns of C; omitted: given at run time.
k : depth; omitted: given at run time.
dtype : element type of the factors, such as f32, bf16, i8, c64.
out_dtype : element type of C; by default that of the factors.
a : layout of A: row, col or strided.
b : layout of B.
c : layout of C.
upper : the upper triangle instead of the lower.
"""


def _syrk_of(
    n: int | None = None,
    k: int | None = None,
    dtype: str = "f32",
    out_dtype: str | None = None,
    a: str = "row",
    c: str = "row",
    upper: bool = False,
) -> Syrk:
    words = {name: unchecked(word) for name, word in (("a", a), ("c", c), ("out_dtype", out_dtype))}
    return Syrk(n, k, unchecked(dtype), lower=not upper, **words)


def _syr2k_of(
    n: int | None = None,
    k: int | None = None,
    dtype: str = "f32",
    out_dtype: str | None = None,
    a: str = "row",
    b: str = "row",
    c: str = "row",
    upper: bool = False,
) -> Syr2k:
    words = {name: unchecked(word) for name, word in (("a", a), ("b", b), ("c", c), ("out_dtype", out_dtype))}
    return Syr2k(n, k, unchecked(dtype), lower=not upper, **words)


def _trmm_of(
    m: int | None = None,
    n: int | None = None,
    dtype: str = "f32",
    a: str = "row",
    b: str = "row",
    c: str = "row",
    side: str = "left",
    upper: bool = False,
    unit: bool = False,
) -> Trmm:
    """Write the code for trmm: C = alpha·T·B or alpha·B·T, where T is one triangle of A.

    Parameters
    ----------
    m : rows of B and C; omitted: given at run time.
    n : columns of B and C; omitted: given at run time.
    dtype : element type of A and B.
    a : layout of A: row, col or strided.
    b : layout of B.
    c : layout of C.
    side : side of the triangular matrix: left or right.
    upper : the upper triangle instead of the lower.
    unit : unit diagonal.
    """
    words = {name: unchecked(word) for name, word in (("a", a), ("b", b), ("c", c), ("side", side))}
    return Trmm(m, n, unchecked(dtype), lower=not upper, unit=unit, **words)


_syrk_of.__doc__ = _SYMMETRIC_HELP.format("syrk", "alpha·A·Aᵀ + beta·C")
_syr2k_of.__doc__ = _SYMMETRIC_HELP.format("syr2k", "alpha·(A·Bᵀ + B·Aᵀ) + beta·C")


def triangle_strategy(problem: Syrk | Trmm, cut: Blocking) -> str:
    """Description of what kernels of a problem do.

    >>> triangle_strategy(Trmm(lower=False), Blocking(12, 32, 1, 216, 4096, 512))
    'five loops in tiles of 12x32 over the depths of the upper triangle; squares on the diagonal row by row'
    """
    triangle, tile = "lower" if problem.lower else "upper", f"{cut.mr}x{cut.nr}"
    if isinstance(problem, Trmm):
        return (
            f"five loops in tiles of {tile} over the depths of the {triangle} triangle; "
            "squares on the diagonal row by row"
        )
    together = f", {len(problem.factors)} products in each" if len(problem.factors) > 1 else ""
    return (
        f"five loops over the tiles of {tile} that meet the {triangle} triangle{together}; "
        "tiles on the diagonal are stored row by row"
    )


SYRK = Op(
    problem=Syrk,
    cut=choose_symmetric,
    nest=build_symmetric,
    stem=_symmetric_stem,
    work=lambda _, arrays: symmetric_work(tuple(arrays[:-1])),
    formula=_symmetric_formula,
    overlap=lambda _: (
        "C overlaps no factor, and beyond the triangle it is left alone; strides are in elements."
    ),
    meaning=_symmetric_meaning,
    arguments=_syrk_of,
    strategy=lambda state: triangle_strategy(state.problem, state.blocking),
    bounds=lambda problem, machine, cut: _late_bounds(machine, symmetric_instruction(problem, machine), cut),
)
SYR2K = replace(SYRK, problem=Syr2k, arguments=_syr2k_of)
TRMM = Op(
    problem=Trmm,
    cut=choose_trmm,
    nest=build_trmm,
    stem=_trmm_stem,
    work=lambda _, arrays: trmm_work(arrays[0], arrays[1]),
    formula=_trmm_formula,
    meaning=lambda state, name: "factor of the product" if name == "alpha" else matrix_meaning(state, name),
    arguments=_trmm_of,
    bounds=lambda problem, machine, cut: _late_bounds(machine, trmm_instruction(problem, machine), cut),
    strategy=lambda state: triangle_strategy(state.problem, state.blocking),
)
