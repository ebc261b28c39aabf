"""Interface to emit one multiply instruction: its operands, its accumulator, and its result rows.

A register tile is a grid of accumulators, each of which one instruction updates: m rows and n columns of
C, k depths at a time (`TileFma`). A `Multiply` defines the LLVM type of an accumulator and the
intrinsic that multiplies; `kernel.py` loops over the grid and the depth, independently of the unit.
"""
# ruff: noqa: ARG002, D102
# (`Multiply` documents the methods; not every instruction needs every argument.)

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from tilewright.llvm.build import Function
from tilewright.llvm.values import Type, Value, memory_type, vector_of, vector_type, zero
from tilewright.machine.isa import Isa, TileFma
from tilewright.spec.dtype import F32, F64


class Multiply(ABC):
    """One instruction: acc[m, n] += a[m, k] · b[k, n].

    In a packed panel, `kr` consecutive depths of one lane are adjacent, then the lanes. So where kr = k, the
    operands of one instruction are m·k and n·k adjacent elements.

    Parameters
    ----------
    isa, tile : the row and its instruction.
    """

    #: The accumulators are state of the unit (ZA of SME, the tiles of AMX), not values of LLVM.
    resident: ClassVar[bool] = False

    #: Accumulators go to memory whole (`store`), and only from there to registers.
    stores: ClassVar[bool] = False

    #: Whether a thread has to configure the unit, once for any number of tiles: see `configure`.
    configured: ClassVar[bool] = False

    #: Steps of the depth by which operands are loaded before they are multiplied; 0: in the same step.
    ahead: ClassVar[int] = 0

    #: Adjacent operands of a panel that one instruction loads.
    together: ClassVar[int] = 1

    def __init__(self, isa: Isa, tile: TileFma) -> None:
        self.isa, self.tile = isa, tile

    @property
    def attributes(self) -> str | None:
        """LLVM attributes of functions that use the unit; they replace the default ones."""
        return None

    def configure(self, f: Function) -> None:  # noqa: B027
        """Before the first tile."""

    def release(self, f: Function) -> None:  # noqa: B027
        """After the last tile."""

    def begin(self, f: Function, down: int, across: int) -> None:  # noqa: B027
        """Before the first accumulator of a grid of `down` × `across`."""

    def end(self, f: Function) -> None:  # noqa: B027
        """After the last row was read: leaves the unit as it was found."""

    # --- sums beside the grid ---------------------------------------------------------------

    @property
    def bias(self) -> str | None:
        """Correction sums for sign-flipped operands, one for each "row" or "column" of the grid; or None."""
        return None

    def bias_zero(self, f: Function) -> Value:
        """The empty sum of one operand's lanes."""
        raise NotImplementedError

    def bias_multiply(self, f: Function, operand: Value, acc: Value) -> Value:
        """acc + what the change of sign adds for an operand of A ("row") or B ("column")."""
        raise NotImplementedError

    def bias_rows(self, f: Function, acc: Value) -> list[Value]:
        """Values to subtract from each vector of the m rows of an accumulator in that row or column."""
        raise NotImplementedError

    @abstractmethod
    def zero(self, f: Function, down: int, across: int) -> Value:
        """The empty accumulator at a place of the grid."""

    @abstractmethod
    def load_a(self, f: Function, pointer: Value, down: int) -> Value:
        """The operand of A for m lanes and k depths, from a packed panel; `down` is its place in the grid."""

    @abstractmethod
    def load_b(self, f: Function, pointer: Value, across: int) -> Value:
        """The operand of B for n lanes and k depths, from a packed panel."""

    def load_run_a(self, f: Function, pointer: Value, places: range) -> list[Value]:
        """Operands of A that are adjacent in a packed panel, at most `together`."""
        size = self.tile.a.bytes(self.tile.m * self.tile.interleave_a)
        return [self.load_a(f, f.at(pointer, number * size), down) for number, down in enumerate(places)]

    def load_run_b(self, f: Function, pointer: Value, places: range) -> list[Value]:
        """Operands of B that are adjacent in a packed panel, at most `together`."""
        size = self.tile.b.bytes(self.tile.n * self.tile.kr)
        return [self.load_b(f, f.at(pointer, number * size), across) for number, across in enumerate(places)]

    @abstractmethod
    def multiply(self, f: Function, a: Value, b: Value, acc: Value) -> Value:
        """acc + a · b."""

    @abstractmethod
    def rows(self, f: Function, accs: Sequence[Value]) -> Iterable[list[Value]]:
        """The m rows of horizontally adjacent accumulators: each a list of vectors of the acc type.

        The widths of the vectors of one row add up to n times the number of accumulators.
        If the unit holds them (`resident`), each row is moved out when it is requested.
        """

    def store(self, f: Function, accs: Sequence[Value], pointer: Value, row_bytes: Value) -> None:
        """Stores the m rows of horizontally adjacent accumulators, so many bytes from each other."""
        size = self.tile.acc.size
        for row, vectors in enumerate(self.rows(f, accs)):
            place = f.at(pointer, f.mul(row_bytes, row))
            for vector in vectors:
                f.store(vector, place, size)
                place = f.at(place, vector.type.lanes * size)


