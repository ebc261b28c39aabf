"""Values that no argument is: what the generator of wrong calls puts in the place of right ones."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import pathlib
from collections import UserList, deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

import tilewright as tw


class Touched(Exception):
    """A value was compared, hashed, printed or taken for true or false before it was known what it is."""


class Refused(Exception):
    """What a value itself raises when it is asked for a number, a length or an array: it may pass through."""


def _touched(*_: object) -> NoReturn:
    raise Touched


def _refused(*_: object, **__: object) -> NoReturn:
    raise Refused


#: What nothing may call on a value of a kind that is not known.
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__bool__")
#: What prints a value: error messages may try, and go on without.
_TEXTS = ("__repr__", "__str__", "__format__")
#: What converts a value.
_CONVERSIONS = (
    "__index__",
    "__int__",
    "__float__",
    "__complex__",
    "__array__",
    "__len__",
    "__iter__",
    "__getitem__",
)


def _hostile(*refused: str, **methods: Any) -> Callable[[], Any]:
    """A class whose objects cannot be compared or printed, and which refuse some conversions."""
    own: dict[str, Any] = dict.fromkeys((*_COMPARISONS, *_TEXTS), _touched)
    own |= dict.fromkeys(refused, _refused)
    return type("Hostile", (), own | methods)


class Answers:
    """Equal to everything, whatever it is."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("relu")


class Colour(enum.Enum):
    """An enumeration of somebody else's, one of whose values is a word that functions know."""

    RELU = "relu"
    ROW = "row"


class Subclass(np.ndarray[Any, Any]):
    """An array that cannot be compared."""

    __eq__ = _touched
    __hash__ = _touched  # type: ignore[assignment]


def _unhashable(base: type, value: Any) -> Any:
    """A number or text whose class cannot be compared or hashed."""
    return type("Touchy", (base,), dict.fromkeys((*_COMPARISONS, *_TEXTS), _touched))(value)


def _recursive() -> list[Any]:
    found: list[Any] = [1]
    found.append(found)
    return found


def _deep() -> list[Any]:
    found: list[Any] = []
    for _ in range(80):
        found = [found]
    return found


def _read_only() -> Any:
    found = np.ones((4, 5), np.float32)
    found.flags.writeable = False
    return found


def _objects() -> Any:
    found = np.empty((2, 2), object)
    found[:] = [[_hostile()(), None], [1, "x"]]
    return found


def _generator() -> Iterator[int]:
    yield 1
    yield 2


def _failing_generator() -> Iterator[int]:
    yield 1
    raise Refused


def _unaligned() -> Any:
    return np.zeros(81, np.uint8)[1:].view(np.float32).reshape(4, 5)


def _same(value: Any) -> Any:
    return value


def _masked() -> Any:
    mask: Any = np.eye(4, 5, dtype=bool)
    return np.ma.masked_array(np.ones((4, 5), np.float32), mask)


def _array(*shape: int, dtype: Any = np.float32) -> Callable[[], Any]:
    return lambda: np.ones(shape, dtype)


