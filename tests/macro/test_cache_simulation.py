"""The model's claims about caches against a simulation of them, fed with what tile IR touches.

The caches are those of each row of cores with fewer sets: ways and lines, which decide about conflicts, are
kept, and so are the proportions of the levels. Strides are a line more than what the caches repeat at, or
exactly that, as powers of two are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from cache_simulator import CacheHierarchy
from tiers import sampled

from tilewright.ir.accesses import APART, accesses, buffer_of
from tilewright.ir.nodes import Program
from tilewright.machine.cache import Cache
from tilewright.machine.catalog import CATALOG, find_machine
from tilewright.machine.core_rows import CORES
from tilewright.machine.cores import Core
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, choose_blocking
from tilewright.macro.cost import InPlaceLimits, in_place_limits, rows_held
from tilewright.macro.prediction import Path
from tilewright.ops.gemm.nest import build_gemm
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import F32
from tilewright.spec.problem import PRODUCT_SIZES, ProductTypes, Strategy

#: Sets of L1 of the scaled caches, and at most of the other levels.
SETS, MOST_SETS = 8, 1024

each_core = pytest.mark.parametrize("core", sampled(CORES, 2), ids=lambda core: core.name)
#: Cores that read operands in place: units with accumulators of their own read panels.
each_core_in_place = pytest.mark.parametrize(
    "core",
    sampled((core for core in CORES if core.name not in ("Apple M4", "POWER10")), 2),
    ids=lambda core: core.name,
)


def machine_of(core: Core) -> Machine:
    """A machine with a core: a named one, or one of its architecture and its vectors with its caches."""
    for entry in CATALOG:
        if entry.machine.core == core:
            return entry.machine
    wide = core.vectors[-1].bits == 512
    base = "apple-m1" if core.name.startswith("Apple") else "x86-64-v4" if wide else "x86-64-v3"
    return replace(find_machine(base), core=core, l1=core.l1, l2=core.l2, l3=core.l3)


@dataclass(frozen=True)
class Small:
    """A machine whose caches are scaled down, and how it cuts products of float32."""

    machine: Machine
    blocking: Blocking
    limits: InPlaceLimits

    @classmethod
    @cache
    def of(cls, core: Core) -> Small:
        machine = machine_of(core)
        parts = max(1, machine.l1.sets // SETS)

        def smaller(cache: Cache) -> Cache:
            sets = min(max(1, cache.sets // parts), MOST_SETS)
            return Cache(sets * cache.ways * machine.l1.line, cache.ways, machine.l1.line)

        l3 = None if machine.l3 is None else smaller(machine.l3)
        return cls.on(replace(machine, l1=smaller(machine.l1), l2=smaller(machine.l2), l3=l3))

    @classmethod
    def on(cls, machine: Machine) -> Small:
        """A machine with its caches as they are."""
        instruction = machine.isa.tile(F32)
        blocking = choose_blocking(machine, instruction)
        types = ProductTypes.parse(F32, F32, F32)
        return cls(machine, blocking, in_place_limits(machine, instruction, blocking.mr, blocking.nr, types))

    @property
    def levels(self) -> list[Cache]:
        """The caches, nearest first."""
        return [level for level in (self.machine.l1, self.machine.l2, self.machine.l3) if level is not None]

    @property
    def line(self) -> int:
        """Elements of a line."""
        return self.machine.l1.line // 4

    def stride(self, columns: int, period: Cache, *, padded: bool) -> int:
        """A leading dimension of at least so many columns: a multiple of what a way spans, or a line more."""
        way = period.size // period.ways // 4
        return -(-columns // way) * way + (self.line if padded else 0)

    def simulate(
        self,
        strategy: Strategy,
        sizes: tuple[int, int, int],
        lda: int,
        ldb: int,
        *,
        transposed: bool = False,
        only: Path | None = None,
    ) -> dict[str, list[int]]:
        """Lines that each buffer brought from L2, L3 and memory: what the level before lacked."""
        problem = Gemm(strategy=strategy, a="col" if transposed else "row")
        program = build_gemm(problem, self.blocking, self.machine, "product", only=only)
        strides_a = (1, lda) if transposed else (lda, 1)
        values = (*sizes, *strides_a, ldb, 1, sizes[1] + self.line, 1)
        named = dict(zip(PRODUCT_SIZES, values, strict=True))
        caches = CacheHierarchy(*self.levels)
        caches.run(accesses(program, named, {"alpha": 1.0, "beta": 0.0}), APART)
        return by_buffer(program, caches)


def by_buffer(program: Program, caches: CacheHierarchy) -> dict[str, list[int]]:
    places = sorted({place for level in caches.brought for place in level})
    return {buffer_of(program, place * APART): [level[place] for level in caches.brought] for place in places}


@pytest.mark.parametrize("core", sampled(CORES, 3), ids=lambda core: core.name)
def test_lines_at_equal_distances(core: Core) -> None:
    """`rows_held` lines stay from one pass to the next; of more, those in one set evict each other."""
    for level in Small.of(core).levels:
        for lines in (1, 3, 4, level.sets // 2, level.sets, 3 * level.sets, level.sets + 1):
            held = rows_held(lines * level.line, level)
            for count, stay in ((held, True), (held + level.ways * SETS, False)):
                caches = CacheHierarchy(level)
                addresses = np.arange(count, dtype=np.int64) * lines * level.line
                for _ in range(2):
                    caches.touch(addresses, APART)
                again = caches.brought[0][0] - count
                assert (again == 0) is stay, (level, lines, count)


@each_core_in_place
def test_rows_of_a_tile_in_one_set(core: Core) -> None:
    """A tile's rows stay in L1 from depth to depth, unless `rows_in_one_set` says at which stride not."""
    small = Small.of(core)
    blocking, l1 = small.blocking, small.machine.l1
    sizes = (2 * blocking.mr, 2 * blocking.nr, 4 * small.line)
    ldb = small.stride(sizes[1], l1, padded=True)
    apart, together = (
        small.simulate(Strategy.TILING, sizes, small.stride(sizes[2], l1, padded=padded), ldb)["a"][0]
        for padded in (True, False)
    )
    compulsory = sizes[0] * 4
    assert compulsory <= apart <= 3 * compulsory
    stay = together <= 1.1 * apart
    if small.limits.rows_in_one_set == 0:
        assert stay != core.full_sets_in_place  # which was measured: LRU would lose these rows
    else:  # between the two, what passes by decides
        assert blocking.mr > l1.ways - 2
        assert blocking.mr < l1.ways or not stay
        assert small.stride(sizes[2], l1, padded=False) % small.limits.rows_in_one_set == 0


