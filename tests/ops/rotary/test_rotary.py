"""Rotary embeddings of arrays: numbers, conventions, positions, strides, places, threads, errors."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import LAYOUTS, Array, GuardedMemory, no_flags, rough, unaligned
from tiers import crossed, draws, named

import tilewright as tw
from tilewright.compiler.kernel import Kernel
from tilewright.errors import (
    IndexPastEnd,
    InvalidChoice,
    InvalidFlag,
    InvalidIndices,
    InvalidSize,
    InvalidTileIr,
    OutReadOnly,
    OutShape,
    RotaryAxes,
    RotaryPositions,
    RotaryTables,
    UnsupportedDtype,
)
from tilewright.ir.expressions import Constant, Name
from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Buffer, Program, Slice, Space
from tilewright.ir.parse import parse_program
from tilewright.ir.primitives.rotary import RotateRows
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.ops.rotary.cut import RotaryCut, choose_rotary
from tilewright.ops.rotary.nest import build_rotary
from tilewright.ops.rotary.problem import Rotary
from tilewright.ops.rows.kernel import RowCall
from tilewright.spec.dtype import BF16, F16, F32, F64, I64, DType
from tilewright.spec.rotary import Pairing

#: Roundings of a result: two products and their sum, or difference.
ROUNDINGS = 3
#: Elements of a head and rotated ones: whole vectors, a rest, part of a head, nothing, odd heads.
HEADS = ((64, 64), (80, 32), (10, 6), (128, 128), (7, 4), (2, 2), (5, 0))
POSITIONS = 40


def tables(dim: int, dtype: DType = F32) -> tuple[Array, Array]:
    """Tables of any numbers: what a kernel does with them, it does with cosines too."""
    shape = (POSITIONS, dim // 2)
    return rough(shape, dtype.numpy, seed=7), rough(shape, dtype.numpy, seed=8)


def by_pairs(x: Array, cos: Array, sin: Array, positions: Any, *, interleaved: bool) -> Array:
    """(sequence, d) one pair after the other, as complex numbers."""
    found = x.astype(np.float64)
    for row, position in enumerate(positions):
        pairs = cos.shape[1]
        for pair in range(pairs):
            first, second = (2 * pair, 2 * pair + 1) if interleaved else (pair, pair + pairs)
            turned = complex(found[row, first], found[row, second]) * complex(
                float(cos[position, pair]), float(sin[position, pair])
            )
            found[row, first], found[row, second] = turned.real, turned.imag
    return found


def exact(
    x: Array,
    cos: Array,
    sin: Array,
    positions: Any = None,
    *,
    interleaved: bool = False,
    layout: str = "bhsd",
) -> Array:
    """The result in float64, of four axes."""
    heads = x if layout == "bhsd" else x.swapaxes(1, 2)
    batch, count, length, _ = heads.shape
    places = np.broadcast_to(np.arange(length) if positions is None else positions, (batch, length))
    found = np.empty(heads.shape)
    for b in range(batch):
        for h in range(count):
            found[b, h] = by_pairs(heads[b, h], cos, sin, places[b], interleaved=interleaved)
    return found if layout == "bhsd" else found.swapaxes(1, 2)


def assert_close(found: Array, expected: Array, dtype: DType = F32) -> None:
    """A few roundings of the type computed in, of numbers as large as the operands; then one."""
    acc = F64 if dtype == F64 else F32
    bound = (
        20 * ROUNDINGS * acc.unit_roundoff
        + dtype.unit_roundoff * np.abs(expected)
        + 2.0**-24 * (dtype == F16)
    )
    assert (np.abs(found.astype(np.float64) - expected) <= bound).all()


@pytest.mark.parametrize(
    ("dtype", "interleaved", "layout"),
    crossed(
        [F32, F64, BF16, F16],
        [(interleaved, layout) for interleaved in (False, True) for layout in ("bhsd", "bshd")],
        2,
    ),
    ids=named,
)
def test_every_type_convention_and_layout(dtype: DType, interleaved: bool, layout: str) -> None:
    places = np.random.default_rng(0).integers(0, POSITIONS, (2, 5))
    for d, rotated in HEADS:
        cos, sin = tables(rotated, F64 if dtype == F64 else F32)
        x = rough((2, 3, 5, d) if layout == "bhsd" else (2, 5, 3, d)).astype(dtype.numpy)
        for positions in (None, places):
            found = tw.rotary(x, cos, sin, positions, interleaved=interleaved, layout=layout)
            assert (found.dtype, found.shape) == (x.dtype, x.shape)
            expected = exact(x, cos, sin, positions, interleaved=interleaved, layout=layout)
            assert_close(found, expected, dtype)
            assert np.array_equal(found[..., rotated:], x[..., rotated:])


def test_both_conventions_are_one_rotation_of_reordered_elements() -> None:
    cos, sin = tw.rotary_tables(9, 16)
    x = rough((3, 9, 16))
    order = np.arange(16).reshape(2, 8).T.ravel()  # 0, 8, 1, 9, ...
    halves = tw.rotary(x, cos, sin)
    assert np.array_equal(tw.rotary(x[..., order], cos, sin, interleaved=True), halves[..., order])


def test_scores_depend_on_the_distance_alone() -> None:
    cos, sin = tw.rotary_tables(POSITIONS, 32, dtype="f64")
    q, k = rough((1, 32), np.float64), rough((1, 32), np.float64, seed=1)
    for interleaved in (False, True):
        scores = [
            float(
                tw.rotary(q, cos, sin, [9 + far], interleaved=interleaved)[0]
                @ tw.rotary(k, cos, sin, [2 + far], interleaved=interleaved)[0]
            )
            for far in (0, 7, 30)
        ]
        np.testing.assert_allclose(scores, scores[0], rtol=1e-13)


@pytest.mark.parametrize("interleaved", [False, True])
def test_shapes_of_x_and_of_positions(interleaved: bool) -> None:
    cos, sin = tables(8)
    x, form = rough((2, 3, 5, 8)), {"interleaved": interleaved}
    places: Array = np.random.default_rng(1).integers(0, POSITIONS, (2, 5))
    whole = tw.rotary(x, cos, sin, places, **form)
    for batch in range(2):
        assert np.array_equal(tw.rotary(x[batch], cos, sin, places[batch], **form), whole[batch])
        assert np.array_equal(tw.rotary(x[batch, 1], cos, sin, places[batch], **form), whole[batch, 1])
        tokens = x[batch].swapaxes(0, 1)
        found = tw.rotary(tokens, cos, sin, places[batch], layout="bshd", **form)
        assert np.array_equal(found.swapaxes(0, 1), whole[batch])
    for positions in (places[0], places[:1], places[:, :1], places[0, 0]):
        same = np.broadcast_to(positions, (2, 5))
        found = tw.rotary(x, cos, sin, positions, **form)
        assert np.array_equal(found, tw.rotary(x, cos, sin, same.copy(), **form))
    for kind in ("i1", "u1", "i4", "u8", ">i8"):
        assert np.array_equal(tw.rotary(x, cos, sin, places.astype(kind), **form), whole)
    assert np.array_equal(tw.rotary(x, cos, sin, places.tolist(), **form), whole)
    many = rough((2, 9, 1, 8))  # heads are the longer axis
    one = tw.rotary(many, cos, sin, places[:, :1], **form)
    assert_close(one, exact(many, cos, sin, places[:, :1], interleaved=interleaved))
    assert tw.rotary(x[:, :, :0], cos, sin, places[:, :0], **form).shape == (2, 3, 0, 8)


def test_types_of_tables() -> None:
    x = rough((2, 5, 8))
    cos, sin = tables(8, F64)
    found = tw.rotary(x, cos.astype(np.float32), sin.astype(np.float32))
    assert np.array_equal(tw.rotary(x, cos, sin), found)
    assert np.array_equal(tw.rotary(x, np.asfortranarray(cos), sin[::-1][::-1]), found)
    assert np.array_equal(tw.rotary(x, *(np.repeat(table, 2, 1)[:, ::2] for table in (cos, sin))), found)
    narrow = [table.astype(BF16.numpy) for table in (cos, sin)]
    wide = [table.astype(np.float32) for table in narrow]
    half = x.astype(BF16.numpy)
    assert np.array_equal(tw.rotary(half, *narrow), tw.rotary(half, *wide))
    assert np.array_equal(tw.rotary(half, narrow[0], wide[1]), tw.rotary(half, *wide))
    assert np.array_equal(tw.rotary(x, *narrow), tw.rotary(x, *wide))
    whole = np.arange(16).reshape(2, 8)
    assert np.array_equal(tw.rotary(whole, cos, sin), tw.rotary(whole.astype(np.float64), cos, sin))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("interleaved", [False, True])
def test_any_strides_in_and_out(layout: str, interleaved: bool) -> None:
    cos, sin = tables(12)
    x = LAYOUTS[layout](rough((2, 4, 7, 15)))
    expected = exact(x, cos, sin, interleaved=interleaved)
    assert_close(tw.rotary(x, cos, sin, interleaved=interleaved), expected)
    for other in LAYOUTS:
        out = LAYOUTS[other](np.full((2, 4, 7, 15), np.nan, np.float32))
        assert tw.rotary(x, cos, sin, interleaved=interleaved, out=out) is out
        assert_close(out, expected)


@pytest.mark.parametrize("interleaved", [False, True])
def test_in_place_overlapping_and_unaligned(interleaved: bool) -> None:
    cos, sin = tables(20)
    x, form = rough((3, 9, 24)), {"interleaved": interleaved}
    expected = tw.rotary(x, cos, sin, **form)
    for same in (x.copy(), np.asfortranarray(x), unaligned(x)):
        assert np.array_equal(tw.rotary(same, cos, sin, out=same, **form), expected)
    shifted = x.copy()
    assert np.array_equal(tw.rotary(shifted[1:], cos, sin, out=shifted[:-1], **form), expected[1:])
    table = rough((POSITIONS, 10), seed=7)
    places, part = np.arange(9)[::-1].copy(), (cos[:, :5].copy(), sin[:, :5])
    found = tw.rotary(x[0, :, :10], table[:, :5], sin[:, :5], places, out=table[:9], **form)
    assert np.array_equal(found, tw.rotary(x[0, :, :10], *part, places, **form))


def test_nan_and_infinities_stay_in_their_pairs() -> None:
    cos, sin = tables(8)
    x = rough((1, 8))
    x[0, 1], x[0, 2] = np.nan, np.inf
    for interleaved, touched in ((False, {1, 5, 2, 6}), (True, {0, 1, 2, 3})):
        found = tw.rotary(x, cos, sin, interleaved=interleaved)
        assert set(np.flatnonzero(~np.isfinite(found[0])).tolist()) == touched


def test_padding_raises_no_flag() -> None:
    cos, sin = tables(6)
    x = rough((3, 9))
    for interleaved in (False, True):
        tw.rotary(x, cos, sin, interleaved=interleaved, out=x)
        with no_flags():
            tw.rotary(x, cos, sin, interleaved=interleaved, out=x)


def test_threads_change_no_bit() -> None:
    cos, sin = tw.rotary_tables(3000, 64)
    for shape in ((1, 4, 3000, 64), (5, 300, 7, 80), (2, 1, 3000, 66)):
        x = rough(shape)
        for interleaved in (False, True):
            one, three = (tw.rotary(x, cos, sin, interleaved=interleaved, threads=n) for n in (1, 3))
            assert np.array_equal(one, three)


@draws(40)
@given(data=st.data())
def test_any_sizes(data: st.DataObject) -> None:
    batch, heads, length = (data.draw(st.integers(0, 4)) for _ in range(3))
    d = data.draw(st.integers(1, 40))
    pairs = data.draw(st.integers(0, d // 2))
    interleaved, layout = data.draw(st.booleans()), data.draw(st.sampled_from(["bhsd", "bshd"]))
    cos, sin = tables(2 * pairs)
    shape = (batch, heads, length, d) if layout == "bhsd" else (batch, length, heads, d)
    x = rough(shape)
    places = np.array(
        data.draw(st.lists(st.integers(0, POSITIONS - 1), min_size=batch * length, max_size=batch * length)),
        np.int64,
    ).reshape(batch, length)
    found = tw.rotary(x, cos, sin, places, interleaved=interleaved, layout=layout)
    assert_close(found, exact(x, cos, sin, places, interleaved=interleaved, layout=layout))


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("pairing", ["halves", "interleaved"])
def test_no_byte_outside_is_touched(dtype: str, pairing: str) -> None:
    problem = Rotary(dtype, pairing=pairing)
    kernel, kind, table = Kernel.compiled(problem), problem.dtype.numpy, problem.tables.numpy
    memories = [GuardedMemory(1 << 15) for _ in range(5)]
    turn = 0
    for rows, pairs, rest in ((1, 1, 0), (3, 2, 3), (2, 8, 1), (4, 33, 0), (2, 16, 17), (3, 70, 9)):
        for gap in (0, 3):
            at_end, turn = bool(turn % 2), turn + 1
            columns, size = 2 * pairs + rest, np.dtype(kind).itemsize
            places = np.random.default_rng(turn).integers(0, 6, rows)
            places[-1] = 5
            steps, wide = ((columns + gap) * size, size), np.dtype(table).itemsize
            content = rough((rows, columns)).astype(kind)
            x = memories[0].place(content, steps, at_end=at_end)
            y = memories[1].place(np.zeros_like(content), steps, at_end=at_end)
            cos, sin = (
                memory.place(rough((6, pairs), table, seed=seed), ((pairs + gap) * wide, wide), at_end=at_end)
                for seed, memory in enumerate(memories[2:4])
            )
            positions = memories[4].place(places, (8,), at_end=at_end)
            before = memories[1].outside(y)
            line, of_tables = columns + gap, pairs + gap
            sizes = (1, 1, rows, pairs, rest, 0, 0, line, 0, 0, line, 0, 0, 1, of_tables, of_tables)
            RowCall(kernel, [x, y, cos, sin, positions], sizes, x.size).run()
            assert_close(y, problem.reference(content, cos[places], sin[places]), problem.dtype)
            assert np.array_equal(memories[1].outside(y), before)


@pytest.mark.parametrize("pairing", ["halves", "interleaved"])
@pytest.mark.parametrize("target", tw.targets())
def test_the_oracle_rotates_every_row(target: str, pairing: str) -> None:
    problem = Rotary(pairing=pairing)
    machine = find_machine(target)
    program = verify(build_rotary(problem, choose_rotary(problem, machine), "kernel"))
    assert parse_program(print_program(program)) == program
    x, (cos, sin) = rough((2, 3, 4, 7)), tables(6)
    places = np.random.default_rng(2).integers(0, POSITIONS, (2, 4))
    arrays = {
        "x": x.ravel(),
        "y": np.full(x.size, np.nan, np.float32),
        "cos": cos.ravel(),
        "sin": sin.ravel(),
        "positions": places.ravel(),
    }
    steps = (84, 28, 7)
    counts = (2, 3, 4, 3, 1, *steps, *steps, 4, 0, 1, 3, 3)
    interpret(program, dict(zip(program.sizes, counts, strict=True)), {}, arrays, threads=3)
    expected = exact(x, cos, sin, places, interleaved=pairing == "interleaved")
    assert_close(arrays["y"].reshape(x.shape), expected)


def test_windows_that_are_refused() -> None:
    one, zero, n = Constant(1), Constant(0), Name("n")
    kinds = {"to": F32, "source": F32, "cos": F32, "sin": F32, "positions": I64, "wide": F64}

    def program(**changed: Any) -> Program:
        windows = {name: Slice(name, zero, (n, one)) for name in kinds if name != "wide"}
        fields = {"pairing": Pairing.HALVES, **windows, "rows": one, "pairs": n, "rest": zero}
        buffers = tuple(Buffer(name, dtype, Space.ARGUMENT) for name, dtype in kinds.items())
        return Program("p", ("n",), (), buffers, (RotateRows(**{**fields, **changed}),))

    verify(program())
    for changed, words in (
        ({"source": Slice("source", zero, (one, n))}, "must be adjacent in source"),
        ({"sin": Slice("sin", zero, (one, n))}, "must be adjacent in sin"),
        ({"to": Slice("wide", zero, (n, one))}, "to and source have one type"),
        ({"cos": Slice("wide", zero, (n, one))}, "cos and sin have one type"),
        ({"positions": Slice("cos", zero, (n, one))}, "positions are 64-bit integers"),
    ):
        with pytest.raises(InvalidTileIr, match=words):
            verify(program(**changed))


def test_positions_are_checked_in_every_call() -> None:
    """In those too that machine code repeats: Python makes the call then, and nothing has been written."""
    cos, sin = tables(8)
    x, out = rough((2, 3, 5, 8)), np.full((2, 3, 5, 8), 7.0, np.float32)
    places: Array = np.zeros((2, 5), np.int64)
    for wrong in (-1, POSITIONS, 2**63 - 1, -(2**63)):
        for _ in range(3):
            places[1, 3] = POSITIONS - 1
            tw.rotary(x, cos, sin, places, out=out)
        out[...] = 7
        places[1, 3] = wrong
        with pytest.raises(IndexPastEnd, match=rf"^rotary: positions\[1, 3\] is {wrong}, .* less than 40"):
            tw.rotary(x, cos, sin, places, out=out)
        assert (out == 7).all()
    with pytest.raises(IndexPastEnd, match="18446744073709551615"):
        tw.rotary(x, cos, sin, np.full((5,), 2**64 - 1, np.uint64))


def test_errors() -> None:
    cos, sin = tables(8)
    x, out = rough((2, 3, 5, 8)), np.full((2, 3, 5, 8), 7.0, np.float32)
    for shape in ((8,), (1, 2, 3, 5, 8)):
        with pytest.raises(RotaryAxes, match="must have 2 to 4 axes"):
            tw.rotary(np.ones(shape), cos, sin, out=out)
    for pair, words in (
        ((cos[0], sin), "cos has shape"),
        ((cos, sin[:, :2]), "sin has shape"),
        ((np.ones((9, 5)), np.ones((9, 5))), "at most 4 pairs"),
        ((cos[:4], sin[:4]), "at least 5 rows"),
    ):
        with pytest.raises(RotaryTables, match=words):
            tw.rotary(x, *pair, out=out)
    for positions in (np.zeros((3, 5), int), np.zeros((2, 4), int), np.zeros((1, 2, 5), int)):
        with pytest.raises(RotaryPositions, match=r"\(batch, sequence\)"):
            tw.rotary(x, cos, sin, positions, out=out)
    with pytest.raises(RotaryPositions, match=r"\(sequence,\)"):
        tw.rotary(x[0], cos, sin, np.zeros((3, 5), int))
    for positions in map(np.asarray, (np.zeros(5), np.zeros(5, bool))):
        with pytest.raises(InvalidIndices, match="must be of integers"):
            tw.rotary(x, cos, sin, positions, out=out)
    with pytest.raises(InvalidChoice, match="layout"):
        tw.rotary(x, cos, sin, layout="sbhd", out=out)
    with pytest.raises(InvalidFlag, match="interleaved"):
        tw.rotary(x, cos, sin, interleaved="halves", out=out)
    with pytest.raises(UnsupportedDtype):
        tw.rotary(x, cos.astype(complex), sin, out=out)
    with pytest.raises(OutShape):
        tw.rotary(x, cos, sin, out=out[:1])
    assert (out == 7).all()
    out.flags.writeable = False
    with pytest.raises(OutReadOnly):
        tw.rotary(x, cos, sin, out=out)
    with pytest.raises(InvalidChoice, match="pairing"):
        Rotary(pairing="neox")
    with pytest.raises(InvalidSize, match="task_elements"):
        RotaryCut(0)


def test_a_header_and_explanations() -> None:
    kernel = tw.compile(Rotary(pairing="interleaved"))
    for name in ("*x", "*y", "*cos", "*sin", "*positions", *(f" {size}" for size in kernel.nest.sizes)):
        assert name in kernel.header
    cos, sin = tables(8)
    x = rough((2, 3, 5, 8))
    assert tw.explain(tw.rotary, x, cos, sin).kernel.startswith("rotary_halves_f32_f32_")
    assert tw.explain(tw.rotary, x[..., ::-1], cos, sin).strategy.startswith("arrays are moved")


# --- tables -----------------------------------------------------------------------------------------

DIM, ORIGINAL = 64, 2048


def frequency(pair: int, scaling: str | None, factor: float, length: int, base: float = 10000.0) -> float:
    """The frequency of one pair, step by step as the papers state it."""
    plain: float = base ** (-2 * pair / DIM)
    if scaling is None:
        return plain
    if scaling == "linear":
        return plain / factor
    if scaling in ("ntk", "dynamic"):
        if scaling == "dynamic":
            factor = factor * max(length, ORIGINAL) / ORIGINAL - (factor - 1)
        return float((base * factor ** (DIM / (DIM - 2))) ** (-2 * pair / DIM))
    wavelength = 2 * math.pi / plain
    if scaling == "llama3":  # the reference implementation of Llama 3.1
        low, high = 1.0, 4.0
        if wavelength < ORIGINAL / high:
            return plain
        if wavelength > ORIGINAL / low:
            return plain / factor
        smooth = (ORIGINAL / wavelength - low) / (high - low)
        return (1 - smooth) * plain / factor + smooth * plain
    borders = [DIM * math.log(ORIGINAL / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (32, 1)]
    first, last = max(math.floor(borders[0]), 0), min(math.ceil(borders[1]), DIM - 1)
    ramp = min(max((pair - first) / (last - first), 0), 1)
    return plain / factor * ramp + plain * (1 - ramp)


@pytest.mark.parametrize("scaling", [None, "linear", "ntk", "dynamic", "yarn", "llama3"])
@pytest.mark.parametrize("length", [16, 5000])
def test_tables_of_every_scaling(scaling: Any, length: int) -> None:
    factor = 1.0 if scaling is None else 4.0
    cos, sin = tw.rotary_tables(
        length, DIM, scaling=scaling, factor=factor, original_length=ORIGINAL, dtype="f64"
    )
    assert cos.shape == sin.shape == (length, DIM // 2)
    scale = 0.1 * math.log(factor) + 1 if scaling == "yarn" else 1.0
    for position in (0, 1, length - 1):
        for pair in range(DIM // 2):
            angle = position * frequency(pair, scaling, factor, length)
            assert cos[position, pair] == pytest.approx(scale * math.cos(angle), abs=1e-11)
            assert sin[position, pair] == pytest.approx(scale * math.sin(angle), abs=1e-11)


def test_scalings_change_frequencies_as_they_say() -> None:
    def slopes(scaling: Any, **named: Any) -> Array:
        _, sin = tw.rotary_tables(2, DIM, scaling=scaling, factor=4.0, dtype="f64", **named)
        return np.asarray(np.arcsin(sin[1]))

    plain = slopes(None)
    np.testing.assert_allclose(slopes("linear")[1:], plain[1:] / 4, rtol=1e-12)
    ntk = slopes("ntk")
    assert ntk[0] == plain[0]
    assert ntk[-1] == pytest.approx(plain[-1] / 4)
    for scaling in ("yarn", "llama3"):
        found = slopes(scaling, original_length=ORIGINAL, attention_factor=1.0)
        np.testing.assert_allclose(found[:2], plain[:2], rtol=1e-12)
        np.testing.assert_allclose(found[-2:], plain[-2:] / 4, rtol=1e-12)
    within = tw.rotary_tables(100, DIM, scaling="dynamic", factor=4.0, original_length=ORIGINAL)
    assert np.array_equal(within[0], tw.rotary_tables(100, DIM)[0])


def test_types_and_factors_of_tables() -> None:
    wide = tw.rotary_tables(9, 8, dtype="f64")
    for dtype in ("f32", "bf16", "f16"):
        found = tw.rotary_tables(9, 8, dtype=dtype)
        for narrow, table in zip(found, wide, strict=True):
            assert np.array_equal(narrow, table.astype(np.float32).astype(narrow.dtype))
    doubled = tw.rotary_tables(9, 8, dtype="f64", attention_factor=2.0)
    assert np.array_equal(doubled[0], 2 * wide[0])
    assert tw.rotary_tables(0, 2)[0].shape == (0, 1)
    assert np.array_equal(tw.rotary_tables(3, 2, scaling="ntk", factor=8)[0], tw.rotary_tables(3, 2)[0])


def test_wrong_tables() -> None:
    for changed, words in (
        ({"dim": 3}, "rotary_tables: dim is 3, must be an even number"),
        ({"length": -1}, "length"),
        ({"scaling": "yarn"}, "original_length is None, .*scaling 'yarn' depends on it"),
        ({"scaling": "dynamic", "original_length": 0}, "original_length"),
    ):
        with pytest.raises(InvalidSize, match=words):
            tw.rotary_tables(**{"length": 4, "dim": 4, **changed})
    for name in ("base", "factor", "beta_fast", "attention_factor"):
        for value in (0, -1.0, np.inf, np.nan, "4"):
            with pytest.raises(tw.errors.InvalidScalar, match=name):
                tw.rotary_tables(4, 4, **{name: value})
    with pytest.raises(tw.errors.InvalidScalar, match="greater than 1"):
        tw.rotary_tables(4, 4, 1.0)
    with pytest.raises(InvalidChoice, match="scaling"):
        tw.rotary_tables(4, 4, scaling="su")
    with pytest.raises(UnsupportedDtype):
        tw.rotary_tables(4, 4, dtype="i8")
