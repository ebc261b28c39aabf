"""Epilogues on this host: `matmul` with bias and activation, kernels with every operand, and refusals."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any, Literal

import numpy as np
import pytest
from support import LAYOUTS, Array, filled, gamma, host_rows, no_flags, rough, run_python, unaligned
from tiers import crossed

import tilewright as tw
from tilewright.errors import InvalidScalar, OperandMismatch, StepDtype, StepOperands, StepShape
from tilewright.spec.epilogue import Activation, Bias, Clamp, Epilogue, Residual, Scale
from tilewright.spec.functions import UnaryOp, meaning
from tilewright.typing import ActivationName

ACTIVATIONS: tuple[ActivationName, ...] = ("relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh")
#: Every branch of `auto`: dots, one deep row, few rows streamed, tiles in place, loops of several depths.
SIZES = (
    *((1, 1, 1), (1, 33, 700), (40, 1, 900), (5, 70, 64), (3, 5000, 900), (100, 130, 70)),
    *((64, 64, 0), (61, 300, 1500), (230, 190, 1100)),
)
#: The largest error of an activation in ulps (`micro/elements/math.py`), and the steepest slope (of GELU).
ULPS, SLOPE = 4, 1.13


def activated(values: Array, activation: ActivationName | None) -> Array:
    return values if activation is None else meaning(UnaryOp(activation), values)


def assert_close(
    found: Array, a: Array, b: Array, bias: Array | float, activation: ActivationName | None
) -> None:
    """Promise 4 on the sums and the bias, through a function of slope SLOPE, and the function's own ulps."""
    wide = [np.asarray(array).astype(np.float64) for array in (a, b, bias)]
    exact = wide[0] @ wide[1] + wide[2]
    size = abs(wide[0]) @ abs(wide[1]) + abs(wide[2])
    acc = np.result_type(a.dtype, np.float32) if a.dtype.kind == "f" else np.dtype(np.float32)
    expected = activated(exact, activation)
    bound = SLOPE * gamma(a.shape[-1] + 3, acc) * size + ULPS * float(np.finfo(acc).eps) * abs(expected)
    if found.dtype.itemsize < acc.itemsize:
        half_ulp = 2.0**-8 if found.dtype.name == "bfloat16" else 2.0**-11
        bound = bound + half_ulp * (abs(expected) + bound) + 2.0**-25
    bound = bound + float(np.finfo(acc).tiny)
    wrong = ~(abs(found.astype(np.float64) - expected) <= bound)
    assert not wrong.any(), f"{np.count_nonzero(wrong)} of {found.size} outside, {a.shape} {activation}"


