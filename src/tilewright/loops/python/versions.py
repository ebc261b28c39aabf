"""A nest with conditions that are the same for all of its iterations: one call for each outcome."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.cached import cached_property
from tilewright.loops.python.attributes import attribute_paths, check_attributes
from tilewright.loops.python.elements import PythonNest
from tilewright.loops.python.evaluation import NestValues, values_of
from tilewright.loops.python.views import AsWritten

#: Types whose comparisons and truth have no side effects.
PLAIN_TYPES = (bool, int, float, complex, str, bytes, type(None))


class ChosenCall:
    """The call that replaces a nest with conditions; attributes as those of `NestValues`.

    Parameters
    ----------
    tests : the conditions, as text.
    calls : the call for each tuple of outcomes that has one; all return values of the same variables.
    """

    def __init__(self, tests: Sequence[str], calls: Mapping[tuple[bool, ...], NestValues]) -> None:
        self.calls = dict(calls)
        self.first = next(iter(self.calls.values()))
        self._tests = [ast.parse(test, mode="eval").body for test in tests]
        found = {one.id for test in self._tests for one in ast.walk(test) if isinstance(one, ast.Name)}
        self.names = tuple(sorted(found.union(*(call.names for call in self.calls.values()))))
        self.results = self.first.results
        self._reason = ""

    def limit_threads(self, threads: int | None) -> None:
        """Sets the threads of the calls of every version, at most."""
        for call in self.calls.values():
            call.limit_threads(threads)

    @property
    def nest(self) -> PythonNest:
        """The nest of one outcome."""
        return self.first.nest

    @property
    def subscripts(self) -> str:
        """The products in the notation of `einsum`."""
        return " or ".join(dict.fromkeys(call.subscripts for call in self.calls.values()))

    @property
    def last_reason(self) -> str:
        """Why the loops ran as written, the last time they did."""
        return self._reason or next(
            (call.last_reason for call in self.calls.values() if call.last_reason), ""
        )

    @property
    def runs(self) -> int:
        """Calls that computed a product."""
        return sum(call.runs for call in self.calls.values())

    def __call__(self, *values: Any) -> tuple[Any, ...] | None:
        """As a call of the version for the outcomes of the conditions."""
        named = dict(zip(self.names, values, strict=True))
        self._reason = ""
        try:
            check_attributes(attribute_paths(self._tests), named)
            call = self.calls.get(self._outcomes(values))
        except (AsWritten, ArithmeticError, TypeError, ValueError, LookupError, AttributeError) as error:
            self._reason = f"a condition cannot be decided before the loops: {error}"
            return None
        if call is None:
            self._reason = "the nest is no product where its conditions have this outcome"
            return None
        return call(*(named[name] for name in call.names))

    def _outcomes(self, values: tuple[Any, ...]) -> tuple[bool, ...]:
        operands, found = self._evaluate(*values)
        for operand in operands:
            if type(operand) not in PLAIN_TYPES and not isinstance(operand, np.generic):
                raise AsWritten(f"it depends on the value of a {type(operand).__name__}")
        return tuple(map(bool, found))

    @cached_property
    def _evaluate(self) -> Callable[..., tuple[tuple[Any, ...], tuple[Any, ...]]]:
        operands = [one for test in self._tests for one in _operands(test)]
        checked = values_of(self.names, [operands])
        outcomes = values_of(self.names, [self._tests])

        def evaluate(*values: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
            return checked(*values)[0], outcomes(*values)[0]

        return evaluate


def outcomes_of(count: int) -> Iterator[tuple[bool, ...]]:
    """Every tuple of outcomes of some conditions."""
    return itertools.product((True, False), repeat=count)


def _operands(test: ast.expr) -> Iterator[ast.expr]:
    """What a condition is about: values, and not what is only compared by identity (``bias is None``)."""
    match test:
        case ast.Compare(ops=signs) if all(isinstance(sign, ast.Is | ast.IsNot) for sign in signs):
            pass
        case ast.Compare(left=left, comparators=others):
            yield from (left, *others)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _operands(value)
        case ast.UnaryOp(operand=value):
            yield from _operands(value)
        case _:
            yield test
