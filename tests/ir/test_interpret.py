"""The NumPy interpreter: bounds, unpacked scratch, interleaved panels, scalars and small programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shares import looped
from tiers import draws

from tilewright.errors import InvalidTileIr
from tilewright.ir.expressions import (
    Constant,
    Expression,
    Name,
    Operator,
    Scalar,
    apply,
    ceildiv,
    fold,
    maximum,
    minimum,
    roundup,
)
from tilewright.ir.interpret import Interpreter, interpret
from tilewright.ir.nodes import Array, Buffer, Pack, Program, Slice, Space, Tile, TileMatmul
from tilewright.ir.parse import parse_program
from tilewright.ir.verify import verify
from tilewright.spec.dtype import BF16, F16, F32, F64, I4, I8, I16, I32, U4, U8, DType, Kind
from tilewright.spec.parts import Parts


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
    """The value of an expression: the place at which a product without depth writes its zero."""
    middle = 10_000
    zero, one = Constant(0), Constant(1)
    window = Slice("c", zero, (one, one))
    store = TileMatmul(
        c=Slice("c", node, (one, one)),
        a=window,
        b=window,
        rows=one,
        columns=one,
        depth=zero,
        tile=Tile(1, 1),
        alpha=Scalar(1.0),
        beta=Scalar(0.0),
    )
    program = Program("p", tuple(names), ("alpha",), (Buffer("c", F32, Space.ARGUMENT),), (store,))
    c = np.full(2 * middle, np.nan, np.float32)
    interpret(verify(program), names, {"alpha": 0.0}, {"c": (c, middle)})
    (place,) = np.flatnonzero(c == 0)
    return int(place) - middle


@pytest.mark.parametrize(("alpha", "expected"), [(0.0, 0), (-0.0, 0), (2.0, 7), (float("nan"), 7)])
def test_unless_is_zero_where_the_scalar_is(alpha: float, expected: int) -> None:
    text = HEAD + (
        "let d = unless(alpha, 7)\n"
        "matmul 1x1x1 c[d; 1, 1]\n = 0.0 * c + 1.0 * a[0; 1, 1] . a[0; 1, 1]\n rows 1 columns 1 depth 0\n"
    )
    c = np.ones(8, np.float32)
    run(text, alpha=alpha, a=np.ones(1, np.float32), c=c)
    assert np.flatnonzero(c == 0).tolist() == [expected]


# --- control flow ------------------------------------------------------------------------------------

ADD_ONE = (
    "matmul 1x1x1 c[{at}; 1, 1]\n{pad}  = 1.0 * c + 1.0 * a[0; 1, 1] . a[0; 1, 1]\n"
    "{pad}  rows 1 columns 1 depth 1\n"
)


def count(at: str, depth: int = 1) -> str:
    """A statement that adds 1 to c[at]."""
    return "  " * depth + ADD_ONE.format(at=at, pad="  " * depth)


@pytest.mark.parametrize(
    ("begin", "end", "step", "visited"),
    [(0, 6, 2, [0, 2, 4]), (0, 5, 2, [0, 2, 4]), (3, 4, 9, [3]), (4, 4, 1, []), (5, 4, 1, [])],
)
@pytest.mark.parametrize("word", ["for", "parallel"])
def test_loops(word: str, begin: int, end: int, step: int, visited: list[int]) -> None:
    c = np.zeros(8, np.float32)
    text = HEAD + f"{word} i in {begin} .. {end} step {step}:\n" + count("i")
    run(text, a=np.ones(1, np.float32), c=c)
    assert np.flatnonzero(c).tolist() == visited


@pytest.mark.parametrize("step", [0, -1])
def test_a_step_that_is_not_positive_at_run_time_is_refused(step: int) -> None:
    text = HEAD.replace("sizes", "sizes s") + "for i in 0 .. 3 step s:\n" + count("i")
    with pytest.raises(InvalidTileIr, match=f"loop i: step {step} is not positive"):
        run(text, {"s": step}, a=np.ones(1, np.float32), c=np.zeros(8, np.float32))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("m == 3", True),
        ("m == 4", False),
        ("m <= 3", True),
        ("m <= 2", False),
        ("m < 4", True),
        ("m < 3", False),
        ("m == 3 and m < 3", False),
        ("m == 4 or m == 3", True),
        ("m == 3 and m < 3 or m <= 2 and m == 2", False),
        ("m < 3 and m < 3 or m == 3", True),
    ],
)
def test_conditions(condition: str, expected: bool) -> None:
    text = HEAD.replace("sizes", "sizes m") + f"if {condition}:\n" + count("0") + "else:\n" + count("1")
    c = np.zeros(2, np.float32)
    run(text, {"m": 3}, a=np.ones(1, np.float32), c=c)
    assert c.tolist() == [float(expected), float(not expected)]


def test_a_let_does_not_leave_its_block() -> None:
    text = HEAD + (
        "for i in 0 .. 3 step 1:\n  let x = i * 2\n" + count("x") + "let x = 7\n" + count("x", depth=0)
    )
    c = np.zeros(8, np.float32)
    run(text, a=np.ones(1, np.float32), c=c)
    assert c.tolist() == [1, 0, 1, 0, 1, 0, 0, 1]


# --- products -----------------------------------------------------------------------------------------

MATMUL = (
    "matmul 4x4x1 c[0; 4, 1]\n  = beta * c + alpha * a[0; 3, 1] . a[0; 1, 3]\n"
    "  rows 2 columns 3 depth {depth}\n"
)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (2.0, 1.0), (0.5, -3.0)])
def test_matmul(alpha: float, beta: float) -> None:
    a = np.arange(1, 7, dtype=np.float32)
    c = np.arange(16, dtype=np.float32)
    before = c.reshape(4, 4).copy()
    run(HEAD + MATMUL.format(depth=2), alpha=alpha, beta=beta, a=a, c=c)
    rows, columns = a.reshape(2, 3)[:, :2], a.reshape(2, 3)
    expected = before.copy()
    expected[:2, :3] = alpha * rows @ columns + beta * before[:2, :3]
    np.testing.assert_array_equal(c.reshape(4, 4), expected)


def test_beta_zero_does_not_read_c_and_depth_zero_does_not_read_a() -> None:
    c = np.full(16, np.nan, np.float32)
    run(HEAD + MATMUL.format(depth=0), alpha=float("nan"), beta=0.0, a=np.empty(0, np.float32), c=c)
    assert np.isnan(c.reshape(4, 4)[2:]).all()
    assert (c.reshape(4, 4)[:2, :3] == 0).all()


def test_nan_in_c_survives_a_beta() -> None:
    c = np.full(16, np.nan, np.float32)
    run(HEAD + MATMUL.format(depth=2), beta=1.0, a=np.ones(6, np.float32), c=c)
    assert np.isnan(c).all()


def test_first_else_follows_the_first_iteration_not_zero() -> None:
    text = HEAD + (
        "for p in 5 .. 9 step 2:\n"
        "  matmul 1x1x1 c[0; 1, 1]\n"
        "    = (beta if p first else 10.0) * c + (alpha if p first else 1.0) * a[0; 1, 1] . a[0; 1, 1]\n"
        "    rows 1 columns 1 depth 1\n"
    )
    c = np.array([7], np.float32)
    run(text, alpha=3.0, beta=2.0, a=np.ones(1, np.float32), c=c)
    assert c.tolist() == [(7 * 2 + 3) * 10 + 1]


@pytest.mark.parametrize(("rows", "columns"), [(5, 1), (1, 5)])
def test_more_than_a_tile_is_refused(rows: int, columns: int) -> None:
    text = HEAD + MATMUL.format(depth=1).replace("rows 2 columns 3", f"rows {rows} columns {columns}")
    with pytest.raises(InvalidTileIr, match=f"{rows}x{columns} exceeds"):
        run(text, a=np.ones(64, np.float32), c=np.ones(64, np.float32))


# --- forms of a tile, and what follows finished sums ------------------------------------------------------

FORMS = {
    # Rows of A and B itself are adjacent along the depth; the third row is not part of the product.
    "dot": (
        "matmul dot 4x1x1 c[0; 2, 1]\n  = beta * c + alpha * a[0; 5, 1] . b[0; 1, 1]\n"
        "  rows 2 columns 1 depth {depth}\n"
    ),
    # Columns of B are adjacent along the depth, 5 elements apart; A is strided.
    "turned": (
        "matmul turned 2x3x1 c[0; 9, 1]\n  = 0.0 * c + 1.0 * a[1; 1, 4 panels 4 apart 99] . b[0; 5, 1]\n"
        "  rows 1 columns 3 depth {depth}\n"
    ),
    "turned_a": (
        "matmul turned_a 3x2x1 c[0; 1, 1]\n  = 0.0 * c + 1.0 * a[0; 5, 1] . b[1; 1, 4 panels 4 apart 99]\n"
        "  rows 3 columns 1 depth {depth}\n"
    ),
}


def run_form(form: str, depth: int, alpha: float, beta: float, c: Any, a: Any = None, b: Any = None) -> None:
    """One tile; a and b are counted from 1 where they are not given."""
    a, b = (np.arange(1, 21, dtype=np.float32) if array is None else array for array in (a, b))
    text = HEAD + "argument b f32\n" + FORMS[form].format(depth=depth)
    run(text, alpha=alpha, beta=beta, a=a, b=b, c=c)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (2.0, 1.0), (0.5, -3.0)])
@pytest.mark.parametrize("depth", [0, 1, 3, 5])
def test_dot(alpha: float, beta: float, depth: int) -> None:
    c = np.array([7, 8, 9, 10], np.float32)
    run_form("dot", depth, alpha, beta, c)
    counted = np.arange(1, 16, dtype=np.float32)
    sums = counted.reshape(3, 5)[:2, :depth] @ counted[:depth]
    assert c.tolist() == [alpha * sums[0] + beta * 7, 8, alpha * sums[1] + beta * 9, 10]


@pytest.mark.parametrize("form", ["turned", "turned_a"])
@pytest.mark.parametrize("depth", [0, 1, 3, 5])
def test_turned(form: str, depth: int) -> None:
    c = np.array([7, 8, 9, 10], np.float32)
    run_form(form, depth, 1.0, 0.0, c)
    counted = np.arange(1, 21, dtype=np.float32)
    sums = counted[1::4][:depth] @ counted[:15].reshape(3, 5)[:, :depth].T
    assert c.tolist() == [*sums.tolist(), 10]


#: Elements of A and B up to the last that a depth of 5 reads.
LAST = {"dot": (10, 5), "turned": (18, 15), "turned_a": (15, 18)}


@pytest.mark.parametrize("form", FORMS)
def test_forms_read_neither_c_without_beta_nor_more_than_the_depth(form: str) -> None:
    c = np.full(4, np.nan, np.float32)
    lines, others = np.ones(15, np.float32), np.ones(20, np.float32)
    lines[4::5], others[17:] = np.nan, np.nan  # the fifth depth
    a, b = {"dot": (lines, lines), "turned": (others, lines), "turned_a": (lines, others)}[form]
    run_form(form, 4, 1.0, 0.0, c, a=a, b=b)
    written = [0, 2] if form == "dot" else [0, 1, 2]
    assert np.flatnonzero(c == 4).tolist() == written
    assert np.isnan(np.delete(c, written)).all()


@pytest.mark.parametrize("form", FORMS)
def test_forms_stay_in_their_buffers(form: str) -> None:
    ones, last = np.ones(20, np.float32), LAST[form]
    run_form(form, 5, 1.0, 0.0, np.zeros(3, np.float32), a=ones[: last[0]], b=ones[: last[1]])
    for a, b, c in ((last[0] - 1, last[1], 3), (last[0], last[1] - 1, 3), (last[0], last[1], 2)):
        with pytest.raises(InvalidTileIr, match="reaches elements"):
            run_form(form, 5, 1.0, 0.0, np.zeros(c, np.float32), a=ones[:a], b=ones[:b])


EPILOGUE = (
    "thread s f32 [8]\n"
    "matmul 2x3x1 s[0; 4, 1]\n  = 0.0 * c + 1.0 * a[0; 1, 1] . a[2; 1, 1]\n  rows 2 columns 3 depth 1\n"
    "epilogue c[0; 5, 1] = {beta} * c + alpha * s[0; 4, 1] rows {rows} columns {columns}\n"
)
#: The sums of `EPILOGUE` with a = 1 2 3 4 5.
SUMS = np.array([[3, 4, 5], [6, 8, 10]], np.float32)


@looped(("alpha", "beta"), [(1.0, 0.0), (2.0, 1.0), (-0.5, 3.0), (0.0, 2.0)])
@looped(("rows", "columns"), [(2, 3), (1, 3), (2, 1), (0, 3), (2, 0)])
def test_epilogue(alpha: float, beta: float, rows: int, columns: int) -> None:
    a, c = np.arange(1, 6, dtype=np.float32), np.arange(10, dtype=np.float32)
    expected = c.reshape(2, 5).copy()
    expected[:rows, :columns] *= beta
    expected[:rows, :columns] += alpha * SUMS[:rows, :columns]
    text = HEAD + EPILOGUE.format(beta="beta", rows=rows, columns=columns)
    run(text, alpha=alpha, beta=beta, a=a, c=c)
    np.testing.assert_array_equal(c.reshape(2, 5), expected)


@pytest.mark.parametrize("beta", ["beta", "0.0", "-0.0"])
def test_an_epilogue_without_beta_does_not_read_c(beta: str) -> None:
    a, c = np.arange(1, 6, dtype=np.float32), np.full(10, np.nan, np.float32)
    run(HEAD + EPILOGUE.format(beta=beta, rows=2, columns=3), alpha=2.0, beta=0.0, a=a, c=c)
    np.testing.assert_array_equal(c.reshape(2, 5)[:, :3], 2 * SUMS)
    assert np.isnan(c.reshape(2, 5)[:, 3:]).all()
    c[...] = np.nan
    run(HEAD + EPILOGUE.format(beta="1.0", rows=2, columns=3), alpha=2.0, a=a, c=c)
    assert np.isnan(c).all()


def test_an_epilogue_of_sums_that_nobody_wrote_is_nan() -> None:
    a, c = np.arange(1, 6, dtype=np.float32), np.zeros(10, np.float32)
    run(HEAD + EPILOGUE.format(beta="beta", rows=2, columns=4), alpha=0.0, beta=1.0, a=a, c=c)
    assert np.isnan(c.reshape(2, 5)[:, 3]).all()


def test_an_epilogue_follows_the_first_iteration() -> None:
    text = (
        HEAD
        + EPILOGUE.split("epilogue", maxsplit=1)[0]
        + (
            "for p in 3 .. 9 step 3:\n"
            "  epilogue c[0; 5, 1] = (beta if p first else 10.0) * c + alpha * s[0; 4, 1] rows 1 columns 1\n"
        )
    )
    c = np.full(5, 7, np.float32)
    run(text, alpha=2.0, beta=3.0, a=np.arange(1, 6, dtype=np.float32), c=c)
    assert c.tolist() == [(3 * 7 + 2 * 3) * 10 + 2 * 3, 7, 7, 7, 7]


def test_an_epilogue_stays_in_its_buffers() -> None:
    a, text = np.arange(1, 6, dtype=np.float32), HEAD + EPILOGUE
    run(text.format(beta="beta", rows=2, columns=3), a=a, c=np.zeros(8, np.float32))
    with pytest.raises(InvalidTileIr, match=r"c\[.*reaches elements 0\.\.7 of 7"):
        run(text.format(beta="beta", rows=2, columns=3), a=a, c=np.zeros(7, np.float32))
    with pytest.raises(InvalidTileIr, match=r"s\[.*reaches elements 0\.\.8 of 8"):
        run(text.format(beta="beta", rows=2, columns=5), a=a, c=np.zeros(10, np.float32))


# --- bounds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size_a", "size_c", "buffer"),
    [(5, 7, "a"), (6, 6, "c"), (0, 7, "a"), (6, 0, "c")],
)
def test_a_window_behind_its_buffer_is_refused(size_a: int, size_c: int, buffer: str) -> None:
    text = HEAD + MATMUL.format(depth=2)
    run(text, a=np.ones(6, np.float32), c=np.ones(7, np.float32))
    with pytest.raises(InvalidTileIr, match=rf"{buffer}\[.*reaches elements 0\.\..* of"):
        run(text, a=np.ones(size_a, np.float32), c=np.ones(size_c, np.float32))


def test_a_window_before_its_buffer_is_refused() -> None:
    text = HEAD + MATMUL.format(depth=2).replace("c[0; 4, 1]", "c[3; 0 - 4, 1]")
    c = np.zeros(8, np.float32)
    run(text, a=np.ones(6, np.float32), c=(c, 1))
    assert np.flatnonzero(c).tolist() == [0, 1, 2, 4, 5, 6]
    with pytest.raises(InvalidTileIr, match="reaches elements -1"):
        run(text, a=np.ones(6, np.float32), c=c)


def test_an_empty_window_touches_nothing() -> None:
    text = HEAD + MATMUL.format(depth=2).replace("rows 2", "rows 0")
    run(text, a=np.ones(6, np.float32), c=np.empty(0, np.float32))


def test_an_empty_buffer_size_means_no_scratch() -> None:
    text = HEAD + "thread s f32 [3]\npack s[0; 1, 4] = a[0; 1, 1] lanes 1 depth 1 panel 4 kr 1 unit 1 whole\n"
    with pytest.raises(InvalidTileIr, match=r"s\[.*reaches elements 0\.\.3 of 3"):
        run(text, a=np.ones(1, np.float32), c=np.ones(1, np.float32))


# --- packing ------------------------------------------------------------------------------------------


def packed(
    lanes: int, depth: int, panel: int, kr: int, strides: tuple[int, int] = (100, 1), *, units: int = 1
) -> list[float]:
    """What a pack leaves in scratch, read back through products with 1; element (l, p) is 100·l + p."""
    unit = units * kr
    size = -(-lanes // panel) * panel * (-(-depth // unit) * unit)
    text = HEAD + (
        f"thread s f32 [{size}]\n"
        f"pack s[0; 1, {panel}] = a[0; {strides[0]}, {strides[1]}] "
        f"lanes {lanes} depth {depth} panel {panel} kr {kr} unit {unit} whole\n"
        f"for i in 0 .. {size} step 1:\n"
        "  matmul 1x1x1 c[i; 1, 1]\n    = 0.0 * c + 1.0 * s[i; 1, 1] . one[0; 1, 1]\n"
        "    rows 1 columns 1 depth 1\n"
    ).replace("thread", "argument one f32\nthread", 1)
    values = 100 * np.arange(lanes)[:, None] + np.arange(depth)
    flat = np.full(abs(strides[0]) * max(lanes, 1) + abs(strides[1]) * max(depth, 1), -1.0, np.float32)
    np.lib.stride_tricks.as_strided(flat, (lanes, depth), (4 * strides[0], 4 * strides[1]))[...] = values
    c = np.full(size, -7.0, np.float32)
    run(text, a=flat, c=c, one=np.ones(1, np.float32))
    return [float(value) for value in c]


@pytest.mark.parametrize(
    ("lanes", "depth", "panel", "kr", "expected"),
    [
        (2, 3, 2, 1, [0, 100, 1, 101, 2, 102]),
        (3, 2, 2, 1, [0, 100, 1, 101, 200, 200, 201, 201]),
        (2, 4, 2, 2, [0, 1, 100, 101, 2, 3, 102, 103]),
        (2, 3, 2, 2, [0, 1, 100, 101, 2, 0, 102, 0]),
        (1, 3, 2, 4, [0, 1, 2, 0, 0, 1, 2, 0]),
        (3, 3, 2, 2, [0, 1, 100, 101, 2, 0, 102, 0, 200, 201, 200, 201, 202, 0, 202, 0]),
        (0, 3, 2, 1, []),
        (2, 0, 2, 1, []),
    ],
)
def test_pack_layout(lanes: int, depth: int, panel: int, kr: int, expected: list[float]) -> None:
    assert packed(lanes, depth, panel, kr) == expected
    assert packed(lanes, depth, panel, kr, strides=(1, 7)) == expected


@draws(30)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3))
def test_every_element_is_where_the_docstring_says(
    lanes: int, depth: int, panel: int, kr: int, units: int
) -> None:
    found = packed(lanes, depth, panel, kr, units=units)
    padded = -(-depth // (units * kr)) * units * kr
    for lane in range(-(-lanes // panel) * panel):
        for p in range(padded):
            start = lane // panel * panel * padded  # the panel
            place = start + p // kr * panel * kr + lane % panel * kr + p % kr
            assert found[place] == (100 * min(lane, lanes - 1) + p if p < depth else 0)


#: Two complex numbers of two lanes: what each way of packing them leaves, lane by lane of each depth.
PAIRS = np.array([[1 + 2j, 3 + 4j], [5 + 6j, 7 + 8j]], np.complex64)
PARTS = {
    # Of A: the parts of one element are two depths of its lane.
    Parts.SPLIT: [1, 5, 2, 6, 3, 7, 4, 8],
    # Of B: two lanes for each element; with 1 and i as factors, (re, im) and (-im, re).
    Parts.ROTATED: [1, 2, 5, 6, -2, 1, -6, 5, 3, 4, 7, 8, -4, 3, -8, 7],
}


def pack_of(
    source: Array, dtype: DType, panel: int, kr: int = 1, unit: int = 1, parts: Parts = Parts.WHOLE
) -> Array:
    """What `Pack` leaves of an array of lanes × depths in panels of a type."""
    lanes, depth = source.shape
    lane_spread, depth_spread = parts.spread
    padded = -(-depth * depth_spread // unit) * unit
    flat = np.zeros(-(-lanes * lane_spread // panel) * panel * padded, dtype.numpy)
    node = Pack(
        Slice("panels", Constant(0), (Constant(kr), Constant(kr * panel)), interleave=kr),
        Slice("source", Constant(0), (Constant(depth), Constant(1))),
        *(Constant(lanes), Constant(depth), panel, kr, unit, parts),
    )
    Interpreter({"panels": (flat, 0), "source": (source.reshape(-1), 0)}, {}).pack(node, {})
    return flat


@pytest.mark.parametrize("parts", PARTS)
def test_parts_of_complex_numbers(parts: Parts) -> None:
    lane_spread, depth_spread = parts.spread
    assert pack_of(PAIRS, F32, 2 * lane_spread, parts=parts).tolist() == PARTS[parts]
    rows = np.array(PARTS[parts]).reshape(2 * depth_spread, 2 * lane_spread)
    # Missing lanes repeat the parts of the last element.
    more = np.concatenate((rows, rows[:, -lane_spread:]), axis=1)
    assert pack_of(PAIRS, F32, 3 * lane_spread, parts=parts).tolist() == more.reshape(-1).tolist()


def test_parts_multiply_like_complex_numbers() -> None:
    """Before: C = A·B. After: twice the depth and twice the columns, on numbers that are real."""
    random = np.random.default_rng(0)
    a, b = (random.integers(-9, 9, (3, 4)) + 1j * random.integers(-9, 9, (3, 4)) for _ in range(2))
    left = pack_of(a.astype(np.complex128), F64, 3, parts=Parts.SPLIT).reshape(8, 3)
    right = pack_of(b.astype(np.complex128), F64, 6, parts=Parts.ROTATED).reshape(8, 6)
    np.testing.assert_array_equal((left.T @ right).view(np.complex128), a @ b.T)


@pytest.mark.parametrize(
    ("source", "to"),
    [(F16, F32), (BF16, F32), (I8, I16), (I8, I32), (U8, I16), (I4, I8), (U4, U8), (I16, I32)],
)
def test_a_pack_widens(source: DType, to: DType) -> None:
    values = np.arange(6).reshape(2, 3).astype(source.numpy)
    if source.kind is not Kind.UNSIGNED:
        values = -values
    found = pack_of(values, to, 2, 2, 4)
    assert found.dtype == to.numpy
    sign = 1 if source.kind is Kind.UNSIGNED else -1
    assert [sign * float(value) for value in found] == [0, 1, 3, 4, 2, 0, 5, 0]


def test_words_of_several_depths() -> None:
    """Both operands in panels with 4 adjacent depths of each lane: the sum is that of the plain product."""
    random = np.random.default_rng(0)
    a, b = random.integers(-9, 9, (3, 7)), random.integers(-9, 9, (5, 7))
    panels = [pack_of(side.astype(np.int8), I8, lanes, 4, 4) for side, lanes in ((a, 3), (b, 6))]
    text = HEAD.replace("f32", "i8", 1).replace("c f32", "c i32") + (
        "argument b i8\n"
        "matmul 3x6x4 c[0; 5, 1]\n  = 0.0 * c + 1.0 * a[0; 4, 12 by 4] . b[0; 4, 24 by 4]\n"
        "  rows 3 columns 5 depth 8\n"
    )
    c = np.full(15, 99, np.int32)
    run(text, a=panels[0], b=panels[1], c=c)
    np.testing.assert_array_equal(c.reshape(3, 5), a @ b.T)
    with pytest.raises(InvalidTileIr, match=r"b by 4 .*reaches elements 0\.\.43 of 43"):
        run(text, a=panels[0], b=panels[1][:43], c=c)


def test_pairs_of_columns_are_adjacent() -> None:
    """C of complex numbers: two columns of the tile stand together, the next two 6 elements behind."""
    text = HEAD + (
        "matmul 2x4x1 c[1; 2, 6 by 2]\n  = beta * c + alpha * a[0; 2, 1] . a[0; 1, 9]\n"
        "  rows 2 columns 4 depth 1\n"
    )
    a, c = np.array([1, 2, 3, 4], np.float32), np.full(12, 10, np.float32)
    run(text, alpha=2.0, beta=1.0, a=a, c=c)
    assert c.tolist() == [10, 12, 14, 16, 22, 10, 10, 16, 18, 28, 34, 10]


CARRIED = (
    "thread s f32 [4]\n"
    "for p in 0 .. n step 2:\n"
    "  matmul 1x2x1 c[0; 2, 1]\n    = beta * c + alpha * a[p; 9, 1] . b[p; 1, 0]\n"
    "    rows 1 columns 2 depth 2 carry s[1; 2, 1] over p\n"
)


@pytest.mark.parametrize("n", [2, 4, 6])
def test_carried_sums_are_rounded_once(n: int) -> None:
    """bfloat16 holds 8 bits: 256 + 1 + 1 is 256 where each sum is rounded, 258 where the last one is."""
    text = HEAD.replace("f32", "bf16").replace("sizes", "sizes n") + "argument b bf16\n" + CARRIED
    a = np.array([256, 0, 1, 0, 1, 0], BF16.numpy)
    c = np.array([3, 3], BF16.numpy)
    run(text, {"n": n}, 2.0, 1.0, a=a, b=np.array([1, 1, 1, 1, 1, 1, 1], BF16.numpy), c=c)
    exact = 3 + 2 * a[:n].astype(float).sum()
    assert c.astype(float).tolist() == [float(BF16.numpy.type(exact))] * 2


def test_carried_sums_are_not_read_at_first_nor_c_written_before_the_end() -> None:
    text = HEAD.replace("sizes", "sizes n").replace("argument c", "argument b f32\nargument c") + CARRIED
    c = np.full(2, np.nan, np.float32)
    run(text, {"n": 4}, 1.0, 0.0, a=np.arange(1, 5, dtype=np.float32), b=np.ones(5, np.float32), c=c)
    assert c.tolist() == [10, 10], "scratch begins as NaN"
    c = np.full(2, 7, np.float32)
    run(text, {"n": 0}, 1.0, 1.0, a=c, b=c, c=c)
    assert c.tolist() == [7, 7]


# --- integers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [I32, I16, I8, U8, I4, U4], ids=str)
def test_sums_of_integers_wrap_around(dtype: DType) -> None:
    """(2^31 - 1) · 3 - 4 modulo the size of C."""
    text = HEAD.replace("a f32", "a i32").replace("c f32", f"c {dtype}") + (
        "matmul 1x1x1 c[0; 1, 1]\n  = beta * c + alpha * a[0; 1, 1] . a[1; 1, 1]\n"
        "  rows 1 columns 1 depth 1\n"
    )
    c = np.array([4]).astype(dtype.numpy)
    run(text, alpha=3.0, beta=-1.0, a=np.array([2**31 - 1, 1], np.int32), c=c)
    modulus = 1 << dtype.significand
    assert int(c[0]) % modulus == (3 * (2**31 - 1) - 4) % modulus


def test_an_epilogue_of_long_integers_is_exact() -> None:
    """2^53 + 1 has no float64."""
    text = HEAD.replace("f32", "i64") + (
        "thread s i64 [1]\n"
        "matmul 1x1x1 s[0; 1, 1]\n  = 0.0 * c + 1.0 * a[0; 1, 1] . a[1; 1, 1]\n  rows 1 columns 1 depth 1\n"
        "epilogue c[0; 1, 1] = beta * c + alpha * s[0; 1, 1] rows 1 columns 1\n"
    )
    c = np.array([2**60 + 1])
    run(text, alpha=3.0, beta=2.0, a=np.array([2**53 + 1, 1]), c=c)
    assert c.tolist() == [3 * (2**53 + 1) + 2 * (2**60 + 1)]


def test_scratch_that_was_not_packed_is_nan() -> None:
    text = HEAD + (
        "thread s f32 [8]\n"
        "pack s[0; 1, 2] = a[0; 1, 1] lanes 2 depth 1 panel 2 kr 1 unit 1 whole\n"
        "matmul 1x8x1 c[0; 8, 1]\n  = 0.0 * c + 1.0 * a[0; 1, 1] . s[0; 1, 8]\n  rows 1 columns 8 depth 1\n"
    )
    c = np.zeros(8, np.float32)
    run(text, a=np.ones(2, np.float32), c=c)
    assert c[:2].tolist() == [1, 1]
    assert np.isnan(c[2:]).all()


# --- a small product by hand ----------------------------------------------------------------------------


def test_a_blocked_product() -> None:
    text = """\
program gemm
sizes m n k
scalars alpha beta
argument a f64
argument b f64
argument c f64
thread b_pack f64 [8]
for j in 0 .. n step 2:
  for p in 0 .. max(k, 1) step 4:
    let depth = min(4, unless(alpha, k) - p)
    pack b_pack[0; 1, 2] = b[j + p * n; 1, n] lanes min(2, n - j) depth depth panel 2 kr 1 unit 1 whole
    for i in 0 .. m step 3:
      matmul 3x2x1 c[i * n + j; n, 1]
        = (beta if p first else 1.0) * c + alpha * a[i * k + p; k, 1] . b_pack[0; 1, 2]
        rows min(3, m - i) columns min(2, n - j) depth depth
"""
    m, n, k = 7, 5, 9
    random = np.random.default_rng(0)
    a, b, c = random.normal(size=(m, k)), random.normal(size=(k, n)), random.normal(size=(m, n))
    found = c.copy()
    run(text, {"m": m, "n": n, "k": k}, 0.5, -2.0, a=a.ravel(), b=b.ravel(), c=found.reshape(-1))
    np.testing.assert_allclose(found, 0.5 * a @ b - 2.0 * c, rtol=1e-12, atol=1e-12)
