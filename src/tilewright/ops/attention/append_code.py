"""Machine code that appends rows to caches of keys and values: a check of lengths and pages, then copies.

The check is a step of the recipe. Where it fails nothing has been written yet, and Python makes the call,
with its errors. It leaves private copies of the lengths and of the pages that the copies write to, since
another thread may change the caller's arrays in between.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array, data_address
from tilewright.calls.recording import constant, new_array
from tilewright.llvm.build import Function, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT8, INT32, INT64, POINTER, VOID, Value, int64, null, vector_of
from tilewright.machine.host import host_machine
from tilewright.macro.partition import MOVED_WORK
from tilewright.preparing import once
from tilewright.recorder import current

_MODULE, _CHECK, _COPY = "tw_append", "tw_check_append", "tw_append_rows_{}"

#: Bytes that a copy moves at once. A row of adjacent elements takes the largest one that divides its bytes.
UNITS = (64, 32, 16, 8, 4, 2, 1)

#: Words of the record of a check. Of each array of integers: bytes of an element, 4 or 8, and strides.
_LIMITS = (
    *("batch", "new_rows", "capacity", "page", "pages", "written"),
    *("before_bytes", "before_step", "count_bytes", "count_step"),
    *("table_bytes", "table_step", "table_page_step"),
)
#: Words of the record of a copy, strides in bytes; the pages of a cache without a table are its sequences.
_MOVES = (
    *("batch", "heads", "units", "page", "written"),
    *("new_batch", "new_head", "new_row", "new_unit"),
    *("cache_page", "cache_head", "cache_row", "cache_unit"),
)
#: Arguments of a copy: where rows go, and one or two moves.
_PLACES, _MOVE = ("before", "after", "pages"), ("moves", "new", "cache")


class Places(NamedTuple):
    """Where the rows of each sequence go, as a check has left it.

    Attributes
    ----------
    before, after : rows of each sequence so far and with the new ones, int64 (batch,).
    pages : the pages that they are written to, int64 (batch, most of a sequence); None without pages.
    page : rows of a page; without pages, of a sequence.
    """

    before: Array
    after: Array
    pages: Array | None
    page: int


class Integers(NamedTuple):
    """An array of int32 or int64 that a check reads as it is, and its strides in bytes."""

    array: Array | None = None
    steps: tuple[int, ...] = (0, 0)

    @property
    def item_bytes(self) -> int:
        """Bytes of an element."""
        return 8 if self.array is None else self.array.itemsize


# --- emission -------------------------------------------------------------------------------------


def _emit() -> str:
    """The module."""
    machine = host_machine()
    module = Module(_MODULE, machine.triple, data_layout(machine))
    names = ("status", "limits", "before", "count", "table", "own_before", "after", "own_pages")
    _emit_check(module.define(_CHECK, VOID, [(one, POINTER) for one in names], exported=True))
    for unit in UNITS:
        _emit_copies(module, unit)
    return str(module)


def _words(f: Function, record: Value, names: tuple[str, ...]) -> dict[str, Value]:
    return {name: f.load(INT64, f.at(record, 8 * place), 8) for place, name in enumerate(names)}


def _integer(f: Function, place: Value, item_bytes: Value) -> Value:
    """An integer of 4 or 8 bytes."""
    wide = f.icmp("==", item_bytes, 8)
    with f.once_if(wide, [int64(0)]) as (_, of_eight):
        of_eight([f.load(INT64, place, 8)])
    with f.once_if(f.not_(wide), of_eight.results) as (_, of_four):
        of_four([f.sext(f.load(INT32, place, 4), INT64)])
    return of_four.results[0]


def _emit_check(f: Function) -> None:
    """Sets the status to 0 if all rows have a place, and stores where; else to 1."""
    g = f.arguments
    word = _words(f, g["limits"], _LIMITS)
    refused = f.new_block("refused")

    def require(condition: Value) -> None:
        following = f.new_block("valid")
        f.jump_if(condition, following, refused)
        f.place(following)

    def page_of(own: Value, number: Value) -> Value:
        """An entry of the table, which is checked."""
        page = _integer(f, f.at(own, f.mul(number, word["table_page_step"])), word["table_bytes"])
        require(f.and_(f.icmp(">=", page, 0), f.icmp("<", page, word["pages"])))
        return page

    with f.loop(int64(0), word["batch"], int64(1), "sequence") as i:
        place = f.at(g["before"], f.mul(i, word["before_step"]))
        before = _integer(f, place, word["before_bytes"])
        require(f.and_(f.icmp(">=", before, 0), f.icmp("<=", before, word["capacity"])))
        with f.once_if(f.icmp("!=", g["count"], null()), [word["new_rows"]]) as (_, given):
            place = f.at(g["count"], f.mul(i, word["count_step"]))
            given([_integer(f, place, word["count_bytes"])])
        count = given.results[0]
        require(f.and_(f.icmp(">=", count, 0), f.icmp("<=", count, word["new_rows"])))
        after = f.add(before, count)
        require(f.icmp("<=", after, word["capacity"]))
        f.store(before, f.at(g["own_before"], f.mul(i, 8)), 8)
        f.store(after, f.at(g["after"], f.mul(i, 8)), 8)
        with f.when(f.icmp("!=", g["table"], null())):
            own = f.at(g["table"], f.mul(i, word["table_step"]))
            first, end = f.udiv(before, word["page"]), f.ceildiv(after, word["page"])
            with f.loop(int64(0), f.minimum(first, end), int64(1), "former") as number:
                page_of(own, number)
            to = f.at(g["own_pages"], f.mul(f.mul(i, word["written"]), 8))
            with f.loop(first, end, int64(1), "page") as number:
                f.store(page_of(own, number), f.at(to, f.mul(f.sub(number, first), 8)), 8)
    f.store(int64(0), g["status"], 8)
    f.ret()
    f.place(refused)
    f.store(int64(1), g["status"], 8)
    f.ret()


@contextmanager
def _stretches(f: Function, word: dict[str, Value]) -> Iterator[tuple[Value, Value, Value, Value, Value]]:
    """A loop over runs of rows in one page: sequence, page, first row in it, rows, first new row."""
    g = f.arguments
    with f.loop(int64(0), word["batch"], int64(1), "sequence") as i:
        before, after = (f.load(INT64, f.at(g[name], f.mul(i, 8)), 8) for name in ("before", "after"))
        first, end = f.udiv(before, word["page"]), f.ceildiv(after, word["page"])
        own = f.at(g["pages"], f.mul(f.mul(i, word["written"]), 8))
        with f.loop(first, end, int64(1), "page") as number:
            with f.once_if(f.icmp("!=", g["pages"], null()), [i]) as (_, given):
                given([f.load(INT64, f.at(own, f.mul(f.sub(number, first), 8)), 8)])
            start = f.mul(number, word["page"])
            begin = f.maximum(before, start)
            rows = f.sub(f.minimum(after, f.add(start, word["page"])), begin)
            yield i, given.results[0], f.sub(begin, start), rows, f.sub(begin, before)


def _emit_copies(module: Module, unit: int) -> None:
    """A function that makes one or two moves of a unit: keys and values are one step of a recipe."""
    names = (*_PLACES, *_MOVE)
    one = module.define(f"{_COPY.format(unit)}_once", VOID, [(name, POINTER) for name in names])
    _emit_copy(one, unit)
    names = (*_PLACES, *_MOVE, *(f"second_{name}" for name in _MOVE))
    f = module.define(_COPY.format(unit), VOID, [(name, POINTER) for name in names], exported=True)
    places, first, second = (
        [f.arguments[name] for name in part] for part in (_PLACES, _MOVE, names[-len(_MOVE) :])
    )
    f.call(one.callee, [*places, *first])
    with f.when(f.icmp("!=", second[0], null())):
        f.call(one.callee, [*places, *second])
    f.ret()


def _emit_copy(f: Function, unit: int) -> None:
    """Copies the new rows of every sequence and head into the cache."""
    g = f.arguments
    word = _words(f, g["moves"], _MOVES)
    kind, units = vector_of(INT8, unit), word["units"]
    with (
        _stretches(f, word) as (i, page, row, rows, new_row),
        f.loop(int64(0), word["heads"], int64(1), "head") as head,
    ):
        source = f.at(g["new"], f.mul(i, word["new_batch"]))
        target = f.at(g["cache"], f.mul(page, word["cache_page"]))
        source = f.at(f.at(source, f.mul(head, word["new_head"])), f.mul(new_row, word["new_row"]))
        target = f.at(f.at(target, f.mul(head, word["cache_head"])), f.mul(row, word["cache_row"]))
        with f.carried_loop(int64(0), rows, int64(1), [source, target], "row") as (_, places, next_row):
            with f.carried_loop(int64(0), units, int64(1), places, "unit") as (_, (read, write), following):
                f.store(f.load(kind, read, 1), write, 1)
                following([f.at(read, word["new_unit"]), f.at(write, word["cache_unit"])])
            source, target = places
            next_row([f.at(source, word["new_row"]), f.at(target, word["cache_row"])])
    f.ret()


@once
def _functions() -> dict[str, Any]:
    """The functions of the module, by their names."""
    machine = host_machine()
    code = cached_object(_MODULE, machine, lambda: emit_object(_emit(), _MODULE, machine))
    copies = len(_PLACES) + 2 * len(_MOVE)
    counts = {_CHECK: 8, **{_COPY.format(unit): copies for unit in UNITS}}
    linked = Linked(code, tuple(counts), {})
    return {name: linked.function(name, [ctypes.c_void_p] * count) for name, count in counts.items()}


# --- calls ----------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _record(words: tuple[int, ...]) -> Array:
    found = np.array(words, np.int64)
    found.flags.writeable = False
    return found


def _addresses(*arrays: Array | None) -> list[int | None]:
    return [None if array is None else data_address(array) for array in arrays]


def check_append(
    capacity: int,
    new_rows: int,
    before: Integers,
    count: Integers,
    table: Integers,
    pages: tuple[int, int],
    after: Array,
) -> Places | None:
    """Where new rows go; None if lengths or pages are invalid. A recording takes it for a check.

    Parameters
    ----------
    capacity : the most rows of a sequence.
    new_rows : the most new rows of a sequence, and the number of them without `count`.
    before, count : rows of each sequence so far, and new ones.
    table : the pages of each sequence.
    pages : how many pages a cache has, and the rows of one.
    after : receives the rows of each sequence with the new ones, int64 (batch,).
    """
    batch, page = len(after), max(pages[1], 1)
    written, own_pages = 0, None
    if table.array is not None:
        # The most pages that so many rows lie in, wherever they begin.
        written = min(table.array.shape[1], (new_rows + 2 * page - 2) // page)
        own_pages = new_array((batch, written), np.int64)
    status, own_before = new_array((1,), np.int64), new_array((batch,), np.int64)
    words = _record(
        (
            *(batch, new_rows, capacity, page, pages[0], written),
            *(before.item_bytes, before.steps[0], count.item_bytes, count.steps[0]),
            *(table.item_bytes, *table.steps),
        )
    )
    recorder = current.recorder
    if recorder is not None:
        recorder.team(None, 0)
    arrays = (status, constant(words), before.array, count.array, table.array, own_before, after, own_pages)
    _functions()[_CHECK](*_addresses(*arrays))
    if recorder is not None:
        recorder.check()
    return None if status[0] else Places(own_before, after, own_pages, page)


class Move(NamedTuple):
    """New rows and the cache that they are copied to, apart in memory, of one element type.

    Attributes
    ----------
    new : (batch, heads, rows, columns).
    cache : (batch or pages, heads, rows, columns).
    """

    new: Array
    cache: Array

    def record(self, places: Places) -> tuple[int, Array]:
        """The unit of the copy, and its record."""
        new, cache = self
        heads, columns, size = new.shape[1], new.shape[3], new.itemsize
        steps = [list(new.strides), list(cache.strides)]
        if all(one[3] == size or columns == 1 for one in steps):
            if heads > 1 and all(one[1] == columns * size for one in steps):
                heads, columns = 1, heads * columns
            unit = next(unit for unit in UNITS if columns * size % unit == 0)
            units, across = columns * size // unit, [unit, unit]
        else:
            unit, units, across = size, columns, [one[3] for one in steps]
        strides = [word for one, step in zip(steps, across, strict=True) for word in (*one[:3], step)]
        written = 0 if places.pages is None else places.pages.shape[1]
        return unit, _record((len(new), heads, units, places.page, written, *strides))


def copy_rows(places: Places, *moves: Move) -> None:
    """Make one move or two, of rows that have the same places."""
    moves = tuple(move for move in moves if move.new.size)
    if not moves:
        return
    units, records = zip(*(move.record(places) for move in moves), strict=True)
    if len(set(units)) > 1:
        for move in moves:
            copy_rows(places, move)
        return
    recorder = current.recorder
    if recorder is not None:
        recorder.team(None, sum(move.new.size for move in moves) * MOVED_WORK)
    given: list[Array | None] = [places.before, places.after, places.pages]
    for record, move in zip(records, moves, strict=True):
        given += (constant(record), *move)
    given += [None] * (len(_PLACES) + 2 * len(_MOVE) - len(given))
    _functions()[_COPY.format(units[0])](*_addresses(*given))
