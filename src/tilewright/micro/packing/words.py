"""Words of a packed weight in registers: each of their depths as a vector of floats."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.llvm.build import Function
from tilewright.llvm.convert import Convert
from tilewright.llvm.floats import Floats
from tilewright.llvm.values import INT32, Type, Value, element_type, int32, vector_of, vector_type
from tilewright.machine.isa import Isa
from tilewright.spec.dtype import F32
from tilewright.spec.weights import Elements

#: Bits of a float32 below its exponent, and the exponent's bias.
_SIGNIFICAND_BITS = 23
_BIAS = 127


class Words:
    """Vectors of words, one column in each lane, unpacked at the current position of a function.

    An integer of b bits at bit p of a word becomes a float without a conversion: its bits, left where they
    are, under the exponent of 2^(23-p) are the float 2^(23-p) + u, of which 2^(23-p) + z is taken off,
    exactly. So one operation on bits and one subtraction make one vector, in units that do not multiply.

    Parameters
    ----------
    f : the function.
    isa : the row.
    elements : what a word holds.
    lanes : words of one vector.
    """

    def __init__(self, f: Function, isa: Isa, elements: Elements, lanes: int) -> None:
        self.f, self.isa, self.elements, self.lanes = f, isa, elements, lanes
        self.integers, self.kind = vector_of(INT32, lanes), vector_of(element_type(F32), lanes)
        self.floats = Floats(f, F32, self.kind, fused=isa.fused)

    @property
    def in_place(self) -> int:
        """Depths of a word whose bits fit below an exponent without a shift."""
        bits = self.elements.bits
        fitting = (_SIGNIFICAND_BITS // bits) if self.elements.scaled else self.elements.depths
        return 1 << fitting.bit_length() - 1

    def load(self, pointer: Value) -> Value:
        """A vector of words."""
        size = self.elements.word_bytes
        bits = Type(f"i{8 * size}", f"i{8 * size}")
        kind = self.kind if self.elements is Elements.F32 else vector_of(bits, self.lanes)
        return self.f.load(kind, pointer, size)

    def depths(self, words: Value, zero: Value | None) -> Iterator[Value]:
        """The floats of each depth of the words, less a zero point: a vector of them, or the middle.

        Each is emitted when it is requested, so that it is used before the next one needs registers.
        """
        elements, moved = self.elements, words
        for depth in range(elements.depths):
            if not elements.scaled:
                yield self._float(words, depth)
                continue
            place = depth % self.in_place
            if depth and not place:
                moved = self._shifted(words, int32(depth * elements.bits))
            yield self._integer(moved, place * elements.bits, zero)

    def depth(self, words: Value, number: Value, zero: Value | None) -> Value:
        """The floats of one depth, given at run time (a 64-bit integer)."""
        f, elements = self.f, self.elements
        if elements.depths == 1:
            return self._float(words, 0)
        shift = f.trunc(f.mul(number, elements.bits), INT32)
        moved = self._shifted(words, shift)
        return self._integer(moved, 0, zero) if elements.scaled else self._float(moved, 0)

    def _shifted(self, words: Value, bits: Value) -> Value:
        """Words shifted right by some bits."""
        every = self.floats.integer(bits.known) if bits.known is not None else self.f.splat(bits, self.lanes)
        return self.f.emit(words.type, f"lshr {words.typed}, {every.text}")

    def _integer(self, words: Value, place: int, zero: Value | None) -> Value:
        """The unsigned integer at some bit of the words, less the zero point."""
        f, floats, bits = self.f, self.floats, self.elements.bits
        exponent = _SIGNIFICAND_BITS - place
        mask, above = ((1 << bits) - 1) << place, (exponent + _BIAS) << _SIGNIFICAND_BITS
        inside = f.or_(f.and_(words, floats.integer(mask)), floats.integer(above))
        raised = f.bitcast(inside, self.kind)
        if zero is None:
            return floats.subtract(raised, floats.constant(float((1 << exponent) + self.elements.middle)))
        return floats.subtract(floats.subtract(raised, floats.constant(float(1 << exponent))), zero)

    def _float(self, words: Value, depth: int) -> Value:
        """The float at some depth of the words."""
        f, floats, elements = self.f, self.floats, self.elements
        match elements:
            case Elements.F32:
                return words
            case Elements.BF16 if depth == 0:
                return f.bitcast(f.shl(words, floats.integer(16)), self.kind)
            case Elements.BF16:
                return f.bitcast(f.and_(words, floats.integer(-1 << 16)), self.kind)
            case _:
                moved = self._shifted(words, int32(depth * elements.bits)) if depth else words
                kind = vector_type(elements.dtype, self.lanes)
                bits = moved if elements.depths == 1 else f.trunc(moved, kind)
                return Convert(f, half=self.isa.half)(bits, elements.dtype, F32)

    def pair(self, first: Value, second: Value) -> Value:
        """Two depths, each exact in bfloat16, as words of pairs."""
        f = self.f
        low, high = (f.bitcast(value, self.integers) for value in (first, second))
        return f.or_(self._shifted(low, int32(16)), high)
