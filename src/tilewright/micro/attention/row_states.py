"""The state of rows of attention: how it begins, the results that it ends with, values without weight.

Results of a finished row are its sums over its weights' sum; a row that has seen no key has results of 0.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.llvm.build import Function
from tilewright.llvm.convert import Convert
from tilewright.llvm.floats import Floats
from tilewright.llvm.values import (
    Type,
    Value,
    constant,
    element_type,
    int64,
    memory_type,
    truth_of,
    vector_type,
    zero,
)
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, PrimitiveFunction, Window, value, window
from tilewright.spec.dtype import DType


def emit_begin(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `Begin`."""
    acc = window(given, "out").dtype
    lanes, size = isa.lanes(acc), acc.size

    def write(f: Function, given: Operands) -> None:
        sink = given["sink"]
        if isinstance(sink, Window):
            first, count = f.load(element_type(acc), sink.pointer, size), constant(acc, 1)
        else:
            first, count = constant(acc, float("-inf")), constant(acc, 0)
        with f.loop(int64(0), value(given, "rows"), int64(1), "row") as row:
            f.store(first, window(given, "row_max").at(f, row), size)
            f.store(count, window(given, "row_sum").at(f, row), size)
            with f.loop(int64(0), value(given, "columns"), int64(lanes), "column") as column:
                f.store(zero(vector_type(acc, lanes)), window(given, "out").at(f, row, column), size)

    PrimitiveFunction(f, isa, "begin", acc, given).call(write)


def emit_normalise(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `Normalise`."""
    acc = window(given, "sums").dtype
    PrimitiveFunction(f, isa, "normalise", acc, given).call(lambda f, given: _normalise(f, isa, acc, given))


def _normalise(f: Function, isa: Isa, acc: DType, given: Operands) -> None:
    lanes, size, to, convert = isa.lanes(acc), acc.size, window(given, "to"), Convert(f, half=isa.half)
    one, kind = Floats(f, acc, element_type(acc), fused=isa.fused), vector_type(acc, lanes)
    columns, flag = value(given, "columns"), given["flag"]

    def note(values: Value) -> None:
        """Sets the flag if a value is NaN."""
        if not isinstance(flag, Window):
            return
        nothing = f.emit(truth_of(values.type), f"fcmp uno {values.typed}, {values.text}")
        if values.type.lanes:
            some = Type(f"i{values.type.lanes}", f"i{values.type.lanes}")
            bits = f.emit(some, f"bitcast {nothing.typed} to {some.text}")
            nothing = f.emit(Type("i1", "i1"), f"icmp ne {bits.typed}, 0")
        with f.when(nothing):
            f.store(int64(1), flag.pointer, 8)

    with f.loop(int64(0), value(given, "rows"), int64(1), "row") as row:
        total = f.load(element_type(acc), window(given, "row_sum").at(f, row), size)
        most = f.load(element_type(acc), window(given, "row_max").at(f, row), size)
        f.store(most, window(given, "to_max").at(f, row), size)
        f.store(total, window(given, "to_sum").at(f, row), size)
        nothing = one.compare("==", total, one.constant(0.0))
        divisor = f.select(nothing, one.constant(1.0), total)
        factor = f.select(nothing, one.constant(0.0), one.divide(one.constant(1.0), divisor))
        with f.branch(f.icmp("==", to.column, 1)) as (adjacent, strided):
            with adjacent:
                factors = f.splat(factor, lanes)
                whole = f.and_(columns, int64(-lanes))
                near = to._replace(column=int64(1))
                with f.loop(int64(0), whole, int64(lanes), "column") as column:
                    values = f.times(f.load(kind, window(given, "sums").at(f, row, column), size), factors)
                    note(values)
                    f.store(convert(values, acc, to.dtype), near.at(f, row, column), to.dtype.size)
                _elements(f, given, (acc, factor, row, whole), convert, note)
            with strided:
                _elements(f, given, (acc, factor, row, int64(0)), convert, note)


def _elements(
    f: Function,
    given: Operands,
    state: tuple[DType, Value, Value, Value],
    convert: Convert,
    note: Callable[[Value], None],
) -> None:
    """Results of a row from a column on, one by one."""
    acc, factor, row, begin = state
    to = window(given, "to")
    with f.loop(begin, value(given, "columns"), int64(1), "element") as column:
        element = f.load(element_type(acc), window(given, "sums").at(f, row, column), acc.size)
        result = f.times(element, factor)
        note(result)
        f.store(convert(result, acc, to.dtype), to.at(f, row, column), to.dtype.size)


def emit_keep(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `Keep`."""
    acc = window(given, "weights").dtype

    def write(f: Function, given: Operands) -> None:
        to, values, weights = (window(given, name) for name in ("to", "values", "weights"))
        kind = memory_type(values.dtype)
        with f.loop(int64(0), value(given, "rows"), int64(1), "row") as row:
            weight = f.load(memory_type(acc), weights.at(f, row), acc.size)
            seen = f.not_equal(weight, zero(memory_type(acc)))
            with f.branch(seen) as (some, none):
                with some, f.loop(int64(0), value(given, "columns"), int64(1), "column") as column:
                    element = f.load(kind, values.at(f, row, column), values.dtype.size)
                    f.store(element, to.at(f, row, column), to.dtype.size)
                with none, f.loop(int64(0), value(given, "columns"), int64(1), "column") as column:
                    f.store(zero(kind), to.at(f, row, column), to.dtype.size)

    PrimitiveFunction(f, isa, "keep", acc, given).call(write)
