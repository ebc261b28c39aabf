"""The standard's rules for products: types, shapes, axes, libraries; random calls beside array-api-strict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tilewright as tw
from tilewright import errors

xp = tw.array_api

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
REALS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")


def values(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """Small numbers whose products and sums are exact."""
    random = np.random.default_rng(seed)
    low = 0 if dtype.startswith("u") else -2
    found = random.integers(low, 3, shape).astype(dtype)
    return (found + 1j * random.integers(-2, 3, shape)).astype(dtype) if dtype in COMPLEX else found


def strict() -> Any:
    return pytest.importorskip("array_api_strict")


# --- types ------------------------------------------------------------------------------------------


def promoted(a: str, b: str) -> str | None:
    """The standard's table, as array-api-strict has it; None where it has no type."""
    module = strict()
    try:
        found = module.result_type(getattr(module, a), getattr(module, b))
    except TypeError:
        return None
    return str(found).rpartition(".")[2]


@pytest.mark.parametrize("a", [*SIGNED, *UNSIGNED, *REALS, *COMPLEX])
def test_types_are_promoted_as_the_standard_says(a: str) -> None:
    for b in (*SIGNED, *UNSIGNED, *REALS, *COMPLEX):
        x1, x2, expected = values((2, 3), a), values((3, 2), b, 1), promoted(a, b)
        if expected is None:
            for function in (xp.matmul, xp.tensordot, lambda x1, x2: xp.einsum("ij,jk", x1, x2)):
                with pytest.raises(errors.MixedKinds):
                    function(x1, x2)
        else:
            found = xp.matmul(x1, x2)
            assert found.dtype == expected
            np.testing.assert_array_equal(found, x1.astype(expected) @ x2.astype(expected))


@pytest.mark.parametrize("function", [xp.matmul, xp.vecdot, xp.tensordot, xp.linalg.outer])
def test_what_is_no_number_is_refused(function: Any) -> None:
    with pytest.raises(errors.NotNumeric, match="dtype bool"):
        function(np.ones(3, bool), np.ones(3, bool))
    with pytest.raises(errors.NotStandardArray):
        function([1.0, 2.0], np.ones(2))
    with pytest.raises(errors.NotStandardArray):
        function(np.ones(2), 2.0)


def test_einsum_refuses_bool() -> None:
    with pytest.raises(errors.NotNumeric, match="operand 1"):
        xp.einsum("i,i", np.ones(2), np.ones(2, bool))


# --- shapes and axes ----------------------------------------------------------------------------------


def test_results_without_axes_are_arrays() -> None:
    vector = np.ones(3, np.float32)
    for found in (
        xp.matmul(vector, vector),
        xp.vecdot(vector, vector),
        xp.tensordot(vector, vector, axes=1),
        xp.einsum("i,i", vector, vector),
    ):
        assert type(found) is np.ndarray
        assert found.shape == ()
        assert found.dtype == np.float32


def test_scalars_are_refused() -> None:
    for function in (xp.matmul, xp.vecdot, xp.linalg.outer):
        with pytest.raises(errors.TooFewAxes):
            function(np.float64(1), np.ones(3))
    with pytest.raises(errors.TooFewAxes):
        xp.matrix_transpose(np.ones(3))
    with pytest.raises(errors.TooFewAxes, match="exactly one axis"):
        xp.linalg.outer(np.ones((2, 2)), np.ones(3))


def test_the_axis_of_vecdot_counts_from_the_last() -> None:
    x1, x2 = values((2, 3, 4), "float64"), values((3, 1), "float64", 1)
    np.testing.assert_array_equal(xp.vecdot(x1, x2, axis=-2), (x1 * x2).sum(-2))
    for axis in (0, 1, -3):
        with pytest.raises(errors.NegativeAxisNeeded, match="from -2 to -1"):
            xp.vecdot(x1, x2, axis=axis)
    with pytest.raises(errors.ContractionAxes):
        xp.vecdot(np.ones((2, 3)), np.ones((2, 1)))  # the axis itself does not broadcast


def test_vecdot_conjugates_the_first_operand() -> None:
    x1, x2 = values((3, 4), "complex64"), values((3, 4), "complex128", 1)
    np.testing.assert_array_equal(xp.vecdot(x1, x2), np.sum(np.conj(x1) * x2, -1))


