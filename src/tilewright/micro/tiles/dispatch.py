"""Register tiles whose sizes are known at run time only: a function that calls straight-line tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import NamedTuple

from tilewright.ir.partial_tiles import LEAST_REPEATING, PARTIAL_HEIGHTS, REPEATING_HEIGHTS, least_rows
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import VOID, Value, int64, memory_type, zero
from tilewright.llvm.written import write_once
from tilewright.machine.isa import Edge
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.emission import emitter
from tilewright.micro.tiles.epilogue import ColumnAccess
from tilewright.micro.tiles.kernel import MicroKernel
from tilewright.micro.tiles.operands import (
    Copied,
    GroupCall,
    KeptSums,
    OperandA,
    OperandB,
    OperandC,
    PanelCall,
    Prefetch,
    TileCall,
    TilePart,
    Update,
)
from tilewright.micro.tiles.signature import EntryPoint, TileSignature
from tilewright.spec.epilogue import Epilogue

#: Partial heights of quick code, whose tiles of whole height have whole columns only. Edges take up to four
#: times as long, and the tiles a fifth of the time to compile.
QUICK_HEIGHTS: tuple[int, ...] = (1,)

#: The steps of an epilogue, by name: products need not import the functions.
TILE_STEPS = "tiles.steps:TileSteps"

#: The signature of a plain product.
_PLAIN = TileSignature()


class Dispatch:
    """The functions of one tile in a module: one for each height, and the one that calls them.

    Parameters
    ----------
    kernel : the register tile.
    signature : the features of its functions, and so their parameters.
    quick : whether the functions are few, for quick code: edges take more of them, for the same bits.
    """

    def __init__(
        self, kernel: MicroKernel, signature: TileSignature = _PLAIN, *, quick: bool = False
    ) -> None:
        plain = not (quick or signature.padded or signature.finish or signature.weights.panels)
        plain = plain and kernel.tile.mr > LEAST_REPEATING
        self.kernel, self.quick = kernel, quick
        self.signature = signature._replace(repeats=plain and kernel.repeats_rows)
        self.isa, self.tile, self.element = kernel.isa, kernel.tile, kernel.element
        self.edge = kernel.edge

    @property
    def name(self) -> str:
        """The name of the dispatching function in a module."""
        return f"{self.kernel.name}{self.signature.suffix}"

    @property
    def _any_size(self) -> str:
        """The name of the function for any size.

        In quick code it is in no group with the straight-line tiles: these are compiled well
        (`llvm/parts.py`), which takes as long for its loops as for all of them.
        """
        return f"any_{self.name}" if self.quick else self.name

    def row_variants(self) -> tuple[int, ...]:
        """Heights of the straight-line tiles, tallest first; any height is a sum of them.

        Those that may compute their last row twice count for one less, too. Units that multiply several
        rows at once have only heights of whole operations.

        >>> from tilewright.ir.nodes import Tile
        >>> from tilewright.machine.isa_rows import AVX512
        >>> from tilewright.micro.tiles.operands import Source
        >>> from tilewright.micro.tiles.vector import VectorKernel
        >>> from tilewright.spec.dtype import F32
        >>> operands = (Source(F32), Source(F32))
        >>> kernel = VectorKernel(AVX512, AVX512.tile(F32), Tile(12, 32), operands, F32, adjacent_a=False)
        >>> Dispatch(kernel).row_variants()
        (12, 8, 6, 4, 2, 1)
        """
        unit = self.kernel.instruction.m
        if self.signature.padded:
            return (self.tile.mr, *self._padded_height())
        partial = QUICK_HEIGHTS if self.quick and unit == 1 else PARTIAL_HEIGHTS
        if self.signature.repeats:
            partial = REPEATING_HEIGHTS
        return (
            self.tile.mr,
            *(height for height in partial if height < self.tile.mr and height % unit == 0),
            *((unit,) if unit > max(PARTIAL_HEIGHTS) and unit < self.tile.mr else ()),
        )

    def _least_rows(self, height: int) -> int:
        """The fewest rows that a tile of some height takes."""
        return least_rows(height, self.tile.mr, repeats=self.signature.repeats)

    def _padded_height(self) -> tuple[int, ...]:
        """The height of the partial tile: one suffices, because rows beyond those of C may be computed.

        The smallest height whose sums keep the unit busy, since smaller ones take as long; else the largest.
        It divides the tile's height, so that no row is read that the panel lacks.
        """
        isa, mr = self.isa, self.tile.mr
        heights = [height for height in range(2, mr) if mr % height == 0]
        busy = isa.fma_per_cycle * isa.fma_latency
        enough = [height for height in heights if height * self.kernel.vectors >= busy]
        return tuple(enough[:1] or heights[-1:])

    def parts(self, rows: int) -> tuple[TilePart, ...]:
        """The column variants of one height, in the order they are tested."""
        whole = (TilePart(rows, (self.kernel.lanes,) * self.kernel.vectors, masked=False),)
        if self.edge is Edge.SPILL:
            return whole
        masked = tuple(TilePart(rows, widths, masked=True) for widths in self._masked_widths())
        if rows == self.tile.mr and not self.signature.padded:
            return whole if self._whole_alone else (*whole, *masked)
        return masked

    def _masked_widths(self) -> Iterator[tuple[int, ...]]:
        """The vectors of masked tiles, fewest columns first; the last may have half the width."""
        lanes, halves = self.kernel.lanes, self.isa.halves and not self.quick
        for vectors in range(1, self.kernel.vectors + 1):
            if halves:
                yield (*(lanes,) * (vectors - 1), lanes // 2)
            yield (lanes,) * vectors

    @property
    def _whole_alone(self) -> bool:
        """Whether tiles of whole height have whole columns only, and other columns are of partial heights."""
        partial = not self.signature.padded and not self.signature.copies
        return self.quick and partial and self.edge is not Edge.SPILL

    def emit(self, module: Module) -> Callee:
        """Defines the functions of this tile in a module if needed; returns the one to call."""
        known = module.find(self._any_size)
        return self._once(module, self._emit) if known is None else known

    def _once(self, module: Module, write: Callable[[Module], Callee]) -> Callee:
        """Functions of this tile in a module, as another module has them or written."""
        what = (write.__name__, self.kernel.identity, self.signature, self.quick)
        return write_once(module, what, write)

    def _emit(self, module: Module) -> Callee:
        heights = {rows: self._emit_height(module, rows) for rows in self.row_variants()}
        return self._emit_dispatch(module, heights)

    def emit_call(self, f: Function, operands: dict[str, Value]) -> None:
        """Calls the function of whole height where the rows are those of a tile, that for any size elsewhere.

        It takes fewer columns too where the row has masks.

        The function for any size saves and restores every register, 8 to 10 cycles (AVX2): a seventh of what
        a tile of 6x16 takes for 8 depths, a fortieth for 64.
        """
        any_size = self.emit(f.module)
        whole = f.module.find(f"{self.name}_{self.tile.mr}")
        of_any_size = self.signature.arguments(EntryPoint.ANY_SIZE, operands)
        by_any_size = self.quick or self.signature.padded or whole is None
        if by_any_size and not self.signature.apart:
            f.call(any_size, of_any_size)
            return
        fits = self._is_whole(f, operands)
        if by_any_size:
            fits = f.and_(fits, f.icmp("!=", operands["first_read"], 0))
        with f.branch(fits) as (then, otherwise):
            with then:
                self.emit_whole_call(f, operands)
            with otherwise:
                f.call(any_size, of_any_size)

    def emit_whole_call(self, f: Function, operands: dict[str, Value]) -> None:
        """Calls the function of whole height, for adjacent columns; without masks, for whole tiles.

        The first tile that reads a panel calls one that prefetches B in every step, which is a function of
        its own: a test in each step would cost 2 to 4 % where panels are near.
        """
        given = operands | {name: int64(size) for name, size in self._whole_columns()}
        given |= {"left": int64(self.tile.mr), "last_row": int64(self.tile.mr - 1)}
        arguments = self.signature.arguments(EntryPoint.ONE_HEIGHT, given)
        whole = self.emit_whole(f.module)
        if not self.signature.apart:
            f.call(whole, arguments)
            return
        prefetching = Dispatch(self.kernel, self.signature._replace(far=True)).emit_whole(f.module)
        with f.branch(f.icmp("!=", operands["first_read"], 0)) as (then, otherwise):
            with then:
                f.call(prefetching, arguments)
            with otherwise:
                f.call(whole, arguments)

    def _is_whole(self, f: Function, operands: dict[str, Value]) -> Value:
        """Whether `emit_whole_call` may be used."""
        sizes = (("rows", self.tile.mr), *self._whole_columns(), *self._adjacent_columns())
        return reduce(f.and_, (f.icmp("==", operands[name], size) for name, size in sizes))

    def _whole_columns(self) -> tuple[tuple[str, int], ...]:
        """The number of columns, where tiles of whole height have no others."""
        masked = self.edge is Edge.MASK and not self.kernel.instruction.is_matrix_engine
        return () if masked else (("columns", self.tile.nr),)

    def _adjacent_columns(self) -> tuple[tuple[str, int], ...]:
        """The column stride with which tiles write to C themselves, where it is not known to be that."""
        adjacent = 2 if self.signature.pairs else 1
        return () if self.signature.strides.c_column == adjacent else (("c_column", adjacent),)

    def emit_whole(self, module: Module) -> Callee:
        """Defines only the function of a whole tile with adjacent columns; returns the function to call.

        Its parameters are those of `EntryPoint.ONE_HEIGHT`.
        """
        known = module.find(f"{self.name}_{self.tile.mr}")
        return self._once(module, self._emit_whole) if known is None else known

    def _emit_whole(self, module: Module) -> Callee:
        return self._emit_height(module, self.tile.mr)

    def _emit_height(self, module: Module, rows: int) -> Callee:
        """One function per height; inside, one loop per column variant."""
        attributes = self.kernel.attributes
        parameters = self.signature.parameters(EntryPoint.ONE_HEIGHT, self.element)
        f = module.define(f"{self.name}_{rows}", VOID, parameters, attributes=attributes)
        call, parts = self._tile_call(f, rows), self.parts(rows)
        if self.signature.finish:
            parts = parts[:1]
            mixed = self.kernel.acc.is_integer is not self.kernel.c.is_integer
            call = call._replace(update=call.update._replace(beta=None)) if mixed else call
        for part in parts[:-1]:
            limit = sum(part.widths)
            relation = "<=" if part.masked else "=="
            with f.when(f.icmp(relation, call.columns, limit)):
                self.kernel.emit_part(f, part, call)
                f.ret()
        self.kernel.emit_part(f, parts[-1], call)
        f.ret()
        return f.callee

    def _tile_call(self, f: Function, rows: int) -> TileCall:
        """The operands of a tile of one height, from the arguments of its function."""
        g, signature = f.arguments, self.signature
        strides, weights = signature.strides, signature.weights
        carry = groups = steps = None
        if signature.carries:
            first, last = (f.icmp("!=", g[name], 0) for name in ("first", "last"))
            carry = KeptSums(g["sums"], g["sums_row"], first, last)
        if weights.scales:
            groups = GroupCall(g["group"], self.tile.nr, int64(0), g["scale"], g["scale_step"], g.get("zero"))
        prefetch = Prefetch(g["c"], g["c_row"], self.kernel.c.size)
        if signature.prefetch_bytes:
            prefetch = Prefetch(g["ahead"], g["ahead_row"], signature.prefetch_bytes)
        if signature.finish:
            operands = {
                n: (g[f"step{n}"], g[f"step{n}_row"], signature.finish[n].reach is not ColumnAccess.REPEATED)
                for n in signature.step_operands
            }
            steps = emitter(TILE_STEPS)(
                self.isa, Epilogue(given.step for given in signature.finish), operands
            )
        partial = signature.padded and rows == self.row_variants()[-1]
        last_row = g["last_row"] if self._least_rows(rows) < rows else None
        copied = None
        if signature.copies:
            copied = Copied(g["copied"], self.tile.nr * self.kernel.b.dtype.size)
        asks = signature.fetches and not (signature.apart and rows == self.tile.mr)
        return TileCall(
            columns=g["columns"],
            depth=g["depth"],
            a=OperandA(
                g["a"],
                _known_or(strides.a_lane, g["a_lane"]),
                _known_or(strides.a_depth, g["a_depth"]),
            ),
            b=OperandB(
                g["b"],
                _known_or(strides.b_depth, g["b_depth"]),
                panels=PanelCall(self.tile.nr, int64(0)) if weights.panels else None,
            ),
            c=OperandC(g["c"], g["c_row"], g["left"] if partial else None),
            update=Update(g["alpha"], g["beta"]),
            carry=carry,
            groups=groups,
            prefetch=prefetch,
            copied=copied,
            steps=steps,
            padded=signature.padded,
            first_read=f.icmp("!=", g["first_read"], 0) if asks else None,
            far=signature.far,
            last_row=last_row,
        )

    # --- the dispatching function -------------------------------------------------------------

    def _emit_dispatch(self, module: Module, heights: dict[int, Callee]) -> Callee:
        """Covers rows × columns with the variants; columns that are not adjacent go through a buffer."""
        f = module.define(self._any_size, VOID, self.signature.parameters(EntryPoint.ANY_SIZE, self.element))
        rows, columns = f.arguments["rows"], f.arguments["columns"]
        whole = f.icmp("==", columns, self.tile.nr)
        direct: list[Value] = []  # conditions under which variants write to C themselves
        direct.extend(f.icmp("==", f.arguments[name], step) for name, step in self._adjacent_columns())
        full = reduce(f.and_, direct, f.and_(f.icmp("==", rows, self.tile.mr), whole))
        with f.when(full):
            target = _Target.of(f, self.kernel.c.size)
            sizes = {
                "left": rows,
                "columns": int64(self.tile.nr),
                "last_row": int64(self.tile.mr - 1),
            }
            self._call(f, heights[self.tile.mr], target, sizes)
            f.ret()
        if self.edge is Edge.SPILL:
            direct.append(whole)
        if self.kernel.instruction.is_matrix_engine:
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
        """Calls the variants whose heights sum to the rows, or to one more, tallest first."""
        g = f.arguments
        a_step = f.bytes_of(g["a_lane"], self.kernel.a.dtype.bits)
        c_step = f.mul(target.row, target.size)
        rows = g["rows"]
        state: list[Value] = [int64(0), g["a"], target.c]
        if self.signature.carries:
            state.append(g["sums"])
            sums_step = f.mul(g["sums_row"], self.kernel.acc.size)
        unit = self.kernel.instruction.m
        if self._whole_alone:
            heights = {rows: callee for rows, callee in heights.items() if rows != self.tile.mr}
        for height, callee in heights.items():
            # Units of several rows compute whole operations; results beyond the last row are discarded. With
            # padded panels the smallest height takes the remaining rows.
            rest = height == min(heights) if self.signature.padded else height <= unit and unit > 1
            end = rows if rest else f.add(rows, 1 - self._least_rows(height))
            with f.carried_loop(state[0], end, int64(height), state, "height") as (_, values, advance):
                done, a, c, *sums = values
                left = f.sub(rows, done) if self.signature.padded else rows
                operands = {"left": left, "columns": columns, "a": a, "c": c}
                if self.signature.repeats:
                    operands["last_row"] = f.minimum(int64(height - 1), f.sub(f.sub(rows, done), 1))
                self._call(f, callee, target, operands | dict(zip(("sums",), sums, strict=False)))
                following = [
                    f.add(done, height),
                    f.at(a, f.mul(a_step, height)),
                    f.at(c, f.mul(c_step, height)),
                ]
                following.extend(f.at(value, f.mul(sums_step, height)) for value in sums)
                advance(following)
            state = advance.results

    def _call(self, f: Function, callee: Callee, target: _Target, operands: dict[str, Value]) -> None:
        """Calls one height; operands that are not given are those of the calling function."""
        of_c = {"c": target.c, "c_row": target.row, "alpha": target.alpha, "beta": target.beta}
        given = f.arguments | of_c | operands
        f.call(callee, self.signature.arguments(EntryPoint.ONE_HEIGHT, given))

    def _spill(self, f: Function, heights: dict[int, Callee]) -> None:
        """The tile through a small buffer, element by element from and to C with its two strides."""
        kernel, nr, g = self.kernel, self.tile.nr, f.arguments
        rows_held = -(-self.tile.mr // kernel.instruction.m) * kernel.instruction.m
        buffer = f.alloca(memory_type(kernel.c), rows_held * nr, CACHE_LINE)
        columns = int64(nr) if self.edge is Edge.SPILL else g["columns"]
        beta, size = g["beta"], kernel.c.size
        keep = f.not_equal(beta, zero(self.element))
        writes = f.icmp("!=", g["last"], 0) if self.signature.carries else None
        reads = keep if writes is None else f.and_(keep, writes)
        element = memory_type(kernel.c)

        def read(inside: Value, outside: Value) -> None:
            f.store(f.load(element, outside, size), inside, size)

        def write(inside: Value, outside: Value) -> None:
            f.store(f.load(element, inside, size), outside, size)

        with f.when(reads):
            # Lanes beyond C are added to zeros, and so raise no floating-point flag of their own.
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
            if self.signature.pairs:
                pair, part = f.ashr(column, int64(1)), f.and_(column, int64(1))
                across = f.add(f.mul(pair, column_step), f.mul(part, size))
            else:
                across = f.mul(column, column_step)
            visit(inside, f.at(f.at(g["c"], f.mul(row, row_step)), across))


def _known_or(step: int | None, given: Value) -> Value:
    """An argument, or the constant if it is known."""
    return given if step is None else int64(step)


class _Target(NamedTuple):
    """The destination of a tile: C itself, or the spill buffer."""

    c: Value
    row: Value
    alpha: Value
    beta: Value
    size: int  # of an element, in bytes

    @classmethod
    def of(cls, f: Function, size: int) -> _Target:
        g = f.arguments
        return cls(g["c"], g["c_row"], g["alpha"], g["beta"], size)
