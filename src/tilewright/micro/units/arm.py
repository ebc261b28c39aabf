"""Arm's dot products and 2×2 matrix products on 128-bit vectors (Neon).

Sources: Arm ARM DDI 0487, §C7.2: SDOT, UDOT, USDOT, SUDOT, BFDOT, FMLAL (vector and by element), SMMLA,
UMMLA, USMMLA, BFMMLA; FEAT_DotProd, FEAT_I8MM, FEAT_BF16, FEAT_FHM.

Integer sums wrap around modulo 2^32. BFDOT and BFMMLA (FPCR.EBF = 0, the only mode of cores without
FEAT_EBF16) round the sum of two products, and then its sum with the accumulator, to odd; they take
subnormal numbers for zero, flush subnormal results, give the default NaN, and raise no flags (DDI 0487,
shared pseudocode BFDotAdd). A rounding to odd errs by less than one unit in the last place, twice what a
rounding to nearest does, but happens k + 1 times rather than 2k + 1 for 2k depths: the bound
(k + 2)·2^-24 for k depths holds.
"""
# ruff: noqa: ARG002, D102
# (`Multiply` documents the methods; not every instruction needs every argument.)

from __future__ import annotations

from collections.abc import Sequence

from tilewright.llvm.build import Function
from tilewright.llvm.values import POINTER, Type, Value, element_type, poison, vector_of, zero
from tilewright.micro.units.multiply import Multiply, VectorMultiply
from tilewright.spec.dtype import BF16, DType, Kind

_REGISTER_BITS = 128


