"""C functions of the interpreter and of NumPy that machine code calls, and objects that it knows."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.llvm.builtin import address_of
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Type


class CFunction(NamedTuple):
    """A C function.

    Attributes
    ----------
    result, arguments : their types.
    source : its name in the interpreter, or its index in NumPy's table
        (numpy/_core/code_generators/numpy_api.py).
    """

    result: Type
    arguments: tuple[Type, ...]
    source: str | int


_ONE, _TWO, _THREE = ((POINTER,) * count for count in (1, 2, 3))
_DESCRIBED = (POINTER, POINTER, INT32, POINTER, POINTER, POINTER, INT32, POINTER)

#: The functions by their names in machine code, after "tw_".
FUNCTIONS: dict[str, CFunction] = {
    "vectorcall": CFunction(POINTER, (POINTER, POINTER, INT64, POINTER), "PyObject_Vectorcall"),
    "bind": CFunction(POINTER, _TWO, "PyMethod_New"),
    "incref": CFunction(VOID, _ONE, "Py_IncRef"),
    "decref": CFunction(VOID, _ONE, "Py_DecRef"),
    "allocate": CFunction(POINTER, (INT64,), "PyMem_RawMalloc"),
    "free": CFunction(VOID, _ONE, "PyMem_RawFree"),
    "save_thread": CFunction(POINTER, (), "PyEval_SaveThread"),
    "restore_thread": CFunction(VOID, _ONE, "PyEval_RestoreThread"),
    "restore_error": CFunction(VOID, _THREE, "PyErr_Restore"),
    "clear_error": CFunction(VOID, (), "PyErr_Clear"),
    "no_memory": CFunction(POINTER, (), "PyErr_NoMemory"),
    "as_integer": CFunction(INT64, _TWO, "PyLong_AsLongLongAndOverflow"),
    "as_text": CFunction(POINTER, _TWO, "PyUnicode_AsUTF8AndSize"),
    "new_object": CFunction(POINTER, (POINTER, INT64), "PyType_GenericAlloc"),
    "new_tuple": CFunction(POINTER, (INT64,), "PyTuple_New"),
    "set_context": CFunction(POINTER, _TWO, "PyContextVar_Set"),
    "reset_context": CFunction(INT32, _TWO, "PyContextVar_Reset"),
    "new_array": CFunction(POINTER, _DESCRIBED, 94),  # PyArray_NewFromDescr
    "set_base": CFunction(INT32, _TWO, 282),  # PyArray_SetBaseObject
    "copy_into": CFunction(INT32, _TWO, 50),  # PyArray_CopyInto
    "scalar": CFunction(POINTER, _THREE, 60),  # PyArray_Scalar
    "as_result": CFunction(POINTER, _ONE, 76),  # PyArray_Return
}


def numpy_api(index: int) -> int:
    """The address of a function of NumPy's C API."""
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]  # noqa: SLF001
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = get(capsule, None)
    found = ctypes.c_void_p.from_address(table + 8 * index).value
    assert found is not None
    return found


@cache
def error_state() -> dict[str, Any]:
    """The context variable in which `numpy.errstate` keeps its settings, and those that ignore every error.

    Both are None where this version of NumPy keeps them elsewhere.
    """
    module = np._core.umath  # type: ignore[attr-defined]  # noqa: SLF001
    names = ("_extobj_contextvar", "_make_extobj")
    variable, make = (getattr(module, name, None) for name in names)
    if variable is None or make is None:
        return {"error_state": None, "quiet": None}
    return {"error_state": variable, "quiet": make(all="ignore")}


#: The only keyword that machine code reads by itself; interned, so that comparing pointers suffices.
_OUT = sys.intern("out")


@cache
def symbols() -> dict[str, int]:
    """The addresses of functions and objects, by the names that modules import."""
    objects: dict[str, object] = {"none": None, "str_out": _OUT, "ndarray": np.ndarray, **error_state()}
    objects |= {kind.__name__: kind for kind in (float, bool, int, str, tuple, list)}
    objects |= {f"dtype_{kind.__name__}": np.dtype(kind) for kind in (float, int)}
    found = {f"tw_{name}": id(thing) for name, thing in objects.items()}
    for name, function in FUNCTIONS.items():
        source = function.source
        address = (
            numpy_api(source) if isinstance(source, int) else address_of(getattr(ctypes.pythonapi, source))
        )
        found[f"tw_{name}"] = address
    return found
