"""PyTorch's symbolic sizes as sizes of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from tilewright.errors import NotConvertible
from tilewright.graph.sizes import Shape
from tilewright.loops.nests.polynomial import Polynomial, Symbol


def size_of_torch(size: Any) -> Polynomial:
    """An integer, or the expression of a `torch.SymInt`, as a polynomial in named sizes.

    Raises
    ------
    NotConvertible : an expression that is no polynomial with integer coefficients, as ``s0 // 2``.

    >>> str(size_of_torch(3))
    '3'
    """
    if isinstance(size, int):
        return Polynomial.of(size)
    return _polynomial(size.node.expr)


def shape_of_torch(shape: Sequence[Any]) -> Shape:
    """The sizes of a tensor.

    Raises
    ------
    NotConvertible
    """
    return tuple(map(size_of_torch, shape))


def _polynomial(expression: Any) -> Polynomial:
    match expression:
        case sympy.Integer():
            return Polynomial.of(int(expression))
        case sympy.Symbol():
            return Polynomial.of(Symbol(expression.name))
        case sympy.Add():
            total = Polynomial()
            for term in expression.args:
                total = total + _polynomial(term)
            return total
        case sympy.Mul():
            product = Polynomial.of(1)
            for factor in expression.args:
                product = product * _polynomial(factor)
            return product
        case sympy.Pow(args=(base, sympy.Integer() as exponent)) if exponent > 0:
            power = Polynomial.of(1)
            for _ in range(int(exponent)):
                power = power * _polynomial(base)
            return power
        case _:
            raise NotConvertible(reason=f"the size {expression} is no polynomial in the sizes of inputs")


def names_in(shape: Shape) -> set[str]:
    """The named sizes that a shape depends on."""
    return {symbol.name for size in shape for monomial, _ in size.terms for symbol in monomial}
