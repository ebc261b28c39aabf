"""Arm's matrix unit (SME): outer products of two vectors into tiles of ZA, at one streaming vector length.

ZA is a square of bytes as wide as a streaming vector (SVL). As elements of 32 bits it is four tiles, of 64
bits eight; each is the accumulator of one outer product. A grid of 2 × 2 tiles of 32 bits loads two
vectors of A and two of B for four outer products.

A function that uses the unit is compiled with `ATTRIBUTES`: it enters streaming mode behind its prologue
and leaves it before its epilogue, and saves what this clears (d8 to d15), so that it is called like
any function. In its body LLVM uses no Neon instruction; vectors of a fixed length are those of SVE. It calls
nothing between `begin` and `end`: in a callee ZA would be another one's.

`begin` turns ZA on and `end` turns it off explicitly: LLVM's mechanism ("aarch64_new_za") needs the routine
__arm_tpidr2_save from a run-time library, and LLVM 22 does not save the return address around its call.
Where a caller further up has left its ZA to whoever needs it (TPIDR2_EL0 is not zero), `begin` saves it.

Outer products of float32 and float64 round once. Those of float16 round the sum of two products, which are
exact, then its sum with the accumulator; those of bfloat16 are BFDOT's (`arm` says how it rounds). All give
the default NaN and raise no flags; subnormal numbers count, but for bfloat16 (DDI 0487, "Floating-point
behaviors for instructions that target the SME ZA array"). Sums of integers wrap around.

Sources: Arm ARM DDI 0487 and its SME supplement DDI 0616: SMSTART, SMSTOP, ZERO, FMOPA, BFMOPA, SMOPA,
UMOPA, SUMOPA, USMOPA, MOVA, STR (array vector); Procedure Call Standard for the Arm 64-bit Architecture
(IHI 0055), §"SME" (TPIDR2 block, lazy saving); LLVM, "Support for AArch64 Scalable Matrix Extension in LLVM".
"""
# ruff: noqa: ARG002, D102
# (`Multiply` documents the methods; not every instruction needs every argument.)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from tilewright.llvm.build import Function, vector_length
from tilewright.llvm.values import (
    INT32,
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    element_type,
    int32,
    int64,
    poison,
    vector_of,
)
from tilewright.machine.isa import Isa, TileFma
from tilewright.micro.units.multiply import Multiply
from tilewright.micro.units.sve import every_lane, scalable_of, to_fixed, to_scalable

#: Attributes of every function that uses the unit, besides vscale_range(n,n) for SVL = 128·n bits.
ATTRIBUTES = '"aarch64_pstate_sm_body"'
#: ZERO names tiles of 64 bits, of which a tile of 32 bits is every fourth one.
_DOUBLES = 8
_HALFWORD = Type("i16", "i16")
#: In the TPIDR2 block: the buffer, then how many rows of ZA belong there.
_BUFFER, _ROWS = 0, 8


