"""The routines of the library: one row each, from which their entries, checks and C prototypes follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from tilewright.records import dataclass


class ArgumentRole(Enum):
    """The kind of an argument."""

    FLAG = "flag"
    SIZE = "size"
    SCALAR = "scalar"
    MATRIX = "matrix"
    LEADING = "leading dimension"
    STRIDE = "stride of a batch"


#: The roles of all names of arguments.
ROLES: dict[str, ArgumentRole] = {
    **dict.fromkeys(("transa", "transb", "trans", "side", "uplo", "diag"), ArgumentRole.FLAG),
    **dict.fromkeys(("m", "n", "k", "batch"), ArgumentRole.SIZE),
    **dict.fromkeys(("alpha", "beta"), ArgumentRole.SCALAR),
    **dict.fromkeys(("a", "b", "c"), ArgumentRole.MATRIX),
    **dict.fromkeys(("lda", "ldb", "ldc"), ArgumentRole.LEADING),
    **dict.fromkeys(("stridea", "strideb", "stridec"), ArgumentRole.STRIDE),
}


@dataclass(frozen=True)
class FlagValues:
    """The values of a flag: Fortran's letters and the numbers of CBLAS, indexed by the internal code."""

    letters: tuple[str, ...]
    numbers: tuple[int, ...]
    type: str


#: Netlib, cblas.h. The code of an invalid value is `INVALID`.
_TRANSPOSES = FlagValues(("N", "T", "C"), (111, 112, 113), "CBLAS_TRANSPOSE")
FLAGS: dict[str, FlagValues] = {
    **dict.fromkeys(("transa", "transb", "trans"), _TRANSPOSES),
    "side": FlagValues(("L", "R"), (141, 142), "CBLAS_SIDE"),
    "uplo": FlagValues(("U", "L"), (121, 122), "CBLAS_UPLO"),
    "diag": FlagValues(("N", "U"), (131, 132), "CBLAS_DIAG"),
}
INVALID = -1
#: Layouts of CBLAS.
ROW_MAJOR, COLUMN_MAJOR = 101, 102


@dataclass(frozen=True)
class StoredRows:
    """Rows of a matrix as it is stored: one size if a flag is 0 (N, L), else another."""

    size: str
    flag: str = ""
    otherwise: str = ""


class Transposes(Enum):
    """The codes of a transpose that a routine takes, real and complex."""

    ALL = (0, 1, 2)
    SYMMETRIC = (0, 1)
    HERMITIAN = (0, 2)

    @property
    def codes(self) -> tuple[int, ...]:
        """The codes."""
        return tuple(map(int, self.value))


@dataclass(frozen=True)
class Routine:
    """One routine of all its types.

    Attributes
    ----------
    name : without the letter of the type.
    arguments : in Fortran's order, without the layout of CBLAS.
    rows : the rows of each matrix, which its leading dimension may not be less than.
    types : the letters of its types.
    transposes : of complex types; real ones take all.
    real : scalars that are real even if the matrices are complex.
    swapped, flipped : how a row-major call becomes a column-major one: pairs of arguments that are exchanged,
        flags that get their other value.
    conjugated : whether alpha is conjugated then, too.
    hermitian : whether its symmetric matrix is Hermitian.
    form : what computes it, a key of `calls.FORMS`.

    Source: Dongarra et al., A Set of Level 3 Basic Linear Algebra Subprograms, ACM TOMS 16(1), 1990; BLAS
    Technical Forum Standard, 2001, annex B (CBLAS); Intel oneMKL reference for gemmt and gemm_batch_strided.
    """

    name: str
    arguments: tuple[str, ...]
    rows: Mapping[str, StoredRows]
    types: str = "sdcz"
    transposes: Transposes = Transposes.ALL
    real: frozenset[str] = frozenset()
    swapped: tuple[tuple[str, str], ...] = ()
    flipped: tuple[str, ...] = ()
    conjugated: bool = False
    hermitian: bool = False
    form: str = ""
    leading: Mapping[str, StoredRows] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        unknown = set(self.arguments) - set(ROLES)
        assert not unknown, f"{self.name} has arguments without a role: {unknown}"
        object.__setattr__(self, "leading", {f"ld{matrix}": rows for matrix, rows in self.rows.items()})

    def number(self, argument: str) -> int:
        """The number of an argument, as it is reported to `xerbla`."""
        return self.arguments.index(argument) + 1

    def letters_for(self, flag: str, *, is_complex: bool) -> tuple[int, ...]:
        """The codes of a flag that are valid."""
        words = FLAGS[flag]
        if words is _TRANSPOSES and is_complex:
            return self.transposes.codes
        return tuple(range(len(words.letters)))

    @property
    def written(self) -> str:
        """The matrix that is written: the last one."""
        return [one for one in self.arguments if ROLES[one] is ArgumentRole.MATRIX][-1]

    def partner(self, argument: str) -> str:
        """The argument that one is exchanged with in a row-major call.

        >>> find_routine("gemm").partner("lda")
        'ldb'
        """
        pairs = {**dict(self.swapped), **{right: left for left, right in self.swapped}}
        return pairs.get(argument, argument)


