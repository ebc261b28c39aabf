"""Programs that one thread runs by itself: no tasks, and so no team."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

from tilewright.ir.expressions import Binary, Constant, Operator, Threads, fold
from tilewright.ir.nodes import Execution, Loop, Program


def alone(program: Program) -> Program:
    """The program with parallel loops in sequence; what depended on the number of threads is for one.

    Before: ``parallel j = 0 .. n step roundup(ceildiv(n, max((threads - 1) * 8, 1)), 32)``. After:
    ``for j = 0 .. n step roundup(n, 32)``.
    """
    return replace(program, body=_node(program.body))


def _node(node: Any) -> Any:
    match node:
        case Threads():
            return Constant(1)
        case Binary(operator, left, right):
            one = _node(left)
            if operator is Operator.CEILDIV and one == Constant(1):  # by a positive number, as all are
                return one
            return fold(operator, one, _node(right))
        case Loop(execution=Execution.PARALLEL):
            return _fields(replace(node, execution=Execution.SEQUENTIAL))
        case tuple():
            return tuple(map(_node, node))
        case _ if is_dataclass(node) and not isinstance(node, type):
            return _fields(node)
        case _:
            return node


def _fields(node: Any) -> Any:
    """A node whose parts are those of a program for one thread."""
    return replace(node, **{part.name: _node(getattr(node, part.name)) for part in fields(node) if part.init})
