"""Lists of numbers as operands: machine code makes arrays of them, and makes the call again with these.

A call without a recipe comes here. Rows of equal lengths of floats and of integers are read here; what else
NumPy could make an array of goes to Python.
"""

from __future__ import annotations

import ctypes
from typing import Any

from tilewright.calls.layout import ARRAY_DATA, FLOAT_VALUE, LIST_ITEMS, TUPLE_SIZE
from tilewright.calls.object_code import CALL_ARGUMENTS, ObjectCode
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.control import Block
from tilewright.llvm.values import INT32, INT64, POINTER, Value, int64, named_type, null

#: Functions that may take lists, and arguments of such a call.
MOST_FUNCTIONS, MOST_ARGUMENTS = 64, 64
#: Lists in lists that are read here.
MOST_LIST_AXES = 8

_LIST_ARGUMENTS = (("list", POINTER), ("lengths", POINTER), ("axes", INT64), ("floats", INT64))


class _FunctionRow(ctypes.Structure):
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

    _fields_ = (("count", ctypes.c_int64), ("rows", _FunctionRow * MOST_FUNCTIONS))

    def add(self, function: Any, builtin: Any, operands: slice) -> None:
        """Adds a function; both live as long as the process."""
        known = [row.function for row in self.rows[: self.count]]
        if id(function) not in known and self.count < MOST_FUNCTIONS:
            self.rows[self.count] = _FunctionRow(id(function), id(builtin), operands.start, operands.stop)
            self.count += 1


def emit_fallback(module: Module) -> Callee:
    """``PyObject *tw_fallback(self, args, nargs, kwnames)``: the call with arrays for lists, or of Python."""
    rows = _emit_rows(module)
    f = ObjectCode(module, "tw_fallback", POINTER, CALL_ARGUMENTS)
    function, args, nargs, kwnames = f.arguments.values()
    python = f.new_block("python")
    total = f.all_arguments()
    f.leave_if(f.icmp(">", total, MOST_ARGUMENTS), python)
    row = _find_row(f, function, python)
    whole, changed = f.alloca(POINTER, MOST_ARGUMENTS, 8), f.alloca(INT64, 1, 8)
    f.put(changed, 0, int64(0))
    with f.loop(int64(0), total, int64(1), "argument") as number:
        value = f.pointer(f.item(args, number))
        # Beside arrays of another library, those made of lists would decide of what library results are.
        alike = f.is_of(value, "ndarray", "list", "float", "int", "bool", "str")
        f.go_on_if(f.or_(alike, f.icmp("==", value, f.symbol("none"))), python)
        f.put(f.item(whole, number), 0, value)
    first, last = f.word(row, _FunctionRow.first), f.minimum(f.word(row, _FunctionRow.last), nargs)
    with f.when(f.icmp(">", first, 0)), f.when(f.icmp(">", last, 0)):
        f.go_on_if(f.is_of(f.pointer(args), "str"), python)
    dropped = f.new_block("dropped")
    with f.loop(first, last, int64(1), "operand") as number:
        value = f.pointer(f.item(args, number))
        with f.when(f.is_of(value, "list")):
            made = f.call(rows.callee, [value])
            f.leave_if(f.is_null(made), dropped)
            f.put(f.item(whole, number), 0, made)
            f.put(changed, 0, int64(1))
    f.leave_if(f.icmp("==", f.word(changed), 0), python)
    found = f.python("vectorcall", f.pointer(row, _FunctionRow.builtin), whole, nargs, kwnames)
    _drop_made(f, args, whole, first, last)
    f.ret(found)
    f.place(dropped)
    _drop_made(f, args, whole, first, last)
    f.jump(python)
    f.place(python)
    f.ret(f.python("vectorcall", *f.arguments.values()))
    return f.callee


def _drop_made(f: ObjectCode, args: Value, whole: Value, first: Value, last: Value) -> None:
    """Gives up the arrays that stand for lists."""
    with f.loop(first, last, int64(1), "operand") as number:
        value = f.pointer(f.item(whole, number))
        with f.when(f.icmp("!=", value, f.pointer(f.item(args, number)))):
            f.python("decref", value)


def _find_row(f: ObjectCode, function: Value, missing: Block) -> Value:
    """The row of a function; to another block if there is none."""
    table = f.symbol("operands")
    with f.carried_loop(int64(0), f.word(table), int64(1), [null()], "row") as (number, (known,), advance):
        row = f.at(f.at(table, Operands.rows.offset), f.mul(number, ctypes.sizeof(_FunctionRow)))
        advance([f.select(f.icmp("==", f.pointer(row), function), row, known)])
    f.leave_if(f.is_null(advance.results[0]), missing)
    return advance.results[0]


