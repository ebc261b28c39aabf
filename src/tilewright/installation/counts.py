"""What `tilewright.show_calls` and `tilewright.explain` say of NumPy's own functions."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.repeated import CallCount, counted_elsewhere
from tilewright.compiler.explanation import Explanation
from tilewright.installation.rows import BLAS_LETTERS, LETTERS, PRODUCTS, ProductUfunc
from tilewright.installation.state import state
from tilewright.installation.thresholds import MOST_JOINED, NEVER, ShapeThresholds, least_work, shapes_of
from tilewright.ops.explain import installed_functions
from tilewright.ops.gemm.kernel import exact_fit
from tilewright.ops.gemm.operands import product_types
from tilewright.ops.gemm.small_products import ExactSizeKey
from tilewright.ops.matmul.explain import explain_matmul

_SMALL = "NumPy's own: a small product, or a layout that it does better"
_OTHER = "NumPy's own: a small call, or other arguments than plain arrays"


def counts() -> list[CallCount]:
    """Calls of NumPy's functions since the first `install`, of universal functions for each element type."""
    current, found = state(), []
    if current.loops is not None:
        for letter, row in zip(LETTERS, current.loops.table.rows, strict=True):
            for number, product in enumerate(PRODUCTS):
                name = f"numpy.{product.name} {np.dtype(letter).name}"
                found.append(_count(name, int(row.taken[number]), int(row.passed_on[number]), _SMALL))
    for name, function in current.names.functions.items():
        found.append(_count(f"numpy.{name}", function.taken, function.passed_on, _OTHER))
    return _joined([one for one in found if one.repeated or one.python])


def _count(name: str, taken: int, passed_on: int, reason: str) -> CallCount:
    return CallCount(name, taken, 0, {reason: passed_on} if passed_on else {})


def _joined(found: list[CallCount]) -> list[CallCount]:
    """Counts by name: `long` and `long long` are one type where they have as many bits."""
    joined: dict[str, CallCount] = {}
    for one in found:
        before = joined.get(one.function)
        if before is not None:
            python = {
                reason: before.python.get(reason, 0) + one.python.get(reason, 0)
                for reason in (*before.python, *one.python)
            }
            one = one._replace(repeated=before.repeated + one.repeated, python=python)  # noqa: PLW2901
        joined[one.function] = one
    return list(joined.values())


def explain_product(number: int, a: Any, b: Any, /) -> Explanation:
    """How a call of one of NumPy's products runs now."""
    product = PRODUCTS[number]
    a, b = np.asarray(a), np.asarray(b)
    subject = f"numpy.{product.name} of {a.dtype} {a.shape} and {b.dtype} {b.shape}"
    own = Explanation(subject, "NumPy's own", "", (), (), ())
    dtype = np.result_type(a, b)
    loops = state().loops
    if not state().active or loops is None:
        return replace(own, strategy="NumPy's own loop: tilewright.install() was not called")
    if dtype.char not in LETTERS:
        return replace(own, strategy=f"NumPy's own loop: kernels do not take {dtype}")
    least = least_work(product, dtype.char)
    if least == NEVER:
        return replace(own, strategy=f"NumPy's own loop for all {dtype}")
    sizes = _sizes(number, a, b)
    work = sizes.batch * sizes.rows * sizes.columns * sizes.depth
    condition = f"{work} multiply-adds >= {least}: {'yes' if work >= least else 'no'}"
    if work < least:
        return replace(own, strategy="NumPy's own loop: a small product", decisions=(condition,))
    exact = _exact_shape(product, sizes, a, b, dtype)
    kernel = None if exact is None else loops.supplier.exact_kernels.get(exact)
    if kernel is not None:
        strategy = "a kernel of exact sizes, in NumPy's own loop"
        return replace(own, kernel=kernel.name, strategy=strategy, decisions=(condition,))
    if not sizes.taken(shapes_of(dtype.char)):
        if exact is not None and sizes.batch > 1:
            later = f"from {exact.products_to_repay:,} products of this shape on, a kernel of exact sizes"
            strategy = f"NumPy's own loop; {later}"
            return replace(own, strategy=strategy, decisions=(condition,))
        text = f"{sizes.rows} rows, {sizes.columns} columns, {sizes.depth} deep, {sizes.batch} times"
        return replace(own, strategy="NumPy's own loop: faster for this shape", decisions=(condition, text))
    if dtype.char in BLAS_LETTERS and product.name == "matmul" and _of_transpose(a, b):
        return replace(own, strategy="NumPy's own loop: B is A transposed, of which BLAS computes a triangle")
    if product.name != "matmul":
        return replace(own, kernel="that of matmul", strategy="the kernel of matmul", decisions=(condition,))
    found = explain_matmul(a.astype(dtype, copy=False), b.astype(dtype, copy=False))
    notes = tuple(note for note in found.notes if not note.startswith(("through Python", "native entry")))
    return replace(
        found, subject=subject, decisions=(condition, *found.decisions), notes=(*notes, "in NumPy's own loop")
    )


