"""Run-time conditions under which a product may replace its loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import permutations

from tilewright.llvm.build import Function
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
from tilewright.records import dataclass
from tilewright.spec.dtype import find_llvm_type

TRUE = Value(INT1, "true")


@dataclass(frozen=True)
class Interval:
    """A range of byte addresses: the first, and the one after the last."""

    begin: Value
    end: Value


@dataclass
class Conditions:
    """The conditions of one product, emitted into the function that has its symbols.

    Attributes
    ----------
    counts : trip count of each dimension.
    holds : whether all conditions emitted so far hold; overflow found by `Invariants.exact` is separate.
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
                    self.injective()
        return self.holds

    def require(self, condition: Value) -> None:
        """Add a condition."""
        self.holds = condition if self.holds == TRUE else self.invariants.f.and_(self.holds, condition)

    def unwritten(self, symbol: Reloaded) -> None:
        """Require that no element of C overlaps the memory that a symbol was loaded from."""
        f, kind = self.invariants.f, kind_of(symbol)
        begin = f.ptrtoint(self.invariants.address(symbol.base, symbol.offset))
        c = self._interval(self.product.c, "c", self.invariants.exact)
        self.require(apart(f, c, Interval(begin, f.add(begin, bytes_of(kind.text)))))

    def _interval(
        self, operand: MatrixOperand, name: str, exact: Exact, pitch: Polynomial | None = None
    ) -> Interval:
        """The bytes from the first to the last element that the loops access of an operand.

        Given a pitch, those of one row: dimensions whose stride is the pitch are excluded.
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
        """Require that C does not overlap another operand."""
        f, exact, c = self.invariants.f, self.invariants.exact, self.product.c
        far = apart(f, self._interval(c, "c", exact), self._interval(other, name, exact))
        pitch = self._common_pitch(other, name)
        if pitch is not None:
            with f.once_if(f.not_(far), [far]) as (_, advance):
                advance([self._interleaved(other, name, pitch)])
            far = advance.results[0]
        self.require(far)

    def _common_pitch(self, other: MatrixOperand, name: str) -> Polynomial | None:
        """A stride that C and another operand share, as blocks of one array do; not the stride of one
        element.
        """
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
        """Whether rows of C and of another operand with the same pitch interleave without overlapping.

        All of C is at the addresses of its first row plus multiples of the pitch, and so is the other
        operand. If the other's first row, moved by a multiple of the pitch, begins after C's first row and
        ends before C's next row, no two rows share a byte.
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

    def injective(self) -> None:
        """Whether in some order of C's dimensions each stride exceeds the extent of all smaller ones."""
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
        """Require that a number is in range in the first and the last iterations."""
        f, invariants = self.invariants.f, self.invariants
        for indices in self._corners(condition.loops):
            value = invariants.integer(condition.value, invariants.exact, indices)
            low = invariants.integer(condition.low, invariants.exact, indices)
            high = invariants.integer(condition.high, invariants.exact, indices)
            self.require(f.icmp("<=", low, value))
            self.require(f.icmp("<", value, high))

    def _corners(self, loops: Sequence[tuple[Index, Extent]]) -> Iterator[dict[Symbol, Value]]:
        """First and last iterations: a value linear in every index takes its extremes there."""
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


#: Dimensions of C up to which all orders are tried.
MOST_ORDERED = 3


def apart(f: Function, left: Interval, right: Interval) -> Value:
    """Whether two intervals are disjoint."""
    return f.or_(f.icmp("<=", left.end, right.begin), f.icmp("<=", right.end, left.begin))


def bytes_of(kind: str) -> int:
    """The size of an LLVM type that symbols have.

    >>> bytes_of("i32"), bytes_of("i1"), bytes_of("double"), bytes_of("ptr")
    (4, 1, 8, 8)
    """
    dtype = find_llvm_type(kind)
    if dtype is not None:
        return dtype.size
    return POINTER_BYTES if kind == "ptr" else -(-int(kind[1:]) // 8)
