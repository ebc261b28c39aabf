"""Epilogues: their text and names, the types they go through, their meaning, and what they refuse."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shares import looped

from tilewright.compiler.operation import kernel_name
from tilewright.errors import InvalidChoice, StepDtype, TilewrightError, UnsupportedDtype
from tilewright.ir.verify import is_name
from tilewright.machine.isa_rows import ISAS
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import BF16, C64, F16, F32, F64, I8, I32, I64, U8, DType
from tilewright.spec.epilogue import (
    ACTIVATIONS,
    Activation,
    Along,
    Bias,
    Clamp,
    Epilogue,
    Residual,
    Saturate,
    Scale,
    Step,
)

BOUNDS = st.floats(allow_nan=False)
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(Bias, st.sampled_from(["column", "row"]), st.sampled_from([None, "f32", "bf16"])),
    st.builds(Scale, st.sampled_from(["all", "column", "row"]), st.sampled_from([None, "f32", "f16"])),
    st.builds(Residual, st.sampled_from([None, "f32", "bf16"])),
    st.builds(Activation, st.sampled_from(ACTIVATIONS)),
    st.tuples(BOUNDS, BOUNDS).map(lambda pair: Clamp(min(pair), max(pair))),
)


@given(st.lists(STEPS, max_size=6), st.sampled_from(ISAS))
def test_text_is_read_back_and_names_are_symbols(steps: list[Step], isa: object) -> None:
    epilogue = Epilogue(steps)
    assert Epilogue.parse(str(epilogue)) == epilogue
    problem = Gemm(epilogue=epilogue)
    name = kernel_name(problem, ISAS[0].name)
    assert is_name(name)
    del isa


@pytest.mark.parametrize("text", ["", " ", None, ()])
def test_nothing(text: str | None) -> None:
    epilogue = Epilogue.parse(text)
    assert not epilogue
    assert Gemm(epilogue=text) == Gemm()


@looped(
    "text",
    [
        *("gelu:row", "bias:all", "bias:f32:row", "bias:row:row", "bias:i3", "scale:f32:f32", "elu"),
        *("clamp", "clamp:1", "clamp:a:b", "clamp:nan:1", "clamp:2:1", "residual:row", "saturate:i8"),
        *("bias,,gelu", "saturate,relu", "exp"),
    ],
)
def test_words_that_are_no_steps(text: str) -> None:
    with pytest.raises((InvalidChoice, UnsupportedDtype)) as caught:
        Gemm(dtype="i8", out_dtype="i8", epilogue=text)
    assert isinstance(caught.value, TilewrightError)


def test_only_steps_are_steps() -> None:
    with pytest.raises(InvalidChoice, match="gelu"):
        Epilogue(["gelu"])  # type: ignore[list-item]


#: Type of the sums and of C, text -> the type of each step, or what is said of the step that has none.
TYPES: dict[tuple[DType, DType | None, str], list[DType] | str] = {
    (F32, F32, "bias,gelu,residual"): [F32, F32, F32],
    (F32, BF16, "residual,scale"): [F32, F32],
    (F64, F32, "bias:f32,gelu"): [F64, F64],
    (I32, F32, "bias:i32,scale:column,bias"): [I32, F32, F32],
    (I32, F32, "bias:f32"): [F32],
    (I32, BF16, "residual"): [F32],
    (I64, None, "scale"): [F64],
    (I32, I32, "relu,clamp:-1:7,residual"): [I32, I32, I32],
    (I32, U8, "scale,saturate"): [F32, F32],
    (C64, C64, "bias,residual"): [C64, C64],
    (I32, I32, "gelu"): "gelu does not apply to i32",
    (I32, I32, "clamp:0:0.5"): "its bounds are not integers",
    (C64, C64, "relu"): "relu does not apply to c64",
    (C64, C64, "clamp:0:1"): "complex numbers have no order",
    (C64, C64, "scale"): "scaled by alpha",
    (C64, C64, "saturate"): "complex numbers are not rounded",
    (F32, F32, "bias:f64"): "f64 does not widen",
    (F32, F32, "bias:i32"): "i32 does not widen",
    (F32, F32, "scale:i8"): "i8 do not widen",
    (I32, F16, "scale:f64"): "f64 do not widen to f32",
    (F32, F32, "saturate"): "C is f32, not an integer",
    (I32, I32, "saturate"): "C is i32, not an integer of 8 or 16 bits",
}


@looped("case", TYPES)
def test_types(case: tuple[DType, DType | None, str]) -> None:
    acc, c, text = case
    expected = TYPES[case]
    epilogue = Epilogue.parse(text)
    if isinstance(expected, str):
        with pytest.raises(StepDtype, match=expected):
            epilogue.typed(acc, c)
    else:
        assert [step.dtype for step in epilogue.typed(acc, c)] == expected
        assert epilogue.result(acc, c) == expected[-1]


#: A, out_dtype, text -> C; None where it is refused.
RESULTS = {
    ("i8", None, "scale"): "f32",
    ("i8", "bf16", "scale"): "bf16",
    ("i8", "i32", "bias"): "i32",
    ("i8", None, "bias"): "i8",
    ("i8", "f32", "relu"): None,
    ("i8", "i32", "scale"): None,
    ("i8", "f64", "scale"): None,
    ("i8", "u8", "scale,saturate"): "u8",
    ("f32", "i8", "scale,saturate"): "i8",
    ("f32", "i8", "relu"): None,
    ("i64", None, "scale"): "f64",
    ("f64", "bf16", "gelu"): "bf16",
    ("bf16", None, "bias"): "bf16",
}


@pytest.mark.parametrize("case", RESULTS, ids=str)
def test_type_of_c(case: tuple[str, str | None, str]) -> None:
    dtype, out_dtype, text = case
    expected = RESULTS[case]
    if expected is None:
        with pytest.raises(UnsupportedDtype):
            Gemm(dtype=dtype, out_dtype=out_dtype, epilogue=text)
    else:
        assert Gemm(dtype=dtype, out_dtype=out_dtype, epilogue=text).out_dtype.name == expected


def test_operands_are_named_after_their_steps() -> None:
    problem = Gemm(5, 7, 3, dtype="bf16", c="col", epilogue="bias,scale,bias:row:f16,residual,scale:column")
    found = [(one.name, one.rows, one.columns, one.dtype.name) for one in problem.step_operands]
    assert found == [
        ("bias", 1, 7, "f32"),
        ("scale", 1, 1, "f32"),
        ("bias_2", 5, 1, "f16"),
        ("residual", 5, 7, "bf16"),
        ("scale_2", 1, 7, "f32"),
    ]
    assert problem.step_operands[3].layout is problem.c


def test_rows_and_columns_change_places() -> None:
    epilogue = Epilogue.parse("bias,scale:row,scale,gelu")
    assert str(epilogue.transposed()) == "bias:row,scale:column,scale,gelu"
    assert epilogue.transposed().transposed() == epilogue
    assert Along.ROW.shape(3, 4) == (3, 1)


def test_reference() -> None:
    """By hand: (1·2 + 3·4)·0.5 + 1 = 8, and a negative one."""
    problem = Gemm(dtype="i8", out_dtype="f32", epilogue="scale:row,bias,clamp:0:100")
    a, b = np.array([[1, 3], [-1, -3]], np.int8), np.array([[2], [4]], np.int8)
    found = problem.reference(a, b, operands=[np.array([[0.5], [2.0]]), np.array([[1.0]])])
    np.testing.assert_array_equal(found, [[8.0], [0.0]])


def test_integers_wrap_around_before_steps() -> None:
    """A sum of 2**31 is the least i32, and ReLU makes 0 of it."""
    problem = Gemm(dtype="i32", epilogue="relu")
    a, b = np.array([[2**16]], np.int32), np.array([[2**15]], np.int32)
    assert problem.reference(a, b)[0, 0] == 0


def test_saturation_rounds_to_even_and_bounds() -> None:
    values = np.array([[0.5, 1.5, -2.5, 300.0, -300.0, np.inf, -np.inf, np.nan]])
    found = Epilogue([Saturate()]).reference(values, (), F32, I8)
    np.testing.assert_array_equal(found, [[0, 2, -2, 127, -128, 127, -128, 0]])


def test_nan_goes_through_a_clamp_and_relu() -> None:
    found = Epilogue.parse("relu,clamp:0:1").reference(np.array([[np.nan, 2.0]]), (), F32, F32)
    np.testing.assert_array_equal(found, [[np.nan, 1.0]])
