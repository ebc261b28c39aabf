"""Calls of primitives: operands by name, and a function for each set of operands."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeVar

from tilewright.ir.nodes import Traffic
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT64, VOID, Type, Value, int64
from tilewright.machine.isa import Isa
from tilewright.spec.dtype import I64, DType
from tilewright.spec.functions import UnaryOp


class Window(NamedTuple):
    """A window of a buffer: its first element, its strides in elements, its element type."""

    pointer: Value
    row: Value
    column: Value
    dtype: DType

    def at(self, f: Function, row: Value, column: Value | int = 0) -> Value:
        """The address of an element."""
        place = f.mul(row, self.row) if self.row.known != 0 else int64(0)
        offset = f.add(
            place, f.mul(self.column, column) if isinstance(column, int) else f.mul(column, self.column)
        )
        return f.at(self.pointer, f.mul(offset, self.dtype.size))

    def transposed(self) -> Window:
        """The same window with rows and columns exchanged."""
        return Window(self.pointer, self.column, self.row, self.dtype)

    def entry(self, f: Function, index: Value) -> Value:
        """An entry of a table of 64-bit integers."""
        return f.load(INT64, f.at(self.pointer, f.mul(index, I64.size)), I64.size)


class UnaryCall(NamedTuple):
    """A unary operation on a window of any layout, as tile IR has it."""

    op: UnaryOp
    traffic: Traffic
    destination: Window
    source: Window
    rows: Value
    columns: Value

    def transposed(self) -> UnaryCall:
        """The same operation with rows and columns exchanged."""
        windows = self.destination.transposed(), self.source.transposed()
        return UnaryCall(self.op, self.traffic, *windows, rows=self.columns, columns=self.rows)


#: The operands of a primitive: windows, integers, scalars and choices by the names of its fields.
Operand = Window | Value | Enum
Operands = dict[str, Operand | None]


class PrimitiveFunction:
    """The function of one primitive: its arguments are the operands present, which its name encodes.

    Parameters
    ----------
    f : the function that calls it.
    isa : the row.
    word : what its name begins with.
    acc : the type of its arithmetic.
    given : the operands; strides that are known stay known inside.
    """

    def __init__(self, f: Function, isa: Isa, word: str, acc: DType, given: Operands) -> None:
        self.caller, self.isa, self.acc, self.given = f, isa, acc, given
        self.lanes = isa.lanes(acc)
        self.values: list[Value] = []
        self.kinds: list[tuple[str, Type]] = []
        marks = []
        for name, operand in given.items():
            if isinstance(operand, Window):
                marks.append(f"{name}_{operand.dtype}")
                for part in ("pointer", "row", "column"):
                    self._argument(f"{name}_{part}", getattr(operand, part), marks)
            elif isinstance(operand, Enum):
                marks.append(str(operand.value))
            elif operand is not None:
                marks += [name] if name in ("low", "softcap") or operand.known is not None else []
                self._argument(name, operand, marks)
        self.name = "_".join((word, str(acc), *marks))

    def _argument(self, name: str, value: Value, marks: list[str]) -> None:
        if value.known is None:
            self.kinds.append((name, value.type))
            self.values.append(value)
        else:
            marks.append(str(value.known).replace("-", "m"))

    def call(self, write: Callable[[Function, Operands], None], *, as_written: bool = False) -> None:
        """Calls the function, and first defines it if the module has none of its name.

        `as_written` as `Module.define` has it.
        """
        module: Module = self.caller.module
        callee: Callee | None = module.find(self.name)
        if callee is None:
            f = module.define(self.name, VOID, self.kinds, as_written=as_written)
            write(f, {name: self._inside(f, name, operand) for name, operand in self.given.items()})
            f.ret()
            callee = f.callee
        self.caller.call(callee, self.values)

    def _inside(self, f: Function, name: str, operand: Operand | None) -> Operand | None:
        if operand is None or isinstance(operand, Enum):
            return operand
        if isinstance(operand, Window):
            pointer, row, column = (
                self._value(f, f"{name}_{part}", getattr(operand, part))
                for part in ("pointer", "row", "column")
            )
            return Window(pointer, row, column, operand.dtype)
        return self._value(f, name, operand)

    def _value(self, f: Function, name: str, value: Value) -> Value:
        return f.arguments[name] if value.known is None else value


def window(operands: Operands, name: str) -> Window:
    """An operand that is a window."""
    found = operands[name]
    assert isinstance(found, Window)
    return found


def value(operands: Operands, name: str) -> Value:
    """An operand that is a number."""
    found = operands[name]
    assert isinstance(found, Value)
    return found


Choice = TypeVar("Choice", bound=Enum)


def choice(operands: Operands, name: str, kind: type[Choice]) -> Choice:
    """An operand that is a member of an enumeration."""
    found = operands[name]
    assert isinstance(found, kind)
    return found
