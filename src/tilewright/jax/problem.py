"""Problems: calls of public functions on arrays of known types and shapes, as text in programs of JAX.

JAX stores compiled programs on disk, attributes included, and runs them in other processes. So the text says
what to compute, and nothing of this process: no address, no number of an object. Each process prepares the
problem for itself (`program.py`).
"""

from __future__ import annotations

import ctypes
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import ml_dtypes  # noqa: F401 - the names of its types are known to NumPy from here on
import numpy as np

import tilewright as tw
from tilewright.calls.operands import Array
from tilewright.errors import JaxProblemUnreadable
from tilewright.records import dataclass

#: Changes with the meaning of the text.
FORMAT = 1

#: A public function with its options on operands, which writes the results into arrays or returns new ones.
Call: TypeAlias = Callable[..., Any]
_Options: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class ArrayType:
    """Element type, by its name in NumPy, and shape of a row-major array."""

    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, value: Any) -> ArrayType:
        """The type of an array, or of what JAX has for one while it traces."""
        return cls(np.dtype(value.dtype).name, tuple(value.shape))

    def empty(self) -> Array:
        """A new array, of which nothing is in memory before it is written to."""
        return np.empty(self.shape, self.dtype)

    def at(self, address: int) -> Array:
        """The array at an address."""
        dtype = np.dtype(self.dtype)
        count = int(np.prod(self.shape, dtype=np.int64))
        memory = (ctypes.c_byte * (count * dtype.itemsize)).from_address(address)
        return np.frombuffer(memoryview(memory), dtype).reshape(self.shape)


@dataclass(frozen=True)
class Problem:
    """A call of a public function.

    Attributes
    ----------
    function : a name in `CALLS`.
    operands, results : the types of arrays.
    options : what else the function is given, as JSON has it.
    """

    function: str
    operands: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def text(self) -> str:
        """The problem as JSON.

        >>> Problem("einsum", (ArrayType("float32", (3,)),), (ArrayType("float32", ()),)).text
        '[1, "einsum", [["float32", [3]]], [["float32", []]], {}]'
        """
        types = ([[one.dtype, one.shape] for one in side] for side in (self.operands, self.results))
        return json.dumps([FORMAT, self.function, *types, dict(self.options)])

    @property
    def key(self) -> tuple[int, int]:
        """Two words that no other problem has: half of the text's SHA-256, as signed integers."""
        digest = hashlib.sha256(self.text.encode()).digest()
        return int.from_bytes(digest[:8], "little", signed=True), int.from_bytes(
            digest[8:16], "little", signed=True
        )

    @classmethod
    def parse(cls, text: str) -> Problem:
        """The problem of a text.

        Raises
        ------
        JaxProblemUnreadable

        >>> problem = Problem("einsum", (ArrayType("float32", (3,)),), (ArrayType("float32", ()),))
        >>> Problem.parse(problem.text) == problem
        True
        """
        try:
            number, function, *sides, options = json.loads(text)
            operands, results = (
                tuple(ArrayType(dtype, tuple(shape)) for dtype, shape in side) for side in sides
            )
        except (ValueError, TypeError) as error:
            raise JaxProblemUnreadable(found=text, version=tw.__version__) from error
        if number != FORMAT or function not in CALLS:
            raise JaxProblemUnreadable(found=text, version=tw.__version__)
        return cls(function, operands, results, tuple((name, _tuples(one)) for name, one in options.items()))

    def call(self, functions: Mapping[str, Call], operands: Sequence[Array], results: Sequence[Array]) -> Any:
        """Makes the call, by functions of `tilewright` or by what stands for them.

        Returns
        -------
        tuple : an array for each result, of which those in `results` may be some.
        """
        return CALLS[self.function](functions, operands, results, dict(self.options))


def _tuples(value: Any) -> Any:
    """A value of JSON with tuples for lists, so that it can be hashed."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _einsum(
    functions: Mapping[str, Call],
    operands: Sequence[Array],
    results: Sequence[Array],
    options: _Options,
) -> tuple[Array, ...]:
    (out,) = results
    found = functions["einsum"](options["subscripts"], *operands, out=out, dtype=out.dtype, casting="unsafe")
    return (found,)


def _attention(
    functions: Mapping[str, Call],
    operands: Sequence[Array],
    results: Sequence[Array],
    options: _Options,
) -> tuple[Array, ...]:
    q, k, v, *mask = operands
    found: tuple[Array, ...] = functions["attention"](
        q, k, v, mask=mask[0] if mask else None, out=results[0], return_lse=True, **options
    )
    return found


def _attention_backward(
    functions: Mapping[str, Call], operands: Sequence[Array], _: Sequence[Array], options: _Options
) -> tuple[Array, ...]:
    *others, mask = operands if len(operands) == 7 else (*operands, None)
    found: tuple[Array, ...] = functions["attention_backward"](*others, mask=mask, **options)
    return found


#: Functions that problems call.
CALLS = {"einsum": _einsum, "attention": _attention, "attention_backward": _attention_backward}
