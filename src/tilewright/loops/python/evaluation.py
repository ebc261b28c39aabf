"""The values that a nest reads: expressions of its source, evaluated before the loops would run."""

from __future__ import annotations

import ast
import builtins
import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilewright.cached import cached_property
from tilewright.errors import TilewrightError
from tilewright.loops.nests.nest import Extent
from tilewright.loops.nests.polynomial import Polynomial, Symbol
from tilewright.loops.python.attributes import AttributePath, attribute_paths, check_attributes
from tilewright.loops.python.elements import BUILTINS, PythonNest
from tilewright.loops.python.views import AsWritten
from tilewright.threads.pool import limited

logger = logging.getLogger("tilewright.loops")


class PreparedValues(NamedTuple):
    """The values of one call.

    Attributes
    ----------
    arrays, scalars : by array expression and symbol.
    integers : in the order of the nest's record.
    loops : trip counts.
    last : values of the loop variables behind the nest.
    groups : integers that a kind of call asks for.
    """

    arrays: dict[str, Any]
    scalars: dict[Symbol, Any]
    integers: tuple[int, ...]
    loops: tuple[int, ...]
    last: tuple[int, ...]
    groups: tuple[tuple[Any, ...], tuple[Any, ...]]


class NestValues:
    """The call that replaces a nest: ``call(names...)`` returns the values that the nest assigns, or None.

    Attributes
    ----------
    names : local and global variables whose values are its arguments.
    results : variables whose values it returns: loop variables, then an accumulator.
    last_reason : why the loops ran as written, the last time they did.
    runs : calls that computed what the nest does.
    threads : of a call, at most; None for the default.
    """

    def __init__(self, nest: PythonNest) -> None:
        self.nest = nest
        self.last_reason = ""
        self.runs = 0
        self.threads: int | None = None
        expressions = [*map(parsed, nest.arrays), *nest.integers.values(), *nest.scalars.values()]
        found = {n.id for e in expressions for n in ast.walk(e) if isinstance(n, ast.Name)}
        self.names = tuple(sorted(found | nest.builtins | nest.modules | nest.roots))
        self.results = tuple(dict.fromkeys(v.name for v in nest.variables if v.name.isidentifier()))

    def limit_threads(self, threads: int | None) -> None:
        """Sets the threads of a call, at most."""
        self.threads = threads

    @property
    def subscripts(self) -> str:
        """What is computed in the notation of `einsum`."""
        raise NotImplementedError

    def groups(self, symbols: dict[Symbol, str]) -> tuple[list[str], list[str]]:
        """Two tuples of integers that a kind of call asks for, as Python expressions."""
        raise NotImplementedError

    def run(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """As a call, but raises before anything changes if the loops must run as written."""
        raise NotImplementedError

    @cached_property
    def evaluate(self) -> Callable[..., tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]]:
        """Function from the values of the names to arrays, integers and scalars, in the order of the nest's
        records.
        """
        groups = (map(parsed, self.nest.arrays), self.nest.integers.values(), self.nest.scalars.values())
        return values_of(self.names, [list(group) for group in groups])

    @cached_property
    def sizes(self) -> Callable[..., tuple[Any, ...]]:
        """Function from integers to trip counts, final values, `groups`, differences and places in ranges."""
        symbols = {symbol: f"_{number}" for number, symbol in enumerate(self.nest.integers)}
        last: dict[str, Polynomial] = {}
        text = []
        indices: dict[Symbol, str] = {}
        for number, variable in enumerate(self.nest.variables):
            text.append(f"c{number} = {extent_text(variable.extent, {**symbols, **indices})}")
            indices[variable.index] = f"(c{number} - 1)"
            if variable.name.isidentifier():
                last[variable.name] = variable.final
        known = {**symbols, **indices}
        groups = (
            [f"c{number}" for number in range(len(text))],
            [polynomial_text(value, known) for value in last.values()],
            *self.groups(symbols),
            [polynomial_text(difference, symbols) for difference in self.nest.differences],
            [polynomial_text(least, symbols) for least in self.nest.not_negative],
        )
        result = ", ".join(f"({''.join(f'{item}, ' for item in group)})" for group in groups)
        lines = [f"def sizes({', '.join(symbols.values())}):", *text, f"return {result}"]
        namespace: dict[str, Any] = {"min": min, "max": max}
        exec(compile("\n    ".join(lines), "<sizes of loops>", "exec"), namespace)  # noqa: S102 (our own text)
        made: Callable[..., tuple[Any, ...]] = namespace["sizes"]
        return made

    def __call__(self, *values: Any) -> tuple[Any, ...] | None:
        """Compute what the nest does; None if nothing has changed and the loops must run as written."""
        try:
            with limited(self.threads):
                found = self.run(values)
            self.runs += 1
            return found
        except AsWritten as reason:
            self.last_reason = str(reason)
        except (
            TilewrightError,
            ArithmeticError,
            TypeError,
            ValueError,
            LookupError,
            AttributeError,
        ) as error:
            self.last_reason = f"{type(error).__name__}: {error}"
        where = self.nest.loop.where
        logger.debug(
            "the loop in %s, line %s, runs as written: %s", where.function, where.line, self.last_reason
        )
        return None

    def prepared(self, values: tuple[Any, ...]) -> PreparedValues:
        """The values of a call; raises `AsWritten` where they are not what the records are about."""
        named = dict(zip(self.names, values, strict=True))
        for name in self.nest.builtins:
            if named[name] is not getattr(builtins, name):
                raise AsWritten(f"{name} is not the built-in function")
        for name in self.nest.modules:
            if named[name] is not np:
                raise AsWritten(f"{name} is not NumPy")
        for name in self.nest.roots:
            if named[name] is not np and named[name] is not math:
                raise AsWritten(f"{name} is neither NumPy nor math")
        if any(mode not in ("ignore", "warn") for mode in np.geterr().values()):
            raise AsWritten("NumPy is to raise errors of floating-point arithmetic")
        check_attributes(self._attributes, named)
        arrays, integers, scalars = self.evaluate(*values)
        for symbol, integer in zip(self.nest.integers, integers, strict=True):
            if type(integer) is not int and (type(integer) is not np.intp or symbol in self.nest.counters):
                raise AsWritten(f"{symbol} is {type(integer).__name__}, not an int")
        whole = tuple(map(int, integers))
        loops, last, first, second, differences, cuts = self.sizes(*whole)
        if any(differences):
            raise AsWritten("slices differ in length, or arrays in their number of axes")
        if min(cuts, default=0) < 0:
            raise AsWritten("a condition is met outside of the range of its loop")
        if min(loops) < 1:
            raise AsWritten("a loop has no iterations")
        by_name = dict(zip(self.nest.arrays, arrays, strict=True))
        factors = dict(zip(self.nest.scalars, scalars, strict=True))
        return PreparedValues(by_name, factors, whole, loops, last, (first, second))

    def check_numbers(self, dtype: np.dtype[Any], scalars: Sequence[Any]) -> None:
        """Check that factors may be applied to sums: they are finite, and integers where elements are."""
        if dtype.kind in "iu":
            self._check_integers(dtype, scalars)
            return
        largest = float(np.finfo(dtype).max)
        for number in (*self.nest.numbers, *scalars):
            if not abs(number) <= largest:
                raise AsWritten(f"{number} is infinite in {dtype}, or not a number")

    def _check_integers(self, dtype: np.dtype[Any], scalars: Sequence[Any]) -> None:
        """Check that loops over integers of a type would neither compute in another type nor raise errors."""
        if self.nest.has_floats:
            raise AsWritten(f"{dtype} would be computed in floats")
        if self.nest.widens and dtype.itemsize < np.dtype(np.intp).itemsize:
            raise AsWritten(f"sums of {dtype} are computed in larger integers")
        limits = np.iinfo(dtype)
        for number in (*self.nest.numbers, *scalars):
            if not limits.min <= number <= limits.max:
                raise AsWritten(f"{number} is no {dtype}")

    @cached_property
    def _attributes(self) -> tuple[AttributePath, ...]:
        """Attributes that the nest reads."""
        arrays = map(parsed, self.nest.arrays)
        return attribute_paths([*arrays, *self.nest.integers.values(), *self.nest.scalars.values()])


