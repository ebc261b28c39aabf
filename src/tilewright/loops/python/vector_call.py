"""Execution of a nest of several statements as operations on whole arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.cached import cached_property
from tilewright.calls.operands import overlaps_itself
from tilewright.loops.nests.effects import Refused
from tilewright.loops.nests.nest import FunctionCall, Quotient, Select, SquareRoot, Value
from tilewright.loops.nests.pointwise import parts_of
from tilewright.loops.nests.polynomial import Index, Symbol
from tilewright.loops.python.elements import PythonNest
from tilewright.loops.python.evaluation import NestValues, polynomial_text
from tilewright.loops.python.vector_code import PlanCode
from tilewright.loops.python.vector_plan import PlanStep, planned
from tilewright.loops.python.vector_reach import reach_lines
from tilewright.loops.python.vector_statements import statements_of
from tilewright.loops.python.views import AsWritten
from tilewright.ops.einsum.public import einsum

Array: TypeAlias = NDArray[Any]

#: Iterations below which the loops themselves are faster: checks and copies take as long as this many.
FEWEST_ITERATIONS = 1000
#: Work that `numpy.shares_memory` may do to prove that arrays do not overlap.
OVERLAP_WORK: Any = 10_000
#: Values that are computed in floats whatever their operands are.
_OF_FLOATS = (Quotient, SquareRoot)
#: Functions that keep the type of integers.
_OF_INTEGERS = frozenset({"maximum", "minimum", "abs"})


class VectorCall(NestValues):
    """The call that replaces a nest of several statements, of which at least one is a product."""

    def __init__(self, nest: PythonNest) -> None:
        super().__init__(nest)
        self.statements = statements_of(nest)
        self.steps = planned(self.statements, nest.loop.where)
        self._written = {one.target.array for one in self.statements}
        self.lines = self._code(self.steps)
        self.plan, self.reach  # noqa: B018 (compile, so that what cannot be is refused here)

    @cached_property
    def subscripts(self) -> str:
        """The products in the notation of `einsum`, separated by semicolons."""
        found = []
        letters: dict[Index, str] = {}
        free = iter("ijklmnpqrstuvwxyzabcdefgho" * 8)
        for statement in self.statements:
            for term in statement.terms:
                if len(term.elements) < 2:
                    continue
                parts = [
                    "".join(
                        letters.setdefault(index, index.name if len(index.name) == 1 else next(free))
                        for subscript in element.subscripts
                        for index in sorted(subscript.indices)
                    )
                    for element in (*term.elements, statement.target)
                ]
                found.append(f"{','.join(parts[:-1])}->{parts[-1]}")
        return "; ".join(dict.fromkeys(found))

    @property
    def text(self) -> str:
        """The statements, for a report."""
        lines = ", ".join(str(one.line) for one in self.statements)
        several = "statements" if len(self.statements) > 1 else "statement"
        return f"{len(self.statements)} {several} on whole arrays, of line {lines}"

    def groups(self, symbols: dict[Symbol, str]) -> tuple[list[str], list[str]]:
        """Trip counts of loops with steps."""
        counts = [
            f"max(0, -(-{polynomial_text(span, symbols)} // {step}))"
            for span, step in self.nest.counts.values()
        ]
        return counts, []

    def run(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """As a call; what has changed is undone if the loops must run as written."""
        found = self.prepared(values)
        integers = (*found.integers, *found.groups[0])
        dtype = self._check_types(found.arrays, [*found.scalars.values()])
        largest = self._check_memory(found.arrays, integers)
        if max(math.prod(found.loops), largest) < FEWEST_ITERATIONS:
            raise AsWritten("few iterations are faster as written")
        arrays = [found.arrays[name] for name in self.nest.arrays]
        kept = [(found.arrays[name], found.arrays[name].copy()) for name in sorted(self._written)]
        try:
            with np.errstate(all="ignore"):
                self.plan(*arrays, *integers, *found.scalars.values(), *_functions(dtype))
        except Exception as error:
            for array, copy in kept:
                array[...] = copy
            if isinstance(error, AsWritten):
                raise
            raise AsWritten(f"{type(error).__name__}: {error}") from error
        return tuple(found.last)

    # Code

    @property
    def _symbols(self) -> dict[Symbol, str]:
        every = [*self.nest.integers, *self.nest.counts]
        return {symbol: f"s{number}" for number, symbol in enumerate(every)}

    def _code(self, steps: Sequence[PlanStep]) -> list[str]:
        arrays = {name: f"a{number}" for number, name in enumerate(self.nest.arrays)}
        scalars = {symbol: f"f{number}" for number, symbol in enumerate(self.nest.scalars)}
        code = PlanCode(arrays, self._symbols, scalars)
        code.write(steps)
        names = [*arrays.values(), *self._symbols.values(), *scalars.values()]
        functions = ("contract", "total", "strided", "apart", "stepped", "root", "choice", "quotient")
        return [f"def plan({', '.join([*names, *functions])}):", *code.lines]

    @cached_property
    def plan(self) -> Callable[..., None]:
        """The code of the steps."""
        return _compiled("plan", self.lines)

    @cached_property
    def reach(self) -> Callable[..., None]:
        """Function that tells how far subscripts of each array reach."""
        symbols = self._symbols
        lines = [f"def reach({', '.join(['note', *symbols.values()])}):", "    pass"]
        for statement in self.statements:
            for element, loops in ((statement.target, statement.loops), *statement.reads):
                lines += reach_lines(element, loops, symbols)
        return _compiled("reach", lines)

    # Checks

    def _check_types(self, arrays: dict[str, Any], scalars: list[Any]) -> np.dtype[Any]:
        """The one dtype of all arrays, in which the loops would compute."""
        for name, axes in self.nest.arrays.items():
            array = arrays[name]
            if type(array) is not np.ndarray:
                raise AsWritten(f"{name} is {type(array).__name__}, not a numpy.ndarray")
            if array.ndim != axes:
                raise AsWritten(f"{name} has {array.ndim} axes and {axes} subscripts")
        dtypes = {array.dtype for array in arrays.values()}
        if len(dtypes) > 1:
            raise AsWritten(f"arrays have several dtypes: {', '.join(sorted(map(str, dtypes)))}")
        dtype: np.dtype[Any] = dtypes.pop()
        if dtype.kind not in "iufc" or not dtype.isnative:
            raise AsWritten(f"arrays of {dtype} are not supported")
        for scalar in (*scalars, *self.nest.numbers):
            if type(scalar) not in (int, float, complex) and not isinstance(scalar, np.number):
                raise AsWritten(f"a factor is {type(scalar).__name__}, not a number")
            together: np.dtype[Any] = np.result_type(np.empty(0, dtype), scalar)
            if together != dtype:
                raise AsWritten(f"{type(scalar).__name__} and {dtype} are not computed in {dtype}")
        self.check_numbers(dtype, scalars)
        self._check_functions(dtype)
        return np.dtype(dtype)

    def _check_functions(self, dtype: np.dtype[Any]) -> None:
        for one in (one for statement in self.statements for one in _values(statement.value)):
            plain = isinstance(one, FunctionCall) and one.function in _OF_INTEGERS
            if dtype.kind in "iu" and (isinstance(one, (*_OF_FLOATS, FunctionCall)) and not plain):
                raise AsWritten(f"{dtype} would be computed in floats")
            if dtype.kind == "c" and isinstance(one, Select | SquareRoot | FunctionCall):
                raise AsWritten("complex numbers are compared, or have other functions")

    def _check_memory(self, arrays: dict[str, Any], integers: tuple[int, ...]) -> int:
        """Check subscripts, and that what is written shares no memory with anything else.

        Returns the largest number of elements that the nest may access in one array.
        """
        low: dict[str, list[int]] = {}
        high: dict[str, list[int]] = {}

        def note(name: str, *subscripts: int) -> None:
            known = low.get(name)
            if known is None:
                low[name], high[name] = list(subscripts), list(subscripts)
                return
            low[name] = list(map(min, known, subscripts))
            high[name] = list(map(max, high[name], subscripts))

        self.reach(note, *integers)
        parts = {}
        for name, lowest in low.items():
            array, highest = arrays[name], high[name]
            if min(lowest, default=0) < 0 or any(h >= n for h, n in zip(highest, array.shape, strict=True)):
                raise AsWritten(f"subscripts of {name} reach from {lowest} to {highest}, of {array.shape}")
            places = tuple(slice(one, other + 1) for one, other in zip(lowest, highest, strict=True))
            parts[name] = array[places]
        for name in self._written & parts.keys():
            if not parts[name].flags.writeable or overlaps_itself(parts[name]):
                raise AsWritten(f"{name} is read-only, or elements of it share memory")
            for other, part in parts.items():
                if other != name and _share(parts[name], part):
                    raise AsWritten(f"{other} shares memory with {name}")
        return max((part.size for part in parts.values()), default=0)


def vector_call(nest: PythonNest) -> VectorCall | str:
    """The call for a nest of several statements, or why there is none."""
    try:
        return VectorCall(nest)
    except Refused as refused:
        return refused.refusal.reason


def _values(value: Value | None) -> Iterator[Value]:
    if value is not None:
        yield value
        for part in parts_of(value):
            yield from _values(part)


def _share(one: Array, other: Array) -> bool:
    if not np.may_share_memory(one, other):
        return False
    try:
        return bool(np.shares_memory(one, other, max_work=OVERLAP_WORK))
    except np.exceptions.TooHardError:
        return True


def _compiled(name: str, lines: list[str]) -> Callable[..., None]:
    namespace: dict[str, Any] = {"np": np, "min": min, "max": max, "range": range}
    exec(compile("\n".join(lines), f"<{name} of loops>", "exec"), namespace)  # noqa: S102 (our own text)
    made: Callable[..., None] = namespace[name]
    return made


# Functions that plans call


def _functions(dtype: np.dtype[Any]) -> tuple[Callable[..., Any], ...]:
    wide = np.dtype(np.float32) if dtype == np.float16 else dtype

    def total(array: Array, axes: tuple[int, ...]) -> Any:
        found = np.add.reduce(array, axis=axes, dtype=wide)
        return found if wide == dtype else found.astype(dtype)

    return _contract, total, _strided, _apart, _stepped, _root, _choice, _quotient


def _contract(subscripts: str, *operands: Array) -> Any:
    found = einsum(subscripts, *operands)
    return found[()] if found.ndim == 0 else found


def _strided(
    array: Array, starts: tuple[int, ...], steps: tuple[tuple[int, ...], ...], counts: tuple[int, ...]
) -> Array:
    """Elements of which each dimension moves several axes, or axes that several dimensions move."""
    begin = array[tuple(slice(start, start + 1) for start in starts)]
    strides = [sum(step * stride for step, stride in zip(own, array.strides, strict=True)) for own in steps]
    return np.lib.stride_tricks.as_strided(begin, counts, strides, writeable=array.flags.writeable)


def _apart(array: Array, steps: tuple[tuple[int, ...], ...], counts: tuple[int, ...]) -> None:
    """Check that iterations write different elements: loops in another order would give another result."""
    every = tuple(max(count, 0) for count in counts)
    if overlaps_itself(_strided(array, (0,) * array.ndim, steps, every)):
        raise AsWritten("iterations write the same elements")


def _stepped(start: int, count: int, step: int) -> slice:
    end = start + step * (count - 1) + (1 if step > 0 else -1)
    return slice(start, end if end >= 0 else None, step)


def _root(value: Any) -> Any:
    if np.any(value < 0):
        raise AsWritten("takes the square root of a negative number")
    return np.sqrt(value)


def _quotient(left: Any, right: Any) -> Any:
    if np.any(right == 0):
        raise AsWritten("divides by zero, which may be an error")  # of numbers of Python
    return left / right


def _choice(test: Any, then: Any, otherwise: Any) -> Any:
    if np.ndim(test) == 0:
        return then if test else otherwise
    return np.where(test, then, otherwise)
