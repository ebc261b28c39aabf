"""Integer polynomials in named values: sizes, strides and offsets of loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from tilewright.records import dataclass


@dataclass(frozen=True)
class Symbol:
    """A named integer. The front end defines its meaning; symbols are ordered by name.

    >>> [str(symbol) for symbol in sorted([Symbol("n"), Index("i")])]
    ['i', 'n']
    """

    name: str

    def __lt__(self, other: Symbol) -> bool:
        return self.name < other.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Index(Symbol):
    """The iteration number of one loop, counted from 0 in steps of 1."""


Monomial: TypeAlias = tuple[Symbol, ...]
Integral: TypeAlias = "Polynomial | Symbol | int"


@dataclass(frozen=True)
class Polynomial:
    """A sum of products of symbols with integer coefficients.

    Attributes
    ----------
    terms : products, each a sorted tuple of symbols, with coefficients other than 0; sorted, so that equal
        polynomials compare equal.

    Examples
    --------
    >>> n, i = Symbol("n"), Index("i")
    >>> print((Polynomial.of(n) * i + 1) * 4)
    4 + 4*i*n
    """

    terms: tuple[tuple[Monomial, int], ...] = ()

    @classmethod
    def of(cls, value: Integral) -> Polynomial:
        """The polynomial of a number or a symbol; a polynomial is returned unchanged."""
        match value:
            case Polynomial():
                return value
            case Symbol():
                return cls((((value,), 1),))
            case int():
                return cls((((), value),)) if value else cls()

    @classmethod
    def _collected(cls, terms: Iterable[tuple[Monomial, int]]) -> Polynomial:
        found: dict[Monomial, int] = {}
        for monomial, coefficient in terms:
            found[monomial] = found.get(monomial, 0) + coefficient
        kept = [(monomial, coefficient) for monomial, coefficient in found.items() if coefficient]
        return cls(tuple(sorted(kept, key=lambda term: [symbol.name for symbol in term[0]])))

    def __add__(self, other: Integral) -> Polynomial:
        return self._collected((*self.terms, *Polynomial.of(other).terms))

    __radd__ = __add__

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple((monomial, -coefficient) for monomial, coefficient in self.terms))

    def __sub__(self, other: Integral) -> Polynomial:
        return self + -Polynomial.of(other)

    def __rsub__(self, other: Integral) -> Polynomial:
        return Polynomial.of(other) - self

    def __mul__(self, other: Integral) -> Polynomial:
        factors = Polynomial.of(other).terms
        return self._collected(
            (tuple(sorted(left + right, key=lambda symbol: symbol.name)), one * two)
            for left, one in self.terms
            for right, two in factors
        )

    __rmul__ = __mul__

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __str__(self) -> str:
        def shown(monomial: Monomial, coefficient: int) -> str:
            factors = [str(symbol) for symbol in monomial]
            if coefficient != 1 or not factors:
                factors.insert(0, str(coefficient))
            return "*".join(factors)

        return " + ".join(shown(*term) for term in self.terms) or "0"

    @property
    def constant(self) -> int | None:
        """Its value if it is a constant, else None.

        >>> Polynomial.of(3).constant, Polynomial.of(Symbol("n")).constant
        (3, None)
        """
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def symbols(self) -> frozenset[Symbol]:
        """Its symbols, including loop indices."""
        return frozenset(symbol for monomial, _ in self.terms for symbol in monomial)

    @property
    def indices(self) -> frozenset[Index]:
        """Its loop indices."""
        return frozenset(symbol for symbol in self.symbols if isinstance(symbol, Index))

    def linear(self, indices: Iterable[Index]) -> Linear | None:
        """The polynomial as a linear form in the given indices, or None if it contains a product of two of
        them.

        >>> n, i, j = Symbol("n"), Index("i"), Index("j")
        >>> form = (Polynomial.of(n) * i + j + 7).linear([i, j])
        >>> str(form.coefficient(i)), str(form.coefficient(j)), str(form.rest)
        ('n', '1', '7')
        """
        asked = frozenset(indices)
        parts: dict[Index, list[tuple[Monomial, int]]] = {}
        rest: list[tuple[Monomial, int]] = []
        for monomial, coefficient in self.terms:
            found = [symbol for symbol in monomial if symbol in asked]
            match found:
                case []:
                    rest.append((monomial, coefficient))
                case [Index() as index]:
                    others = tuple(symbol for symbol in monomial if symbol != index)
                    parts.setdefault(index, []).append((others, coefficient))
                case _:
                    return None
        collected = {index: self._collected(terms) for index, terms in parts.items()}
        return Linear(tuple(sorted(collected.items())), self._collected(rest))

    def substitute(self, values: Mapping[Symbol, Integral]) -> Polynomial:
        """The polynomial with symbols replaced by values.

        >>> str((Polynomial.of(Symbol("n")) + 1).substitute({Symbol("n"): 4}))
        '5'
        """
        result = Polynomial()
        for monomial, coefficient in self.terms:
            product = Polynomial.of(coefficient)
            for symbol in monomial:
                product = product * values.get(symbol, symbol)
            result = result + product
        return result


@dataclass(frozen=True)
class Linear:
    """A polynomial that is linear in loop indices: the sum of coefficient times index, and the rest."""

    coefficients: tuple[tuple[Index, Polynomial], ...]
    rest: Polynomial

    def coefficient(self, index: Index) -> Polynomial:
        """The coefficient of an index."""
        return dict(self.coefficients).get(index, Polynomial())
