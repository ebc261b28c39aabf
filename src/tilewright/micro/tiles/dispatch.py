"""One register tile for sizes given at run time: a function that picks among straight-line tiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT64, POINTER, VOID, Type, Value, int64, memory_type, zero
from tilewright.machine.isa import Edge
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.tiles.epilogue import Given, Reach, steps_name
from tilewright.micro.tiles.kernel import (
    Ahead,
    GroupCall,
    KeptSums,
    MicroKernel,
    PanelCall,
    Part,
    TileCall,
)
from tilewright.preparing import importing
from tilewright.spec.epilogue import Epilogue

if TYPE_CHECKING:
    from tilewright.micro.tiles.steps import TileSteps

#: Heights of the partial tiles: four rows of two vectors fill both FMA pipes for their whole latency, so
#: that more heights would gain little, and each costs 6 ms of the first call.
PARTIAL_HEIGHTS = (8, 4, 2, 1)


class DispatchedWeights(NamedTuple):
    """What a tile of a packed weight takes beside other tiles.

    panels : B stands in words of one panel. scales : groups of depths have scales. zeros : and zero points.
    """

    panels: bool = False
    scales: bool = False
    zeros: bool = False


_PLAIN = DispatchedWeights()


class TileStrides(NamedTuple):
    """Strides in elements that all calls of a tile agree on, and that are known; None for others.

    a_lane : from row to row of A. a_depth, b_depth : from one step of the depth to the next.
    c_column : from column to column of C.
    """

    a_lane: int | None = None
    a_depth: int | None = None
    b_depth: int | None = None
    c_column: int | None = None


_AT_RUN_TIME = TileStrides()


class Dispatch:
    """The functions of one tile in a module: one for each height, and the one that calls them.

    Parameters
    ----------
    kernel : the register tile.
    pairs : elements of C are pairs of numbers: two columns of the tile are adjacent whatever the stride.
    carries : sums are kept outside of C between depth blocks.
    known : strides that all calls agree on: their addresses are constants, which compile sooner.
    weights : what tiles of packed weights take.
    fetched : bytes of an element of what is fetched in place of C; 0 where C is.
    finish : steps on whole tiles, in registers: `emit_whole` alone.
    padded : A and B have all rows and columns of the tile, those that C lacks like its last ones.
    """

    def __init__(
        self,
        kernel: MicroKernel,
        *,
        pairs: bool = False,
        carries: bool = False,
        known: TileStrides = _AT_RUN_TIME,
        weights: DispatchedWeights = _PLAIN,
        fetched: int = 0,
        finish: tuple[Given, ...] = (),
        padded: bool = False,
    ) -> None:
        self.kernel, self.pairs, self.carries, self.known = kernel, pairs, carries, known
        self.weights, self.fetched, self.finish = weights, fetched, finish
        self.padded = padded
        self.isa, self.tile, self.element = kernel.isa, kernel.tile, kernel.element
        self.edge = kernel.edge

    @property
    def name(self) -> str:
        """The name of the dispatching function in a module."""
        known = "".join(f"_{name}{step}" for name, step in zip("labc", self.known, strict=True) if step)
        weights = "_scaled" * self.weights.scales + "_zeros" * self.weights.zeros
        fetched = f"_fetch{self.fetched}" if self.fetched else ""
        marks = f"{'_pairs' * self.pairs}{'_carry' * self.carries}{weights}{fetched}{'_padded' * self.padded}"
        return f"{self.kernel.name}{known}{marks}{steps_name(self.finish)}"

    def row_variants(self) -> tuple[int, ...]:
        """Heights of the straight-line tiles, tallest first; any height is a sum of them.

        Units that multiply several rows at once have only heights of whole operations.

        >>> from tilewright.ir.nodes import Tile
        >>> from tilewright.machine.isa import AVX512
        >>> from tilewright.micro.tiles.kernel import Source
        >>> from tilewright.micro.tiles.vector import VectorKernel
        >>> from tilewright.spec.dtype import F32
        >>> operands = (Source(F32), Source(F32))
        >>> kernel = VectorKernel(AVX512, AVX512.tile(F32), Tile(12, 32), operands, F32, adjacent_a=False)
        >>> Dispatch(kernel).row_variants()
        (12, 8, 4, 2, 1)
        """
        unit = self.kernel.instruction.m
        if self.padded:
            return (self.tile.mr, *self._padded_height())
        return (
            self.tile.mr,
            *(height for height in PARTIAL_HEIGHTS if height < self.tile.mr and height % unit == 0),
            *((unit,) if unit > max(PARTIAL_HEIGHTS) and unit < self.tile.mr else ()),
        )

    def _padded_height(self) -> tuple[int, ...]:
        """The height that takes fewer rows: one for all where rows may be computed that nobody asked for.

        The least whose sums keep the unit busy, since fewer take as long; else the largest. It divides the
        tile's, so that no row is read which the panel lacks.
        """
        isa, mr = self.isa, self.tile.mr
        heights = [height for height in range(2, mr) if mr % height == 0]
        busy = isa.fma_per_cycle * isa.fma_latency
        enough = [height for height in heights if height * self.kernel.vectors >= busy]
        return tuple(enough[:1] or heights[-1:])

    def parts(self, rows: int) -> tuple[Part, ...]:
        """The column variants of one height, in the order they are tested."""
        whole = (Part(rows, (self.kernel.lanes,) * self.kernel.vectors, masked=False),)
        if self.edge is Edge.SPILL:
            return whole
        counts = range(1, self.kernel.vectors + 1)
        masked = tuple(Part(rows, (self.kernel.lanes,) * vectors, masked=True) for vectors in counts)
        return (*(whole if rows == self.tile.mr and not self.padded else ()), *masked)

    def arguments(self, *sizes: str) -> list[tuple[str, Type]]:
        """The C signature of a tile function; strides are in elements."""
        return [
            *((name, INT64) for name in sizes),
            ("depth", INT64),
            ("a", POINTER),
            ("a_lane", INT64),
            ("a_depth", INT64),
            ("b", POINTER),
            ("b_depth", INT64),
            ("c", POINTER),
            ("c_row", INT64),
            *((("c_column", INT64),) if "rows" in sizes else ()),
            ("alpha", self.element),
            ("beta", self.element),
            *(_CARRY if self.carries else ()),
            *(_SCALES if self.weights.scales else ()),
            *((("zero", POINTER),) if self.weights.zeros else ()),
            *(_AHEAD if self.fetched else ()),
            *((("left", INT64),) if self.padded and "rows" not in sizes else ()),
            *((f"step{n}{part}", kind) for n in self._operands for part, kind in _OPERAND),
        ]

    @property
    def _operands(self) -> list[int]:
        """The numbers of the steps that have an operand."""
        return [number for number, given in enumerate(self.finish) if given.reach]

    def emit(self, module: Module) -> Callee:
        """Defines the functions of this tile in a module; the value to call."""
        known = module.find(self.name)
        if known is not None:
            return known
        heights = {rows: self._emit_height(module, rows) for rows in self.row_variants()}
        return self._emit_dispatch(module, heights)

    def emit_whole(self, module: Module) -> Callee:
        """Defines the function of a whole tile with adjacent columns alone; the value to call.

        It takes columns, depth, and what follows in `arguments` without the stride of columns.
        """
        known = module.find(f"{self.name}_{self.tile.mr}")
        return self._emit_height(module, self.tile.mr) if known is None else known

    def _emit_height(self, module: Module, rows: int) -> Callee:
        """One function per height; inside, one loop per column variant."""
        attributes = self.kernel.attributes
        f = module.define(f"{self.name}_{rows}", VOID, self.arguments("columns"), attributes=attributes)
        g = f.arguments
        call = TileCall(
            columns=g["columns"],
            depth=g["depth"],
            a=g["a"],
            a_lane=_known_or(self.known.a_lane, g["a_lane"]),
            a_depth=_known_or(self.known.a_depth, g["a_depth"]),
            b=g["b"],
            b_depth=_known_or(self.known.b_depth, g["b_depth"]),
            c=g["c"],
            c_row=g["c_row"],
            alpha=g["alpha"],
            beta=g["beta"],
            prefetch=True,
            carry=self._carry(f, g["sums"]) if self.carries else None,
            panels=PanelCall(self.tile.nr, int64(0)) if self.weights.panels else None,
            groups=self._groups(f) if self.weights.scales else None,
            ahead=Ahead(g["ahead"], g["ahead_row"], self.fetched) if self.fetched else None,
            steps=self._steps(f) if self.finish else None,
            padded=self.padded,
            rows=g["left"] if self.padded and rows == self.row_variants()[-1] else None,
        )
        parts = self.parts(rows)
        if self.finish:
            parts = parts[:1]
            mixed = self.kernel.acc.is_integer is not self.kernel.c.is_integer
            call = call._replace(beta=None) if mixed else call
        for part in parts[:-1]:
            limit = len(part.widths) * self.kernel.lanes
            relation = "<=" if part.masked else "=="
            with f.when(f.icmp(relation, call.columns, limit)):
                self.kernel.emit_part(f, part, call)
                f.ret()
        self.kernel.emit_part(f, parts[-1], call)
        f.ret()
        return f.callee

    def _carry(self, f: Function, sums: Value) -> KeptSums:
        """The sums outside of C, as the last arguments of a function give them."""
        first, last = (f.icmp("!=", f.arguments[name], 0) for name in ("first", "last"))
        return KeptSums(sums, f.arguments["sums_row"], first, last)

    def _steps(self, f: Function) -> TileSteps:
        """The steps of a whole tile, as the last arguments of a function give their operands."""
        with importing:
            from tilewright.micro.tiles.steps import (
                TileSteps,  # the functions, which products need not import
            )

        g = f.arguments
        operands = {
            n: (g[f"step{n}"], g[f"step{n}_row"], self.finish[n].reach is not Reach.REPEATED)
            for n in self._operands
        }
        return TileSteps(self.isa, Epilogue(given.step for given in self.finish), operands)

    def _groups(self, f: Function) -> GroupCall:
        """The scales of the tile's columns, as the last arguments of a function give them."""
        g = f.arguments
        return GroupCall(g["group"], self.tile.nr, int64(0), g["scale"], g["scale_step"], g.get("zero"))

    # --- the function that picks ------------------------------------------------------------

    def _emit_dispatch(self, module: Module, heights: dict[int, Callee]) -> Callee:
        """Covers rows × columns with the variants; columns that are not adjacent go through a buffer."""
        f = module.define(self.name, VOID, self.arguments("rows", "columns"))
        rows, columns = f.arguments["rows"], f.arguments["columns"]
        whole = f.icmp("==", columns, self.tile.nr)
        direct: list[Value] = []  # what has to hold where variants write to C themselves
        if self.known.c_column != (2 if self.pairs else 1):
            direct.append(f.icmp("==", f.arguments["c_column"], 2 if self.pairs else 1))
        full = reduce(f.and_, direct, f.and_(f.icmp("==", rows, self.tile.mr), whole))
        with f.when(full):
            target = _Target.of(f, self.kernel.c.size)
            g = f.arguments
            places = (g["a"], target.c, g.get("sums"))
            self._call(f, heights[self.tile.mr], target, (rows, int64(self.tile.nr)), places)
            f.ret()
        if self.edge is Edge.SPILL:
            direct.append(whole)
        if self.kernel.instruction.m > 1:
            last_rows = f.and_(rows, int64(self.kernel.instruction.m - 1))
            direct.append(f.icmp("==", last_rows, 0))
        if not direct:
            self._cover(f, heights, _Target.of(f, self.kernel.c.size), columns)
            f.ret()
            return f.callee
        with f.when(reduce(f.and_, direct)):
            self._cover(f, heights, _Target.of(f, self.kernel.c.size), columns)
            f.ret()
        self._spill(f, heights)
        f.ret()
        return f.callee

    def _cover(self, f: Function, heights: dict[int, Callee], target: _Target, columns: Value) -> None:
        """Calls the variants whose heights sum to the rows, tallest first."""
        g = f.arguments
        a_step = f.mul(g["a_lane"], self.kernel.a.dtype.size)
        c_step = f.mul(target.row, target.size)
        rows = g["rows"]
        state: list[Value] = [int64(0), g["a"], target.c]
        if self.carries:
            state.append(g["sums"])
            sums_step = f.mul(g["sums_row"], self.kernel.acc.size)
        unit = self.kernel.instruction.m
        for height, callee in heights.items():
            # Units of several rows compute whole ones; what is beyond the last row goes nowhere. Of padded
            # panels the least height takes what is left.
            rest = height == min(heights) if self.padded else height <= unit and unit > 1
            end = rows if rest else f.add(rows, 1 - height)
            with f.carried_loop(state[0], end, int64(height), state, "height") as (_, values, advance):
                done, a, c, *sums = values
                left = f.sub(rows, done) if self.padded else rows
                self._call(f, callee, target, (left, columns), (a, c, *sums))
                following = [
                    f.add(done, height),
                    f.at(a, f.mul(a_step, height)),
                    f.at(c, f.mul(c_step, height)),
                ]
                following.extend(f.at(value, f.mul(sums_step, height)) for value in sums)
                advance(following)
            state = advance.results

    def _call(
        self,
        f: Function,
        callee: Callee,
        target: _Target,
        sizes: tuple[Value, Value],
        places: tuple[Value | None, ...],
    ) -> None:
        """Calls one height, given rows that are left and columns, at the places of A, C and the sums."""
        g, a, c = f.arguments, places[0], places[1]
        assert a is not None
        assert c is not None
        walk = [g["depth"], a, g["a_lane"], g["a_depth"], g["b"], g["b_depth"]]
        arguments = [sizes[1], *walk, c, target.row, target.alpha, target.beta]
        if self.carries:
            assert places[2] is not None
            arguments += [places[2], g["sums_row"], g["first"], g["last"]]
        more = (*(name for name, _ in _SCALES), "zero", *(name for name, _ in _AHEAD))
        arguments += [g[name] for name in more if name in g]
        arguments += [sizes[0]] if self.padded else []
        f.call(callee, arguments)

    def _spill(self, f: Function, heights: dict[int, Callee]) -> None:
        """The tile through a small buffer, element by element from and to C with its two strides."""
        kernel, nr, g = self.kernel, self.tile.nr, f.arguments
        rows_held = -(-self.tile.mr // kernel.instruction.m) * kernel.instruction.m
        buffer = f.alloca(memory_type(kernel.c), rows_held * nr, CACHE_LINE)
        columns = int64(nr) if self.edge is Edge.SPILL else g["columns"]
        beta, size = g["beta"], kernel.c.size
        keep = f.not_equal(beta, zero(self.element))
        writes = f.icmp("!=", g["last"], 0) if self.carries else None
        reads = keep if writes is None else f.and_(keep, writes)
        element = memory_type(kernel.c)

        def read(inside: Value, outside: Value) -> None:
            f.store(f.load(element, outside, size), inside, size)

        def write(inside: Value, outside: Value) -> None:
            f.store(f.load(element, inside, size), outside, size)

        with f.when(reads):
            # What is computed beyond C is added to zeros, and raises no floating-point flag of its own.
            with f.loop(int64(0), int64(rows_held * nr * size), int64(size), "clear") as at:
                f.store(zero(element), f.at(buffer, at), size)
            self._each(f, read, buffer)
        self._cover(f, heights, _Target(buffer, int64(nr), g["alpha"], beta, size), columns)
        if writes is None:
            self._each(f, write, buffer)
        else:
            with f.when(writes):
                self._each(f, write, buffer)

    def _each(self, f: Function, visit: Callable[[Value, Value], None], buffer: Value) -> None:
        """Visits the places of each element of the tile in the buffer and in C."""
        size, g = self.kernel.c.size, f.arguments
        row_step, column_step = (f.mul(g[name], size) for name in ("c_row", "c_column"))
        with (
            f.loop(int64(0), g["rows"], int64(1), "row") as row,
            f.loop(int64(0), g["columns"], int64(1), "column") as column,
        ):
            inside = f.at(buffer, f.mul(f.add(f.mul(row, self.tile.nr), column), size))
            if self.pairs:
                pair, part = f.ashr(column, int64(1)), f.and_(column, int64(1))
                across = f.add(f.mul(pair, column_step), f.mul(part, size))
            else:
                across = f.mul(column, column_step)
            visit(inside, f.at(f.at(g["c"], f.mul(row, row_step)), across))


_CARRY: tuple[tuple[str, Type], ...] = (
    ("sums", POINTER),
    ("sums_row", INT64),
    ("first", INT64),
    ("last", INT64),
)

_SCALES: tuple[tuple[str, Type], ...] = (("scale", POINTER), ("scale_step", INT64), ("group", INT64))


#: What is fetched in place of C.
_AHEAD: tuple[tuple[str, Type], ...] = (("ahead", POINTER), ("ahead_row", INT64))

#: The operand of a step: a pointer, elements from one row to the next.
_OPERAND: tuple[tuple[str, Type], ...] = (("", POINTER), ("_row", INT64))


def _known_or(step: int | None, given: Value) -> Value:
    """An argument, or the constant that it always is."""
    return given if step is None else int64(step)


class _Target(NamedTuple):
    """Where a tile goes: C itself, or the spill buffer."""

    c: Value
    row: Value
    alpha: Value
    beta: Value
    size: int  # of an element, in bytes

    @classmethod
    def of(cls, f: Function, size: int) -> _Target:
        g = f.arguments
        return cls(g["c"], g["c_row"], g["alpha"], g["beta"], size)
