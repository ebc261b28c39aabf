"""The NumPy interpreter: bounds, unpacked scratch, interleaved panels, scalars and small programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tilewright.errors import InvalidTileIr
from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import (
    Constant,
    Expression,
    Let,
    Loop,
    Name,
    Operator,
    Program,
    Slice,
    Statement,
    Unless,
    apply,
    ceildiv,
    expression,
    fold,
    maximum,
    minimum,
    roundup,
)
from tilewright.ir.text import parse_program
from tilewright.ir.verify import verify

Array = NDArray[Any]


def run(
    text: str, sizes: dict[str, int] | None = None, /, alpha: float = 1.0, beta: float = 0.0, **buffers: Any
) -> None:
    """A program from its text; scratch comes from the interpreter."""
    program = verify(parse_program(text))
    interpret(program, sizes or {}, {"alpha": alpha, "beta": beta}, buffers)


HEAD = "program p\nsizes\nscalars alpha beta\nargument a f32\nargument c f32\n"

# --- expressions ------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.sampled_from(Operator), st.integers(-50, 50), st.integers(1, 50))
def test_folding_keeps_the_value(operator: Operator, left: int, right: int) -> None:
    folded = fold(operator, Constant(left), Constant(right))
    assert folded == Constant(apply(operator, left, right))
    for one, other in ((Name("x"), Constant(right)), (Constant(left), Name("y")), (Name("x"), Name("y"))):
        assert value_of(fold(operator, one, other), x=left, y=right) == apply(operator, left, right)


@pytest.mark.parametrize("neutral", [0, 1])
@pytest.mark.parametrize("value", [-3, 0, 1, 7])
def test_neutral_elements_vanish(value: int, neutral: int) -> None:
    x = Name("x")
    cases = [x + neutral, neutral + x, x - neutral, x * neutral, neutral * x]
    expected = [value + neutral, value + neutral, value - neutral, value * neutral, value * neutral]
    assert [value_of(case, x=value) for case in cases] == expected
    assert value_of(minimum(x, x), x=value) == value_of(maximum(x, x), x=value) == value


def test_what_folds() -> None:
    x = Name("x")
    assert [x + 0, 0 + x, x - 0, x * 1, 1 * x] == [x] * 5
    assert [x * 0, 0 * x] == [Constant(0)] * 2
    assert [ceildiv(x, 1), roundup(x, 1), minimum(x, x), maximum(x, x)] == [x] * 4


@pytest.mark.parametrize(
    ("left", "right", "divided", "rounded"), [(0, 4, 0, 0), (1, 4, 1, 4), (4, 4, 1, 4), (5, 4, 2, 8)]
)
def test_rounding(left: int, right: int, divided: int, rounded: int) -> None:
    assert ceildiv(left, right) == Constant(divided)
    assert roundup(left, right) == Constant(rounded)


def value_of(node: Expression, **names: int) -> int:
    """The value of an expression, as the trip count of a loop that counts in a buffer."""
    shift = 10_000
    body: tuple[Statement, ...] = (
        Let("value", node + shift),
        Loop("i", Constant(0), Name("value"), expression(1), ()),
        *parse_program(
            HEAD + "pack s[value; 1, 1] = a[0; 1, 1] lanes 1 depth 1 panel 1 kr 1\n"
            "matmul 1x1x1 c[0; 1, 1]\n = 0.0 * c + 1.0 * s[value; 1, 1] . s[value; 1, 1]\n"
            " rows 1 columns 1 depth 1\n"
        ).body,
    )
    text = HEAD.replace("sizes", " ".join(("sizes", *names))) + f"thread s f32 [{2 * shift}]\n"
    program = parse_program(text)
    finder = Finder()
    interpret(
        Program("p", program.sizes, program.scalars, program.buffers, body),
        names,
        {"alpha": 1.0, "beta": 0.0},
        {"a": np.ones(1, np.float32), "c": finder.c},
    )
    return finder.find(program, body, names, shift)