class Sme(Multiply):
    """An outer product of kr depths, m = SVL / bits of the accumulator.

    =========== =========== ==== =====
    instruction a × b       acc  k, kr
    =========== =========== ==== =====
    fmopa       f32         f32  1
    fmopa       f64         f64  1     (FEAT_SME_F64F64)
    fmopa       f16         f32  2     exact products
    bfmopa      bf16        f32  2
    smopa       i8          i32  4
    umopa       u8          i32  4
    sumopa      i8 × u8     i32  4
    usmopa      u8 × i8     i32  4
    =========== =========== ==== =====

    Examples
    --------
    >>> unit = Sme(SME512, SME512.tile(F32))  # doctest: +SKIP
    >>> unit.begin(f, 2, 2)  # doctest: +SKIP
    >>> acc = unit.zero(f, 0, 1)  # doctest: +SKIP
    >>> unit.multiply(f, unit.load_a(f, a, 0), unit.load_b(f, b, 1), acc)  # doctest: +SKIP
    """

    resident: ClassVar[bool] = True

    def __init__(self, isa: Isa, tile: TileFma) -> None:
        super().__init__(isa, tile)
        self._across = 0

    @property
    def tiles(self) -> int:
        """Number of accumulators in ZA."""
        return self.tile.acc.size

    @property
    def attributes(self) -> str:
        """Attributes of a function in streaming mode.

        It has no unwind table: that would name the length of vectors in front of the function, which LLVM
        asks a run-time library for where there is no SVE beside SME.
        """
        return f"nounwind {vector_length(self._vector_bytes * 8)} {ATTRIBUTES}"

    @property
    def _vector_bytes(self) -> int:
        return self.tile.n * self.tile.acc.size

    # --- the unit -----------------------------------------------------------------------------

    def begin(self, f: Function, down: int, across: int) -> None:
        """Saves ZA where it is another one's, and turns it on."""
        assert down * across <= self.tiles, "accumulators are the tiles of ZA"
        self._across = across
        block = self._call(f, "get.tpidr2", INT64, [])
        with f.when(f.icmp("!=", block, 0)):
            self._save(f, f.inttoptr(block))
            self._call(f, "set.tpidr2", VOID, [int64(0)])
        self._call(f, "za.enable", VOID, [])

    def _save(self, f: Function, block: Value) -> None:
        """Inline __arm_tpidr2_save: store the first rows of ZA to the caller's buffer."""
        buffer = f.load(POINTER, f.at(block, _BUFFER), 8)
        with f.when(f.icmp("!=", f.ptrtoint(buffer), 0)):
            rows = f.emit(INT64, f"zext {f.load(_HALFWORD, f.at(block, _ROWS), 2).typed} to i64")
            with f.loop(int64(0), rows, int64(1), "save") as row:
                place = f.at(buffer, f.mul(row, self._vector_bytes))
                self._call(f, "str", VOID, [f.trunc(row, INT32), place, int32(0)])

    def end(self, f: Function) -> None:
        self._call(f, "za.disable", VOID, [])

    def _call(self, f: Function, name: str, result: Type, arguments: Sequence[Value]) -> Value:
        kinds = [argument.type for argument in arguments]
        return f.call(f.module.declare(f"llvm.aarch64.sme.{name}", result, kinds), arguments)

    # --- the grid -----------------------------------------------------------------------------

    def zero(self, f: Function, down: int, across: int) -> Value:
        number = down * self._across + across
        doubles = range(number, _DOUBLES, self.tiles)
        self._call(f, "zero", VOID, [int32(sum(1 << double for double in doubles))])
        return int32(number)

    def load_a(self, f: Function, pointer: Value, down: int) -> Value:
        return self._load(f, pointer)

    def load_b(self, f: Function, pointer: Value, across: int) -> Value:
        return self._load(f, pointer)

    def _load(self, f: Function, pointer: Value) -> Value:
        """A whole vector; A and B hold elements of one size and, but for signs, of one type."""
        tile = self.tile
        bits = tile.a.bits * tile.kr
        words = vector_of(Type(f"i{bits}", f"i{bits}"), tile.n)
        register = scalable_of(element_type(tile.a))
        return f.bitcast(to_scalable(f, f.load(words, pointer, tile.a.size)), register)

    def multiply(self, f: Function, a: Value, b: Value, acc: Value) -> Value:
        mask = every_lane(f, a.type)
        # LLVM names the products of one depth, and those of float types of several, by their operands.
        name = self.tile.instruction if self.tile.a.is_integer else "mopa"
        wide = ".wide" if self.tile.kr > 1 else ""
        self._call(f, f"{name}{wide}.{a.type.suffix}", VOID, [acc, mask, mask, a, b])
        return acc

    def rows(self, f: Function, accs: Sequence[Value]) -> Iterator[list[Value]]:
        for row in range(self.tile.m):
            yield [self._row(f, acc, row) for acc in accs]

    def _row(self, f: Function, acc: Value, row: int) -> Value:
        element = element_type(self.tile.acc)
        register = scalable_of(element)
        arguments = [poison(register), every_lane(f, register), acc, int32(row)]
        found = self._call(f, f"read.horiz.{register.suffix}", register, arguments)
        return to_fixed(f, found, vector_of(element, self.tile.n))
