"""Order of the subscripts of a product in remarks: as operands are stored."""

from __future__ import annotations

from dataclasses import replace

from tilewright.loops.nests.nest import MatrixProduct, ProductDimension, TriangularPart
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.loops.nests.text import Stride
from tilewright.spec.roles import DimensionRole

_Named = list[tuple[ProductDimension, str]]


class StorageOrder:
    """The slowest subscript first, as in C: a transposed A is A[k,m].

    Where C is stored by columns, the fastest one comes first, as in Fortran, so that C is C[m,n] either way.
    """

    def __init__(self, product: MatrixProduct) -> None:
        self._by_columns = stored_by_columns(product) is True

    def __call__(self, own: _Named, stride: Stride) -> _Named:
        """The subscripts of an operand in order."""
        found = _slowest_first(own[::-1] if self._by_columns else own, stride)
        return found[::-1] if self._by_columns else found


def stored_by_columns(product: MatrixProduct) -> bool | None:
    """Whether the rows of C follow memory; None if nobody knows, or it has no rows or no columns."""
    strides = {dimension.role: _size(dimension.c) for dimension in product.dimensions if dimension.c}
    rows, columns = strides.get(DimensionRole.M), strides.get(DimensionRole.N)
    return None if rows is None or columns is None or rows == columns else rows > columns


def as_in_language(product: MatrixProduct, *, by_columns: bool) -> MatrixProduct:
    """The same product with C stored as the language stores it: by columns in Fortran, else by rows.

    C[m,n] = A[m,k]*B[k,n] stored one way is C^T[n,m] = B^T[n,k]*A^T[k,m] stored the other way.
    """
    swap = {DimensionRole.M: DimensionRole.N, DimensionRole.N: DimensionRole.M}
    if stored_by_columns(product) in (by_columns, None):
        return product
    dimensions = tuple(
        replace(one, role=swap.get(one.role, one.role), a=one.b, b=one.a) for one in product.dimensions
    )
    triangle = product.triangle and next(part for part in TriangularPart if part is not product.triangle)
    second = product.second and (product.second[1], product.second[0])
    return replace(product, a=product.b, b=product.a, dimensions=dimensions, triangle=triangle, second=second)


def _slowest_first(own: _Named, stride: Stride) -> _Named:
    """Dimensions by falling stride; those that compare equal stay in order."""
    return sorted(own, key=lambda pair: _size(stride(pair[0])))


def _size(stride: Polynomial) -> tuple[int, int]:
    """Sorts strides, the largest first: more factors that are unknown, then larger numbers."""
    if stride.constant is not None:
        return 0, -abs(stride.constant)
    return -max(len(monomial) for monomial, _ in stride.terms), 0
