"""Tiles of few rows and many columns: words of a packed weight are unpacked between the multiply-adds."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.ir.nodes import Tile
from tilewright.llvm.build import Function
from tilewright.llvm.values import Value, int64
from tilewright.machine.isa import Isa, TileFma
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.packing.words import Words
from tilewright.micro.tiles.operands import Source, TileCall, TilePart
from tilewright.micro.tiles.vector import VectorKernel
from tilewright.spec.dtype import DType
from tilewright.spec.weights import Elements

#: The fewest depths per iteration of the loop, so that its own instructions are negligible.
TURN_DEPTHS = 4

#: Prefetch distance in bytes, for all panels together: what memory delivers within its latency (45 GB/s, 150
#: ns and more). The hardware prefetchers stop at page boundaries.
AHEAD_BYTES = 8192


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
        self.elements = elements

    @property
    def name(self) -> str:
        """The part of the functions' names that identifies this tile in a module."""
        return f"{super().name}_{self.elements.value}"

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
        """All depths of one product: several words per iteration, single words, then a partial last word."""
        del masks  # whole panels: lanes beyond the last column may be read
        assert call.b.panels is not None
        deep = self.elements.depths
        panels = -(-sum(part.widths) // call.b.panels.lanes)
        apart = f.mul(call.b.panels.stride, self.elements.storage.size)
        starts = [
            call.b.pointer,
            *(f.at(call.b.pointer, f.freeze(f.mul(apart, number))) for number in range(1, panels)),
        ]
        rows = self._row_pointers(f, call, part.rows)
        walk = _Walk(len(rows.bases), panels, rows.rows, self._zeros(f, part, call))
        state, done = [*rows.bases, *starts, *acc], int64(0)
        for words in dict.fromkeys((max(1, TURN_DEPTHS // deep), 1)):
            depths = words * deep
            end = f.sub(call.depth, depths - 1)
            with f.carried_loop(done, end, int64(depths), state, "word") as (_, values, advance):
                advance(self._turn(f, part, call, walk, words, list(values)))
            state = advance.results
            done = f.mul(f.ashr(call.depth, int64(depths.bit_length() - 1)), depths)
        if deep > self.instruction.kr:
            return self._last_word(f, part, call, walk, f.sub(call.depth, done), state)
        return state[walk.fixed :]

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
        kr, acc = self.instruction.kr, list(acc)
        vectors = self._vectors(f, part, call, starts)
        if not self.elements.scaled and self.b.dtype == self.instruction.b:  # words are the instruction's own
            self._multiply(f, part, a, [word for _, word in vectors], acc)
            return acc
        taken = [words.depths(word, self._zero(f, walk, v, words)) for v, (words, word) in enumerate(vectors)]
        for depth in range(0, self.elements.depths, kr):
            values = [
                next(depths) if kr == 1 else words.pair(next(depths), next(depths))
                for depths, (words, _) in zip(taken, vectors, strict=True)
            ]
            self._multiply(f, part, [f.at(row, depth * self.a.dtype.size) for row in a], values, acc)
        return acc

    def _last_word(
        self, f: Function, part: TilePart, call: TileCall, walk: _Walk, rest: Value, state: list[Value]
    ) -> list[Value]:
        """The depths of a partial word, one step of the instruction at a time."""
        kr = self.instruction.kr
        bases, starts, sums = walk.parts(state)
        with f.carried_loop(int64(0), rest, int64(kr), sums, "rest") as (depth, values, advance):
            acc, found = list(values), []
            for v, (words, word) in enumerate(self._vectors(f, part, call, starts)):
                zero = self._zero(f, walk, v, words)
                several = [words.depth(word, f.add(depth, number), zero) for number in range(kr)]
                found.append(several[0] if kr == 1 else words.pair(several[0], several[1]))
            step = f.mul(depth, self.a.dtype.size)
            a = [f.at(f.at(bases[group], at), step) for group, at in walk.rows]
            self._multiply(f, part, a, found, acc)
            advance(acc)
        return advance.results

    def _zero(self, f: Function, walk: _Walk, v: int, words: Words) -> Value | None:
        """The zero points of one vector of columns."""
        return f.load(words.kind, walk.zeros[v], self.acc.size) if walk.zeros else None

    def _multiply(
        self, f: Function, part: TilePart, a: list[Value], b: list[Value], acc: list[Value]
    ) -> None:
        """One step of the depth: every row times every vector, into the sums."""
        for row, operand in enumerate(self.load_a(f, a, max(part.widths))):
            for v, (width, vector) in enumerate(zip(part.widths, b, strict=True)):
                index = row * len(part.widths) + v
                acc[index] = self.unit.multiply(f, self.unit.narrowed(f, operand, width), vector, acc[index])
