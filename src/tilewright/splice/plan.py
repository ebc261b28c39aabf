"""What kernel a product takes, which of its dimensions that kernel walks, and which loops stay around it."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.errors import TilewrightError
from tilewright.frontend.nests import Dimension, Operand, Product, Refusal, Role
from tilewright.frontend.polynomial import Polynomial
from tilewright.machine.machine import Machine
from tilewright.spec.dtype import DType
from tilewright.spec.problem import Gemm, Layout, ProductTypes, Strategy


@dataclass(frozen=True)
class Matrix:
    """One operand as a kernel sees it.

    Attributes
    ----------
    name : "a", "b" or "c".
    operand : where it begins, and its element type.
    rows, columns : bytes from one to the next; None where there is only one.
    """

    name: str
    operand: Operand
    rows: Polynomial | None
    columns: Polynomial | None

    @property
    def dtype(self) -> DType:
        """The type of its elements, which a plan knows."""
        assert self.operand.dtype is not None
        return self.operand.dtype

    @property
    def layout(self) -> Layout:
        """Along what elements are adjacent; a single row or column is wherever the kernel wants it."""
        rows, columns = (None if one is None else one.constant for one in (self.rows, self.columns))
        if columns == self.dtype.size:
            return Layout.ROW
        if rows == self.dtype.size:
            return Layout.COL
        if self.columns is None:
            return Layout.ROW
        return Layout.COL if self.rows is None else Layout.STRIDED


@dataclass(frozen=True)
class Plan:
    """A product as calls of one kernel.

    Attributes
    ----------
    product : what is to be computed.
    problem : what the kernel computes.
    m, n, k : the dimensions that it walks; None where the product has none of a role, whose size is then 1.
    around : the dimensions of loops around the call, outermost first; those of the depth come last.
    """

    product: Product
    problem: Gemm
    m: Dimension | None
    n: Dimension | None
    k: Dimension | None
    around: tuple[Dimension, ...]

    @property
    def matrices(self) -> tuple[Matrix, Matrix, Matrix]:
        """A, B and C as the kernel sees them."""
        return _matrices(self.product, self.m, self.n, self.k)


def plan(product: Product, machine: Machine, strategy: Strategy = Strategy.AUTO) -> Plan | Refusal:
    """The kernel of a product on a machine.

    Returns
    -------
    Refusal : there is no kernel for its types, or none for what it computes.
    """
    types = _types(product)
    if isinstance(types, str):
        return Refusal(product.where, types)
    roles = {role: [one for one in product.dimensions if one.role is role] for role in Role}
    m = _walked(roles[Role.M], ("c", types.c), ("a", types.a))
    n = _walked(roles[Role.N], ("c", types.c), ("b", types.b))
    k = _walked(roles[Role.K], ("a", types.a), ("b", types.b))
    around = tuple(one for role in _OUTER for one in roles[role] if one not in (m, n, k))
    if types.narrows and any(one.role is Role.K for one in around):
        return Refusal(product.where, f"sums along several dimensions into {types.c}, which would round")
    a, b, c = (matrix.layout for matrix in _matrices(product, m, n, k))
    try:
        machine.isa.tile(types.a, types.b)
        problem = Gemm(dtype=types.a, b_dtype=types.b, out_dtype=types.c, a=a, b=b, c=c, strategy=strategy)
    except TilewrightError as error:
        return Refusal(product.where, f"has no kernel: {error}")
    return Plan(product, problem, m, n, k, around)


#: Loops around calls: no iteration of the first three touches what another writes.
_OUTER = (Role.BATCH, Role.M, Role.N, Role.K)


def _types(product: Product) -> ProductTypes | str:
    """The element types of the kernel, or why there is none."""
    a, b, c = (operand.dtype for operand in (product.a, product.b, product.c))
    if a is None or b is None or c is None:
        return "has elements of a type that nobody knows"
    try:
        types = ProductTypes.parse(a, b, c)
    except TilewrightError:
        return f"multiplies {a} by {b} into {c}, for which there is no kernel"
    acc = types.acc if product.acc is None else product.acc
    if acc.is_integer != types.acc.is_integer or not _sums_suffice(acc, types):
        return f"sums products of {a} and {b} in {acc}, where kernels sum in {types.acc}"
    return types


def _sums_suffice(acc: DType, types: ProductTypes) -> bool:
    """Whether the kernel's sums give C what the program's would.

    Integers are right modulo 2^bits, so that only bits which reach C count. Floats may be summed in a wider
    type than the program's: whoever lets products stay unrounded and sums change their order gets a result
    that is nearer to the exact one.
    """
    needed = min(acc.bits, types.c.bits) if acc.is_integer else acc.bits
    return types.acc.bits >= needed


def _walked(dimensions: list[Dimension], *matrices: tuple[str, DType]) -> Dimension | None:
    """The dimension of a role that a kernel walks: one of adjacent elements, or else the innermost."""
    for name, dtype in matrices:
        for dimension in dimensions:
            stride = _stride(dimension, name)
            if stride is not None and stride.constant == dtype.size:
                return dimension
    return dimensions[-1] if dimensions else None


def _matrices(
    product: Product, m: Dimension | None, n: Dimension | None, k: Dimension | None
) -> tuple[Matrix, Matrix, Matrix]:
    return (
        Matrix("a", product.a, _stride(m, "a"), _stride(k, "a")),
        Matrix("b", product.b, _stride(k, "b"), _stride(n, "b")),
        Matrix("c", product.c, _stride(m, "c"), _stride(n, "c")),
    )


def _stride(dimension: Dimension | None, name: str) -> Polynomial | None:
    """How far an operand moves with a dimension."""
    found: Polynomial | None = None if dimension is None else getattr(dimension, name)
    return found