# --- matmul ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("activation", "dtype", "axis"),
    crossed([None, *ACTIVATIONS], product(["f4", "f8"], ["columns", "rows"]), 4),
)
def test_every_branch(activation: ActivationName | None, dtype: str, axis: str) -> None:
    for number, (m, n, k) in enumerate(SIZES):
        a, b = rough((m, k), dtype, number), rough((k, n), dtype, number + 1)
        bias = rough((n,), dtype, 3) if axis == "columns" else rough((m, 1), dtype, 4)
        assert_close(tw.matmul(a, b, bias=bias, activation=activation), a, b, bias, activation)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_floats_are_rounded_once(dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    for m, n, k in ((1, 40, 300), (33, 70, 900), (70, 1, 40), (100, 90, 3000)):
        a, b, bias = (rough(shape, "f4", n).astype(kind) for shape in ((m, k), (k, n), (n,)))
        for activation in ("relu", "gelu"):
            found = tw.matmul(a, b, bias=bias, activation=activation)
            assert found.dtype == kind
            assert_close(found, a, b, bias, activation)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_out_and_inputs(layout: str) -> None:
    """A column-major out is computed transposed: the bias of columns is one of rows."""
    a, b = filled((37, 50), seed=1), filled((50, 45), seed=2)
    place = LAYOUTS[layout]
    for bias in (filled((45,), seed=3), filled((37, 1), seed=4)):
        out = place(np.full((37, 45), np.nan, np.float32))
        given = place(bias) if bias.ndim == 1 else place(bias[:, 0])[:, np.newaxis]
        assert tw.matmul(place(a), place(b), out=out, bias=given, activation="relu") is out
        np.testing.assert_array_equal(out, np.maximum(a @ b + bias, 0))


def test_batches_and_vectors() -> None:
    a, b, bias = filled((3, 2, 5, 7), seed=1), filled((2, 7, 6), seed=2), filled((6,), seed=3)
    np.testing.assert_array_equal(tw.matmul(a, b, bias=bias, activation="relu"), np.maximum(a @ b + bias, 0))
    np.testing.assert_array_equal(tw.matmul(a, b[0], bias=bias), a @ b[0] + bias)
    rows = filled((5, 1), seed=4)
    np.testing.assert_array_equal(tw.matmul(a, b[0], bias=rows), a @ b[0] + rows)
    np.testing.assert_array_equal(tw.matmul(a[0, 0, 0], b[0], bias=bias), a[0, 0, 0] @ b[0] + bias)
    column = filled((5,), seed=5)
    np.testing.assert_array_equal(tw.matmul(a[0, 0], b[0, :, 0], bias=column), a[0, 0] @ b[0, :, 0] + column)
    assert tw.matmul(a[0, 0, 0], b[0, :, 0], bias=2.0) == a[0, 0, 0] @ b[0, :, 0] + 2
    np.testing.assert_array_equal(tw.matmul(a, b, bias=1), a @ b + 1)
    assert tw.matmul(a[:0], b, bias=bias).shape == (0, 2, 5, 6)


@pytest.mark.parametrize("order", ["C", "F"])
def test_many_products_with_one_bias(order: Literal["C", "F"]) -> None:
    """One compiled loop; a batch of column-major results is one of transposed products."""
    a, b = filled((50, 9, 20), seed=1), filled((50, 20, 17), seed=2)
    out = np.full((50, 9, 17), np.nan, "f4")
    if order == "F":
        out = out.transpose(0, 2, 1).copy().transpose(0, 2, 1)
    for bias in (filled((17,), seed=3), filled((9, 1), seed=4), None):
        tw.matmul(a, b, out=out, bias=bias, activation="relu")
        np.testing.assert_array_equal(out, np.maximum(a @ b + (0 if bias is None else bias), 0))


def test_bias_of_any_kind_of_array() -> None:
    a, b = filled((6, 5), seed=1), filled((5, 4), seed=2)
    expected = a @ b + np.arange(4)
    values = np.arange(4, dtype="f4")
    for bias in (
        *([0, 1, 2, 3], values.astype("f8"), values.astype(">f4"), values.astype("i8"), unaligned(values)),
        *(values[np.newaxis], values[np.newaxis, np.newaxis], np.repeat(values, 2)[::2], values[::-1][::-1]),
    ):
        np.testing.assert_array_equal(tw.matmul(a, b, bias=bias), expected)
    values.flags.writeable = False
    np.testing.assert_array_equal(tw.matmul(a, b, bias=values), expected)


def test_alpha_and_beta_come_before_the_steps() -> None:
    a, b, c = filled((40, 30), seed=1), filled((30, 50), seed=2), filled((40, 50), seed=3)
    bias = filled((50,), seed=4)
    for alpha, beta in ((2, 0), (0, 3), (-1, 2), (0, 0)):
        out = c.copy() if beta else np.full_like(c, np.nan)
        tw.matmul(a, b, out=out, alpha=alpha, beta=beta, bias=bias, activation="relu")
        np.testing.assert_array_equal(out, np.maximum(alpha * (a @ b) + beta * c + bias, 0))


def test_integers() -> None:
    a, b = filled((30, 40), "i1", 1), filled((40, 20), "i1", 2)
    bias = np.arange(-10, 10, dtype="i4") * 10
    exact = a.astype("i4") @ b.astype("i4") + bias
    found = tw.matmul(a, b, dtype="i4", bias=bias, activation="relu")
    np.testing.assert_array_equal(found, np.maximum(exact, 0))
    np.testing.assert_array_equal(tw.matmul(a, b, bias=bias), exact.astype("i1"))
    words = tw.matmul(a.astype("u4"), b.astype("u4"), bias=bias.astype("u4"))
    np.testing.assert_array_equal(words, exact.astype("u4"))


def test_complex_bias() -> None:
    a, b = (
        filled((20, 9)) + 1j * filled((20, 9), seed=1),
        filled((9, 33), seed=2) - 2j * filled((9, 33), seed=3),
    )
    for bias in (filled((33,)) + 1j * filled((33,), seed=9), filled((20, 1)) - 3j):
        found = tw.matmul(a.astype("c8"), b.astype("c8"), bias=bias.astype("c8"))
        np.testing.assert_array_equal(found, (a @ b + bias).astype("c8"))


def test_out_may_be_the_bias_or_an_input() -> None:
    square = filled((32, 32), seed=1)
    for share in ("row", "column", "input"):
        out = square.copy()
        a = out if share == "input" else square.copy()
        bias = {"row": out[3], "column": out[:, 2:3], "input": square[5].copy()}[share]
        expected = a @ square + bias
        tw.matmul(a, square.copy(), out=out, bias=bias)
        np.testing.assert_array_equal(out, expected)


def test_nan_and_infinity_go_through() -> None:
    a, b = np.ones((20, 30), "f4"), np.ones((30, 40), "f4")
    a[3, 4], a[5, 6], b[7, 8] = np.nan, np.inf, -np.inf
    bias = np.zeros(40, "f4")
    bias[9], bias[10] = np.nan, np.inf
    with np.errstate(all="ignore"):
        for activation in (None, *ACTIVATIONS):
            expected = activated((a.astype("f8") @ b + bias), activation)
            found = tw.matmul(a, b, bias=bias, activation=activation)
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected), str(activation))
            np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("activation", [None, "relu", "gelu"])
