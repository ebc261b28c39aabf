"""Arm's scalable vectors (SVE) at one length: products, dot products and 2×2 products.

The length of a vector is a property of the machine, and every function says it: ``vscale_range(n,n)``, n
being its number of 128 bits. Then LLVM keeps vectors of that many bits, of a fixed number of lanes, in
whole registers (Z), and the masks of edges in predicates. What fixed vectors have no operation for is an
intrinsic on scalable ones, between a `vector.insert` and a `vector.extract` that cost nothing.

Sources: Arm ARM DDI 0487, §C8.2: FMLA, LD1RW, LD1RQB, SDOT, UDOT, USDOT, BFDOT, FMLALB, FMLALT, SMMLA, UMMLA,
USMMLA, BFMMLA, UZP1, UZP2; FEAT_SVE, FEAT_SVE2, FEAT_I8MM, FEAT_BF16. `arm` says how the instructions on
bfloat round. LLVM Language Reference, vscale_range, llvm.vector.insert and llvm.vector.extract.
"""
# ruff: noqa: ARG002, D102
# (`Multiply` documents the methods; not every instruction needs every argument.)

from __future__ import annotations

from collections.abc import Sequence

from tilewright.llvm.build import Function
from tilewright.llvm.values import (
    INT32,
    INT64,
    POINTER,
    Type,
    Value,
    element_of,
    element_type,
    int32,
    int64,
    poison,
    vector_of,
    zero,
)
from tilewright.machine.arch import GRANULE_BITS
from tilewright.micro.units.multiply import Multiply, VectorMultiply
from tilewright.spec.dtype import Kind

#: The pattern of PTRUE that selects all lanes (DDI 0487, PTRUE).
_ALL = int32(31)


def scalable_of(element: Type) -> Type:
    """A whole register of elements.

    >>> scalable_of(INT32).text
    '<vscale x 4 x i32>'
    """
    lanes = GRANULE_BITS // _bits(element)
    return Type(f"<vscale x {lanes} x {element.text}>", f"nxv{lanes}{element.suffix}", lanes)


def _bits(element: Type) -> int:
    return int(element.suffix.lstrip("bfi"))


def mask_of(register: Type) -> Type:
    """A bit for each lane of a register."""
    return Type(f"<vscale x {register.lanes} x i1>", f"nxv{register.lanes}i1", register.lanes)


def every_lane(f: Function, register: Type) -> Value:
    """The mask of all lanes of a register."""
    mask = mask_of(register)
    return f.call(f.module.declare(f"llvm.aarch64.sve.ptrue.{mask.suffix}", mask, (INT32,)), [_ALL])


def to_scalable(f: Function, vector: Value) -> Value:
    """A vector of fixed length in the lower lanes of a register."""
    element = element_of(vector.type)
    least = GRANULE_BITS // _bits(element)
    if vector.type.lanes < least:
        vector = f.shuffle(
            vector, poison(vector.type), [*range(vector.type.lanes)] + [0] * (least - vector.type.lanes)
        )
    kind = scalable_of(element)
    name = f"llvm.vector.insert.{kind.suffix}.{vector.type.suffix}"
    callee = f.module.declare(name, kind, (kind, vector.type, INT64))
    return f.call(callee, [poison(kind), vector, int64(0)])


