"""Kernels that take tables, alpha and beta: packing widens elements to the type of the sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.calls.operands import data_address
from tilewright.compiler.kernel import Kernel
from tilewright.errors import UnsupportedDtype
from tilewright.macro.blocking import Blocking
from tilewright.ops.contraction.tables.problem import TableProduct
from tilewright.ops.contraction.tables.roles import OrderedAxes
from tilewright.ops.contraction.tables.tables import tables_of
from tilewright.spec.axes import StridedAxis
from tilewright.spec.dtype import parse_dtype

#: Elements of A and B, the sums, and the largest element: products of f32 need f64.
TYPES = [("f32", "f32", "f64", 1 << 20), ("bf16", "bf16", "f32", 4), ("u8", "i8", "i32", 100)]


@pytest.mark.parametrize(("a_type", "b_type", "sums", "largest"), TYPES)
def test_sums_have_their_own_type(a_type: Any, b_type: Any, sums: Any, largest: int) -> None:
    m, n, k = 37, 41, 300
    kernel = Kernel.compiled(TableProduct(a_type, b_dtype=b_type, sums=sums))
    assert isinstance(kernel.blocking, Blocking)
    rng = np.random.default_rng(3)
    least = 0 if a_type == "u8" else -largest
    a = rng.integers(least, largest, (m, k)).astype(parse_dtype(a_type).numpy)
    b = rng.integers(-largest, largest, (n, k)).astype(parse_dtype(b_type).numpy)
    acc = parse_dtype(sums)
    exact = np.int64 if acc.is_integer else np.float64
    product = a.astype(exact) @ b.astype(exact).T
    axes = OrderedAxes(
        [],
        [StridedAxis(m, k, None, n)],
        [StridedAxis(n, None, k, 1)],
        [StridedAxis(k, 1, 1, None)],
    )
    tables = tables_of(acc, kernel.machine, kernel.blocking, axes)
    for alpha, beta, start in ((1, 0, 0 if acc.is_integer else np.nan), (3, 2, 5)):
        c = np.full((m, n), start, acc.numpy)
        operands = (c, a, b)
        sizes = (*tables.sizes.values(), alpha, beta)
        kernel.launch((*map(data_address, operands), *tables.addresses, *sizes), tables.work)
        expected = alpha * product + (beta * start if beta else 0)
        assert np.array_equal(c, expected.astype(acc.numpy))


def test_sums_hold_elements() -> None:
    with pytest.raises(UnsupportedDtype, match="f32"):
        TableProduct("f64", sums="f32")
    with pytest.raises(UnsupportedDtype):
        TableProduct("f32", sums="bf16")