@pytest.mark.parametrize("axes", [0, 1, 2, ((0,), (1,)), ((-1, 0), (-2, -1)), ((), ())])
def test_axes_of_tensordot(axes: Any) -> None:
    x1, x2 = values((3, 3, 3), "float64"), values((3, 3), "float64", 1)
    np.testing.assert_array_equal(xp.tensordot(x1, x2, axes=axes), np.tensordot(x1, x2, axes))


@pytest.mark.parametrize("axes", [3, -1, ((0,), (0, 1)), ((5,), (0,)), ((0, 0), (0, 1))])
def test_wrong_axes_of_tensordot(axes: Any) -> None:
    with pytest.raises(errors.ContractionAxes):
        xp.tensordot(np.ones((3, 3)), np.ones((3, 3)), axes=axes)


def test_matrix_transpose_is_a_view_of_any_type() -> None:
    x = np.ones((5, 2, 3), bool)
    found = xp.linalg.matrix_transpose(x)
    assert found.shape == (5, 3, 2)
    assert np.shares_memory(found, x)


# --- random calls -------------------------------------------------------------------------------------

sides = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@settings(max_examples=40, deadline=None)
@given(sides, sides, st.sampled_from([*SIGNED, *UNSIGNED, *REALS, *COMPLEX]), st.data())
def test_random_calls_are_those_of_array_api_strict(
    first: tuple[int, ...], second: tuple[int, ...], dtype: str, data: st.DataObject
) -> None:
    """The same value and type, or an error of both."""
    module = strict()
    name = data.draw(st.sampled_from(["matmul", "vecdot", "tensordot", "matrix_transpose"]))
    options: dict[str, Any] = {}
    if name == "vecdot":
        least = min(len(first), len(second))
        assume(least > 0)  # array-api-strict lets operands of fewer axes pass
        options["axis"] = data.draw(st.integers(-least, -1))
    elif name == "tensordot":
        options["axes"] = data.draw(st.one_of(st.integers(0, 3), st.just(((-1,), (0,)))))
    operands = [module.asarray(values(shape, dtype, seed)) for seed, shape in enumerate((first, second))]
    if name == "matrix_transpose":
        operands = operands[:1]
    try:
        expected = getattr(module, name)(*operands, **options)
    except (ValueError, TypeError, IndexError):
        with pytest.raises((errors.TilewrightError, ValueError)):
            getattr(xp, name)(*operands, **options)
        return
    found = getattr(xp, name)(*operands, **options)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(np.from_dlpack(found), np.from_dlpack(expected))


# --- libraries ----------------------------------------------------------------------------------------


def libraries() -> list[str]:
    return ["numpy", "array_api_strict", "torch", "jax.numpy"]


@pytest.mark.parametrize("name", libraries())
def test_results_are_of_the_library_of_the_operands(name: str) -> None:
    module = pytest.importorskip(name)
    a, b = (module.asarray(values(shape, "float32", seed)) for seed, shape in enumerate([(2, 3), (3, 4)]))
    expected = np.asarray(a) @ np.asarray(b)
    for found in (xp.matmul(a, b), xp.tensordot(a, b, axes=1), xp.einsum("ij,jk->ik", a, b)):
        assert type(found) is type(a)
        assert found.dtype == a.dtype
        np.testing.assert_array_equal(np.asarray(found), expected)
    assert type(xp.vecdot(a, a)) is type(a)
    assert type(xp.matrix_transpose(a)) is type(a)
    assert type(xp.linalg.outer(a[0, :], b[:, 0])) is type(a)


def test_libraries_are_not_mixed() -> None:
    with pytest.raises(errors.SeveralLibraries, match="array_api_strict and numpy"):
        xp.matmul(strict().ones((2, 2)), np.ones((2, 2)))


class Exporter:
    """An array of a library that only exports its memory."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_an_exporter_without_a_namespace_gets_an_array_of_numpy() -> None:
    a = Exporter(np.ones((2, 3)))
    found = xp.matmul(a, Exporter(np.ones((3, 2))))
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, np.full((2, 2), 3.0))
    assert xp.matrix_transpose(a).shape == (3, 2)


def test_found_by_name() -> None:
    assert "array_api" in dir(tw)
    assert tw.array_api.linalg.matmul is xp.matmul
