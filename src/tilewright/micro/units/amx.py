"""Intel AMX: products of tiles of 16 rows of 64 bytes, into accumulators that stay in the unit.

Eight tiles hold a grid of accumulators and one operand for each of its rows and columns; 2 × 2 of them, so
32×32 of C, load four operands for four products. Tiles are named by number (tmm0 to tmm7), in LLVM too: no
value carries them, and LLVM neither saves nor moves them. They do not survive calls (System V psABI: tile
data and configuration are volatile), and a process needs Linux's permission before it touches one
(`machine.amx_permission`).

Sources: Intel SDM vol. 1 ch. 18 "Programming with Intel Advanced Matrix Extensions" (18.2: palette 1 has
eight tiles of 16 rows of 64 bytes), vol. 2 LDTILECFG, TILELOADD, TILESTORED, TILEZERO, TILERELEASE,
TDPBF16PS, TDPFP16PS, TDPBSSD/TDPBSUD/TDPBUSD/TDPBUUD; Intel 248966, ch. "Intel Advanced Matrix Extensions"
(a product each 16 cycles of latency 52, a load each 8: 2 × 2 is the least grid that keeps the unit busy).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from tilewright.llvm.build import Function
from tilewright.llvm.values import (
    INT8,
    INT32,
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    element_type,
    int32,
    int64,
    vector_constant,
    vector_of,
)
from tilewright.machine.isa import Isa, TileFma
from tilewright.micro.units.multiply import Multiply, VectorMultiply

#: Palette 1.
TILES = 8
TILE_ROWS = 16
ROW_BYTES = 64
_PALETTE = 1
#: In the 64 bytes that LDTILECFG reads: the palette, then each tile's row length (two bytes) and rows (one).
_CONFIGURATION_BYTES, _ROW_LENGTHS, _ROW_COUNTS = 64, 16, 48
#: Bits of MXCSR (SDM vol. 1, 10.2.3): no exception is raised; subnormal results (FTZ) and operands (DAZ) are
#: zero. Two more bits, which are 0, mean rounding to nearest.
MASKED_FLAGS, FLUSH_RESULTS, FLUSH_OPERANDS = 0x1F80, 1 << 15, 1 << 6


def configuration() -> bytes:
    """What LDTILECFG reads: palette 1, every tile whole.

    >>> list(configuration()[:1] + configuration()[16:18] + configuration()[48:49])
    [1, 64, 0, 16]
    """
    block = bytearray(_CONFIGURATION_BYTES)
    block[0] = _PALETTE
    for tile in range(TILES):
        start = _ROW_LENGTHS + 2 * tile
        block[start : start + 2] = ROW_BYTES.to_bytes(2, "little")
        block[_ROW_COUNTS + tile] = TILE_ROWS
    return bytes(block)


class Amx(Multiply):
    """One product of tiles; `tile.instruction` is its mnemonic.

    ========== ============= ===== ======== ==== ====
    instruction a × b        acc   m  n  k  kr_a kr
    ========== ============= ===== ======== ==== ====
    tdpbf16ps  bf16 × bf16   f32   16 16 32 32   2
    tdpfp16ps  f16 × f16     f32   16 16 32 32   2
    tdpbssd    i8 × i8       i32   16 16 64 64   4
    tdpbsud    i8 × u8       i32   16 16 64 64   4
    tdpbusd    u8 × i8       i32   16 16 64 64   4
    tdpbuud    u8 × u8       i32   16 16 64 64   4
    ========== ============= ===== ======== ==== ====

    A tile of A is 16 lanes of 64 bytes of consecutive depths, so kr_a = k, and its rows are adjacent in a
    panel. A tile of B is k/kr groups of depths, each of 16 lanes of kr depths: its rows are one group apart,
    across all lanes of the panel. `begin` is therefore told the grid of the whole panel, also where the
    kernel then walks a part of it.

    The products of bf16 and f16 take subnormal operands of bf16 for zero and flush subnormal sums, round to
    nearest and raise no flags, whatever MXCSR says (SDM vol. 2, TDPBF16PS and TDPFP16PS; float16's
    subnormal operands count). Sums of integers wrap around.

    Examples
    --------
    >>> unit = Amx(AMX, AMX.tile(BF16))  # doctest: +SKIP
    >>> unit.begin(f, 2, 2)  # doctest: +SKIP
    >>> acc = unit.zero(f, 0, 0)  # doctest: +SKIP
    >>> unit.multiply(f, unit.load_a(f, a, 0), unit.load_b(f, b, 0), acc)  # doctest: +SKIP
    """

    resident: ClassVar[bool] = True
    stores: ClassVar[bool] = True
    configured: ClassVar[bool] = True

    def __init__(self, isa: Isa, tile: TileFma) -> None:
        super().__init__(isa, tile)
        self._down = self._across = 0
        self._buffer: Value | None = None

    # --- the unit -----------------------------------------------------------------------------

    def configure(self, f: Function) -> None:
        """Every tile whole. It waits for all tiles before, some 100 ns, so it is done once for many."""
        block = f.alloca(INT8, _CONFIGURATION_BYTES, _CONFIGURATION_BYTES)
        f.store(vector_constant(INT8, list(configuration())), block, _CONFIGURATION_BYTES)
        self._effect(f, "ldtilecfg", (POINTER,), [block])

    def release(self, f: Function) -> None:
        """A thread that holds no tiles has less state to save at a context switch."""
        self._effect(f, "tilerelease", (), [])

    def begin(self, f: Function, down: int, across: int) -> None:
        """Numbers the tiles for all of a panel's grid, even if the kernel walks a part of it."""
        assert down * across + down + across <= TILES, "operands and accumulators are eight tiles"
        self._down, self._across = down, across
        self._buffer = f.alloca(INT8, across * TILE_ROWS * ROW_BYTES, ROW_BYTES)

    def _effect(self, f: Function, name: str, kinds: Sequence[Type], arguments: Sequence[Value]) -> None:
        f.call(f.module.declare(f"llvm.x86.{name}", VOID, kinds), arguments)

    # --- the grid -----------------------------------------------------------------------------

    def zero(self, f: Function, down: int, across: int) -> Value:
        """Clears the tile of a place."""
        acc = _tile(down * self._across + across)
        self._effect(f, "tilezero", (INT8,), [acc])
        return acc

    def load_a(self, f: Function, pointer: Value, down: int) -> Value:
        """16 lanes of 64 bytes of depths, adjacent."""
        return self._load(f, self._down * self._across + down, pointer, ROW_BYTES)

    def load_b(self, f: Function, pointer: Value, across: int) -> Value:
        """k/kr groups of 16 lanes of kr depths, a group of the whole panel apart."""
        number = self._down * self._across + self._down + across
        return self._load(f, number, pointer, self._across * ROW_BYTES)

    def _load(self, f: Function, number: int, pointer: Value, stride: int) -> Value:
        operand = _tile(number)
        self._effect(f, "tileloadd64", (INT8, POINTER, INT64), [operand, pointer, int64(stride)])
        return operand

    def multiply(self, f: Function, a: Value, b: Value, acc: Value) -> Value:
        """Adds to the tile of the accumulator; the value that names it stays the same."""
        self._effect(f, self.tile.instruction, (INT8, INT8, INT8), [acc, a, b])
        return acc

    def rows(self, f: Function, accs: Sequence[Value]) -> Iterator[list[Value]]:
        """The rows, through a buffer in the frame, which the next call overwrites."""
        assert self._buffer is not None, "begin comes first"
        pitch = len(accs) * ROW_BYTES
        self.store(f, accs, self._buffer, int64(pitch))
        kind = vector_of(element_type(self.tile.acc), self.tile.n)
        for start in range(0, self.tile.m * pitch, pitch):
            places = range(start, start + pitch, ROW_BYTES)
            yield [f.load(kind, f.at(self._buffer, place), ROW_BYTES) for place in places]

    def store(self, f: Function, accs: Sequence[Value], pointer: Value, row_bytes: Value) -> None:
        """TILESTORED, one for each accumulator."""
        for number, acc in enumerate(accs):
            place = f.at(pointer, number * ROW_BYTES)
            self._effect(f, "tilestored64", (INT8, POINTER, INT64), [acc, place, row_bytes])


