"""The table of a call whose lengths, offsets or positions are in arrays, made and checked by machine code.

A call that is repeated reads these arrays again. So machine code makes the table each time, also the first;
whether the arrays are valid, and whether what Python has decided still holds for them, are checks of the
recipe: where they fail, Python makes the call, with its errors and decisions.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array, data_address
from tilewright.calls.recording import constant, new_array, not_repeatable
from tilewright.llvm.build import Function, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID, Value, int64, null
from tilewright.machine.host import host_machine
from tilewright.ops.attention.bounds import FARTHEST
from tilewright.ops.attention.problem import ITEM_FIELDS, ITEM_SIZE
from tilewright.preparing import once
from tilewright.recorder import current

_MODULE, _MAKE, _AGREE = "tw_attention_table", "tw_make_table", "tw_table_agrees"

#: Words of the record of a call.
_RECORD = (
    *("batch", "queries", "keys", "covered", "left", "right", "upper_left", "offset", "most_pages", "page"),
    *("cache", "q_step", "k_step"),
    *("q", "k", "v", "out", "mask", "state", "scales"),
)
#: Arrays of a call, in the order of the function's arguments behind the record.
_ARRAYS = ("q_lengths", "q_offsets", "k_lengths", "k_offsets", "positions", "pages")
#: Words of what a call has decided by its table.
_DECISIONS = (
    *("batch", "least_each", "least_queries", "most_queries", "least_keys", "most_keys", "unbounded"),
)
#: No bound to a side, and no position of the first query.
NO_BOUND, NO_OFFSET = -1, -(1 << 62)


class Sources(NamedTuple):
    """The arrays that tell sequences apart, int64 and contiguous; None where the call has none."""

    q_lengths: Array | None = None
    q_offsets: Array | None = None
    k_lengths: Array | None = None
    k_offsets: Array | None = None
    positions: Array | None = None
    pages: Array | None = None


def _emit() -> str:
    """The module."""
    machine = host_machine()
    module = Module(_MODULE, machine.triple, data_layout(machine))
    for emit, name, others in (
        (_emit_make, _MAKE, ("record", *_ARRAYS)),
        (_emit_agree, _AGREE, ("decisions",)),
    ):
        pointers = [(one, POINTER) for one in ("status", *others, "items")]
        emit(module.define(name, VOID, pointers, exported=True))
    return str(module)


def _word(f: Function, base: Value, index: Value | int) -> Value:
    at = 8 * index if isinstance(index, int) else f.mul(index, 8)
    return f.load(INT64, f.at(base, at), 8)


def _refuse(f: Function, wrong: Value) -> None:
    """Leaves the function, with the status that is stored at its start, if something is wrong."""
    with f.when(wrong):
        f.ret()


def _emit_make(f: Function) -> None:
    """Checks the arrays and fills the table: see `Bounds.limits` for the keys that queries see."""
    g = f.arguments
    word = {name: _word(f, g["record"], number) for number, name in enumerate(_RECORD)}
    f.store(int64(1), g["status"], 8)
    with f.loop(int64(0), word["batch"], int64(1), "sequence") as i:
        sides = []
        for side, rows in (("q", word["queries"]), ("k", word["keys"])):
            given, packed = g[f"{side}_lengths"], g[f"{side}_offsets"]
            count, first = f.alloca(INT64, 1, 8), f.alloca(INT64, 1, 8)
            f.store(rows, count, 8)
            f.store(i, first, 8)
            with f.when(f.icmp("!=", given, null())):
                f.store(_word(f, given, i), count, 8)
            with f.when(f.icmp("!=", packed, null())):
                place = f.mul(i, word[f"{side}_step"])
                start, end = _word(f, packed, place), _word(f, packed, f.add(place, 1))
                # Offsets are from 0 to the rows, and none is below the one before.
                _refuse(f, f.icmp("!=", _word(f, packed, 0), 0))
                _refuse(f, f.or_(f.icmp("<", start, 0), f.icmp("<", end, start)))
                _refuse(f, f.icmp(">", end, rows))
                f.store(f.sub(end, start), count, 8)
                f.store(start, first, 8)
            sides.append((f.load(INT64, count, 8), f.load(INT64, first, 8)))
            _refuse(f, f.or_(f.icmp("<", sides[-1][0], 0), f.icmp(">", sides[-1][0], rows)))
        (queries, q_first), (count, k_first) = sides
        used = f.minimum(count, word["covered"])
        place, shift = f.alloca(INT64, 1, 8), f.alloca(INT64, 1, 8)
        diagonal = f.select(f.icmp("!=", word["upper_left"], 0), int64(0), f.sub(count, queries))
        f.store(diagonal, place, 8)
        f.store(f.sub(count, used), shift, 8)
        given = f.icmp("!=", g["positions"], null())
        with f.when(f.or_(given, f.icmp("!=", word["offset"], NO_OFFSET))):
            f.store(word["offset"], place, 8)
            with f.when(given):
                found = _word(f, g["positions"], i)
                _refuse(f, f.or_(f.icmp("<", found, -FARTHEST), f.icmp(">", found, FARTHEST)))
                f.store(found, place, 8)
            f.store(f.sub(f.load(INT64, place, 8), f.sub(used, queries)), shift, 8)
        first = f.load(INT64, place, 8)
        least = f.sub(int64(0), queries)
        low = f.minimum(f.maximum(f.sub(first, word["left"]), least), used)
        low = f.select(f.icmp("==", word["left"], NO_BOUND), least, low)
        high = f.maximum(f.minimum(f.add(f.add(first, word["right"]), 1), used), least)
        high = f.select(f.icmp("==", word["right"], NO_BOUND), used, high)
        _emit_pages(f, word, i, count)
        values = {
            **{name: f.mul(q_first, word[name]) for name in ("q", "out", "state")},
            **{name: f.mul(k_first, word[name]) for name in ("k", "v", "scales")},
            "mask": f.mul(i, word["mask"]),
            "pages": f.mul(i, word["most_pages"]),
            "queries": queries,
            "keys": used,
            "low": low,
            "high": high,
            "shift": f.load(INT64, shift, 8),
        }
        row = f.at(g["items"], f.mul(i, 8 * ITEM_SIZE))
        for number in range(ITEM_SIZE):
            value = values[ITEM_FIELDS[number]] if number < len(ITEM_FIELDS) else int64(0)
            f.store(value, f.at(row, 8 * number), 8)
    f.store(int64(0), g["status"], 8)
    f.ret()


def _emit_pages(f: Function, word: dict[str, Value], i: Value, keys: Value) -> None:
    """Checks the pages of a sequence that its keys are in; the others become one that exists."""
    pages = f.arguments["pages"]
    with f.when(f.icmp("!=", pages, null())):
        own = f.at(pages, f.mul(f.mul(i, word["most_pages"]), 8))
        with f.loop(int64(0), word["most_pages"], int64(1), "page") as number:
            at = f.at(own, f.mul(number, 8))
            with f.branch(f.icmp("<", f.mul(number, word["page"]), keys)) as (needed, idle):
                with needed:
                    found = f.load(INT64, at, 8)
                    _refuse(f, f.or_(f.icmp("<", found, 0), f.icmp(">=", found, word["cache"])))
                with idle:
                    f.store(int64(0), at, 8)


def _emit_agree(f: Function) -> None:
    """Checks that what was decided by one table holds for another."""
    g = f.arguments
    word = {name: _word(f, g["decisions"], number) for number, name in enumerate(_DECISIONS)}
    f.store(int64(1), g["status"], 8)
    most = [int64(0), int64(0)]
    with f.carried_loop(int64(0), word["batch"], int64(1), most, "sequence") as (i, (rows, count), advance):
        row = f.at(g["items"], f.mul(i, 8 * ITEM_SIZE))
        names = ("queries", "keys", "low", "high")
        queries, keys, low, high = (_word(f, row, ITEM_FIELDS.index(name)) for name in names)
        _refuse(f, f.icmp("<", queries, word["least_each"]))
        binds = f.or_(f.icmp(">", f.add(low, f.sub(queries, 1)), 0), f.icmp("<", high, keys))
        _refuse(f, f.and_(f.icmp("!=", word["unbounded"], 0), binds))
        advance([f.maximum(rows, queries), f.maximum(count, keys)])
    rows, count = advance.results
    for found, name in ((rows, "queries"), (count, "keys")):
        _refuse(f, f.or_(f.icmp("<", found, word[f"least_{name}"]), f.icmp(">", found, word[f"most_{name}"])))
    f.store(int64(0), g["status"], 8)
    f.ret()


@once
def _code() -> Linked:
    machine = host_machine()
    code = cached_object(_MODULE, machine, lambda: emit_object(_emit(), _MODULE, machine))
    return Linked(code, (_MAKE, _AGREE), {})


@once
def _functions() -> tuple[Any, Any]:
    code = _code()
    return tuple(
        code.function(name, [ctypes.c_void_p] * count)
        for name, count in ((_MAKE, 3 + len(_ARRAYS)), (_AGREE, 3))
    )  # type: ignore[return-value]


def _checked(function: Any, *arrays: Array | None) -> bool:
    """Runs a function that sets a status, which a recording takes for a check."""
    status = new_array((1,), np.int64)
    recorder = current.recorder
    if recorder is not None:
        recorder.team(None, 0)
    function(*(None if array is None else data_address(array) for array in (status, *arrays)))
    if recorder is not None:
        recorder.check()
    return not status[0]


def make_table(batch: int, sources: Sources, **record: int) -> Array:
    """The table of a call with arrays that Python has checked; see `ITEM_FIELDS`.

    Parameters
    ----------
    record : the words of `_RECORD`; `offset` is `NO_OFFSET` where queries have no position of their own, and
        `left` and `right` are `NO_BOUND` without a bound.
    """
    words = constant(np.array([{"batch": batch, **record}[name] for name in _RECORD], np.int64))
    items = new_array((batch, ITEM_SIZE), np.int64)
    fits = _checked(_functions()[0], words, *sources, items)
    assert fits, "arrays of lengths changed while they were checked"
    return items


def decided(items: Array, **decisions: int) -> None:
    """Tells a recording what has been decided by a table: repeated calls are those of which it is true.

    Parameters
    ----------
    decisions : the words of `_DECISIONS`: the fewest queries of any sequence, bounds of the most queries and
        of the most keys of one, and whether no bound excludes a key.
    """
    if current.recorder is None:
        return
    words = np.array([{"batch": len(items), **decisions}[name] for name in _DECISIONS], np.int64)
    if not _checked(_functions()[1], constant(words), items):
        not_repeatable("lengths for which the decisions of the call do not hold")
