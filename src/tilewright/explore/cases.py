"""What is measured: one product with its operands, and the check of a result against float64."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.errors import InvalidChoice, InvalidSize, WrongResult
from tilewright.spec.dtype import F64, DType
from tilewright.spec.problem import Gemm, Layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The values of --trans: which operands are transposed views, as BLAS letters "no transpose".
TRANSPOSITIONS = ("n", "a", "b", "ab")

#: From this many multiply-adds on, only sampled rows and columns are compared with float64.
CHECK_ALL_BELOW = 2**26
#: Rows, columns and batch entries in a sample; the first and the last are always among them.
SAMPLE = 12

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

    gemm: Gemm
    batch: int = 1
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name, size in (("m", self.gemm.m), ("n", self.gemm.n), ("k", self.gemm.k), ("batch", self.batch)):
            if size is None or size < 1:
                raise InvalidSize(name=name, found=size, required="at least 1 to be measured")
        if Layout.STRIDED in (self.gemm.a, self.gemm.b):
            raise InvalidChoice(name="layout of a measured operand", found="strided", allowed="row, col")
        if not self.label:
            object.__setattr__(self, "label", self.name.removeprefix("gemm "))

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
        """Floating-point operations of one call."""
        m, n, k = self.sizes
        return 2 * m * n * k * self.batch

    def operands(self, seed: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Random A and B in [-1, 1), never zeros, and C full of NaN, so that an unwritten element shows."""
        generator = np.random.default_rng(seed)
        m, n, k = self.sizes
        a = self._random(generator, m, k, self.gemm.a)
        b = self._random(generator, k, n, self.gemm.b)
        shape = (m, n) if self.batch == 1 else (self.batch, m, n)
        return a, b, np.full(shape, np.nan, dtype=self.gemm.dtype.numpy)

    def _random(
        self, generator: np.random.Generator, rows: int, columns: int, layout: Layout
    ) -> NDArray[Any]:
        stored = (rows, columns) if layout is Layout.ROW else (columns, rows)
        shape = stored if self.batch == 1 else (self.batch, *stored)
        values = generator.random(shape, dtype=np.float32) * 2 - 1
        matrix = values.astype(self.gemm.dtype.numpy, copy=False)
        return matrix if layout is Layout.ROW else np.swapaxes(matrix, -1, -2)

    def check(self, system: str, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], seed: int = 0) -> None:
        """Compare a computed C with float64; large products on sampled rows and columns.

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
        return self.flops > 2 * CHECK_ALL_BELOW

    def _check_part(
        self,
        system: str,
        a: NDArray[Any],
        b: NDArray[Any],
        c: NDArray[Any],
        rows: NDArray[np.intp],
        columns: NDArray[np.intp],
    ) -> None:
        left = a[rows].astype(np.float64)
        right = b[:, columns].astype(np.float64)
        expected = left @ right
        bound = error_bound(self.gemm.dtype, left.shape[1]) * (np.abs(left) @ np.abs(right))
        found = c[np.ix_(rows, columns)].astype(np.float64)
        excess = np.abs(found - expected) - bound
        excess[np.isnan(excess)] = np.inf
        if not np.any(excess > 0):
            return
        i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
        raise WrongResult(
            system=system,
            problem=self.name,
            row=int(rows[i]),
            column=int(columns[j]),
            found=float(found[i, j]),
            expected=float(expected[i, j]),
            bound=float(bound[i, j]),
        )


def error_bound(dtype: DType, k: int) -> float:
    """The factor of |A|·|B| that |C_hat - C| may not exceed, component by component.

    gamma(i) = i·u / (1 - i·u) bounds the relative error of i roundings with unit roundoff u; a dot
    product of k terms in any order stays within gamma(k), and alpha and the store are one each:
    gamma(k + 2). The float64 reference has an error of the same form, which is added.

    >>> from tilewright.spec.dtype import F32
    >>> 1.19e-6 < error_bound(F32, 18) < 1.2e-6
    True

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., §3.1.
    """
    return _gamma(k + 2, dtype.unit_roundoff) + _gamma(k + 2, F64.unit_roundoff)


def _gamma(roundings: int, unit_roundoff: float) -> float:
    relative = roundings * unit_roundoff
    return relative / (1 - relative)


def _sample(size: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """At most `SAMPLE` indices below `size`, in order; the first and the last always."""
    if size <= SAMPLE:
        return np.arange(size)
    inner = generator.choice(np.arange(1, size - 1), SAMPLE - 2, replace=False)
    return np.sort(np.concatenate(([0, size - 1], inner)))


def parse_sizes(text: str, dtype: str | DType = "f32", trans: str = "n") -> tuple[Case, ...]:
    """The cases of a comma list of "512" (square) and "64x2048x256" (m, n, k).

    Parameters
    ----------
    text : the list.
    dtype : element type of all operands.
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
        raise InvalidChoice(name="trans", found=repr(trans), allowed=", ".join(TRANSPOSITIONS))
    layouts = {name: Layout.COL if name in trans else Layout.ROW for name in ("a", "b")}
    cases = []
    for item in (part.strip() for part in text.split(",")):
        match = _SIZES.fullmatch(item)
        if match is None:
            raise InvalidChoice(
                name="size", found=repr(item), allowed="N or MxNxK, such as 512 or 64x2048x256"
            )
        m, n, k = (int(part) if part else int(match[1]) for part in match.groups())
        cases.append(Case(Gemm(m, n, k, dtype, a=layouts["a"], b=layouts["b"]), label=item))
    return tuple(dict.fromkeys(cases))
