"""Lowering of loops and assignments to LLVM: the parts of a distributed nest that are no products."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.llvm.build import Function
from tilewright.llvm.values import INT1, Value, constant, element_type, int64, is_float
from tilewright.loops.nests.nest import (
    Access,
    Assign,
    Cell,
    Conversion,
    CountedLoop,
    InvariantScalar,
    Load,
    Minus,
    Number,
    Quotient,
    Read,
    Select,
    SquareRoot,
    Statement,
    Sum,
    Times,
)
from tilewright.loops.nests.nest import Value as Tree
from tilewright.loops.nests.pointwise import parts_of
from tilewright.loops.nests.polynomial import Polynomial, Symbol
from tilewright.loops.splice.arithmetic import UNKNOWN_ALIGNMENT, Invariants, scalar_value
from tilewright.spec.dtype import DType

#: What a sum may do where the program permits it: be reordered, and leave products unrounded.
_FREE = "reassoc nsz contract "


class Statements:
    """Writes statements of one nest into a function.

    Parameters
    ----------
    invariants : values of the symbols that statements name.
    dtype : the type that all of them compute in.
    """

    def __init__(self, invariants: Invariants, dtype: DType) -> None:
        self._invariants, self._dtype = invariants, dtype
        self._f: Function = invariants.f
        self._cells: dict[Cell, Value] = {}
        self._indices: dict[Symbol, Value] = {}

    def write(self, statements: Sequence[Statement]) -> None:
        """Statements, in their order."""
        for statement in statements:
            match statement:
                case CountedLoop(index=index, extent=extent, body=body):
                    count = self._invariants.count(extent, self._indices)
                    with self._f.loop(int64(0), count, int64(1)) as value:
                        self._indices[index] = value
                        self.write(body)
                        del self._indices[index]
                case Assign(target=Access() as target, value=tree):
                    self._f.store(self._value(tree), self._address(target), UNKNOWN_ALIGNMENT)
                case Assign(target=Cell() as cell, value=tree):
                    self._f.store(self._value(tree), self._place(cell), self._dtype.size)
                case _:
                    raise AssertionError(f"{statement} is no part of a distributed nest")

    def _place(self, cell: Cell) -> Value:
        if cell not in self._cells:
            self._cells[cell] = self._f.alloca(element_type(self._dtype), 1, self._dtype.size)
        return self._cells[cell]

    def _address(self, access: Access) -> Value:
        start = self._invariants.address(access.memory.base, Polynomial())
        return self._f.at(start, self._invariants.integer(access.offset, self._f, self._indices))

    def _value(self, tree: Tree) -> Value:
        f, kind = self._f, element_type(self._dtype)
        match tree:
            case Load(access=access):
                return f.load(kind, self._address(access), UNKNOWN_ALIGNMENT)
            case Read(cell=cell):
                return f.load(kind, self._place(cell), self._dtype.size)
            case Number(value=number):
                assert not isinstance(number, complex)
                return constant(self._dtype, number)
            case InvariantScalar():
                return scalar_value(self._invariants, tree, self._dtype)
            case Sum(left=left, right=right, reassociates=free):
                return self._binary("add", left, right, _FREE if free else "")
            case Times(left=left, right=right, contracts=free):
                return self._binary("mul", left, right, "contract " if free else "")
            case Quotient(left=left, right=right):
                return self._binary("div", left, right, "")
            case Minus(value=inner):
                value = self._value(inner)
                text = f"fneg {value.typed}" if is_float(kind) else f"sub {kind.text} 0, {value.text}"
                return f.emit(kind, text)
            case SquareRoot(value=inner):
                root = f.module.declare(f"llvm.sqrt.{kind.suffix}", kind, (kind,))
                return f.call(root, [self._value(inner)])
            case Select(relation=relation):
                left_value, right_value, then, otherwise = map(self._value, parts_of(tree))
                test = f.emit(INT1, f"fcmp {relation} {left_value.typed}, {right_value.text}")
                return f.select(test, then, otherwise)
            case Conversion() | _:
                raise AssertionError(f"{tree} is no part of a distributed nest")

    def _binary(self, word: str, left: Tree, right: Tree, flags: str) -> Value:
        one, other = self._value(left), self._value(right)
        spelt = f"f{word} {flags}" if is_float(one.type) else f"{word} "
        return self._f.emit(one.type, f"{spelt}{one.typed}, {other.text}")
