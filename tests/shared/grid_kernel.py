"""A small kernel over packed panels for tests of one multiply instruction: a grid of accumulators, one loop.

void kernel(i64 steps, ptr a, ptr b, ptr c): C, dense and by rows, is the product of two panels. A step is
the k depths of one instruction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike
from support import Array

from tilewright.llvm.build import Function, Module
from tilewright.llvm.values import INT64, POINTER, VOID, Value, int64
from tilewright.machine.isa import TileFma
from tilewright.micro.units.multiply import Multiply

ARGUMENTS = (("steps", INT64), ("a", POINTER), ("b", POINTER), ("c", POINTER))


class GridKernel:
    """Writes the kernel.

    Parameters
    ----------
    unit : the instruction.
    down, across : the grid of accumulators.
    """

    def __init__(self, unit: Multiply, down: int, across: int) -> None:
        self.unit, self.tile, self.down, self.across = unit, unit.tile, down, across
        #: Sums beside the accumulators; see `Mma.bias`.
        self.bias: str | None = getattr(unit, "bias", None)
        self.sums = {None: 0, "row": down, "column": across}[self.bias]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of C."""
        return self.down * self.tile.m, self.across * self.tile.n

    def emit(self, module: Module, name: str) -> None:
        """Defines the function."""
        f = module.define(name, VOID, ARGUMENTS, exported=True)
        unit, places = self.unit, [(i, j) for i in range(self.down) for j in range(self.across)]
        unit.configure(f)
        unit.begin(f, self.down, self.across)
        accs = [unit.zero(f, *place) for place in places]
        state = [] if unit.resident else list(accs)
        state += [unit.bias_zero(f) for _ in range(self.sums)]
        with f.carried_loop(int64(0), f.arguments["steps"], int64(1), state, "depth") as (step, now, advance):
            advance(self._step(f, step, accs, list(now)))
        ends = advance.results
        if not unit.resident:
            accs, ends = ends[: len(places)], ends[len(places) :]
        self._store(f, accs, [unit.bias_rows(f, end) for end in ends])
        unit.end(f)
        unit.release(f)
        f.ret()

    def _step(self, f: Function, step: Value, accs: list[Value], now: list[Value]) -> list[Value]:
        unit, tile, (rows, columns) = self.unit, self.tile, self.shape
        if not unit.resident:
            accs, now = now[: len(accs)], now[len(accs) :]
        bits = tile.a.bits
        a = f.at(f.arguments["a"], f.mul(step, rows * tile.k * bits // 8))
        b = f.at(f.arguments["b"], f.mul(step, columns * tile.k * bits // 8))
        every_a = tile.m * tile.interleave_a * bits // 8
        every_b = tile.n * tile.kr * bits // 8
        left = [unit.load_a(f, f.at(a, i * every_a), i) for i in range(self.down)]
        right = [unit.load_b(f, f.at(b, j * every_b), j) for j in range(self.across)]
        grid = [
            unit.multiply(f, left[i], right[j], accs[i * self.across + j])
            for i in range(self.down)
            for j in range(self.across)
        ]
        operands = left if self.bias == "row" else right
        sums = [unit.bias_multiply(f, operand, acc) for operand, acc in zip(operands, now, strict=False)]
        return sums if unit.resident else grid + sums

    def _store(self, f: Function, accs: list[Value], biases: list[list[Value]]) -> None:
        size = self.tile.acc.size
        for i in range(self.down):
            rows = self.unit.rows(f, accs[i * self.across : (i + 1) * self.across])
            for number, row in enumerate(rows):
                offset = (i * self.tile.m + number) * self.shape[1] * size
                for j, vector in enumerate(row):
                    value = vector
                    if self.bias:
                        value = f.minus(vector, biases[i if self.bias == "row" else j][number])
                    f.store(value, f.at(f.arguments["c"], offset), size)
                    offset += vector.type.lanes * size


def pack(lanes: Array, kr: int, k: int) -> Array:
    """(lanes, depth) -> a panel: groups of kr depths, of each the lanes; depths padded to whole steps with 0.

    >>> pack(np.arange(6).reshape(2, 3), 2, 4).tolist()
    [0, 1, 3, 4, 2, 0, 5, 0]
    """
    count, depth = lanes.shape
    padded = np.zeros((count, -(-depth // k) * k), lanes.dtype)
    padded[:, :depth] = lanes
    return np.ascontiguousarray(padded.reshape(count, -1, kr).transpose(1, 0, 2)).reshape(-1)


def panels(tile: TileFma, a: Array, b: Array) -> tuple[bytes, bytes]:
    """The panels of A (m, k) and B (k, n), both as wide as the grid."""
    packed = pack(a, tile.interleave_a, tile.k), pack(b.T, tile.kr, tile.k)
    if tile.a.held == 1:
        return packed[0].tobytes(), packed[1].tobytes()
    first, second = (in_pairs(panel) for panel in packed)
    return first.tobytes(), second.tobytes()


def in_pairs(nibbles: Array) -> Array:
    """Two adjacent elements of 4 bits in each byte, the first in its low half.

    >>> in_pairs(np.array([1, -1, 7, 0], np.int8)).tolist()
    [241, 7]
    """
    low = nibbles.view(np.uint8) & 15
    return low[0::2] | low[1::2] << 4


def product(a: Array, b: Array, acc: DTypeLike) -> Array:
    """A·B: integers modulo 2^32; floats in float64, products that are not numbers included."""
    if np.dtype(acc).kind == "i":
        return (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    with np.errstate(all="ignore"):
        exact: Array = np.einsum("ip,pj->ij", a.astype(np.float64), b.astype(np.float64))
        return exact.astype(acc)
