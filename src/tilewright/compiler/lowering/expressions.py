"""Integer expressions, scalars, conditions and windows as LLVM values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tilewright.compiler.lowering.frame import Frame
from tilewright.errors import InvalidTileIr
from tilewright.ir.expressions import (
    AnyOf,
    Binary,
    Constant,
    Expression,
    FirstElse,
    Lead,
    Name,
    Operator,
    Scalar,
    ScalarValue,
    TableEntry,
    Threads,
    Unless,
)
from tilewright.ir.nodes import Loop, Slice, Statement
from tilewright.llvm.build import Function
from tilewright.llvm.values import INT64, POINTER, Value, constant, int64, zero
from tilewright.micro.calls import Window
from tilewright.records import dataclass
from tilewright.spec.dtype import DType

#: Begins the comment on a line of LLVM IR that has the number of the statement it was written for.
MARK = " ; statement "


@dataclass
class Scope:
    """The values that a statement may name, and the meaning of expressions in terms of them.

    Attributes
    ----------
    frame : the function that the statement belongs to.
    names : sizes, lets and loop axes.
    begins : the first position of each loop axis.
    lasts : for each loop axis that a tile carries sums over, whether this is its last iteration.
    """

    frame: Frame
    names: dict[str, Value]
    begins: dict[str, Value] = field(default_factory=dict)
    lasts: dict[str, Value] = field(default_factory=dict)

    @property
    def f(self) -> Function:
        """The function that is being written."""
        return self.frame.f

    def child(self, names: Mapping[str, Value] | None = None) -> Scope:
        """A scope inside this one, with further names."""
        return Scope(self.frame, self.names | dict(names or {}), dict(self.begins), dict(self.lasts))

    def mark(self, statement: Statement) -> None:
        """Marks the lines that follow with the number of a statement, where statements are numbered.

        Parallel loops that make tasks together are lowered at once, and have the number of the first.
        """
        numbers = self.frame.numbers
        if numbers is not None:
            self.f.mark = f"{MARK}{next(numbers)}"
            for _ in statement.fused()[1:] if isinstance(statement, Loop) else ():
                next(numbers)

    def integer(self, node: Expression) -> Value:
        """The value of an integer expression."""
        f = self.f
        match node:
            case Constant(value):
                return int64(value)
            case Name(name):
                return self.names[name]
            case Lead(buffer, unit_bytes, offset):
                begin = f.mul(self.integer(offset), self.dtype(buffer).size)
                address = f.ptrtoint(f.at(self.frame.pointers[buffer], begin))
                lead_bytes = f.and_(f.sub(int64(0), address), int64(unit_bytes - 1))
                return f.ashr(lead_bytes, int64(self.dtype(buffer).size.bit_length() - 1))
            case TableEntry(buffer, index):
                place = f.at(self.frame.pointers[buffer], f.mul(self.integer(index), 8))
                return f.load(INT64, place, 8)
            case Threads():
                return int64(1) if self.frame.team is None else self.frame.team.threads
            case Unless(scalar, value):
                given = self.frame.scalars[scalar]
                some = f.not_equal(given, zero(given.type))
                return f.select(some, self.integer(value), int64(0))
            case Binary(operator, left, right):
                return self._binary(operator, self.integer(left), self.integer(right))
            case _:
                raise InvalidTileIr(where=repr(node), reason="is not an expression")

    def _binary(self, operator: Operator, left: Value, right: Value) -> Value:
        f = self.f
        match operator:
            case Operator.ADD:
                return f.add(left, right)
            case Operator.SUB:
                return f.sub(left, right)
            case Operator.MUL:
                return f.mul(left, right)
            case Operator.MIN:
                return f.minimum(left, right)
            case Operator.MAX:
                return f.maximum(left, right)
            case Operator.CEILDIV:
                return self._ceildiv(left, right)
            case Operator.ROUNDUP:
                return f.mul(self._ceildiv(left, right), right)

    def _ceildiv(self, left: Value, right: Value) -> Value:
        """A quotient: one that this block has, or a new one, which needs no division by 1 at run time.

        A small product is one part along most axes: an sgemm of 16x16x16 took 225 ns with the divisions, and
        191 without.
        """
        f, known = self.f, self.frame.quotients
        found = known.get((f.block.label, left, right))
        if found is not None:
            return found
        if right.known is not None:
            found = f.ceildiv(left, right)
        else:
            with f.once_if(f.icmp("!=", right, 1), [left]) as (_, several):
                several([f.ceildiv(left, right)])
            (found,) = several.results
        known[f.block.label, left, right] = found
        return found

    def integers(self, *nodes: Expression) -> list[Value]:
        """The values of several integer expressions."""
        return [self.integer(node) for node in nodes]

    def scalar(self, value: ScalarValue, dtype: DType) -> Value:
        """A floating-point value, in a given type."""
        match value:
            case Scalar(content) if isinstance(content, str):
                return self.frame.scalars[content]
            case Scalar(content):
                return constant(dtype, float(content))
            case FirstElse(axis, first, rest):
                at_first = self.at_first(axis)
                return self.f.select(at_first, self.scalar(first, dtype), self.scalar(rest, dtype))
            case _:
                raise InvalidTileIr(where=repr(value), reason="is not a scalar")

    def at_first(self, axis: str) -> Value:
        """Whether this is the first iteration of an axis."""
        return self.f.icmp("==", self.names[axis], self.begins[axis])

    def condition(self, condition: AnyOf) -> Value:
        """Whether a condition holds."""
        f = self.f
        anything: Value | None = None
        for conjunction in condition.terms:
            every: Value | None = None
            for term in conjunction.terms:
                test = f.icmp(term.relation.value, *self.integers(term.left, term.right))
                every = test if every is None else f.and_(every, test)
            assert every is not None
            anything = every if anything is None else f.or_(anything, every)
        assert anything is not None
        return anything

    def window(self, part: Slice) -> Window:
        """A slice; with an index, of the array that the pointer of this index names."""
        offset = self.offset_bytes(part)
        row, column = self.integers(*part.strides)
        base = self.frame.pointers[part.buffer]
        if part.index is not None:
            base = self.f.load(POINTER, self.f.at(base, self.f.mul(self.integer(part.index), 8)), 8)
        return Window(self.f.at(base, offset), row, column, self.dtype(part.buffer))

    def offset_bytes(self, part: Slice) -> Value:
        """Bytes from the start of its buffer to a slice."""
        return self.f.bytes_of(self.integer(part.offset), self.dtype(part.buffer).bits)

    def dtype(self, buffer: str) -> DType:
        """The element type of a buffer."""
        return self.frame.dtype(buffer)
