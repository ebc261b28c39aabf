"""Conversions between element types, in registers: exact where they widen, one rounding where they narrow.

Floats of 16 bits and fewer are their bits (`memory_type`), and columns of `DType` say how these are divided.
Nothing here calls a library: targets without the instructions compute on integers.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.errors import UnsupportedDtype
from tilewright.llvm.build import Function
from tilewright.llvm.values import (
    INT8,
    INT16,
    INT32,
    Type,
    Value,
    element_type,
    every_lane,
    memory_type,
    truth_of,
    vector_of,
    zero,
)
from tilewright.spec.dtype import F16, F32, DType, Kind

_FLOAT = element_type(F32)

#: Lanes that the narrowest conversion of x86 reads (VCVTPH2PS, VCVTPS2PH).
_LEAST_HALVES = 4


def _like(element: Type, value: Value) -> Type:
    """An element type as a scalar or vector of as many lanes as a value."""
    return vector_of(element, value.type.lanes) if value.type.lanes else element


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
        even; NaN stays NaN. Narrowed integers wrap around. Elements that share a byte come from vectors of as
        many times the lanes.
        """
        f = self.f
        if to.held > source.held:
            return self._in_pairs(value)
        if source == to:
            return self._low_half(value, source) if source.is_nibble else value
        if source.kind is Kind.FLOAT:
            return self._floats(value, source, to)
        if source.is_nibble:
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
            return self.f.and_(value, every_lane(value, 15))
        raised = self.f.shl(value, every_lane(value, 4))
        return self.f.ashr(raised, every_lane(raised, 4))

    def _in_pairs(self, value: Value) -> Value:
        """The low halves of adjacent bytes in one byte, the first one below.

        Shifted by four bits, the half of the second byte is in its place; what is above is dropped.
        """
        f, lanes = self.f, value.type.lanes // 2
        pairs = f.bitcast(value, vector_of(INT16, lanes))
        moved = f.emit(pairs.type, f"lshr {pairs.typed}, {every_lane(pairs, 4).text}")
        both = f.or_(f.and_(pairs, every_lane(pairs, 0x0F)), f.and_(moved, every_lane(pairs, ~0x0F)))
        return f.trunc(both, vector_of(INT8, lanes))

    def _floats(self, value: Value, source: DType, to: DType) -> Value:
        f = self.f
        if source.is_narrow_float:
            value, source = self._widened(value, source), F32
        if source == to:
            return value
        if to.bits >= 32:
            kind = _like(element_type(to), value)
            word = "fpext" if to.bits > source.bits else "fptrunc"
            return f.emit(kind, f"{word} {value.typed} to {kind.text}")
        if source.bits > F32.bits:
            value = self._to_odd(value)
        return self._narrowed(value, to)

    def _widened(self, value: Value, source: DType) -> Value:
        """The bits of narrow floats as float32, exactly."""
        if _is_upper_part(source):
            return self._from_upper_part(value, source)
        if self.half and _is_upper_part(source, F16):
            return self._from_halves(self._shifted_up(value, source, F16))
        return self._from_fields(value, source)

    def _narrowed(self, value: Value, to: DType) -> Value:
        """float32 as the bits of narrow floats, rounded to nearest, ties to even."""
        if _is_upper_part(to):
            return self._to_upper_half(value, to)
        return self._to_halves(value) if to == F16 and self.half else self._to_fields(value, to)

    def _shifted_up(self, value: Value, source: DType, to: DType) -> Value:
        """The bits of a type with the exponent of a wider one as bits of that one."""
        if source == to:
            return value
        wide = self.f.zext(value, _like(memory_type(to), value))
        return self.f.shl(wide, every_lane(wide, to.bits - source.bits))

    def _to_odd(self, value: Value) -> Value:
        """float64 to float32, to the odd one of two neighbours where it is neither.

        Rounded so, a second rounding to half the bits gives what one rounding from float64 would (Boldo
        and Melquiond, IEEE Trans. Computers 57(4), 2008).
        """
        f, floats, words = self.f, _like(_FLOAT, value), _like(INT32, value)
        near = f.emit(floats, f"fptrunc {value.typed} to {floats.text}")
        back = f.emit(value.type, f"fpext {near.typed} to {value.type.text}")
        truth = truth_of(value.type)
        inexact = f.emit(truth, f"fcmp one {back.typed}, {value.text}")  # false for NaN
        bits = f.bitcast(near, words)
        even = f.icmp("==", f.and_(bits, every_lane(bits, 1)), every_lane(bits, 0))
        # Bits of both signs grow with the magnitude: one more where the neighbour was rounded towards zero.
        positive = f.icmp(">=", bits, every_lane(bits, 0))
        above = f.emit(truth, f"fcmp ogt {value.typed}, {back.text}")
        below = f.emit(truth, f"fcmp olt {value.typed}, {back.text}")
        outwards = f.select(positive, above, below)
        step = f.select(outwards, every_lane(bits, 1), every_lane(bits, -1))
        odd = f.select(f.and_(inexact, even), f.add(bits, step), bits)
        return f.bitcast(odd, floats)

    # --- the upper part of a float32: bfloat16 ---------------------------------------------------

    def _from_upper_part(self, value: Value, source: DType) -> Value:
        f, words = self.f, _like(INT32, value)
        wide = f.emit(words, f"zext {value.typed} to {words.text}")
        return f.bitcast(f.shl(wide, every_lane(wide, F32.bits - source.bits)), _like(_FLOAT, value))

    def _to_upper_half(self, value: Value, to: DType) -> Value:
        """VCVTNEPS2BF16 would flush subnormals, so the rounding is integer arithmetic everywhere.

        Half of the last place less one is added, and one more where that place is odd. A NaN would round
        up to infinity: its upper part is kept, made quiet.
        """
        f, dropped = self.f, F32.bits - to.bits
        bits = f.bitcast(value, _like(INT32, value))
        upper = f.emit(bits.type, f"lshr {bits.typed}, {every_lane(bits, dropped).text}")
        odd = f.and_(upper, every_lane(bits, 1))
        rounded = f.add(f.add(bits, every_lane(bits, (1 << dropped - 1) - 1)), odd)
        rounded = f.emit(bits.type, f"lshr {rounded.typed}, {every_lane(bits, dropped).text}")
        quiet = f.or_(upper, every_lane(bits, 1 << to.significand - 2))
        nan = f.emit(truth_of(value.type), f"fcmp uno {value.typed}, {value.text}")
        return f.trunc(f.select(nan, quiet, rounded), _like(memory_type(to), value))

    # --- float16 by instructions -----------------------------------------------------------------

    def _from_halves(self, value: Value) -> Value:
        if value.type.lanes < _LEAST_HALVES:
            return self._few(value, self._from_halves)
        f, floats = self.f, _like(_FLOAT, value)
        halves = f.bitcast(value, _like(element_type(F16), value))
        return f.emit(floats, f"fpext {halves.typed} to {floats.text}")

    def _to_halves(self, value: Value) -> Value:
        if value.type.lanes < _LEAST_HALVES:
            return self._few(value, self._to_halves)
        f, kind = self.f, _like(element_type(F16), value)
        return f.bitcast(
            f.emit(kind, f"fptrunc {value.typed} to {kind.text}"), _like(memory_type(F16), value)
        )

    def _few(self, value: Value, convert: Callable[[Value], Value]) -> Value:
        """A scalar or a few lanes beside zeros: what an instruction finds in the others would raise flags."""
        f, lanes = self.f, value.type.lanes
        vector = value if lanes else f.splat(value, 1)
        places = [min(lane, max(lanes, 1)) for lane in range(_LEAST_HALVES)]
        whole = convert(f.shuffle(vector, zero(vector.type), places))
        return f.shuffle(whole, whole, range(lanes)) if lanes else f.extract(whole, 0)

    # --- any floats with a shorter exponent, by their fields ------------------------------------

    def _from_fields(self, value: Value, source: DType) -> Value:
        f, floats = self.f, _like(_FLOAT, value)
        special, sign_bit = _first_special(source), 1 << source.bits - 1
        moved = F32.significand - source.significand
        # The bits below the sign, moved to float32's place, are too small by a power of two, the difference
        # of the exponents' biases; multiplying by it is exact, subnormals included. Infinities and NaNs are
        # the largest of these bits, and get float32's largest exponent.
        wide = f.emit(_like(INT32, value), f"zext {value.typed} to {_like(INT32, value).text}")
        sign = f.shl(f.and_(wide, every_lane(wide, sign_bit)), every_lane(wide, F32.bits - source.bits))
        shifted = f.shl(f.and_(wide, every_lane(wide, sign_bit - 1)), every_lane(wide, moved))
        scaled = f.times(f.bitcast(shifted, floats), _float(value, (2 * F32.bias - source.bias) << 23))
        bits = f.bitcast(scaled, wide.type)
        beyond = f.icmp(">=", shifted, every_lane(wide, special << moved))
        bits = f.select(beyond, f.or_(shifted, every_lane(wide, 0xFF << 23)), bits)
        return f.bitcast(f.or_(bits, sign), floats)

    def _to_fields(self, value: Value, to: DType) -> Value:
        f, special, dropped = self.f, _first_special(to), F32.significand - to.significand
        # Adding a power of two whose last place is the last place of the narrow result rounds to it, in the
        # FPU's rounding mode: 2^dropped times the value's own power, at least that of the smallest normal.
        bits = f.bitcast(value, _like(INT32, value))
        above = every_lane(bits, F32.bits - to.bits)
        sign = f.and_(
            f.emit(bits.type, f"lshr {bits.typed}, {above.text}"), every_lane(bits, 1 << to.bits - 1)
        )
        magnitude = f.and_(bits, every_lane(bits, 0x7FFFFFFF))
        # Above the largest number everything becomes the same: the first value without a pattern of its own,
        # whose pattern is that of infinity, or of NaN where there is no infinity.
        largest = every_lane(bits, (F32.bias - to.bias << 23) + (special << dropped))
        clamped = f.select(f.icmp("<", magnitude, largest), magnitude, largest)
        exponent = f.and_(clamped, every_lane(bits, 0x7F800000))
        smallest = every_lane(bits, (F32.bias + 1 - to.bias) << 23)
        exponent = f.select(f.icmp(">", exponent, smallest), exponent, smallest)
        magic = f.add(exponent, every_lane(bits, dropped << 23))
        floats = value.type
        total = f.plus(f.bitcast(clamped, floats), f.bitcast(magic, floats))
        # The sum's last bits are the significand, its leading bit included, which carries into the exponent.
        significand = f.sub(f.bitcast(total, bits.type), magic)
        places = f.sub(exponent, smallest)
        places = f.emit(bits.type, f"lshr {places.typed}, {every_lane(bits, dropped).text}")
        result = f.add(significand, places)
        nan = f.icmp(">", magnitude, every_lane(bits, 0x7F800000))
        payload = f.emit(bits.type, f"lshr {magnitude.typed}, {every_lane(bits, dropped).text}")
        fraction = 1 << to.significand - 1
        quiet = (1 << to.bits - 1) - (fraction >> 1) if to.infinities else special
        payload = f.or_(f.and_(payload, every_lane(bits, fraction - 1)), every_lane(bits, quiet))
        narrow = f.or_(f.select(nan, payload, result), sign)
        return f.trunc(narrow, _like(memory_type(to), value))


def _is_upper_part(dtype: DType, of: DType = F32) -> bool:
    """Whether the bits of a float are the first ones of a wider type: the same exponent, fewer digits.

    >>> from tilewright.spec.dtype import BF16
    >>> _is_upper_part(BF16), _is_upper_part(F16)
    (True, False)
    """
    return dtype.exponent == of.exponent and dtype.infinities


def _first_special(dtype: DType) -> int:
    """The smallest bits, the sign left out, that are no finite number.

    Raises
    ------
    UnsupportedDtype : nothing says how the type's bits are divided.

    >>> hex(_first_special(F16))
    '0x7c00'
    """
    if not dtype.exponent:
        raise UnsupportedDtype(dtype=f"conversion of {dtype}", supported="floats with a known exponent")
    every = (1 << dtype.bits - 1) - 1
    return every + 1 - (1 << dtype.significand - 1) if dtype.infinities else every
