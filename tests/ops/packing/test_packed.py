"""Packed matrices: the same bits as without packing, what they know of themselves, and every refusal."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from itertools import product
from typing import Any, Literal

import ml_dtypes
import numpy as np
import pytest
from foreign_tiles import foreign_packed
from hypothesis import given
from hypothesis import strategies as st
from shares import EVERY_TEST_RUNS, looped
from support import GUARD_PAGES, LAYOUTS, Array, GuardedMemory, unaligned
from tiers import draws, exhaustive

import tilewright as tw
from tilewright import errors
from tilewright.ops.packing.matrix import PANEL_ALIGNMENT, PackedMatrix
from tilewright.spec.dtype import DTYPES, F32, GEMM_DTYPES, Kind
from tilewright.typing import ActivationName, RoleName

#: Sizes around register tiles, vectors, depth blocks and their edges.
SIZES = ((1, 1, 2), (1, 100, 33), (5, 700, 70), (13, 64, 32), (100, 1200, 100), (37, 513, 257), (2, 3, 5))
each_dtype = pytest.mark.parametrize("dtype", [d.name for d in GEMM_DTYPES])


def values(shape: tuple[int, ...], name: str, seed: int = 0) -> Array:
    """Numbers of a type whose sums round."""
    random, dtype = np.random.default_rng(seed), DTYPES[name]
    if dtype.is_integer:
        low = 0 if dtype.kind is Kind.UNSIGNED else -8
        return random.integers(low, 8, shape).astype(dtype.numpy)
    found = random.standard_normal(shape)
    if dtype.kind is Kind.COMPLEX:
        return (found + 1j * random.standard_normal(shape)).astype(dtype.numpy)
    return found.astype(dtype.numpy)


def same_bits(found: Array, expected: Array) -> bool:
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("dtype", "role"),
    [
        (found.name, role)
        for number, found in enumerate(GEMM_DTYPES)
        for role in ("ab" if EVERY_TEST_RUNS or found is F32 else "ab"[number % 2])
    ],
)
def test_products_have_the_bits_of_unpacked_ones(dtype: str, role: RoleName) -> None:
    """Of every type; types take turns with the operand that is packed."""
    for m, k, n in SIZES:
        a, b = values((m, k), dtype, 1), values((k, n), dtype, 2)
        found = tw.matmul(a, tw.pack(b)) if role == "b" else tw.matmul(tw.pack(a, role="a"), b)
        assert same_bits(found, tw.matmul(a, b)), (m, k, n)


@pytest.mark.parametrize("m", range(1, 9))
def test_few_rows_have_the_bits_of_many(m: int) -> None:
    a, b = values((64, 1100), "f32", 1), values((1100, 300), "f32", 2)
    many = tw.matmul(a, tw.pack(b))
    assert same_bits(tw.matmul(a[:m], tw.pack(b)), many[:m])


@each_dtype
def test_unpack_gives_back_every_bit(dtype: str) -> None:
    matrix = values((67, 45), dtype)
    roles: tuple[RoleName, ...] = ("a", "b")
    for layout, role in product(LAYOUTS, roles):
        packed = tw.pack(LAYOUTS[layout](matrix), role=role)
        assert same_bits(tw.unpack(packed), matrix), (layout, role)
        assert tw.unpack(packed).flags.c_contiguous, (layout, role)


@draws(60)
@given(
    shape=st.tuples(st.integers(0, 70), st.integers(0, 70)),
    tiles=st.none() | st.tuples(st.integers(1, 40), st.integers(1, 9)),
    role=st.sampled_from(["a", "b"]),
    dtype=st.sampled_from(["f32", "bf16", "f64", "i8"]),
)
def test_any_tiles_round_trip(
    shape: tuple[int, int], tiles: tuple[int, int] | None, role: RoleName, dtype: str
) -> None:
    matrix = values(shape, dtype)
    packed = tw.pack(matrix, role=role, tiles=tiles)
    assert same_bits(tw.unpack(packed), matrix)
    if tiles is not None:
        assert packed.tiles == tiles
        lanes, depth = shape if role == "a" else shape[::-1]
        assert packed.data4d.shape == (-(-lanes // tiles[0]), -(-depth // tiles[1]), *tiles)
        assert np.count_nonzero(packed.data4d) == np.count_nonzero(matrix)  # the padding is zeros


def test_tiles_are_those_of_the_source_document() -> None:
    b = values((10, 12), "f32")
    tiles = tw.pack(b, tiles=(4, 5)).data4d
    expected = b.T.reshape(3, 4, 2, 5).transpose(0, 2, 1, 3)  # Taei and Jacob 2021, pack_2d_4d of Bᵀ
    assert np.array_equal(tiles, expected)


def test_padding_lanes_repeat_a_lane_and_padding_depths_are_zero() -> None:
    b = values((7, 5), "i8")
    packed = tw.pack(b)
    lanes, kr = packed.tiles
    panel = packed.data4d[0].transpose(0, 2, 1).reshape(-1, lanes)
    assert np.array_equal(panel[:7, :5], b)
    assert np.array_equal(panel[:7, 5:], np.repeat(b[:, -1:], lanes - 5, axis=1))
    assert not panel[7:].any()
    assert len(panel) % kr == 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_of_the_other_operand_and_of_out(layout: str) -> None:
    a, b = values((50, 90), "f32", 1), values((90, 70), "f32", 2)
    packed, expected = tw.pack(b), tw.matmul(a, b)
    assert same_bits(tw.matmul(LAYOUTS[layout](a), packed), expected)
    out = LAYOUTS[layout](np.full((50, 70), np.nan, np.float32))
    assert tw.matmul(a, packed, out=out) is out
    assert np.array_equal(out, expected)


@looped("batch", [(3,), (2, 3), (1,), (0,)])
@looped("layout", ["C", "strided", "padded columns", "reversed"])
def test_batches(batch: tuple[int, ...], layout: str) -> None:
    a, b = values((*batch, 20, 40), "f32", 1), values((40, 50), "f32", 2)
    assert same_bits(tw.matmul(LAYOUTS[layout](a), tw.pack(b)), tw.matmul(a, b))
    c = values((*batch, 50, 9), "f32", 3)
    packed = tw.pack(b, role="a")
    assert same_bits(tw.matmul(packed, LAYOUTS[layout](c)), tw.matmul(b, c))


def test_vectors() -> None:
    a, b = values((40,), "f32", 1), values((40, 50), "f32", 2)
    assert same_bits(tw.matmul(a, tw.pack(b)), tw.matmul(a[None], b)[0])
    x = values((50,), "f32", 1)
    assert np.allclose(tw.matmul(tw.pack(b, role="a"), x), b @ x, rtol=1e-5, atol=1e-5)


def test_factors_out_and_overlap() -> None:
    a, b = values((30, 60), "f64", 1), values((60, 60), "f64", 2)
    packed, out = tw.pack(b), values((30, 60), "f64", 3)
    expected = tw.matmul(a, b, out.copy(), alpha=2.0, beta=-0.5)
    assert same_bits(tw.matmul(a, packed, out, alpha=2.0, beta=-0.5), expected)
    same = a.copy()
    tw.matmul(same, packed, out=same)
    assert same_bits(same, tw.matmul(a, b))
    assert not tw.matmul(a * np.nan, packed, alpha=0.0).any()


def test_operators() -> None:
    a, b = values((30, 60), "f32", 1), values((60, 20), "f32", 2)
    assert same_bits(a @ tw.pack(b), tw.matmul(a, b))
    assert same_bits(tw.pack(a, role="a") @ b, tw.matmul(a, b))
    assert same_bits(tw.matmul(tw.pack(a, role="a"), tw.pack(b)), tw.matmul(a, b))


def test_narrower_operands_are_converted_and_results_widened() -> None:
    b = values((40, 30), "f32", 2)
    for name in ("f16", "bf16", "i8"):
        a = values((20, 40), name, 1)
        found = tw.matmul(a, tw.pack(b))
        assert same_bits(found, tw.matmul(a.astype(np.float32), b))
    x, w = values((20, 40), "bf16", 1), values((40, 30), "bf16", 2)
    assert same_bits(tw.matmul(x, tw.pack(w), dtype="f32"), tw.matmul(x, w, dtype="f32"))
    i, j = values((20, 40), "i8", 1), values((40, 30), "i8", 2)
    assert same_bits(tw.matmul(i, tw.pack(j), dtype=np.int32), tw.matmul(i, j, dtype=np.int32))
    shifted = unaligned(values((20, 40), "f32", 1))
    assert same_bits(tw.matmul(shifted, tw.pack(b)), tw.matmul(shifted, b))


def test_what_a_packed_matrix_knows() -> None:
    b = values((70, 50), "bf16")
    packed = tw.pack(b)
    assert (packed.shape, packed.ndim, packed.role) == ((70, 50), 2, "b")
    assert packed.dtype == ml_dtypes.bfloat16
    assert packed.machine_row == tw.machine().isa.name
    assert packed.nbytes == packed.data4d.nbytes
    assert "70x50 bf16" in repr(packed)
    assert packed.machine_row in repr(packed)
    assert packed.data4d.ctypes.data % PANEL_ALIGNMENT == 0
    assert same_bits(np.asarray(packed), b)
    assert np.asarray(packed, np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="unpacking"):
        np.asarray(packed, copy=False)


def test_packed_matrices_are_immutable() -> None:
    source = values((70, 50), "f32")
    packed, before = tw.pack(source), source.copy()
    with pytest.raises(ValueError, match="read-only"):
        packed.data4d[0, 0, 0, 0] = 1
    with pytest.raises(AttributeError):
        packed.shape = (1, 2)  # type: ignore[misc]
    source[...] = np.nan  # the tiles are a copy
    assert same_bits(tw.unpack(packed), before)


def test_equality_copies_and_pickles() -> None:
    b = values((70, 50), "f32")
    packed = tw.pack(b)
    others: list[Any] = [tw.pack(b), packed.copy(), copy.copy(packed), pickle.loads(pickle.dumps(packed))]
    for other in others:
        assert other == packed
        assert hash(other) == hash(packed)
        assert same_bits(tw.matmul(b.T.copy(), other), tw.matmul(b.T.copy(), packed))
    assert packed.copy().data4d is not packed.data4d
    changed = b.copy()
    changed[3, 4] += 1
    for different in (tw.pack(changed), tw.pack(b, role="a"), tw.pack(b, tiles=(8, 1)), b):
        assert not bool(np.all(packed == different))


def with_padding(packed: PackedMatrix, value: float) -> PackedMatrix:
    """The same matrix with something else in the lanes that fill the last tile."""
    tiles = packed.data4d.copy()
    extent = packed.shape[1] if packed.role == "b" else packed.shape[0]
    lanes = extent * packed.form.panels.parts.spread[0] % packed.tiles[0]
    assert lanes
    tiles[-1, :, lanes:, :] = value
    return PackedMatrix(packed.form, packed.shape, tiles)


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "c64", "i8"])
def test_what_fills_the_last_tile_does_not_matter(dtype: str) -> None:
    for m, k, n in ((1, 70, 33), (5, 300, 45), (29, 9, 70), (100, 1100, 7)):
        a, b = values((m, k), dtype, 1), values((k, n), dtype, 2)
        expected, odd = tw.matmul(a, b), 100 if dtype == "i8" else np.nan
        assert same_bits(tw.matmul(a, with_padding(tw.pack(b), odd)), expected)
        if m % tw.pack(a, role="a").tiles[0]:
            assert same_bits(tw.matmul(with_padding(tw.pack(a, role="a"), odd), b), expected)


def test_infinities_reach_the_results_they_belong_to() -> None:
    a, b = values((13, 70), "f32", 1), values((70, 45), "f32", 2)
    a[3, 5], b[7, 44], b[9, 0] = np.inf, np.nan, -np.inf
    assert same_bits(tw.matmul(a, tw.pack(b)), tw.matmul(a, b))
    assert same_bits(tw.matmul(tw.pack(a, role="a"), b), tw.matmul(a, b))


@pytest.mark.skipif(not GUARD_PAGES, reason="needs pages that can be made inaccessible")
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i8"])
@pytest.mark.parametrize("at_end", [False, True])
def test_nothing_outside_of_the_operands_is_touched(dtype: str, *, at_end: bool) -> None:
    kind = DTYPES[dtype].numpy
    kernel = tw.compile(tw.Gemm(dtype=dtype, a="strided", b="packed", c="strided"))
    for m, k, n in ((1, 1, 1), (1, 70, 33), (5, 300, 45), (12, 9, 32), (25, 33, 70), (8, 1100, 64)):
        b = tw.pack(values((k, n), dtype, 2))
        contents = (values((m, k), dtype, 1), b.data4d.reshape(1, -1), np.zeros((m, n), kind))
        memories = [GuardedMemory(content.nbytes) for content in contents]
        a, tiles, c = (
            memory.place(content.copy(), content.strides, at_end=at_end)
            for memory, content in zip(memories, contents, strict=True)
        )
        before = memories[2].outside(c)
        placed = PackedMatrix(b.form, b.shape, tiles.reshape(b.data4d.shape))
        kernel(a, placed, c)
        assert same_bits(np.array(c), tw.matmul(np.array(a), tw.unpack(b)))
        assert np.array_equal(memories[2].outside(c), before)


# --- what is refused, before anything is computed ---------------------------------------------------


def test_wrong_inner_size_and_dtype_and_role_are_refused() -> None:
    packed, out = tw.pack(values((40, 30), "f32")), np.full((20, 30), 7, np.float32)
    with pytest.raises(errors.ShapeMismatch):
        tw.matmul(values((20, 41), "f32"), packed, out)
    with pytest.raises(errors.PackedDtype, match="astype"):
        tw.matmul(values((20, 40), "f64"), packed, out)
    with pytest.raises(errors.PackedRole, match="role='a'"):
        tw.matmul(packed, values((30, 20), "f32"))
    with pytest.raises(errors.OutShape):
        tw.matmul(values((20, 40), "f32"), packed, out[:, 1:])
    assert (out == 7).all()


def test_the_short_way_refuses_too() -> None:
    x, packed, bias = values((20, 40), "f32"), tw.pack(values((40, 30), "f32")), values((30,), "f32")
    left = tw.pack(values((40, 40), "f32"), role="a")
    for _ in range(2):  # the second call knows the way
        assert tw.linear(x, packed, bias, "relu").shape == (20, 30)
        assert tw.linear(x[:0], packed, bias, "relu").shape == (0, 30)
        with pytest.raises(errors.ShapeMismatch):
            tw.linear(x[:, :39].copy(), packed, bias, "relu")
        with pytest.raises(errors.StepShape):
            tw.linear(x, packed, bias[:29].copy(), "relu")
        with pytest.raises(errors.PackedRole):
            tw.matmul(values((40, 40), "f32"), left)
        assert tw.matmul(left, x.T).shape == (40, 20)


def test_tiles_of_another_machine_are_refused() -> None:
    b = values((40, 30), "f32")
    other = foreign_packed(b)
    assert other.machine_row != tw.machine().isa.name
    assert same_bits(tw.unpack(other), b)
    out = np.full((20, 30), 7, np.float32)
    for foreign in (other, tw.pack(b, tiles=(5, 3))):
        with pytest.raises(errors.ForeignPacked, match="pack it on this machine"):
            tw.matmul(values((20, 40), "f32"), foreign, out)
    assert (out == 7).all()


def test_equal_tiles_of_another_machine_are_taken() -> None:
    a, b = values((20, 40), "f32", 1), values((40, 30), "f32", 2)
    own = tw.pack(b)
    other = PackedMatrix(replace(own.form, row="of another machine"), own.shape, own.data4d.copy())
    assert same_bits(tw.matmul(a, other), tw.matmul(a, own))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 5, 7), (40, 131, 70), (5, 0, 3)], ids=str)
def test_two_nibbles_share_a_byte(sizes: tuple[int, int, int], order: Literal["C", "F"]) -> None:
    """In the tiles of a machine that multiplies them so: half the memory of bytes, and every value."""
    (m, k, n), target = sizes, "emulate:pwr10"
    a, b = (np.asarray(values(shape, "i4"), order=order) for shape in ((m, k), (k, n)))
    left, right = tw.pack(a, role="a", target=target), tw.pack(b, target=target)
    assert right.tiles == (16, 8)
    assert right.nbytes == -(-n // 16) * 16 * -(-k // 8) * 8 // 2
    for packed, matrix in ((left, a), (right, b), (pickle.loads(pickle.dumps(right)), b)):
        assert packed.data4d.dtype == np.uint8
        assert same_bits(tw.unpack(packed), np.ascontiguousarray(matrix))
    exact = a.astype(np.int32) @ b.astype(np.int32)
    for layout, first in (("row", np.ascontiguousarray(a)), ("packed", left), ("packed", left.data4d)):
        c = np.full((m, n), 7, np.int32)
        kernel = tw.compile(tw.Gemm(dtype="i4", out_dtype="i32", a=layout, b="packed"), target)
        assert same_bits(kernel(first, right, c), exact)
    tiled = tw.mmt4d(left, right)
    assert same_bits(tiled.transpose(0, 2, 1, 3).reshape(len(tiled) * 8, -1)[:m, :n], exact)


def test_what_cannot_be_packed_is_refused() -> None:
    with pytest.raises(errors.InvalidOperand):
        tw.pack(np.ones(3, np.float32))
    with pytest.raises(errors.UnsupportedDtype):
        tw.pack(np.array([["a"]]))
    with pytest.raises(errors.InvalidChoice):
        tw.pack(np.ones((3, 3)), role="c")
    for tiles in ((0, 1), (4,), (4, 1, 1), (2.5, 1)):
        with pytest.raises(errors.InvalidTiles):
            tw.pack(np.ones((3, 3)), tiles=tiles)
    with pytest.raises(errors.NotPacked):
        tw.unpack(np.ones((3, 3)))


def test_the_class_is_public() -> None:
    assert tw.PackedMatrix is PackedMatrix


# --- linear layers ------------------------------------------------------------------------------------


#: Each type, each activation with and without a bias: packed or not, the steps are the same code.
LAYERS = {("f32", None, True), ("f32", "gelu", False), ("f64", "relu", True), ("f64", None, False)} | {
    ("bf16", "gelu", True),
    ("f16", "relu", False),
}


@pytest.mark.parametrize(
    ("dtype", "activation", "biased"),
    [
        pytest.param(*layer, marks=() if layer in LAYERS else exhaustive)
        for layer in product(("f32", "f64", "bf16", "f16"), (None, "relu", "gelu"), (True, False))
    ],
)
def test_linear_has_the_bits_of_matmul(
    dtype: str, activation: ActivationName | None, *, biased: bool
) -> None:
    weight = values((45, 70), dtype, 2)
    packed, bias = tw.pack(weight.T), values((45,), dtype, 3) if biased else None
    for shape in ((1,), (7,), (3, 5), (40,)):
        x = values((*shape, 70), dtype, 1)
        expected = tw.matmul(x, weight.T, bias=bias, activation=activation)
        assert same_bits(tw.linear(x, packed, bias, activation), expected)
        assert same_bits(tw.linear(x, packed, bias, activation), expected)  # the way is known now
        assert same_bits(tw.linear(x, weight, bias, activation), expected)
        out = np.empty((*shape, 45), packed.dtype)
        assert tw.linear(x, packed, bias, activation, out=out) is out
        assert same_bits(out, expected)


def test_linear_takes_any_bias_that_matmul_takes() -> None:
    x, weight = values((6, 70), "f32", 1), values((45, 70), "f32", 2)
    packed = tw.pack(weight.T)
    biases: tuple[Any, ...] = (2.5, [1.0] * 45, values((6, 1), "f32", 3), values((90,), "f32", 3)[::2])
    for bias in biases:
        expected = tw.matmul(x, weight.T, bias=bias)
        assert same_bits(tw.matmul(x, packed, bias=bias), expected)
        assert same_bits(tw.matmul(x, packed, bias=bias), expected)
    batch = values((4, 6, 70), "f32", 1)
    for bias in (values((6, 1), "f32", 3), values((45,), "f32", 3)):
        expected = tw.matmul(batch, weight.T, bias=bias, activation="relu")
        assert same_bits(tw.matmul(batch, packed, bias=bias, activation="relu"), expected)
        strided = tw.matmul(batch[:, ::-1], packed, bias=bias, activation="relu")
        assert same_bits(strided, tw.matmul(batch[:, ::-1], weight.T, bias=bias, activation="relu"))
    left = tw.pack(weight, role="a")
    bias = values((45, 1), "f32", 3)
    assert same_bits(tw.matmul(left, x.T.copy(), bias=bias), tw.matmul(weight, x.T.copy(), bias=bias))


def test_one_row_of_a_linear_layer() -> None:
    x, weight, bias = values((70,), "f32", 1), values((45, 70), "f32", 2), values((45,), "f32", 3)
    expected = tw.matmul(x[None], weight.T, bias=bias, activation="silu")[0]
    assert same_bits(tw.linear(x, tw.pack(weight.T), bias, "silu"), expected)


def test_what_linear_refuses() -> None:
    x, weight = values((6, 70), "f32", 1), values((45, 70), "f32", 2)
    packed, out = tw.pack(weight.T), np.full((6, 45), 7, np.float32)
    refused: tuple[tuple[type[Exception], tuple[Any, ...]], ...] = (
        (errors.InvalidOperand, (x, weight[0])),
        (errors.StepShape, (x, packed, np.ones(44, np.float32))),
        (errors.InvalidChoice, (x, packed, None, "swish")),
        (errors.ShapeMismatch, (x[:, 1:], packed)),
        (errors.PackedDtype, (x.astype(np.float64), packed)),
        (errors.UnsafeCast, (x, packed, np.ones(45, complex))),
    )
    for kind, arguments in refused:
        with pytest.raises(kind):
            tw.linear(*arguments, out=out)
    with pytest.raises(errors.StepDtype):
        tw.linear(values((6, 70), "i8"), tw.pack(values((70, 45), "i8")), None, "gelu")
    with pytest.raises(errors.InvalidThreads):
        tw.linear(x, packed, threads=0)
    assert (out == 7).all()
