"""Validation of arguments: one function per kind of argument, called before anything else uses the value.

None of these functions compares, hashes or prints a value, or asks whether it is true, before it knows what
the value is: an array has no single truth, and an object may refuse. Where a value is asked for a number, for
its elements or for an array, what its own methods raise passes through, except `TypeError` (of arrays and
floats `ValueError` too), by which Python and NumPy say that it has none.
"""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from enum import Enum
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import (
    InvalidChoice,
    InvalidFileName,
    InvalidFlag,
    InvalidOperand,
    InvalidScalar,
    InvalidSequence,
    InvalidSize,
    InvalidText,
    InvalidThreads,
    OutNotArray,
    shown,
)
from tilewright.recorder import current

Array: TypeAlias = NDArray[Any]
_Choice = TypeVar("_Choice", bound=Enum)

#: NumPy's own limit on the axes of an array.
MOST_AXES = 64
#: Items that are read of a sequence: more than a call has axes, sizes or operands.
MOST_ITEMS = 1 << 16
#: Sizes and strides are signed 64-bit everywhere.
MAX_SIZE = 2**63 - 1

#: Largest side of a tile: beyond it tiles are matrices, which `Gemm` takes.
MAX_TILE = 4096


def contents_read(value: object) -> None:
    """Tells a recording that what the call does depends on the contents of an array."""
    recorder = current.recorder
    if recorder is not None and isinstance(value, np.ndarray):
        recorder.refuse("numbers read from an array")


def unchecked(text: str | None) -> Any:
    """A word from a command line or a file, for a record that checks it, whose types name the valid ones."""
    return text


# --- integers -----------------------------------------------------------------------------------


def as_integer(value: object) -> int | None:
    """The integer that a value is; None for anything else, truth values included.

    >>> as_integer(np.int8(3)), as_integer(2.0), as_integer(True)
    (3, None, None)
    """
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, int):
        return int.__index__(value)  # whatever the methods of its class say
    contents_read(value)
    try:
        return int.__index__(operator.index(value))  # type: ignore[arg-type]
    except TypeError:
        return None


def check_integer(value: object, name: str, least: int, most: int, required: str | None = None) -> int:
    """An integer of a range.

    Raises
    ------
    InvalidSize

    >>> check_integer(np.int64(3), "m", 1, 4)
    3
    """
    found = as_integer(value)
    if found is None or not least <= found <= most:
        words = f"an integer from {least} to {most}" if required is None else required
        raise InvalidSize(name=name, found=shown(value), required=words)
    return found


def check_size(value: object, name: str) -> int | None:
    """A size of a problem: None, or an integer in [0, 2**63).

    Raises
    ------
    InvalidSize
    """
    if value is None:
        return None
    return check_integer(value, name, 0, MAX_SIZE, "None or an integer from 0 to 2**63 - 1")


def check_stride(value: object, name: str) -> int:
    """Elements from one index to the next, of either sign.

    Raises
    ------
    InvalidSize
    """
    return check_integer(value, name, -MAX_SIZE, MAX_SIZE, "an integer of 64 bits")


def as_integers(value: object) -> tuple[int, ...] | None:
    """One integer or a sequence of them; None for anything else.

    >>> as_integers(-1), as_integers([0, np.int8(1)]), as_integers("01")
    ((-1,), (0, 1), None)
    """
    single = as_integer(value)
    if single is not None:
        return (single,)
    found = as_items(value)
    if found is None:
        return None
    numbers = [number for number in map(as_integer, found) if number is not None]
    return tuple(numbers) if len(numbers) == len(found) else None


def as_sizes(value: object) -> tuple[int, ...] | None:
    """A sequence of sizes; None for anything else.

    >>> as_sizes([2, 3]), as_sizes((2, -3)), as_sizes(2)
    ((2, 3), None, None)
    """
    items = as_items(value)
    found = None if items is None else as_integers(items)
    return None if found is None or any(not 0 <= size <= MAX_SIZE for size in found) else found


def check_sizes(
    value: object, name: str, required: str = "a sequence of integers from 0 on"
) -> tuple[int, ...]:
    """A sequence of sizes.

    Raises
    ------
    InvalidSequence

    >>> check_sizes([2, 3], "sizes")
    (2, 3)
    """
    found = as_sizes(value)
    if found is None:
        raise InvalidSequence(name=name, found=shown(value), required=required)
    return found


