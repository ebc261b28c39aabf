"""`while` loops that count, as loops over ranges.

Before::

    k = 0                              for k in range(0, n):
    while k < n:                           s += A[i, k] * B[k, j]
        s += A[i, k] * B[k, j]
        k += 1

After, on the right, for the reader alone; what runs if the nest is not replaced stays as it was written.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

from tilewright.loops.python.aliases import bound_names
from tilewright.loops.python.sequences import minus, plus

#: What the loops made here are marked by, in the place of a type comment. The variable of the first kind ends
#: at its bound, and not at the last value in the loop.
COUNTER, STEPPED_FIRST = "counter", "counter that steps first"

#: Comparisons with their sides exchanged.
_EXCHANGED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.NotEq: ast.NotEq,
}


class CountingLoop(NamedTuple):
    """A loop that counts: the assignment that it starts from, and the same as a loop over a range."""

    start: ast.stmt
    loop: ast.For


class _Step(NamedTuple):
    """How a body counts: the statements without the step, the step, and whether it comes first."""

    body: list[ast.stmt]
    step: int
    first: bool


def range_of(before: Sequence[ast.stmt], loop: ast.While) -> CountingLoop | None:
    """The loop over a range that a `while` loop and the start of its counter are; None if it does more.

    Parameters
    ----------
    before : the statements before it in the same body.
    """
    match loop.test:
        case ast.Compare(left=ast.Name(id=name), ops=[sign], comparators=[stop]) if _counts(loop, name):
            pass
        case ast.Compare(left=stop, ops=[other], comparators=[ast.Name(id=name)]) if (
            type(other) in _EXCHANGED
        ):
            sign = _EXCHANGED[type(other)]()
        case _:
            return None
    found, start = _step(loop.body, name), _start(before, name)
    if found is None or start is None or loop.orelse or not found.body:
        return None
    inside = ast.Module(found.body, [])
    changed = bound_names(inside) | {name}
    if name in bound_names(inside) or not _is_fixed(stop, changed):
        return None
    if any(isinstance(one, ast.Break | ast.Continue | ast.Return) for one in ast.walk(inside)):
        return None
    begin = deepcopy(start.value)
    bounds = _bounds(begin, sign, deepcopy(stop), found)
    if bounds is None:
        return None
    words = [*bounds, *([] if found.step == 1 else [ast.Constant(found.step)])]
    iterable = ast.Call(ast.Name("range", ast.Load()), words, [])
    mark = STEPPED_FIRST if found.first else COUNTER
    made = ast.For(ast.Name(name, ast.Store()), iterable, found.body, [], mark)
    return CountingLoop(start, ast.fix_missing_locations(ast.copy_location(made, loop)))


def _counts(loop: ast.While, name: str) -> bool:
    return _step(loop.body, name) is not None


def _step(body: list[ast.stmt], name: str) -> _Step | None:
    """The step of a counter at the end or at the beginning of a body."""
    if len(body) < 2:
        return None
    for first, statement, rest in ((False, body[-1], body[:-1]), (True, body[0], body[1:])):
        match statement:
            case ast.AugAssign(
                target=ast.Name(id=stepped), op=ast.Add() | ast.Sub() as sign, value=ast.Constant() as by
            ):
                pass
            case ast.Assign(
                targets=[ast.Name(id=stepped)],
                value=ast.BinOp(
                    left=ast.Name(id=own), op=ast.Add() | ast.Sub() as sign, right=ast.Constant() as by
                ),
            ) if own == stepped:
                pass
            case _:
                continue
        if stepped == name and type(by.value) is int and by.value > 0:
            return _Step(rest, by.value if isinstance(sign, ast.Add) else -by.value, first)
    return None


def _start(before: Sequence[ast.stmt], name: str) -> ast.Assign | None:
    """The assignment that a counter starts from, behind which only other names are assigned."""
    later: set[str] = set()
    calls = False  # which may change attributes and global variables
    for statement in reversed(before):
        match statement:
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                read = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
                return None if read & (later | {name}) or (calls and read) else statement
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if not any(
                isinstance(one, ast.NamedExpr) or (isinstance(one, ast.Name) and one.id == name)
                for one in ast.walk(value)
            ):
                later.add(found)
                calls = calls or any(isinstance(one, ast.Call) for one in ast.walk(value))
            case _:
                return None
    return None


def _bounds(
    start: ast.expr, sign: ast.cmpop, stop: ast.expr, found: _Step
) -> tuple[ast.expr, ast.expr] | None:
    """Start and stop of the range of values that the body sees."""
    up = found.step > 0
    one = ast.Constant(1 if up else -1)
    match sign:
        case ast.Lt() | ast.Gt() if isinstance(sign, ast.Lt) is up:
            pass
        case ast.LtE() | ast.GtE() if isinstance(sign, ast.LtE) is up:
            stop = minus(stop, ast.Constant(-1 if up else 1))
        case _:
            return None
    if found.first:
        if abs(found.step) != 1:
            return None
        start, stop = plus(start, one), plus(stop, one)
    return start, stop


def _is_fixed(node: ast.expr, changed: frozenset[str]) -> bool:
    """Whether a bound is the same in every iteration: names, attributes, shapes, lengths and arithmetic."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name not in changed
        case ast.UnaryOp(operand=operand):
            return _is_fixed(operand, changed)
        case ast.BinOp(left=left, right=right):
            return _is_fixed(left, changed) and _is_fixed(right, changed)
        case ast.Call(func=ast.Name(id="len" | "min" | "max"), args=arguments, keywords=[]):
            return all(_is_fixed(one, changed) for one in arguments)
        case ast.Subscript(value=ast.Attribute(value=owner, attr="shape"), slice=ast.Constant()):
            return _is_fixed(owner, changed)
        case _:
            return False
