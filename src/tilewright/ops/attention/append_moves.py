"""Machine code that copies new rows to their places in caches of keys and values, converted where needed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array, addresses
from tilewright.calls.recording import constant
from tilewright.llvm.build import Function, Module
from tilewright.llvm.convert import Convert
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import (
    INT8,
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    int64,
    memory_type,
    null,
    vector_of,
)
from tilewright.machine.host import host_machine
from tilewright.macro.partition import MOVED_WORK
from tilewright.ops.attention.append_code import RowDestinations, record_of
from tilewright.preparing import once
from tilewright.recorder import current
from tilewright.spec.dtype import F32, DType, Kind, find_numpy_dtype

#: Bytes that a copy moves at once. A row of adjacent elements takes the largest one that divides its bytes.
UNITS = (64, 32, 16, 8, 4, 2, 1)

#: Words of the record of a move, strides in bytes; the pages of a cache without a table are its sequences. A
#: row is so many units, and then so many single elements.
_RECORD = (
    *("batch", "heads", "units", "singles", "page", "written"),
    *("new_batch", "new_head", "new_row", "new_unit", "new_single"),
    *("cache_page", "cache_head", "cache_row", "cache_unit", "cache_single"),
)
#: Arguments of a function: where rows go, and one or two moves.
_PLACES, _MOVE = ("before", "after", "pages"), ("record", "new", "cache")
_ARGUMENTS = (*_PLACES, *_MOVE, *(f"second_{name}" for name in _MOVE))


class FloatConversion(NamedTuple):
    """Element types of new rows and of a cache: floats of whole bytes."""

    source: DType
    to: DType


class _Element(NamedTuple):
    """How one unit of a row, or one element, becomes that of the cache."""

    kind: Type
    convert: FloatConversion | None

    def move(self, f: Function, read: Value, write: Value) -> None:
        value = f.load(self.kind, read, 1)
        if self.convert is not None:
            value = Convert(f, half=host_machine().isa.half)(value, *self.convert)
        f.store(value, write, 1)


# --- emission -------------------------------------------------------------------------------------


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


def _emit_rows(f: Function, unit: _Element, single: _Element | None) -> None:
    """Moves the new rows of every sequence and head into the cache.

    Parameters
    ----------
    single : of the elements behind whole units, where rows may have some.
    """
    g = f.arguments
    word = {name: f.load(INT64, f.at(g["record"], 8 * place), 8) for place, name in enumerate(_RECORD)}
    parts = [("unit", unit)] if single is None else [("unit", unit), ("single", single)]
    with (
        _stretches(f, word) as (i, page, row, rows, new_row),
        f.loop(int64(0), word["heads"], int64(1), "head") as head,
    ):
        source = f.at(g["new"], f.mul(i, word["new_batch"]))
        target = f.at(g["cache"], f.mul(page, word["cache_page"]))
        source = f.at(f.at(source, f.mul(head, word["new_head"])), f.mul(new_row, word["new_row"]))
        target = f.at(f.at(target, f.mul(head, word["cache_head"])), f.mul(row, word["cache_row"]))
        with f.carried_loop(int64(0), rows, int64(1), [source, target], "row") as (_, begun, next_row):
            places = list(begun)
            for name, element in parts:
                steps = word[f"new_{name}"], word[f"cache_{name}"]
                count = word[f"{name}s"]
                with f.carried_loop(int64(0), count, int64(1), places, name) as (_, (read, write), advance):
                    element.move(f, read, write)
                    advance([f.at(read, steps[0]), f.at(write, steps[1])])
                places = advance.results
            next_row([f.at(begun[0], word["new_row"]), f.at(begun[1], word["cache_row"])])
    f.ret()


def _emit_moves(module: Module, name: str, unit: _Element, single: _Element | None = None) -> None:
    """A function that makes one or two moves: those of keys and of values are one step of a recipe."""
    of_one = (*_PLACES, *_MOVE)
    one = module.define(f"{name}_once", VOID, [(argument, POINTER) for argument in of_one])
    _emit_rows(one, unit, single)
    f = module.define(name, VOID, [(argument, POINTER) for argument in _ARGUMENTS], exported=True)
    names = _PLACES, _MOVE, _ARGUMENTS[len(of_one) :]
    places, first, second = ([f.arguments[argument] for argument in part] for part in names)
    f.call(one.callee, [*places, *first])
    with f.when(f.icmp("!=", second[0], null())):
        f.call(one.callee, [*places, *second])
    f.ret()


def _compiled(name: str, functions: Mapping[str, tuple[_Element, ...]]) -> dict[str, Any]:
    """Functions of a module, by the elements that they move."""
    machine = host_machine()

    def compile_it() -> bytes:
        module = Module(name, machine.triple, data_layout(machine), vector_bits=machine.function_bits)
        for one, elements in functions.items():
            _emit_moves(module, one, *elements)
        return emit_object(str(module), name, machine)

    code = Linked(cached_object(f"{name} {machine.vector_bits}", machine, compile_it), tuple(functions), {})
    return {one: code.function(one, [ctypes.c_void_p] * len(_ARGUMENTS)) for one in functions}


@once
def _copies() -> dict[int, Any]:
    """Functions that copy rows, by their units."""
    names = {unit: f"tw_append_copy_{unit}" for unit in UNITS}
    elements = {names[unit]: (_Element(vector_of(INT8, unit), None),) for unit in UNITS}
    found = _compiled("tw_append_copies", elements)
    return {unit: found[name] for unit, name in names.items()}


def _lanes() -> int:
    """Elements that are converted at once."""
    return host_machine().isa.lanes(F32)


@once
def _conversion(convert: FloatConversion) -> Any:
    """The function that converts rows."""
    kind, name = memory_type(convert.source), f"tw_append_{convert.source}_{convert.to}"
    elements = (_Element(vector_of(kind, _lanes()), convert), _Element(kind, convert))
    return _compiled(name, {name: elements})[name]


# --- calls ----------------------------------------------------------------------------------------


def conversion_of(source: np.dtype[Any], to: np.dtype[Any]) -> FloatConversion | None:
    """How machine code converts rows of one type to another; None where NumPy does.

    >>> conversion_of(np.dtype("f4"), np.dtype("f2")) is None, conversion_of(np.dtype("i4"), np.dtype("f4"))
    (False, None)
    """
    if not (source.isnative and to.isnative):
        return None
    types = find_numpy_dtype(source), find_numpy_dtype(to)
    if any(one is None or one.kind is not Kind.FLOAT for one in types):
        return None
    return FloatConversion(*types)  # type: ignore[arg-type]


class _Shape(NamedTuple):
    """Heads and rows of a move: single elements of each row behind its units, and the strides of both."""

    heads: int
    units: int
    singles: int
    unit_steps: tuple[int, int]
    single_steps: tuple[int, int]


class RowMove(NamedTuple):
    """New rows and the cache that they go to, apart in memory.

    Attributes
    ----------
    new : (batch, heads, rows, columns).
    cache : (batch or pages, heads, rows, columns).
    convert : None for the same type.
    """

    new: Array
    cache: Array
    convert: FloatConversion | None = None

    def columns(self) -> tuple[int, int, bool]:
        """Heads, columns, and whether columns are adjacent; adjacent heads are one."""
        both = self.new, self.cache
        heads, columns = self.new.shape[1], self.new.shape[3]
        adjacent = columns == 1 or all(one.strides[3] == one.itemsize for one in both)
        if adjacent and all(one.strides[1] == columns * one.itemsize for one in both):
            return 1, heads * columns, True
        return heads, columns, adjacent

    def plan(self) -> tuple[Any, _Shape]:
        """The function, and what it moves of each row."""
        heads, columns, adjacent = self.columns()
        size = self.new.itemsize
        sizes = steps = size, self.cache.itemsize
        if not adjacent:
            steps = self.new.strides[3], self.cache.strides[3]
        if self.convert is not None:
            lanes = _lanes() if adjacent else 1
            whole = columns // lanes if adjacent else 0
            rest = columns - whole * lanes
            vectors = sizes[0] * lanes, sizes[1] * lanes
            return _conversion(self.convert), _Shape(heads, whole, rest, vectors, steps)
        if not adjacent:
            return _copies()[size], _Shape(heads, columns, 0, steps, steps)
        unit = next(unit for unit in UNITS if columns * size % unit == 0)
        return _copies()[unit], _Shape(heads, columns * size // unit, 0, (unit, unit), (unit, unit))

    def record(self, places: RowDestinations, shape: _Shape) -> Array:
        """The record of the move."""
        written = 0 if places.pages is None else places.pages.shape[1]
        words = [len(self.new), shape.heads, shape.units, shape.singles, places.page, written]
        for side, array in enumerate((self.new, self.cache)):
            words += (*array.strides[:3], shape.unit_steps[side], shape.single_steps[side])
        return constant(record_of(tuple(words)))


def make_moves(places: RowDestinations, *moves: RowMove) -> None:
    """Make one move or two, of rows that have the same places."""
    moves = tuple(move for move in moves if move.new.size)
    if not moves:
        return
    functions, shapes = zip(*(move.plan() for move in moves), strict=True)
    if len(set(functions)) > 1:
        for move in moves:
            make_moves(places, move)
        return
    recorder = current.recorder
    if recorder is not None:
        recorder.team(None, sum(move.new.size for move in moves) * MOVED_WORK)
    given: list[Array | None] = [places.before, places.after, places.pages]
    for move, shape in zip(moves, shapes, strict=True):
        given += (move.record(places, shape), move.new, move.cache)
    given += [None] * (len(_ARGUMENTS) - len(given))
    functions[0](*addresses(*given))
