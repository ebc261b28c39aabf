"""What a program touches, in order, and the simulated caches that are fed with it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from cache_simulator import CacheHierarchy

from tilewright.errors import InvalidTileIr
from tilewright.ir.accesses import APART, accesses, buffer_of
from tilewright.ir.expressions import Constant, Name, Scalar
from tilewright.ir.nodes import Buffer, Loop, Pack, Program, Slice, Space, Statement, Stored, Tile, TileMatmul
from tilewright.ir.primitives.products import MultiplyRows
from tilewright.machine.cache import Cache
from tilewright.machine.catalog import find_machine
from tilewright.macro.blocking import Blocking
from tilewright.ops.gemm.nest import build_gemm
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import F32
from tilewright.spec.problem import PRODUCT_SIZES, Strategy
from tilewright.spec.weights import Elements

ONE = Constant(1)


def part(name: str, offset: int, first: int, second: int, interleave: int = 1) -> Slice:
    return Slice(name, Constant(offset), (Constant(first), Constant(second)), interleave=interleave)


def program(*body: Statement) -> Program:
    buffers = tuple(Buffer(name, F32, Space.ARGUMENT) for name in "abc")
    return Program("p", ("n",), (), buffers, body)


def touched(*body: Statement) -> list[str]:
    """Buffer and element of each access, for a size of n = 2."""
    whole = program(*body)
    found = [address for group in accesses(whole, {"n": 2}, {}) for address in group.tolist()]
    return [f"{buffer_of(whole, address)}{address % APART // 4}" for address in found]


def product(depth: int, a: Slice, b: Slice) -> TileMatmul:
    tile = Tile(2, 2)
    return TileMatmul(
        part("c", 7, 10, 1), a, b, Constant(2), ONE, Constant(depth), tile, Scalar(1.0), Scalar(0.0)
    )


def test_a_tile_goes_depth_by_depth_and_then_to_c() -> None:
    found = touched(product(2, part("a", 0, 100, 1), part("b", 5, 1, 30)))
    assert found == ["a0", "a100", "b5", "a1", "a101", "b35", "c7", "c17"]
    assert touched(product(0, part("a", 0, 100, 1), part("b", 5, 1, 30))) == ["c7", "c17"]


def test_adjacent_depths() -> None:
    found = touched(product(3, part("a", 0, 2, 8, interleave=2), part("b", 0, 1, 1)))
    assert [one for one in found if one[0] == "a"] == ["a0", "a2", "a1", "a3", "a8", "a10"]


def test_loops_run_whole_and_inside_out() -> None:
    copy = Pack(
        Slice("b", Name("i") * 4, (ONE, ONE)), Slice("a", Name("j"), (Constant(10), ONE)), ONE, ONE, panel=2
    )
    inner = Loop("j", Constant(0), Name("n"), ONE, (copy,))
    assert touched(Loop("i", ONE, Constant(5), Constant(2), (inner,))) == [
        *("a0", "b4", "b5", "a1", "b4", "b5"),
        *("a0", "b12", "b13", "a1", "b12", "b13"),
    ]


def test_a_copy_reads_blocks_of_depths_and_fills_panels() -> None:
    copy = Pack(part("b", 0, 1, 1), part("a", 0, 100, 1), Constant(3), Constant(9), panel=2, unit=4)
    found = touched(copy)
    reads, writes = found[:27], found[27:]
    assert reads[:9] == [*(f"a{p}" for p in range(8)), "a100"]
    assert reads[-3:] == ["a8", "a108", "a208"]
    assert writes == [f"b{place}" for place in range(2 * 2 * 12)]


def test_primitives_without_a_description_are_refused() -> None:
    words = part("b", 0, 1, 1)
    stored = Stored(Elements.I4)
    for statement in (
        Pack(part("b", 0, 1, 1), part("a", 0, 1, 1), ONE, ONE, panel=2, stored=stored),
        TileMatmul(
            part("c", 0, 1, 1),
            *(words, words, ONE, ONE, ONE, Tile(1, 1), Scalar(1.0), Scalar(0.0)),
            stored=stored,
        ),
        product(1, Slice("a", ONE, (ONE, ONE), index=ONE), words),
        MultiplyRows(words, words, words, ONE, ONE),
    ):
        with pytest.raises(InvalidTileIr):
            touched(statement)


@pytest.mark.parametrize("strategy", [Strategy.TILING, Strategy.PACKING, Strategy.AUTO])
@pytest.mark.parametrize("sizes", [(1, 9, 3), (13, 40, 70), (40, 1, 20), (30, 50, 1)])
def test_a_product_touches_its_operands_and_nothing_else(
    strategy: Strategy, sizes: tuple[int, int, int]
) -> None:
    machine = find_machine("x86-64-v3")
    blocking = Blocking(mr=6, nr=16, kr=1, mc=12, nc=32, kc=32)
    nest = build_gemm(Gemm(strategy=strategy), blocking, machine, "product")
    m, n, k = sizes
    values = (m, n, k, k + 3, 1, n + 5, 1, n + 7, 1)
    found: Counter[int] = Counter()
    named = dict(zip(PRODUCT_SIZES, values, strict=True))
    for group in accesses(nest, named, {"alpha": 1.0, "beta": 0.0}):
        found.update(group.tolist())
    operands: dict[str, set[int]] = {}
    for address in found:
        operands.setdefault(buffer_of(nest, address), set()).add(address % APART // 4)
    for name, rows, columns, stride in (("a", m, k, k + 3), ("b", k, n, n + 5), ("c", m, n, n + 7)):
        assert operands[name] == {i * stride + j for i in range(rows) for j in range(columns)}, name


# --- caches ---------------------------------------------------------------------------------------


def lines(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(numbers, np.int64) * 64


def test_the_least_recently_used_line_goes() -> None:
    caches = CacheHierarchy(Cache(2 * 64, ways=2, line=64), Cache(8 * 64, ways=2, line=64))
    caches.touch(lines(0, 1, 0, 2, 0, 1), APART)
    # 2 takes the place of 1, which was used longer ago than 0, and 1 that of 2; L2 has four sets.
    assert [sum(level.values()) for level in caches.brought] == [4, 3]


def test_lines_of_one_set_evict_each_other() -> None:
    caches = CacheHierarchy(Cache(16 * 64, ways=4, line=64))
    for _ in range(3):
        caches.touch(lines(0, 4, 8, 12), APART)
    assert caches.brought[0].total() == 4
    for _ in range(3):
        caches.touch(lines(0, 4, 8, 12, 16), APART)
    # The first four are there once more; from then on, each goes just before its turn.
    assert caches.brought[0].total() == 4 + 1 + 5 + 5


def test_accesses_are_counted_by_place() -> None:
    caches = CacheHierarchy(Cache(4 * 64, ways=4, line=64))
    caches.run([lines(0, 0, 1), lines(1, 3)], 2 * 64)
    assert caches.brought[0] == {0: 2, 1: 1}
