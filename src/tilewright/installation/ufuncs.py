"""NumPy's C functions of universal functions: exchanging an inner loop, taking floating-point errors.

Source: numpy/_core/code_generators/numpy_api.py, ufunc_funcs_api; the places in the table are part of NumPy's
binary interface.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

#: Places in the table of functions: PyUFunc_getfperr, which also clears, and PyUFunc_ReplaceLoopBySignature.
_TAKE_ERRORS, _REPLACE_LOOP = 28, 30


@cache
def _function(place: int) -> int:
    capsule = np._core._multiarray_umath._UFUNC_API  # type: ignore[attr-defined]  # noqa: SLF001
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    found = ctypes.c_void_p.from_address(get(capsule, None) + 8 * place).value
    assert found is not None
    return found


def take_errors_address() -> int:
    """The address of ``int PyUFunc_getfperr(void)``."""
    return _function(_TAKE_ERRORS)


@cache
def _replace() -> Any:
    kinds = (ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return ctypes.PYFUNCTYPE(ctypes.c_int, *kinds)(_function(_REPLACE_LOOP))


def replace_loop(ufunc: np.ufunc, letter: str, loop: int, place: int | None = None) -> int:
    """Puts a loop in the place of that for operands and results of one type; what was there before.

    Parameters
    ----------
    place : an address to which NumPy writes the former loop before it puts the other in.
    """
    types = (ctypes.c_int * ufunc.nargs)(*(np.dtype(letter).num,) * ufunc.nargs)
    before = ctypes.c_void_p()
    where = ctypes.addressof(before) if place is None else place
    found = _replace()(ufunc, loop, ctypes.addressof(types), where)
    assert found == 0, f"{ufunc} has no loop for {letter}"
    former = ctypes.c_void_p.from_address(where).value
    assert former is not None
    return former
