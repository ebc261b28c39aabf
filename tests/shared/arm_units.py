"""Small kernels over packed panels for tests of Arm's units, and the instructions that they are about.

void kernel(i64 steps, ptr a, ptr b, ptr c): C, dense and by rows, is the product of two panels. A step is
the k depths of one instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.llvm.build import Function, Module
from tilewright.llvm.target import data_layout, emit_assembly, tuning
from tilewright.llvm.values import INT64, POINTER, VOID, Value, element_type, int64, vector_of, zero
from tilewright.machine.catalog import find_machine
from tilewright.machine.isa import Edge, Isa, TileFma
from tilewright.machine.isa_rows import NEON
from tilewright.machine.machine import Machine
from tilewright.micro.units import sme
from tilewright.micro.units.arm import ArmDot, Mmla
from tilewright.micro.units.multiply import Multiply, VectorMultiply
from tilewright.micro.units.sme import Sme
from tilewright.micro.units.sve import SveDot, SveMmla, SveMultiplyAdd
from tilewright.spec.dtype import BF16, F16, F32, F64, I8, I32, U8, DType

ARGUMENTS = (("steps", INT64), ("a", POINTER), ("b", POINTER), ("c", POINTER))
#: A machine with every unit of Armv8 that is looked at here.
ARMV8 = replace(
    find_machine("neoverse-v2"), name="armv8", features="+neon,+dotprod,+i8mm,+bf16,+fp16fml,+fullfp16"
)


def _dot(instruction: str, a: DType, b: DType, acc: DType, kr: int, feature: str) -> TileFma:
    return TileFma(instruction, a, b, acc, m=1, n=4, k=kr, kr=kr, feature=feature)


def _square(instruction: str, a: DType, b: DType, acc: DType, k: int, feature: str) -> TileFma:
    return TileFma(instruction, a, b, acc, m=2, n=2, k=k, kr=k, feature=feature)


DOTS = (
    _dot("sdot", I8, I8, I32, 4, "dotprod"),
    _dot("udot", U8, U8, I32, 4, "dotprod"),
    _dot("usdot", U8, I8, I32, 4, "i8mm"),
    _dot("usdot", I8, U8, I32, 4, "i8mm"),
    _dot("bfdot", BF16, BF16, F32, 2, "bf16"),
    _dot("fmlal", F16, F16, F32, 1, "fp16fml"),
)
SQUARES = (
    _square("smmla", I8, I8, I32, 8, "i8mm"),
    _square("ummla", U8, U8, I32, 8, "i8mm"),
    _square("usmmla", U8, I8, I32, 8, "i8mm"),
    _square("usmmla", I8, U8, I32, 8, "i8mm"),
    _square("bfmmla", BF16, BF16, F32, 4, "bf16"),
)


#: A machine with every unit of SVE that is looked at here.
ARMV9 = replace(find_machine("neoverse-v1"), name="armv9", features="+neon,+sve,+sve2,+i8mm,+bf16,+fullfp16")


def sve_row(vector_bits: int) -> Isa:
    """Vectors of one length."""
    return replace(NEON, name="sve", vector_bits=vector_bits, tiles=(), edge=Edge.MASK)


def vector_length(vector_bits: int) -> str:
    """What functions say of it."""
    return f" vscale_range({vector_bits // 128},{vector_bits // 128})"


def sve_tiles(vector_bits: int) -> tuple[TileFma, ...]:
    """Every instruction at one length."""
    floats = (
        TileFma("fmla", dtype, dtype, dtype, m=1, n=vector_bits // dtype.bits, feature="sve")
        for dtype in (F32, F64)
    )
    half = _dot("fmlalb", F16, F16, F32, 2, "sve2")
    dots = (replace(tile, n=vector_bits // 32) for tile in (*DOTS[:-1], half))
    return (*floats, *dots, *(replace(tile, n=vector_bits // 64) for tile in SQUARES))


#: A machine with the matrix unit, and with no SVE beside it.
MATRIX = replace(find_machine("neoverse-v1"), name="matrix", cpu="generic", features="+neon,+sme,+sme-f64f64")


def sme_tiles(vector_bits: int) -> tuple[TileFma, ...]:
    """Every outer product at one streaming vector length."""

    def outer(instruction: str, a: DType, b: DType, acc: DType, kr: int) -> TileFma:
        lanes = vector_bits // acc.bits
        return TileFma(instruction, a, b, acc, lanes, lanes, kr, kr, accumulators=acc.size)

    return (
        outer("fmopa", F32, F32, F32, 1),
        outer("fmopa", F64, F64, F64, 1),
        outer("fmopa", F16, F16, F32, 2),
        outer("bfmopa", BF16, BF16, F32, 2),
        outer("smopa", I8, I8, I32, 4),
        outer("umopa", U8, U8, I32, 4),
        outer("sumopa", I8, U8, I32, 4),
        outer("usmopa", U8, I8, I32, 4),
    )


def label(tile: TileFma) -> str:
    """Of a test's parameter."""
    return f"{tile.instruction}-{tile.a}-{tile.b}"