def _exact_shape(product: ProductUfunc, sizes: _Sizes, a: Any, b: Any, dtype: Any) -> ExactSizeKey | None:
    """The shape of a product, or of those of a batch, that a kernel of exact sizes may compute."""
    row = state().loops.table.rows[LETTERS.index(dtype.char)]  # type: ignore[union-attr]
    one_product = sizes.batch > 1 and sizes.one_b
    if product.name != "matmul" or one_product or min(a.ndim, b.ndim) < 2 or 0 in (*a.shape, *b.shape):
        return None
    one_type = product_types(dtype, dtype, dtype).a
    a, b = (one.astype(dtype, copy=False) for one in (a, b))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = np.empty((*batch, sizes.rows, sizes.columns), dtype)
    found = exact_fit(a, b, result, one_type, row.exact, row.ahead)
    return None if found is None else found.shape


class _Sizes(NamedTuple):
    """Sizes of a batch of products, and which operand it repeats for each."""

    batch: int
    rows: int
    columns: int
    depth: int
    one_a: bool
    one_b: bool

    def taken(self, limits: ShapeThresholds) -> bool:
        """Whether kernels take the shape, as the loop in machine code decides it."""
        rows, columns = self.rows, self.columns
        if self.batch > 1 and rows == 1 and self.one_b:
            rows = self.batch
        elif self.batch > 1 and columns == 1 and self.one_a:
            columns = self.batch
        if rows * columns * self.depth < limits.least_product:
            return False
        joined = (rows, columns) != (self.rows, self.columns)
        work = self.rows * self.columns * self.depth
        if joined and (min(rows, columns) > 1 or work <= MOST_JOINED):
            return True
        if self.batch == 1 and work < limits.least_alone:
            return False
        flat = columns < limits.least_columns and rows > limits.few_rows
        return self.depth >= limits.least_depth and min(rows, columns) >= limits.least_side and not flat


def _sizes(number: int, a: Any, b: Any) -> _Sizes:
    """Sizes of a call whose operands fit."""
    vector_a = PRODUCTS[number].a == "k" or a.ndim == 1
    vector_b = PRODUCTS[number].b == "k" or b.ndim == 1
    batch_a, batch_b = a.shape[: -1 if vector_a else -2], b.shape[: -1 if vector_b else -2]
    batch = math.prod(np.broadcast_shapes(batch_a, batch_b))
    rows, columns = 1 if vector_a else a.shape[-2], 1 if vector_b else b.shape[-1]
    return _Sizes(batch, rows, columns, a.shape[-1], math.prod(batch_a) == 1, math.prod(batch_b) == 1)


def _of_transpose(a: Any, b: Any) -> bool:
    """Return whether two matrices are one and its transpose."""
    return bool(
        a.ndim == b.ndim == 2
        and a.ctypes.data == b.ctypes.data
        and a.shape == b.shape[::-1]
        and a.strides == b.strides[::-1]
    )


def register() -> None:
    """Makes both functions known where they are asked for."""
    if counts not in counted_elsewhere:
        counted_elsewhere.append(counts)
    for number, product in enumerate(PRODUCTS):
        ufunc = getattr(np, product.name, None)
        if ufunc is not None:
            installed_functions[ufunc] = partial(explain_product, number)
