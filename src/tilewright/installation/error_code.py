"""Floating-point errors of a product in machine code: which are genuine, and raising those.

Register tiles compute with zeros around the operands, and worker threads have status flags of their own. So
what hardware reports says only where to look; the operands and the result decide:

- "invalid": an element of C is NaN although its row of A and its column of B have no NaN;
- "overflow": an element of C is infinite or NaN although its row and its column are finite.

Underflow is hardware's own: a product with zero does not underflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntFlag

from tilewright.calls.object_code import ObjectCode
from tilewright.installation.rows import ErrorOperands
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT16, INT32, INT64, POINTER, VOID, Type, Value, int64
from tilewright.ops.gemm.matrix_values import MatrixValues


class Error(IntFlag):
    """numpy/_core/include/numpy/ufuncobject.h, UFUNC_FPE_*."""

    DIVIDE = 1
    OVERFLOW = 2
    UNDERFLOW = 4
    INVALID = 8


#: Those that need a look at the result.
DOUBTFUL = Error.DIVIDE | Error.OVERFLOW | Error.INVALID

#: Classes of numbers, which are joined by "or".
INFINITE, NAN = 1, 2

#: Bytes of a part of an element: its type as an integer, and the bits of infinity.
_PARTS: dict[int, tuple[Type, int]] = {
    2: (INT16, 0x7C00),
    4: (INT32, 0x7F80_0000),
    8: (INT64, 0x7FF0_0000_0000_0000),
}

_ARGUMENTS = (
    *((name, POINTER) for name in "abc"),
    *((name, INT64) for name in "mnk"),
    *((f"{axis}_{name}", INT64) for name in "abc" for axis in ("row", "column")),
    ("parts", INT64),
    ("classes", POINTER),
)


def rule_name(part_bytes: int) -> str:
    """The exported function of elements with parts of a size."""
    return f"tw_errors_{part_bytes}"


def emit_rules(module: Module) -> None:
    """The rule above for each size of parts; strides are in bytes, `classes` has room for n words."""
    for part_bytes in _PARTS:
        _emit_rule(module, part_bytes)


def _emit_rule(module: Module, part_bytes: int) -> None:
    f = module.define(rule_name(part_bytes), INT64, _ARGUMENTS, exported=True)
    g = f.arguments
    m, n, k, classes = g["m"], g["n"], g["k"], g["classes"]

    def number(name: str, row: Value, column: Value) -> Value:
        """The class of an element."""
        offset = f.add(f.mul(row, g[f"row_{name}"]), f.mul(column, g[f"column_{name}"]))
        return _class_of(f, f.at(g[name], offset), part_bytes, g["parts"])

    with f.loop(int64(0), n, int64(1), "clear") as column:
        f.store(int64(0), f.at(classes, f.mul(column, 8)), 8)
    with f.loop(int64(0), k, int64(1), "depth") as depth, f.loop(int64(0), n, int64(1), "b") as column:
        place = f.at(classes, f.mul(column, 8))
        f.store(f.or_(f.load(INT64, place, 8), number("b", depth, column)), place, 8)
    with f.carried_loop(int64(0), m, int64(1), [int64(0)], "row") as (row, (errors,), advance):
        with f.carried_loop(int64(0), k, int64(1), [int64(0)], "a") as (depth, (known,), joined):
            joined([f.or_(known, number("a", row, depth))])
        of_row = joined.results[0]
        with f.carried_loop(int64(0), n, int64(1), [errors], "c") as (column, (so_far,), gone_on):
            given = f.or_(of_row, f.load(INT64, f.at(classes, f.mul(column, 8)), 8))
            found = number("c", row, column)
            new_nan = f.and_(f.icmp(">=", found, NAN), f.icmp("<", given, NAN))
            overflow = f.and_(f.icmp("!=", found, 0), f.icmp("==", given, 0))
            invalid = f.select(new_nan, int64(Error.INVALID), int64(0))
            overflow_bit = f.select(overflow, int64(Error.OVERFLOW), int64(0))
            gone_on([f.or_(so_far, f.or_(invalid, overflow_bit))])
        advance([gone_on.results[0]])
    f.ret(advance.results[0])


def _class_of(f: Function, at: Value, part_bytes: int, parts: Value) -> Value:
    """The classes of an element's parts together."""
    kind, infinity = _PARTS[part_bytes]
    sign = 1 << 8 * part_bytes - 1
    found = int64(0)
    for place in (at, f.at(at, f.mul(f.sub(parts, 1), part_bytes))):
        word = f.load(kind, place, min(part_bytes, 8))
        wide = word if kind == INT64 else f.zext(word, INT64)
        magnitude = f.and_(wide, int64(sign - 1))
        infinite = f.select(f.icmp("==", magnitude, infinity), int64(INFINITE), int64(0))
        nan = f.select(f.icmp(">", magnitude, infinity), int64(NAN), int64(0))
        found = f.or_(found, f.or_(infinite, nan))
    return found


def genuine(
    f: ObjectCode,
    rule: Value,
    matrices: tuple[MatrixValues, ...],
    shift: Value,
    parts: Value,
    classes: Value,
) -> Value:
    """Emits the errors of every product of a batch by the rule at an address."""
    a, c = matrices[0], matrices[2]
    strides = [f.shl(stride, shift) for one in matrices for stride in (one.row, one.column)]
    sizes = (c.rows, c.columns, a.columns)
    first = [*(one.data for one in matrices), int64(0)]
    with f.carried_loop(int64(0), c.batch, int64(1), first, "errors") as (_, carried, advance):
        *places, errors = carried
        found = f.call(Callee(INT64, rule.text), [*places, *sizes, *strides, parts, classes])
        following = [f.at(place, one.step) for place, one in zip(places, matrices, strict=True)]
        advance([*following, f.or_(errors, found)])
    return advance.results[-1]


RAISE = "tw_raise_errors"


def emit_raise(module: Module) -> None:
    """``tw_raise_errors(errors, numbers)``: raises the status flags of floating-point errors."""
    f = ObjectCode(module, RAISE, VOID, [("errors", INT64), ("numbers", POINTER)], exported=True)
    numbers = f.arguments["numbers"]
    pairs: Sequence[tuple[Error, str, str]] = (
        (Error.INVALID, "infinite", "zero"),
        (Error.OVERFLOW, "huge", "huge"),
        (Error.UNDERFLOW, "tiny", "tiny"),
    )
    double = Type("double", "f64")
    for error, left, right in pairs:
        wanted = f.icmp("!=", f.and_(f.arguments["errors"], int64(error)), 0)
        with f.when(wanted):
            fields = (getattr(ErrorOperands, name).offset for name in (left, right))
            values = [f.load(double, f.at(numbers, offset), 8) for offset in fields]
            f.store(f.times(*values), f.at(numbers, ErrorOperands.product.offset), 8)
    f.ret()
