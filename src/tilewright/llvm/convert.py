"""Conversions between element types, in registers: exact where they widen, one rounding where they narrow.

Floats of 16 bits are their bits (`memory_type`). Nothing here calls a library: targets without the
instructions compute on integers.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.llvm.build import Function
from tilewright.llvm.values import Type, Value, element_type, memory_type, truth_of, vector_of, zero
from tilewright.spec.dtype import BF16, F16, F32, DType, Kind

_INT32 = Type("i32", "i32")
_INT16 = Type("i16", "i16")
_FLOAT = element_type(F32)

#: Lanes that the narrowest conversion of x86 reads (VCVTPH2PS, VCVTPS2PH).
_LEAST_HALVES = 4


def _like(element: Type, value: Value) -> Type:
    """An element type as a scalar or vector of as many lanes as a value."""
    return vector_of(element, value.type.lanes) if value.type.lanes else element


def _every(value: Value, number: int) -> Value:
    """An integer constant in every lane."""
    kind = value.type
    if not kind.lanes:
        return Value(kind, str(number))
    bits = kind.suffix.rpartition("i")[2]
    return Value(kind, f"splat (i{bits} {number})")


def _float(value: Value, bits: int) -> Value:
    """A float32 constant, given by its bits, in every lane."""
    kind = _like(_FLOAT, value)
    word = f"bitcast (i32 {bits} to float)"
    return Value(kind, f"splat (float {word})" if kind.lanes else word)


class Convert:
    """Conversions written at the current position of a function.

    Parameters
    ----------
    f : the function.
    half : the target has instructions between float16 and float32.
    """

    def __init__(self, f: Function, *, half: bool) -> None:
        self.f, self.half = f, half

    def __call__(self, value: Value, source: DType, to: DType) -> Value:
        """The value as another type of the same kind of number, or an integer as a float that holds it.

        From and to the types of memory. Widening is exact. Narrowed floats are rounded to nearest, ties to
        even; NaN stays NaN. Narrowed integers wrap around.
        """
        f = self.f
        if source == to:
            return self._low_half(value, source) if source.significand == 4 else value
        if source.kind is Kind.FLOAT:
            return self._floats(value, source, to)
        if source.significand == 4:
            value = self._low_half(value, source)
        if to.kind is Kind.FLOAT:
            wide = to if to.bits >= F32.bits else F32
            kind, word = _like(element_type(wide), value), "si" if source.kind is Kind.SIGNED else "ui"
            return self._floats(f.emit(kind, f"{word}tofp {value.typed} to {kind.text}"), wide, to)
        kind = _like(memory_type(to), value)
        if to.bits < source.bits:
            return f.emit(kind, f"trunc {value.typed} to {kind.text}")
        if to.bits == source.bits:
            return value
        word = "sext" if source.kind is Kind.SIGNED else "zext"
        return f.emit(kind, f"{word} {value.typed} to {kind.text}")

    def _low_half(self, value: Value, dtype: DType) -> Value:
        """Integers of four bits: what the other half of the byte holds does not count."""
        if dtype.kind is Kind.UNSIGNED:
            return self.f.and_(value, _every(value, 15))
        raised = self.f.shl(value, _every(value, 4))
        return self.f.ashr(raised, _every(raised, 4))

    def _floats(self, value: Value, source: DType, to: DType) -> Value:
        f = self.f
        if source == BF16:
            value, source = self._from_bf16(value), F32
        elif source == F16:
            value, source = self._from_f16(value), F32
        if source == to:
            return value
        if to.bits >= 32:
            kind = _like(element_type(to), value)
            word = "fpext" if to.bits > source.bits else "fptrunc"
            return f.emit(kind, f"{word} {value.typed} to {kind.text}")
        if source.bits > F32.bits:
            value = self._to_odd(value)
        return self._to_bf16(value) if to == BF16 else self._to_f16(value)

    def _to_odd(self, value: Value) -> Value:
        """float64 to float32, to the odd one of two neighbours where it is neither.

        Rounded so, a second rounding to half the bits gives what one rounding from float64 would (Boldo
        and Melquiond, IEEE Trans. Computers 57(4), 2008).
        """
        f, floats, words = self.f, _like(_FLOAT, value), _like(_INT32, value)
        near = f.emit(floats, f"fptrunc {value.typed} to {floats.text}")
        back = f.emit(value.type, f"fpext {near.typed} to {value.type.text}")
        truth = truth_of(value.type)
        inexact = f.emit(truth, f"fcmp one {back.typed}, {value.text}")  # false for NaN
        bits = f.bitcast(near, words)
        even = f.icmp("==", f.and_(bits, _every(bits, 1)), _every(bits, 0))
        # Bits of both signs grow with the magnitude: one more where the neighbour was rounded towards zero.
        positive = f.icmp(">=", bits, _every(bits, 0))
        above = f.emit(truth, f"fcmp ogt {value.typed}, {back.text}")
        below = f.emit(truth, f"fcmp olt {value.typed}, {back.text}")
        outwards = f.select(positive, above, below)
        step = f.select(outwards, _every(bits, 1), _every(bits, -1))
        odd = f.select(f.and_(inexact, even), f.add(bits, step), bits)
        return f.bitcast(odd, floats)

    # --- bfloat16: the upper half of a float32 ---------------------------------------------------

    def _from_bf16(self, value: Value) -> Value:
        f, words = self.f, _like(_INT32, value)
        wide = f.emit(words, f"zext {value.typed} to {words.text}")
        return f.bitcast(f.shl(wide, _every(wide, 16)), _like(_FLOAT, value))

    def _to_bf16(self, value: Value) -> Value:
        """VCVTNEPS2BF16 would flush subnormals, so the rounding is integer arithmetic everywhere.

        Half of the last place less one is added, and one more where that place is odd. A NaN would round
        up to infinity: its upper half is kept, made quiet.
        """
        f = self.f
        bits = f.bitcast(value, _like(_INT32, value))
        upper = f.emit(bits.type, f"lshr {bits.typed}, {_every(bits, 16).text}")
        odd = f.and_(upper, _every(bits, 1))
        rounded = f.add(f.add(bits, _every(bits, 0x7FFF)), odd)
        rounded = f.emit(bits.type, f"lshr {rounded.typed}, {_every(bits, 16).text}")
        quiet = f.or_(upper, _every(bits, 0x40))
        nan = f.emit(truth_of(value.type), f"fcmp uno {value.typed}, {value.text}")
        return f.trunc(f.select(nan, quiet, rounded), _like(_INT16, value))

    # --- float16 ---------------------------------------------------------------------------------

    def _from_f16(self, value: Value) -> Value:
        f, floats = self.f, _like(_FLOAT, value)
        if self.half and value.type.lanes < _LEAST_HALVES:
            return self._few(value, self._from_f16)
        if self.half:
            halves = f.bitcast(value, _like(element_type(F16), value))
            return f.emit(floats, f"fpext {halves.typed} to {floats.text}")
        # The 15 bits below the sign, moved to float32's place, are too small by 2^112, the difference of
        # the exponents' biases; multiplying by it is exact, subnormals included. Infinities and NaNs,
        # which then stand at 2^16 and above, get float32's largest exponent.
        wide = f.emit(_like(_INT32, value), f"zext {value.typed} to {_like(_INT32, value).text}")
        sign = f.shl(f.and_(wide, _every(wide, 0x8000)), _every(wide, 16))
        shifted = f.shl(f.and_(wide, _every(wide, 0x7FFF)), _every(wide, 13))
        scaled = f.times(f.bitcast(shifted, floats), _float(value, (127 + 112) << 23))
        bits = f.bitcast(scaled, wide.type)
        special = f.icmp(">=", shifted, _every(wide, 0x7C00 << 13))
        bits = f.select(special, f.or_(shifted, _every(wide, 0xFF << 23)), bits)
        return f.bitcast(f.or_(bits, sign), floats)

    def _few(self, value: Value, convert: Callable[[Value], Value]) -> Value:
        """A scalar or a few lanes beside zeros: what an instruction finds in the others would raise flags."""
        f, lanes = self.f, value.type.lanes
        vector = value if lanes else f.splat(value, 1)
        places = [min(lane, max(lanes, 1)) for lane in range(_LEAST_HALVES)]
        whole = convert(f.shuffle(vector, zero(vector.type), places))
        return f.shuffle(whole, whole, range(lanes)) if lanes else f.extract(whole, 0)

    def _to_f16(self, value: Value) -> Value:
        f = self.f
        shorts = _like(_INT16, value)
        if self.half and value.type.lanes < _LEAST_HALVES:
            return self._few(value, self._to_f16)
        if self.half:
            kind = _like(element_type(F16), value)
            return f.bitcast(f.emit(kind, f"fptrunc {value.typed} to {kind.text}"), shorts)
        # Adding a power of two whose last place is the last place of the float16 result rounds to it, in
        # the FPU's rounding mode: 2^13 times the value's own power, at least that of the smallest normal.
        bits = f.bitcast(value, _like(_INT32, value))
        sign = f.and_(f.emit(bits.type, f"lshr {bits.typed}, {_every(bits, 16).text}"), _every(bits, 0x8000))
        magnitude = f.and_(bits, _every(bits, 0x7FFFFFFF))
        # Above the largest float16 everything becomes the same: 2^16, which rounds to infinity.
        largest = _every(bits, 0x47800000)
        clamped = f.select(f.icmp("<", magnitude, largest), magnitude, largest)
        exponent = f.and_(clamped, _every(bits, 0x7F800000))
        smallest = _every(bits, (127 - 14) << 23)
        exponent = f.select(f.icmp(">", exponent, smallest), exponent, smallest)
        magic = f.add(exponent, _every(bits, 13 << 23))
        floats = value.type
        total = f.plus(f.bitcast(clamped, floats), f.bitcast(magic, floats))
        # The sum's last bits are the significand, its leading bit included, which carries into the exponent.
        significand = f.sub(f.bitcast(total, bits.type), magic)
        places = f.sub(exponent, smallest)
        places = f.emit(bits.type, f"lshr {places.typed}, {_every(bits, 13).text}")
        result = f.add(significand, places)
        nan = f.icmp(">", magnitude, _every(bits, 0x7F800000))
        payload = f.emit(bits.type, f"lshr {magnitude.typed}, {_every(bits, 13).text}")
        payload = f.or_(f.and_(payload, _every(bits, 0x3FF)), _every(bits, 0x7E00))
        return f.trunc(f.or_(f.select(nan, payload, result), sign), shorts)