_AB = (("a", "b"), ("lda", "ldb"))
_MN = (("m", "n"),)
_TRIANGULAR = {"a": StoredRows("m", "side", "n"), "b": StoredRows("m")}
_SYMMETRIC = {"a": StoredRows("m", "side", "n"), "b": StoredRows("m"), "c": StoredRows("m")}
_RANK_K = {"a": StoredRows("n", "trans", "k"), "c": StoredRows("n")}
_RANK_2K = {"a": StoredRows("n", "trans", "k"), "b": StoredRows("n", "trans", "k"), "c": StoredRows("n")}
_GEMM = {"a": StoredRows("m", "transa", "k"), "b": StoredRows("k", "transb", "n"), "c": StoredRows("m")}


def _routine(name: str, arguments: str, rows: Mapping[str, StoredRows], form: str, **more: object) -> Routine:
    return Routine(name, tuple(arguments.split()), rows, form=form, **more)  # type: ignore[arg-type]


#: All routines.
ROUTINES = (
    _routine(
        "gemm",
        "transa transb m n k alpha a lda b ldb beta c ldc",
        _GEMM,
        "gemm",
        types="sdczb",
        swapped=(("transa", "transb"), *_MN, *_AB),
    ),
    _routine(
        "gemm_batch_strided",
        "transa transb m n k alpha a lda stridea b ldb strideb beta c ldc stridec batch",
        _GEMM,
        "gemm",
        swapped=(("transa", "transb"), *_MN, *_AB, ("stridea", "strideb")),
    ),
    _routine(
        "gemmt",
        "uplo transa transb n k alpha a lda b ldb beta c ldc",
        {"a": StoredRows("n", "transa", "k"), "b": StoredRows("k", "transb", "n"), "c": StoredRows("n")},
        "gemmt",
        swapped=(("transa", "transb"), *_AB),
        flipped=("uplo",),
    ),
    *(
        _routine(
            name,
            "side uplo m n alpha a lda b ldb beta c ldc",
            _SYMMETRIC,
            "symm",
            types=types,
            swapped=_MN,
            flipped=("side", "uplo"),
            hermitian=name == "hemm",
        )
        for name, types in (("symm", "sdcz"), ("hemm", "cz"))
    ),
    _routine(
        "syrk",
        "uplo trans n k alpha a lda beta c ldc",
        _RANK_K,
        "syrk",
        transposes=Transposes.SYMMETRIC,
        flipped=("uplo", "trans"),
    ),
    _routine(
        "herk",
        "uplo trans n k alpha a lda beta c ldc",
        _RANK_K,
        "syrk",
        types="cz",
        transposes=Transposes.HERMITIAN,
        real=frozenset(("alpha", "beta")),
        flipped=("uplo", "trans"),
        hermitian=True,
    ),
    _routine(
        "syr2k",
        "uplo trans n k alpha a lda b ldb beta c ldc",
        _RANK_2K,
        "syr2k",
        transposes=Transposes.SYMMETRIC,
        flipped=("uplo", "trans"),
    ),
    _routine(
        "her2k",
        "uplo trans n k alpha a lda b ldb beta c ldc",
        _RANK_2K,
        "syr2k",
        types="cz",
        transposes=Transposes.HERMITIAN,
        real=frozenset(("beta",)),
        flipped=("uplo", "trans"),
        conjugated=True,
        hermitian=True,
    ),
    *(
        _routine(
            name,
            "side uplo transa diag m n alpha a lda b ldb",
            _TRIANGULAR,
            name,
            swapped=_MN,
            flipped=("side", "uplo"),
        )
        for name in ("trmm", "trsm")
    ),
)


def find_routine(name: str) -> Routine:
    """The row of a routine."""
    return next(one for one in ROUTINES if one.name == name)
