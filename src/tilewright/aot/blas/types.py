"""The four types of the BLAS, and what is told from one part of the library to the next."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from tilewright.llvm.build import Function
from tilewright.llvm.values import INT64, POINTER, Value
from tilewright.spec.dtype import C64, C128, F32, F64, DType, Kind
from tilewright.threads.system_code import FieldAccess

#: Prefix of the symbols that the library keeps to itself, and of the functions that are its own.
PREFIX = "tilewright_blas"


@dataclass(frozen=True)
class BlasType:
    """One type of the BLAS: the letter of its routines and its elements."""

    letter: str
    dtype: DType

    @property
    def is_complex(self) -> bool:
        """Whether elements have two parts."""
        return self.dtype.kind is Kind.COMPLEX


TYPES = {
    one.letter: one
    for one in (BlasType("s", F32), BlasType("d", F64), BlasType("c", C64), BlasType("z", C128))
}


class Job(ctypes.Structure):
    """One call of a level-3 routine, once its arguments have been checked.

    Attributes
    ----------
    m, n, k : sizes.
    a, b, c : matrices: their first element, elements from row to row and from column to column, and whether
        they are conjugated. Transposes and storage orders are strides here.
    lower, unit, hermitian : properties of a triangle.
    alpha, beta : real and imaginary parts, as doubles, which hold floats exactly.
    """

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("m", "n", "k", "lower", "unit", "hermitian")),
        *(
            (f"{name}{part}", ctypes.c_int64)
            for name in "abc"
            for part in ("", "_row", "_column", "_conjugated")
        ),
        ("alpha", ctypes.c_double * 2),
        ("beta", ctypes.c_double * 2),
    )


#: Words of a `Job` on the stack.
JOB_WORDS = ctypes.sizeof(Job) // 8


@dataclass(frozen=True)
class View:
    """A matrix in memory as values of one function: address, strides in elements, 1 where it is conjugated."""

    pointer: Value
    row: Value
    column: Value
    conjugated: Value

    def transposed(self) -> View:
        """The transpose, of the same memory."""
        return View(self.pointer, self.column, self.row, self.conjugated)

    def conjugate_if(self, f: Function, flag: Value) -> View:
        """The conjugate where the flag is 1."""
        return View(self.pointer, self.row, self.column, f.xor(self.conjugated, flag))

    def part(self, f: Function, row: Value, column: Value, size: int) -> View:
        """The part from one row and column on; elements have `size` bytes."""
        offset = f.add(f.mul(row, self.row), f.mul(column, self.column))
        return View(f.at(self.pointer, f.mul(offset, size)), self.row, self.column, self.conjugated)

    @property
    def values(self) -> list[Value]:
        """As the arguments of a function."""
        return [self.pointer, self.row, self.column, self.conjugated]


def view_parameters(name: str) -> list[tuple[str, object]]:
    """The parameters of a function that takes a view."""
    return [(name, POINTER), *((f"{name}_{part}", INT64) for part in ("row", "column", "conjugated"))]


def view_of(f: Function, name: str) -> View:
    """The view that a function was given by `view_parameters`."""
    given = f.arguments
    return View(given[name], *(given[f"{name}_{part}"] for part in ("row", "column", "conjugated")))


def job_view(w: FieldAccess, job: Value, name: str) -> View:
    """A matrix of a job."""
    parts = (w.get(job, Job, f"{name}_{part}") for part in ("row", "column", "conjugated"))
    return View(w.get(job, Job, name, POINTER), *parts)
