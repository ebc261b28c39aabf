"""GPTQ, AWQ and HQQ: weights packed word by word as the layouts are defined, and unpacked again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import (
    FractionalZeros,
    InputsReordered,
    InvalidChoice,
    InvalidGroup,
    InvalidOperand,
    InvalidSequence,
    LayoutMismatch,
    ScaleShape,
    UnsupportedArgument,
)
from tilewright.weights.integer_weight import IntegerWeight

Array = np.ndarray[Any, Any]
K, N = 128, 64
X = np.random.default_rng(9).standard_normal((3, K)).astype(np.float32)


def drawn(bits: int, group: int, depth: int = K, n: int = N) -> tuple[Array, Array, Array]:
    """Elements, scales and zero points."""
    rng = np.random.default_rng(bits)
    groups = -(-depth // group)
    q = rng.integers(0, 1 << bits, (depth, n))
    scales = rng.uniform(0.5, 2, (groups, n)).astype(np.float16)
    return q, scales, rng.integers(0, 1 << bits, (groups, n))


def floats(q: Array, scales: Array, zeros: Array, group: int) -> Array:
    """s · (q - z), element by element."""
    found = np.empty(q.shape, np.float32)
    for i in range(q.shape[0]):
        found[i] = scales[i // group].astype(np.float32) * (q[i] - zeros[i // group])
    return found


def bit_string(values: Array, bits: int) -> Array:
    """Words that hold integers one after another, lowest bits first: a number of thousands of bits."""
    whole = sum(int(value) << (bits * place) for place, value in enumerate(values))
    words = [whole >> (32 * word) & 0xFFFFFFFF for word in range(len(values) * bits // 32)]
    return np.array(words, np.uint32).view(np.int32)


def gptq(q: Array, zeros: Array, bits: int, *, less: int = 1) -> tuple[Array, Array]:
    """Words down the columns of q and along the rows of the zero points, which are stored less one."""
    qweight = np.stack([bit_string(column, bits) for column in q.T], axis=1)
    stored = (zeros - less) % (1 << bits)
    return qweight, np.stack([bit_string(row, bits) for row in stored])


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize(("version", "less"), [("gptq", 1), ("gptq_v2", 0)])
def test_gptq(bits: int, version: Any, less: int) -> None:
    q, scales, zeros = drawn(bits, 32)
    qweight, qzeros = gptq(q, zeros, bits, less=less)
    found = tw.unpack_gptq(qweight, qzeros, scales, bits=bits, checkpoint_format=version)
    assert np.array_equal(found.q, q)
    assert np.array_equal(found.zeros, zeros)
    assert (found.bits, found.group, found.order, found.shape) == (bits, 32, None, (K, N))
    expected = floats(q, scales, zeros, 32)
    assert np.array_equal(found.dequantized(), expected)
    packed = found.pack()
    assert np.array_equal(tw.unpack(packed), expected)
    assert packed.form.weights is not None
    assert packed.form.weights.elements.bits == (8 if bits == 8 else 4)
    product = tw.linear(X, packed)
    np.testing.assert_allclose(product, X.astype(np.float64) @ expected, rtol=1e-4, atol=1e-3)


def test_a_word_of_gptq() -> None:
    """One word, written out: input 0 is in the lowest bits, and zero points are one more than stored."""
    qweight = np.array([[0x76543210], [0xFEDCBA98 - 2**32]], np.int32).repeat(8, axis=1)
    qzeros = np.array([[0x7F210543]], np.int32)
    found = tw.unpack_gptq(qweight, qzeros, np.ones((1, 8)))
    assert np.array_equal(found.q[:, 3], np.arange(16))
    assert found.zeros.tolist() == [[4, 5, 6, 1, 2, 3, 0, 8]]


def test_act_order() -> None:
    q, scales, zeros = drawn(4, 32)
    rng = np.random.default_rng(1)
    g_idx = rng.permutation(np.arange(K) // 32).astype(np.int32)
    expected = np.stack(
        [scales[g].astype(np.float32) * (row - zeros[g]) for g, row in zip(g_idx, q, strict=True)]
    )
    found = tw.unpack_gptq(*gptq(q, zeros, 4), scales, g_idx)
    assert np.array_equal(found.dequantized(), expected)
    with pytest.raises(InputsReordered, match=r"128 rows .* pack\(reordered=True\)"):
        found.pack()
    packed = found.pack(reordered=True)
    assert np.array_equal(tw.unpack(packed), expected[found.order])
    np.testing.assert_allclose(tw.linear(X[:, found.order], packed), X @ expected, rtol=1e-4, atol=1e-3)


def test_groups_in_order_need_no_order() -> None:
    q, scales, zeros = drawn(4, 32)
    found = tw.unpack_gptq(*gptq(q, zeros, 4), scales, np.arange(K) // 32)
    assert found.order is None


@pytest.mark.parametrize(("group", "stored"), [(128, 0), (96, 32), (64, 64), (192, 64), (2048, 1024)])
def test_groups_are_split_into_packed_ones(group: int, stored: int) -> None:
    depth = 128 if group <= 128 else 2 * group
    q, scales, zeros = drawn(4, group, depth, 32)
    found = tw.unpack_gptq(*gptq(q, zeros, 4), scales, group=group)
    packed = found.pack()
    assert packed.form.weights is not None
    assert packed.form.weights.group == stored
    assert np.array_equal(tw.unpack(packed), floats(q, scales, zeros, group))


def test_groups_of_no_whole_words() -> None:
    q, scales, zeros = drawn(4, 16)
    found = tw.unpack_gptq(*gptq(q, zeros, 4), scales)
    assert np.array_equal(found.dequantized(), floats(q, scales, zeros, 16))
    with pytest.raises(InvalidGroup, match="group is 16"):
        found.pack()


def awq_words(values: Array) -> Array:
    """AutoAWQ's packing, written out: the nibbles of a word are columns 0, 2, 4, 6, 1, 3, 5, 7."""
    words = np.zeros((values.shape[0], values.shape[1] // 8), np.int64)
    for word in range(words.shape[1]):
        for place, column in enumerate([0, 2, 4, 6, 1, 3, 5, 7]):
            words[:, word] |= values[:, 8 * word + column].astype(np.int64) << (4 * place)
    return words.astype(np.uint32).view(np.int32)


@pytest.mark.parametrize("group", [32, 64, 128])
def test_awq(group: int) -> None:
    q, scales, zeros = drawn(4, group)
    found = tw.unpack_awq(awq_words(q), awq_words(zeros), scales)
    assert np.array_equal(found.q, q)
    assert np.array_equal(found.zeros, zeros)
    assert np.array_equal(tw.unpack(found.pack()), floats(q, scales, zeros, group))


def hqq_rows(rows: Array, bits: int) -> Array:
    """pack_4bit_u8 and its relatives: the first part of the rows in the highest bits."""
    step = rows.shape[0] * bits // 8
    packed = np.zeros((step, rows.shape[1]), np.uint8)
    for part in range(8 // bits):
        packed |= rows[part * step : (part + 1) * step].astype(np.uint8) << np.uint8(8 - bits * (part + 1))
    return packed


def hqq(bits: int, zeros_of: tuple[float, float], group: int = 32) -> tuple[IntegerWeight, Array]:
    """A weight as hqq stores it, unpacked, and its floats (in, out)."""
    out, depth = 48, 128
    rng = np.random.default_rng(bits)
    rows = rng.integers(0, 1 << bits, (out * depth // group, group))
    scale = rng.uniform(0.5, 2, (len(rows), 1)).astype(np.float32)
    zero = rng.uniform(*zeros_of, (len(rows), 1)).astype(np.float32)
    found = tw.unpack_hqq(hqq_rows(rows, bits), scale, zero, (out, depth), bits=bits, group=group)
    return found, ((rows - zero) * scale).reshape(out, depth).T


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_hqq(bits: int) -> None:
    found, expected = hqq(bits, (0, (1 << bits) - 1))
    assert found.shape == (128, 48)
    np.testing.assert_allclose(found.dequantized(), expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("zeros_of", [(0, 15), (-5, -2), (15, 25), (-100, 100)])
def test_zero_points_that_are_fractions(zeros_of: tuple[float, float]) -> None:
    found, expected = hqq(4, zeros_of)
    with pytest.raises(FractionalZeros, match=r"of 4 bits .* call pack\(bits=8\)"):
        found.pack()
    packed = found.pack(bits=8)
    # A zero point within the elements is kept to 1/32 of a scale; others to 1/2 of what 8 bits have room for.
    room = max(15, zeros_of[1]) - min(0, zeros_of[0])
    bound = 0.5 / min(16, int(255 / room)) * found.scales.max() * 1.001
    assert np.abs(tw.unpack(packed) - expected).max() <= bound
    if zeros_of == (0, 15):
        assert bound < 0.0316 * 2
        assert np.abs(tw.unpack(packed) - expected).max() > 0.01


def test_two_bits_have_room_in_four() -> None:
    found, expected = hqq(2, (0, 3))
    packed = found.pack()
    assert packed.form.weights is not None
    assert packed.form.weights.elements.bits == 4
    assert np.abs(tw.unpack(packed) - expected).max() <= found.scales.max() / 8


def test_zero_points_that_no_element_reaches() -> None:
    for found in (hqq(8, (0, 255))[0], hqq(4, (300, 400))[0]):
        with pytest.raises(FractionalZeros, match="far from the elements") as caught:
            found.pack(bits=8)
        assert "pack(bits=8)" not in str(caught.value)


def test_integer_zero_points_need_no_room() -> None:
    rows = np.arange(256).reshape(8, 32) % 16
    found = tw.unpack_hqq(hqq_rows(rows, 4), np.ones(8), np.full(8, 7), (2, 128), group=32)
    assert np.array_equal(tw.unpack(found.pack()), rows.reshape(2, 128).T - 7)


# --- wrong arguments ------------------------------------------------------------------------------

Q = np.zeros((16, N), np.int32)
Z = np.zeros((4, N // 8), np.int32)
S = np.ones((4, N))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: tw.unpack_gptq(Q.astype(np.int64), Z, S), InvalidOperand),
        (lambda: tw.unpack_gptq(Q[0], Z, S), InvalidOperand),
        (lambda: tw.unpack_gptq(Q, Z, S, bits=5), InvalidChoice),
        (lambda: tw.unpack_gptq(Q, Z, S, bits=3), LayoutMismatch),
        (lambda: tw.unpack_gptq(Q, Z, S, checkpoint_format="v3"), InvalidChoice),  # type: ignore[arg-type]
        (lambda: tw.unpack_gptq(Q, Z[:, :3], S), LayoutMismatch),
        (lambda: tw.unpack_gptq(Q, Z[:, :3], S[:, :24]), LayoutMismatch),
        (lambda: tw.unpack_gptq(Q, Z, S[:3]), LayoutMismatch),
        (lambda: tw.unpack_gptq(Q, Z[:3], S[:3]), LayoutMismatch),
        (lambda: tw.unpack_gptq(Q, Z[:0], S[:0]), LayoutMismatch),
        (lambda: tw.unpack_gptq(Q, Z, S, group=64), ScaleShape),
        (lambda: tw.unpack_gptq(Q, Z, S, np.zeros(K, int)), LayoutMismatch),
        (lambda: tw.unpack_gptq(Q, Z, S, np.zeros(K)), InvalidOperand),
        (lambda: tw.unpack_gptq(Q, Z, S, np.zeros(3, int)), InvalidOperand),
        (lambda: tw.unpack_awq(Q, Z, S), LayoutMismatch),
        (lambda: tw.unpack_awq(Q, Z[:, :3], S[:, :24]), LayoutMismatch),
        (lambda: tw.unpack_awq(Q.astype(np.uint8), Z, S), InvalidOperand),
        (lambda: tw.unpack_hqq(Q, S, S, (8, 8)), InvalidOperand),
        (lambda: tw.unpack_hqq(np.zeros((1, 64), np.uint8), [1, 1], [1, 1], (2, 64, 1)), InvalidSequence),
        (lambda: tw.unpack_hqq(np.zeros((1, 64), np.uint8), [1, 1], [1, 1], (2, 65)), LayoutMismatch),
        (lambda: tw.unpack_hqq(np.zeros((1, 64), np.uint8), [1, 1], [1], (2, 64)), LayoutMismatch),
        (lambda: tw.unpack_hqq(np.zeros((1, 64), np.uint8), [1, 1], [1, 1], (4, 64)), LayoutMismatch),
        (
            lambda: tw.unpack_hqq(np.zeros((1, 64), np.uint8), [1, 1], [1, 1], (2, 64), axis=0),
            UnsupportedArgument,
        ),
        (lambda: tw.unpack_hqq(np.zeros((1, 64), np.uint8), [1, 1], [1, 1], (2, 64), bits=3), InvalidChoice),
    ],
)
def test_arrays_that_do_not_fit(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^unpack_"):
        call()


def test_from_the_file_to_the_product(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    from safetensors.numpy import save_file

    q, scales, zeros = drawn(4, 64)
    qweight, qzeros = gptq(q, zeros, 4)
    save_file({"a.qweight": qweight, "a.qzeros": qzeros, "a.scales": scales}, tmp_path / "a.safetensors")
    stored = tw.load_safetensors(tmp_path / "a.safetensors")
    weight = tw.unpack_gptq(*(stored.array(f"a.{part}") for part in ("qweight", "qzeros", "scales")))
    np.testing.assert_allclose(
        tw.linear(X, weight.pack()), X @ floats(q, scales, zeros, 64), rtol=1e-4, atol=1e-3
    )


def test_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    q, scales, zeros = drawn(4, 32)
    found = tw.unpack_awq(*(torch.tensor(a) for a in (awq_words(q), awq_words(zeros), scales)))
    assert np.array_equal(found.q, q)