def parsed(text: str) -> ast.expr:
    """The expression that a text is."""
    return ast.parse(text, mode="eval").body


def values_of(names: Sequence[str], groups: Sequence[list[ast.expr]]) -> Callable[..., Any]:
    """A function of the given names that returns the values of expressions, in tuples."""
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    values: list[ast.expr] = [ast.Tuple(group, ast.Load()) for group in groups]
    body = ast.Expression(ast.Lambda(arguments, ast.Tuple(values, ast.Load())))
    allowed = {name: getattr(builtins, name) for name in BUILTINS - set(names)}
    code = compile(ast.fix_missing_locations(body), "<names of loops>", "eval")
    made: Callable[..., Any] = eval(code, {"__builtins__": allowed})  # noqa: S307 (expressions of the nest)
    return made


def polynomial_text(polynomial: Polynomial, names: dict[Symbol, str] | dict[Symbol, Any]) -> str:
    """A polynomial as a Python expression."""
    products = (
        "*".join([str(coefficient), *(names[symbol] for symbol in monomial)])
        for monomial, coefficient in polynomial.terms
    )
    return f"({' + '.join(products) or '0'})"


def extent_text(extent: Extent, names: dict[Symbol, str]) -> str:
    """A trip count as a Python expression."""
    bounds = [f"-(-{polynomial_text(bound.span, names)} // {bound.step})" for bound in extent.bounds]
    return bounds[0] if len(bounds) == 1 else f"min({', '.join(bounds)})"