@each_core_in_place
def test_rows_of_b_in_l2(core: Core) -> None:
    """A slice of B in place comes again for each row of tiles where L2 does not hold rows at its stride."""
    small = Small.of(core)
    machine, blocking = small.machine, small.blocking
    sizes = (3 * blocking.mr, 2 * blocking.nr, min(blocking.kc, 96))
    l2 = machine.l2
    lda = small.stride(sizes[2], machine.l1, padded=True)
    compulsory = -(-sizes[1] // small.line) * sizes[2]
    checked = 0
    for period, padded in ((machine.l1, True), (machine.l1, False), (l2, False)):
        ldb = small.stride(sizes[1], period, padded=padded)
        held = rows_held(4 * ldb, l2)
        brought = small.simulate(Strategy.TILING, sizes, lda, ldb)["b"][1]
        if 2 * sizes[2] <= held:
            assert brought <= 1.3 * compulsory
            checked += 1
        elif sizes[2] >= 2 * held:
            assert brought >= 2 * compulsory
            checked += 1
    assert checked >= 2


@each_core_in_place
def test_a_strip_of_a_comes_once(core: Core) -> None:
    """`auto` packs B and leaves A in place, strip by strip: each line comes from memory, and to L2, once."""
    small = Small.of(core)
    blocking, limits = small.blocking, small.limits
    depth = min(4 * small.line, blocking.kc)
    rows = -(-(limits.few_rows + 1) // blocking.mr) * blocking.mr
    columns = max(limits.few_columns + blocking.nr, limits.in_place_b // depth + blocking.nr)
    columns = -(-columns // blocking.nr) * blocking.nr
    l1 = small.machine.l1
    ldb = -(-columns // limits.one_set) * limits.one_set  # so that B is packed
    found = small.simulate(Strategy.AUTO, (rows, columns, depth), small.stride(depth, l1, padded=True), ldb)
    compulsory = rows * -(-depth // small.line)
    assert set(found) == {"a", "b", "b_pack", "c"}
    assert found["a"][1:] == [compulsory] * (len(small.levels) - 1)
    # Where rows of a tile evict each other, A is packed instead.
    found = small.simulate(Strategy.AUTO, (rows, columns, depth), small.stride(depth, l1, padded=False), ldb)
    assert ("a_pack" in found) is (limits.rows_in_one_set > 0)


@each_core_in_place
def test_strips_of_a_transposed_a(core: Core) -> None:
    """L1 keeps the lines of `depths_of_strip` depths of A while panels pass, not of three times as many."""
    machine = machine_of(core)  # scaled, L1 would hold little but a tile of C
    machine = replace(machine, l2=replace(machine.l2, line=machine.l1.line), l3=None)
    small = Small.on(machine)
    blocking, limits = small.blocking, small.limits
    rows = limits.strip
    columns = 4 * blocking.nr
    lda = small.stride(rows, small.machine.l1, padded=True)
    ldb = small.stride(columns, small.machine.l1, padded=True)
    for times, kept in ((1, True), (3, False)):
        depth = min(times * limits.depths_of_strip, blocking.kc)
        found = small.simulate(
            Strategy.AUTO, (rows, columns, depth), lda, ldb, transposed=True, only=Path.STRIPS
        )
        lines = depth * -(-rows // small.line)
        assert "a_pack" not in found
        assert (found["a"][0] <= 2 * lines) is kept, (times, found["a"], lines)


@each_core
def test_packed_blocks_stay(core: Core) -> None:
    """The packed block of A stays in L2 while the micro-panels of B go by, and all of these in L3."""
    small = Small.of(core)
    blocking, line = small.blocking, small.machine.l1.line
    depth = min(blocking.kc, 4 * small.line)
    sizes = (2 * blocking.mc, 4 * blocking.nr, depth)
    strides = [small.stride(columns, small.machine.l1, padded=True) for columns in (depth, sizes[1])]
    found = small.simulate(Strategy.PACKING, sizes, *strides)
    block, panel = (4 * extent * depth // line for extent in (blocking.mc, sizes[1]))
    assert found["a_pack"][1] <= 1.5 * block + 8
    if small.machine.l3 is not None:
        assert found["b_pack"][2] <= 1.1 * panel + 8
    # Each line of an operand is copied once.
    assert found["a"][-1] == sizes[0] * -(-depth // small.line)
