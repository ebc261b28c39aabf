"""mmt4d on arrays: any tiles, any types, the bits of `matmul`, and every refusal."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from shares import share
from support import GUARD_PAGES, Array, GuardedMemory
from tiers import crossed

import tilewright as tw
from tilewright import errors
from tilewright.ops.mmt4d.problem import Mmt4d
from tilewright.spec.dtype import DTYPES

TILES = (
    (12, 32, 1),
    (8, 8, 1),
    (16, 16, 1),
    (4, 4, 2),
    (24, 64, 1),
    (7, 33, 3),
    (8, 8, 4),
    (16, 32, 2),
    (1, 1, 1),
)
TYPES = {"f32": "f32", "f64": "f64", "bf16": "f32", "f16": "f32", "i8": "i32", "u8": "i32", "i16": "i32"}


def numbers(shape: tuple[int, ...], name: str, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 5, shape).astype(DTYPES[name].numpy)


def exact(lhs: Array, rhs: Array) -> Array:
    found: Array = np.einsum("mkij,nkhj->mnih", lhs.astype(np.float64), rhs.astype(np.float64))
    return found


#: Each tile with two or three types, each type with three or four tiles in `make test`.
TILES_OF_TYPES = crossed(([tiles] for tiles in TILES), TYPES, 3)


@pytest.mark.parametrize(("tiles", "name"), TILES_OF_TYPES, ids=str)
def test_any_tiles_of_any_type(name: str, tiles: tuple[int, int, int]) -> None:
    m0, n0, k0 = tiles
    for m1, n1, k1 in ((1, 1, 1), (3, 4, 5), (5, 2, 900 // k0)):
        lhs, rhs = numbers((m1, k1, m0, k0), name), numbers((n1, k1, n0, k0), name, 1)
        out = tw.mmt4d(lhs, rhs)
        assert out.dtype == DTYPES[TYPES[name]].numpy
        assert np.array_equal(out, exact(lhs, rhs))
        assert tw.mmt4d(lhs, rhs, out) is out  # the product is added
        assert np.array_equal(out, 2 * exact(lhs, rhs))


def test_pack_mmt4d_unpack_is_a_product() -> None:
    a, b = numbers((45, 67), "f32"), numbers((67, 89), "f32", 1)
    lhs, rhs = tw.pack(a, role="a", tiles=(8, 2)), tw.pack(b, tiles=(16, 2))
    out = tw.mmt4d(lhs, rhs)
    m1, n1, m0, n0 = out.shape
    c = out.transpose(0, 2, 1, 3).reshape(m1 * m0, n1 * n0)  # Taei and Jacob 2021, unpack_4d_2d
    assert np.array_equal(c[:45, :89], a @ b)
    assert not c[45:].any()
    assert not c[:, 89:].any()


def test_tiles_of_the_machine_give_the_bits_of_matmul() -> None:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((50, 3000), (3000, 70)))
    lhs, rhs = tw.pack(a, role="a"), tw.pack(b)
    out = tw.mmt4d(lhs, rhs)
    c = out.transpose(0, 2, 1, 3).reshape(out.shape[0] * out.shape[2], -1)[:50, :70]
    assert np.array_equal(c, tw.matmul(a, b))


def test_layouts_that_are_not_contiguous() -> None:
    lhs, rhs = numbers((3, 4, 24, 2), "f32")[:, ::-1, ::2], numbers((5, 4, 16, 2), "f32", 1)
    out = np.zeros((3, 5, 12, 32), np.float32)[..., ::2]
    tw.mmt4d(lhs, rhs, out)
    assert np.array_equal(out, exact(lhs, rhs))
    swapped = tw.mmt4d(lhs.astype(">f4"), rhs.astype(">f4"))
    assert np.array_equal(swapped, exact(lhs, rhs))


def test_narrower_out_is_rounded_once_and_out_may_overlap() -> None:
    lhs, rhs = numbers((3, 400, 8, 2), "bf16"), numbers((5, 400, 8, 2), "bf16", 1)
    out = np.ones((3, 5, 8, 8), ml_dtypes.bfloat16)
    expected = (exact(lhs, rhs) + 1).astype(np.float32).astype(ml_dtypes.bfloat16)
    assert np.array_equal(tw.mmt4d(lhs, rhs, out), expected)
    same = numbers((4, 4, 8, 8), "f32")
    both = exact(same, same) + same
    assert np.array_equal(tw.mmt4d(same, same, same), both)


def test_empty_operands() -> None:
    full = np.ones((3, 5, 8, 8), np.float32)
    empty = np.ones((3, 0, 8, 1), np.float32), np.ones((5, 0, 8, 1), np.float32)
    assert not tw.mmt4d(*empty).any()
    assert np.array_equal(tw.mmt4d(*empty, full), np.ones_like(full))
    assert tw.mmt4d(np.ones((0, 2, 8, 1), "f4"), np.ones((5, 2, 8, 1), "f4")).shape == (0, 5, 8, 8)
    assert tw.mmt4d(np.ones((2, 2, 0, 1), "f4"), np.ones((5, 2, 8, 1), "f4")).shape == (2, 5, 0, 8)
    assert not tw.mmt4d(np.ones((2, 2, 4, 0), "f4"), np.ones((5, 2, 8, 0), "f4")).any()


@pytest.mark.skipif(not GUARD_PAGES, reason="needs pages that can be made inaccessible")
@pytest.mark.parametrize(
    ("tiles", "name"), [case for case in TILES_OF_TYPES if case.values[1] in ("f32", "bf16", "i8")], ids=str
)
def test_nothing_outside_of_the_tiles_is_touched(name: str, tiles: tuple[int, int, int]) -> None:
    (m0, n0, k0), kind, acc = tiles, DTYPES[name].numpy, DTYPES[TYPES[name]].numpy
    shapes = ((2, 7, m0, k0), (3, 7, n0, k0), (2, 3, m0, n0))
    kernel = tw.compile(tw.Mmt4d(m0, n0, k0, name))
    for at_end in (False, True):
        places = []
        for shape, dtype, seed in zip(shapes, (kind, kind, acc), range(3), strict=True):
            memory = GuardedMemory(int(np.prod(shape)) * dtype.itemsize)
            content = numbers((int(np.prod(shape)), 1), "i8", seed).astype(dtype)
            placed = memory.place(content, (dtype.itemsize, dtype.itemsize), at_end=at_end)
            places.append((memory, placed.reshape(shape)))
        (_, lhs), (_, rhs), (memory, out) = places
        expected = exact(lhs, rhs)
        before = memory.outside(out.reshape(-1, 1))
        if not np.issubdtype(acc, np.integer):
            out[...] = np.nan  # which beta = 0 does not read
        kernel(lhs, rhs, out, beta=0)
        assert np.array_equal(out, expected)
        assert np.array_equal(memory.outside(out.reshape(-1, 1)), before)


@pytest.mark.parametrize(
    ("target", "name"),
    crossed(["emulate:pwr10", "emulate:neoverse-v2", "emulate:sapphirerapids"], ["f32", "bf16", "i8"], 3),
)
def test_other_machines_emulated(target: str, name: str) -> None:
    a, b = numbers((29, 70), name), numbers((70, 45), name, 1)
    lhs, rhs = tw.pack(a, role="a", target=target), tw.pack(b, target=target)
    acc = DTYPES[TYPES[name]].numpy
    problem = tw.Gemm(dtype=name, a="packed", b="packed", c="row", out_dtype=TYPES[name])
    found = tw.compile(problem, target)(lhs, rhs, np.full((29, 45), 9, acc))
    assert np.array_equal(found, a.astype(np.float64) @ b.astype(np.float64))
    for tiles in share(((8, 8, 1), (16, 16, 2), (8, 16, 4), (8, 8, 8)), 2, len(name)):
        m0, n0, k0 = tiles
        left, right = numbers((3, 9, m0, k0), name), numbers((2, 9, n0, k0), name, 1)
        kernel = tw.compile(tw.Mmt4d(*tiles, name), target)
        out = kernel(left, right, np.full((3, 2, m0, n0), 9, acc), beta=0)
        assert np.array_equal(out, exact(left, right))


# --- what is refused ----------------------------------------------------------------------------------


def test_operands_that_do_not_fit_are_refused() -> None:
    lhs, rhs = numbers((3, 4, 8, 2), "f32"), numbers((5, 4, 16, 2), "f32")
    out = np.full((3, 5, 8, 16), 7, np.float32)
    frozen = out.copy()
    frozen.flags.writeable = False
    refused: tuple[tuple[type[Exception], tuple[Any, ...]], ...] = (
        (errors.TilesMismatch, (lhs, rhs[..., :1], out)),
        (errors.TilesMismatch, (lhs, rhs[:, :3], out)),
        (errors.InvalidOperand, (lhs[0], rhs, out)),
        (errors.InvalidOperand, (lhs, 3.0, out)),
        (errors.OutShape, (lhs, rhs, out[..., :8])),
        (errors.OutReadOnly, (lhs, rhs, frozen)),
        (errors.OutNotArray, (lhs, rhs, [1])),
        (errors.OutDtype, (lhs, rhs, np.ones((3, 5, 8, 16), np.int32))),
        (errors.UnsupportedDtype, (lhs, rhs.astype(np.int8), out)),
        (errors.UnsupportedDtype, (lhs.astype(complex), rhs.astype(complex), out)),
    )
    for kind, operands in refused:
        with pytest.raises(kind):
            tw.mmt4d(*operands)
    assert (out == 7).all()


def test_kernels_refuse_what_they_are_not_for() -> None:
    kernel = tw.compile(tw.Mmt4d(8, 16, 2, m1=3))
    lhs, rhs, out = (np.ones(shape, np.float32) for shape in ((3, 4, 8, 2), (5, 4, 16, 2), (3, 5, 8, 16)))
    kernel(lhs, rhs, out)
    frozen = out.copy()
    frozen.flags.writeable = False
    for operands in (
        (lhs[:2], rhs, out[:2]),
        (lhs, rhs[:, :3], out),
        (lhs.astype(np.float64), rhs, out),
        (lhs[..., ::-1], rhs, out),
        (lhs[0], rhs, out),
        (lhs, rhs, frozen),
        (lhs, [1], out),
        (out[:, :4, :, :2].copy().reshape(3, 4, 8, 2), rhs, out[:, :4]),
    ):
        with pytest.raises(errors.OperandMismatch):
            kernel(*operands)
    with pytest.raises(errors.OperandMismatch, match="memory"):
        kernel(out.reshape(-1)[:192].reshape(3, 4, 8, 2), rhs, out)
    foreign = tw.compile(tw.Mmt4d(8, 16, 1), "pwr10")
    with pytest.raises(errors.ForeignKernel):
        foreign(np.ones((1, 1, 8, 1), "f4"), np.ones((1, 1, 16, 1), "f4"), np.ones((1, 1, 8, 16), "f4"))


def test_kernels_show_themselves() -> None:
    kernel = tw.compile(tw.Mmt4d(8, 16, 1))
    assert kernel.name.startswith("mmt4d_f32_f32_mxnxk_by_8x16x1")
    assert "const float *lhs" in kernel.header
    assert "tiles in m" in kernel.header
    assert Mmt4d(8, 16, 1) == kernel.problem
    packing = tw.compile(tw.Packing("b", "bf16"))
    assert "const void *source" in packing.header
    assert "lane_stride" in packing.header
