"""Known facts about integers in loops, and proofs from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice

from tilewright.loops.llvm.symbols import Reloaded, SsaValue
from tilewright.loops.nests.polynomial import Index, Monomial, Polynomial, Symbol

#: Facts added up in one proof, at most. Ranges of subscripts take three: the range of an index from its loop,
#: the size of the loop from its guard, the range of the size from its type.
DEPTH = 4
#: Facts tried for one term, at most: some functions check the same size hundreds of times.
CHOICES = 8

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
        self._known: list[Polynomial] = []
        #: Facts that hold without the current assumptions.
        self._sure: list[Polynomial] | None = None
        self._nonzero: set[Polynomial] = set()
        self._proven: dict[tuple[Polynomial, int], bool] = {}

    def add(self, *values: Polynomial) -> None:
        """Record that values are not negative."""
        self._known.extend(value for value in values if value.constant is None and value not in self._known)
        self._proven.clear()

    def add_nonzero(self, value: Polynomial) -> None:
        """Record that a value is not 0."""
        self._nonzero.add(value)
        self._proven.clear()

    @contextmanager
    def assuming(self, values: Iterable[Polynomial]) -> Iterator[None]:
        """Assume facts temporarily."""
        before, outermost = list(self._known), self._sure is None
        if outermost:
            self._sure = list(self._known)
        self.add(*values)
        try:
            yield
        finally:
            self._known = before
            if outermost:
                self._sure = None
            self._proven.clear()

    @contextmanager
    def without_assumptions(self) -> Iterator[None]:
        """Temporarily drop all assumptions; facts recorded meanwhile remain."""
        if self._sure is None:
            yield
            return
        before, self._known = self._known, self._sure
        self._proven.clear()
        try:
            yield
        finally:
            self._known = before + [value for value in self._sure if value not in before]
            self._proven.clear()

    def proves(self, value: Polynomial, depth: int = DEPTH) -> bool:
        """Whether a value is provably non-negative; False if no proof is found."""
        key = value, depth
        if key not in self._proven:
            self._proven[key] = False  # a proof that needs itself is none
            self._proven[key] = self._prove(value, depth)
        return self._proven[key]

    def _prove(self, value: Polynomial, depth: int) -> bool:
        if value.constant is not None:
            return value.constant >= 0
        constant = dict(value.terms).get((), 0)
        named = [(monomial, factor) for monomial, factor in value.terms if monomial]
        wrong = [term for term in named if term[1] < 0 or not self._product(term[0], depth)]
        if not wrong and constant >= 0:
            return True
        if constant < 0 and value + 1 in self._nonzero and depth and self.proves(value + 1, depth - 1):
            return True
        if depth == 0:
            return False
        return any(
            self.proves(value - step, depth - 1)
            for monomial, factor in (wrong[:1] or named)
            for step in islice(self._steps(monomial, factor), CHOICES)
        )

    def _product(self, monomial: Monomial, depth: int) -> bool:
        """Whether every factor of a product is provably non-negative."""
        return all(self._symbol(symbol, depth) for symbol in monomial)

    def _symbol(self, symbol: Symbol, depth: int) -> bool:
        match symbol:
            case Index():
                return True
            case SsaValue(signed=False) | Reloaded(signed=False):
                return True
            case _:
                value = Polynomial.of(symbol)
                if value in self._known:
                    return True
                return depth > 0 and any(
                    dict(fact.terms).get((symbol,)) == 1 and self.proves(value - fact, depth - 1)
                    for fact in self._known
                )

    def _steps(self, monomial: Monomial, factor: int) -> Iterator[Polynomial]:
        """Non-negative polynomials with a term that cancels the given one."""
        for fact in (*self._limits(monomial), *reversed(self._known)):
            found = dict(fact.terms).get(monomial, 0)
            if found * factor > 0 and factor % found == 0:
                yield fact * (factor // found)
        if len(monomial) < 2:
            return
        for place, symbol in enumerate(monomial):
            others = monomial[:place] + monomial[place + 1 :]
            if self._product(others, 1):
                for fact in reversed(self._known):
                    found = dict(fact.terms).get((symbol,), 0)
                    if found * factor > 0 and factor % found == 0:
                        yield fact * Polynomial(((others, factor // found),))

    @staticmethod
    def _limits(monomial: Monomial) -> Iterator[Polynomial]:
        """Bounds of a symbol that follow from its type."""
        match monomial:
            case (SsaValue(kind=kind, signed=signed) | Reloaded(kind=kind, signed=signed) as symbol,):
                bits = bits_of(kind)
                if bits is None or kind == "ptr":
                    return
                low = -(1 << bits - 1) if signed else 0
                yield Polynomial.of(symbol) - low
                yield low + (1 << bits) - 1 - Polynomial.of(symbol)
            case _:
                return
