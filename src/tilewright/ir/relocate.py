"""Statements of one program inside another: operands start at other addresses, scalars are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from tilewright.ir.expressions import Constant, Expression, Lead, Scalar, Unless
from tilewright.ir.nodes import Execution, Loop, Slice, Statement
from tilewright.records import dataclass


class Place(NamedTuple):
    """The start of an operand: its buffer, and the offset in elements."""

    buffer: str
    offset: Expression = Constant(0)


@dataclass(frozen=True)
class Relocation:
    """Replacements of operands, scalars and tasks.

    Before, with a at (in0, 64 · m) and beta = 0, inside of a task::

        parallel i = 0 .. 64 step 32:
          matmul c[...] = beta * c + a[i; 1, 32] . b[...]

    After::

        for i = 0 .. 64 step 32:
          matmul c[...] = 0.0 * c + in0[64 * m + i; 1, 32] . b[...]

    Attributes
    ----------
    places : of operands, by their buffer.
    factors : numbers for scalars.
    in_task : parallel loops become sequential, since a task has no tasks of its own.
    """

    places: Mapping[str, Place]
    factors: Mapping[str, float]
    in_task: bool

    def block(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """The statements, relocated; the same ones if nothing changes."""
        stays = all(place == Place(buffer) for buffer, place in self.places.items())
        if stays and not self.factors and not self.in_task:
            return body
        return tuple(map(self._node, body))

    def _node(self, node: Any) -> Any:
        match node:
            case Slice(buffer=buffer) if buffer in self.places:
                place, moved = self.places[buffer], self._fields(node)
                return replace(moved, buffer=place.buffer, offset=place.offset + moved.offset)
            case Lead(buffer=buffer) if buffer in self.places:
                place, moved = self.places[buffer], self._fields(node)
                return replace(moved, buffer=place.buffer, offset=place.offset + moved.offset)
            case Scalar(str() as name) if name in self.factors:
                return Scalar(self.factors[name])
            case Unless(scalar, value) if scalar in self.factors:
                return self._node(value) if self.factors[scalar] else Constant(0)
            case Loop(execution=Execution.PARALLEL) if self.in_task:
                return self._fields(replace(node, execution=Execution.SEQUENTIAL))
            case tuple():
                return tuple(map(self._node, node))
            case _ if is_dataclass(node) and not isinstance(node, type):
                return self._fields(node)
            case _:
                return node

    def _fields(self, node: Any) -> Any:
        """A node whose parts are relocated; the same node if none changes."""
        parts = {field.name: getattr(node, field.name) for field in fields(node) if field.init}
        moved = {name: self._node(part) for name, part in parts.items()}
        return replace(node, **moved) if any(moved[name] is not parts[name] for name in parts) else node
