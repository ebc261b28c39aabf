"""Kernel selection for a recognised product: its kernels, and the loops that stay around the call."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod
from typing import TypeAlias

from tilewright.errors import TilewrightError
from tilewright.loops.nests.nest import (
    Factor,
    MatrixOperand,
    MatrixProduct,
    ProductDimension,
    Refusal,
    TriangularPart,
)
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.machine.machine import Machine
from tilewright.macro.cost import CallLimits, call_limits
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
from tilewright.records import dataclass
from tilewright.spec import problem as spec
from tilewright.spec.dtype import DType
from tilewright.spec.epilogue import Epilogue
from tilewright.spec.problem import Layout, ProductTypes
from tilewright.spec.roles import DimensionRole

#: Problems that kernels compute.
Problem: TypeAlias = Gemm | BatchReduceGemm | Syrk | Syr2k


class ProductStrategy(Enum):
    """The strategies for a product of Kuzma et al. 2023, §4.1.3.

    AUTO selects the fastest one for the sizes at run time; GENERIC does the same with register tiles lowered
    by LLVM.
    """

    AUTO = "auto"
    INTRINSIC = "intrinsic"
    TILING = "tiling"
    PACKING = "packing"
    GENERIC = "generic"


#: Depth limit of panels in the stack frame: a panel of 32 columns of f64 takes 64 KiB, and threads have
#: stacks of 512 KiB and more.
FRAME_DEPTH = 256
FRAME_BYTES = 64 << 10

#: Known sizes up to this get a kernel of exactly these sizes, unrolled into register tiles.
LARGEST_EXACT = 64

#: Sizes up to which a matrix is a single LLVM value: LLVM unrolls it into vectors.
LARGEST_INTRINSIC = 32

NO_INTRINSIC = (
    "does not multiply whole contiguous matrices of one type and of known sizes up to "
    f"{LARGEST_INTRINSIC}, as the strategy intrinsic requires"
)

#: Loops around calls: no iteration of the first three touches elements that another one writes.
_OUTER = (DimensionRole.BATCH, DimensionRole.M, DimensionRole.N, DimensionRole.K)


@dataclass(frozen=True)
class KernelMatrix:
    """One operand as a kernel addresses it.

    Attributes
    ----------
    name : "a", "b" or "c".
    operand : its start and element type.
    rows, columns : stride in bytes between rows, and between columns; None if there is only one.
    """

    name: str
    operand: MatrixOperand
    rows: Polynomial | None
    columns: Polynomial | None

    @property
    def dtype(self) -> DType:
        """The element type, which is known in a plan."""
        assert self.operand.dtype is not None
        return self.operand.dtype

    @property
    def layout(self) -> Layout:
        """The layout; for a single row or column, the one that suits the kernel."""
        rows, columns = (None if one is None else one.constant for one in (self.rows, self.columns))
        if columns == self.dtype.size:
            return Layout.ROW
        if rows == self.dtype.size:
            return Layout.COL
        if self.columns is None:
            return Layout.ROW
        return Layout.COL if self.rows is None else Layout.STRIDED


@dataclass(frozen=True)
class KernelChoice:
    """A kernel, and the amount of work that it is selected for.

    Attributes
    ----------
    problem : what it computes.
    most_work : multiply-adds up to which it is selected; None for any number.
    """

    problem: Problem
    most_work: int | None = None

    @property
    def is_last(self) -> bool:
        """Whether it is for any amount of work."""
        return self.most_work is None

    @property
    def panel_depth(self) -> int | None:
        """Depth limit of its panels if they are in the stack frame, as for kernels of little work."""
        return None if self.most_work is None else FRAME_DEPTH


@dataclass(frozen=True)
class KernelPlan:
    """A product as kernel calls.

    Attributes
    ----------
    product : the recognised product.
    ways : kernels in ascending order of work; the last one has no limit.
    least_work : multiply-adds below which the original loops run.
    work : multiply-adds of one call, if known.
    intrinsic : one `llvm.matrix.multiply` computes the whole product, without a kernel.
    m, n, k : the dimensions inside the kernel; None if a role is missing, whose size is then 1.
    around : the dimensions of loops around the call, outermost first; those of role K come last.
    """

    product: MatrixProduct
    ways: tuple[KernelChoice, ...]
    least_work: int
    work: int | None
    m: ProductDimension | None
    n: ProductDimension | None
    k: ProductDimension | None
    around: tuple[ProductDimension, ...]
    intrinsic: bool = False

    @property
    def matrices(self) -> tuple[KernelMatrix, KernelMatrix, KernelMatrix]:
        """A, B and C as the kernels address them."""
        return _matrices(self.product, self.m, self.n, self.k)

    @property
    def types(self) -> ProductTypes:
        """Element and accumulator types."""
        return self.ways[-1].problem.types


def plan(
    product: MatrixProduct, machine: Machine, strategy: ProductStrategy = ProductStrategy.AUTO
) -> KernelPlan | Refusal:
    """Select the kernels of a product on a machine.

    Returns
    -------
    Refusal : no kernel supports the types or the computation, or the loops are faster.
    """
    types = _types(product)
    if isinstance(types, str):
        return Refusal(product.where, types)
    roles = {role: [one for one in product.dimensions if one.role is role] for role in DimensionRole}
    m = _inner(roles[DimensionRole.M], ("c", types.c), ("a", types.a))
    n = _inner(roles[DimensionRole.N], ("c", types.c), ("b", types.b))
    k = _inner(roles[DimensionRole.K], ("a", types.a), ("b", types.b))
    around = tuple(one for role in _OUTER for one in roles[role] if one not in (m, n, k))
    if types.narrows and any(one.role is DimensionRole.K for one in around):
        return Refusal(product.where, f"sums along several dimensions into {types.c}, which would round")
    if product.triangle is not None and any(one.role in (DimensionRole.M, DimensionRole.N) for one in around):
        return Refusal(product.where, "computes one triangle of a result of several dimensions")
    matrices = _matrices(product, m, n, k)
    sizes = [1 if one is None else one.extent.constant for one in (m, n, k)]
    sums = [one.extent.constant or 0 for one in around if one.role is DimensionRole.K]
    if sums and not (product.beta.is_one and min(sums) > 0):
        # The first of several accumulating calls applies beta, also if the depth is 0.
        sizes[2] = None
    work = None if None in sizes else prod(size for size in sizes if size is not None)
    try:
        machine.isa.tile(types.a, types.b)
        if strategy is ProductStrategy.INTRINSIC:
            whole = _exact(product, matrices, types, sizes)
            several = any(one.role is DimensionRole.K for one in around)
            small = whole is not None and max(whole.m, whole.n, whole.k) <= LARGEST_INTRINSIC
            if whole is None or several or product.finish or not (small and types.uniform):
                return Refusal(product.where, NO_INTRINSIC)
            return KernelPlan(product, (KernelChoice(whole),), 0, work, m, n, k, around, intrinsic=True)
        ways, least = _ways(product, matrices, types, sizes, strategy, call_limits(machine.core))
    except TilewrightError as error:
        return Refusal(product.where, f"has no kernel: {error}")
    if work is not None and work < least:
        return Refusal(product.where, f"has {work} multiply-adds, too few for a kernel to be faster")
    return KernelPlan(product, ways, least, work, m, n, k, around)


def _ways(
    product: MatrixProduct,
    matrices: Sequence[KernelMatrix],
    types: ProductTypes,
    sizes: Sequence[int | None],
    strategy: ProductStrategy,
    limits: CallLimits,
) -> tuple[tuple[KernelChoice, ...], int]:
    """The kernels of a product, and the multiply-adds below which its loops are faster.

    Either one kernel of exact sizes, or one that reads operands in place and one that may pack.
    """
    if product.triangle is not None:
        return (KernelChoice(_triangle(product, product.triangle, matrices, types)),), limits.triangle
    if strategy in (ProductStrategy.TILING, ProductStrategy.PACKING):
        epilogue = Epilogue(one.step for one in product.finish)
        return (KernelChoice(_gemm(matrices, types, spec.Strategy(strategy.value), epilogue)),), 0
    exact = None if product.finish else _exact(product, matrices, types, sizes)
    if exact is not None:
        return (KernelChoice(exact),), limits.exact
    epilogue = Epilogue(one.step for one in product.finish)
    near, far = (_gemm(matrices, types, one, epilogue) for one in (spec.Strategy.TILING, spec.Strategy.AUTO))
    streams = _streams(product.dimensions[-1], matrices)
    most = limits.in_place_vector if 1 in sizes[:2] else limits.in_place
    return (KernelChoice(near, most), KernelChoice(far)), limits.vector if streams else limits.kernel


def _streams(innermost: ProductDimension, matrices: Sequence[KernelMatrix]) -> bool:
    """Whether a matrix-vector product has a loop that reads adjacent elements of the matrix."""
    a, b, c = matrices
    if c.columns is not None and c.rows is not None:
        return False
    stride, dtype = (innermost.a, a.dtype) if c.columns is None else (innermost.b, b.dtype)
    return stride.constant == dtype.size


def _gemm(
    matrices: Sequence[KernelMatrix], types: ProductTypes, strategy: spec.Strategy, epilogue: Epilogue
) -> Gemm:
    a, b, c = (matrix.layout for matrix in matrices)
    c = _layout_of_c(matrices, c)
    return Gemm(
        dtype=types.a,
        b_dtype=types.b,
        out_dtype=types.c,
        a=a,
        b=b,
        c=c,
        strategy=strategy,
        epilogue=epilogue,
    )


def _layout_of_c(matrices: Sequence[KernelMatrix], c: Layout) -> Layout:
    """The layout of C; for a single row or column of adjacent elements, that of the matrix operand.

    Kernels compute rows of C: those of Cᵀ = Bᵀ·Aᵀ if C is column-major. Treating a column of C as
    column-major makes A·x a product of one row and a matrix with adjacent columns, which takes 1.4 times as
    long as sums along the rows of A; for a column-major A it is 2.2 times faster.
    """
    a, b, single = matrices
    if single.columns is None and a.layout is Layout.ROW:
        return Layout.ROW
    if single.rows is None and b.layout is Layout.COL:
        return Layout.COL
    return c


def _exact(
    product: MatrixProduct, matrices: Sequence[KernelMatrix], types: ProductTypes, sizes: Sequence[int | None]
) -> BatchReduceGemm | None:
    """The problem of exactly these sizes, if they are known, small, and form a matrix."""
    m, n, k = sizes
    if m is None or n is None or k is None or not all(1 <= size <= LARGEST_EXACT for size in (m, n, k)):
        return None
    layouts = [matrix.layout for matrix in matrices]
    plain = product.alpha.is_one and (product.beta.is_zero or product.beta.is_one)
    if 1 in (m, n) or Layout.STRIDED in layouts or not plain:
        return None
    a, b, c = layouts
    return BatchReduceGemm(
        *(m, n, k, 1, types.a),
        a=a,
        b=b,
        c=c,
        b_dtype=types.b,
        out_dtype=types.c,
        beta=0 if product.beta.is_zero else 1,
    )


def _triangle(
    product: MatrixProduct, triangle: TriangularPart, matrices: Sequence[KernelMatrix], types: ProductTypes
) -> Syrk | Syr2k:
    """The symmetric product; the recogniser guarantees that its factors are one matrix."""
    a, b, c = matrices
    lower = triangle is TriangularPart.LOWER
    if product.second is None:
        return Syrk(None, None, types.a, a=a.layout, c=c.layout, out_dtype=types.c, lower=lower)
    transposed = KernelMatrix("b", b.operand, b.columns, b.rows)  # the kernel's B has C's rows too
    return Syr2k(
        None, None, types.a, a=a.layout, b=transposed.layout, c=c.layout, out_dtype=types.c, lower=lower
    )


def _types(product: MatrixProduct) -> ProductTypes | str:
    """The element types of the kernel, or a refusal."""
    a, b, c = (operand.dtype for operand in (product.a, product.b, product.c))
    if a is None or b is None or c is None:
        return "has elements of unknown type"
    try:
        types = ProductTypes.parse(a, b, c)
    except TilewrightError:
        return f"multiplies {a} by {b} into {c}, for which there is no kernel"
    acc = types.acc if product.acc is None else product.acc
    if acc.is_integer != types.acc.is_integer or not _sums_suffice(acc, types):
        return f"sums products of {a} and {b} in {acc}, where kernels sum in {types.acc}"
    if not (is_plain(product.alpha, types.acc) and is_plain(product.beta, types.acc)):
        return f"scales sums of {types.acc} by a number that {types.acc} cannot represent"
    return types


def _sums_suffice(acc: DType, types: ProductTypes) -> bool:
    """Whether the kernel's accumulator type gives C the accuracy of the program's.

    Integers are exact modulo 2^bits, so only the bits that reach C matter. Floats may be accumulated in a
    wider type than the program's: a program that permits contraction and reassociation gets a result closer
    to the exact one.
    """
    needed = min(acc.bits, types.c.bits) if acc.is_integer else acc.bits
    return types.acc.bits >= needed


def is_plain(factor: Factor, acc: DType) -> bool:
    """Whether sums of a type can be multiplied by a factor: real, and a whole number for integer sums."""
    if isinstance(factor.number, complex):
        return False
    whole = isinstance(factor.number, int) or factor.number.is_integer()
    return whole or not acc.is_integer


def _inner(dimensions: list[ProductDimension], *matrices: tuple[str, DType]) -> ProductDimension | None:
    """The dimension of a role that is inside the kernel: one of adjacent elements, or else the innermost."""
    for name, dtype in matrices:
        for dimension in dimensions:
            stride = _stride(dimension, name)
            if stride is not None and stride.constant == dtype.size:
                return dimension
    return dimensions[-1] if dimensions else None


def _matrices(
    product: MatrixProduct, m: ProductDimension | None, n: ProductDimension | None, k: ProductDimension | None
) -> tuple[KernelMatrix, KernelMatrix, KernelMatrix]:
    return (
        KernelMatrix("a", product.a, _stride(m, "a"), _stride(k, "a")),
        KernelMatrix("b", product.b, _stride(k, "b"), _stride(n, "b")),
        KernelMatrix("c", product.c, _stride(m, "c"), _stride(n, "c")),
    )


def _stride(dimension: ProductDimension | None, name: str) -> Polynomial | None:
    """The stride of an operand along a dimension."""
    found: Polynomial | None = None if dimension is None else getattr(dimension, name)
    return found
