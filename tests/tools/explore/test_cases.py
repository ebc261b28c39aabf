"""Cases: names, sizes, operands, and the check of a result against float64."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.errors import InvalidChoice, InvalidSize, UnsupportedDtype, WrongResult
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import DTYPES, F32, F64
from tilewright.spec.problem import ProductTypes, parse_types
from tilewright.tools.explore.cases import CHECK_ALL_BELOW, Case, error_bound, parse_sizes

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
    u32, u64 = 2.0**-24, 2.0**-53
    expected = 102 * u32 / (1 - 102 * u32) + 102 * u64 / (1 - 102 * u64)
    (bound,) = error_bound(ProductTypes.parse("f32"), np.full((1, 100), -2.0), np.ones((100, 1))).flat
    assert bound == pytest.approx(200 * expected, rel=1e-12)


def test_error_bound_of_a_complex_part_has_twice_the_terms() -> None:
    u32, u64 = 2.0**-24, 2.0**-53
    expected = 202 * u32 / (1 - 202 * u32) + 202 * u64 / (1 - 202 * u64)
    a, b = np.full((1, 100), 3 - 1j), np.full((100, 1), 1 + 0.5j)
    (bound,) = error_bound(ProductTypes.parse("c64"), a, b).flat
    assert bound == pytest.approx(100 * max(3 + 0.5, 1.5 + 1) * expected, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "unit", "least"), [("bf16", 2.0**-8, 2.0**-134), ("f16", 2.0**-11, 2.0**-25)]
)
def test_error_bound_of_a_narrow_result_has_half_an_ulp(name: str, unit: float, least: float) -> None:
    types, wide = ProductTypes.parse(name), ProductTypes.parse(name, out_dtype="f32")
    a, b = np.full((1, 4), 1.0), np.full((4, 1), 0.5)
    sums, bound = error_bound(wide, a, b)[0, 0], error_bound(types, a, b)[0, 0]
    assert bound == pytest.approx(sums + unit * (2.0 + sums), rel=1e-12)
    assert error_bound(types, 0 * a, b)[0, 0] == least
    assert error_bound(wide, 0 * a, b)[0, 0] == 0


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


TYPES = {
    "bf16": ("bf16", "bf16", "bf16"),
    "u8i8": ("u8", "i8", "i32"),
    "i8": ("i8", "i8", "i8"),
    "float16": ("f16", "f16", "f16"),
    "c128": ("c128", "c128", "c128"),
    "i4u4": ("i4", "u4", "i32"),
}


@pytest.mark.parametrize(("text", "names"), TYPES.items())
def test_element_types_of_a_word(text: str, names: tuple[str, str, str]) -> None:
    types = parse_types(text)
    assert (str(types.a), str(types.b), str(types.c)) == names
    assert parse_sizes("4", text)[0].gemm.types == types


def test_the_type_of_c_may_be_another() -> None:
    (case,) = parse_sizes("4", "i8", out_dtype="i32")
    assert case.gemm.types.name == "i8i32"
    assert case.with_types(parse_types("f32")) == Case(Gemm(4, 4, 4))
    with pytest.raises(UnsupportedDtype):
        parse_sizes("4", "i8", out_dtype="f32")
    with pytest.raises(UnsupportedDtype, match="u8i9"):
        parse_sizes("4", "u8i9")


ROUNDED = ("f64", "f32", "bf16", "f16", "f8e4m3", "f8e5m2", "c64", "c128")


def computed(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Operands, and the right C: NumPy's exact one, rounded or wrapped around."""
    a, b, _ = case.operands(seed=4)
    return a, b, case.gemm.reference(a, b).astype(case.gemm.out_dtype.numpy)


@pytest.mark.parametrize("name", DTYPES)
def test_operands_and_check_of_every_type(name: str) -> None:
    (case,) = parse_sizes("24x19x33", name)
    a, b, c = case.operands(seed=1)
    assert {array.dtype for array in (a, b, c)} == {case.gemm.dtype.numpy}
    if name in ROUNDED:
        assert np.isnan(c.astype(complex)).all()
        assert abs(a.astype(complex).mean()) < 0.2
    else:
        values = a.astype(np.int64)
        bits = case.gemm.dtype.significand
        assert int(values.max()) - int(values.min()) > 0.9 * 2**bits - 1
        assert (values.min() < 0) == name.startswith("i")
    with pytest.raises(WrongResult):  # nothing was written
        case.check("numpy", a, b, c)
    a, b, c = computed(case)
    case.check("numpy", a, b, c)


@pytest.mark.parametrize("name", DTYPES)
def test_the_smallest_wrong_element_is_seen(name: str) -> None:
    """An integer off by one, and a float by a few roundings of the result."""
    (case,) = parse_sizes("6x5x4", name)
    a, b, c = computed(case)
    step = np.int64(1) if name not in ROUNDED else 64 * case.gemm.out_dtype.unit_roundoff
    wrong = c.astype(np.complex128 if name.startswith("c") else np.float64 if name in ROUNDED else np.int64)
    wrong[2, 3] += step if name not in ROUNDED else step * (np.abs(wrong).max() + 1)
    c[2, 3] = wrong.astype(c.dtype)[2, 3]
    with pytest.raises(WrongResult, match="row 2, column 3"):
        case.check("numpy", a, b, c)


def test_sums_of_integers_wrap_around() -> None:
    (case,) = parse_sizes("4x4x300", "i64")
    a, b, c = computed(case)
    assert np.abs(a.astype(float) @ b.astype(float)).max() > 2.0**70
    case.check("numpy", a, b, c)


def test_complex_products_count_eight_operations() -> None:
    assert parse_sizes("2x3x4", "c64")[0].flops == 8 * 2 * 3 * 4


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
