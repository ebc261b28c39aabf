"""Functions, quotients and choices in expressions of Python, which are computed element by element."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tilewright.loops.nests.nest import (
    Access,
    Assign,
    CountedLoop,
    FunctionCall,
    Load,
    Quotient,
    Read,
    Select,
    SquareRoot,
    Statement,
    Times,
    Unreadable,
    Value,
    Where,
)
from tilewright.loops.nests.pointwise import parts_of
from tilewright.loops.python.elements import PythonNest
from tilewright.loops.python.reductions import ReductionReader

#: Relations by their names in LLVM, which say what they are for NaN: not equal is met.
RELATIONS: dict[type[ast.cmpop], str] = {
    ast.Gt: "ogt",
    ast.Lt: "olt",
    ast.GtE: "oge",
    ast.LtE: "ole",
    ast.Eq: "oeq",
    ast.NotEq: "une",
}
#: Functions of NumPy that are the same for an element and for an array.
FUNCTIONS = {
    1: frozenset({"abs", "exp", "tanh", "sin", "cos"}),
    2: frozenset({"maximum", "minimum"}),
}


class FunctionReader(ReductionReader):
    """Reads values that are no sums of products.

    A variable that has such a value is replaced by it where it is read, as long as nothing changes that the
    value is computed from.
    """

    def __init__(self, function: str, nest: PythonNest, bound: frozenset[str]) -> None:
        super().__init__(function, nest, bound)
        self.deferred: dict[str, Value] = {}
        #: Those that no statement of the body has read yet, with the number of loops around it.
        self.unread: dict[str, int] = {}

    def defers(self, name: str, value: Value) -> bool:
        """Whether a value is put where its variable is read, and not assigned to that."""
        if not any(isinstance(one, Quotient | SquareRoot | Select | FunctionCall) for one in _parts(value)):
            return False
        self.deferred[name] = value
        if name in self.unread:
            self.unread[f"the first {name}"] = self.unread[name]
        self.unread[name] = len(self.open)
        return True

    def deferred_value(self, name: str) -> Value:
        """The value that a variable has; it is read now."""
        if self.unread.get(name) == len(self.open):
            del self.unread[name]
        return self.deferred[name]

    def forget(self, statements: Sequence[Statement]) -> None:
        """Notes what statements change."""
        every = [one for statement in statements for one in _every(statement)]
        changed = {one.target for one in every if isinstance(one, Assign)}
        arrays = {target.memory for target in changed if isinstance(target, Access)}
        for name, value in self.deferred.items():
            read = list(_parts(value))
            cells = {one.cell for one in read if isinstance(one, Read)}
            if cells & changed or any(isinstance(one, Load) and one.access.memory in arrays for one in read):
                self.deferred[name] = Unreadable(
                    f"computes {name} element by element, and changes what it is computed from",
                    Where(self.function, self.nest.node.lineno),
                )

    def applied(self, node: ast.expr) -> Value | None:
        """The value of a quotient, a choice or a known function; None for anything else."""
        where = self.where(node)
        match node:
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return Quotient(self.value(left), self.value(right), where)
            case ast.BinOp(
                left=ast.Name() | ast.Subscript() as base, op=ast.Pow(), right=ast.Constant(value=2)
            ):
                return Times(self.value(base), self.value(base), contracts=True)
            case ast.IfExp(test=ast.Compare() as test, body=then, orelse=otherwise):
                return self._choice(test, self.value(then), self.value(otherwise))
            case ast.Call(func=ast.Name(id="max" | "min" as name), args=[left, right], keywords=[]) if (
                not self.is_invariant(node)
            ):
                self.nest.builtins.add(name)
                one, other = self.value(left), self.value(right)
                relation = "ogt" if name == "max" else "olt"
                return Select(relation, other, one, other, one, where)  # the first one if neither is larger
            case ast.Call(func=ast.Name(id="abs"), args=[operand], keywords=[]) if not self.is_invariant(
                node
            ):
                self.nest.builtins.add("abs")
                return FunctionCall("abs", (self.value(operand),), where)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=module), attr=name), args=operands, keywords=[]
            ) if module not in self.bound:
                return self._function(module, name, operands, node)
            case _:
                return None

    def chosen(self, node: ast.If, target: ast.expr, then: ast.expr) -> Value | None:
        """The value of ``if s < 0: s = 0``, which assigns one variable or element in each branch."""
        match node.orelse:
            case []:
                otherwise = target
            case [ast.Assign(targets=[own], value=otherwise)] if ast.unparse(own) == ast.unparse(target):
                pass
            case _:
                return None
        if not isinstance(node.test, ast.Compare) or not isinstance(target, ast.Name | ast.Subscript):
            return None
        found = self._choice(node.test, self.value(then), self.value(otherwise))
        return found if isinstance(found, Select) else None

    def _choice(self, test: ast.Compare, then: Value, otherwise: Value) -> Value:
        where = self.where(test)
        match test:
            case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in RELATIONS:
                one, other = self.value(left), self.value(right)
                return Select(RELATIONS[type(sign)], one, other, then, otherwise, where)
            case _:
                return Unreadable(f"computes {ast.unparse(test)}", where)

    def _function(self, module: str, name: str, operands: list[ast.expr], node: ast.expr) -> Value | None:
        where = self.where(node)
        if name == "sqrt" and len(operands) == 1:
            self.nest.roots.add(module)
            return SquareRoot(self.value(operands[0]), where)
        if name in FUNCTIONS.get(len(operands), ()):
            self.nest.modules.add(module)
            return FunctionCall(name, tuple(map(self.value, operands)), where)
        return None


def _parts(value: Value) -> Iterator[Value]:
    yield value
    for part in parts_of(value):
        yield from _parts(part)


def _every(statement: Statement) -> Iterator[Statement]:
    if isinstance(statement, CountedLoop):
        yield from statement.walk()
    else:
        yield statement
