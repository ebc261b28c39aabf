"""Execution of a recognised Python nest: run-time checks of its values, array views, and the product."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.cached import cached_property
from tilewright.calls.operands import overlaps_itself
from tilewright.loops.nests.effects import effects
from tilewright.loops.nests.names import accesses
from tilewright.loops.nests.nest import Access, Factor, MatrixProduct, TriangularPart
from tilewright.loops.nests.polynomial import Symbol
from tilewright.loops.python.elements import PythonNest
from tilewright.loops.python.evaluation import NestValues, extent_text, polynomial_text
from tilewright.loops.python.views import AsWritten, AxisPlan, operand_plan
from tilewright.ops.einsum.public import einsum
from tilewright.ops.matmul.public import matmul
from tilewright.ops.triangular.syr2k_call import symmetric
from tilewright.spec.roles import DimensionRole

Array: TypeAlias = NDArray[Any]

#: Iterations below which the loops themselves are faster: the run-time checks take as long as this many
#: (about 10 us; one iteration of CPython takes 0.1 us and more).
FEWEST_ITERATIONS = 100
#: Elements of a result up to which a separate addition to C is faster than passing alpha and beta, which
#: `matmul` handles in Python: 45 us, against 0.14 ns for each element of a float32 result in L2.
SMALL_RESULT = 2**18
#: Work that `numpy.shares_memory` may do to prove that views do not overlap; views of few axes need less.
OVERLAP_WORK: Any = 10_000
#: Kinds of dtypes that are supported: integers, floats and complex numbers.
INTEGERS, FLOATS = "iu", "fc"
#: Letters for dimensions whose loop variables are longer than one letter.
LETTERS = "ijklmnpqrstuvwxyzabcdefgho"


class NestCall(NestValues):
    """The call that replaces a nest that is one product.

    It has beside `NestValues` the `product`, and returns the value of a sum in a variable last.
    """

    def __init__(self, nest: PythonNest, product: MatrixProduct) -> None:
        super().__init__(nest)
        self.product = product
        self._types: dict[tuple[Any, ...], np.dtype[Any]] = {}
        self.kept = next((name for name in nest.kept if nest.arrays.get(name) == 0), None)
        self.dimensions = product.dimensions
        if self.kept is not None:
            self.results = (*self.results, self.kept)
        self.a, self.b, self.c = (operand_plan(product, nest, name) for name in "abc")

    @cached_property
    def letters(self) -> tuple[str, ...]:
        """A letter for each dimension: its loop variable if that is one letter."""
        taken = {d.index.name for d in self.dimensions if len(d.index.name) == 1}
        free = iter(letter for letter in LETTERS if letter not in taken)
        return tuple(d.index.name if d.index.name in taken else next(free) for d in self.dimensions)

    @cached_property
    def subscripts(self) -> str:
        """The product in the notation of `einsum`."""
        labels = ["".join(self.letters[n] for n in plan.dimensions) for plan in (self.a, self.b, self.c)]
        return f"{labels[0]},{labels[1]}->{labels[2]}"

    def groups(self, symbols: dict[Symbol, str]) -> tuple[list[str], list[str]]:
        """The extents of the dimensions, and for each operand the offsets of its axes."""
        places = [
            f"({''.join(f'{_axis_text(axis, symbols)}, ' for axis in plan.axes)})"
            for plan in (self.a, self.b, self.c)
        ]
        return [extent_text(dimension.extent, symbols) for dimension in self.dimensions], places

    def run(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """As a call, but raises before anything changes if the loops must run as written."""
        found = self.prepared(values)
        counts, places = found.groups
        if min(counts) < 1:
            raise AsWritten("a loop has no iterations")
        if math.prod(counts) < FEWEST_ITERATIONS:
            raise AsWritten("few iterations are faster as written")
        by_name, factors, last = found.arrays, found.scalars, found.last
        alpha, beta = (_number(factor, factors) for factor in (self.product.alpha, self.product.beta))
        together = self.check_types(by_name, [*factors.values()])
        a = self.a.view(by_name[self.a.name], counts, places[0])
        b = self.b.view(by_name[self.b.name], counts, places[1])
        if self.kept is not None:
            with np.errstate(all="ignore"):
                total = einsum(self.subscripts, a, b)[()]
                return (*last, beta * by_name[self.kept] + alpha * total)
        c = self.c.view(by_name[self.c.name], counts, places[2])
        self.check_memory(a, b, c)
        with np.errstate(all="ignore"):
            self.multiply(a, b, c, alpha, beta, together)
        return tuple(last)

    def check_types(self, arrays: dict[str, Any], scalars: list[Any]) -> np.dtype[Any]:
        """The dtype to compute in, after checking that the loops would compute in the same dtype."""
        for name, axes in self.nest.arrays.items():
            array = arrays[name]
            if name == self.kept:
                scalars = [*scalars, array]
                continue
            if type(array) is not np.ndarray:
                raise AsWritten(f"{name} is {type(array).__name__}, not a numpy.ndarray")
            if array.ndim != axes:
                raise AsWritten(f"{name} has {array.ndim} axes and {axes} subscripts")
        for scalar in scalars:
            if type(scalar) not in (int, float, complex) and not isinstance(scalar, np.number):
                raise AsWritten(f"a factor is {type(scalar).__name__}, not a number")
        a, b, c = (arrays[plan.name] for plan in (self.a, self.b, self.c))
        stored = type(c) if self.kept is not None else c.dtype
        key = (a.dtype, b.dtype, stored, *map(type, scalars))
        known = self._types.get(key)
        if known is None:
            known = self._types[key] = self.common_type(a, b, c, scalars)
        self.check_numbers(known, scalars)
        return known

    def common_type(self, a: Array, b: Array, c: Any, scalars: list[Any]) -> np.dtype[Any]:
        """The dtype that a nest computes in, if a product of arrays uses the same one."""
        try:
            factors: np.dtype[Any] = np.result_type(a, b)
            together: np.dtype[Any] = np.result_type(a, b, c, *scalars)
        except TypeError:
            raise AsWritten(f"{a.dtype}, {b.dtype} and the result have no common type") from None
        kinds = INTEGERS if factors.kind in INTEGERS else FLOATS
        target = c.dtype if self.kept is None else together
        if any(kind.kind not in kinds for kind in (a.dtype, b.dtype, together, target)):
            raise AsWritten(f"dtypes of different kinds are mixed: {a.dtype}, {b.dtype} and {target}")
        if kinds is INTEGERS and not factors == together == target:
            raise AsWritten(f"integer dtypes differ: {a.dtype}, {b.dtype} and {target}")
        if kinds is INTEGERS and a.dtype != b.dtype and not self.product.alpha.is_one:
            raise AsWritten(f"a factor times {a.dtype} or {b.dtype} wraps around in one of them")
        if not np.can_cast(together, target, "same_kind"):
            raise AsWritten(f"{together} is stored as {target}")
        return together

    def check_memory(self, a: Array, b: Array, c: Array) -> None:
        """Check that no element of C is also read as a factor, and that none is stored twice."""
        if not c.flags.writeable or (not c.flags.forc and overlaps_itself(c)):
            raise AsWritten(f"{self.c.name} is read-only, or elements of it share memory")
        for name, factor in ((self.a.name, a), (self.b.name, b)):
            if np.may_share_memory(factor, c):
                try:
                    shared = np.shares_memory(factor, c, max_work=OVERLAP_WORK)
                except np.exceptions.TooHardError:
                    shared = True
                if shared:
                    raise AsWritten(f"{name} shares memory with {self.c.name}")

    @cached_property
    def as_matrices(self) -> tuple[bool, bool, bool] | None:
        """Whether A, B, C are the transposes of (m, k), (k, n), (m, n); None if they are not matrices."""
        roles = {letter: d.role for letter, d in zip(self.letters, self.dimensions, strict=True)}
        left, right, result = self.subscripts.replace("->", ",").split(",")
        shapes = [[roles[letter] for letter in part] for part in (left, right, result)]
        wanted = (
            [DimensionRole.M, DimensionRole.K],
            [DimensionRole.K, DimensionRole.N],
            [DimensionRole.M, DimensionRole.N],
        )
        for shape, roles_of in zip(shapes, wanted, strict=True):
            if shape not in (roles_of, roles_of[::-1]):
                return None
        transposes = [shape != roles_of for shape, roles_of in zip(shapes, wanted, strict=True)]
        return transposes[0], transposes[1], transposes[2]

    def multiply(self, a: Array, b: Array, c: Array, alpha: Any, beta: Any, together: np.dtype[Any]) -> None:
        """C = beta*C + alpha*A*B on views: one call if the types agree, else a product that is added."""
        transposes, same = self.as_matrices, a.dtype == b.dtype == c.dtype == together
        removes = alpha == 0 or (beta == 0 and not self.product.beta.is_zero)  # as in BLAS, unlike in Python
        if self.product.triangle is not None:
            assert transposes is not None
            if removes:
                raise AsWritten("a factor is 0, which does not remove NaN and infinity")
            self.triangle(*_transposed(transposes, a, b, c), alpha, beta)
            return
        matrices = _transposed(transposes, a, b, c) if transposes is not None and same else None
        if self.product.alpha.is_one and self.product.beta.is_zero and same:
            if matrices is None:
                einsum(self.subscripts, a, b, out=c)
            else:
                matmul(matrices[0], matrices[1], out=matrices[2])
            return
        if matrices is not None and c.size > SMALL_RESULT and not removes:
            matmul(matrices[0], matrices[1], out=matrices[2], alpha=alpha, beta=beta)
            return
        if matrices is not None:
            a, b, c = matrices
            total = matmul(a, b)
        elif same:
            total = einsum(self.subscripts, a, b)
        else:
            total = einsum(self.subscripts, a, b, dtype=together)
        old: Any = c if self.product.beta.is_one else 0 if self.product.beta.is_zero else beta * c
        if self.product.alpha == Factor(-1):
            np.subtract(old, total, out=c, casting="same_kind")
            return
        scaled = total if self.product.alpha.is_one else alpha * total
        if self.product.beta.is_zero:
            np.copyto(c, scaled, casting="same_kind")
        else:
            np.add(old, scaled, out=c, casting="same_kind")

    def triangle(self, a: Array, b: Array, c: Array, alpha: Any, beta: Any) -> None:
        """One triangle of an (m, k) matrix times its transpose, or of two such products."""
        lower = self.product.triangle is TriangularPart.LOWER
        factors = [a] if self.product.second is None else [a, b.T]
        function = "syrk" if self.product.second is None else "syr2k"
        symmetric(function, factors, c, alpha=alpha, beta=beta, lower=lower)


def refusal_of(nest: PythonNest, product: MatrixProduct) -> str:
    """Why a recognised product cannot be run by a call; empty if it can."""
    used = {product.a.memory.name, product.b.memory.name, product.c.memory.name}
    if beside := sorted(set(nest.arrays) - used):
        return f"reads {beside[0]}, which no product needs"
    if idle := [access for access in accesses(nest.loop) if access not in _needed(nest)]:
        return f"reads elements of {idle[0].memory.name} that no product needs, in line {idle[0].where.line}"
    if product.triangle is not None:
        call = NestCall(nest, product)
        if call.as_matrices is None:
            return "computes a triangle of products of more than two axes"
    return ""


def _needed(nest: PythonNest) -> set[Access]:
    """Accesses of the product; the subscripts of other elements might raise errors that it would not."""
    stores = effects(nest.loop)
    factors = (element.access for store in stores for term in store.form.terms for element in term.elements)
    return {*(store.target for store in stores), *factors}


def _transposed(
    transposes: tuple[bool, bool, bool], a: Array, b: Array, c: Array
) -> tuple[Array, Array, Array]:
    """Three matrices, some of them transposed."""
    return a.T if transposes[0] else a, b.T if transposes[1] else b, c.T if transposes[2] else c


def _number(factor: Factor, scalars: dict[Symbol, Any]) -> Any:
    """The value of a factor."""
    value: Any = factor.number
    for scalar in factor.scalars:
        value = value * scalars[scalar.symbol]
    return value


def _axis_text(axis: AxisPlan, names: dict[Symbol, str]) -> str:
    parts = [axis.start, *(step for _, step in axis.steps)]
    return f"({''.join(f'{polynomial_text(part, names)}, ' for part in parts)})"
