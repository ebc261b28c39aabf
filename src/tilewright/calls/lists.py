"""Lists of numbers as operands: machine code makes arrays of them, and makes the call again with these.

A call without a recipe comes here. Only lists of Python's own numbers are converted, so that NumPy runs no
code of the user's; what else NumPy could make an array of goes to Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import reduce
from typing import Any

from tilewright.calls.layout import LIST_ITEMS, OBJECT_TYPE, TUPLE_SIZE
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.control import Block
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, int32, int64, null

#: Functions that may take lists, arguments of such a call, and lists in lists.
MOST_FUNCTIONS, MOST_ARGUMENTS, MOST_DEPTH = 64, 64, 32


class Row(ctypes.Structure):
    """A Python function, its builtin, and which of its positional arguments are operands.

    Operands that are not the first arguments follow a text.
    """

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("builtin", ctypes.c_void_p),
        ("first", ctypes.c_int64),
        ("last", ctypes.c_int64),
    )


class Operands(ctypes.Structure):
    """The functions that may take lists; a row is complete before it is counted."""

    _fields_ = (("count", ctypes.c_int64), ("rows", Row * MOST_FUNCTIONS))

    def add(self, function: Any, builtin: Any, operands: slice) -> None:
        """Adds a function; both live as long as the process."""
        known = [row.function for row in self.rows[: self.count]]
        if id(function) not in known and self.count < MOST_FUNCTIONS:
            self.rows[self.count] = Row(id(function), id(builtin), operands.start, operands.stop)
            self.count += 1


def emit_fallback(module: Module) -> Callee:
    """``PyObject *tw_fallback(self, args, nargs, kwnames)``: the call with arrays for lists, or of Python."""
    arguments = [("function", POINTER), ("args", POINTER), ("nargs", INT64), ("kwnames", POINTER)]
    numbers = _emit_numbers(module)
    f = module.define("tw_fallback", POINTER, arguments)
    function, args, nargs, kwnames = f.arguments.values()
    vectorcall = module.declare("tw_vectorcall", POINTER, (POINTER, POINTER, INT64, POINTER))
    decrement = module.declare("tw_decref", VOID, (POINTER,))
    python, known = f.new_block("python"), f.new_block("known")
    total = f.alloca(INT64, 1, 8)
    f.store(nargs, total, 8)
    with f.when(f.icmp("!=", kwnames, null())):
        f.store(f.add(nargs, f.load(INT64, f.at(kwnames, TUPLE_SIZE), 8)), total, 8)
    f.jump_if(f.icmp(">", f.load(INT64, total, 8), MOST_ARGUMENTS), python, known)
    f.place(known)
    row = _find_row(f, module, function, python)
    whole, changed = f.alloca(POINTER, MOST_ARGUMENTS, 8), f.alloca(INT64, 1, 8)
    f.store(int64(0), changed, 8)
    with f.loop(int64(0), f.load(INT64, total, 8), int64(1), "argument") as number:
        at = f.mul(number, 8)
        value, plain = f.load(POINTER, f.at(args, at), 8), f.new_block("plain")
        # Beside arrays of another library, those made of lists would decide of what library results are.
        alike = _is_one_of(f, value, ("ndarray", "list", "float", "int", "bool", "str"))
        f.jump_if(f.or_(alike, f.icmp("==", value, module.external("tw_none"))), plain, python)
        f.place(plain)
        f.store(value, f.at(whole, at), 8)
    first, last = (f.load(INT64, f.at(row, field.offset), 8) for field in (Row.first, Row.last))
    last = f.minimum(last, nargs)
    with f.when(f.icmp(">", first, 0)), f.when(f.icmp(">", last, 0)):
        text = f.new_block("text")
        f.jump_if(_is_one_of(f, f.load(POINTER, args, 8), ("str",)), text, python)
        f.place(text)
    with f.loop(first, last, int64(1), "operand") as number:
        value = f.load(POINTER, f.at(args, f.mul(number, 8)), 8)
        with f.when(_is_one_of(f, value, ("list",))):
            convertible = f.new_block("convertible")
            of_numbers = f.call(numbers.callee, [value, int64(MOST_DEPTH)])
            f.jump_if(f.icmp("!=", of_numbers, 0), convertible, python)
            f.place(convertible)
    with f.loop(first, last, int64(1), "operand") as number:
        at = f.mul(number, 8)
        value = f.load(POINTER, f.at(args, at), 8)
        with f.when(_is_one_of(f, value, ("list",))):
            types = (POINTER, POINTER, INT32, INT32, INT32, POINTER)
            convert = module.declare("tw_from_any", POINTER, types)
            made = f.call(convert, [value, null(), int32(0), int32(0), int32(0), null()])
            with f.branch(f.icmp("==", made, null())) as (refused, converted):
                with refused:
                    f.call(module.declare("tw_clear_error", VOID, ()), [])  # Python says why
                with converted:
                    f.store(made, f.at(whole, at), 8)
                    f.store(int64(1), changed, 8)
    again = f.new_block("again")
    f.jump_if(f.icmp("==", f.load(INT64, changed, 8), 0), python, again)
    f.place(again)
    builtin = f.load(POINTER, f.at(row, Row.builtin.offset), 8)
    found = f.call(vectorcall, [builtin, whole, nargs, kwnames])
    with f.loop(first, last, int64(1), "operand") as number:
        at = f.mul(number, 8)
        value = f.load(POINTER, f.at(whole, at), 8)
        with f.when(f.icmp("!=", value, f.load(POINTER, f.at(args, at), 8))):
            f.call(decrement, [value])
    f.ret(found)
    f.place(python)
    f.ret(f.call(vectorcall, list(f.arguments.values())))
    return f.callee


def _find_row(f: Function, module: Module, function: Value, missing: Block) -> Value:
    """The row of a function; to another block if there is none."""
    table = module.external("tw_operands")
    slot = f.alloca(POINTER, 1, 8)
    f.store(null(), slot, 8)
    with f.loop(int64(0), f.load(INT64, table, 8), int64(1), "row") as number:
        row = f.at(table, f.add(f.mul(number, ctypes.sizeof(Row)), Operands.rows.offset))
        with f.when(f.icmp("==", f.load(POINTER, row, 8), function)):
            f.store(row, slot, 8)
    found = f.new_block("row")
    f.jump_if(f.icmp("==", f.load(POINTER, slot, 8), null()), missing, found)
    f.place(found)
    return f.load(POINTER, slot, 8)


def _is_one_of(f: Function, value: Value, names: Sequence[str]) -> Value:
    """Whether an object is of one of some types, and not of a subclass."""
    kind = f.load(POINTER, f.at(value, OBJECT_TYPE), 8)
    same = [f.icmp("==", kind, f.module.external(f"tw_{name}")) for name in names]
    return reduce(f.or_, same)


def _emit_numbers(module: Module) -> Function:
    """``i64 tw_numbers(list, depth)``: whether all items are numbers, or lists of these."""
    f = module.define("tw_numbers", INT64, [("list", POINTER), ("depth", INT64)])
    values, depth = f.arguments.values()
    with f.when(f.icmp("==", depth, 0)):
        f.ret(int64(0))
    items = f.load(POINTER, f.at(values, LIST_ITEMS), 8)
    with f.loop(int64(0), f.load(INT64, f.at(values, TUPLE_SIZE), 8), int64(1), "item") as number:
        item = f.load(POINTER, f.at(items, f.mul(number, 8)), 8)
        with f.when(f.not_(_is_one_of(f, item, ("float", "int", "bool")))):
            with f.when(f.not_(_is_one_of(f, item, ("list",)))):
                f.ret(int64(0))
            with f.when(f.icmp("==", f.call(f.callee, [item, f.sub(depth, 1)]), 0)):
                f.ret(int64(0))
    f.ret(int64(1))
    return f
