"""Types of arguments that keys of calls know, and what they have of each."""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Iterable
from enum import IntEnum
from typing import Any

import numpy as np

from tilewright.calls.exchange import Library, exporter_of
from tilewright.calls.layout import NUMBERS, SERIAL_SLOT
from tilewright.calls.torch_functions import torch_types
from tilewright.recorder import Grouped, Numbered

#: Types that a call may have arguments of, besides arrays and Python's own.
MOST_KINDS = 64


class KeyKind(IntEnum):
    """What a key has of an argument; in the word beside its value."""

    IDENTITY = 1  # the object itself: None, True, a type, a dtype, a member of an enumeration
    FLOAT = 2
    INTEGER = 3
    TEXT = 4
    TUPLE = 5
    LIST = 6
    NUMBER = 7  # of NumPy, or a complex number, of up to 16 bytes
    SERIAL = 8  # the number of an object, see `Numbered`, by its identity
    ARRAY = 9
    TENSOR = 10  # of PyTorch
    EXPORTED = 11  # its class; what is made of it by a call of a function follows, see `KnownKinds.learn`
    GROUP = 12  # its class; what its slots hold follows, see `Grouped`


class KindRow(ctypes.Structure):
    """A type of arguments: how many bytes of a number it has, or the function that makes an array of it."""

    _fields_ = (("type", ctypes.c_void_p), ("kind", ctypes.c_int64), ("size", ctypes.c_int64))


class Kinds(ctypes.Structure):
    """The types that keys know; a row is complete before it is counted."""

    _fields_ = (("count", ctypes.c_int64), ("rows", KindRow * MOST_KINDS))


def serial_readable(value: Numbered) -> bool:
    """Whether the number of an object is where machine code reads it."""
    held = ctypes.c_void_p.from_address(id(value) + SERIAL_SLOT).value
    return held == id(value._serial)  # noqa: SLF001  (the slot is there for this module)


def group_readable(value: Grouped) -> bool:
    """Whether the parts of an object are where machine code reads them."""
    parts = value.parts()
    held = (ctypes.c_void_p * len(parts)).from_address(id(value) + SERIAL_SLOT)
    return list(held) == list(map(id, parts))


#: Types that need no row.
_PLAIN = frozenset((np.ndarray, float, bool, int, str, type(None)))


class KnownKinds:
    """The table of `Kinds` of this process."""

    def __init__(self) -> None:
        self.table = Kinds()
        self._types: list[type] = []
        for scalar in (np.float64, np.float32, np.int64, np.int32):
            self._add(scalar, KeyKind.NUMBER, np.dtype(scalar).itemsize)
        self._add(complex, KeyKind.NUMBER, np.dtype(complex).itemsize)
        self._add(type(...), KeyKind.IDENTITY)

    def _add(self, kind: type, row: KeyKind, size: int = 0) -> None:
        count = self.table.count
        if count < MOST_KINDS and kind not in self._types:
            self._types.append(kind)
            self.table.rows[count] = KindRow(id(kind), row, size)
            self.table.count = count + 1

    def learn(self, values: Iterable[Any]) -> list[Any]:
        """Adds the types of arguments that keys can identify; returns the objects that must stay alive.

        Parameters
        ----------
        values : no tuples and lists, but what is in them.
        """
        kept: list[Any] = []
        for value in values:
            kind = type(value)
            if kind in _PLAIN:
                continue
            if isinstance(value, Numbered):
                if serial_readable(value):
                    self._add(kind, KeyKind.SERIAL)
                    kept.append(value._serial)  # noqa: SLF001  (its address is in the key)
            elif isinstance(value, Grouped):
                if group_readable(value):
                    self._add(kind, KeyKind.GROUP, len(value.parts()))
            elif isinstance(value, (np.bool_, np.number)) and value.dtype.char in NUMBERS:
                self._add(kind, KeyKind.NUMBER, value.dtype.itemsize)
            elif isinstance(value, (np.dtype, type, enum.Enum)):
                self._add(kind, KeyKind.IDENTITY)
                kept.append(value)
            elif kind not in self._types:
                self._learn_exporter(kind, value)
        return kept

    def _learn_exporter(self, kind: type, value: Any) -> None:
        exporter = exporter_of(value)
        if exporter is None or not exporter.known:
            return
        if exporter.library is Library.NONE:
            self._add(kind, KeyKind.IDENTITY)
        elif exporter.library is not Library.TORCH:
            self._add(kind, KeyKind.EXPORTED, id(exporter.view))
        elif torch_types.connect():
            self._add(kind, KeyKind.TENSOR)
