"""Tiles of few rows and many columns: words of a packed weight are unpacked between the multiply-adds."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import nullcontext
from functools import reduce
from typing import NamedTuple

from tilewright.ir.nodes import Tile
from tilewright.llvm.build import Function
from tilewright.llvm.values import Value, int64, memory_type, zero
from tilewright.machine.isa import Isa, TileFma
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.packing.words import Words
from tilewright.micro.tiles.chains import Totals
from tilewright.micro.tiles.operands import SCALE, GroupCall, Source, TileCall, TilePart
from tilewright.micro.tiles.vector import VectorKernel
from tilewright.spec.dtype import DType
from tilewright.spec.weights import Elements

#: The fewest depths per iteration of the loop, so that its own instructions are negligible.
TURN_DEPTHS = 4

#: Prefetch distance in bytes, for all panels together: what memory delivers within its latency (45 GB/s, 150
#: ns and more). The hardware prefetchers stop at page boundaries.
AHEAD_BYTES = 8192

#: Groups of depths whose sums are computed in the mode of a unit before their scales multiply them outside.
GROUPS_TOGETHER = 16


class _Walk(NamedTuple):
    """The loop over the depth: the values of its state that precede the sums, and its invariants.

    bases, panels : pointers to rows of A, and to panels. rows : for each row of A its pointer and offset in
    bytes. zeros : addresses of the zero points of each vector of columns.
    """

    bases: int
    panels: int
    rows: list[tuple[int, Value]]
    zeros: list[Value]

    @property
    def fixed(self) -> int:
        """Number of values of the state before the sums."""
        return self.bases + self.panels

    def parts(self, state: list[Value]) -> tuple[list[Value], list[Value], list[Value]]:
        """Pointers to A, pointers to panels, sums."""
        return state[: self.bases], state[self.bases : self.fixed], state[self.fixed :]


class PanelKernel(VectorKernel):
    """acc[row] += splat(A[row, p]) · B[p, vector], B in words of panels, of which a tile has several.

    Several panels, because one row of one panel has only two sums: their latency would limit the bandwidth.
    Each panel is read from its first byte to its last.
    """

    loops_over_depth = False

    def __init__(
        self,
        isa: Isa,
        instruction: TileFma,
        tile: Tile,
        operands: tuple[Source, Source],
        c: DType,
        elements: Elements,
    ) -> None:
        super().__init__(isa, instruction, tile, operands, c, adjacent_a=False)
        self.repeats_rows = False
        self.elements = elements

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """All that shapes the code of the tile."""
        return (*super().identity, self.elements)

    @property
    def name(self) -> str:
        """The part of the functions' names that identifies this tile in a module."""
        return f"{super().name}_{self.elements.value}"

    def _grouped_sums(
        self, f: Function, part: TilePart, call: TileCall, groups: GroupCall, masks: list[Value | None]
    ) -> list[Value]:
        """The sums of groups of depths, each scaled by column; in the unit's mode for several groups at once.

        Entering and leaving the mode takes 70 ns on an Emerald Rapids, a row times 32 depths of 64 columns of
        4 bits 120. Scales multiply outside of it, as they do behind the engine's own tiles.
        """
        if not self.instruction.joins:
            return super()._grouped_sums(f, part, call, groups, masks)
        totals = Totals.of(f, part, self.acc, self.tile.nr)
        places = totals.clear(f)
        row = int64(self.tile.nr * self.acc.size)
        group_bytes = f.mul(row, part.rows)
        kept = f.alloca(memory_type(self.acc), GROUPS_TOGETHER * part.rows * self.tile.nr, CACHE_LINE)
        some = f.mul(groups.depth, GROUPS_TOGETHER)
        scale_bytes = f.mul(groups.step, self.acc.size)
        state = groups.pointers(call)
        with f.carried_loop(int64(0), call.depth, some, state, "groups") as (first, begun, advance):
            end = f.minimum(call.depth, f.add(first, some))
            with (
                self.unit.in_its_mode(f),
                f.carried_loop(first, end, groups.depth, [*begun, kept], "group") as (depth, values, move),
            ):
                pointers, line = values[:-1], values[-1]
                one = groups.one(f, call, depth, pointers)
                for above, _, sums in self.finished(f, part, one, masks):
                    Totals(part, self.acc, line, row).store(f, above, sums)
                move([*self.next_group(f, call, groups, pointers), f.at(line, group_bytes)])
            ends = [begun[SCALE], kept]
            with f.carried_loop(first, end, groups.depth, ends, "scale") as (_, values, step):
                scale, line = values
                sums = Totals(part, self.acc, line, row).load(f, 0, part.rows)
                self.add_scaled(f, sums, groups.places(f, scale, part, self.acc.size), places)
                step([f.at(scale, scale_bytes), f.at(line, group_bytes)])
            advance(move.results[:-1])
        return totals.load(f, 0, part.rows)

    def group_bytes(self, f: Function, call: TileCall, depth: Value) -> tuple[Value, Value]:
        """Bytes of A and of one panel of B from one group to the next."""
        words = f.ceildiv(depth, int64(self.elements.depths))
        return f.mul(depth, self.a.dtype.size), f.mul(words, self._row_bytes(call))

    def _row_bytes(self, call: TileCall) -> int:
        """Bytes of one word of every lane of a panel."""
        assert call.b.panels is not None
        return call.b.panels.lanes * self.elements.word_bytes

    def walk_depth(
        self, f: Function, part: TilePart, call: TileCall, masks: list[Value | None], acc: list[Value]
    ) -> list[Value]:
        """All depths of one product; where an instruction joins sums, so many depths at a time."""
        del masks  # whole panels: lanes beyond the last column may be read
        assert call.b.panels is not None
        panels = -(-sum(part.widths) // call.b.panels.lanes)
        apart = f.mul(call.b.panels.stride, self.elements.storage.size)
        starts = [
            call.b.pointer,
            *(f.at(call.b.pointer, f.freeze(f.mul(apart, number))) for number in range(1, panels)),
        ]
        rows = self._row_pointers(f, call, part.rows)
        walk = _Walk(len(rows.bases), panels, rows.rows, self._zeros(f, part, call))
        state = [*rows.bases, *starts, *acc]
        joins, kr = self.instruction.joins, self.instruction.kr
        if not joins:
            return self._words(f, part, call, walk, state)[walk.fixed :]
        empty = [zero(value.type) for value in acc for _ in range(kr)]
        with (
            nullcontext() if call.groups else self.unit.in_its_mode(f),  # of groups: in `_grouped_sums`
            f.carried_loop(int64(0), call.depth, int64(joins), state, "join") as (first, values, advance),
        ):
            some = call._replace(depth=f.minimum(int64(joins), f.sub(call.depth, first)))
            found = self._words(f, part, some, walk, [*values[: walk.fixed], *empty])
            parts = found[walk.fixed :]
            each = zip(*(parts[number::kr] for number in range(kr)), strict=True)
            joined = [reduce(f.plus, several) for several in each]
            sums = [f.plus(*pair) for pair in zip(values[walk.fixed :], joined, strict=True)]
            advance([*found[: walk.fixed], *sums])
        return advance.results[walk.fixed :]

    def _words(
        self, f: Function, part: TilePart, call: TileCall, walk: _Walk, state: list[Value]
    ) -> list[Value]:
        """The depths of a call: several words per iteration, single words, then a partial last word."""
        deep, done = self.elements.depths, int64(0)
        for words in dict.fromkeys((max(1, TURN_DEPTHS // deep), 1)):
            depths = words * deep
            end = f.sub(call.depth, depths - 1)
            with f.carried_loop(done, end, int64(depths), state, "word") as (_, values, advance):
                advance(self._turn(f, part, call, walk, words, list(values)))
            state = advance.results
            done = f.mul(f.ashr(call.depth, int64(depths.bit_length() - 1)), depths)
        if deep > self.instruction.kr:
            sums = self._last_word(f, part, call, walk, f.sub(call.depth, done), state)
            return [*state[: walk.fixed], *sums]
        return state

    def _turn(
        self, f: Function, part: TilePart, call: TileCall, walk: _Walk, words: int, state: list[Value]
    ) -> list[Value]:
        """Several whole words of every column, and the advanced pointers."""
        bases, starts, sums = walk.parts(state)
        a_bytes, row_bytes = self.elements.depths * self.a.dtype.size, self._row_bytes(call)
        for word in range(words):
            at = [f.at(start, word * row_bytes) for start in starts]
            a = [f.at(bases[group], f.add(step, word * a_bytes)) for group, step in walk.rows]
            for start in at:
                for line in range(0, row_bytes, CACHE_LINE):
                    f.prefetch(f.at(start, AHEAD_BYTES // walk.panels + line), write=False, locality=3)
            sums = self._word_step(f, part, call, walk, a, at, sums)
        moved = [f.at(base, words * a_bytes) for base in bases]
        return [*moved, *(f.at(start, words * row_bytes) for start in starts), *sums]

    def _zeros(self, f: Function, part: TilePart, call: TileCall) -> list[Value]:
        """Addresses of the zero points of each vector of columns; empty if there are none."""
        groups = call.groups
        if groups is None or groups.zero is None:
            return []
        return groups.places(f, groups.zero, part, self.acc.size)

    def _vectors(
        self, f: Function, part: TilePart, call: TileCall, starts: list[Value]
    ) -> list[tuple[Words, Value]]:
        """The words of every vector of columns."""
        assert call.b.panels is not None
        found, before = [], 0
        for width in part.widths:
            panel, lane = divmod(before, call.b.panels.lanes)
            words = Words(f, self.isa, self.elements, width)
            found.append((words, words.load(f.at(starts[panel], lane * self.elements.word_bytes))))
            before += width
        return found

    def _word_step(
        self,
        f: Function,
        part: TilePart,
        call: TileCall,
        walk: _Walk,
        a: list[Value],
        starts: list[Value],
        acc: list[Value],
    ) -> list[Value]:
        """Every depth of one word of each column."""
        one, acc = self.instruction, list(acc)
        vectors = self._vectors(f, part, call, starts)
        own = not self.elements.scaled and self.b.dtype == one.b and not one.joins
        if own:  # words are the instruction's operands
            self._multiply(f, part, a, [[word] for _, word in vectors], acc)
            return acc
        taken = [words.depths(word, self._zero(f, walk, v, words)) for v, (words, word) in enumerate(vectors)]
        for depth in range(0, self.elements.depths, one.kr):
            values = [
                self._operands(words, [next(depths) for _ in range(one.kr)])
                for depths, (words, _) in zip(taken, vectors, strict=True)
            ]
            self._multiply(f, part, [f.at(row, depth * self.a.dtype.size) for row in a], values, acc)
        return acc

    def _words_of_a(self, f: Function, lanes: int) -> Words:
        """Words of adjacent depths of A, for instructions that join the sums of each of them."""
        return Words(f, self.isa, Elements(self.instruction.a.name), lanes)

    def _operands(self, words: Words, depths: list[Value]) -> list[Value]:
        """Adjacent depths of a vector as operands of B: each by itself, or both of a word."""
        return depths if self.instruction.joins or len(depths) == 1 else [words.pair(*depths)]

    def _last_word(
        self, f: Function, part: TilePart, call: TileCall, walk: _Walk, rest: Value, state: list[Value]
    ) -> list[Value]:
        """The depths of a partial word, one step of the instruction at a time."""
        kr = self.instruction.kr
        bases, starts, sums = walk.parts(state)
        with f.carried_loop(int64(0), rest, int64(kr), sums, "rest") as (depth, values, advance):
            acc, found = list(values), list[list[Value]]()
            for v, (words, word) in enumerate(self._vectors(f, part, call, starts)):
                zero = self._zero(f, walk, v, words)
                several = [words.depth(word, f.add(depth, number), zero) for number in range(kr)]
                found.append(self._operands(words, several))
            step = f.mul(depth, self.a.dtype.size)
            a = [f.at(f.at(bases[group], at), step) for group, at in walk.rows]
            self._multiply(f, part, a, found, acc)
            advance(acc)
        return advance.results

    def _zero(self, f: Function, walk: _Walk, v: int, words: Words) -> Value | None:
        """The zero points of one vector of columns."""
        return f.load(words.kind, walk.zeros[v], self.acc.size) if walk.zeros else None

    def _multiply(
        self, f: Function, part: TilePart, a: list[Value], b: list[list[Value]], acc: list[Value]
    ) -> None:
        """One step of the depth: every row times the operands of every vector, each into a sum of its own."""
        for row, word in enumerate(self.load_a(f, a, max(part.widths))):
            left = [word]
            if self.instruction.joins:
                left = [*self._words_of_a(f, max(part.widths)).depths(word, None)]
            for v, (width, vectors) in enumerate(zip(part.widths, b, strict=True)):
                first = (row * len(part.widths) + v) * len(vectors)
                for index, (operand, vector) in enumerate(zip(left, vectors, strict=True), first):
                    a_lanes = self.unit.narrowed(f, operand, width)
                    acc[index] = self.unit.multiply(f, a_lanes, vector, acc[index])
