"""One function for each kind of argument: what it takes, what it refuses, that it touches nothing else."""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hostile_values import HOSTILE, Refused
from shares import looped

import tilewright as tw
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
    KernelNotCalled,
    OutNotArray,
    TilewrightError,
    shown,
)
from tilewright.spec import arguments
from tilewright.spec.dtype import F32, I32
from tilewright.spec.factors import factor
from tilewright.spec.problem import Layout

#: Each function as it looks at a value alone.
CHECKS: dict[str, Callable[[Any], Any]] = {
    "as_integer": arguments.as_integer,
    "as_integers": arguments.as_integers,
    "as_sizes": arguments.as_sizes,
    "as_items": arguments.as_items,
    "as_number": arguments.as_number,
    "as_flag": arguments.as_flag,
    "as_text": arguments.as_text,
    "as_dtype": arguments.as_dtype,
    "check_integer": lambda value: arguments.check_integer(value, "m", 0, 9),
    "check_size": lambda value: arguments.check_size(value, "m"),
    "check_sizes": lambda value: arguments.check_sizes(value, "sizes"),
    "check_stride": lambda value: arguments.check_stride(value, "out"),
    "check_thread_count": lambda value: arguments.check_thread_count("threads", value, 99),
    "check_items": lambda value: arguments.check_items(value, "steps", "a sequence"),
    "check_number": lambda value: arguments.check_number(value, "alpha"),
    "real_number": lambda value: arguments.real_number(value, "alpha"),
    "factor": lambda value: factor(value, "alpha", F32),
    "integer factor": lambda value: factor(value, "alpha", I32),
    "check_flag": lambda value: arguments.check_flag(value, "lower"),
    "check_text": lambda value: arguments.check_text(value, "tree"),
    "check_word": lambda value: arguments.check_word(value, "side", ("left", "right")),
    "parse_choice": lambda value: arguments.parse_choice(Layout, value, "a"),
    "check_path": arguments.check_path,
    "array_of": lambda value: arguments.array_of(value, "a"),
    "check_numbers": lambda value: arguments.check_numbers(value, "scales"),
    "out_array": arguments.out_array,
    "shown": shown,
}


@looped("check", CHECKS.values())
def test_nothing_is_touched(check: Callable[[Any], Any]) -> None:
    """Every hostile value is taken or refused by a class of this package, and nothing of it is compared."""
    refused = 0
    for make in HOSTILE:
        try:
            check(make())
        except (TilewrightError, Refused):
            refused += 1
    assert refused or check in (shown, arguments.as_text, arguments.as_dtype)


class Word(enum.Enum):
    ROW = "row"


class Number(int):
    """An integer that says that it is another one."""

    def __index__(self) -> int:
        return 99

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


TAKEN: list[tuple[str, Any, Any]] = [
    ("as_integer", np.uint8(3), 3),
    ("as_integer", np.array(3), 3),
    ("as_integer", Number(3), 3),
    ("as_integer", True, None),
    ("as_integer", np.bool_(True), None),
    ("as_integer", 3.0, None),
    ("as_integer", np.array([3]), None),
    ("as_integers", np.array([0, 1]), (0, 1)),
    ("as_integers", range(2), (0, 1)),
    ("as_integers", [0, None], None),
    ("as_integers", {0, 1}, None),
    ("as_sizes", [0, 2**63], None),
    ("as_number", Fraction(1, 2), 0.5),
    ("as_number", Decimal("0.5"), 0.5),
    ("as_number", ml_dtypes.bfloat16(0.5), 0.5),
    ("as_number", np.array(0.5, np.float16), 0.5),
    ("as_number", np.complex64(1j), 1j),
    ("as_number", np.bool_(True), 1),
    ("as_number", "1", None),
    ("as_number", np.str_("1"), None),
    ("as_number", np.array([1.0]), None),
    ("as_number", np.timedelta64(1, "s"), None),
    ("as_number", np.array({}), None),
    ("as_flag", np.array(True), True),
    ("as_flag", 1, True),
    ("as_flag", "", None),
    ("as_flag", [], None),
    ("as_text", np.str_("relu"), "relu"),
    ("as_text", b"relu", None),
    ("parse_choice", Layout.COL, Layout.COL),
    ("parse_choice", np.str_("col"), Layout.COL),
    ("check_path", Path("a") / "b", os.path.join("a", "b")),  # noqa: PTH118 - as text
    ("check_word", "left", "left"),
]


