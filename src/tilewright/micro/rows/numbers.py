"""Vectors of real or complex elements: loads, stores, sums and products."""

from __future__ import annotations

from typing import TypeAlias

from tilewright.llvm.build import Function
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import Value, element_type, memory_type, vector_type, zero
from tilewright.machine.isa import Isa
from tilewright.spec.dtype import F32, DType, Kind

#: An element or vector: its value, or its real and its imaginary part.
Number: TypeAlias = list[Value]


class Numbers:
    """Elements of one type, as vectors or one by one; 16-bit floats as 32 bits, complex ones as two parts."""

    def __init__(self, f: Function, isa: Isa, dtype: DType, *, single: bool = False) -> None:
        self.f, self.dtype = f, dtype
        self.fused = isa.fused
        self.part = dtype.real
        narrow = dtype.kind is Kind.FLOAT and dtype.bits < F32.bits
        self.acc = F32 if narrow else self.part
        self.parts = 2 if dtype.kind is Kind.COMPLEX else 1
        self.lanes = 0 if single else isa.lanes(self.acc)
        self._convert = Convert(f, half=isa.half)

    def zeros(self, count: int = 1) -> Number:
        """Zero accumulators, the parts of each one after the other."""
        kind = vector_type(self.acc, self.lanes) if self.lanes else element_type(self.acc)
        if not self.lanes and not self.acc.is_integer:
            return [Value(kind, "0.0")] * (self.parts * count)
        return [zero(kind) if self.lanes else Value(kind, "0")] * (self.parts * count)

    def mask(self, elements: Value) -> Value:
        """The mask of the first elements; of both parts of complex ones, interleaved as in memory."""
        return self.f.lane_mask(self.f.mul(elements, self.parts), 0, self.lanes * self.parts)

    def load(self, pointer: Value, mask: Value | None = None) -> Number:
        """Adjacent elements; zeros in masked lanes."""
        f = self.f
        if not self.lanes:
            return self._element(pointer)
        kind = vector_type(self.part, self.lanes * self.parts)
        if mask is None:
            found = f.load(kind, pointer, self.part.size)
        else:
            found = f.masked_load(kind, pointer, mask, self.part.size)
        if self.parts == 1:
            return [self._convert(found, self.part, self.acc)]
        return [f.shuffle(found, found, range(part, 2 * self.lanes, 2)) for part in range(2)]

    def spread(self, pointer: Value) -> Number:
        """One element in every lane."""
        return [self.f.splat(part, self.lanes) for part in self._element(pointer)]

    def _element(self, pointer: Value) -> Number:
        size = self.part.size
        parts = [
            self.f.load(memory_type(self.part), self.f.at(pointer, part * size), size)
            for part in range(self.parts)
        ]
        return [self._convert(part, self.part, self.acc) for part in parts]

    def store(self, number: Number, pointer: Value, mask: Value | None = None) -> None:
        """Adjacent elements, rounded to their type."""
        f, size = self.f, self.part.size
        parts = [self._convert(part, self.acc, self.part) for part in number]
        if not number[0].type.lanes:
            for place, part in enumerate(parts):
                f.store(part, f.at(pointer, place * size), size)
            return
        if self.parts == 2:
            pairs = [lane + self.lanes * part for lane in range(self.lanes) for part in range(2)]
            real, imaginary = parts
            parts = [f.shuffle(real, imaginary, pairs)]
        if mask is None:
            f.store(parts[0], pointer, size)
        else:
            f.masked_store(parts[0], pointer, mask, size)

    def add(self, left: Number, right: Number) -> Number:
        """left + right."""
        return [self.f.plus(*pair) for pair in zip(left, right, strict=True)]

    def multiply(self, left: Number, right: Number) -> Number:
        """left · right."""
        f = self.f
        if self.parts == 1:
            return [f.times(left[0], right[0])]
        (a, b), (c, d) = left, right
        real = f.minus(f.times(a, c), f.times(b, d))
        return [real, f.plus(f.times(a, d), f.times(b, c))]

    def multiply_add(self, left: Number, right: Number, addend: Number) -> Number:
        """left · right + addend."""
        f = self.f

        def fused(x: Value, y: Value, z: Value) -> Value:
            return f.multiply_add(x, y, z, fused=self.fused)

        if self.parts == 1:
            return [fused(left[0], right[0], addend[0])]
        (a, b), (c, d) = left, right
        minus_b = f.emit(b.type, f"fneg {b.typed}")
        return [fused(minus_b, d, fused(a, c, addend[0])), fused(b, c, fused(a, d, addend[1]))]

    def joined(self, number: Number) -> Number:
        """The sum of all lanes, by halves."""
        f, lanes = self.f, self.lanes
        while lanes > 1:
            lanes //= 2
            rotated = [(lane + lanes) % self.lanes for lane in range(self.lanes)]
            number = self.add(number, [f.shuffle(part, part, rotated) for part in number])
        return [f.extract(part, 0) for part in number]