def check_thread_count(name: str, value: object, most: int) -> int:
    """A number of threads.

    Raises
    ------
    InvalidThreads
    """
    found = as_integer(value)
    if found is None or not 1 <= found <= most:
        raise InvalidThreads(name=name, found=shown(value), most=most)
    return found


# --- sequences ----------------------------------------------------------------------------------


def as_items(value: object) -> tuple[Any, ...] | None:
    """The items of a sequence; None for anything else, including text, mappings and sets.

    >>> as_items(range(3)), as_items({1, 2}), as_items("ab")
    ((0, 1, 2), None, None)
    """
    if type(value) is tuple:
        return value
    if isinstance(value, (str, bytes, bytearray, memoryview, type, Mapping, Set)):
        return None
    if isinstance(value, np.ndarray):
        contents_read(value)
        return tuple(np.asarray(value).tolist()) if value.ndim == 1 and value.size <= MOST_ITEMS else None
    items: Iterable[Any]
    if isinstance(value, list):
        items = list.__iter__(value)
    elif isinstance(value, tuple):
        items = tuple.__iter__(value)
    else:
        try:
            items = iter(value)  # type: ignore[call-overload]
        except TypeError:
            return None
    found = tuple(islice(items, MOST_ITEMS + 1))
    return found if len(found) <= MOST_ITEMS else None


def check_items(value: object, name: str, required: str) -> tuple[Any, ...]:
    """The items of a sequence.

    Raises
    ------
    InvalidSequence
    """
    found = as_items(value)
    if found is None:
        raise InvalidSequence(name=name, found=shown(value), required=required)
    return found


# --- scalars and flags --------------------------------------------------------------------------


def as_number(value: object) -> complex | None:
    """A scalar as a Python number; None for anything else, including text.

    >>> as_number(np.float32(0.5)), as_number(np.array(2)), as_number("1")
    (0.5, 2, None)
    """
    kind = type(value)
    if kind is float or kind is int or kind is complex:
        return value  # type: ignore[return-value]
    if isinstance(value, np.ndarray):
        if value.ndim or value.dtype.hasobject:
            return None
        contents_read(value)
        value = np.asarray(value)[()]
    if isinstance(value, (bool, np.bool_)):
        return 1 if value else 0
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, complex):
        return complex.__complex__(value)
    if isinstance(
        value, (str, bytes, bytearray, memoryview, type, np.flexible, np.datetime64, np.timedelta64)
    ):
        return None
    if isinstance(value, np.complexfloating):
        return complex(value)
    integer = as_integer(value)
    if integer is not None:
        return integer
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def check_number(value: object, name: str) -> complex:
    """A real or complex scalar.

    Raises
    ------
    InvalidScalar
    """
    found = as_number(value)
    if found is None:
        raise InvalidScalar(name=name, found=shown(value), required="a number")
    return found


def real_number(value: object, name: str, required: str = "a real number") -> float:
    """A real scalar.

    Raises
    ------
    InvalidScalar

    >>> real_number(np.float32(0.5), "alpha")
    0.5
    """
    found = as_number(value)
    if found is not None and not isinstance(found, complex):
        try:
            return float(found)
        except OverflowError:
            pass
    raise InvalidScalar(name=name, found=shown(value), required=required)


def as_flag(value: object) -> bool | None:
    """The truth that a value is: True or False, or 1 or 0; None for anything else.

    >>> as_flag(np.bool_(True)), as_flag(0), as_flag(2), as_flag("yes")
    (True, False, None, None)
    """
    if value is True or value is False:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind == "b":
        contents_read(value)
        value = np.asarray(value)[()]
    if isinstance(value, np.bool_):
        return bool(value)
    found = as_integer(value)
    return found == 1 if found in (0, 1) else None


def check_flag(value: object, name: str) -> bool:
    """True or False.

    Raises
    ------
    InvalidFlag
    """
    found = as_flag(value)
    if found is None:
        raise InvalidFlag(name=name, found=shown(value))
    return found


# --- words and text -----------------------------------------------------------------------------


def as_text(value: object) -> str | None:
    """The text that a value is, of no other class; None for anything else.

    >>> as_text(np.str_("relu"))
    'relu'
    """
    if type(value) is str:
        return value
    return str.__str__(value) if isinstance(value, str) else None


