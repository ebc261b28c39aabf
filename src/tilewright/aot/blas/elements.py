"""Arithmetic on single elements, real or complex, as machine code."""

from __future__ import annotations

from typing import TypeAlias

from tilewright.aot.blas.types import Job, StridedMatrix
from tilewright.llvm.build import Function
from tilewright.llvm.values import INT1, Type, Value, constant, element_type, int64
from tilewright.spec.dtype import F64, DType, Kind
from tilewright.threads.system_code import FieldAccess

#: An element: one part, or the real and the imaginary one.
Element: TypeAlias = tuple[Value, ...]


class ElementArithmetic:
    """Arithmetic on elements of one type in one function."""

    def __init__(self, f: Function, dtype: DType) -> None:
        self.f, self.dtype = f, dtype
        self.part = element_type(dtype)
        self.parts = 2 if dtype.kind is Kind.COMPLEX else 1
        self.part_bytes = dtype.real.bits // 8
        self.bytes = self.parts * self.part_bytes

    def constant(self, value: float) -> Element:
        """A real number."""
        return (constant(self.dtype, value), constant(self.dtype, 0.0))[: self.parts]

    def load(self, pointer: Value) -> Element:
        """The element at an address, which is aligned to its parts."""
        step = self.part_bytes
        return tuple(
            self.f.load(self.part, self.f.at(pointer, step * number), step) for number in range(self.parts)
        )

    def store(self, element: Element, pointer: Value) -> None:
        """Writes an element."""
        for number, part in enumerate(element):
            self.f.store(part, self.f.at(pointer, self.part_bytes * number), self.part_bytes)

    def place(self, view: StridedMatrix, row: Value, column: Value) -> Value:
        """The address of an element of a matrix."""
        return view.part(self.f, row, column, self.bytes).pointer

    def read(self, view: StridedMatrix, row: Value, column: Value) -> Element:
        """An element of a matrix, conjugated if the matrix is."""
        return self.conjugate(self.load(self.place(view, row, column)), self.sign(view.conjugated))

    def sign(self, conjugated: Value) -> Value:
        """-1 where a flag is 1, else 1: the factor of imaginary parts."""
        flag = self.f.icmp("!=", conjugated, 0)
        return self.f.select(flag, constant(self.dtype, -1.0), constant(self.dtype, 1.0))

    def conjugate(self, element: Element, sign: Value) -> Element:
        """The element with its imaginary part multiplied by a sign."""
        return (element[0], *(self.f.times(part, sign) for part in element[1:]))

    def plus(self, left: Element, right: Element) -> Element:
        """left + right."""
        return tuple(self.f.plus(a, b) for a, b in zip(left, right, strict=True))

    def minus(self, left: Element, right: Element) -> Element:
        """left - right."""
        return tuple(self.f.minus(a, b) for a, b in zip(left, right, strict=True))

    def times(self, left: Element, right: Element) -> Element:
        """left * right, rounded as the formula for complex numbers is written."""
        f = self.f
        if self.parts == 1:
            return (f.times(left[0], right[0]),)
        (a, b), (c, d) = left, right
        return f.minus(f.times(a, c), f.times(b, d)), f.plus(f.times(a, d), f.times(b, c))

    def divide(self, left: Element, right: Element) -> Element:
        """left / right; complex numbers by Smith's method, which overflows only where the result is near it.

        Source: Smith, Algorithm 116: Complex division, Commun. ACM 5(8), 1962.
        """
        if self.parts == 1:
            return (self._over(left[0], right[0]),)
        f, (a, b), (c, d) = self.f, left, right
        real_larger = self._at_least(self._magnitude(c), self._magnitude(d))
        large, small = f.select(real_larger, c, d), f.select(real_larger, d, c)
        ratio = self._over(small, large)
        scale = f.plus(large, f.times(small, ratio))
        first = f.select(real_larger, f.plus(a, f.times(b, ratio)), f.plus(f.times(a, ratio), b))
        second = f.select(real_larger, f.minus(b, f.times(a, ratio)), f.minus(f.times(b, ratio), a))
        return self._over(first, scale), self._over(second, scale)

    def _over(self, left: Value, right: Value) -> Value:
        return self.f.emit(left.type, f"fdiv {left.typed}, {right.text}")

    def _magnitude(self, part: Value) -> Value:
        intrinsic = self.f.module.declare(f"llvm.fabs.{self.part.suffix}", self.part, (self.part,))
        return self.f.call(intrinsic, [part])

    def _at_least(self, left: Value, right: Value) -> Value:
        return self.f.emit(INT1, f"fcmp oge {left.typed}, {right.text}")

    def equals(self, element: Element, value: float) -> Value:
        """Whether an element is a real number."""
        f, found = self.f, Value(INT1, "true")
        for part, wanted in zip(element, self.constant(value), strict=True):
            found = f.and_(found, f.emit(INT1, f"fcmp oeq {part.typed}, {wanted.text}"))
        return found

    def is_real(self, element: Element) -> Value:
        """Whether the imaginary part is 0."""
        if self.parts == 1:
            return Value(INT1, "true")
        return self.equals((constant(self.dtype, 0.0), element[1]), 0.0)

    def select(self, condition: Value, then: Element, otherwise: Element) -> Element:
        """One element or the other."""
        return tuple(self.f.select(condition, a, b) for a, b in zip(then, otherwise, strict=True))

    # --- scalars of a job -------------------------------------------------------------------------

    def scalar(self, w: FieldAccess, job: Value, name: str) -> Element:
        """alpha or beta of a job."""
        wide = element_type(F64)
        found = [self.f.load(wide, w.place(job, Job, name, number), 8) for number in range(self.parts)]
        return tuple(self._converted(part, self.part, "fptrunc") for part in found)

    def put_scalar(self, w: FieldAccess, job: Value, name: str, element: Element) -> None:
        """Sets alpha or beta of a job."""
        wide = element_type(F64)
        zero = (constant(F64, 0.0),) * (2 - len(element))
        parts = (*(self._converted(part, wide, "fpext") for part in element), *zero)
        for number, part in enumerate(parts):
            self.f.store(part, w.place(job, Job, name, number), 8)

    def _converted(self, value: Value, kind: Type, word: str) -> Value:
        return value if value.type == kind else self.f.emit(kind, f"{word} {value.typed} to {kind.text}")

    def whole(self, f: Function, flag: Value) -> Value:
        """A condition as 0 or 1."""
        return f.select(flag, int64(1), int64(0))
