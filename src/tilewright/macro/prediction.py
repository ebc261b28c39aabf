"""Predicted cycles of a product by each path through the loops, in terms of the machine's core and caches.

A path moves operands between levels of the memory in its own way. Cycles are those of the multiply unit, of
what happens once for each register tile, of copies into panels, and of the bytes that come from each level
and are not hidden behind multiply-adds.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import ceil
from typing import NamedTuple

from tilewright.ir.partial_tiles import covering
from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking
from tilewright.macro.cost import KEPT_SHARE, rows_held
from tilewright.macro.levels import Cycles, level_of, waited_cycles
from tilewright.macro.register_tiles import depth_step, dots_visit, few_lines_visit, tile_visit
from tilewright.records import dataclass
from tilewright.spec.problem import ProductTypes

#: Time to pack rows of a row-major A, which are interleaved, over `pack_cycles`: 2.2 cycles an element on a
#: Zen 3, over the 0.8 of the rows.
TRANSPOSED_PACKING = 2.5

#: Share of the time of lines that no prefetcher brings in which multiply-adds wait: fitted to the squares and
#: skewed products in place of benchmarks/predictions.py on a Zen 3.
LINES_WAITED = 0.6


#: Slices of B above which A is packed once for all of them. Times of `packing` over those of packing A once:
#: 1000x200x1000, two slices, 0.95; 64x300x1000, three, 1.17 (float32, A transposed, Emerald Rapids).
SLICES = 2


class Path(Enum):
    """What a nest for any sizes does with its operands, in words."""

    DOTS = "dot products: A is read once, along the depth"
    FEW_ROWS = "few rows: B is read along the depth, transposed in registers"
    FEW_COLUMNS = "few columns: A is read along the depth, transposed in registers"
    STREAMING = "rows of B are read once and added to sums in cache"
    COPYING = "both operands in place for the first rows, whose tiles copy B for the others"
    IN_PLACE = "both operands in place"
    STRIPS = "B packed, A in place strip by strip"
    PACKED = "both operands packed"


class Product(NamedTuple):
    """The sizes and strides of one product, in elements."""

    m: int
    n: int
    k: int
    rs_a: int
    cs_a: int
    rs_b: int
    cs_b: int
    rs_c: int
    cs_c: int

    @classmethod
    def contiguous(cls, m: int, n: int, k: int) -> Product:
        """Row-major operands without gaps."""
        return cls(m, n, k, k, 1, n, 1, n, 1)

    def of_numbers(self, parts: int) -> Product:
        """The real product that one of elements of so many numbers is: see `Parts`.

        >>> Product.contiguous(4, 5, 6).of_numbers(2)
        Product(m=4, n=10, k=12, rs_a=12, cs_a=1, rs_b=10, cs_b=1, rs_c=10, cs_c=1)
        """
        m, n, k, *strides = self
        steps = [step if step == 1 else step * parts for step in strides]
        return Product(m, n * parts, k * parts, *steps)


@dataclass(frozen=True)
class CutProduct:
    """What predictions of products on a machine share.

    Attributes
    ----------
    machine : whose core and caches decide.
    instruction, blocking : the multiply instruction and how products are cut.
    types : element types of the operands.
    strip : rows of A that meet all of B before the next ones, on the path that has strips.
    strip_slice : elements of packed panels that those strips meet at a time; 0 for whole blocks of columns.
    depths_of_strip : depths of such rows that L1 keeps, where depths are not adjacent.
    """

    machine: Machine
    instruction: TileFma
    blocking: Blocking
    types: ProductTypes
    strip: int
    strip_slice: int
    depths_of_strip: int

    # --- bytes --------------------------------------------------------------------------------------------

    def _level(self, size_bytes: float) -> str:
        """The level that holds some bytes which are read again and again."""
        return level_of(self.machine, size_bytes)

    def _waited(self, bytes_by_level: dict[str, float], busy: float) -> dict[str, float]:
        """Cycles that multiply-adds wait for bytes of each level, while they take `busy` cycles."""
        return waited_cycles(self.machine, bytes_by_level, busy)

    @staticmethod
    def _sum(*streams: tuple[str, float]) -> dict[str, float]:
        """Bytes of some streams by level."""
        found: dict[str, float] = {}
        for level, count in streams:
            found[level] = found.get(level, 0.0) + count
        return found

    def _sizes(self, product: Product) -> tuple[float, float, float]:
        """Bytes of A, B and C."""
        m, n, k = product[:3]
        types = self.types
        return m * k * types.a.size, k * n * types.b.size, m * n * types.c.size

    # --- register tiles -----------------------------------------------------------------------------------

    def _tiles(self, product: Product, *, from_l2: Callable[[int], float], a_in_place: bool = True) -> Cycles:
        """Cycles of all register tiles; `from_l2` gives bytes that one reads from L2 in each depth."""
        nr = self.blocking.nr
        whole, rest = divmod(product.n, nr)
        widths = {nr: whole} if whole else {}
        widths |= {rest: 1} if rest else {}
        blocks = ceil(product.k / self.blocking.kc) if product.k else 1
        depth = min(product.k, self.blocking.kc)
        found = Cycles()
        repeats = a_in_place and not self.instruction.is_matrix_engine
        for height, count in covering(product.m, self.blocking.mr, repeats=repeats).items():
            feed = from_l2(height) / self.machine.core.l2_bytes_per_cycle
            for width, times in widths.items():
                one = tile_visit(self.machine, self.instruction, height, width, depth)
                step = depth_step(self.machine, self.instruction, height, width)
                late = max(feed - step.multiply - step.l1, 0.0)
                arithmetic = Cycles(step.multiply, l1=step.l1, l2=late)
                visits = Cycles(tiles=one.tiles * blocks)
                found = found.plus(arithmetic, count * times * product.k).plus(visits, count * times)
        return found

    def _panel_feed(self, kc: int) -> Callable[[int], float]:
        """Bytes from L2 in each depth of a tile: of B and A where L1 does not keep them from tile to tile."""
        types, l1, nr = self.instruction, self.machine.l1.size, self.blocking.nr
        panel = types.b.bytes(nr * kc)

        def from_l2(height: int) -> float:
            rows = types.a.bytes(height * kc)
            if panel + rows <= l1:
                return rows / kc
            return (panel + rows) / kc

        return from_l2

    # --- paths --------------------------------------------------------------------------------------------

    def predict(self, path: Path, product: Product) -> Cycles:
        """Predicted cycles of a product on one path."""
        match path:
            case Path.STRIPS:
                return self._strips(product)
            case Path.PACKED:
                return self._packed(product)
            case Path.IN_PLACE:
                return self._in_place(product)
            case Path.COPYING:
                return self._copying(product)
            case Path.STREAMING:
                return self._streaming(product)
            case Path.DOTS:
                return self._dots(product)
            case Path.FEW_ROWS:
                return self._few_lines(product, product.m, product.n)
            case Path.FEW_COLUMNS:
                return self._few_lines(product, product.n, product.m)

    def _packing(self, elements: float, size: int, source: str) -> tuple[float, tuple[str, float]]:
        """Cycles to copy elements into panels, and the bytes that come from where they are."""
        return elements * self.machine.core.pack_cycles, (source, elements * size)

    def _strips(self, product: Product) -> Cycles:
        m, n, k = product[:3]
        a, b, c = self._sizes(product)
        cut = self.blocking
        kc = max(min(cut.kc, k), 1)
        tiles = self._tiles(product, from_l2=self._panel_feed(kc))
        packing, read = self._packing(k * n, self.types.b.size, self._level(b))
        nc = min(cut.nc, ceil(self.strip_slice / kc)) if self.strip_slice else cut.nc
        panels = self.instruction.b.bytes(kc * min(n, nc))
        blocks = max(ceil(k / cut.kc), 1)
        streams = self._sum(
            read,
            (self._level(panels), ceil(m / self.strip) * self.instruction.b.bytes(k * n)),
            (self._level(a), a * ceil(n / nc)),
            (self._level(c), c * (2 * blocks - 1)),
        )
        waited = self._waited(streams, tiles.total)
        lost = self._a_conflicts(product, kept=kc <= self.depths_of_strip) * ceil(n / cut.nr)
        return tiles.plus(Cycles(tiles=lost, packing=packing, **waited))

    def _copying(self, product: Product) -> Cycles:
        """B arrives while the first rows are multiplied; the others find its panels in L2."""
        m, n, k = product[:3]
        a, b, c = self._sizes(product)
        cut = self.blocking
        tiles = self._tiles(product, from_l2=self._panel_feed(max(min(cut.kc, k), 1)))
        first = self._tiles(product._replace(m=min(cut.mr, m)), from_l2=lambda _: 0.0)
        blocks, rows_of_a = max(ceil(k / cut.kc), 1), m * min(cut.kc, k) * self.types.a.size
        others = self._sum(
            (self._level(rows_of_a), a * ceil(n / cut.nr)),
            (self._level(c), c * (2 * blocks - 1)),
        )
        waited = self._waited(others, tiles.total)
        return tiles.plus(Cycles(**waited)).plus(Cycles(**self._waited({self._level(b): b}, first.total)))

    def _a_conflicts(self, product: Product, *, kept: bool) -> float:
        """Cycles that tiles wait for lines of A that L1 lost, for one pass over the rows.

        `kept` says whether L1 has room for the lines of all depths, where depths are not adjacent.
        """
        core, l1 = self.machine.core, self.machine.l1
        size = self.types.a.size
        if product.cs_a == 1:
            if rows_held(product.rs_a * size, l1) >= min(self.blocking.mr, product.m):
                return 0.0
            return product.m * ceil(product.k * size / l1.line) * core.set_conflict_cycles
        tile = max(min(self.blocking.mr, product.m), 1)
        adjacent = min(
            1.0, product.rs_a * size / l1.line
        )  # of two rows of a depth: share of a line between them
        lines = ceil(product.m / tile) * product.k * (1 + (tile - 1) * adjacent)
        depths = max(min(self.blocking.kc, product.k), 1)
        if rows_held(product.cs_a * size, l1) < depths:
            return lines * core.l2_line_cycles * LINES_WAITED
        return lines * l1.line / core.l2_bytes_per_cycle * (0.0 if kept else LINES_WAITED)

    def packs_once(self, product: Product) -> bool:
        """Whether A is packed once for slices of B, where both are packed."""
        kc = min(self.blocking.kc, product.k)
        return 0 < SLICES * self.strip_slice < product.n * kc

    def _packed(self, product: Product) -> Cycles:
        m, n, k = product[:3]
        if self.packs_once(product):
            size = self.types.a.size
            once, read_once = self._packing(m * k, size, self._level(m * k * size))
            once *= TRANSPOSED_PACKING if product.cs_a == 1 else 1.0
            strips = self._strips(product._replace(rs_a=min(self.blocking.kc, k), cs_a=1))
            return strips.plus(Cycles(packing=once, **self._waited(self._sum(read_once), 0.0)))
        a, b, c = self._sizes(product)
        cut, core = self.blocking, self.machine.core
        kc = max(min(cut.kc, k), 1)
        tiles = self._tiles(product, from_l2=self._panel_feed(kc), a_in_place=False)
        of_b, read_b = self._packing(k * n, self.types.b.size, self._level(b))
        of_a, read_a = self._packing(m * k * ceil(n / cut.nc), self.types.a.size, self._level(a))
        of_a *= TRANSPOSED_PACKING if product.cs_a == 1 else 1.0
        panels = self.instruction.b.bytes(kc * min(n, cut.nc))
        blocks = max(ceil(k / cut.kc), 1)
        streams = self._sum(
            read_a,
            read_b,
            (self._level(panels), ceil(m / cut.mc) * self.instruction.b.bytes(k * n)),
            (self._level(c), c * (2 * blocks - 1)),
        )
        waited = self._waited(streams, tiles.total)
        # A block has more rows than prefetchers follow.
        lines = self._lines_of_c(product)
        return (
            tiles.plus(Cycles(packing=of_a + of_b + core.nest_cycles))
            .plus(Cycles(**waited))
            .plus(lines, LINES_WAITED)
        )

    def _in_place(self, product: Product) -> Cycles:
        m, n, k = product[:3]
        a, b, _ = self._sizes(product)
        cut = self.blocking
        kc = max(min(cut.kc, k), 1)
        tiles = self._tiles(product, from_l2=self._panel_feed(kc))
        across = ceil(n / cut.nr)
        rows_of_a = (self._level(m * kc * self.types.a.size), a * across)
        if product.cs_b == 1:
            packing, lines = 0.0, self._lines_of_b(product)
        else:  # each micro-panel is copied before its column of tiles
            packing, lines = self._packing(k * n, self.types.b.size, "l2")[0], Cycles()
        waited = self._waited(self._sum(rows_of_a, (self._level(b), b)), tiles.total)
        lost = self._a_conflicts(product, kept=m * kc * self.types.a.size <= self.machine.l1.size) * across
        found = tiles.plus(Cycles(tiles=lost, packing=packing, **waited))
        return found.plus(lines).plus(self._lines_of_c(product))

    def _lines_of_b(self, product: Product) -> Cycles:
        """Cycles that tiles wait for B in place: a row of a micro-panel is a line of its own, or a few.

        No prefetcher brings the first one, the others come with it. They survive from tile to tile if L1 has
        the sets and the room for them.
        """
        core, l1, cut, size = self.machine.core, self.machine.l1, self.blocking, self.types.b.size
        m, n, k = product[:3]
        kc, width = min(cut.kc, k), min(cut.nr, n)
        a_row = max(1, ceil(width * size / l1.line))
        adjacent = min(1.0, product.rs_b * size / l1.line)
        lines = k * adjacent * ceil(n / cut.nr)
        held = rows_held(product.rs_b * size, l1) * a_row >= kc * adjacent
        survive = held and kc * width * size <= KEPT_SHARE * l1.size
        in_l2 = self._level(k * n * size) == "l2"
        first = 0.0 if k * n * size <= l1.size else core.l2_line_cycles if in_l2 else core.l3_line_cycles
        again = 0.0 if survive else (ceil(m / cut.mr) - 1) * core.l2_line_cycles
        own_pages = product.rs_b * size >= self.machine.page_bytes
        walks = core.page_walk_cycles if own_pages and kc > core.tlb_pages[0] > 0 else 0.0
        visits = 1 if survive else ceil(m / cut.mr)
        waited = lines * LINES_WAITED
        far = 0.0 if in_l2 else first
        return Cycles(l2=waited * (first - far + again), l3=waited * far, tlb=waited * walks * visits)

    def _lines_of_c(self, product: Product) -> Cycles:
        """Cycles that columns of tiles wait for lines of C beyond L2, which are a row apart."""
        core, l1, cut, size = self.machine.core, self.machine.l1, self.blocking, self.types.c.size
        m, n, k = product[:3]
        if self._level(m * n * size) == "l2":
            return Cycles()
        lines = m * n * size / l1.line * ceil(k / cut.kc)
        own_pages = product.rs_c * size >= self.machine.page_bytes and m > core.tlb_pages[0] > 0
        return Cycles(l3=lines * core.l3_line_cycles, tlb=lines * core.page_walk_cycles * own_pages)

    def _streaming(self, product: Product) -> Cycles:
        m, n, k = product[:3]
        _, b, _ = self._sizes(product)
        isa, core = self.machine.timed_isa, self.machine.core
        vectors = k * ceil(n / isa.lanes(self.instruction.acc))
        # Two rows share a load of B, which comes from L2 for all but the first two; sums are loaded and
        # stored once in 8 depths.
        multiply = m * vectors / isa.rate(self.instruction)
        loads = (ceil(m / 2) + m * 2 / 8) * vectors / isa.loads_per_cycle
        again = (ceil(m / 2) - 1) * b / core.l2_bytes_per_cycle
        waited = Cycles(**self._waited({self._level(b): b}, 0.0))
        late = max(loads - multiply, 0.0)
        return waited.plus(Cycles(multiply, tiles=core.nest_cycles, l1=late, l2=again))

    def _dots(self, product: Product) -> Cycles:
        """The matrix of a matrix-vector product is read once, one or more loads for each vector of it."""
        a, _, _ = self._sizes(product)
        busy = dots_visit(self.machine, self.instruction, product.m * product.n * product.k)
        waited = self._waited({self._level(a): a}, busy.total)
        return busy.plus(Cycles(tiles=self.machine.core.kernel_call_cycles, **waited))

    def _few_lines(self, product: Product, count: int, lines: int) -> Cycles:
        """Few rows or columns beside lines of the other operand, which are read once."""
        size, k = self.types.a.size, product.k
        tiles = ceil(lines / self.machine.timed_isa.lanes(self.instruction.acc))
        busy = Cycles().plus(few_lines_visit(self.machine, self.instruction, count, k), tiles)
        packing, _ = self._packing(count * k, size, "l2")
        read = float(lines * k * size)
        waited = self._waited({self._level(read): read}, busy.total)
        return busy.plus(Cycles(packing=packing, **waited))
