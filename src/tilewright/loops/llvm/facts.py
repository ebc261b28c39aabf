"""Known facts about integers in loops, and proofs from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from tilewright.loops.llvm.numbered import CONSTANT, Numbering, Terms
from tilewright.loops.llvm.symbols import Reloaded, SsaValue
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol

#: Facts added up in one proof, at most. Ranges of subscripts take three: the range of an index from its loop,
#: the size of the loop from its guard, the range of the size from its type.
DEPTH = 4
#: Facts tried for one term, at most: some functions check the same size hundreds of times.
CHOICES = 8

_ONE: Terms = ((CONSTANT, 1),)

_INTEGER = re.compile(r"i(\d+)$")


def bits_of(kind: str) -> int | None:
    """Width of an integer type; 64 for pointers; None for other types.

    >>> bits_of("i32"), bits_of("ptr"), bits_of("float")
    (32, 64, None)
    """
    found = _INTEGER.match(kind)
    return int(found[1]) if found else 64 if kind == "ptr" else None


class Facts:
    """A set of polynomials that are known to be non-negative.

    Examples
    --------
    >>> n, i = SsaValue.of("%n", "i32"), Index("i")
    >>> facts = Facts()
    >>> facts.add(Polynomial.of(n) - i - 1)
    >>> facts.proves(Polynomial.of(2**31) - i)
    True
    """

    def __init__(self) -> None:
        self._numbering = Numbering()
        self._known: dict[Terms, None] = {}
        #: Facts that hold without the current assumptions.
        self._sure: dict[Terms, None] | None = None
        self._nonzero: set[Terms] = set()
        self._proven: dict[tuple[Terms, int], bool] = {}
        #: The facts with each product of symbols, and its coefficient there; those recorded last come first.
        self._facts_with: dict[int, list[tuple[int, Terms]]] | None = None

    def add(self, *values: Polynomial) -> None:
        """Record that values are not negative."""
        count = len(self._known)
        for value in values:
            if value.constant is None:
                self._known.setdefault(self._numbering.terms(value))
        if len(self._known) > count:
            self._forget()

    def add_nonzero(self, value: Polynomial) -> None:
        """Record that a value is not 0."""
        self._nonzero.add(self._numbering.terms(value))
        self._forget()

    def _forget(self) -> None:
        """Drop what followed from other facts."""
        self._proven = {}
        self._facts_with = None

    @contextmanager
    def assuming(self, values: Iterable[Polynomial]) -> Iterator[None]:
        """Assume facts temporarily."""
        before, outermost = dict(self._known), self._sure is None
        if outermost:
            self._sure = dict(self._known)
        self.add(*values)
        try:
            yield
        finally:
            self._known = before
            if outermost:
                self._sure = None
            self._forget()

    @contextmanager
    def without_assumptions(self) -> Iterator[None]:
        """Temporarily drop all assumptions; facts recorded meanwhile remain."""
        if self._sure is None:
            yield
            return
        before, self._known = self._known, self._sure
        self._forget()
        try:
            yield
        finally:
            self._known = before | self._sure
            self._forget()

    def proves(self, value: Polynomial) -> bool:
        """Whether a value is provably non-negative; False if no proof is found."""
        return self._proves(self._numbering.terms(value), DEPTH)

    def _proves(self, value: Terms, depth: int) -> bool:
        key = value, depth
        found = self._proven.get(key)
        if found is None:
            self._proven[key] = False  # a proof that needs itself is none
            found = self._proven[key] = self._prove(value, depth)
        return found

    def _prove(self, value: Terms, depth: int) -> bool:
        named = value
        constant = 0
        if value and value[0][0] == CONSTANT:
            constant, named = value[0][1], value[1:]
        if not named:
            return constant >= 0
        wrong = [term for term in named if term[1] < 0 or not self._product(term[0], depth)]
        if not wrong and constant >= 0:
            return True
        if depth == 0:
            return False
        if constant < 0:
            more = self._numbering.difference(value, _ONE, -1)
            if more in self._nonzero and self._proves(more, depth - 1):
                return True
        names = self._numbering.names
        first = sorted(wrong or named, key=lambda term: names[term[0]])
        return any(
            self._proves(self._numbering.difference(value, fact, factor), depth - 1)
            for term in (first[:1] if wrong else first)
            for fact, factor in islice(self._steps(*term), CHOICES)
        )

    def _product(self, number: int, depth: int) -> bool:
        """Whether every factor of a product is provably non-negative."""
        return all(self._symbol(symbol, depth) for symbol in self._numbering.monomials[number])

    def _symbol(self, symbol: Symbol, depth: int) -> bool:
        match symbol:
            case Index():
                return True
            case SsaValue(signed=False) | Reloaded(signed=False):
                return True
        number = self._numbering.number((symbol,))
        value: Terms = ((number, 1),)
        if value in self._known:
            return True
        return depth > 0 and any(
            found == 1 and self._proves(self._numbering.difference(value, fact, 1), depth - 1)
            for found, fact in reversed(self._with(number))
        )

    def _with(self, number: int) -> list[tuple[int, Terms]]:
        """The facts that contain a product of symbols, and its coefficient."""
        if self._facts_with is None:
            self._facts_with = {}
            for fact in reversed(self._known):
                for own, factor in fact:
                    self._facts_with.setdefault(own, []).append((factor, fact))
        return self._facts_with.get(number, [])

    def _steps(self, number: int, factor: int) -> Iterator[tuple[Terms, int]]:
        """Non-negative polynomials with a term that a factor makes the given one."""
        for found, fact in (*self._limits(number), *self._with(number)):
            if found * factor > 0 and factor % found == 0:
                yield fact, factor // found
        monomial = self._numbering.monomials[number]
        if len(monomial) < 2:
            return
        for place, symbol in enumerate(monomial):
            others = self._numbering.number(monomial[:place] + monomial[place + 1 :])
            if self._product(others, 1):
                for found, fact in self._with(self._numbering.number((symbol,))):
                    if found * factor > 0 and factor % found == 0:
                        yield self._numbering.times(fact, others), factor // found

    def _limits(self, number: int) -> Iterator[tuple[int, Terms]]:
        """Bounds of a symbol that follow from its type."""
        match self._numbering.monomials[number]:
            case (SsaValue(kind=kind, signed=signed) | Reloaded(kind=kind, signed=signed),):
                bits = bits_of(kind)
                if bits is None or kind == "ptr":
                    return
                low = -(1 << bits - 1) if signed else 0
                high = low + (1 << bits) - 1
                yield 1, ((CONSTANT, -low), (number, 1)) if low else ((number, 1),)
                yield -1, ((CONSTANT, high), (number, -1))
            case _:
                return
