"""The outer products of POWER10 that tests of micro/units/mma.py use, by the seven types of its unit."""

from __future__ import annotations

from tilewright.machine.isa import TileFma
from tilewright.spec.dtype import BF16, F16, F32, F64, I4X2, I8, I16, I32, U8, DType

#: Down and across: all eight accumulators.
GRID = (2, 4)


def _tile(instruction: str, a: DType, b: DType, acc: DType, n: int, k: int) -> TileFma:
    return TileFma(instruction, a, b, acc, m=4, n=n, k=k, kr=k, per_cycle=2, latency=4, accumulators=8)


TILES = (
    _tile("xvf32gerpp", F32, F32, F32, 4, 1),
    _tile("xvf64gerpp", F64, F64, F64, 2, 1),
    _tile("xvbf16ger2pp", BF16, BF16, F32, 4, 2),
    _tile("xvf16ger2pp", F16, F16, F32, 4, 2),
    _tile("xvi16ger2pp", I16, I16, I32, 4, 2),
    _tile("xvi8ger4pp", I8, U8, I32, 4, 4),
    _tile("xvi8ger4pp", U8, I8, I32, 4, 4),
    _tile("xvi8ger4pp", U8, U8, I32, 4, 4),
    _tile("xvi8ger4pp", I8, I8, I32, 4, 4),
    _tile("xvi4ger8pp", I4X2, I4X2, I32, 4, 8),
)


def label(tile: TileFma) -> str:
    """Of a test's parameter."""
    return f"{tile.instruction}-{tile.a}-{tile.b}"