def to_fixed(f: Function, register: Value, kind: Type) -> Value:
    """The lower lanes of a register as a vector of fixed length."""
    element = element_of(kind)
    least = max(kind.lanes, GRANULE_BITS // _bits(element))
    whole = vector_of(element, least)
    name = f"llvm.vector.extract.{whole.suffix}.{register.type.suffix}"
    vector = f.call(f.module.declare(name, whole, (register.type, INT64)), [register, int64(0)])
    return vector if whole == kind else f.shuffle(vector, vector, range(kind.lanes))


class SveMultiplyAdd(VectorMultiply):
    """acc + a · b on vectors of floats: FMLA.

    Elements of A are loaded as integers: LLVM 22 uses no replicating load of floats (LD1RW) when it tunes
    for the Neoverse V1 ("no-sve-fp-ld1r"), and a load with a copy instead takes a vector pipe.

    Examples
    --------
    >>> unit = SveMultiplyAdd(SVE256, SVE256.tile(F32))  # doctest: +SKIP
    >>> acc = unit.multiply(f, unit.load_a(f, a, 0), unit.load_b(f, b, 0), acc)  # doctest: +SKIP
    """

    @property
    def word(self) -> Type:
        """An integer of the element's size."""
        bits = self.tile.a.bits
        return Type(f"i{bits}", f"i{bits}")

    def multiply(self, f: Function, a: Value, b: Value, acc: Value) -> Value:
        a = _first_lanes(f, a, acc.type.lanes)
        return f.multiply_add(f.bitcast(a, acc.type), f.bitcast(b, acc.type), acc, fused=True)

    def first(self, f: Function, a: Value, b: Value) -> Value:
        kind = vector_of(element_type(self.tile.acc), b.type.lanes)
        return f.times(f.bitcast(_first_lanes(f, a, kind.lanes), kind), f.bitcast(b, kind))


class SveDot(VectorMultiply):
    """Dot products of kr depths in lanes of 32 bits; n = vector_bits / 32.

    =========== ======= === == ====================================================================
    instruction a × b   acc kr
    =========== ======= === == ====================================================================
    sdot        i8      i32 4
    udot        u8      i32 4
    usdot       u8, i8  i32 4  of unequal signs, either way
    bfdot       bf16    f32 2
    fmlalb      f16     f32 2  and fmlalt: the first depth, then the second; each rounds once (SVE2)
    =========== ======= === == ====================================================================

    Examples
    --------
    >>> tile = TileFma("sdot", I8, I8, I32, m=1, n=8, k=4, kr=4)  # doctest: +SKIP
    >>> unit = SveDot(SVE256, tile)  # doctest: +SKIP
    """

    def first(self, f: Function, a: Value, b: Value) -> Value:
        return self.multiply(f, a, b, zero(vector_of(element_type(self.tile.acc), b.type.lanes)))

    def multiply(self, f: Function, a: Value, b: Value, acc: Value) -> Value:
        a = _first_lanes(f, a, acc.type.lanes)
        register = scalable_of(element_type(self.tile.a))
        left, right = (f.bitcast(to_scalable(f, words), register) for words in (a, b))
        if (self.tile.a.kind, self.tile.b.kind) == (Kind.SIGNED, Kind.UNSIGNED):
            left, right = right, left
        total = to_scalable(f, acc)
        for name in _in_order(self.tile.instruction):
            total = _three(f, name, total, left, right)
        return to_fixed(f, total, acc.type)


def _first_lanes(f: Function, vector: Value, width: int) -> Value:
    return vector if vector.type.lanes == width else f.shuffle(vector, vector, range(width))


def _in_order(instruction: str) -> tuple[str, ...]:
    return ("fmlalb", "fmlalt") if instruction == "fmlalb" else (instruction,)


def _three(f: Function, name: str, total: Value, left: Value, right: Value) -> Value:
    """An intrinsic on an accumulator and two operands; those of bfloat have one form and no suffix."""
    suffix = "" if name.startswith("bf") else f".{total.type.suffix}"
    kinds = (total.type, left.type, right.type)
    return f.call(
        f.module.declare(f"llvm.aarch64.sve.{name}{suffix}", total.type, kinds), [total, left, right]
    )


class SveMmla(Multiply):
    """2×2 products of kr depths in every 128 bits: two rows of A, replicated, times n columns of B.

    =========== ======= === = ================== =
    instruction a × b   acc m n                  k
    =========== ======= === = ================== =
    smmla       i8      i32 2 vector_bits / 64   8
    ummla       u8      i32 2 vector_bits / 64   8
    usmmla      u8, i8  i32 2 vector_bits / 64   8
    bfmmla      bf16    f32 2 vector_bits / 64   4
    =========== ======= === = ================== =

    Every 128 bits of an accumulator hold two columns of the first row, then of the second; where usmmla
    gets A and B in the other order, the two rows of the first column, then of the second.

    Examples
    --------
    >>> tile = TileFma("smmla", I8, I8, I32, m=2, n=4, k=8, kr=8)  # doctest: +SKIP
    >>> unit = SveMmla(SVE256, tile)  # doctest: +SKIP
    """

    @property
    def _transposed(self) -> bool:
        return (self.tile.a.kind, self.tile.b.kind) == (Kind.SIGNED, Kind.UNSIGNED)

    def zero(self, f: Function, down: int, across: int) -> Value:
        return zero(vector_of(element_type(self.tile.acc), self.tile.m * self.tile.n))

    def load_a(self, f: Function, pointer: Value, down: int) -> Value:
        kind = scalable_of(element_type(self.tile.a))
        callee = f.module.declare(f"llvm.aarch64.sve.ld1rq.{kind.suffix}", kind, (mask_of(kind), POINTER))
        return f.call(callee, [every_lane(f, kind), pointer])

    def load_b(self, f: Function, pointer: Value, across: int) -> Value:
        # Vectors of bfloat of a fixed length are not among LLVM's types for registers; words are.
        words = vector_of(INT32, self.tile.n * self.tile.k * self.tile.b.bits // _bits(INT32))
        register = scalable_of(element_type(self.tile.b))
        return f.bitcast(to_scalable(f, f.load(words, pointer, self.tile.b.size)), register)

    def multiply(self, f: Function, a: Value, b: Value, acc: Value) -> Value:
        left, right = (b, a) if self._transposed else (a, b)
        return to_fixed(f, _three(f, self.tile.instruction, to_scalable(f, acc), left, right), acc.type)

    def rows(self, f: Function, accs: Sequence[Value]) -> list[list[Value]]:
        """Two rows; a vector of 2n columns for two accumulators, of n for a last one."""
        found: list[list[Value]] = [[], []]
        for place in range(0, len(accs), 2):
            pair = accs[place : place + 2]
            for row, name in zip(found, ("uzp1", "uzp2"), strict=True):
                vector = self._unzipped(f, name, pair[0], pair[-1])
                row.append(vector if len(pair) == 2 else f.shuffle(vector, vector, range(self.tile.n)))
        return found

    def _unzipped(self, f: Function, name: str, one: Value, other: Value) -> Value:
        """Every other element of two accumulators: of 64 bits, or where they are transposed of 32."""
        element = INT32 if self._transposed else INT64
        lanes = one.type.lanes * 32 // _bits(element)
        pair = [to_scalable(f, f.bitcast(each, vector_of(element, lanes))) for each in (one, other)]
        kind = pair[0].type
        callee = f.module.declare(f"llvm.aarch64.sve.{name}.{kind.suffix}", kind, (kind, kind))
        return f.bitcast(to_fixed(f, f.call(callee, pair), vector_of(element, lanes)), one.type)