#: Each makes one value, new for every call.
HOSTILE: tuple[Callable[[], Any], ...] = (
    # numbers and words
    *(
        partial(_same, value)
        for value in (
            *(None, True, False, 0, 1, 2, -1, 3, 7, -7, 100, 2**31, 2**63, -(2**63), 2**64, 10**30, 10**5000),
            *(
                0.0,
                -0.0,
                0.5,
                1.0,
                2.5,
                float("nan"),
                float("inf"),
                -float("inf"),
                1e308,
                1j,
                complex(float("nan"), 1),
            ),
            *(
                "",
                "x",
                "relu",
                "row",
                "f32",
                "i8",
                "bhsd",
                "auto",
                "ij,jk->ik",
                "ij",
                "->",
                ",",
                "{0}",
                "{found}",
            ),
            *(
                "\0",
                "\ud800",
                "a" * 3000,
                "é",
                "float32,",
                "O",
                "M8[s]",
                "i4,f4",
                "V8",
                "...",
                "host",
                "x86_64:y",
                ":",
            ),
            *(b"", b"relu", b"f32", bytearray(b"x"), memoryview(b"abc"), Ellipsis, NotImplemented),
            *(
                int,
                float,
                bool,
                str,
                object,
                np.float32,
                np.ndarray,
                np.dtype,
                np.generic,
                type,
                ml_dtypes.bfloat16,
            ),
            *(len, print, np.add, tw, tw.matmul, tw.softmax, tw.Gemm, slice(None), range(0), range(3)),
            *(
                fractions.Fraction(1, 3),
                decimal.Decimal("0.1"),
                decimal.Decimal("NaN"),
                Colour.RELU,
                Colour.ROW,
            ),
            *(dt.date(2020, 1, 1), pathlib.PurePosixPath("/nowhere/at/all")),
            *(
                np.float32(1),
                np.float64(np.nan),
                np.int8(-1),
                np.uint64(2**63),
                np.bool_(True),
                np.complex64(1j),
            ),
            *(
                np.str_("relu"),
                np.bytes_(b"relu"),
                np.datetime64("2020"),
                np.timedelta64(1, "s"),
                np.longdouble(2),
            ),
            *(ml_dtypes.bfloat16(1), ml_dtypes.int4(1), np.void(b"ab"), np.float16("inf")),
            *(
                np.dtype("f4"),
                np.dtype("O"),
                np.dtype("M8[s]"),
                np.dtype([("a", "f4")]),
                np.dtype(">f4"),
                np.dtype("V0"),
            ),
        )
    ),
    # collections
    *(
        lambda: (),
        list,
        dict,
        set,
        lambda: {1, 2},
        lambda: {"a": 1},
        lambda: {0: 2, 1: 3},
        lambda: [1],
        lambda: [1, 2],
        lambda: (1, 2),
        lambda: (0, 0),
        lambda: (-1, -2),
        lambda: (2, 3, 4),
        lambda: [1.5, 2],
        lambda: [None, None],
        lambda: (None, 1),
        lambda: ["a", "b"],
        lambda: "ab",
        lambda: [[1], [2, 3]],
        lambda: [[1, 2], [3, 4]],
        lambda: ([0], [0]),
        lambda: [[0], {}],
        lambda: [np.ones(2), np.ones(3)],
        lambda: (np.ones(2), 1),
        lambda: [2**70, 1],
        lambda: [10**5000],
        lambda: (2**40, 2**40),
        lambda: (2**62, 2),
        lambda: frozenset({1}),
        lambda: deque([1, 2]),
        lambda: UserList([1, 2]),
        {1: 2}.keys,
        _recursive,
        _deep,
        _generator,
        _failing_generator,
        lambda: iter([1, 2]),
        lambda: map(int, "12"),
        lambda: (value for value in [[1.0]]),
        lambda: lambda *_: None,
        lambda: _refused,
    ),
    # arrays
    *(
        _array(*shape)
        for shape in (
            (),
            (0,),
            (1,),
            (4,),
            (5,),
            (4, 5),
            (5, 4),
            (5, 6),
            (4, 0),
            (0, 0),
            (2, 3, 4),
            (1, 1, 1, 1),
        )
    ),
    *(_array(*(1,) * ndim) for ndim in (6, 7, 8, 33, 64)),
    *(
        _array(4, 5, dtype=dtype)
        for dtype in (
            "f8",
            "f2",
            "i1",
            "u1",
            "i4",
            "u8",
            "?",
            "c8",
            "c16",
            ">f4",
            "g",
            "M8[s]",
            "m8[s]",
            "S3",
            "U2",
            "V4",
        )
    ),
    *(_array(4, dtype=dtype) for dtype in ("i4", "i8", "u8", "?", "O", "f8", ">i4")),
    *(_array(4, 5, dtype=dtype) for dtype in (ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.float8_e4m3fn)),
    *(
        lambda: np.zeros((4, 5), [("a", "f4"), ("b", "i4")]),
        lambda: np.ones((4, 5), object),
        _objects,
        _read_only,
        _unaligned,
        lambda: np.array(1),
        lambda: np.array(True),
        lambda: np.array("relu"),
        lambda: np.array(None),
        lambda: np.array({}),
        lambda: np.full((4, 5), np.nan, np.float32),
        lambda: np.array([0, 2**63 - 1, -2, 5]),
        lambda: np.broadcast_to(np.float32(1), (4, 5)),
        lambda: np.ones((8, 10), np.float32)[::-2, ::-2],
        lambda: np.ones(100, np.uint8)[:80].view("V4").reshape(4, 5),
        lambda: np.ones((5, 4)).T,
        _masked,
        lambda: np.ones((4, 5), np.float32).view(Subclass),
        lambda: np.ones((4, 5), np.float32).view(np.matrix),
        lambda: np.ones((4, 5), np.float32).view(np.recarray),
        lambda: np.char.array(["a", "b"]),
        lambda: tw.pack(np.ones((5, 6), np.float32)),
        lambda: tw.quantize_rows(np.ones((4, 5), np.float32)),
    ),
    # objects
    *(
        object,
        Answers,
        _hostile(),
        _hostile(*_CONVERSIONS),
        *((lambda name=name: _hostile(name)()) for name in _CONVERSIONS),
        _hostile(__index__=lambda _: 2),
        _hostile(__index__=lambda _: "2"),
        _hostile(__index__=lambda _: 2**70),
        _hostile(__float__=lambda _: 0.5),
        _hostile(__float__=lambda _: "x"),
        _hostile(__len__=lambda _: 2, __getitem__=lambda _, place: (1, 2)[place]),
        _hostile(__len__=lambda _: 2, __iter__=lambda _: iter((1, 2))),
        _hostile(__len__=lambda _: -1),
        _hostile(__array__=lambda *_, **__: np.ones((4, 5), np.float32)),
        _hostile(__array__=lambda *_, **__: [1, 2]),
        _hostile(__array_interface__={"shape": (2,), "typestr": "<f4", "data": (0, True), "version": 3}),
        _hostile(__array_interface__=7),
        _hostile(__fspath__=lambda _: 3),
        _hostile(dtype="f4", shape=(2, 2), ndim=2),
        _hostile(dtype=np.dtype("f4"), shape=3, ndim="2", strides=()),
        _hostile(__name__="matmul", __module__="tilewright"),
        _hostile(__name__=[], __module__="tilewright.ops.rows.public", __self__=1),
        lambda: _unhashable(str, "relu"),
        lambda: _unhashable(str, "nothing"),
        lambda: _unhashable(int, 2),
        lambda: _unhashable(int, -3),
        lambda: _unhashable(float, 1.0),
        lambda: _unhashable(tuple, (1, 2)),
        lambda: _unhashable(list, [1, 2]),
        _hostile,
        lambda: Exception("x"),
        lambda: tw.Gemm(2, 3, 4),
        lambda: tw.Attention(8),
        tw.Bias,
        tw.machine,
    ),
)
