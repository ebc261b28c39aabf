"""`while` loops that count, and loops over the rows of an array, as loops over ranges.

Before::

    k = 0                              for i, row in enumerate(A):
    while k < n:                           y[i] += row[j]
        s += A[i, k] * B[k, j]
        k += 1

After, for the reader alone; what runs if the nest is not replaced stays as it was written::

    for k in range(0, n):              for i in range(len(A)):
        s += A[i, k] * B[k, j]             y[i] += A[i][j]
"""

from __future__ import annotations

import ast
from copy import deepcopy


def counted(node: ast.For) -> ast.For:
    """A copy of a nest in which the loops that this file is about are loops over ranges."""
    copy = deepcopy(node)
    _Ranges(copy).visit(copy)
    return ast.fix_missing_locations(copy)


class _Ranges(ast.NodeTransformer):
    """Rewrites from the outside in; whatever does not fit stays, and is refused by the reader."""

    def __init__(self, root: ast.For) -> None:
        self._root = root

    def visit_For(self, node: ast.For) -> ast.AST:
        _index_rows(node)
        node.body = self._statements(node.body)
        self.generic_visit(node)
        return node

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in body:
            before = found[-1] if found else None
            if isinstance(statement, ast.While) and isinstance(before, ast.Assign):
                loop = _range_of(before, statement, self._root)
                if loop is not None:
                    found[-1] = loop
                    continue
            found.append(statement)
        return found


def _range_of(start: ast.Assign, loop: ast.While, root: ast.For) -> ast.For | None:
    """`k = start` and the `while` behind it as one loop; None if it does anything but count."""
    match start, loop:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=first),
            ast.While(
                test=ast.Compare(
                    left=ast.Name(id=tested), ops=[ast.Lt() | ast.LtE() as sign], comparators=[stop]
                ),
                body=[
                    *body,
                    ast.AugAssign(target=ast.Name(id=stepped), op=ast.Add(), value=ast.Constant() as step),
                ],
                orelse=[],
            ),
        ) if name == tested == stepped and body and type(step.value) is int and step.value > 0:
            pass
        case _:
            return None
    inside = ast.Module(body, [])
    counts = {id(one) for part in (start, loop) for one in ast.walk(part)}
    elsewhere = any(
        isinstance(one, ast.Name) and one.id == name and id(one) not in counts for one in ast.walk(root)
    )
    if elsewhere or name in _bound(inside) or not _is_fixed(stop, _bound(inside) | {name}):
        return None
    if any(isinstance(one, ast.Break | ast.Continue | ast.Return) for one in ast.walk(inside)):
        return None
    if isinstance(sign, ast.LtE):
        stop = ast.BinOp(stop, ast.Add(), ast.Constant(1))
    words = [first, stop, *([] if step.value == 1 else [step])]
    iterable = ast.Call(ast.Name("range", ast.Load()), words, [])
    return ast.copy_location(ast.For(ast.Name(name, ast.Store()), iterable, body, []), loop)


def _is_fixed(node: ast.expr, changed: frozenset[str]) -> bool:
    """Whether a bound is the same in every iteration: names, attributes, shapes, lengths and arithmetic."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name not in changed
        case ast.BinOp(left=left, right=right):
            return _is_fixed(left, changed) and _is_fixed(right, changed)
        case ast.Call(func=ast.Name(id="len"), args=[argument], keywords=[]):
            return _is_fixed(argument, changed)
        case ast.Subscript(value=ast.Attribute(value=owner, attr="shape"), slice=ast.Constant()):
            return _is_fixed(owner, changed)
        case _:
            return False


def _index_rows(node: ast.For) -> None:
    """`for i, row in enumerate(A)` as `for i in range(len(A))`, with A[i] in the place of `row`."""
    match node:
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=index), ast.Name(id=row)]),
            iter=ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name(id=array)], keywords=[]),
            orelse=[],
        ):
            pass
        case _:
            return
    inside = ast.Module(node.body, [])
    stored = {
        one.value.id
        for one in ast.walk(inside)
        if isinstance(one, ast.Subscript)
        and not isinstance(one.ctx, ast.Load)
        and isinstance(one.value, ast.Name)
    }
    if {row, array, index} & _bound(inside) or {row, array} & stored or len({row, array, index}) < 3:
        return
    node.target = ast.Name(index, ast.Store())
    length = ast.Call(ast.Name("len", ast.Load()), [ast.Name(array, ast.Load())], [])
    node.iter = ast.Call(ast.Name("range", ast.Load()), [length], [])
    _Rows(row, array, index).visit(inside)
    node.body = inside.body


class _Rows(ast.NodeTransformer):
    """Puts an element of an array in the place of the name that a loop gives to it."""

    def __init__(self, row: str, array: str, index: str) -> None:
        self._row, self._array, self._index = row, array, index

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]) if name == self._row:
                shape = ast.Attribute(ast.Name(self._array, ast.Load()), "shape", ast.Load())
                return ast.copy_location(ast.Subscript(shape, ast.Constant(1), ast.Load()), node)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id != self._row:
            return node
        names = ast.Name(self._array, ast.Load()), ast.Name(self._index, ast.Load())
        return ast.copy_location(ast.Subscript(*names, ast.Load()), node)


def _bound(node: ast.AST) -> frozenset[str]:
    """Names that statements bind."""
    names = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return frozenset(name.id for name in names if not isinstance(name.ctx, ast.Load))
