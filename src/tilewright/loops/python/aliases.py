"""Names that a nest gives to rows, arrays and integers, replaced by what they stand for.

Before::

    m, n = A.shape                         for i in range(A.shape[0]):
    for i in range(m):                         for k in range(A.shape[1]):
        row = A[i]                                 y[i] += A[i][k] * x[k]
        for k in range(n):
            y[i] += row[k] * x[k]

After, on the right, where all of it is in another loop.
"""

from __future__ import annotations

import ast
from copy import deepcopy

from tilewright.loops.python.sequences import indexed, length, two_axes

#: Built-in functions whose arguments are sequences.
_TAKE_ROWS = frozenset({"len", "zip", "enumerate", "reversed"})


class Substitution(ast.NodeTransformer):
    """Puts an expression in the place of a name that is only read."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self._name, self._value = name, value

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Elements, rows and lengths of what the name stands for."""
        match node.value:
            case ast.Name(id=name) if name == self._name:
                place = self.visit(node.slice)
                return ast.copy_location(indexed(self._value, place, node.ctx), node)
            case ast.Attribute(value=ast.Name(id=name), attr="shape") if name == self._name and isinstance(
                self._value, ast.Subscript
            ):
                if isinstance(node.slice, ast.Constant) and node.slice.value == 0:
                    return ast.copy_location(deepcopy(length(self._value)), node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Its length."""
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]) if name == self._name:
                return ast.copy_location(deepcopy(length(self._value)), node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """The name itself."""
        if node.id != self._name or not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(deepcopy(self._value), node)


def is_row(name: str, inside: ast.AST) -> bool:
    """Whether a name is used as a sequence: with subscripts, in a loop, as an operand of a dot product."""
    for node in ast.walk(inside):
        match node:
            case ast.Subscript(value=one) | ast.Attribute(value=one) | ast.For(iter=one):
                parts = [one]
            case ast.comprehension(iter=one):
                parts = [one]
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                parts = [left, right]
            case ast.Call(func=ast.Name(id=called), args=arguments) if called in _TAKE_ROWS:
                parts = arguments
            case ast.Call(func=ast.Attribute(attr="dot" | "inner" | "vdot"), args=arguments):
                parts = arguments
            case _:
                continue
        if any(isinstance(one, ast.Name) and one.id == name for one in parts):
            return True
    return False


def bound_names(node: ast.AST) -> frozenset[str]:
    """Names that statements bind, without those of comprehensions."""
    own = {
        id(name)
        for one in ast.walk(node)
        if isinstance(one, ast.comprehension)
        for name in ast.walk(one.target)
    }
    names = (one for one in ast.walk(node) if isinstance(one, ast.Name) and id(one) not in own)
    return frozenset(name.id for name in names if not isinstance(name.ctx, ast.Load))


def stored_names(node: ast.AST) -> frozenset[str]:
    """Names that statements or comprehensions bind."""
    names = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return frozenset(name.id for name in names if not isinstance(name.ctx, ast.Load))


def remaining(names: set[str], inside: ast.AST) -> list[str]:
    """The names of some that are still read, except as variables of comprehensions."""
    own: set[int] = set()
    for one in ast.walk(inside):
        if isinstance(one, ast.GeneratorExp | ast.ListComp):
            bound = frozenset().union(*(stored_names(part.target) for part in one.generators))
            own |= {id(name) for name in ast.walk(one) if isinstance(name, ast.Name) and name.id in bound}
    read = (one for one in ast.walk(inside) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
    return sorted({one.id for one in read if one.id in names and id(one) not in own})


def separated(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a body with ``a, b = x, y`` as two assignments.

    ``m, n = A.shape`` is ``assert len(A.shape) == 2; m = A.shape[0]; n = A.shape[1]``.
    """
    found: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=value) if all(
                isinstance(name, ast.Name) for name in names
            ):
                parts = _unpacked(names, value)
                found += [ast.copy_location(one, statement) for one in parts] or [statement]
            case _:
                found.append(statement)
    return found


def resolved(body: list[ast.stmt], replaced: set[str]) -> list[ast.stmt]:
    """The statements of a body without those that only name rows, arrays and integers.

    The names are added to `replaced`.
    """
    waiting: list[ast.stmt] = list(body)
    found: list[ast.stmt] = []
    while waiting:
        statement = waiting.pop(0)
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _stands_for(
                name, value, found, waiting
            ):
                waiting = [Substitution(name, value).visit(one) for one in waiting]
                replaced.add(name)
                equal = (ast.Compare(one, [ast.Eq()], [other]) for one, other in two_axes(value))
                found += [ast.copy_location(ast.Assert(one), statement) for one in equal]
            case _:
                found.append(statement)
    return found


def _unpacked(names: list[ast.expr], value: ast.expr) -> list[ast.stmt]:
    """The assignments that one to several names is; none if they depend on one another."""
    made: list[ast.stmt] = []
    match value:
        case ast.Attribute(attr="shape"):
            axes = ast.Call(ast.Name("len", ast.Load()), [deepcopy(value)], [])
            made.append(ast.Assert(ast.Compare(axes, [ast.Eq()], [ast.Constant(len(names))])))
            values: list[ast.expr] = [
                ast.Subscript(deepcopy(value), ast.Constant(place), ast.Load()) for place in range(len(names))
            ]
        case ast.Tuple(elts=values) if len(values) == len(names):
            read = {one.id for part in values for one in ast.walk(part) if isinstance(one, ast.Name)}
            if read & {name.id for name in names if isinstance(name, ast.Name)}:
                return []
        case _:
            return []
    return [*made, *(ast.Assign([name], one) for name, one in zip(names, values, strict=True))]


def _stands_for(name: str, value: ast.expr, before: list[ast.stmt], behind: list[ast.stmt]) -> bool:
    """Whether a name may be replaced by its value in the statements behind its assignment."""
    inside = ast.Module(behind, [])
    read = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
    if name in read or (read | {name}) & stored_names(inside) or not _is_read(name, inside):
        return False
    if _is_read(name, ast.Module(before, [])):
        return False  # by the next iteration
    match value:
        case ast.Name() | ast.Attribute():
            return is_row(name, inside) or _is_integer(name, inside)
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
        case ast.Subscript():
            return is_row(name, inside)
        case ast.BinOp() | ast.UnaryOp() | ast.Call(func=ast.Name(id="len" | "min" | "max")):
            return _is_integer(name, inside)
        case _:
            return False


def _is_read(name: str, inside: ast.AST) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(inside))


def _is_integer(name: str, inside: ast.AST) -> bool:
    """Whether a name is in a subscript, in the bounds of a loop or in a condition."""
    for node in ast.walk(inside):
        match node:
            case ast.Subscript(slice=part) | ast.For(iter=part) | ast.If(test=part):
                if _is_read(name, part):
                    return True
    return False
