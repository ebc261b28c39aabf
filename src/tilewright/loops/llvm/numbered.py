"""Polynomials with their products of symbols as numbers, so that proofs compare and add integers only."""

from __future__ import annotations

from typing import TypeAlias

from tilewright.loops.nests.polynomial import Monomial, Polynomial

#: Number and coefficient of each product of symbols, by ascending number. 0 is the number of the constant.
Terms: TypeAlias = tuple[tuple[int, int], ...]

CONSTANT = 0


class Numbering:
    """Numbers for the products of symbols of one nest, in the order in which they occur.

    Examples
    --------
    >>> from tilewright.loops.nests.polynomial import Symbol
    >>> numbering, n = Numbering(), Polynomial.of(Symbol("n"))
    >>> numbering.terms(n * 3 - 1)
    ((0, -1), (1, 3))
    >>> numbering.difference(numbering.terms(n * 3 - 1), numbering.terms(n), 2)
    ((0, -1), (1, 1))
    """

    def __init__(self) -> None:
        self.monomials: list[Monomial] = [()]
        #: Names of the symbols of each product, by which terms of polynomials are sorted.
        self.names: list[list[str]] = [[]]
        self._numbers: dict[Monomial, int] = {(): CONSTANT}
        self._products: dict[tuple[int, int], int] = {}

    def number(self, monomial: Monomial) -> int:
        """The number of a product."""
        found = self._numbers.get(monomial)
        if found is None:
            found = self._numbers[monomial] = len(self.monomials)
            self.monomials.append(monomial)
            self.names.append([symbol.name for symbol in monomial])
        return found

    def terms(self, value: Polynomial) -> Terms:
        """A polynomial by numbers."""
        return tuple(sorted((self.number(monomial), factor) for monomial, factor in value.terms))

    @staticmethod
    def difference(left: Terms, right: Terms, factor: int) -> Terms:
        """left - factor * right."""
        found = dict(left)
        for number, coefficient in right:
            found[number] = found.get(number, 0) - factor * coefficient
        return tuple(sorted(term for term in found.items() if term[1]))

    def times(self, value: Terms, number: int) -> Terms:
        """A polynomial times a product of symbols."""
        return tuple(sorted((self._product(own, number), factor) for own, factor in value))

    def _product(self, left: int, right: int) -> int:
        key = left, right
        if key not in self._products:
            symbols = self.monomials[left] + self.monomials[right]
            self._products[key] = self.number(tuple(sorted(symbols, key=lambda symbol: symbol.name)))
        return self._products[key]
