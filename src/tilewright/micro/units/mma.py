"""POWER10's matrix unit: outer products into accumulators of 512 bits, four rows of 128 bits each.

There are eight accumulators, and each blocks four of the 64 vector registers while it is in use, so 32 are
left for operands. In LLVM they are values of <512 x i1>: a loop carries them, and each is moved to vector
registers (xxmfacc) once, after the loop. Operands are loaded two steps ahead, by pairs of registers
(docs/decisions/015-operands-ahead.md).

Sources: Power ISA 3.1, book I, chapter "Vector-Scalar Extension Facility": "Accumulators" and "VSX
Matrix-Multiply Assist (MMA) Instructions"; Kuzma et al., "Fast Matrix Multiplication via Compiler-only
Layered Data Reorganization and Intrinsic Lowering" (2022), §2, table 1 and §3.2 to §3.4: 2 × 4
accumulators, so 8×16 of C in 32 bits and 8×8 in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar

from tilewright.llvm.build import Function
from tilewright.llvm.values import INT8, INT32, POINTER, Type, Value, element_type, vector_of, zero
from tilewright.micro.units.multiply import Multiply
from tilewright.spec.dtype import Kind

_VECTOR = vector_of(INT8, 16)
_PAIR = Type("<256 x i1>", "v256i1")
_TWO_VECTORS = Type(f"{{ {_VECTOR.text}, {_VECTOR.text} }}", "")
_ACCUMULATOR = Type("<512 x i1>", "v512i1")
_ROWS = 4
_FOUR_VECTORS = Type("{ " + ", ".join([_VECTOR.text] * _ROWS) + " }", "")
_WORDS = vector_of(INT32, 4)
#: The sign bit of every byte: added to a signed byte it is the same number plus 128, unsigned.
_FLIPPED_ZERO = Value(_VECTOR, "splat (i8 -128)")


class _Signs(Enum):
    """How operands of any signedness are mapped to xvi8ger4pp, which takes one signed and one unsigned.

    PLAIN: as they are. SWAPPED: B is the signed operand, and accumulators hold the transpose.
    ROW, COLUMN: see `Mma.bias`.
    """

    PLAIN = "plain"
    SWAPPED = "swapped"
    ROW = "row"
    COLUMN = "column"


_SIGNS = {
    (Kind.SIGNED, Kind.UNSIGNED): _Signs.PLAIN,
    (Kind.UNSIGNED, Kind.SIGNED): _Signs.SWAPPED,
    (Kind.SIGNED, Kind.SIGNED): _Signs.ROW,
    (Kind.UNSIGNED, Kind.UNSIGNED): _Signs.COLUMN,
}


class Mma(Multiply):
    """One outer product of POWER10; `tile.instruction` is its mnemonic.

    ============== ====== ====== ===== =========================================================
    instruction    a × b  acc    m n k operands in a packed panel
    ============== ====== ====== ===== =========================================================
    xvf32gerpp     f32    f32    4 4 1 four lanes
    xvf64gerpp     f64    f64    4 2 1 A: four lanes in two registers; B: two lanes
    xvbf16ger2pp   bf16   f32    4 4 2 four lanes of 2 depths
    xvf16ger2pp    f16    f32    4 4 2 four lanes of 2 depths
    xvi16ger2pp    i16    i32    4 4 2 four lanes of 2 depths
    xvi8ger4pp     i8,u8  i32    4 4 4 four lanes of 4 depths; of any two signs
    xvi4ger8pp     i4x2   i32    4 4 8 four lanes of 8 depths, two in a byte
    ============== ====== ====== ===== =========================================================

    Integer sums wrap around; the saturating forms (spp) are not used. Panels of bytes hold the plain
    elements, and depths behind k are zero in both operands. xvi4ger8pp sums over the eight nibbles of a
    word, of any order that A and B share.

    Elements are numbered from the left of a register, which little-endian loads fill from the right, so
    element i in memory multiplies into row 3 - i of the accumulator; LLVM's disassemble.acc gives these rows
    from the last to the first, in the order of memory. (In f64 it is the pair that lxvp loads in reverse.)

    Examples
    --------
    >>> unit = Mma(VSX, VSX.tile(F32))  # doctest: +SKIP
    >>> acc = unit.zero(f, 0, 0)  # doctest: +SKIP
    >>> acc = unit.multiply(f, unit.load_a(f, a, 0), unit.load_b(f, b, 0), acc)  # doctest: +SKIP
    """

    ahead: ClassVar[int] = 2
    together: ClassVar[int] = 2

    @property
    def _signs(self) -> _Signs:
        tile = self.tile
        bytewise = tile.instruction == "xvi8ger4pp"
        return _SIGNS[tile.a.kind, tile.b.kind] if bytewise else _Signs.PLAIN

    # --- the grid -----------------------------------------------------------------------------

    def zero(self, f: Function, down: int, across: int) -> Value:  # noqa: ARG002
        """A cleared accumulator; LLVM chooses which of the eight."""
        intrinsic = f.module.declare("llvm.ppc.mma.xxsetaccz", _ACCUMULATOR, ())
        return f.call(intrinsic, [])

    def load_a(self, f: Function, pointer: Value, down: int) -> Value:  # noqa: ARG002
        """Four lanes: one register, or two of float64."""
        if self.tile.a.bits == 64:
            return _load_pair(f, pointer)
        return self._load(f, pointer, flip=self._signs is _Signs.COLUMN)

    def load_b(self, f: Function, pointer: Value, across: int) -> Value:  # noqa: ARG002
        """Four lanes, or two of float64: one register."""
        return self._load(f, pointer, flip=self._signs is _Signs.ROW)

    def _load(self, f: Function, pointer: Value, *, flip: bool) -> Value:
        plain = f.load(_VECTOR, pointer, 1)
        return _flipped(f, plain) if flip else plain

    def load_run_a(self, f: Function, pointer: Value, places: range) -> list[Value]:
        """One operand or two, by one instruction; of float64 one is two registers."""
        if len(places) == 1 or self.tile.a.bits == 64:
            return super().load_run_a(f, pointer, places)
        return self._load_two(f, pointer, flip=self._signs is _Signs.COLUMN)

    def load_run_b(self, f: Function, pointer: Value, places: range) -> list[Value]:
        """One operand or two, by one instruction."""
        if len(places) == 1:
            return super().load_run_b(f, pointer, places)
        return self._load_two(f, pointer, flip=self._signs is _Signs.ROW)

    def _load_two(self, f: Function, pointer: Value, *, flip: bool) -> list[Value]:
        """Two registers in the order of memory, whatever their order in the pair."""
        intrinsic = f.module.declare("llvm.ppc.vsx.disassemble.pair", _TWO_VECTORS, (_PAIR,))
        parts = f.call(intrinsic, [_load_pair(f, pointer)])
        plain = [_field(f, parts, number) for number in range(2)]
        return [_flipped(f, value) for value in plain] if flip else plain

    def multiply(self, f: Function, a: Value, b: Value, acc: Value) -> Value:
        """acc + a · b; of bytes the first operand of the instruction is the signed one."""
        left, right = (b, a) if self._signs is _Signs.SWAPPED else (a, b)
        kinds = (_ACCUMULATOR, left.type, right.type)
        intrinsic = f.module.declare(f"llvm.ppc.mma.{self.tile.instruction}", _ACCUMULATOR, kinds)
        return f.call(intrinsic, [acc, left, right])

    def rows(self, f: Function, accs: Sequence[Value]) -> list[list[Value]]:
        """Four rows, of each one vector of every accumulator; vectors of 16 bytes."""
        blocks = [self._block(f, acc) for acc in accs]
        return [[block[row] for block in blocks] for row in range(self.tile.m)]

    def _block(self, f: Function, acc: Value) -> list[Value]:
        """The rows of one accumulator."""
        intrinsic = f.module.declare("llvm.ppc.mma.disassemble.acc", _FOUR_VECTORS, (_ACCUMULATOR,))
        parts = f.call(intrinsic, [acc])
        kind = vector_of(element_type(self.tile.acc), self.tile.n)
        rows = [f.bitcast(_field(f, parts, number), kind) for number in range(_ROWS)]
        return _transposed(f, rows) if self._signs is _Signs.SWAPPED else rows

    # --- bytes of two equal signs -------------------------------------------------------------

    @property
    def bias(self) -> str | None:
        """Correction sums that the kernel keeps: one for each "row" or "column" of the grid, or None.

        One operand of xvi8ger4pp is signed and one unsigned. The sign bit of every byte of one operand is
        flipped, as it is loaded, so that Σ grows by a multiple of the other operand's sum, which is
        subtracted at the end (mod 2^32, like all sums of integers):

        "row": A and B signed; Σ a·(b + 128) - Σ a·128, a sum for each row of C.
        "column": A and B unsigned; Σ (a - 128)·b - Σ (-128)·b, a sum for each column.

        Either way the sum is the other operand's product with flipped zeros (`bias_operand`). The vector
        units do it (vmsummbm, four lanes of four depths), so that the grid keeps its eight accumulators.
        """
        signs = self._signs
        return signs.value if signs in (_Signs.ROW, _Signs.COLUMN) else None

    def bias_operand(self, f: Function) -> Value:  # noqa: ARG002
        """Zeros of the flipped operand: 128 unsigned, or -128 signed."""
        return _FLIPPED_ZERO

    def bias_zero(self, f: Function) -> Value:  # noqa: ARG002
        """The empty sum of one operand's lanes."""
        return zero(_WORDS)

    def bias_multiply(self, f: Function, operand: Value, acc: Value) -> Value:
        """acc + the operand · flipped zeros: of each A if `bias` is "row", of each B if it is "column"."""
        signed, unsigned = operand, self.bias_operand(f)
        if self._signs is _Signs.COLUMN:
            signed, unsigned = unsigned, signed
        kinds = (_VECTOR, _VECTOR, _WORDS)
        intrinsic = f.module.declare("llvm.ppc.altivec.vmsummbm", _WORDS, kinds)
        return f.call(intrinsic, [signed, unsigned, acc])

    def bias_rows(self, f: Function, acc: Value) -> list[Value]:
        """Values to subtract from each vector of the m rows of an accumulator in that row or column."""
        if self._signs is _Signs.COLUMN:
            return [acc] * self.tile.m
        return [f.shuffle(acc, acc, [lane] * self.tile.n) for lane in range(self.tile.m)]


def _load_pair(f: Function, pointer: Value) -> Value:
    """Two adjacent registers, one of an even number and the next."""
    return f.call(f.module.declare("llvm.ppc.vsx.lxvp", _PAIR, (POINTER,)), [pointer])


def _flipped(f: Function, value: Value) -> Value:
    """The sign bit of every byte changed: bytes wrap around, so minus 128 is the same as plus 128."""
    return f.minus(value, _FLIPPED_ZERO)


def _field(f: Function, parts: Value, number: int) -> Value:
    """One of the vectors that disassemble.acc or disassemble.pair returns."""
    return f.emit(_VECTOR, f"extractvalue {parts.typed}, {number}")


def _transposed(f: Function, rows: Sequence[Value]) -> list[Value]:
    """The four columns of four rows."""
    first, second, third, fourth = rows
    low = f.shuffle(first, second, [0, 4, 1, 5]), f.shuffle(third, fourth, [0, 4, 1, 5])
    high = f.shuffle(first, second, [2, 6, 3, 7]), f.shuffle(third, fourth, [2, 6, 3, 7])
    return [f.shuffle(*pair, lanes) for pair in (low, high) for lanes in ([0, 1, 4, 5], [2, 3, 6, 7])]
