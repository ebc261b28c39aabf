"""What is measured: one product with its operands, and the check of a result against exact arithmetic."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tilewright.errors import InvalidChoice, InvalidSize, WrongResult, shown
from tilewright.ops.gemm.problem import Gemm
from tilewright.records import dataclass
from tilewright.spec.arguments import parse_choice
from tilewright.spec.dtype import F64, DType, Kind
from tilewright.spec.problem import Layout, ProductTypes, exact_dtype, parse_types
from tilewright.spec.records import set_fields
from tilewright.tools.explore.measured import Started
from tilewright.tools.explore.prepared import Environment, System
from tilewright.tools.explore.systems import find_system

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The values of --trans: which operands are transposed views, as BLAS letters "no transpose".
TRANSPOSITIONS = ("n", "a", "b", "ab")

#: From this many multiply-adds on, only sampled rows and columns are compared with float64.
CHECK_ALL_BELOW = 2**26
#: Rows, columns and batch entries in a sample; the first and the last are always among them.
SAMPLE = 12

#: What C holds before an integer product: each element is written, so any value shows when it stays.
_UNWRITTEN = 85

_SIZES = re.compile(r"([0-9]+)(?:x([0-9]+)x([0-9]+))?")


@dataclass(frozen=True)
class Case:
    """One product to measure: C[batch, m, n] = A[batch, m, k] @ B[batch, k, n].

    Attributes
    ----------
    gemm : the problem, with every size given; a column-major operand is a transposed view.
    batch : how many products one call computes; 1 means plain matrices.
    label : what a person reads in tables and plots.
    """

    size_note: ClassVar[str] = "size of C = A·B: m x n x k, or n for n x n x n"

    gemm: Gemm
    batch: int = 1
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name, size in (("m", self.gemm.m), ("n", self.gemm.n), ("k", self.gemm.k), ("batch", self.batch)):
            if size is None or size < 1:
                raise InvalidSize(name=name, found=size, required="at least 1 to be measured")
        for layout in (self.gemm.a, self.gemm.b):
            parse_choice(Layout, layout, "layout of a measured operand", (Layout.ROW, Layout.COL))
        if not self.label:
            set_fields(self, label=self.name.removeprefix("gemm "))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The sizes m, n, k."""
        gemm = self.gemm
        assert gemm.m is not None
        assert gemm.n is not None
        assert gemm.k is not None
        return gemm.m, gemm.n, gemm.k

    @property
    def name(self) -> str:
        """The problem in a report: kind, sizes, and BLAS letters for the layouts of A and B.

        >>> Case(Gemm(8, 16, 4, a="col")).name
        'gemm 8x16x4 tn'
        """
        letters = "".join("t" if layout is Layout.COL else "n" for layout in (self.gemm.a, self.gemm.b))
        batch = f"{self.batch}*" if self.batch > 1 else ""
        return f"gemm {batch}{'x'.join(map(str, self.sizes))} {letters}"

    @property
    def flops(self) -> int:
        """Operations of one call: two for each multiply-add, of integers too; eight of complex numbers."""
        flops = self.gemm.flops
        assert flops is not None
        return flops * self.batch

    @property
    def subject(self) -> str:
        """The kind in titles."""
        return "matrix products"

    @property
    def types(self) -> ProductTypes:
        """The wanted element types."""
        return self.gemm.types

    @property
    def size_fields(self) -> dict[str, int]:
        """Its sizes by name, as a report lists them."""
        return dict(zip("mnk", self.sizes, strict=True))

    @property
    def request(self) -> dict[str, Any]:
        """The record in JSON values, from which a worker makes it again."""
        gemm, (m, n, k) = self.gemm, self.sizes
        types = {"dtype": str(gemm.dtype), "b_dtype": str(gemm.b_dtype), "out_dtype": str(gemm.out_dtype)}
        fields = {"m": m, "n": n, "k": k, **types, "a": gemm.a.value, "b": gemm.b.value}
        return {"gemm": fields, "batch": self.batch}

    def types_of(self, system: str) -> ProductTypes:
        """The element types that a system computes."""
        row: System = find_system(system)
        return row.types(self.types)

    def environments_of(self, system: str, threads: int) -> tuple[Environment, ...]:
        """Environment settings to try for a system's process."""
        row: System = find_system(system)
        return row.environments(threads)

    def call_of(self, system: str) -> str:
        """What is called in a system."""
        row: System = find_system(system)
        return row.call(self.types_of(system))

    def flops_of(self, system: str) -> int:
        """The operations of one call in a system's own types."""
        return self.with_types(self.types_of(system)).flops

    def start(self, system: str, seed: int, threads: int, target: str | None) -> Started:
        """Operands of a system's own types, ready to be multiplied."""
        case = self.with_types(self.types_of(system))
        a, b, out = case.operands(seed)
        row: System = find_system(system)
        product = row.prepare(case.gemm, (a, b, out), threads, target)

        def check() -> None:
            product.finish()
            case.check(system, a, b, out, seed)

        return Started(product, check)

    def with_types(self, types: ProductTypes) -> Case:
        """The same product of other element types."""
        m, n, k = self.sizes
        gemm = Gemm(m, n, k, types.a, a=self.gemm.a, b=self.gemm.b, b_dtype=types.b, out_dtype=types.c)
        return Case(gemm, self.batch, self.label)

    def operands(self, seed: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Random A and B, and a C that shows an element that is not written.

        Floats are in [-1, 1), never zeros, and C is full of NaN; integers are all that their type holds.
        """
        generator = np.random.default_rng(seed)
        m, n, k = self.sizes
        types = self.gemm.types
        a = self._random(generator, (m, k), self.gemm.a, types.a)
        b = self._random(generator, (k, n), self.gemm.b, types.b)
        shape = (m, n) if self.batch == 1 else (self.batch, m, n)
        return a, b, np.full(shape, _UNWRITTEN if types.c.is_integer else np.nan).astype(types.c.numpy)

    def _random(
        self, generator: np.random.Generator, sizes: tuple[int, int], layout: Layout, dtype: DType
    ) -> NDArray[Any]:
        stored = sizes if layout is Layout.ROW else sizes[::-1]
        shape = stored if self.batch == 1 else (self.batch, *stored)
        matrix = _random(generator, shape, dtype)
        return matrix if layout is Layout.ROW else np.swapaxes(matrix, -1, -2)

    def check(self, system: str, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], seed: int = 0) -> None:
        """Compare a computed C with float64, or exact integers; large products on sampled rows and columns.

        Raises
        ------
        WrongResult : names the worst element outside the bound; see `error_bound`.
        """
        generator = np.random.default_rng(seed)
        entries = _sample(self.batch, generator) if self._sampled else np.arange(self.batch)
        for entry in entries:
            a2, b2, c2 = (array if self.batch == 1 else array[entry] for array in (a, b, c))
            m, n, _ = self.sizes
            everything = np.arange(m), np.arange(n)
            if not self._sampled:
                self._check_part(system, a2, b2, c2, *everything)
            else:
                self._check_part(system, a2, b2, c2, _sample(m, generator), everything[1])
                self._check_part(system, a2, b2, c2, everything[0], _sample(n, generator))

    @property
    def _sampled(self) -> bool:
        m, n, k = self.sizes
        return m * n * k * self.batch > CHECK_ALL_BELOW

    def _check_part(
        self,
        system: str,
        a: NDArray[Any],
        b: NDArray[Any],
        c: NDArray[Any],
        rows: NDArray[np.intp],
        columns: NDArray[np.intp],
    ) -> None:
        types = self.gemm.types
        exact = exact_dtype(types)
        left, right = a[rows].astype(exact), b[:, columns].astype(exact)
        expected, found = left @ right, c[np.ix_(rows, columns)].astype(exact)
        bound = error_bound(types, left, right)
        if types.c.is_integer:
            excess = _differing_bits(found, expected, types.c).astype(np.float64)
        else:
            excess = _largest_part(found - expected) - bound
        excess[np.isnan(excess)] = np.inf
        if not np.any(excess > 0):
            return
        i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
        raise WrongResult(
            system=system,
            problem=self.name,
            row=int(rows[i]),
            column=int(columns[j]),
            found=found[i, j].item(),
            expected=expected[i, j].item(),
            bound=float(bound[i, j]),
        )


def _random(generator: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> NDArray[Any]:
    """Random elements: floats in [-1, 1), of complex numbers both parts, and any integers of the type."""
    if dtype.is_integer:
        lowest = -(1 << dtype.significand - 1) if dtype.kind is Kind.SIGNED else 0
        held = np.dtype(np.int8) if dtype.extension else dtype.numpy
        drawn = generator.integers(lowest, lowest + (1 << dtype.significand) - 1, shape, held, endpoint=True)
        return np.asarray(drawn.astype(dtype.numpy, copy=False))
    values = generator.random(shape, dtype=np.float32) * 2 - 1
    if dtype.kind is Kind.COMPLEX:
        imaginary = generator.random(shape, dtype=np.float32) * 2 - 1
        return (values + 1j * imaginary).astype(dtype.numpy)
    return values.astype(dtype.numpy, copy=False)


def _differing_bits(found: NDArray[Any], expected: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Whether integers differ in the bits that C holds: sums wrap around."""
    kept = np.int64(-1 if dtype.significand == 64 else (1 << dtype.significand) - 1)
    return np.asarray(((found ^ expected) & kept) != 0)


def _largest_part(error: NDArray[Any]) -> NDArray[np.float64]:
    """The magnitude of an error, of complex numbers that of the larger part."""
    parts = (error.real, error.imag) if np.iscomplexobj(error) else (error,)
    return np.asarray(np.max([np.abs(part) for part in parts], axis=0), np.float64)


def error_bound(types: ProductTypes, a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """How far each element of a computed C may be from that of float64: 0 for integers.

    gamma(i) = i·u / (1 - i·u) bounds the relative error of i roundings with unit roundoff u; a dot
    product of k terms in any order stays within gamma(k)·|A|·|B|, and alpha and the store are one each:
    gamma(k + 2), with the unit roundoff of the type of the sums. The float64 reference has an error of the
    same form, which is added. A part of a complex element is a sum of 2k products of parts. A narrower C
    rounds once more, by half an ulp: |C|·u, or half of the smallest subnormal number.

    Parameters
    ----------
    types : of the product.
    a, b : rows of A and columns of B in float64 or complex128.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., §3.1.
    """
    if types.c.is_integer:
        return np.zeros((a.shape[0], b.shape[1]))
    terms = a.shape[1]
    if types.is_complex:
        terms *= 2
        parts = [[np.abs(part) for part in (x.real, x.imag)] for x in (a, b)]
        (ar, ai), (br, bi) = parts
        magnitude = np.maximum(ar @ br + ai @ bi, ar @ bi + ai @ br)
    else:
        magnitude = np.abs(a) @ np.abs(b)
    bound = (_gamma(terms + 2, types.acc.unit_roundoff) + _gamma(terms + 2, F64.unit_roundoff)) * magnitude
    if types.narrows:
        half_ulp = types.c.real.unit_roundoff * (_largest_part(a @ b) + bound)
        bound += np.maximum(half_ulp, _smallest_subnormal(types.c.real) / 2)
    return np.asarray(bound)


def _smallest_subnormal(dtype: DType) -> float:
    """The distance of two neighbouring subnormal numbers.

    >>> from tilewright.spec.dtype import F16
    >>> _smallest_subnormal(F16) == 2.0**-24
    True
    """
    import ml_dtypes

    facts: Any = ml_dtypes.finfo
    return float(facts(dtype.numpy).smallest_subnormal)


def _gamma(roundings: int, unit_roundoff: float) -> float:
    relative = roundings * unit_roundoff
    return relative / (1 - relative)


def _sample(size: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """At most `SAMPLE` indices below `size`, in order; the first and the last always."""
    if size <= SAMPLE:
        return np.arange(size)
    inner = generator.choice(np.arange(1, size - 1), SAMPLE - 2, replace=False)
    return np.sort(np.concatenate(([0, size - 1], inner)))


def parse_sizes(
    text: str, dtype: str | DType = "f32", trans: str = "n", out_dtype: str | DType | None = None
) -> tuple[Case, ...]:
    """The cases of a comma list of "512" (square) and "64x2048x256" (m, n, k).

    Parameters
    ----------
    text : the list.
    dtype, out_dtype : element types; see `parse_types`.
    trans : which operands are transposed views: "n" (none), "a", "b" or "ab".

    Raises
    ------
    InvalidChoice, InvalidSize, UnsupportedDtype

    Examples
    --------
    >>> [case.name for case in parse_sizes("512,64x32x16", trans="b")]
    ['gemm 512x512x512 nt', 'gemm 64x32x16 nt']
    """
    if trans not in TRANSPOSITIONS:
        raise InvalidChoice(name="trans", found=shown(trans), allowed=", ".join(TRANSPOSITIONS))
    types = parse_types(dtype, out_dtype)
    layouts = {name: Layout.COL if name in trans else Layout.ROW for name in ("a", "b")}
    cases = []
    for item in (part.strip() for part in text.split(",")):
        match = _SIZES.fullmatch(item)
        if match is None:
            raise InvalidChoice(
                name="size", found=shown(item), allowed="N or MxNxK, such as 512 or 64x2048x256"
            )
        m, n, k = (int(part) if part else int(match[1]) for part in match.groups())
        plain = Gemm(m, n, k, types.a, b_dtype=types.b, out_dtype=types.c, a=layouts["a"], b=layouts["b"])
        cases.append(Case(plain, label=item))
    return tuple(dict.fromkeys(cases))
