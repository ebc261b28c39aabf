"""The code generators of multiply instructions, by `TileFma.instruction`."""
# ruff: noqa: ARG002, D102
# (`Multiply` documents the methods; not every instruction needs every argument.)

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.errors import InvalidChoice
from tilewright.llvm.build import Function
from tilewright.llvm.values import INT32, Value, element_type, vector_of, zero
from tilewright.machine.isa import MULTIPLY_ADD, Isa, TileFma
from tilewright.micro.units.amx import Amx, AmxRows
from tilewright.micro.units.arm import ArmDot, Mmla
from tilewright.micro.units.emulate import emulate
from tilewright.micro.units.mma import Mma
from tilewright.micro.units.multiply import Multiply, VectorMultiply
from tilewright.micro.units.sme import Sme
from tilewright.micro.units.sve import SveDot, SveMmla, SveMultiplyAdd

#: The narrowest register of x86 that has sums of adjacent products.
_LEAST_BITS = 128

#: The sign bits of four bytes: exclusive or with them adds 128 to int8 and makes it uint8.
SIGNS_OF_BYTES = 0x80808080 - (1 << 32)

_PMADDWD = {128: "sse2.pmadd.wd", 256: "avx2.pmadd.wd", 512: "avx512.pmaddw.d.512"}


class MultiplyAdd(VectorMultiply):
    """acc + a · b on one vector: FMA, or a product and a sum where the row has no fused one."""

    def multiply(self, f: Function, a: Value, b: Value, acc: Value) -> Value:
        return f.multiply_add(a, b, acc, fused=self.isa.fused)

    def first(self, f: Function, a: Value, b: Value) -> Value:
        return f.times(a, b)


class X86Dot(VectorMultiply):
    """Sums of 2 or 4 adjacent products: intrinsics of 128, 256 and 512 bits.

    Sources: Intel SDM vol. 2: PMADDWD, VPDPWSSD, VPDPBUSD (not their saturating forms); VDPBF16PS, which
    takes subnormal operands for zero, flushes subnormal results and rounds to nearest whatever MXCSR says.
    """

    #: Intrinsics by register width.
    _NAMES: Mapping[str, Callable[[int], str]] = {
        "pmaddwd": lambda bits: f"llvm.x86.{_PMADDWD[bits]}",
        "vpdpwssd": lambda bits: f"llvm.x86.avx512.vpdpwssd.{bits}",
        "vpdpbusd": lambda bits: f"llvm.x86.avx512.vpdpbusd.{bits}",
        "vpdpbusd_swapped": lambda bits: f"llvm.x86.avx512.vpdpbusd.{bits}",
        "vpdpbusd_biased": lambda bits: f"llvm.x86.avx512.vpdpbusd.{bits}",
        "vdpbf16ps": lambda bits: f"llvm.x86.avx512bf16.dpbf16ps.{bits}",
    }

    def __init__(self, isa: Isa, tile: TileFma) -> None:
        super().__init__(isa, tile)
        self.biased = tile.biased

    def multiply(self, f: Function, a: Value, b: Value, acc: Value) -> Value:
        width = acc.type.lanes
        if width * 32 < _LEAST_BITS:  # in the lower lanes of the narrowest register
            lanes = [min(lane, width) for lane in range(_LEAST_BITS // 32)]
            a, b, acc = (f.shuffle(value, zero(value.type), lanes) for value in (a, b, acc))
            whole = self.multiply(f, a, b, acc)
            return f.shuffle(whole, whole, range(width))
        name = self._NAMES[self.tile.instruction]
        operands = vector_of(element_type(self.tile.a), 32 // self.tile.a.bits * width)
        a, b = f.bitcast(a, operands), f.bitcast(b, operands)
        kind = vector_of(element_type(self.tile.acc), width)
        if self.tile.instruction == "pmaddwd":
            callee = f.module.declare(name(32 * width), kind, [operands, operands])
            return f.plus(acc, f.call(callee, [a, b]))
        callee = f.module.declare(name(32 * width), kind, [kind, operands, operands])
        # The operand that may come from memory, broadcast, is the last one.
        first_unsigned = self.tile.instruction in ("vpdpbusd", "vpdpbusd_biased")
        order = [acc, a, b] if first_unsigned else [acc, b, a]
        return f.call(callee, order)

    def prepare_a(self, f: Function, word: Value) -> Value:
        return f.xor(word, SIGNS_OF_BYTES) if self.biased else word

    def biased_word(self, f: Function, width: int) -> Value:
        """128 in every byte: multiplied with B, what the bias of A adds to each sum."""
        return Value(vector_of(INT32, width), f"splat (i32 {SIGNS_OF_BYTES})")


_MMA = (
    "xvf32gerpp",
    "xvf64gerpp",
    "xvbf16ger2pp",
    "xvf16ger2pp",
    "xvi16ger2pp",
    "xvi8ger4pp",
    "xvi4ger8pp",
)
_AMX = ("tdpbf16ps", "tdpfp16ps", "tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud")

_ARM_DOTS = ("sdot", "udot", "usdot", "bfdot", "fmlal")
_OUTER = ("fmopa", "bfmopa", "smopa", "umopa", "sumopa", "usmopa")
_ARM_SQUARES = ("smmla", "ummla", "usmmla", "bfmmla")

_INSTRUCTIONS: dict[str, type[Multiply]] = {
    MULTIPLY_ADD: MultiplyAdd,
    **dict.fromkeys(_MMA, Mma),
    **dict.fromkeys(_AMX, Amx),
    "tdpbf16ps_rows": AmxRows,
    **dict.fromkeys(_ARM_DOTS, ArmDot),
    **dict.fromkeys(_ARM_SQUARES, Mmla),
    **dict.fromkeys(_OUTER, Sme),
    **dict.fromkeys(
        ("pmaddwd", "vpdpwssd", "vpdpbusd", "vpdpbusd_swapped", "vpdpbusd_biased", "vdpbf16ps"), X86Dot
    ),
}


#: Instructions of scalable rows; rows of fixed-length vectors have some of the mnemonics too.
_SCALABLE: dict[str, type[Multiply]] = {
    **_INSTRUCTIONS,
    MULTIPLY_ADD: SveMultiplyAdd,
    **dict.fromkeys(("sdot", "udot", "usdot", "bfdot", "fmlalb"), SveDot),
    **dict.fromkeys(_ARM_SQUARES, SveMmla),
}


def find_multiply(isa: Isa, tile: TileFma) -> Multiply:
    """The code generator (`Multiply`) of an instruction of a row.

    >>> from tilewright.machine.isa_rows import AVX512
    >>> from tilewright.spec.dtype import F32
    >>> type(find_multiply(AVX512, AVX512.tile(F32))).__name__
    'MultiplyAdd'
    """
    if isa.emulated:
        return emulate(isa, tile)
    known = _SCALABLE if isa.scalable else _INSTRUCTIONS
    kind = known.get(tile.instruction)
    if kind is None:
        raise InvalidChoice(name="instruction", found=tile.instruction, allowed=", ".join(known))
    return kind(isa, tile)
