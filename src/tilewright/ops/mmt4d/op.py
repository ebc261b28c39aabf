"""mmt4d declared: its cut, nest, kernel names and C parameters."""

from __future__ import annotations

from tilewright.compiler.operation import Compilation, Op, sizes_text
from tilewright.ops.mmt4d.call import Mmt4dKernel
from tilewright.ops.mmt4d.nest import Mmt4dCut, build_mmt4d, choose_mmt4d
from tilewright.ops.mmt4d.problem import Mmt4d
from tilewright.spec.problem import parse_types


def _stem(problem: Mmt4d) -> str:
    counts = sizes_text("mnk", (problem.m1, problem.n1, problem.k1))
    tile = f"{problem.m0}x{problem.n0}x{problem.k0}"
    return f"mmt4d_{problem.dtype}_{problem.b_dtype}_{counts}_by_{tile}"


def _meaning(state: Compilation, name: str) -> str:
    problem: Mmt4d = state.problem
    m0, n0, k0 = problem.m0, problem.n0, problem.k0
    tiles = {"lhs": ("m1 x k1", m0, k0), "rhs": ("n1 x k1", n0, k0), "out": ("m1 x n1", m0, n0)}
    if name in tiles:
        counts, rows, columns = tiles[name]
        return f"{counts} x {rows} x {columns} of {state.program.buffer(name).dtype}"
    if name == "beta":
        return "factor of out: 0 or 1"
    known = getattr(problem, name)
    return f"tiles in {name[0]}" if known is None else f"tiles in {name[0]}; not read, it is {known}"


def _of(m0: int, n0: int, k0: int = 1, dtype: str = "f32") -> Mmt4d:
    """Write the code for mmt4d, a product of tiled matrices; the second is transposed, as in MLIR's linalg.

    Parameters
    ----------
    m0 : rows of a tile of lhs and of out.
    n0 : rows of a tile of rhs, columns of one of out.
    k0 : columns of a tile of lhs and of rhs.
    dtype : element type of both operands, such as f32, bf16, i8; of each, such as u8i8.
    """
    types = parse_types(dtype)
    return Mmt4d(m0, n0, k0, types.a, b_dtype=types.b)


def _strategy(state: Compilation) -> str:
    problem: Mmt4d = state.problem
    cut: Mmt4dCut = state.blocking
    tiles, registers = f"tiles of {problem.m0}x{problem.n0}", f"{cut.blocking.mr}x{cut.blocking.nr}"
    if cut.in_place:
        return f"{tiles} read in place by register tiles of {registers}"
    return f"{tiles} packed again for register tiles of {registers}, block by block"


MMT4D = Op(
    problem=Mmt4d,
    cut=choose_mmt4d,
    nest=build_mmt4d,
    stem=_stem,
    kernel=Mmt4dKernel,
    formula=lambda _: "out = lhs * rhs^T + beta * out, tile by tile; beta 0 does not read out.",
    meaning=_meaning,
    arguments=_of,
    strategy=_strategy,
)
