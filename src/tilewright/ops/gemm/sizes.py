"""The sizes and strides of a product as expressions: names, or constants where it fixes them."""

from __future__ import annotations

from tilewright.ir.expressions import Constant, Expression, Name
from tilewright.ops.gemm.problem import Gemm
from tilewright.records import dataclass
from tilewright.spec.epilogue import Residual
from tilewright.spec.problem import PRODUCT_SIZES, Layout


@dataclass(frozen=True)
class Sizes:
    """The sizes and strides of one GEMM as expressions: names at run time, constants where known."""

    m: Expression
    n: Expression
    k: Expression
    rs_a: Expression
    cs_a: Expression
    rs_b: Expression
    cs_b: Expression
    rs_c: Expression
    cs_c: Expression

    def swapped(self) -> Sizes:
        """The sizes of Cᵀ = Bᵀ·Aᵀ: m and n change places, and so do A and Bᵀ.

        Before: m×n×k, A with (rs_a, cs_a). After: n×m×k, A with (cs_b, rs_b).
        """
        return Sizes(self.n, self.m, self.k, self.cs_b, self.rs_b, self.cs_a, self.rs_a, self.cs_c, self.rs_c)


def computed_transposed(problem: Gemm) -> bool:
    """Return whether a problem is computed as Cᵀ = Bᵀ·Aᵀ, which is done for a column-major C.

    Not where it is complex. The imaginary part of a product is the sum of re(a)·im(b) and im(a)·re(b), in
    this order for each depth; the transposed product adds them in the other one, which rounds otherwise.
    """
    return problem.c is Layout.COL and not problem.types.is_complex


def extent(name: str, known: int | None) -> Expression:
    """A size: a constant where the problem fixes it, else its name."""
    return Name(name) if known is None else Constant(known)


def strides_of(name: str, layout: Layout) -> tuple[Expression, Expression]:
    """The row and column stride of a matrix, which are not read where it is packed.

    Before: ``a`` in row-major layout. After: ``(rs_a, 1)``.
    """
    row = Constant(1) if layout is Layout.COL else Name(f"rs_{name}")
    column = Constant(1) if layout is Layout.ROW else Name(f"cs_{name}")
    return row, column


def sizes_of(problem: Gemm) -> Sizes:
    """Constants for what the problem fixes, names for the rest.

    Before: ``Gemm(k=64, a="row")``. After: ``k = 64``, ``cs_a = 1``, everything else by name.
    """
    return Sizes(
        extent("m", problem.m),
        extent("n", problem.n),
        extent("k", problem.k),
        *strides_of("a", problem.a),
        *strides_of("b", problem.b),
        *strides_of("c", problem.c),
    )


def residual_strides(problem: Gemm) -> dict[str, tuple[Expression, Expression]]:
    """Row and column stride of each matrix among the operands of the epilogue; those not known are sizes.

    Before: a residual of a row-major C. After: ``{"residual": (rs_residual, 1)}``.
    """
    found: dict[str, tuple[Expression, Expression]] = {}
    for step, _, name in problem.steps:
        if isinstance(step, Residual) and name is not None:
            (layout,) = (operand.layout for operand in problem.step_operands if operand.name == name)
            found[name] = strides_of(name, layout)
    return found


def sizes_named(problem: Gemm) -> tuple[str, ...]:
    """The sizes of a problem's program: those of every GEMM, then the strides of residuals."""
    return (
        *PRODUCT_SIZES,
        *(f"{axis}_{name}" for name in residual_strides(problem) for axis in ("rs", "cs")),
    )
