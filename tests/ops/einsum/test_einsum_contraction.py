"""Subscripts as contractions: types and strides of dimensions, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import (
    ContractionOperands,
    ContractionPrimitive,
    InvalidOperand,
    LabelSizes,
    MalformedSubscripts,
    OperandCount,
)

#: Subscripts and shapes: type, size and strides in in0, in1, out of each dimension.
DIMENSIONS: dict[tuple[str, tuple[tuple[int, ...], ...]], list[tuple[str, int, int, int, int]]] = {
    ("ij,jk->ik", ((2, 3), (3, 4))): [("m", 2, 3, 0, 4), ("n", 4, 0, 1, 1), ("k", 3, 1, 4, 0)],
    ("bij,bjk->kbi", ((5, 2, 3), (5, 3, 4))): [
        *(("n", 4, 0, 1, 10), ("c", 5, 6, 12, 2), ("m", 2, 3, 0, 1), ("k", 3, 1, 4, 0)),
    ],
    ("i,i", ((7,), (7,))): [("k", 7, 1, 1, 0)],
    ("ii,i->i", ((7, 7), (7,))): [("c", 7, 8, 1, 1)],
    ("ij,k->ik", ((2, 3), (4,))): [("m", 2, 3, 0, 4), ("n", 4, 0, 1, 1), ("k", 3, 1, 0, 0)],
    ("i,jk->j", ((2,), (3, 4))): [("n", 3, 0, 4, 1), ("k", 2, 1, 0, 0), ("k", 4, 0, 1, 0)],
    ("...ij,jk->...ik", ((5, 2, 3), (3, 4))): [
        *(("m", 5, 6, 0, 8), ("m", 2, 3, 0, 4), ("n", 4, 0, 1, 1), ("k", 3, 1, 4, 0)),
    ],
    ("bij,bjk->bik", ((1, 2, 3), (5, 3, 4))): [
        *(("n", 5, 0, 12, 8), ("m", 2, 3, 0, 4), ("n", 4, 0, 1, 1), ("k", 3, 1, 4, 0)),
    ],
    ("abc->cab", ((2, 3, 4),)): [("c", 4, 1, 0, 6), ("c", 2, 12, 0, 3), ("c", 3, 4, 0, 1)],
    ("ii->i", ((3, 3),)): [("c", 3, 4, 0, 1)],
}


@pytest.mark.parametrize("case", DIMENSIONS)
def test_dimensions(case: tuple[str, tuple[tuple[int, ...], ...]]) -> None:
    subscripts, shapes = case
    found = tw.einsum_contraction(subscripts, *shapes)
    assert not found.is_scheduled
    assert [(d.type.value, d.size, d.in0, d.in1, d.out) for d in found.dimensions] == DIMENSIONS[case]


@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "ji,kj->ki", "bij,bkj->ikb", "ii,ij->j", "ij,ij->ij"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int32])
def test_arrays_keep_strides_and_type(subscripts: str, dtype: Any) -> None:
    first, second = subscripts.partition("->")[0].split(",")
    sizes = dict.fromkeys(subscripts, 3) | {"k": 4}
    random = np.random.default_rng(0)
    a, b = (
        random.integers(-3, 4, [2 * sizes[label] for label in term]).astype(dtype)[
            tuple(slice(0, None, 2) for _ in term)
        ]
        for term in (first, second)
    )
    found = tw.einsum_contraction(subscripts, a, b)
    assert found.dtype.numpy == np.dtype(dtype)
    expected = np.einsum(subscripts, a, b)
    np.testing.assert_array_equal(found.reference(a, b), expected)


def test_choices() -> None:
    found = tw.einsum_contraction("ij->ji", (2, 3), dtype="f64", main="relu", out_strides=(2, 9))
    assert [dimension.out for dimension in found.dimensions] == [2, 9]
    assert str(found).startswith("contraction dtype=f64 in1_dtype=f64 out_dtype=f64 main=relu first=zero")
    found = tw.einsum_contraction("i,i", (2,), (2,), first="none", last="relu")
    assert (found.first.value, str(found.last)) == ("none", "relu")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("i,i,i", (2,), (2,), (2,)), ContractionOperands),
        (("ij,jk", (2, 3)), OperandCount),
        (("ij,jk", (2, 3), (4, 5)), LabelSizes),
        (("ij,j-", (2, 3), (3,)), MalformedSubscripts),
        (("ij->i", (2, 3)), ContractionPrimitive),
        (("i,i", (2,), 3), InvalidOperand),
        (("i,i", (2,), np.zeros(2, [("a", "i1"), ("b", "f4")])["b"]), InvalidOperand),
    ],
)
def test_what_is_refused(arguments: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        tw.einsum_contraction(*arguments)