class VectorMultiply(Multiply):
    """m = 1: one row of A, its k depths in one word that every lane gets, times a vector of B.

    The accumulator is a vector of the acc type. A subclass writes `multiply` on operands of any width that
    is a power of two; both are vectors of `word`.
    """

    #: One more accumulator per vector of B is multiplied with `biased_word` and taken off every row.
    biased = False

    @property
    def word(self) -> Type:
        """The k depths of one lane: an element, or an integer that holds several."""
        if self.tile.kr == 1:
            return memory_type(self.tile.a)
        bits = self.tile.a.bits * self.tile.kr
        return Type(f"i{bits}", f"i{bits}")

    def prepare_a(self, f: Function, word: Value) -> Value:
        """Transform the word of A, or a vector of words, before it is broadcast."""
        return word

    @contextmanager
    def in_its_mode(self, f: Function) -> Iterator[None]:
        """Code in which multiply-adds of floats round and flush as those of the unit do."""
        yield

    def biased_word(self, f: Function, width: int) -> Value:
        """The operand of A whose product with B `prepare_a` has added to every row."""
        raise NotImplementedError

    def first(self, f: Function, a: Value, b: Value) -> Value:
        """a · b: the first sum."""
        return self.multiply(f, a, b, zero(vector_type(self.tile.acc, a.type.lanes)))

    def zero(self, f: Function, down: int, across: int) -> Value:
        return zero(vector_type(self.tile.acc, self.tile.n))

    def load_a(self, f: Function, pointer: Value, down: int) -> Value:
        word = self.prepare_a(f, f.load(self.word, pointer, self.tile.a.size))
        return f.splat(word, self.tile.n)

    def load_lanes(self, f: Function, pointer: Value, down: int) -> list[Value]:
        """The operands of A of `down` rows, adjacent in a panel: lanes of as few registers as hold them.

        before: load word 0, splat; load word 1, splat; ...
        after:  load words 0..3; lane 0, lane 1, ...
        """
        word_bits = self.tile.a.bits * self.tile.kr
        operands: list[Value] = []
        while len(operands) < down:
            count = min(self.isa.vector_bits // word_bits, down - len(operands))
            place = f.at(pointer, len(operands) * word_bits // 8)
            operands += self.spread(f, f.load(vector_of(self.word, count), place, self.tile.a.size))
        return operands

    def spread(self, f: Function, words: Value) -> list[Value]:
        """Each lane of some words of A as an operand."""
        words = self.prepare_a(f, words)
        return [f.shuffle(words, words, [lane] * self.tile.n) for lane in range(words.type.lanes)]

    def narrowed(self, f: Function, a: Value, width: int) -> Value:
        """An operand of A for fewer columns, as `multiply` takes it."""
        if a.type.lanes == width:
            return a
        if self.isa.folds_loads and a.type in (vector_type(kind, a.type.lanes) for kind in (F32, F64)):
            a = f.arithmetic_fence(a)  # or LLVM broadcasts a part once more, by a shuffle
        return f.shuffle(a, a, range(width))

    def load_b(self, f: Function, pointer: Value, across: int) -> Value:
        return f.load(vector_of(self.word, self.tile.n), pointer, self.tile.b.size)

    def rows(self, f: Function, accs: Sequence[Value]) -> list[list[Value]]:
        return [list(accs)]
