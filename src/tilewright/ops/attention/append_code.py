"""Machine code that checks the lengths and pages of rows that are appended to caches of keys and values.

The check is a step of the recipe. Where it fails nothing has been written yet, and Python makes the call,
with its errors. It leaves private copies of the lengths and of the pages that the copies write to, since
another thread may change the caller's arrays in between.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array, addresses
from tilewright.calls.recording import constant, new_array
from tilewright.llvm.build import Function, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, int64, null
from tilewright.machine.host import host_machine
from tilewright.preparing import once
from tilewright.recorder import current

_CHECK = "tw_check_append"
_ARGUMENTS = ("status", "limits", "before", "count", "table", "own_before", "after", "own_pages")

#: Words of the record of a check. Of each array of integers: bytes of an element, 4 or 8, and strides.
_LIMITS = (
    *("batch", "new_rows", "capacity", "page", "pages", "written"),
    *("before_bytes", "before_step", "count_bytes", "count_step"),
    *("table_bytes", "table_step", "table_page_step"),
)


class RowDestinations(NamedTuple):
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
    module = Module(_CHECK, machine.triple, data_layout(machine))
    _emit_check(module.define(_CHECK, VOID, [(one, POINTER) for one in _ARGUMENTS], exported=True))
    return str(module)


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
    word = {name: f.load(INT64, f.at(g["limits"], 8 * place), 8) for place, name in enumerate(_LIMITS)}
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


@once
def _function() -> Any:
    machine = host_machine()
    code = cached_object(_CHECK, machine, lambda: emit_object(_emit(), _CHECK, machine))
    return Linked(code, (_CHECK,), {}).function(_CHECK, [ctypes.c_void_p] * len(_ARGUMENTS))


# --- calls ----------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def record_of(words: tuple[int, ...]) -> Array:
    """Words in memory, the same ones for the same words."""
    found = np.array(words, np.int64)
    found.flags.writeable = False
    return found


def check_append(
    capacity: int,
    new_rows: int,
    before: Integers,
    count: Integers,
    table: Integers,
    pages: tuple[int, int],
    after: Array,
) -> RowDestinations | None:
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
    words = record_of(
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
    _function()(*addresses(*arrays))
    if recorder is not None:
        recorder.check()
    return None if status[0] else RowDestinations(own_before, after, own_pages, page)