class AmxRows(VectorMultiply):
    """Vectors that add in the order of TDPBF16PS, for rows too few for its tiles.

    SDM vol. 2, TDPBF16PS: of 32 depths the even ones are added to one another, beginning with zero, and the
    odd ones; then both sums, and the result to the accumulator. Products of bfloat16 are exact in float32, so
    that a multiply-add rounds as often as the instruction does.
    """

    def multiply(self, f: Function, a: Value, b: Value, acc: Value) -> Value:
        """acc + a · b of one depth, in float32."""
        return f.multiply_add(a, b, acc, fused=self.isa.fused)

    @contextmanager
    def in_its_mode(self, f: Function) -> Iterator[None]:
        """Code that flushes subnormal numbers, rounds to nearest and leaves no flags, whatever MXCSR says."""
        kept, own = f.alloca(INT32, 1, 4), f.alloca(INT32, 1, 4)
        store, load = (
            f.module.declare(f"llvm.x86.sse.{name}", VOID, (POINTER,)) for name in ("stmxcsr", "ldmxcsr")
        )
        f.call(store, [kept])
        f.store(int32(MASKED_FLAGS | FLUSH_RESULTS | FLUSH_OPERANDS), own, 4)
        f.call(load, [own])
        yield
        f.call(load, [kept])


def _tile(number: int) -> Value:
    return Value(INT8, str(number), number)
