"""Operands of the standard's functions: which arrays they are, their common type, and results like them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.calls.exchange import exchanging
from tilewright.calls.operands import Array
from tilewright.calls.promotion import kind_of, promoted_dtype
from tilewright.errors import MixedKinds, NotNumeric, NotStandardArray, SeveralLibraries, shown
from tilewright.ops.gemm.operands import find_dtype

#: Kinds of numbers that promote to one of them, in NumPy's letters.
_TOGETHER = ("ui", "fc")


def compute(function: Callable[..., Any], operands: Sequence[Any], names: Sequence[str]) -> Any:
    """The result of a function of NumPy's arrays on arrays of one library, as an array of that library.

    Raises
    ------
    NotStandardArray, SeveralLibraries, TensorNotReadable
    """
    for name, operand in zip(names, operands, strict=True):
        if not is_array(operand):
            raise NotStandardArray(name=name, found=shown(operand))
    libraries = {_library(operand) for operand in operands}
    if len(libraries) > 1:
        raise SeveralLibraries(libraries=" and ".join(sorted(libraries)))
    found = exchanging(function)(*operands)
    if isinstance(found, np.ndarray) and not isinstance(operands[0], (np.ndarray, np.generic)):
        return like(found, operands[0])
    return found


def is_array(value: Any) -> bool:
    """Whether an object is an array for the standard: NumPy's scalars are, as arrays without axes."""
    return isinstance(value, (np.ndarray, np.generic)) or any(
        hasattr(type(value), name) for name in ("__array_namespace__", "__dlpack__")
    )


def _library(value: Any) -> str:
    """The name of the library of an array."""
    return (
        "numpy" if isinstance(value, (np.ndarray, np.generic)) else type(value).__module__.partition(".")[0]
    )


def like(array: Array, operand: Any) -> Any:
    """An array of the operand's library with the same elements; NumPy's where the library does not say how.

    Its memory is shared where the library can do that.
    """
    if not hasattr(type(operand), "__array_namespace__"):
        return array
    namespace = operand.__array_namespace__()
    try:
        return namespace.from_dlpack(array)
    except (AttributeError, BufferError, TypeError, ValueError, RuntimeError):
        return namespace.asarray(array)


def common_type(a: Array, b: Array) -> np.dtype[Any]:
    """The type of the product of two arrays by the standard's rules.

    Raises
    ------
    NotNumeric : for bool and what is no number.
    MixedKinds : for types that the standard does not promote.
    UnsupportedDtype : for numbers that have no kernel.

    >>> common_type(np.ones(1, "i1"), np.ones(1, "u1"))
    dtype('int16')
    """
    for name, array in (("x1", a), ("x2", b)):
        if kind_of(array.dtype) not in "uifc":
            raise NotNumeric(name=name, found=array.dtype)
    kinds = {kind_of(array.dtype) for array in (a, b)}
    together = a.dtype == b.dtype or any(kinds <= set(kind) for kind in _TOGETHER)
    found = promoted_dtype(a.dtype, b.dtype) if together else None
    if found is None or (kinds <= set("ui") and kind_of(found) not in "ui"):
        raise MixedKinds(a=a.dtype, b=b.dtype)
    find_dtype(found)
    return found


def whole(array: Any) -> Array:
    """A result as an array: the standard has no scalars."""
    return np.asarray(array)
