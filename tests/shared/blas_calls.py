"""Calls of the BLAS library of this package: it is built once, and called as C programs would."""

from __future__ import annotations

import atexit
import ctypes
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from support import Array, GuardedMemory

import tilewright as tw
from tilewright.aot.blas.build import BlasLibrary, build_blas
from tilewright.aot.blas.files import blas_files
from tilewright.aot.blas.routines import FLAGS, ROLES, ArgumentRole, find_routine
from tilewright.aot.form import LibraryForm
from tilewright.compiler.target import resolve_target
from tilewright.errors import NoLinker, NoResolver

DTYPES: Mapping[str, Any] = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}


@cache
def host_library() -> BlasLibrary:
    """The library for this host."""
    try:
        return build_blas([resolve_target("host")])
    except NoResolver as reason:
        pytest.skip(str(reason))


@cache
def library_folder() -> Path:
    """A folder with the library for this host, in both forms."""
    folder = Path(mkdtemp(prefix="tilewright-blas-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    forms = (LibraryForm.SHARED, LibraryForm.ARCHIVE)
    try:
        files = blas_files(host_library(), forms, tw.__version__)
    except NoLinker as reason:
        pytest.skip(str(reason))
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def shared_file() -> Path:
    """The shared library."""
    return library_folder() / "libtilewright_blas.so"


@cache
def library() -> ctypes.CDLL:
    """The shared library in this process."""
    return ctypes.CDLL(str(shared_file()))


def is_complex(letter: str) -> bool:
    """Whether a type is complex."""
    return letter in "cz"


def operated(matrix: Array, letter: str) -> Array:
    """op(A) for a transpose."""
    return {"N": matrix, "T": matrix.T, "C": matrix.conj().T}[letter]


class Matrix:
    """A column-major matrix that begins or ends at an inaccessible page, with lines that nobody may touch."""

    def __init__(self, array: Array, gap: int, *, at_end: bool) -> None:
        self.leading = max(array.shape[0], 1) + gap
        size = array.itemsize
        self._memory = GuardedMemory(size * self.leading * max(array.shape[1], 1))
        self.view = self._memory.place(array, (size, size * self.leading), at_end=at_end)
        self._before = self._memory.outside(self.view)

    @property
    def pointer(self) -> ctypes.c_void_p:
        """The address of the first element."""
        return ctypes.c_void_p(self.view.ctypes.data)

    def check_outside(self) -> None:
        """Nothing beside the elements has been written."""
        assert np.array_equal(self._before, self._memory.outside(self.view))


def run_fortran(name: str, letter: str, given: Mapping[str, Any], *, wide: bool = False) -> None:
    """Calls a routine by its Fortran name, everything by address."""
    dtype, kind = np.dtype(DTYPES[letter]), ctypes.c_int64 if wide else ctypes.c_int32
    routine, kept = find_routine(name), []
    arguments: list[Any] = []
    for argument in routine.arguments:
        value = given[argument]
        match ROLES[argument]:
            case ArgumentRole.FLAG:
                arguments.append(ctypes.c_char_p(value.encode()))
            case ArgumentRole.SCALAR:
                kept.append(np.array([value], dtype))
                arguments.append(ctypes.c_void_p(kept[-1].ctypes.data))
            case ArgumentRole.MATRIX:
                arguments.append(value.pointer)
            case _:
                arguments.append(ctypes.byref(kind(value)))
    symbol = f"{letter}{name}_64_" if wide else f"{letter}{name}_"
    function = getattr(library(), symbol)
    function.restype = None
    function(*arguments)


def run_c(name: str, letter: str, given: Mapping[str, Any], layout: int, *, wide: bool = False) -> None:
    """Calls a routine by its CBLAS name."""
    dtype, kind = np.dtype(DTYPES[letter]), ctypes.c_int64 if wide else ctypes.c_int32
    real = ctypes.c_float if letter in "sc" else ctypes.c_double
    routine, kept = find_routine(name), []
    arguments: list[Any] = [ctypes.c_int(layout)]
    for argument in routine.arguments:
        value = given[argument]
        match ROLES[argument]:
            case ArgumentRole.FLAG:
                words = FLAGS[argument]
                known = dict(zip(words.letters, words.numbers, strict=True))
                arguments.append(ctypes.c_int(known.get(value, 0)))
            case ArgumentRole.SCALAR if is_complex(letter) and argument not in routine.real:
                kept.append(np.array([value], dtype))
                arguments.append(ctypes.c_void_p(kept[-1].ctypes.data))
            case ArgumentRole.SCALAR:
                arguments.append(real(value.real))
            case ArgumentRole.MATRIX:
                arguments.append(value.pointer)
            case _:
                arguments.append(kind(value))
    function = getattr(library(), f"cblas_{letter}{name}{'64_' if wide else ''}")
    function.restype = None
    function(*arguments)


def check_tester(output: str, passes: int) -> None:
    """Every routine passed, and none was left out."""
    lines = [line for line in output.splitlines() if "PASSED" in line or "FAIL" in line or "*****" in line]
    assert all("PASSED" in line for line in lines), "\n".join(lines)
    assert len(lines) == passes, output
