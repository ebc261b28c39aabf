"""Where machine code finds things in the objects of Python and NumPy, checked on known objects.

The offsets follow from the size of an object's header and of a tuple, which differ between interpreters.
Before any machine code reads objects, each is compared with what Python says of objects made for that. Where
one differs, all calls go through Python.
"""

from __future__ import annotations

import ctypes
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from tilewright.calls.interpreter import FUNCTIONS, numpy_api
from tilewright.errors import CallsThroughPython
from tilewright.recorder import Numbered

#: Bytes of an object's header; cpython/object.h: 16 with a GIL, 32 in free-threaded builds.
HEADER = getattr(object, "__basicsize__", 16)
#: The last field of the header, ob_type. cpython/tupleobject.h and listobject.h, ob_size and ob_item; from
#: Python 3.14 on, tuples have their hash in between.
OBJECT_TYPE, TUPLE_SIZE, TUPLE_ITEM = HEADER - 8, HEADER, getattr(tuple, "__basicsize__", 24)
#: cpython/floatobject.h, PyFloatObject.ob_fval; complexobject.h, PyComplexObject.cval, and
#: numpy/arrayscalars.h, obval of scalars; cpython/listobject.h, PyListObject.ob_item; a class's first slot.
FLOAT_VALUE, SCALAR_VALUE, LIST_ITEMS, SERIAL_SLOT = HEADER, HEADER, HEADER + 8, HEADER
#: numpy/ndarraytypes.h, PyArrayObject_fields.
ARRAY_DATA, ARRAY_NDIM, ARRAY_SHAPE, ARRAY_STRIDES, ARRAY_DTYPE, ARRAY_FLAGS = (
    HEADER + offset for offset in (0, 8, 16, 24, 40, 48)
)
#: numpy/ndarraytypes.h, PyArray_Descr.elsize of NumPy 2.
DTYPE_SIZE = HEADER + 24
#: numpy/ndarraytypes.h, NPY_ARRAY_ALIGNED and NPY_ARRAY_WRITEABLE.
ALIGNED, WRITEABLE = 0x0100, 0x0400

#: Bits of an address; words of keys have other things above them.
ADDRESS_BITS = 48

#: NumPy's numbers that are all value, without padding.
NUMBERS = "?bBhHiIlLqQefdFD"

#: Part of the name of cached machine code that reads objects: what differs between interpreters.
LAYOUT = f"header {HEADER} tuple {TUPLE_ITEM}"

#: numpy/_core/code_generators/numpy_api.py: the index of PyArray_GetNDArrayCVersion, and what it returns.
_API_VERSION, _NUMPY_2 = 0, 0x02000000
#: Functions of the interpreter that machine code calls, or that make builtins of it.
_FUNCTIONS = (
    *(function.source for function in FUNCTIONS.values() if isinstance(function.source, str)),
    *("PyCapsule_GetPointer", "PyCMethod_New", "PyDescr_NewMethod"),
)

_OTHER_PYTHON = "use CPython 3.11 to 3.14 and NumPy 2"
_NO_GIL = "start Python with -X gil=1 or PYTHON_GIL=1, or use a build with the GIL"


def _word(value: object, offset: int, kind: Any = ctypes.c_int64) -> Any:
    return kind.from_address(id(value) + offset).value


def _words(address: int, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(address))


class _Serial(Numbered):
    """A numbered object with attributes, as kernels and packed operands are."""


