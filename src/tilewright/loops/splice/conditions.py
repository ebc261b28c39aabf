"""What run time has to see before a product may run in the place of its loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from tilewright.llvm.values import INT1, INT64, Value, int64
from tilewright.loops.llvm.symbols import Reloaded
from tilewright.loops.llvm.type_layout import POINTER_BYTES
from tilewright.loops.nests.nest import (
    Disjoint,
    Extent,
    Injective,
    MatrixOperand,
    MatrixProduct,
    ProductDimension,
    Within,
)
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.loops.splice.arithmetic import Exact, Invariants, kind_of, least, most
from tilewright.spec.dtype import find_llvm_type

TRUE = Value(INT1, "true")


@dataclass(frozen=True)
class Interval:
    """Addresses of bytes: that of the first one, and that behind the last one."""

    begin: Value
    end: Value


@dataclass
class Conditions:
    """The conditions of one product, written into the function that has its symbols.

    Attributes
    ----------
    counts : how often the loop of each dimension runs.
    holds : whether all conditions written so far hold; what `Invariants.exact` found is not in it.
    """

    invariants: Invariants
    product: MatrixProduct
    counts: Mapping[ProductDimension, Value]
    holds: Value = field(default=TRUE)

    def write(self) -> Value:
        """Every condition of the product."""
        for condition in self.product.conditions:
            match condition:
                case Within():
                    self.within(condition)
                case Disjoint(other="a"):
                    self._disjoint(self.product.a, "a")
                case Disjoint():
                    self._disjoint(self.product.b, "b")
                case Injective():
                    self._injective()
        return self.holds

    def require(self, condition: Value) -> None:
        """One more condition."""
        self.holds = condition if self.holds == TRUE else self.invariants.f.and_(self.holds, condition)

    def unwritten(self, symbol: Reloaded) -> None:
        """No element of C is what a symbol was read from."""
        f, kind = self.invariants.f, kind_of(symbol)
        begin = f.ptrtoint(self.invariants.address(symbol.base, symbol.offset))
        c = self._interval(self.product.c, "c", self.invariants.exact)
        self.require(self._apart(c, Interval(begin, f.add(begin, bytes_of(kind.text)))))

    def _interval(
        self, operand: MatrixOperand, name: str, exact: Exact, pitch: Polynomial | None = None
    ) -> Interval:
        """The bytes from the first to the last that the loops touch of an operand.

        Given a pitch, those of one row: without the dimensions that move the operand by it.
        """
        assert operand.dtype is not None
        f = self.invariants.f
        low, high = int64(0), int64(operand.dtype.size)
        for dimension, count in self.counts.items():
            stride: Polynomial = getattr(dimension, name)
            if not stride.terms or (pitch is not None and stride in (pitch, -pitch)):
                continue
            reach = exact.mul(exact.sub(count, 1), self.invariants.integer(stride, exact))
            low = exact.add(low, least(f, reach, int64(0)))
            high = exact.add(high, most(f, reach, int64(0)))
        start = f.ptrtoint(self.invariants.address(operand.memory.base, operand.offset))
        return Interval(f.add(start, low), f.add(start, high))

    def _disjoint(self, other: MatrixOperand, name: str) -> None:
        """No element of C is one of another operand."""
        f, exact, c = self.invariants.f, self.invariants.exact, self.product.c
        far = self._apart(self._interval(c, "c", exact), self._interval(other, name, exact))
        pitch = self._common_pitch(other, name)
        if pitch is not None:
            with f.once_if(f.not_(far), [far]) as (_, advance):
                advance([self._interleaved(other, name, pitch)])
            far = advance.results[0]
        self.require(far)

    def _apart(self, left: Interval, right: Interval) -> Value:
        """Whether one interval ends before the other one begins."""
        f = self.invariants.f
        return f.or_(f.icmp("<=", left.end, right.begin), f.icmp("<=", right.end, left.begin))

    def _common_pitch(self, other: MatrixOperand, name: str) -> Polynomial | None:
        """A stride of C that another operand has, as blocks of one array do; not that of one element."""
        assert self.product.c.dtype is not None
        assert other.dtype is not None
        strides: list[Polynomial] = [getattr(one, name) for one in self.counts]
        return next(
            (
                one.c
                for one in self.counts
                if one.c.terms
                and (one.c in strides or -one.c in strides)
                and abs(one.c.constant or 0) not in (self.product.c.dtype.size, other.dtype.size)
            ),
            None,
        )

    def _interleaved(self, other: MatrixOperand, name: str, pitch: Polynomial) -> Value:
        """Whether rows of C and of another operand, as far apart from one another in both, never meet.

        All of C lies at the places of its first row plus multiples of the pitch; so does the other operand.
        Where the other one's first row, moved by multiples of the pitch, begins behind C's and ends before
        the next one of C, no two rows have a byte in common.
        """
        f, invariants = self.invariants.f, self.invariants
        exact = Exact(f)  # of this branch
        length = invariants.integer(pitch, exact)
        length = most(f, length, exact.sub(int64(0), length))
        c, row = (self._interval(*one, exact, pitch) for one in ((self.product.c, "c"), (other, name)))
        divisor = most(f, length, int64(1))
        rest = f.emit(INT64, f"srem {exact.sub(row.begin, c.begin).typed}, {divisor.text}")
        behind = f.select(f.icmp("<", rest, 0), f.add(rest, divisor), rest)
        first = f.icmp("<=", f.sub(c.end, c.begin), behind)
        second = f.icmp("<=", exact.add(behind, f.sub(row.end, row.begin)), length)
        return f.and_(f.and_(first, second), exact.right)

    def _injective(self) -> None:
        """In some order of C's dimensions, each step is longer than all that the ones before it reach."""
        f, exact = self.invariants.f, self.invariants.exact
        moves = [one for one in self.counts if one.c.terms]
        steps: dict[ProductDimension, tuple[Value, Value]] = {}
        for one in moves:
            stride = self.invariants.integer(one.c, exact)
            length = most(f, stride, exact.sub(int64(0), stride))
            steps[one] = length, exact.mul(exact.sub(self.counts[one], 1), length)
        found: Value | None = None
        for order in permutations(moves) if len(moves) <= MOST_ORDERED else (moves, moves[::-1]):
            reached, fits = int64(0), TRUE
            for one in order:
                length, reach = steps[one]
                longer = f.icmp("<", reached, length)
                fits = longer if fits == TRUE else f.and_(fits, longer)
                reached = exact.add(reached, reach)
            found = fits if found is None else f.or_(found, fits)
        if found is not None:
            self.require(found)

    def within(self, condition: Within) -> None:
        """A number is in its range in the first and the last iterations."""
        f, invariants = self.invariants.f, self.invariants
        for indices in self._corners(condition.loops):
            value = invariants.integer(condition.value, invariants.exact, indices)
            low = invariants.integer(condition.low, invariants.exact, indices)
            high = invariants.integer(condition.high, invariants.exact, indices)
            self.require(f.icmp("<=", low, value))
            self.require(f.icmp("<", value, high))

    def _corners(self, loops: Sequence[tuple[Index, Extent]]) -> Iterator[dict[Symbol, Value]]:
        """First and last iterations: what is linear in every index is between its values there."""
        found: list[dict[Symbol, Value]] = [{}]
        for index, extent in loops:
            following = []
            for corner in found:
                count = self.invariants.count(extent, corner)
                following += [
                    corner | {index: int64(0)},
                    corner | {index: self.invariants.exact.sub(count, 1)},
                ]
            found = following
        yield from found


#: Dimensions of C up to which every order of them is tried.
MOST_ORDERED = 3


def bytes_of(kind: str) -> int:
    """The size of an LLVM type that symbols have.

    >>> bytes_of("i32"), bytes_of("i1"), bytes_of("double"), bytes_of("ptr")
    (4, 1, 8, 8)
    """
    dtype = find_llvm_type(kind)
    if dtype is not None:
        return dtype.size
    return POINTER_BYTES if kind == "ptr" else -(-int(kind[1:]) // 8)
