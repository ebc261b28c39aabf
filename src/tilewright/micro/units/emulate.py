"""Any multiply instruction as plain LLVM: the same tile, operands and layout, on a CPU that lacks it.

Everything else of a kernel is what the real row compiles: packing, interleave, edges, epilogue. Products
are added in the type of the accumulator, depth by depth or in the order that `TileFma.joins` says, so
integers agree bit for bit with the instruction, and floats up to the rounding and flushing of its own that
an instruction has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import ClassVar

from tilewright.llvm.build import Function
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import (
    Value,
    constant,
    element_type,
    int64,
    memory_type,
    vector_of,
    vector_type,
    zero,
)
from tilewright.machine.isa import Isa, TileFma
from tilewright.micro.units.multiply import Multiply, VectorMultiply
from tilewright.spec.dtype import DType

#: Accumulators in the frame begin on a cache line.
ALIGNMENT = 64


class EmulatedVector(VectorMultiply):
    """One row of A: the depths of a word in order."""

    def multiply(self, f: Function, a: Value, b: Value, acc: Value) -> Value:
        """acc + a · b."""
        tile, width = self.tile, acc.type.lanes
        convert = Convert(f, half=self.isa.half)
        left = f.bitcast(a, vector_type(tile.a, width * tile.kr))
        right = f.bitcast(b, vector_type(tile.b, width * tile.kr))
        for depth in range(tile.kr):
            lanes = range(depth, width * tile.kr, tile.kr)
            one = convert(f.shuffle(left, left, lanes), tile.a, tile.acc)
            other = convert(f.shuffle(right, right, lanes), tile.b, tile.acc)
            acc = f.multiply_add(one, other, acc, fused=self.isa.fused)
        return acc


class EmulatedEngine(Multiply):
    """Several rows of A: accumulators in the frame, operands read in place, element by element."""

    resident: ClassVar[bool] = True
    stores: ClassVar[bool] = True

    def __init__(self, isa: Isa, tile: TileFma) -> None:
        super().__init__(isa, tile)
        self._across = 0
        self._buffer: Value | None = None

    def begin(self, f: Function, down: int, across: int) -> None:
        """Makes room for the grid; `across` is that of the whole panel."""
        self._across = across
        self._buffer = f.alloca(memory_type(self.tile.acc), down * across * self._elements, ALIGNMENT)

    @property
    def _elements(self) -> int:
        return self.tile.m * self.tile.n

    def zero(self, f: Function, down: int, across: int) -> Value:
        """Clears the accumulator of a place."""
        assert self._buffer is not None, "begin comes first"
        size = self.tile.acc.size
        place = f.at(self._buffer, (down * self._across + across) * self._elements * size)
        with f.loop(int64(0), int64(self._elements * size), int64(size), "zero") as at:
            f.store(constant(self.tile.acc, 0), f.at(place, at), size)
        return place

    def load_a(self, f: Function, pointer: Value, down: int) -> Value:  # noqa: ARG002
        """Address of the lanes of A."""
        return pointer

    def load_b(self, f: Function, pointer: Value, across: int) -> Value:  # noqa: ARG002
        """Address of the lanes of B."""
        return pointer

    def multiply(self, f: Function, a: Value, b: Value, acc: Value) -> Value:
        """Adds every product of the tile, in the instruction's order."""
        tile, convert = self.tile, Convert(f, half=self.isa.half)
        size = tile.acc.size
        columns = self._across * tile.n
        with (
            f.loop(int64(0), int64(tile.m), int64(1), "i") as i,
            f.loop(int64(0), int64(tile.n), int64(1), "j") as j,
        ):
            place = f.at(acc, f.mul(f.add(f.mul(i, tile.n), j), size))
            total = f.load(element_type(tile.acc), place, size)
            together = tile.kr if tile.joins else 1
            begun = [zero(total.type)] * together if tile.joins else [total]
            span = (int64(0), int64(tile.k), int64(together))
            with f.carried_loop(*span, begun, "p") as (p, values, advance):
                sums = []
                for number, value in enumerate(values):
                    depth = f.add(p, number)
                    left = self._element(f, i, depth, (tile.interleave_a, tile.m * tile.interleave_a))
                    right = self._element(f, j, depth, (tile.kr, columns * tile.kr))
                    one = convert(_loaded(f, tile.a, a, left), tile.a, tile.acc)
                    other = convert(_loaded(f, tile.b, b, right), tile.b, tile.acc)
                    sums.append(f.multiply_add(one, other, value, fused=self.isa.fused))
                advance(sums)
            found = reduce(f.plus, advance.results)
            f.store(f.plus(total, found) if tile.joins else found, place, size)
        return acc

    @staticmethod
    def _element(f: Function, lane: Value, p: Value, steps: tuple[int, int]) -> Value:
        """The number of the element of a lane and depth: kr depths adjacent, then lanes, then groups."""
        kr, group = steps
        shift = int64(kr.bit_length() - 1)
        inside = f.add(f.mul(lane, kr), f.and_(p, int64(kr - 1)))
        return f.add(f.mul(f.ashr(p, shift), group), inside)

    def rows(self, f: Function, accs: Sequence[Value]) -> Iterator[list[Value]]:
        """The rows, in vectors of one accumulator, or of the row where that is wider."""
        tile, size = self.tile, self.tile.acc.size
        kind = vector_of(element_type(tile.acc), tile.n)
        together = max(1, self.isa.lanes(tile.acc) // tile.n)
        for row in range(tile.m):
            pieces = [f.load(kind, f.at(acc, row * tile.n * size), size) for acc in accs]
            firsts = range(0, len(pieces), together)
            yield [f.concatenate(pieces[first : first + together]) for first in firsts]


def _loaded(f: Function, dtype: DType, panel: Value, number: Value) -> Value:
    """An element of a panel; of a byte that holds several, in the lowest bits."""
    cell = f.load(memory_type(dtype), f.at(panel, f.bytes_of(number, dtype.bits)), 1)
    if dtype.held == 1:
        return cell
    place = f.trunc(f.mul(f.and_(number, int64(dtype.held - 1)), dtype.bits), cell.type)
    return f.emit(cell.type, f"lshr {cell.typed}, {place.text}")


def emulate(isa: Isa, tile: TileFma) -> Multiply:
    """An instruction of a row as plain LLVM.

    Examples
    --------
    >>> from tilewright.machine.isa_rows import VSX
    >>> from tilewright.spec.dtype import F32
    >>> type(emulate(VSX, VSX.tile(F32))).__name__
    'EmulatedEngine'
    """
    return EmulatedEngine(isa, tile) if tile.is_matrix_engine else EmulatedVector(isa, tile)