@looped(("name", "value", "found"), TAKEN)
def test_what_a_value_is(name: str, value: Any, found: Any) -> None:
    result = CHECKS[name](value)
    assert result is found if found is None else (type(result), result) == (type(found), found)


REFUSED: list[tuple[str, Any, type[TilewrightError], type[Exception], str]] = [
    ("check_integer", 10, InvalidSize, ValueError, "m is 10, must be an integer from 0 to 9"),
    ("check_size", -1, InvalidSize, ValueError, "m is -1, must be None or an integer"),
    ("check_sizes", "12", InvalidSequence, TypeError, "sizes is '12', must be a sequence of integers"),
    ("check_items", 3, InvalidSequence, TypeError, "steps is 3, must be a sequence"),
    ("check_thread_count", 0, InvalidThreads, ValueError, "threads is 0, must be an integer from 1 to 99"),
    ("real_number", 1j, InvalidScalar, TypeError, "alpha is 1j, must be a real number"),
    ("real_number", 10**400, InvalidScalar, TypeError, "must be a real number"),
    ("integer factor", 0.5, InvalidScalar, TypeError, "alpha is 0.5, must be an integer"),
    ("check_number", np.ones((2, 3)), InvalidScalar, TypeError, "an array of shape (2, 3) and dtype float64"),
    ("check_flag", np.ones(2), InvalidFlag, TypeError, "lower is an array of shape (2,)"),
    ("check_flag", 2, InvalidFlag, TypeError, "lower is 2, must be True or False"),
    ("check_text", b"x", InvalidText, TypeError, "tree is b'x', must be text"),
    ("check_word", ["left"], InvalidChoice, ValueError, "side is ['left'], must be one of: left, right"),
    ("parse_choice", Word.ROW, InvalidChoice, ValueError, "must be one of: row, col"),
    ("check_path", "a\0b", InvalidFileName, ValueError, "path is 'a\\x00b', must be the name of a file"),
    ("check_path", 3, InvalidFileName, TypeError, "path is 3"),
    ("array_of", [[1], [2, 3]], InvalidOperand, ValueError, "a is invalid: not a rectangular array"),
    ("check_numbers", ["x"], InvalidOperand, ValueError, "its dtype is <U1, not one of real numbers"),
    ("out_array", [1], OutNotArray, TypeError, "out is list"),
]


@looped(("name", "value", "kind", "builtin", "words"), REFUSED)
def test_what_is_refused(
    name: str, value: Any, kind: type[TilewrightError], builtin: type[Exception], words: str
) -> None:
    """By the class of its cause, which is also the one that NumPy's users catch, in words."""
    with pytest.raises(kind) as raised:
        CHECKS[name](value)
    assert isinstance(raised.value, builtin)
    assert words in str(raised.value)


def test_values_in_messages_are_short() -> None:
    assert shown("x" * 1000).count("x") <= 100
    assert shown(list(range(1000))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...]"
    assert shown([np.ones((3, 4), np.int8)]) == "[an array of shape (3, 4) and dtype int8]"
    assert shown(10**5000) == "2**16609 or more"


def test_an_error_of_a_value_that_cannot_be_printed() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError

        __str__ = __repr__

    error = InvalidSize(name="m", found=Silent(), required="an integer")
    assert "a value of type Silent" in str(error)
    assert error.found == "a value of type Silent"


def test_what_a_value_raises_itself_passes_through() -> None:
    """As with NumPy: a bug in somebody's ``__index__`` is not hidden behind an error of this package."""

    class Broken:
        def __index__(self) -> int:
            raise Refused

        def __array__(self, *_: object, **__: object) -> Any:
            raise Refused

    with pytest.raises(Refused):
        arguments.as_integer(Broken())
    with pytest.raises(Refused):
        tw.softmax(Broken())


@pytest.mark.parametrize(
    "problem",
    [
        tw.RowFunction("softmax"),
        tw.Elementwise("gelu"),
        tw.BinaryFunction("add"),
        tw.Rotary(),
        tw.Embedding(),
    ],
    ids=str,
)
def test_kernels_without_a_call(problem: Any) -> None:
    with pytest.raises(KernelNotCalled, match="takes pointers and strides"):
        tw.compile(problem)(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32))
