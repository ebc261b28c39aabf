"""The micro-kernel: one register tile of C, the loop over its depth, its edges and its store.

`MicroKernel` unrolls the tile, loops over the depth (and over a batch of equal products), handles edges and
stores; a subclass loads operands and emits one `Multiply`. `emit_inline` writes a tile of known sizes;
`dispatch.py` calls straight-line tiles if the sizes are known at run time only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence

from tilewright.ir.nodes import Tile
from tilewright.llvm.build import Function
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import (
    Value,
    constant,
    element_type,
    int64,
    vector_type,
    zero,
)
from tilewright.machine.isa import Edge, Isa, TileFma
from tilewright.micro.tiles.chains import Chains, Strip, Totals
from tilewright.micro.tiles.operands import SCALE, GroupCall, KeptSums, Source, TileCall, TilePart
from tilewright.spec.dtype import DType


class MicroKernel(Chains):
    """C[rows, columns] = alpha · Σ A[rows, depth] · B[depth, columns] + beta · C.

    Parameters
    ----------
    isa, instruction : the row and its multiply instruction.
    tile : mr×nr.
    a, b : how the operands are stored.
    c : the element type of C.
    adjacent_a : the rows of A are adjacent in memory (packed), known at compile time.
    """

    def __init__(
        self,
        isa: Isa,
        instruction: TileFma,
        tile: Tile,
        operands: tuple[Source, Source],
        c: DType,
        *,
        adjacent_a: bool,
    ) -> None:
        self.isa, self.instruction, self.tile, self.adjacent_a = isa, instruction, tile, adjacent_a
        self.a, self.b = operands
        self.acc, self.c = instruction.acc, c
        self.lanes = isa.lanes(self.acc)
        self.vectors = -(-tile.nr // self.lanes)
        self.element = element_type(self.acc)
        self.edge = isa.edge_of(self.a.dtype, self.b.dtype, c)

    # --- lowered by a subclass ----------------------------------------------------------------

    #: Sums may start with the values of C, or with the first products.
    chains = True
    #: Whether rows of A in place are addressed one by one, so that a tile may compute its last one twice.
    repeats_rows = False

    @property
    def attributes(self) -> str | None:
        """LLVM attributes of a function that contains the tile: see `Multiply.attributes`."""
        return None

    @property
    def configured(self) -> bool:
        """Whether a thread has to configure a unit before it comes to the code of tiles: see `configure`."""
        return False

    def configure(self, f: Function) -> None:
        """Before the first tile of any number: configures the unit."""

    def release(self, f: Function) -> None:
        """After the last tile: leaves the unit as it was found."""

    def enter(self, f: Function) -> None:
        """Before the first chain of a tile."""

    def leave(self, f: Function) -> None:
        """After the last chain of a tile."""

    @abstractmethod
    def begin(self, f: Function, part: TilePart) -> list[Value]:
        """The zeroed accumulators of a part, in the order that `finish` expects."""

    @abstractmethod
    def finish(self, f: Function, part: TilePart, acc: list[Value]) -> list[Value]:
        """The sums of every vector of every row of the part."""

    def holds_depths(self, part: TilePart, call: TileCall, depth: int) -> bool:
        """Whether several depths of each row of A are loaded at once; `walk_held` then loops over them."""
        del part, call, depth
        return False

    def walk_held(
        self, f: Function, part: TilePart, call: TileCall, depth: int, acc: list[Value]
    ) -> list[Value]:
        """All depths of one product, several of each row of A in one register."""
        raise NotImplementedError

    #: Whether `walk_ahead` is the loop over the depth.
    walks_ahead = False

    def walk_ahead(self, f: Function, part: TilePart, call: TileCall, acc: list[Value]) -> list[Value]:
        """All depths of one product, whose operands are loaded some steps ahead."""
        raise NotImplementedError

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """All that shapes the code of the tile."""
        return (type(self), self.isa, self.instruction, self.tile, self.a, self.b, self.c, self.adjacent_a)

    @property
    def name(self) -> str:
        """The part of the functions' names that identifies this tile in a module."""
        kinds = "_".join(f"{source.dtype}{'p' * source.packed}" for source in (self.a, self.b))
        packed = "_packed" if self.adjacent_a else ""
        return f"tile_{kinds}_{self.c}_{self.instruction.instruction}_{self.tile.mr}x{self.tile.nr}{packed}"

    def exact_part(self, rows: int, columns: int) -> TilePart:
        """The tile of known sizes, in the narrowest vectors, which cross the fewest cache lines.

        With masks the last vector is the next power of two; without, powers of two that add up.
        """
        whole, rest = divmod(columns, self.lanes)
        widths = [self.lanes] * whole
        masked = False
        if rest and self.edge is Edge.MASK:
            widths.append(1 << (rest - 1).bit_length())
            masked = widths[-1] != rest
        elif rest:
            widths.extend(1 << bit for bit in reversed(range(rest.bit_length())) if rest >> bit & 1)
        return TilePart(rows, tuple(widths), masked)

    # --- emission ---------------------------------------------------------------------------

    def emit_inline(self, f: Function, rows: int, columns: int, call: TileCall) -> None:
        """Writes the tile of exactly rows × columns at the current position."""
        self.emit_part(f, self.exact_part(rows, columns), call)

    def emit_part(self, f: Function, part: TilePart, call: TileCall) -> None:
        """Writes one straight-line tile at the current position; a unit is configured there (`configure`)."""
        self.enter(f)
        self.compute(f, part, call)
        self.leave(f)

    def compute(self, f: Function, part: TilePart, call: TileCall) -> None:
        """The sums of a tile, and their way to C."""
        masks: list[Value | None] = [None] * len(part.widths)
        if part.masked:
            before = sum(part.widths[:-1])
            masks[-1] = f.lane_mask(f.sub(call.columns, before), 0, part.widths[-1])
        if call.groups is not None:
            self.end(f, part, call, self._grouped_sums(f, part, call, call.groups, masks), masks)
            return
        stored = masks
        if call.padded:
            masks = [None] * len(part.widths)
        for first, rows, sums in self._sums(f, part, call, masks):
            strip, below = part._replace(rows=rows), self.below(f, call, first)
            if not (part.masked and self.prefetches(part, call)):
                self.end(f, strip, below, sums, stored)
                continue
            with f.branch(f.icmp("==", call.columns, sum(part.widths))) as (whole, partial):
                with whole:  # some CPUs take tens of cycles for a store under a mask
                    self.end(f, strip, below, sums, masks)
                with partial:
                    self.end(f, strip, below, sums, stored)

    def _sums(
        self, f: Function, part: TilePart, call: TileCall, masks: list[Value | None]
    ) -> Iterator[Strip]:
        """The finished sums of the tile, which may start with C."""
        update = call.update
        if update.chain is False or self.closes(call):
            yield from self.finished(f, part, call, masks)
            return
        acc = self.begin(f, part)
        if isinstance(update.chain, Value):
            with f.once_if(update.chain, acc) as (_, advance):
                advance(self._chained(f, part, call, masks, acc))
            acc = advance.results
        else:
            acc = self._chained(f, part, call, masks, acc)
        walk = self.walk_depth if call.batch is None else self._walk_batch
        yield from self.strips(f, part, walk(f, part, call, masks, acc))

    def prefetches(self, part: TilePart, call: TileCall) -> bool:
        """Whether C is prefetched before the depth ends: only for tiles that may be whole."""
        wide = not part.masked or (call.padded and len(part.widths) == self.vectors)
        return call.prefetch is not None and wide and part.rows == self.tile.mr

    def strips(self, f: Function, part: TilePart, acc: list[Value]) -> Iterator[Strip]:
        """Rows of the part that are finished and stored together."""
        yield 0, part.rows, self.finish(f, part, acc)

    def below(self, f: Function, call: TileCall, first: Value | int) -> TileCall:
        """The call for the rows from a given row on."""
        if first == 0:
            return call
        assert call.last_row is None, "tiles that are stored in strips do not repeat rows"
        carry = call.carry
        if carry is not None:
            carry = carry._replace(sums=f.at(carry.sums, f.mul(f.mul(carry.row, self.acc.size), first)))
        pointer = f.at(call.c.pointer, f.mul(f.mul(call.c.row, self.c.size), first))
        return call._replace(c=call.c._replace(pointer=pointer), carry=carry)

    def end(
        self, f: Function, part: TilePart, call: TileCall, acc: list[Value], masks: list[Value | None]
    ) -> None:
        """Stores finished sums, or keeps them for the next depth block."""
        update = call.update
        # Sums of several chains start with zero.
        added = update.added or (update.chain if self.closes(call) else False)
        if isinstance(added, Value):
            with f.once_if(added, acc) as (values, advance):
                advance(self._plus_c(f, part, call, list(values), masks))
            acc = advance.results
        elif added:
            # Only now: multiply-adds that start with C would wait for the store that last wrote it.
            acc = self._plus_c(f, part, call, acc, masks)
        if call.carry is None:
            # After the loop, so that these pointers do not occupy registers in it.
            self._store(f, part, call, self._rows_of_c(f, part, call), acc, masks)
        else:
            self._store_or_keep(f, part, call, call.carry, acc, masks)

    def _plus_c(
        self, f: Function, part: TilePart, call: TileCall, acc: list[Value], masks: list[Value | None]
    ) -> list[Value]:
        """Sums plus the values of C."""
        old = self._values_of_c(f, part, call, masks)
        return [f.plus(value, addend) for value, addend in zip(acc, old, strict=True)]

    def _store_or_keep(
        self,
        f: Function,
        part: TilePart,
        call: TileCall,
        carry: KeptSums,
        acc: list[Value],
        masks: list[Value | None],
    ) -> None:
        """Adds the sums of the previous blocks; stores the last block to C, the others to the sums."""
        size, row_bytes = self.acc.size, f.mul(carry.row, self.acc.size)
        places = [
            f.at(f.at(carry.sums, f.mul(row_bytes, call.row(row, part.rows))), before * size)
            for row in range(part.rows)
            for before in (sum(part.widths[:v]) for v in range(len(part.widths)))
        ]
        with f.once_if(f.not_(carry.first), acc) as (values, advance):
            old = [f.load(value.type, place, size) for value, place in zip(values, places, strict=True)]
            advance([f.plus(value, addend) for value, addend in zip(values, old, strict=True)])
        acc = advance.results
        with f.branch(carry.last) as (then, otherwise):
            with then:
                self._store(f, part, call, self._rows_of_c(f, part, call), acc, masks)
            with otherwise:
                for value, place in zip(acc, places, strict=True):
                    f.store(value, place, size)

    def _chained(
        self, f: Function, part: TilePart, call: TileCall, masks: list[Value | None], acc: list[Value]
    ) -> list[Value]:
        """Accumulators that start with C; those that are not the tile's own stay zero."""
        begun = list(self._values_of_c(f, part, call, masks))
        return begun + acc[len(begun) :]

    def _values_of_c(
        self, f: Function, part: TilePart, call: TileCall, masks: list[Value | None]
    ) -> Iterator[Value]:
        """The values of C, vector by vector, each loaded when it is requested."""
        for pointer in self._rows_of_c(f, part, call):
            for v in range(len(part.widths)):
                yield self._load_c(f, pointer, part, v, masks[v])

    def _rows_of_c(self, f: Function, part: TilePart, call: TileCall) -> list[Value]:
        row_bytes = f.mul(call.c.row, self.c.size)
        if call.c.rows is None:
            rows = (call.row(row, part.rows) for row in range(part.rows))
            return [f.at(call.c.pointer, f.mul(row_bytes, row)) for row in rows]
        last = f.sub(call.c.rows, 1)
        held = [int64(0), *(f.minimum(int64(row), last) for row in range(1, part.rows))]
        return [f.at(call.c.pointer, f.mul(row_bytes, row)) for row in held]

    def _grouped_sums(
        self, f: Function, part: TilePart, call: TileCall, groups: GroupCall, masks: list[Value | None]
    ) -> list[Value]:
        """The sums of groups of depths, each scaled by column.

        Totals are kept in the L1 cache: they are read and written once per group, and need no registers in
        between.
        """
        count = len(part.widths)
        totals = Totals.of(f, part, self.acc, self.tile.nr)
        places = totals.clear(f)
        state = groups.pointers(call)
        with f.carried_loop(int64(0), call.depth, groups.depth, state, "group") as (first, values, advance):
            scales = groups.places(f, values[SCALE], part, self.acc.size)
            for above, _, found in self.finished(f, part, groups.one(f, call, first, values), masks):
                begin = above * count
                self.add_scaled(f, found, scales, places[begin : begin + len(found)])
            advance(self.next_group(f, call, groups, values))
        return totals.load(f, 0, part.rows)

    def add_scaled(
        self, f: Function, sums: Sequence[Value], scales: Sequence[Value], places: Sequence[Value]
    ) -> None:
        """Adds sums of one group, each times the scale of its column, to totals."""
        size = self.acc.size
        for index, (value, place) in enumerate(zip(sums, places, strict=True)):
            factor = f.load(value.type, scales[index % len(scales)], size)
            before = f.load(value.type, place, size)
            f.store(f.multiply_add(factor, value, before, fused=self.isa.fused), place, size)

    def next_group(
        self, f: Function, call: TileCall, groups: GroupCall, pointers: Sequence[Value]
    ) -> list[Value]:
        """The pointers of `GroupCall.pointers` one group on."""
        a, b, *vectors = pointers
        a_bytes, b_bytes = self.group_bytes(f, call, groups.depth)
        scale_bytes = f.mul(groups.step, self.acc.size)
        return [f.at(a, a_bytes), f.at(b, b_bytes), *(f.at(vector, scale_bytes) for vector in vectors)]

    def group_bytes(self, f: Function, call: TileCall, depth: Value) -> tuple[Value, Value]:
        """Bytes of A and of B from one group of depths to the next: whole steps of the instruction."""
        steps = f.ceildiv(depth, int64(self.instruction.k))
        a_bytes, b_bytes = self.step_bytes(f, call)
        return f.mul(steps, a_bytes), f.mul(steps, b_bytes)

    def walk_depth(
        self, f: Function, part: TilePart, call: TileCall, masks: list[Value | None], acc: list[Value]
    ) -> list[Value]:
        """All depths of one product."""
        if call.depth.known is not None and self.holds_depths(part, call, call.depth.known):
            return self.walk_held(f, part, call, call.depth.known, acc)
        if self.walks_ahead:
            return self.walk_ahead(f, part, call, acc)
        return self.loop_depth(f, part, call, masks, acc, prefetched=self.prefetches(part, call))

    # --- the store --------------------------------------------------------------------------

    def _c_pointer(self, f: Function, row: Value, part: TilePart, v: int) -> Value:
        return f.at(row, sum(part.widths[:v]) * self.c.size)

    def _load_c(self, f: Function, row: Value, part: TilePart, v: int, mask: Value | None) -> Value:
        """A vector of C, converted to the type of the accumulators."""
        kind, pointer = vector_type(self.c, part.widths[v]), self._c_pointer(f, row, part, v)
        if mask is None:
            value = f.load(kind, pointer, self.c.size)
        else:
            value = f.masked_load(kind, pointer, mask, self.c.size)
        return self.convert(f, value, self.c, self.acc)

    def convert(self, f: Function, value: Value, source: DType, to: DType) -> Value:
        """A value converted to another element type."""
        return Convert(f, half=self.isa.half)(value, source, to)

    def _store(
        self,
        f: Function,
        part: TilePart,
        call: TileCall,
        rows: list[Value],
        acc: list[Value],
        masks: list[Value | None],
    ) -> None:
        """C = alpha · acc + beta · C; C is not read when beta is 0, alpha not used when depth is 0.

        All of C is read before any of it is written: a load just behind a masked store of a
        neighbouring row waits until that store has left the store buffer.
        """
        count = len(part.widths)
        if call.update.alpha is not None:
            one = constant(self.acc, 1)
            alpha = f.select(f.icmp("==", call.depth, 0), one, call.update.alpha)
            # A product by 1 has the same bits, and takes as long as one more depth.
            with f.once_if(f.not_equal(alpha, one), acc) as (sums, advance):
                alphas = {width: f.splat(alpha, width) for width in part.widths}
                advance([f.times(value, alphas[value.type.lanes]) for value in sums])
            acc = advance.results
        if call.update.beta is not None:
            acc = self._add_c(f, part, call.update.beta, rows, acc, masks)
        if call.steps is None:
            values = [self.convert(f, value, self.acc, self.c) for value in acc]
        else:
            values = call.steps.apply(f, (self.acc, self.c), part.widths, acc)
        for index, narrow in enumerate(values):
            v = index % count
            pointer, mask = self._c_pointer(f, rows[index // count], part, v), masks[v]
            if mask is None:
                f.store(narrow, pointer, self.c.size)
            else:
                f.masked_store(narrow, pointer, mask, self.c.size)

    def _add_c(
        self,
        f: Function,
        part: TilePart,
        beta: Value,
        rows: list[Value],
        acc: list[Value],
        masks: list[Value | None],
    ) -> list[Value]:
        """acc + beta · C where beta is not 0, else acc."""
        count, fused = len(part.widths), self.isa.fused
        betas = {width: f.splat(beta, width) for width in part.widths}
        with f.once_if(f.not_equal(beta, zero(self.element)), acc) as (values, advance):
            sums = []
            for index, value in enumerate(values):
                v = index % count
                old = self._load_c(f, rows[index // count], part, v, masks[v])
                sums.append(f.multiply_add(betas[part.widths[v]], old, value, fused=fused))
            advance(sums)
        return advance.results