class ArmDot(VectorMultiply):
    """Dot products of kr depths, or (FMLAL) products of float16, summed in lanes of 32 bits.

    =========== ======= === == === =====================================================================
    instruction a × b   acc n  kr  the register of B
    =========== ======= === == === =====================================================================
    sdot        i8      i32 4  4   four columns of 4 depths
    udot        u8      i32 4  4   four columns of 4 depths
    usdot       u8, i8  i32 4  4   the same, of unequal signs; where B is the signed one it is sudot
    bfdot       bf16    f32 4  2   four columns of 2 depths
    fmlal       f16     f32 4  1   four columns, in the lower half; exact products, one rounding to f32
    =========== ======= === == === =====================================================================

    The operand of A is a lane of a register where `load_lanes` has loaded several rows: each of these
    instructions takes it "by element" (``sdot v0.4s, v1.16b, v2.4b[1]``). For bfdot four rows or eight are
    loaded at a time, and the one to three rows behind them cost one dup each.

    FMLAL2 is FMLAL on the upper half of both registers, which by-element operands do not have; so four
    columns are loaded as 64 bits, and FMLAL does all of them.

    Examples
    --------
    >>> unit = ArmDot(NEON, TileFma("sdot", I8, I8, I32, m=1, n=4, k=4, kr=4))  # doctest: +SKIP
    >>> rows, b = unit.load_lanes(f, panel_a, 8), unit.load_b(f, panel_b, 0)  # doctest: +SKIP
    >>> sums = [unit.multiply(f, a, b, acc) for a, acc in zip(rows, sums)]  # doctest: +SKIP
    """

    @property
    def word(self) -> Type:
        """The k depths of one lane: an element, or an integer that holds several."""
        return super().word if self.tile.kr > 1 else element_type(self.tile.a)

    @property
    def _per_lane(self) -> int:
        """Words of an operand to one lane of the accumulator: FMLAL names whole registers, and reads half."""
        return 1 if self.tile.kr > 1 else 2

    def load_a(self, f: Function, pointer: Value, down: int) -> Value:
        (only,) = self.load_lanes(f, pointer, 1)
        return only

    def load_lanes(self, f: Function, pointer: Value, down: int) -> list[Value]:
        """The operands of A of `down` rows, adjacent in a panel: lanes of as few registers as hold them.

        before: load word 0, splat; load word 1, splat; ...
        after:  load words 0..3; lane 0, lane 1, ...
        """
        word_bytes = self.tile.a.size * self.tile.kr
        spread = self._per_lane * self.tile.n
        operands: list[Value] = []
        while len(operands) < down:
            place = f.at(pointer, len(operands) * word_bytes)
            for words in self._load_words(f, place, down - len(operands)):
                operands.extend(f.shuffle(words, words, [lane] * spread) for lane in range(words.type.lanes))
        return operands

    def narrowed(self, f: Function, a: Value, width: int) -> Value:
        return a  # `multiply` cuts it where a lane of the register stays one

    def first(self, f: Function, a: Value, b: Value) -> Value:
        return self.multiply(f, a, b, zero(vector_of(element_type(self.tile.acc), b.type.lanes)))

    def _load_words(self, f: Function, pointer: Value, most: int) -> list[Value]:
        """A register or two of at most so many words."""
        whole = _REGISTER_BITS // (self.tile.a.bits * self.tile.kr)
        if self.tile.a == BF16:
            for count in (whole, whole // 2):
                if most >= 2 * count:
                    return [
                        f.bitcast(each, vector_of(self.word, count))
                        for each in _load_two(f, pointer, 2 * count)
                    ]
        return [f.load(vector_of(self.word, min(most, whole)), pointer, self.tile.a.size)]

    def multiply(self, f: Function, a: Value, b: Value, acc: Value) -> Value:
        width = acc.type.lanes
        if width == 1:  # the narrowest register holds two
            a, b, acc = (f.shuffle(value, value, [0, 0]) for value in (a, b, acc))
            both = self.multiply(f, a, b, acc)
            return f.shuffle(both, both, [0])
        words = self._per_lane * width
        a, b = _first_lanes(f, a, width, words), _first_lanes(f, b, width, words)
        kind = vector_of(element_type(self.tile.a), words * self.tile.kr)
        spread, vector = f.bitcast(a, kind), f.bitcast(b, kind)
        unsigned_first = (self.tile.a.kind, self.tile.b.kind) == (Kind.UNSIGNED, Kind.SIGNED)
        operands = (spread, vector) if unsigned_first else (vector, spread)
        name = f"llvm.aarch64.neon.{self.tile.instruction}.{acc.type.suffix}.{kind.suffix}"
        callee = f.module.declare(name, acc.type, (acc.type, kind, kind))
        return f.call(callee, [acc, *operands])


def _first_lanes(f: Function, vector: Value, width: int, words: int) -> Value:
    """The first `width` lanes in a register of `words`; what is behind them is not read."""
    if vector.type.lanes >= words:
        return vector if vector.type.lanes == words else f.shuffle(vector, vector, range(words))
    first = vector if vector.type.lanes == width else f.shuffle(vector, vector, range(width))
    return f.shuffle(first, poison(first.type), range(words))


def _load_two(f: Function, pointer: Value, lanes: int) -> list[Value]:
    """Two adjacent vectors of bfloat, by LD1 of two registers: an operation that DAG combining lets be.

    LLVM 22 selects BFDOT by element only where the register comes from an operation on bfloat; it turns
    a plain load into one of integers, and copies each lane.
    """
    kind = vector_of(element_type(BF16), lanes)
    both = Type(f"{{ {kind.text}, {kind.text} }}", "")
    callee = f.module.declare(f"llvm.aarch64.neon.ld1x2.{kind.suffix}.p0", both, (POINTER,))
    pair = f.call(callee, [pointer])
    return [f.emit(kind, f"extractvalue {pair.typed}, {number}") for number in range(2)]


class Mmla(Multiply):
    """2×2 products of kr depths: a register of A holds two rows, one of B two columns.

    =========== ======= === ===== ==========================
    instruction a × b   acc m n k each operand
    =========== ======= === ===== ==========================
    smmla       i8      i32 2 2 8 two lanes of 8 depths
    ummla       u8      i32 2 2 8 two lanes of 8 depths
    usmmla      u8, i8  i32 2 2 8 the same, of unequal signs
    bfmmla      bf16    f32 2 2 4 two lanes of 4 depths
    =========== ======= === ===== ==========================

    An accumulator holds the two rows one after the other; where usmmla gets A and B in the other order
    (its first operand is the unsigned one), the two columns.

    Examples
    --------
    >>> unit = Mmla(NEON, TileFma("smmla", I8, I8, I32, m=2, n=2, k=8, kr=8))  # doctest: +SKIP
    >>> a, b = unit.load_a(f, panel_a, 0), unit.load_b(f, panel_b, 0)  # doctest: +SKIP
    >>> acc = unit.multiply(f, a, b, unit.zero(f, 0, 0))  # doctest: +SKIP
    """

    @property
    def _transposed(self) -> bool:
        return (self.tile.a.kind, self.tile.b.kind) == (Kind.SIGNED, Kind.UNSIGNED)

    def zero(self, f: Function, down: int, across: int) -> Value:
        return zero(vector_of(element_type(self.tile.acc), self.tile.m * self.tile.n))

    def load_a(self, f: Function, pointer: Value, down: int) -> Value:
        return self._load(f, pointer, self.tile.a)

    def load_b(self, f: Function, pointer: Value, across: int) -> Value:
        return self._load(f, pointer, self.tile.b)

    def _load(self, f: Function, pointer: Value, dtype: DType) -> Value:
        return f.load(vector_of(element_type(dtype), _REGISTER_BITS // dtype.bits), pointer, dtype.size)

    def multiply(self, f: Function, a: Value, b: Value, acc: Value) -> Value:
        first, second = (b, a) if self._transposed else (a, b)
        # The operands' types are part of the names of those that have several.
        types = f".{acc.type.suffix}.{a.type.suffix}" if self.tile.a.is_integer else ""
        name = f"llvm.aarch64.neon.{self.tile.instruction}{types}"
        callee = f.module.declare(name, acc.type, (acc.type, a.type, b.type))
        return f.call(callee, [acc, first, second])

    def rows(self, f: Function, accs: Sequence[Value]) -> list[list[Value]]:
        """Two rows of vectors of four columns; of two at the end if the number of accumulators is odd."""
        lanes = ((0, 2), (1, 3)) if self._transposed else ((0, 1), (2, 3))
        found: list[list[Value]] = []
        for left, right in lanes:
            row = [
                f.shuffle(one, other, [left, right, 4 + left, 4 + right])
                for one, other in zip(accs[::2], accs[1::2], strict=False)
            ]
            row.extend(f.shuffle(accs[-1], accs[-1], [left, right]) for _ in range(len(accs) % 2))
            found.append(row)
        return found
