"""Cases: names, sizes, operands, and the check of a result against float64."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.errors import InvalidChoice, InvalidSize, UnsupportedDtype, WrongResult
from tilewright.explore.cases import CHECK_ALL_BELOW, Case, error_bound, parse_sizes
from tilewright.spec.dtype import F32, F64
from tilewright.spec.problem import Gemm

NAMES = {
    ("512", "n"): "gemm 512x512x512 nn",
    ("64x2048x256", "n"): "gemm 64x2048x256 nn",
    ("8", "a"): "gemm 8x8x8 tn",
    ("8", "b"): "gemm 8x8x8 nt",
    ("8", "ab"): "gemm 8x8x8 tt",
}


@pytest.mark.parametrize(("given", "name"), NAMES.items())
def test_names(given: tuple[str, str], name: str) -> None:
    (case,) = parse_sizes(given[0], "f32", given[1])
    assert case.name == name
    assert case.label == given[0]


def test_sizes_are_mnk_and_duplicates_are_dropped() -> None:
    cases = parse_sizes("2x3x4, 5,5")
    assert [case.sizes for case in cases] == [(2, 3, 4), (5, 5, 5)]
    assert cases[0].flops == 2 * 2 * 3 * 4


@pytest.mark.parametrize("text", ["", "12x13", "a", "1x2x3x4", "-1", "1.5", "8,"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(InvalidChoice, match="size"):
        parse_sizes(text)


def test_other_wrong_words() -> None:
    with pytest.raises(InvalidSize, match="m is 0"):
        parse_sizes("0")
    with pytest.raises(InvalidChoice, match="trans"):
        parse_sizes("8", trans="ba")
    with pytest.raises(UnsupportedDtype):
        parse_sizes("8", "f37")
    with pytest.raises(InvalidSize, match="batch"):
        Case(Gemm(2, 2, 2), batch=0)
    with pytest.raises(InvalidSize, match="n is None"):
        Case(Gemm(2, None, 2))
    with pytest.raises(InvalidChoice, match="layout"):
        Case(Gemm(2, 2, 2, a="strided"))


@pytest.mark.parametrize("trans", ["n", "a", "b", "ab"])
@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_operands(trans: str, dtype: object) -> None:
    (case,) = parse_sizes("5x7x3", dtype, trans)  # type: ignore[arg-type]
    a, b, c = case.operands(seed=1)
    assert (a.shape, b.shape, c.shape) == ((5, 3), (3, 7), (5, 7))
    assert {array.dtype for array in (a, b, c)} == {case.gemm.dtype.numpy}
    assert (a.flags.f_contiguous, b.flags.f_contiguous) == ("a" in trans, "b" in trans)
    assert np.isnan(c).all()
    assert np.count_nonzero(a) == a.size
    assert np.array_equal(a, case.operands(seed=1)[0])
    assert not np.array_equal(a, case.operands(seed=2)[0])


def test_batched_operands() -> None:
    a, b, c = Case(Gemm(2, 3, 4, b="col"), batch=5).operands(seed=1)
    assert (a.shape, b.shape, c.shape) == ((5, 2, 4), (5, 4, 3), (5, 2, 3))
    assert b.strides == (48, 4, 16)


def test_error_bound_is_gamma_of_both_precisions() -> None:
    k = 100
    u32, u64 = 2.0**-24, 2.0**-53
    expected = 102 * u32 / (1 - 102 * u32) + 102 * u64 / (1 - 102 * u64)
    assert error_bound(F32, k) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("batch", [1, 3])
def test_check_accepts_a_right_product_and_names_the_wrong_element(batch: int) -> None:
    case = Case(Gemm(6, 5, 4), batch=batch)
    a, b, _ = case.operands(seed=4)
    c = a @ b
    case.check("numpy", a, b, c)
    c[..., 2, 3] += np.float32(1e-5)
    with pytest.raises(WrongResult, match="row 2, column 3") as caught:
        case.check("numpy", a, b, c)
    assert caught.value.fields["system"] == "numpy"


def test_check_refuses_what_was_not_written() -> None:
    case = Case(Gemm(6, 5, 4))
    a, b, c = case.operands(seed=4)
    c[1:] = (a @ b)[1:]
    with pytest.raises(WrongResult, match="row 0"):
        case.check("numpy", a, b, c)


@pytest.mark.parametrize("wrong", ["row", "column"])
def test_sampled_check_sees_a_whole_wrong_row_or_column(wrong: str) -> None:
    """A large product is compared on sampled columns and rows, which cross every wrong line."""
    case = Case(Gemm(2048, 2048, CHECK_ALL_BELOW // 2**22 + 1))
    a, b, _ = case.operands(seed=4)
    c = a @ b
    case.check("numpy", a, b, c)
    where = (1033, slice(None)) if wrong == "row" else (slice(None), 1033)
    c[where] += 1
    with pytest.raises(WrongResult, match=f"{wrong} 1033"):
        case.check("numpy", a, b, c)
