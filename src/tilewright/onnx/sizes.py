"""Arrays of sizes: what models compute of shapes, evaluated while a model is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.graph.sizes import quotient, size_of
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.records import dataclass


class Undecided(Exception):
    """A result is no polynomial in the sizes, or depends on what they are."""


@dataclass(frozen=True)
class SizeArray:
    """An integer array some of whose elements are known when a graph runs.

    Attributes
    ----------
    elements : object array of polynomials.
    dtype : the element type that the model gives it.
    """

    elements: Array
    dtype: np.dtype[Any]

    @property
    def known(self) -> Array | None:
        """The array if no element depends on sizes."""
        numbers = [size.constant for size in self.elements.flat]
        if any(number is None for number in numbers):
            return None
        return np.array(numbers, self.dtype).reshape(self.elements.shape)


def size_elements(values: Any) -> Array:
    """Integers or polynomials as an object array of polynomials."""
    given = np.asarray(values, object)
    found = np.empty(given.shape, object)
    for at, value in np.ndenumerate(given):
        found[at] = value if isinstance(value, Polynomial) else size_of(int(value))
    return found


def is_negative(size: Polynomial) -> bool | None:
    """Whether a polynomial is below 0 for all sizes, for none, or None where that depends on them.

    Sizes are 0 or more, so coefficients of one sign decide.

    >>> n = size_of("n")
    >>> is_negative(n * 2 + 1), is_negative(n * -1 - 1), is_negative(n - 1)
    (False, True, None)
    """
    signs = [coefficient > 0 for _, coefficient in size.terms]
    if all(signs):
        return False
    constant = next((coefficient for monomial, coefficient in size.terms if not monomial), 0)
    return True if not any(signs) and constant < 0 else None


def _divided(a: Polynomial, b: Polynomial) -> Polynomial:
    if a.constant is not None and b.constant:
        whole = abs(a.constant) // abs(b.constant)
        return size_of(whole if (a.constant < 0) == (b.constant < 0) else -whole)
    found = quotient(a, b) if b else None
    if found is None:
        raise Undecided
    return found


def _remainder(a: Polynomial, b: Polynomial) -> Polynomial:
    if a.constant is not None and b.constant:
        return size_of(a.constant % b.constant)
    return a - _divided(a, b) * b


def _is_less(a: Polynomial, b: Polynomial) -> bool:
    found = is_negative(a - b)
    if found is None:
        raise Undecided
    return found


def _is_equal(a: Polynomial, b: Polynomial) -> bool:
    if a == b:
        return True
    if not any(is_negative(difference - 1) is False for difference in (a - b, b - a)):
        raise Undecided
    return False


#: Functions of two sizes, by operator.
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": _divided,
    "Mod": _remainder,
    "Max": lambda a, b: b if _is_less(a, b) else a,
    "Min": lambda a, b: a if _is_less(a, b) else b,
}
#: Comparisons of two sizes.
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "Equal": _is_equal,
    "Less": _is_less,
    "Greater": lambda a, b: _is_less(b, a),
    "LessOrEqual": lambda a, b: not _is_less(b, a),
    "GreaterOrEqual": lambda a, b: not _is_less(a, b),
}


def combined(operator: str, operands: Sequence[Array]) -> Array:
    """A function of sizes, element by element.

    Raises
    ------
    Undecided
    """
    if operator == "Sum":
        operator = "Add"
    function = _BINARY[operator]
    found = operands[0]
    for other in operands[1:]:
        left, right = np.broadcast_arrays(found, other)
        result = np.empty(left.shape, object)
        for at in np.ndindex(left.shape):
            result[at] = function(left[at], right[at])
        found = result
    return found


def compared(operator: str, a: Array, b: Array) -> Array:
    """A comparison of sizes that all sizes decide alike.

    Raises
    ------
    Undecided
    """
    left, right = np.broadcast_arrays(a, b)
    found = np.empty(left.shape, bool)
    for at in np.ndindex(left.shape):
        found[at] = _COMPARISONS[operator](left[at], right[at])
    return found


def is_comparison(operator: str) -> bool:
    """Return whether an operator compares."""
    return operator in _COMPARISONS


def is_combination(operator: str) -> bool:
    """Return whether an operator combines sizes element by element."""
    return operator in _BINARY or operator == "Sum"


def absolute(elements: Array) -> Array:
    """|x|, where the sign is known.

    Raises
    ------
    Undecided
    """
    found = np.empty(elements.shape, object)
    for at, size in np.ndenumerate(elements):
        negative = is_negative(size)
        if negative is None:
            raise Undecided
        found[at] = -size if negative else size
    return found
