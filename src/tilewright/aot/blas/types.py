"""The four types of the BLAS, and what is told from one part of the library to the next."""

from __future__ import annotations

import ctypes

from tilewright.llvm.build import Function
from tilewright.llvm.values import INT64, POINTER, Type, Value
from tilewright.records import dataclass
from tilewright.spec.dtype import BF16, C64, C128, F32, F64, DType, Kind
from tilewright.threads.system_code import FieldAccess

#: Prefix of the symbols that the library keeps to itself, and of the functions that are its own.
PREFIX = "tilewright_blas"


@dataclass(frozen=True)
class BlasType:
    """One type of the BLAS.

    Attributes
    ----------
    letter : of its routines.
    dtype : of results and scalars.
    operands : of factors, where it is another one.
    """

    letter: str
    dtype: DType
    operands: DType | None = None

    @property
    def factor(self) -> DType:
        """The type of factors."""
        return self.operands or self.dtype

    @property
    def name(self) -> str:
        """Its name in symbols that the library keeps to itself."""
        return self.factor.name

    def title(self, routine: str) -> str:
        """The name of a routine of this type, in small letters.

        >>> TYPES["d"].title("gemm"), TYPES["b"].title("gemm")
        ('dgemm', 'gemm_bf16bf16f32')
        """
        if self.operands is None:
            return f"{self.letter}{routine}"
        return f"{routine}_{self.operands}{self.operands}{self.dtype}"

    @property
    def is_complex(self) -> bool:
        """Whether elements have two parts."""
        return self.dtype.kind is Kind.COMPLEX


#: All types, by letter; only products have the last, whose names are those of oneMKL.
TYPES = {
    one.letter: one
    for one in (
        BlasType("s", F32),
        BlasType("d", F64),
        BlasType("c", C64),
        BlasType("z", C128),
        BlasType("b", F32, operands=BF16),
    )
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
    offset_a, offset_b, offset_c : of products of bytes: what is added to elements of A and of B, and a matrix
        that is added to C.
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
        *((name, ctypes.c_int64) for name in ("offset_a", "offset_b")),
        *((f"offset_c{part}", ctypes.c_int64) for part in ("", "_row", "_column", "_conjugated")),
    )


#: Words of a `Job` on the stack.
JOB_WORDS = ctypes.sizeof(Job) // 8


@dataclass(frozen=True)
class StridedMatrix:
    """A matrix in memory as values of one function: address, strides in elements, 1 if conjugated."""

    pointer: Value
    row: Value
    column: Value
    conjugated: Value

    def transposed(self) -> StridedMatrix:
        """The transpose, of the same memory."""
        return StridedMatrix(self.pointer, self.column, self.row, self.conjugated)

    def conjugate_if(self, f: Function, flag: Value) -> StridedMatrix:
        """The conjugate where the flag is 1."""
        return StridedMatrix(self.pointer, self.row, self.column, f.xor(self.conjugated, flag))

    def part(self, f: Function, row: Value, column: Value, size: int) -> StridedMatrix:
        """The part from one row and column on; elements have `size` bytes."""
        offset = f.add(f.mul(row, self.row), f.mul(column, self.column))
        return StridedMatrix(f.at(self.pointer, f.mul(offset, size)), self.row, self.column, self.conjugated)

    @property
    def values(self) -> list[Value]:
        """As the arguments of a function."""
        return [self.pointer, self.row, self.column, self.conjugated]


def view_parameters(name: str) -> list[tuple[str, Type]]:
    """The parameters of a function that takes a view."""
    return [(name, POINTER), *((f"{name}_{part}", INT64) for part in ("row", "column", "conjugated"))]


def view_of(f: Function, name: str) -> StridedMatrix:
    """The view that a function was given by `view_parameters`."""
    given = f.arguments
    return StridedMatrix(given[name], *(given[f"{name}_{part}"] for part in ("row", "column", "conjugated")))


def job_view(w: FieldAccess, job: Value, name: str) -> StridedMatrix:
    """A matrix of a job."""
    parts = (w.get(job, Job, f"{name}_{part}") for part in ("row", "column", "conjugated"))
    return StridedMatrix(w.get(job, Job, name, POINTER), *parts)