def test_repeated_calls_of_every_layout_give_the_same_bits(activation: ActivationName | None) -> None:
    a, b, bias = rough((30, 40)), rough((40, 50), seed=1), rough((50,), seed=2)
    options: dict[str, Any] = {"bias": bias, "activation": activation}
    expected = tw.matmul(np.array(a.tolist(), "f4"), b, dtype="f4", **options)
    tw.matmul(a, b, **options)
    for left, right in ((a, b), (a, np.asfortranarray(b)), (np.asfortranarray(a), b), (a[::-1][::-1], b)):
        out = np.full((30, 50), np.nan, "f4")
        for _ in range(2):
            out[...] = np.nan
            assert tw.matmul(left, right, out=out, **options) is out
        assert out.tobytes() == tw.matmul(left, right, **options).tobytes() == expected.tobytes()


@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh"])
def test_no_flag_is_raised_by_padding(activation: ActivationName) -> None:
    for m, n, k in ((1, 5, 9), (5, 37, 20), (30, 33, 70), (40, 1, 30)):
        # Small ones: GELU of -20 is subnormal.
        a, b, bias = 0.1 * rough((m, k)), rough((k, n), seed=1), rough((n,), seed=2)
        a = a.astype("f4")
        tw.matmul(a, b, bias=bias, activation=activation)
        with no_flags():
            tw.matmul(a, b, bias=bias, activation=activation)


@pytest.mark.parametrize("activation", [None, "gelu", "silu"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "bfloat16"])
def test_rows_do_not_depend_on_each_other(activation: ActivationName | None, dtype: str) -> None:
    """Promise 5: bitwise the same whatever the number of rows."""
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    a, b, bias = (rough(shape).astype(dtype) for shape in ((70, 900), (900, 300), (300,)))
    whole = tw.matmul(a, b, bias=bias, activation=activation, alpha=0.3)
    for rows in (1, 2, 7, 8, 9, 33):
        part = tw.matmul(a[5 : 5 + rows], b, bias=bias, activation=activation, alpha=0.3)
        assert part.tobytes() == whole[5 : 5 + rows].tobytes(), rows


def test_the_fused_steps_are_those_of_the_separate_functions() -> None:
    """Bitwise: matmul, the sum in NumPy, then the unary kernel."""
    a, b, bias = rough((64, 200)), rough((200, 96), seed=1), rough((96,), seed=2)
    plain = np.asfortranarray(tw.matmul(a, b) + bias)
    kernel = tw.compile(tw.Unary("gelu", 64, 96))
    expected = np.empty_like(plain)
    kernel(plain, expected)
    np.testing.assert_array_equal(tw.matmul(a, b, bias=bias, activation="gelu"), expected)


def test_explanation_names_the_steps() -> None:
    a, b, bias = filled((64, 64)), filled((64, 64)), filled((64,))
    text = str(tw.explain(tw.matmul, a, b, bias=bias, activation="gelu"))
    assert "fused into the store of C: bias, gelu" in text
    assert "fused" not in str(tw.explain(tw.matmul, a, b))
    assert "fused into the store of C: residual, relu" in str(tw.explain(tw.Gemm(epilogue="residual,relu")))


# --- kernels --------------------------------------------------------------------------------------------


def test_a_kernel_of_every_step() -> None:
    epilogue = Epilogue(
        [Scale("row"), Bias(), Residual(), Clamp(-50, 60), Scale(), Bias("row"), Activation("relu")]
    )
    kernel = tw.compile(tw.Gemm(epilogue=epilogue))
    m, n, k = 50, 70, 400
    a, b, c = filled((m, k)), filled((k, n), seed=1), np.full((m, n), np.nan, "f4")
    scale, bias, bias_2 = 2.0 ** filled((m,), seed=2), filled((n,), seed=3), filled((m, 1), seed=4)
    residual = filled((m, 2 * n), seed=5)[:, :n]
    found = kernel(
        *(a, b, c),
        scale=scale.astype("f4"),
        bias=bias,
        residual=residual,
        scale_2=0.5,
        bias_2=bias_2,
    )
    assert found is c
    value = np.clip((a @ b) * scale[:, None].astype("f4") + bias + residual, -50, 60)
    np.testing.assert_array_equal(c, np.maximum(value * 0.5 + bias_2, 0))


