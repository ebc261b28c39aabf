"""One-line text of a recognised product, for remarks and reports."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.loops.nests.nest import (
    Factor,
    FinishingStep,
    MatrixOperand,
    MatrixProduct,
    ProductDimension,
)
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.spec.epilogue import Scale
from tilewright.spec.roles import DimensionRole

#: Roles in the order of subscripts, with their letters.
LETTERS = {DimensionRole.BATCH: "b", DimensionRole.M: "m", DimensionRole.N: "n", DimensionRole.K: "k"}

#: The stride of one operand along a dimension.
Stride = Callable[[ProductDimension], Polynomial]
#: Orders the subscripts of an operand, which come in the order of roles.
SubscriptOrder = Callable[[list[tuple[ProductDimension, str]], Stride], list[tuple[ProductDimension, str]]]


def role_order(own: list[tuple[ProductDimension, str]], _: Stride) -> list[tuple[ProductDimension, str]]:
    """Subscripts as in the formula of a product, however operands are stored."""
    return own


def product_text(product: MatrixProduct, order: SubscriptOrder = role_order) -> str:
    """The product, with letters for roles, and the sizes of its dimensions.

    Several dimensions of a role are numbered: ``C[m,n] += A[m,k1,k2]*B[k1,k2,n], m=8, n=8, k1=3, k2=n``.

    >>> from tilewright.loops.nests.nest import Extent, MemoryObject, Where
    >>> from tilewright.loops.nests.polynomial import Index, Symbol
    >>> c, a, b = (MatrixOperand(MemoryObject(Symbol(name), name), Polynomial(), None) for name in "yAx")
    >>> n, one, none = Polynomial.of(Symbol("n")), Polynomial.of(1), Polynomial()
    >>> rows = ProductDimension(DimensionRole.M, Index("i"), Extent.of(n), n, none, one)
    >>> depths = ProductDimension(DimensionRole.K, Index("k"), Extent.of(64), one, one, none)
    >>> print(product_text(
    ...     MatrixProduct(a, b, c, (rows, depths), Factor(), Factor(0), None, (), Where("f"))))
    y[m] = A[m,k]*x[k], m=n, k=64
    """
    names = _names(product)

    def operand(found: MatrixOperand, stride: Stride, *, depths_first: bool = False) -> str:
        own = [(dimension, name) for dimension, name in names if stride(dimension)]
        if depths_first:
            own.sort(
                key=lambda pair: [
                    DimensionRole.BATCH,
                    DimensionRole.K,
                    DimensionRole.N,
                    DimensionRole.M,
                ].index(pair[0].role)
            )
        return f"{found.memory.name}[{','.join(name for _, name in order(own, stride))}]"

    c = operand(product.c, lambda dimension: dimension.c)
    pairs = [(product.a, product.b), *([product.second] if product.second else [])]
    products = [
        _times(product.alpha, operand(a, lambda d: d.a), operand(b, lambda d: d.b, depths_first=True))
        for a, b in pairs
    ]
    kept = "" if product.beta.is_zero or product.beta.is_one else f"{_times(product.beta, c)} + "
    sign = "+=" if product.beta.is_one else "="
    sizes = ", ".join(f"{name}={dimension.extent}" for dimension, name in names)
    side = "" if product.triangle is None else f", {product.triangle.value} triangle"
    steps = ", then " + ", ".join(map(_step_text, product.finish)) if product.finish else ""
    return f"{c} {sign} {kept}{' + '.join(products)}, {sizes}{side}{steps}"


def _step_text(one: FinishingStep) -> str:
    """A finishing step: ``+ bias``, ``* 0.5``, ``relu``."""
    sign = "*" if isinstance(one.step, Scale) else "+"
    match one.operand:
        case None:
            return str(one.step)
        case MatrixOperand(memory=memory):
            return f"{sign} {memory.name}"
        case Factor() as factor:
            return f"{sign} {_times(factor) or factor.number}"


def _names(product: MatrixProduct) -> list[tuple[ProductDimension, str]]:
    """Dimensions in the order of subscripts, each with its letter, numbered where a role has several."""
    names = []
    for role, letter in LETTERS.items():
        own = [dimension for dimension in product.dimensions if dimension.role is role]
        names += [(d, letter if len(own) == 1 else f"{letter}{count}") for count, d in enumerate(own, 1)]
    return names


def _times(factor: Factor, *operands: str) -> str:
    numbers = [] if factor.number == 1 else [str(factor.number)]
    return "*".join([*numbers, *(str(scalar.symbol) for scalar in factor.scalars), *operands])
