"""GEMM declared: its cut, nest, kernel names and C parameters."""

from __future__ import annotations

from tilewright.compiler.operation import (
    LAYOUT_WORDS,
    Compilation,
    Op,
    layouts_text,
    matrix_meaning,
    sizes_text,
    stride_text,
)
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.ops.gemm.problem import Gemm
from tilewright.preparing import Late
from tilewright.spec.arguments import unchecked
from tilewright.spec.epilogue import Epilogue
from tilewright.spec.problem import Layout, Operand, parse_types
from tilewright.spec.weights import Weights


def gemm_stem(problem: Gemm) -> str:
    """Types, sizes, layouts, then weights, epilogue and strategy."""
    marks = f"_{problem.weights.name}" if problem.weights else ""
    marks += f"_with_{problem.epilogue.identifier}" if problem.epilogue else ""
    sizes = sizes_text("mnk", (problem.m, problem.n, problem.k))
    return f"gemm_{problem.types.name}_{sizes}_{layouts_text(problem)}{marks}_{problem.strategy.value}"


def gemm_formula(problem: Gemm) -> str:
    """C += A·B, the epilogue, and sums of a chosen type."""
    steps = f", then {str(problem.epilogue).replace(',', ', ')}" if problem.epilogue else ""
    sums = f"; sums are kept in {problem.sums}" if problem.sums else ""
    return f"C = alpha * A * B + beta * C{steps}; beta 0 does not read C, alpha 0 neither A nor B{sums}."


def gemm_meaning(state: Compilation, name: str) -> str:
    """Matrices, vectors of a packed weight, operands of the epilogue."""
    problem: Gemm = state.problem
    steps = {operand.name: operand for operand in problem.step_operands}
    if name in ("alpha", "beta"):
        return f"factor of {'C' if name == 'beta' else 'A * B'}"
    if name in steps:
        return _step_text(steps[name])
    owner = next((steps[known] for known in steps if name.endswith(f"_{known}")), None)
    if owner is not None:
        return stride_text(name.removesuffix(f"_{owner.name}"), owner)
    known = {operand.name for operand in problem.operands}
    if name in {buffer.name for buffer in state.program.arguments} - known:
        return f"{name} of the packed weight"
    return matrix_meaning(state, name)


def _step_text(operand: Operand) -> str:
    """Description of an epilogue operand."""
    dtype = operand.dtype
    many = "numbers" if dtype.c_name != "void" else f"numbers of {dtype}"
    rows = "m" if operand.rows is None else str(operand.rows)
    columns = "n" if operand.columns is None else str(operand.columns)
    match operand.name.partition("_")[0], operand.layout:
        case "residual", _:
            return f"{operand.name}: {rows} x {columns} of {dtype}, {LAYOUT_WORDS[operand.layout]}"
        case "scale", Layout.ROW if operand.columns == 1:
            return f"{operand.name}: one {many.replace('numbers', 'number')}"
        case _, Layout.ROW:
            return f"{operand.name}: {columns} {many}, one for each column of C"
        case _:
            return f"{operand.name}: {rows} {many}, one for each row of C"


def gemm_of(
    m: int | None = None,
    n: int | None = None,
    k: int | None = None,
    dtype: str = "f32",
    out_dtype: str | None = None,
    a: str = "row",
    b: str = "row",
    c: str = "row",
    epilogue: str = "",
    strategy: str = "auto",
    weights: str | None = None,
    sums: str | None = None,
) -> Gemm:
    """Write the code for C = alpha·A·B + beta·C with an epilogue.

    Parameters
    ----------
    m : rows of C; omitted: given at run time.
    n : columns of C; omitted: given at run time.
    k : depth; omitted: given at run time.
    dtype : element type of A and B, such as f32, bf16, i8, c64; of each, such as u8i8.
    out_dtype : element type of C; by default the wider of A's and B's.
    a : layout of A: row, col, strided or packed.
    b : layout of B.
    c : layout of C.
    epilogue : steps before the store of C, such as bias,gelu or scale:column,clamp:0:6.
    strategy : auto, tiling or packing.
    weights : form of a quantised B, such as i4g64.
    sums : type that sums are kept in, such as f64 for f32; by default that of promises.md.
    """
    steps = Epilogue.parse(epilogue)
    types = parse_types(dtype, out_dtype, steps, sums)
    return Gemm(
        *(m, n, k, types.a),
        a=unchecked(a),
        b=unchecked(b),
        c=unchecked(c),
        b_dtype=types.b,
        out_dtype=types.c,
        epilogue=steps,
        strategy=unchecked(strategy),
        weights=None if weights is None else Weights.parse(weights),
        sums=types.sums,
    )


GEMM = Op(
    problem=Gemm,
    cut=Late("tilewright.ops.gemm.cut:cut_gemm"),
    nest=Late("tilewright.ops.gemm.nest:build_gemm"),
    stem=gemm_stem,
    kernel=GemmKernel,
    formula=gemm_formula,
    meaning=gemm_meaning,
    arguments=gemm_of,
    bounds=Late("tilewright.ops.gemm.cut:bounds_of_gemm"),
    quick=Late("tilewright.ops.gemm.quick_nest:build_quick_gemm"),
)