def test_a_quantised_product() -> None:
    """int8 sums, scaled per row and column, into bfloat16; and back into bytes that saturate."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a, b = filled((33, 70), "i1", 1), filled((70, 50), "i1", 2)
    rows, columns = np.exp2(filled((33,), seed=3)), np.exp2(filled((50,), seed=4))
    exact = (a.astype("f8") @ b) * rows[:, None] * columns
    kernel = tw.compile(tw.Gemm(dtype="i8", out_dtype="bf16", epilogue="scale:row,scale:column"))
    c = np.empty((33, 50), ml_dtypes.bfloat16)
    kernel(a, b, c, scale=rows, scale_2=columns)
    np.testing.assert_array_equal(c, exact.astype("f4").astype(ml_dtypes.bfloat16))
    kernel = tw.compile(tw.Gemm(dtype="i8", out_dtype="i8", epilogue="scale:row,scale:column,saturate"))
    narrow = np.empty((33, 50), "i1")
    kernel(a, b, narrow, scale=rows, scale_2=columns)
    np.testing.assert_array_equal(narrow, np.clip(np.rint(exact), -128, 127))
    with pytest.raises(InvalidScalar, match="beta"):
        tw.compile(tw.Gemm(dtype="i8", epilogue="scale"))(a, b, np.empty((33, 50), "f4"), beta=1, scale=1.0)


REFUSED = {
    "missing": ({}, StepOperands, "needs bias and residual, given: none"),
    "another": ({"bias": 4, "residual": 0, "scale": 0}, StepOperands, "given: bias, residual, scale"),
    "short": ({"bias": 3, "residual": 0}, OperandMismatch, "bias has shape"),
    "long": ({"bias": 5, "residual": 0}, OperandMismatch, "bias has shape"),
    "dtype": ({"bias": 8, "residual": 0}, OperandMismatch, "bias has dtype float64"),
    "matrix": ({"bias": 4, "residual": 1}, OperandMismatch, "residual has shape"),
    "shared": ({"bias": 4, "residual": 2}, OperandMismatch, "residual has memory shared with c"),
    "number": ({"bias": 9, "residual": 0}, OperandMismatch, "bias has type float"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_operands_that_do_not_fit(name: str) -> None:
    given, error, words = REFUSED[name]
    kernel = tw.compile(tw.Gemm(epilogue="bias,residual"))
    c = np.full((2, 4), 7.0, "f4")
    kinds: dict[tuple[str, int], Any] = {
        **{("bias", size): np.zeros(size, "f4") for size in (3, 4, 5)},
        ("bias", 8): np.zeros(4),
        ("bias", 9): 1.0,
        ("residual", 0): np.zeros((2, 4), "f4"),
        ("residual", 1): np.zeros((4, 2), "f4"),
        ("residual", 2): c,
        ("scale", 0): 1.0,
    }
    operands = {key: kinds[key, value] for key, value in given.items()}
    with pytest.raises(error, match=words):
        kernel(filled((2, 3)), filled((3, 4)), c, **operands)
    assert (c == 7).all()


def test_errors_are_those_that_users_catch() -> None:
    assert issubclass(StepShape, ValueError)
    assert issubclass(StepDtype, TypeError)
    assert issubclass(StepOperands, TypeError)


def test_a_kernel_pickles_with_its_epilogue() -> None:
    kernel = pickle.loads(pickle.dumps(tw.compile(tw.Gemm(epilogue="bias,clamp:-1:1"))))
    found = kernel(filled((5, 6)), filled((6, 7)), np.empty((5, 7), "f4"), bias=filled((7,)))
    np.testing.assert_array_equal(found, np.clip(filled((5, 6)) @ filled((6, 7)) + filled((7,)), -1, 1))


def test_the_header_documents_every_pointer() -> None:
    header = tw.compile(tw.Gemm(epilogue="bias,scale,residual:bf16,bias:row")).header
    for words in (
        "const float *bias,",
        "bias: n numbers, one for each column of C",
        "const float *scale,",
        "scale: one number",
        "const void *residual,",
        "residual: m x n of bf16, row-major",
        "bias_2: m numbers, one for each row of C",
        "int64_t rs_residual,",
        "then bias, scale, residual:bf16, bias:row",
    ):
        assert words in header, words


@pytest.mark.parametrize("row", [isa.name for isa in host_rows()])
def test_every_row_of_the_host(row: str) -> None:
    """In another process, whose row is another one."""
    program = (
        "import numpy as np, tilewright as tw; from support import rough\n"
        "a, b, bias = rough((61, 700)), rough((700, 77), seed=1), rough((77,), seed=2)\n"
        "found = tw.matmul(a, b, bias=bias, activation='tanh')\n"
        "np.testing.assert_allclose(found, np.tanh(a.astype('f8') @ b + bias), atol=2e-4)\n"
        "print(tw.machine().isa.name)"
    )
    assert run_python("-c", program, isa=row).strip() == row
