"""Forms of packed weights: which groups there may be, what words hold."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import InvalidChoice, InvalidGroup, OperandMismatch
from tilewright.spec.dtype import BF16, F32
from tilewright.spec.weights import GROUPS, Elements, Weights

INTEGERS = (Elements.I8, Elements.I4)


@pytest.mark.parametrize("elements", INTEGERS)
@pytest.mark.parametrize("group", [0, *GROUPS])
def test_groups_of_whole_words_and_steps(elements: Elements, group: int) -> None:
    assert Weights(elements, group).groups(1000) == (-(-1000 // group) if group else 1)
    assert group % elements.depths == 0


@pytest.mark.parametrize("group", [-1, 1, 8, 16, 33, 48, 96, 2048])
def test_other_groups_are_refused(group: int) -> None:
    with pytest.raises(InvalidGroup, match=f"group is {group}, "):
        Weights(Elements.I4, group)


@pytest.mark.parametrize("elements", [Elements.BF16, Elements.F16])
def test_floats_have_no_groups(elements: Elements) -> None:
    with pytest.raises(InvalidGroup):
        Weights(elements, 64)


@pytest.mark.parametrize("elements", INTEGERS)
def test_words_hold_every_value_in_every_place(elements: Elements) -> None:
    values = np.arange(1 << elements.bits, dtype=np.uint32)
    for place in range(elements.depths):
        words = values << np.uint32(place * elements.bits)
        found = Weights(elements).unpacked(words[:, None], elements.depths)
        assert np.array_equal(found[:, place], values)
        assert not np.delete(found, place, axis=1).any()


@pytest.mark.parametrize("elements", INTEGERS)
@pytest.mark.parametrize("activation", [F32, BF16])
def test_differences_are_exact_in_the_type_of_the_activations(elements: Elements, activation: object) -> None:
    """Less a zero point of the same range, an integer has as many bits and a sign."""
    most = (1 << elements.bits) - 1
    differences = np.arange(-most, most + 1).astype(np.float32)
    kind = elements.value_type(activation).numpy  # type: ignore[arg-type]
    assert np.array_equal(differences.astype(kind).astype(np.float32), differences)


def test_a_problem_takes_the_elements_for_the_type_of_a() -> None:
    problem = tw.Gemm(dtype="bf16", weights=Weights(Elements.I4, 64))
    assert (problem.b_dtype, problem.types.acc, problem.packed) == (BF16, F32, frozenset("b"))


def test_float32_is_no_form_of_its_own() -> None:
    with pytest.raises(InvalidChoice, match="f32"):
        Weights(Elements.F32)


def test_a_kernel_of_fixed_sizes_takes_no_others() -> None:
    packed = tw.quantize_weights(np.ones((128, 64), np.float32))
    kernel = tw.compile(tw.Gemm(4, 64, 64, weights=Weights.parse("i8")))
    with pytest.raises(OperandMismatch, match="operand a has m = 8, must be 4"):
        kernel(np.ones((8, 128), np.float32), packed, np.zeros((8, 64), np.float32))


def test_a_residual_is_added() -> None:
    packed = tw.quantize_weights(np.ones((32, 8), np.float32))
    kernel = tw.compile(tw.Gemm(weights=Weights.parse("i8"), epilogue="residual"))
    residual = np.arange(40, dtype=np.float32).reshape(5, 8)
    found = kernel(np.ones((5, 32), np.float32), packed, np.empty((5, 8), np.float32), residual=residual)
    assert np.array_equal(found, 32 + residual)