@dataclass(frozen=True)
class UnitKernel:
    """Writes one kernel.

    Attributes
    ----------
    unit : the instruction.
    down, across : the grid of accumulators.
    narrow : vectors of fewer lanes behind the last column of the grid.
    """

    unit: Multiply
    down: int
    across: int
    narrow: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of C."""
        return self.down * self.unit.tile.m, self.across * self.unit.tile.n + sum(self.narrow)

    def emit(self, module: Module, name: str) -> None:
        """Defines the function."""
        f = module.define(name, VOID, ARGUMENTS, exported=True)
        unit = self.unit
        unit.begin(f, self.down, self.across)
        accs = [acc for i in range(self.down) for acc in self._zeros(f, i)]
        state = [] if unit.resident else accs
        with f.carried_loop(int64(0), f.arguments["steps"], int64(1), state, "depth") as (step, now, advance):
            following = self._step(f, step, accs if unit.resident else now)
            advance([] if unit.resident else following)
        self._store(f, accs if unit.resident else advance.results)
        unit.end(f)
        f.ret()

    @property
    def _in_row(self) -> int:
        return self.across + len(self.narrow)

    def _zeros(self, f: Function, down: int) -> list[Value]:
        kind = element_type(self.unit.tile.acc)
        whole = [self.unit.zero(f, down, across) for across in range(self.across)]
        return whole + [zero(vector_of(kind, width)) for width in self.narrow]

    def _step(self, f: Function, step: Value, accs: Sequence[Value]) -> list[Value]:
        unit, tile, (rows, columns) = self.unit, self.unit.tile, self.shape
        a = f.at(f.arguments["a"], f.mul(step, rows * tile.k * tile.a.size))
        b = f.at(f.arguments["b"], f.mul(step, columns * tile.k * tile.b.size))
        every = tile.n * tile.kr * tile.b.size
        left = self._load_a(f, a)
        right = [unit.load_b(f, f.at(b, across * every), across) for across in range(self.across)]
        place = self.across * tile.n
        for width in self.narrow:
            assert isinstance(unit, VectorMultiply)
            at = f.at(b, place * tile.kr * tile.b.size)
            right.append(f.load(vector_of(unit.word, width), at, tile.b.size))
            place += width
        return [
            unit.multiply(f, left[i], right[j], accs[i * self._in_row + j])
            for i in range(self.down)
            for j in range(self._in_row)
        ]

    def _load_a(self, f: Function, pointer: Value) -> list[Value]:
        unit, tile = self.unit, self.unit.tile
        if isinstance(unit, ArmDot):
            return unit.load_lanes(f, pointer, self.down)
        every = tile.m * tile.kr * tile.a.size
        return [unit.load_a(f, f.at(pointer, i * every), i) for i in range(self.down)]

    def _store(self, f: Function, accs: Sequence[Value]) -> None:
        size = self.unit.tile.acc.size
        for i in range(self.down):
            for number, row in enumerate(self.unit.rows(f, accs[i * self._in_row : (i + 1) * self._in_row])):
                offset = (i * self.unit.tile.m + number) * self.shape[1] * size
                for vector in row:
                    f.store(vector, f.at(f.arguments["c"], offset), size)
                    offset += vector.type.lanes * size


def neon_unit(tile: TileFma) -> Multiply:
    """The unit of an instruction of `DOTS` or `SQUARES`."""
    return ArmDot(NEON, tile) if not tile.is_matrix_engine else Mmla(NEON, tile)


def sve_unit(tile: TileFma, vector_bits: int) -> Multiply:
    """The unit of an instruction of `sve_tiles`."""
    if tile.m == 2:
        return SveMmla(sve_row(vector_bits), tile)
    return (SveMultiplyAdd if tile.k == 1 else SveDot)(sve_row(vector_bits), tile)


def sme_unit(tile: TileFma, vector_bits: int) -> Multiply:
    """The unit of an instruction of `sme_tiles`."""
    return Sme(sve_row(vector_bits), tile)


def streaming(vector_bits: int) -> str:
    """What functions in streaming mode say."""
    return f"{vector_length(vector_bits)} {sme.ATTRIBUTES}"


def unit_module(machine: Machine, attributes: str = "") -> Module:
    """An empty module for a machine; the attributes are those of every function, beside the usual ones.

    A function in streaming mode has no unwind table: it would have to name the length of vectors before,
    which LLVM asks a run-time library for where there is no SVE beside SME.
    """
    module = Module("units", machine.triple, data_layout(machine), tuning(machine))
    module.attributes += attributes
    if sme.ATTRIBUTES in attributes:
        module.attributes = module.attributes.replace("uwtable ", "")
    return module


def assembly(kernel: UnitKernel, machine: Machine, attributes: str = "") -> str:
    """Of one kernel."""
    module = unit_module(machine, attributes)
    kernel.emit(module, "unit")
    return emit_assembly(str(module), "unit", machine)