def _comparisons() -> Iterator[tuple[str, object, object]]:
    """What is read, what machine code reads there, and what Python says.

    An address is followed only after the fields around it were found in their places.
    """
    array = np.zeros((3, 5), np.float32)[:, 1:3]
    pair, several, serial = (array, 1 << 70), [array, 1 << 70, array], _Serial()
    for value in (
        None,
        True,
        1.5,
        1 << 70,
        "text",
        array,
        array.dtype,
        np.float32(1.5),
        pair,
        several,
        serial,
    ):
        yield f"type of a {type(value).__name__}", _word(value, OBJECT_TYPE), id(type(value))
    yield "float", _word(1.5, FLOAT_VALUE, ctypes.c_double), 1.5
    for number in (1.5 - 2j, *(np.dtype(letter).type(1) for letter in NUMBERS)):
        held = np.asarray(number).tobytes()
        yield f"number of type {type(number)}", ctypes.string_at(id(number) + SCALAR_VALUE, len(held)), held
    yield "length of a tuple", _word(pair, TUPLE_SIZE), len(pair)
    yield "items of a tuple", _words(id(pair) + TUPLE_ITEM, len(pair)), list(map(id, pair))
    yield "length of a list", _word(several, TUPLE_SIZE), len(several)
    yield "size of a list", list.__basicsize__, LIST_ITEMS + 16
    yield "items of a list", _words(_word(several, LIST_ITEMS), len(several)), list(map(id, several))
    yield "first slot", _word(serial, SERIAL_SLOT), id(serial._serial)  # noqa: SLF001
    yield "data of an array", _word(array, ARRAY_DATA), array.__array_interface__["data"][0]
    yield "axes of an array", _word(array, ARRAY_NDIM, ctypes.c_int32), array.ndim
    yield "element type of an array", _word(array, ARRAY_DTYPE), id(array.dtype)
    yield "shape of an array", _words(_word(array, ARRAY_SHAPE), 2), list(array.shape)
    yield "strides of an array", _words(_word(array, ARRAY_STRIDES), 2), list(array.strides)
    yield "size of an element type", _word(array.dtype, DTYPE_SIZE), array.itemsize
    fixed, apart = np.zeros(3), np.zeros(25, np.int8)[1:].view(np.float64)
    fixed.flags.writeable = False
    for one, flags in ((array, ALIGNED | WRITEABLE), (fixed, ALIGNED), (apart, WRITEABLE)):
        found = _word(one, ARRAY_FLAGS, ctypes.c_int32) & (ALIGNED | WRITEABLE)
        yield "flags of an array", found, flags
    yield "bits of an address", max(map(id, (None, array, array.dtype))) >> ADDRESS_BITS, 0
    version = ctypes.PYFUNCTYPE(ctypes.c_uint)(numpy_api(_API_VERSION))
    yield "version of NumPy's C functions", version(), _NUMPY_2


@cache
def _other_layout() -> str | None:
    """The first thing that is not where machine code would read it; None where everything is."""
    if sys.implementation.name != "cpython":
        return f"the interpreter is {sys.implementation.name}, not CPython"
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return "addresses do not have 64 bits"
    for name in _FUNCTIONS:
        if not hasattr(ctypes.pythonapi, name):
            return f"the interpreter does not have the function {name}"
    for what, found, expected in _comparisons():
        if found != expected:
            return f"objects have another layout: {what}"
    return None


def layout_known() -> bool:
    """Whether objects are laid out as this module says; then their fields may be read."""
    return _other_layout() is None


@cache
def why_not_native() -> str | None:
    """Why machine code does not serve calls in this process, in words; None where it does.

    Without the GIL, another thread could free a recipe, a list's items or a block of scratch while machine
    code uses it. A GIL that is there now stays until the process ends.
    """
    other = _other_layout()
    if other is None and not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "this Python runs without the GIL"
    return other


def native_entry_possible() -> bool:
    """Whether machine code may read the arguments of calls."""
    return why_not_native() is None


_said: list[None] = []


def warn_of_python(levels: int) -> None:
    """Warns, once in a process, that calls go through Python, of the line so many calls up."""
    reason = why_not_native()
    if reason is not None and not _said:
        _said.append(None)
        remedy = _OTHER_PYTHON if _other_layout() else _NO_GIL
        message = CallsThroughPython.message.format(reason=reason, remedy=remedy)
        warnings.warn(message, CallsThroughPython, stacklevel=levels + 1)
