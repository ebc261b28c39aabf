"""Conditions in a nest: those that choose between nests, and those on loop variables, which split ranges.

Before::

    for i in range(n):                     for i in range(n):
        for j in range(n):                     for j in range(0, i + 1):
            if j <= i:                             for k in range(m):
                for k in range(m):                     C[i, j] += A[i, k] * A[j, k]
                    C[i, j] += A[i, k] * A[j, k]

After, on the right. A condition that is the same for the whole nest, such as ``if beta == 0``, gives one nest
for each of its two outcomes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import NamedTuple

from tilewright.loops.nests.polynomial import Index, Polynomial

#: Conditions of a nest that choose between versions of it.
MOST_CONDITIONS = 3

#: Comparisons of loop variables.
_SIGNS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


class Piece(NamedTuple):
    """A part of a range, and whether a condition is met in it."""

    begin: Polynomial
    end: Polynomial
    met: bool


def tests_of(node: ast.AST, bound: frozenset[str]) -> list[str]:
    r"""The conditions of a nest that are the same in all of its iterations, as text.

    >>> tree = ast.parse("for i in range(n):\n if not beta: C[i] = 0\n elif i < 3: C[i] *= beta")
    >>> tests_of(tree, frozenset("i"))
    ['beta']
    """
    found = (
        ast.unparse(_plain(one.test)[0])
        for one in ast.walk(node)
        if isinstance(one, ast.If | ast.IfExp) and _is_fixed(one.test, bound)
    )
    return list(dict.fromkeys(found))


def _plain(test: ast.expr) -> tuple[ast.expr, bool]:
    """A condition without `not`, and whether there was one."""
    turned = False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, turned = test.operand, not turned
    return test, turned


def _is_fixed(test: ast.expr, bound: frozenset[str]) -> bool:
    """Whether a condition has one value, whenever it is computed: names, attributes, shapes, numbers."""
    match test:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name not in bound
        case ast.UnaryOp(operand=value) | ast.Attribute(value=value):
            return _is_fixed(value, bound)
        case ast.BoolOp(values=values):
            return all(_is_fixed(one, bound) for one in values)
        case ast.BinOp(left=left, right=right):
            return _is_fixed(left, bound) and _is_fixed(right, bound)
        case ast.Compare(left=left, comparators=others):
            return all(_is_fixed(one, bound) for one in (left, *others))
        case ast.Subscript(value=ast.Attribute(attr="shape", value=value), slice=ast.Constant()):
            return _is_fixed(value, bound)
        case ast.Call(func=ast.Name(id="len"), args=[value], keywords=[]):
            return _is_fixed(value, bound)
        case _:
            return False


class Chosen(ast.NodeTransformer):
    """Keeps one branch of each condition whose outcome is known."""

    def __init__(self, outcomes: Mapping[str, bool]) -> None:
        self._outcomes = outcomes

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """The statements of one branch."""
        met = self._met(node.test)
        if met is None:
            return self.generic_visit(node)
        body = node.body if met else node.orelse
        return [self.visit(one) for one in _flat(body, self)] or ast.copy_location(ast.Pass(), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """The value of one branch."""
        met = self._met(node.test)
        if met is None:
            return self.generic_visit(node)
        found: ast.AST = self.visit(node.body if met else node.orelse)
        return found

    def _met(self, test: ast.expr) -> bool | None:
        plain, turned = _plain(test)
        outcome = self._outcomes.get(ast.unparse(plain))
        return None if outcome is None else outcome is not turned


def _flat(body: list[ast.stmt], chosen: Chosen) -> Iterator[ast.stmt]:
    """Statements, with those of known branches in the place of their conditions."""
    for one in body:
        found = chosen.visit(one)
        if isinstance(found, list):
            yield from found
        else:
            yield found


def without_continue(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a loop in which what stands behind ``if ...: continue`` is its other branch.

    ``if a and b: S`` is ``if a: if b: S``.
    """
    for place, statement in enumerate(body):
        match statement:
            case ast.If(body=[*first, ast.Continue()], orelse=orelse):
                rest = without_continue([*orelse, *body[place + 1 :]])
                skipped: list[ast.stmt] = first or [ast.copy_location(ast.Pass(), statement)]
                made = ast.copy_location(ast.If(statement.test, skipped, rest), statement)
                return [*body[:place], made]
            case ast.If(test=ast.BoolOp(op=ast.And(), values=[one, *others]), orelse=[]):
                inner: ast.stmt = statement
                for test in reversed((one, *others)):
                    held = statement.body if inner is statement else [inner]
                    inner = ast.copy_location(ast.If(test, held, []), statement)
                return without_continue([*body[:place], inner, *body[place + 1 :]])
            case _:
                continue
    return body


def guard_of(body: list[ast.stmt], name: str, is_known: Callable[[str], bool]) -> ast.If | None:
    """The first condition in a loop over `name` that compares its variable with what is known there."""
    for node in (one for statement in body for one in ast.walk(statement)):
        match node:
            case ast.If(test=ast.Compare(left=left, ops=[sign], comparators=[right])) if isinstance(
                sign, _SIGNS
            ):
                names = {
                    one.id for side in (left, right) for one in ast.walk(side) if isinstance(one, ast.Name)
                }
                if name in names and all(map(is_known, names - {name})):
                    return node
            case _:
                continue
    return None


def with_outcome(body: list[ast.stmt], guard: ast.If, *, met: bool) -> list[ast.stmt]:
    """A copy of a body in which a condition has an outcome."""
    place = next(n for n, one in enumerate(ast.walk(ast.Module(body, []))) if one is guard)
    copy = deepcopy(ast.Module(body, []))
    own = next(one for n, one in enumerate(ast.walk(copy)) if n == place)
    assert isinstance(own, ast.If)
    own.test = ast.copy_location(ast.Constant(met), own)
    made = Chosen({"True": True, "False": False}).visit(copy)
    assert isinstance(made, ast.Module)
    return made.body


def pieces(sign: ast.cmpop, difference: Polynomial, index: Index, count: Polynomial) -> list[Piece] | None:
    """The parts of a range in which ``difference (sign) 0`` is met or not; None if it is not cut in two.

    >>> i, j = Index("i"), Index("j")
    >>> [(str(one.begin), str(one.end), one.met) for one in pieces(ast.LtE(), j - Polynomial.of(i), j, i + 9)]
    [('0', '1 + i', True), ('1 + i', '9 + i', False)]
    """
    form = difference.linear([index])
    slope = None if form is None else form.coefficient(index).constant
    if form is None or slope not in (1, -1):
        return None
    at = -form.rest * slope
    zero = Polynomial()
    match sign, slope:
        case ast.Eq() | ast.NotEq(), _:
            met = isinstance(sign, ast.Eq)
            return [Piece(zero, at, not met), Piece(at, at + 1, met), Piece(at + 1, count, not met)]
        case (ast.Lt(), 1) | (ast.Gt(), -1):
            return [Piece(zero, at, True), Piece(at, count, False)]
        case (ast.LtE(), 1) | (ast.GtE(), -1):
            return [Piece(zero, at + 1, True), Piece(at + 1, count, False)]
        case (ast.Gt(), 1) | (ast.Lt(), -1):
            return [Piece(zero, at + 1, False), Piece(at + 1, count, True)]
        case _:
            return [Piece(zero, at, False), Piece(at, count, True)]
