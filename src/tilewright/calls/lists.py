"""Lists of numbers as operands: machine code makes arrays of them, and makes the call again with these.

A call without a recipe comes here. Rows of equal lengths of floats and of integers are read here; other
lists of Python's own numbers are left to NumPy, which then runs no code of the user's; what else NumPy could
make an array of goes to Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import reduce
from typing import Any

from tilewright.calls.layout import ARRAY_DATA, FLOAT_VALUE, LIST_ITEMS, OBJECT_TYPE, TUPLE_SIZE
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.control import Block
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, int32, int64, named_type, null

#: Functions that may take lists, arguments of such a call, and lists in lists.
MOST_FUNCTIONS, MOST_ARGUMENTS, MOST_DEPTH = 64, 64, 32
#: Lists in lists that are read here.
MOST_LIST_AXES = 4


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
    numbers, of_rows = _emit_numbers(module), _emit_rows(module)
    f = module.define("tw_fallback", POINTER, arguments)
    function, args, nargs, kwnames = f.arguments.values()
    vectorcall = module.declare("tw_vectorcall", POINTER, (POINTER, POINTER, INT64, POINTER))
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
    dropped = f.new_block("dropped")
    with f.loop(first, last, int64(1), "operand") as number:
        at = f.mul(number, 8)
        value = f.load(POINTER, f.at(args, at), 8)
        with f.when(_is_one_of(f, value, ("list",))):
            slot = f.alloca(POINTER, 1, 8)
            f.store(f.call(of_rows.callee, [value]), slot, 8)
            with f.when(f.icmp("==", f.load(POINTER, slot, 8), null())):
                convertible = f.new_block("convertible")
                of_numbers = f.call(numbers.callee, [value, int64(MOST_DEPTH)])
                f.jump_if(f.icmp("!=", of_numbers, 0), convertible, dropped)
                f.place(convertible)
                types = (POINTER, POINTER, INT32, INT32, INT32, POINTER)
                convert = module.declare("tw_from_any", POINTER, types)
                f.store(f.call(convert, [value, null(), int32(0), int32(0), int32(0), null()]), slot, 8)
            made = f.load(POINTER, slot, 8)
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
    _drop_made(f, args, whole, first, last)
    f.ret(found)
    f.place(dropped)
    _drop_made(f, args, whole, first, last)
    f.jump(python)
    f.place(python)
    f.ret(f.call(vectorcall, list(f.arguments.values())))
    return f.callee


def _drop_made(f: Function, args: Value, whole: Value, first: Value, last: Value) -> None:
    """Gives up the arrays that stand for lists."""
    with f.loop(first, last, int64(1), "operand") as number:
        at = f.mul(number, 8)
        value = f.load(POINTER, f.at(whole, at), 8)
        with f.when(f.icmp("!=", value, f.load(POINTER, f.at(args, at), 8))):
            f.call(f.module.declare("tw_decref", VOID, (POINTER,)), [value])


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


def _emit_rows(module: Module) -> Function:
    """``PyObject *tw_rows(list)``: the array of floats or integers in a list; null where it is not read here.

    The shape is that of the first items, and the element type that of the first number; integers with floats
    among them are read again as floats.
    """
    made = _emit_made(module)
    f = module.define("tw_rows", POINTER, [("list", POINTER)])
    (values,) = f.arguments.values()
    lengths, axes = f.alloca(INT64, MOST_LIST_AXES, 8), f.alloca(INT64, 1, 8)
    item, number = f.alloca(POINTER, 1, 8), f.new_block("number")
    f.store(values, item, 8)
    for axis in range(MOST_LIST_AXES):
        row, inner = f.load(POINTER, item, 8), f.new_block("inner")
        size = f.load(INT64, f.at(row, TUPLE_SIZE), 8)
        with f.when(f.icmp("==", size, 0)):
            f.ret(null())
        f.store(size, f.at(lengths, 8 * axis), 8)
        f.store(int64(axis + 1), axes, 8)
        f.store(f.load(POINTER, f.load(POINTER, f.at(row, LIST_ITEMS), 8), 8), item, 8)
        f.jump_if(_is_one_of(f, f.load(POINTER, item, 8), ("list",)), inner, number)
        f.place(inner)
    f.ret(null())
    f.place(number)
    given = [values, lengths, f.load(INT64, axes, 8)]
    with f.when(_is_one_of(f, f.load(POINTER, item, 8), ("int",))):
        integers = f.call(made.callee, [*given, int64(0)])
        with f.when(f.icmp("!=", integers, null())):
            f.ret(integers)
    f.ret(f.call(made.callee, [*given, int64(1)]))
    return f


def _emit_made(module: Module) -> Function:
    """``PyObject *tw_made(list, lengths, axes, floats)``: a new array of the numbers in a list, or null."""
    read = _emit_read_row(module)
    arguments = [("list", POINTER), ("lengths", POINTER), ("axes", INT64), ("floats", INT64)]
    f = module.define("tw_made", POINTER, arguments)
    _, lengths, axes, floats = f.arguments.values()
    types = (POINTER, POINTER, INT32, POINTER, POINTER, POINTER, INT32, POINTER)
    new = module.declare("tw_new_array", POINTER, types)
    dtypes = (module.external(f"tw_dtype_{name}") for name in ("float", "int"))
    dtype = f.select(f.icmp("!=", floats, 0), *dtypes)
    f.call(module.declare("tw_incref", VOID, (POINTER,)), [dtype])  # PyArray_NewFromDescr takes it over
    kind, few = module.external("tw_ndarray"), f.trunc(axes, INT32)
    made = f.call(new, [kind, dtype, few, lengths, null(), null(), int32(0), null()])
    with f.when(f.icmp("==", made, null())):
        f.call(module.declare("tw_clear_error", VOID, ()), [])
        f.ret(null())
    # From here on no code of Python's runs, so that lists keep their items.
    end = f.call(read.callee, [*f.arguments.values(), f.load(POINTER, f.at(made, ARRAY_DATA), 8)])
    with f.when(f.icmp("==", end, null())):
        f.call(module.declare("tw_decref", VOID, (POINTER,)), [made])
        f.ret(null())
    f.ret(made)
    return f


def _emit_read_row(module: Module) -> Function:
    """``char *tw_read_row(list, lengths, axes, floats, at)``: writes the numbers in a list from `at` on.

    Returns the end of what it wrote; null where a length or a type is another one.
    """
    names = [("list", POINTER), ("lengths", POINTER), ("axes", INT64), ("floats", INT64), ("at", POINTER)]
    f = module.define("tw_read_row", POINTER, names)
    values, lengths, axes, floats, to = f.arguments.values()
    overflow, size = f.alloca(INT32, 1, 4), f.load(INT64, f.at(values, TUPLE_SIZE), 8)
    with f.when(f.icmp("!=", size, f.load(INT64, lengths, 8))):
        f.ret(null())
    items = f.load(POINTER, f.at(values, LIST_ITEMS), 8)
    with f.when(f.icmp(">", axes, 1)):
        given = [f.at(lengths, 8), f.sub(axes, 1), floats]
        with f.carried_loop(int64(0), size, int64(1), [to], "row") as (number, (at,), advance):
            item = f.load(POINTER, f.at(items, f.mul(number, 8)), 8)
            with f.when(f.not_(_is_one_of(f, item, ("list",)))):
                f.ret(null())
            following = f.call(f.callee, [item, *given, at])
            with f.when(f.icmp("==", following, null())):
                f.ret(null())
            advance([following])
        f.ret(advance.results[0])
    with f.loop(int64(0), size, int64(1), "number") as number:
        at = f.at(to, f.mul(number, 8))
        item = f.load(POINTER, f.at(items, f.mul(number, 8)), 8)
        with f.branch(f.and_(_is_one_of(f, item, ("float",)), f.icmp("!=", floats, 0))) as (plain, other):
            with plain:
                f.store(f.load(INT64, f.at(item, FLOAT_VALUE), 8), at, 8)
            with other:
                with f.when(f.not_(_is_one_of(f, item, ("int",)))):
                    f.ret(null())
                as_integer = module.declare("tw_as_integer", INT64, (POINTER, POINTER))
                found = f.call(as_integer, [item, overflow])
                with f.when(f.icmp("!=", f.load(INT32, overflow, 4), int32(0))):
                    f.ret(null())
                with f.branch(f.icmp("!=", floats, 0)) as (rounded, exact):
                    with rounded:
                        f.store(f.emit(named_type("double"), f"sitofp {found.typed} to double"), at, 8)
                    with exact:
                        f.store(found, at, 8)
    f.ret(f.at(to, f.mul(size, 8)))
    return f