def check_text(value: object, name: str) -> str:
    """Text.

    Raises
    ------
    InvalidText
    """
    found = as_text(value)
    if found is None:
        raise InvalidText(name=name, found=shown(value))
    return found


def check_word(value: object, name: str, allowed: Iterable[str]) -> str:
    """One of some words.

    Raises
    ------
    InvalidChoice

    >>> check_word("left", "side", ("left", "right"))
    'left'
    """
    found, words = as_text(value), tuple(allowed)
    if found not in words:
        raise InvalidChoice(name=name, found=shown(value), allowed=", ".join(words))
    return found


@lru_cache(maxsize=512)
def _member_of(kind: type[Enum], value: str) -> Enum | None:
    """The member of an enumeration with a value."""
    return next((member for member in kind if member.value == value), None)


def parse_choice(
    kind: type[_Choice], value: object, name: str, allowed: Sequence[_Choice] | None = None
) -> _Choice:
    """The member of an enumeration given by member or by value; `InvalidChoice` names the allowed ones.

    >>> from tilewright.spec.problem import Layout
    >>> parse_choice(Layout, "col", "a")
    <Layout.COL: 'col'>
    """
    if allowed is None and type(value) is str:
        member = _member_of(kind, value)
        if member is not None:
            return member  # type: ignore[return-value]
    members = tuple(kind) if allowed is None else allowed
    found = value
    if type(value) is not kind:
        with contextlib.suppress(ValueError):
            found = kind(as_text(value))
    for member in members:
        if found is member:
            return member
    words = ", ".join(str(member.value) for member in members)
    given = shown(found.value if isinstance(found, kind) else value)
    raise InvalidChoice(name=name, found=given, allowed=words)


def check_path(value: object, name: str = "path") -> str:
    """The name of a file.

    Raises
    ------
    InvalidFileName

    >>> check_path(b"weights.tw")
    'weights.tw'
    """
    text = as_text(value)
    try:
        found = os.fsdecode(value if text is None else text)  # type: ignore[arg-type]
        os.fsencode(found)
    except (TypeError, ValueError):
        found = "\0"
    if "\0" in found or not found:
        raise InvalidFileName(name=name, found=shown(value))
    return found


# --- arrays and their types ---------------------------------------------------------------------


def as_dtype(value: object) -> np.dtype[Any] | None:
    """The NumPy type that a value names; None for what names none.

    >>> as_dtype(">f4"), as_dtype("nothing")
    (dtype('>f4'), None)
    """
    if isinstance(value, np.dtype):
        return value
    try:
        return np.dtype(value)  # type: ignore[call-overload,no-any-return]
    except Exception:  # whatever the spelling made NumPy, or the value's own attributes, raise
        return None


def array_of(value: object, name: str) -> Array:
    """An operand as an array, of any type and shape.

    Raises
    ------
    InvalidOperand

    >>> array_of([1, 2], "a")
    array([1, 2])
    """
    if type(value) is np.ndarray:
        return value
    if isinstance(value, str):
        value = as_text(value)  # which NumPy would ask for its text
    try:
        return np.asarray(value)
    except (TypeError, ValueError, OverflowError, RecursionError, BufferError) as error:
        raise InvalidOperand(name=name, reason=f"not a rectangular array of numbers: {error}") from error


def check_numbers(value: object, name: str, kinds: str = "biuf") -> Array:
    """An operand as an array of real numbers, or of one of NumPy's kinds of them.

    Raises
    ------
    InvalidOperand
    """
    array = array_of(value, name)
    kind = array.dtype.kind
    # bfloat16 and its like are of kind "V", as records are.
    extended = kind == "V" and "f" in kinds and not issubclass(array.dtype.type, np.void)
    if kind not in kinds and not extended:
        words = "integers" if "f" not in kinds else "real numbers"
        raise InvalidOperand(name=name, reason=f"its dtype is {array.dtype}, not one of {words}")
    return array


def out_array(out: object) -> Array:
    """`out` itself if it is an array.

    Raises
    ------
    OutNotArray
    """
    if not isinstance(out, np.ndarray):
        raise OutNotArray(found=type(out).__name__)
    return out
