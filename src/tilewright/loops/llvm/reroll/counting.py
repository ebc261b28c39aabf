"""Proof that every path through copies of a loop body runs as many iterations as the loop has.

Steps and masks of unrolled loops are constants. So the count n is cut into cases n = period*q + r, one for
each r below the period: in each, whatever control flow asks is linear in q, and decided for q = 0, 1, 2, 3
and for all larger q at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import lcm

from tilewright.loops.llvm.reroll.conditions import (
    Conjunction,
    Disjunction,
    IntegerTest,
    Known,
    Masked,
    PathCondition,
    UnknownCondition,
)
from tilewright.loops.llvm.reroll.summands import NotOneLoop
from tilewright.loops.llvm.symbols import Computed, IntegerOperation
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.records import dataclass

#: The count, in polynomials of which it is the only symbol left.
COUNT = Symbol("count of iterations")
#: Iterations of all copies together, at most: cases to prove.
LARGEST_PERIOD = 512
#: Integers of fewer bits are not compared: they could wrap around.
_LEAST_BITS = 32
#: How far numbers may be beyond the count; constants of loops are far below.
_LITTLE = 1 << 20
#: Counts are below this in any case.
LARGEST_COUNT = 1 << 62


@dataclass(frozen=True)
class AffineFunction:
    """slope*q + start, a function of the quotient q."""

    slope: int
    start: int

    def __sub__(self, other: AffineFunction) -> AffineFunction:
        return AffineFunction(self.slope - other.slope, self.start - other.start)

    def at(self, quotient: int) -> int:
        """Its value for a quotient."""
        return self.slope * quotient + self.start


@dataclass(frozen=True)
class ResidueClass:
    """A case: the counts period*q + rest, with q from low to high (None: any larger one)."""

    period: int
    rest: int
    low: int
    high: int | None

    @property
    def count(self) -> AffineFunction:
        """The count itself."""
        if self.low == self.high:
            return AffineFunction(0, self.period * self.low + self.rest)
        return AffineFunction(self.period, self.rest)

    def least(self, affine: AffineFunction) -> int | None:
        """The smallest value of an affine function; None if there is none."""
        if affine.slope >= 0:
            return affine.at(self.low)
        return None if self.high is None else affine.at(self.high)

    def most(self, affine: AffineFunction) -> int | None:
        """The largest value of an affine function; None if there is none."""
        least = self.least(AffineFunction(-affine.slope, -affine.start))
        return None if least is None else -least


@dataclass(frozen=True)
class LoopCount:
    """A loop on a path: it ends in its iteration number distance/step, counted from 0, in so many bits."""

    distance: Polynomial
    step: int
    bits: int


@dataclass(frozen=True)
class CountedPath:
    """A path through a region.

    Attributes
    ----------
    conditions : conditions of its branches, and whether they hold on it.
    loops : the loops on it.
    end : iterations of the scalar loop that it runs.
    failure : why its effects are not those of the scalar loop; "" if they are.
    """

    conditions: tuple[tuple[PathCondition, bool], ...]
    loops: tuple[LoopCount, ...]
    end: Polynomial
    failure: str


class CountProof:
    """Decides which paths run in which cases, and what they count.

    Parameters
    ----------
    count : iterations of the scalar loop.
    parts : what symbols that are no polynomials are made of.

    Attributes
    ----------
    below : the proof is for counts below this.
    """

    def __init__(self, count: Polynomial, parts: Mapping[Symbol, Masked]) -> None:
        self.below = LARGEST_COUNT
        self._parts = parts
        self._count = count
        self._solved = _solved(count, parts)
        #: Polynomials in terms of the count, and parts of the case at hand.
        self._in_count: dict[Polynomial, Polynomial] = {}
        self._values: dict[Polynomial, AffineFunction | None] = {}

    def possible(self, paths: Sequence[CountedPath], factors: Sequence[int]) -> set[int]:
        """Numbers of the paths that some count takes; each runs all iterations, or `NotOneLoop` is raised."""
        found: set[int] = set()
        for case in self._cases(factors):
            self._values = {}
            taken = [number for number, path in enumerate(paths) if self._is_possible(path, case)]
            if not taken:
                raise NotOneLoop("runs in copies whose branches are not understood")
            for number in taken:
                self._check_path(paths[number], case)
            found.update(taken)
        return found

    def _cases(self, factors: Sequence[int]) -> Iterator[ResidueClass]:
        known = self._count.constant
        if known is not None:
            if known < 1:
                raise NotOneLoop("never runs")
            yield ResidueClass(0, known, 0, 0)
            return
        masks = [_period(part.mask) for part in self._parts.values()]
        period = lcm(*factors, *masks)
        if period > LARGEST_PERIOD:
            raise NotOneLoop(f"runs in copies that together are {period} iterations")
        for rest in range(period):
            for quotient in range(4):
                if period * quotient + rest >= 1:
                    yield ResidueClass(period, rest, quotient, quotient)
            yield ResidueClass(period, rest, 4, None)

    def _check_path(self, path: CountedPath, case: ResidueClass) -> None:
        if path.failure:
            raise NotOneLoop(path.failure)
        for loop in path.loops:
            distance = self._affine(loop.distance, case)
            step = loop.step
            if distance is None or distance.slope % step or distance.start % step:
                raise NotOneLoop("runs in copies whose counts are not understood")
            turns = AffineFunction(distance.slope // step, distance.start // step)
            least = case.least(turns)
            if least is None or least < 0:
                raise NotOneLoop("runs in copies whose counts are not understood")
            # The distance does not wrap around.
            scale = 1 + (-(-abs(distance.slope) // case.period) if distance.slope else 0)
            self.below = min(self.below, (1 << loop.bits - 1) // scale)
            if abs(distance.start) >= min(_LITTLE, 1 << loop.bits - 1):
                raise NotOneLoop("runs in copies whose counts are not understood")
        if self._affine(path.end, case) != case.count:
            raise NotOneLoop("runs in copies that together are not the iterations of one loop")

    def _is_possible(self, path: CountedPath, case: ResidueClass) -> bool:
        return all(self._truth(test, case) in (wanted, None) for test, wanted in path.conditions)

    def _truth(self, test: PathCondition, case: ResidueClass) -> bool | None:
        match test:
            case Known(holds):
                return holds
            case UnknownCondition():
                return None
            case Disjunction(left, right):
                found = self._truth(left, case), self._truth(right, case)
                return True if True in found else None if None in found else False
            case Conjunction(left, right):
                found = self._truth(left, case), self._truth(right, case)
                return False if False in found else None if None in found else True
            case IntegerTest(predicate, left, right, bits):
                return self._compared(
                    predicate, self._affine(left, case), self._affine(right, case), bits, case
                )

    def _compared(
        self,
        predicate: str,
        left: AffineFunction | None,
        right: AffineFunction | None,
        bits: int,
        case: ResidueClass,
    ) -> bool | None:
        if left is None or right is None or not self._is_near(left, right, bits, case):
            return None
        if predicate[0] == "u":
            left, right = self._unsigned(left, bits, case), self._unsigned(right, bits, case)
            if left is None or right is None:
                return None
        apart = left - right
        least, most = case.least(apart), case.most(apart)
        below = None if most is None else most < 0
        above = None if least is None else least > 0
        not_above = None if most is None else most <= 0
        not_below = None if least is None else least >= 0
        match predicate[-2:] if predicate not in ("eq", "ne") else predicate:
            case "eq":
                return True if least == most == 0 else False if below or above else None
            case "ne":
                return False if least == most == 0 else True if below or above else None
            case "lt":
                return True if below else False if not_below else None
            case "le":
                return True if not_above else False if above else None
            case "gt":
                return True if above else False if not_above else None
            case "ge":
                return True if not_below else False if below else None
            case _:
                return None

    def _is_near(self, left: AffineFunction, right: AffineFunction, bits: int, case: ResidueClass) -> bool:
        """Whether numbers are at most the count and a little, so that they do not wrap around."""
        if bits < _LEAST_BITS:
            return False
        self.below = min(self.below, (1 << bits - 1) - 2 * _LITTLE)
        return all(
            abs(affine.slope) <= case.period and abs(affine.start) <= _LITTLE for affine in (left, right)
        )

    @staticmethod
    def _unsigned(affine: AffineFunction, bits: int, case: ResidueClass) -> AffineFunction | None:
        """The same number read without a sign."""
        least, most = case.least(affine), case.most(affine)
        if least is not None and least >= 0:
            return affine
        return (
            AffineFunction(affine.slope, affine.start + (1 << bits))
            if most is not None and most < 0
            else None
        )

    def _affine(self, value: Polynomial, case: ResidueClass) -> AffineFunction | None:
        """A polynomial in one case; None if it depends on more than the count."""
        if value not in self._values:
            if value not in self._in_count:
                self._in_count[value] = value.substitute(self._solved)
            self._values[value] = self._sum(self._in_count[value], case)
        return self._values[value]

    def _sum(self, value: Polynomial, case: ResidueClass) -> AffineFunction | None:
        total = AffineFunction(0, 0)
        for monomial, factor in value.terms:
            match monomial:
                case ():
                    part: AffineFunction | None = AffineFunction(0, 1)
                case (symbol,) if symbol == COUNT:
                    part = case.count
                case (Computed() as symbol,):
                    part = self._computed(symbol, case)
                case (symbol,) if symbol in self._parts:
                    part = self._masked(self._parts[symbol], case)
                case _:
                    part = None
            if part is None:
                return None
            total = AffineFunction(total.slope + factor * part.slope, total.start + factor * part.start)
        return total

    def _computed(self, symbol: Computed, case: ResidueClass) -> AffineFunction | None:
        """A maximum or minimum, where one of two is it for the whole case."""
        parts = [self._affine(operand, case) for operand in symbol.operands]
        match parts, symbol.operator:
            case [
                AffineFunction() as left,
                AffineFunction() as right,
            ], IntegerOperation.MAXIMUM | IntegerOperation.MINIMUM:
                least, most = case.least(left - right), case.most(left - right)
                if least is not None and least >= 0:
                    return left if symbol.operator is IntegerOperation.MAXIMUM else right
                if most is not None and most <= 0:
                    return right if symbol.operator is IntegerOperation.MAXIMUM else left
        return None

    def _masked(self, part: Masked, case: ResidueClass) -> AffineFunction | None:
        """A number with bits cleared; it is between 0 and the count."""
        affine = self._affine(part.value, case)
        if affine is None:
            return None
        least, room = case.least(affine), case.least(case.count - affine)
        if least is None or least < 0 or room is None or room < 0:
            return None
        if part.mask == -1:
            self.below = min(self.below, 1 << part.bits - 1)
            return affine
        unit = _period(part.mask)
        if affine.slope % unit:
            return None
        if _is_low(part.mask):
            return AffineFunction(0, affine.start & part.mask)
        self.below = min(self.below, part.mask | unit - 1)
        return AffineFunction(affine.slope, affine.start - affine.start % unit)


def _is_low(mask: int) -> bool:
    """Whether a mask keeps bits of the rest only."""
    return 0 <= mask < LARGEST_PERIOD


def _period(mask: int) -> int:
    """The power of two for whose multiples a mask keeps nothing, or everything."""
    if mask == -1:
        return 1
    if _is_low(mask):
        return 1 << mask.bit_length()
    low = mask & -mask
    full = mask | (low - 1)
    if full & (full + 1):
        raise NotOneLoop("runs in copies whose counts are not understood")
    return low


def _solved(count: Polynomial, parts: Mapping[Symbol, Masked]) -> dict[Symbol, Polynomial]:
    """A symbol of the count in terms of the count."""
    if count.constant is not None:
        return {}
    for monomial, factor in count.terms:
        match monomial:
            case (symbol,) if factor in (1, -1) and symbol not in parts and not isinstance(symbol, Index):
                if sum(symbol in other for other, _ in count.terms) == 1:
                    rest = count - Polynomial(((monomial, factor),))
                    return {symbol: (Polynomial.of(COUNT) - rest) * factor}
            case _:
                continue
    raise NotOneLoop("runs in copies whose counts are not understood")
