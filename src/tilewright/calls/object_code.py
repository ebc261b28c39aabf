"""Machine code that reads objects: fields of structures, types, and calls of the interpreter's functions."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import reduce
from typing import Any, TypeAlias

from tilewright.calls.interpreter import FUNCTIONS
from tilewright.calls.layout import OBJECT_TYPE, TUPLE_SIZE
from tilewright.llvm.build import Function, Module
from tilewright.llvm.control import Block
from tilewright.llvm.values import INT32, INT64, POINTER, Type, Value, int32, null

#: Where a field is: bytes, the number of a word, or a field of a structure of ctypes.
FieldPlace: TypeAlias = Any

#: The arguments of a builtin, as METH_FASTCALL | METH_KEYWORDS gives them.
CALL_ARGUMENTS = (("self", POINTER), ("args", POINTER), ("nargs", INT64), ("kwnames", POINTER))


def offset_of(field: FieldPlace) -> int:
    """The bytes in front of a field."""
    if isinstance(field, IntEnum):
        return 8 * field
    offset: int = field if isinstance(field, int) else field.offset
    return offset


class ObjectCode(Function):
    """A function of a module that reads objects; fields have 64 bits unless noted."""

    def __init__(
        self,
        module: Module,
        name: str,
        result: Type,
        arguments: Sequence[tuple[str, Type]],
        *,
        exported: bool = False,
    ) -> None:
        super().__init__(module, name, result, arguments, exported=exported)
        module.functions[name] = self

    def word(self, base: Value, field: FieldPlace = 0) -> Value:
        """An integer in a field."""
        return self.load(INT64, self.at(base, offset_of(field)), 8)

    def pointer(self, base: Value, field: FieldPlace = 0) -> Value:
        """A pointer in a field."""
        return self.load(POINTER, self.at(base, offset_of(field)), 8)

    def put(self, base: Value, field: FieldPlace, value: Value) -> None:
        """Writes a field."""
        self.store(value, self.at(base, offset_of(field)), 8)

    def item(self, base: Value, number: Value, field: FieldPlace = 0) -> Value:
        """The place of an entry in an array of words that starts at a field."""
        return self.at(self.at(base, offset_of(field)), self.mul(number, 8))

    def symbol(self, name: str) -> Value:
        """The address of something that the module imports."""
        return self.module.external(f"tw_{name}")

    def python(self, name: str, *arguments: Value) -> Value:
        """A call of one of the interpreter's functions, or of NumPy's."""
        function = FUNCTIONS[name]
        return self.call(self.module.declare(f"tw_{name}", function.result, function.arguments), arguments)

    def new_array(
        self,
        axes: Value,
        shape: Value,
        dtype: Value,
        strides: Value = null(),  # noqa: B008
        data: Value = null(),  # noqa: B008
        flags: Value = int32(0),  # noqa: B008
    ) -> Value:
        """A new array, row-major without strides, in memory of its own without data; null after an error."""
        self.python("incref", dtype)  # PyArray_NewFromDescr takes over a reference
        given = (self.symbol("ndarray"), dtype, self.trunc(axes, INT32), shape, strides, data, flags, null())
        return self.python("new_array", *given)

    def is_of(self, value: Value, *names: str) -> Value:
        """Whether an object is of one of some types, and not of a subclass."""
        kind = self.pointer(value, OBJECT_TYPE)
        return reduce(self.or_, [self.icmp("==", kind, self.symbol(name)) for name in names])

    def is_null(self, pointer: Value) -> Value:
        """Whether a pointer is null."""
        return self.icmp("==", pointer, null())

    def go_on_if(self, condition: Value, otherwise: Block) -> None:
        """Goes on if the condition holds, else to another block."""
        following = self.new_block("following")
        self.jump_if(condition, following, otherwise)
        self.place(following)

    def leave_if(self, condition: Value, block: Block) -> None:
        """Goes to another block if the condition holds."""
        following = self.new_block("following")
        self.jump_if(condition, block, following)
        self.place(following)

    def return_if(self, condition: Value, value: Value) -> None:
        """Returns if the condition holds."""
        with self.when(condition):
            self.ret(value)

    def all_arguments(self) -> Value:
        """The number of arguments of a call by position and by name."""
        nargs, kwnames = self.arguments["nargs"], self.arguments["kwnames"]
        with self.once_if(self.not_(self.is_null(kwnames)), [nargs]) as (_, named):
            named([self.add(nargs, self.word(kwnames, TUPLE_SIZE))])
        return named.results[0]
