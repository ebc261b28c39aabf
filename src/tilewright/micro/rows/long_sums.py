"""Sums of many addends that are as exact as sums of few: kept in more bits than the addends have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from tilewright.llvm.build import Function
from tilewright.llvm.floats import Floats
from tilewright.llvm.values import Type, Value, element_type, vector_type
from tilewright.spec.dtype import F32, F64, DType

#: A sum in registers.
Sum = Sequence[Value]


class LongSums(ABC):
    """Sums of values of one float type, scalar or vector.

    Parameters
    ----------
    v : the arithmetic of the addends.
    """

    #: Values that a sum consists of, and their type.
    parts: int
    dtype: DType

    def __init__(self, v: Floats) -> None:
        self.v, self.f = v, v.f

    @abstractmethod
    def kind(self) -> Type:
        """The type of each value of a sum."""

    @abstractmethod
    def nothing(self) -> Sum:
        """The sum of no addends: -0, since +0 would change a sum of -0."""

    @abstractmethod
    def plus(self, total: Sum, addend: Value) -> Sum:
        """total + addend."""

    @abstractmethod
    def times(self, total: Sum, factor: Value) -> Sum:
        """total · factor."""

    @abstractmethod
    def rounded(self, total: Sum, count: Value | None = None) -> Value:
        """The sum in the type of the addends; divided by a number of that type, if one is given."""

    @abstractmethod
    def lanes(self, total: Sum) -> Value:
        """The sum of all lanes, one number of the type of the addends."""

    def few(self, total: Value) -> Value:
        """The sum of all lanes of a sum of few addends, where `parts` is 1."""
        return self.lanes([total])


class WideSums(LongSums):
    """Sums of f32 in f64."""

    parts, dtype = 1, F64

    def __init__(self, v: Floats) -> None:
        super().__init__(v)
        lanes = v.type.lanes
        kind = vector_type(F64, lanes) if lanes else element_type(F64)
        self.wide = Floats(v.f, F64, kind, fused=v.fused)

    def kind(self) -> Type:
        """f64."""
        return self.wide.type

    def nothing(self) -> Sum:
        """-0."""
        return [self.wide.constant(-0.0)]

    def plus(self, total: Sum, addend: Value) -> Sum:
        """One conversion in addition to the addition itself."""
        return [self.wide.add(total[0], self._widened(addend))]

    def times(self, total: Sum, factor: Value) -> Sum:
        """One rounding, in f64."""
        return [self.wide.multiply(total[0], self._widened(factor))]

    def rounded(self, total: Sum, count: Value | None = None) -> Value:
        """The quotient too is computed in f64."""
        found = total[0] if count is None else self.wide.divide(total[0], self._widened(count))
        return self._narrowed(found, self.v.type)

    def lanes(self, total: Sum) -> Value:
        """By halves, in f64."""
        found = halved(self.wide, total[0])
        return self._narrowed(found, element_type(F32))

    def few(self, total: Value) -> Value:
        """In f64 too, which takes no longer."""
        return self.lanes([self._widened(total)])

    def _widened(self, x: Value) -> Value:
        return self.f.emit(self.wide.type, f"fpext {x.typed} to {self.wide.type.text}")

    def _narrowed(self, x: Value, kind: Type) -> Value:
        return self.f.emit(kind, f"fptrunc {x.typed} to {kind.text}")


class CompensatedSums(LongSums):
    """Sums that are kept together with the sum of their rounding errors.

    The second value is NaN where the first is or was infinite.
    """

    parts, dtype = 2, F64

    def kind(self) -> Type:
        """That of the addends."""
        return self.v.type

    def nothing(self) -> Sum:
        """-0, and no error."""
        return [self.v.constant(-0.0), self.v.constant(0.0)]

    def plus(self, total: Sum, addend: Value) -> Sum:
        """Six more operations than a plain addition, none of which the next addition waits for.

        Source: Knuth, The Art of Computer Programming, vol. 2, §4.2.2, theorem B.
        """
        v, (before, lost) = self.v, total
        found = v.add(before, addend)
        added = v.subtract(found, before)
        error = v.add(v.subtract(before, v.subtract(found, added)), v.subtract(addend, added))
        return [found, v.add(lost, error)]

    def times(self, total: Sum, factor: Value) -> Sum:
        """Both parts; what this loses to rounding is not kept."""
        return [self.v.multiply(part, factor) for part in total]

    def rounded(self, total: Sum, count: Value | None = None) -> Value:
        """The sum and its errors; the sum alone where it is infinite or NaN."""
        v, (found, lost) = self.v, total
        known = v.compare("<", v.constant(0.0), v.magnitude(lost))
        whole = v.add(found, v.f.select(known, lost, v.constant(-0.0)))
        return whole if count is None else v.divide(whole, count)

    def lanes(self, total: Sum) -> Value:
        """Rounded, then by halves: their errors would cost as much as a short row."""
        return self.few(self.rounded(total))

    def few(self, total: Value) -> Value:
        """By halves."""
        return halved(self.v, total)


class ShortSums(LongSums):
    """Sums of few addends, in their own type."""

    parts = 1

    def __init__(self, v: Floats) -> None:
        super().__init__(v)
        self.dtype = v.dtype

    def kind(self) -> Type:
        """That of the addends."""
        return self.v.type

    def nothing(self) -> Sum:
        """-0."""
        return [self.v.constant(-0.0)]

    def plus(self, total: Sum, addend: Value) -> Sum:
        """One addition."""
        return [self.v.add(total[0], addend)]

    def times(self, total: Sum, factor: Value) -> Sum:
        """One rounding."""
        return [self.v.multiply(total[0], factor)]

    def rounded(self, total: Sum, count: Value | None = None) -> Value:
        """The sum, or the quotient."""
        return total[0] if count is None else self.v.divide(total[0], count)

    def lanes(self, total: Sum) -> Value:
        """By halves."""
        return halved(self.v, total[0])


def long_sums(v: Floats) -> LongSums:
    """The kind of long sum for an element type: f32 is summed in f64, which is cheaper than error terms."""
    return WideSums(v) if v.dtype == F32 else CompensatedSums(v)


def tree_sum(f: Function, count: int, addend: Callable[[int], Value], first: int = 0) -> Value:
    """The sum of a power of two of addends by halves: exact where all are equal.

    Each addend is written just before it is added, so that few registers hold partial sums.
    """
    if count == 1:
        return addend(first)
    half = count // 2
    left = tree_sum(f, half, addend, first)
    return f.plus(left, tree_sum(f, half, addend, first + half))


def _rotated(f: Function, x: Value, places: int) -> Value:
    """A vector whose lanes move by so many places."""
    lanes = x.type.lanes
    assert lanes
    return f.shuffle(x, x, [(lane + places) % lanes for lane in range(lanes)])


def halved(v: Floats, x: Value) -> Value:
    """The sum of all lanes, by halves."""
    half = x.type.lanes or 1
    while half > 1:
        half //= 2
        x = v.add(x, _rotated(v.f, x, half))
    return v.f.extract(x, 0)