def _emit_rows(module: Module) -> ObjectCode:
    """``PyObject *tw_rows(list)``: the array of floats or integers in a list; null where it is not read here.

    The shape is that of the first items, and the element type that of the first number; integers with floats
    among them are read again as floats.
    """
    made = _emit_made(module)
    f = ObjectCode(module, "tw_rows", POINTER, [("list", POINTER)])
    (values,) = f.arguments.values()
    lengths, axes = f.alloca(INT64, MOST_LIST_AXES, 8), f.alloca(INT64, 1, 8)
    row, number = values, f.new_block("number")
    first = f.alloca(POINTER, 1, 8)
    for axis in range(MOST_LIST_AXES):
        size = f.word(row, TUPLE_SIZE)
        f.return_if(f.icmp("==", size, 0), null())
        f.put(lengths, 8 * axis, size)
        f.put(axes, 0, int64(axis + 1))
        row = f.pointer(f.pointer(row, LIST_ITEMS))
        f.put(first, 0, row)
        f.go_on_if(f.is_of(row, "list"), number)
    f.ret(null())
    f.place(number)
    given = [values, lengths, f.word(axes)]
    with f.when(f.is_of(f.pointer(first), "int")):
        integers = f.call(made.callee, [*given, int64(0)])
        f.return_if(f.not_(f.is_null(integers)), integers)
    f.ret(f.call(made.callee, [*given, int64(1)]))
    return f


def _emit_made(module: Module) -> ObjectCode:
    """``PyObject *tw_made(list, lengths, axes, floats)``: a new array of the numbers in a list, or null."""
    read = _emit_read_row(module)
    f = ObjectCode(module, "tw_made", POINTER, _LIST_ARGUMENTS)
    _, lengths, axes, floats = f.arguments.values()
    dtype = f.select(f.icmp("!=", floats, 0), f.symbol("dtype_float"), f.symbol("dtype_int"))
    made = f.new_array(axes, lengths, dtype)
    with f.when(f.is_null(made)):
        f.python("clear_error")
        f.ret(null())
    # From here on no code of Python's runs, so that lists keep their items.
    end = f.call(read.callee, [*f.arguments.values(), f.pointer(made, ARRAY_DATA)])
    with f.when(f.is_null(end)):
        f.python("decref", made)
        f.ret(null())
    f.ret(made)
    return f


def _emit_read_row(module: Module) -> ObjectCode:
    """``char *tw_read_row(list, lengths, axes, floats, at)``: writes the numbers in a list from `at` on.

    Returns the end of what it wrote; null where a length or a type is another one.
    """
    f = ObjectCode(module, "tw_read_row", POINTER, [*_LIST_ARGUMENTS, ("at", POINTER)])
    values, lengths, axes, floats, to = f.arguments.values()
    as_floats = f.icmp("!=", floats, 0)
    overflow, size = f.alloca(INT32, 1, 4), f.word(values, TUPLE_SIZE)
    f.return_if(f.icmp("!=", size, f.word(lengths)), null())
    items = f.pointer(values, LIST_ITEMS)
    with f.when(f.icmp(">", axes, 1)):
        given = [f.at(lengths, 8), f.sub(axes, 1), floats]
        with f.carried_loop(int64(0), size, int64(1), [to], "row") as (number, (at,), advance):
            item = f.pointer(f.item(items, number))
            f.return_if(f.not_(f.is_of(item, "list")), null())
            following = f.call(f.callee, [item, *given, at])
            f.return_if(f.is_null(following), null())
            advance([following])
        f.ret(advance.results[0])
    with f.loop(int64(0), size, int64(1), "number") as number:
        at, item = f.item(to, number), f.pointer(f.item(items, number))
        with f.branch(f.and_(f.is_of(item, "float"), as_floats)) as (plain, other):
            with plain:
                f.put(at, 0, f.word(item, FLOAT_VALUE))
            with other:
                f.return_if(f.not_(f.is_of(item, "int")), null())
                found = f.python("as_integer", item, overflow)
                f.return_if(f.icmp("!=", f.load(INT32, overflow, 4), 0), null())
                rounded = f.emit(named_type("double"), f"sitofp {found.typed} to double")
                bits = f.emit(INT64, f"bitcast {rounded.typed} to i64")
                f.put(at, 0, f.select(as_floats, bits, found))
    f.ret(f.item(to, size))
    return f
