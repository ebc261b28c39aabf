"""Unary problems: what they accept, what is refused and by which class, their meaning in NumPy."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from tilewright.errors import InvalidChoice, InvalidSize, UnsupportedDtype
from tilewright.ops.unary.problem import MAX_UNARY_SIDE, Unary
from tilewright.spec.dtype import DTYPES, F32, FUNCTION_DTYPES
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import Layout


def test_defaults() -> None:
    problem = Unary("identity", 16, 6)
    assert (problem.op, problem.m, problem.n, problem.dtype) == (UnaryOp.IDENTITY, 16, 6, F32)
    assert (problem.a, problem.b) == (Layout.COL, Layout.COL)
    assert Unary("identity").m is Unary("identity").n is None


def test_words_and_members_say_the_same() -> None:
    words = Unary("relu", 5, 6, "f64", b="row")
    members = Unary(UnaryOp.RELU, np.int64(5), np.int32(6), DTYPES["f64"], b=Layout.ROW)
    assert words == members
    assert hash(words) == hash(members)
    assert type(members.m) is int
    with pytest.raises(FrozenInstanceError):
        words.m = 3  # type: ignore[misc]


@pytest.mark.parametrize("size", [1, 2**20, MAX_UNARY_SIDE, None])
def test_sizes_in_range(size: int | None) -> None:
    assert (Unary("exp", size, 1).m, Unary("exp", 1, size).n) == (size, size)


@pytest.mark.parametrize("size", [0, -1, MAX_UNARY_SIDE + 1, 2.5, "8"], ids=str)
@pytest.mark.parametrize("name", ["m", "n"])
def test_sizes_out_of_range(name: str, size: Any) -> None:
    with pytest.raises(InvalidSize, match=f"{name} is {size!r}, must be None or an integer from 1 to"):
        Unary("relu", **{name: size})


def test_the_largest_matrix_has_offsets_of_64_bits() -> None:
    assert MAX_UNARY_SIDE**2 * 16 < 2**63 <= (2 * MAX_UNARY_SIDE) ** 2 * 16


WRONG: list[tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    (("sqrt",), {}, InvalidChoice, "op is 'sqrt', must be one of: zero, identity, relu"),
    ((None,), {}, InvalidChoice, "op is None"),
    (("relu",), {"dtype": "i32"}, UnsupportedDtype, "i32 of relu .* supported: f32, f64"),
    (("exp",), {"dtype": "c64"}, UnsupportedDtype, "c64 of exp"),
    (("identity",), {"dtype": "text"}, UnsupportedDtype, "text"),
    (("relu",), {"a": "row"}, InvalidChoice, "a is 'row'"),
    (("relu",), {"b": "diagonal"}, InvalidChoice, "b is 'diagonal'"),
    (("relu",), {"b": "strided"}, InvalidChoice, "b is 'strided', must be one of: col, row"),
    (("relu",), {"a": "strided", "b": "strided"}, InvalidChoice, "a is 'strided'"),
    (("identity",), {"a": "strided"}, InvalidChoice, "b is 'col', must be one of: strided"),
]


@pytest.mark.parametrize(
    ("given", "options", "kind", "words"), WRONG, ids=[f"{words}" for _, _, _, words in WRONG]
)
def test_what_is_refused(
    given: tuple[Any, ...], options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        Unary(*given, **options)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_which_types_an_operation_has(dtype: Any) -> None:
    for op in UnaryOp:
        if op.computes and dtype not in FUNCTION_DTYPES:
            with pytest.raises(UnsupportedDtype, match=r"; supported: f32, f64, bf16, f16;"):
                Unary(op, dtype=dtype)
        else:
            assert Unary(op, dtype=dtype).dtype is dtype


def test_operands_and_flops() -> None:
    problem = Unary("square", 5, 6, "f64", b="row")
    found = [(each.name, each.rows, each.columns, each.layout.value) for each in problem.operands]
    assert found == [("a", 5, 6, "col"), ("b", 5, 6, "row")]
    assert problem.flops == 30
    assert Unary("identity", 5, 6).flops == Unary("zero", 5, 6).flops == 0
    assert Unary("square", 5).flops is None
    assert Unary("relu", 5, 6, "f64").bytes == 2 * Unary("zero", 5, 6, "f64").bytes == 480  # type: ignore[operator]
    assert Unary("relu", 5).bytes is None


def test_which_operations_are_one_instruction() -> None:
    names = {op.value for op in UnaryOp if op.single}
    assert names == {"zero", "identity", "relu", "square", "reciprocal", "negate"}
    assert {op.value for op in UnaryOp if not op.computes} == {"zero", "identity"}


# --- the meaning ----------------------------------------------------------------------------------------

#: Values of each operation, by hand or from tables.
VALUES: dict[str, dict[float, float]] = {
    "relu": {-2.0: 0.0, 0.0: 0.0, 3.0: 3.0, math.inf: math.inf, -math.inf: 0.0},
    "square": {-3.0: 9.0, 0.5: 0.25, -math.inf: math.inf},
    "negate": {-3.0: 3.0, math.inf: -math.inf},
    "reciprocal": {4.0: 0.25, -0.5: -2.0, math.inf: 0.0},
    "exp": {0.0: 1.0, 1.0: math.e, -math.inf: 0.0, math.inf: math.inf},
    "tanh": {0.0: 0.0, math.inf: 1.0, -math.inf: -1.0, 0.5: 0.46211715726000975},
    "sigmoid": {0.0: 0.5, math.inf: 1.0, -math.inf: 0.0, 2.0: 0.8807970779778823},
    "silu": {0.0: 0.0, 2.0: 1.7615941559557646, math.inf: math.inf, -math.inf: 0.0, -800.0: 0.0},
    "erf": {0.0: 0.0, 0.5: 0.5204998778130465, math.inf: 1.0, -math.inf: -1.0},
    "gelu": {0.0: 0.0, 1.0: 0.8413447460685429, -1.0: -0.15865525393145707, -math.inf: 0.0},
    "gelu_tanh": {0.0: 0.0, 1.0: 0.8411919906082768, -1.0: -0.15880800939172324, -math.inf: 0.0},
}


@pytest.mark.parametrize("op", VALUES)
def test_values(op: str) -> None:
    given = np.array([list(VALUES[op])])
    found = Unary(op, dtype="f64").reference(given)
    np.testing.assert_allclose(found, [list(VALUES[op].values())], rtol=1e-15, atol=1e-300)
    assert np.isnan(Unary(op).reference(np.array([[math.nan]], np.float32))).all()


def test_every_operation_has_a_meaning() -> None:
    assert {op.value for op in UnaryOp} == {"zero", "identity", *VALUES}


def test_signed_zeros() -> None:
    zeros = np.array([[0.0, -0.0]])
    assert np.signbit(Unary("negate").reference(zeros)).tolist() == [[True, False]]
    assert np.signbit(Unary("relu").reference(zeros)).tolist() == [[False, True]]


def test_gelu_keeps_its_digits_where_it_is_small() -> None:
    """x·(1 + erf(x/√2))/2 would be 0 here: Φ(-10) is 7.6e-24."""
    found = Unary("gelu", dtype="f64").reference(np.array([[-10.0]]))
    np.testing.assert_allclose(found, [[-7.619853024160527e-23]], rtol=1e-13)


@pytest.mark.parametrize("dtype", ["i8", "c128", "f32"])
def test_moves_are_exact(dtype: str) -> None:
    given = np.arange(6).reshape(2, 3).astype(DTYPES[dtype].numpy)
    found = Unary("identity", dtype=dtype).reference(given)
    assert found.dtype == given.dtype
    np.testing.assert_array_equal(found, given)
    assert not np.may_share_memory(found, given)
    zeros = Unary("zero", dtype=dtype).reference(given)
    assert (zeros.dtype, zeros.shape) == (given.dtype, (2, 3))
    assert not zeros.any()
