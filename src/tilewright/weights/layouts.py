"""Layouts of quantised weights in checkpoints: GPTQ, AWQ and HQQ, unpacked to integers.

Sources: Frantar et al., "GPTQ", arXiv:2210.17323, as AutoGPTQ and GPTQModel store it; Lin et al., "AWQ",
arXiv:2306.00978, as AutoAWQ stores it (version "gemm"); Badri and Shaji, "Half-Quadratic Quantization of
Large Machine Learning Models", 2023, as the package hqq stores it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from tilewright.calls.exchange import exchanging
from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array
from tilewright.errors import (
    InvalidChoice,
    InvalidOperand,
    InvalidSequence,
    LayoutMismatch,
    UnsupportedArgument,
    shown,
)
from tilewright.errors.callers import named_in_errors
from tilewright.spec.arguments import (
    MAX_SIZE,
    as_integer,
    check_integer,
    check_numbers,
    check_sizes,
    check_word,
)
from tilewright.typing import ArrayLike, GptqFormat
from tilewright.weights.integer_weight import IntegerWeight

_WORD = 32
#: The column of each group of eight that a word's nibbles hold, lowest first.
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


@named_in_errors
@exchanging
def unpack_gptq(
    qweight: ArrayLike,
    qzeros: ArrayLike,
    scales: ArrayLike,
    g_idx: ArrayLike | None = None,
    *,
    bits: int = 4,
    group: int | None = None,
    checkpoint_format: GptqFormat = "gptq",
) -> IntegerWeight:
    """A weight that GPTQ quantised, from the tensors of its checkpoint.

    Parameters
    ----------
    qweight : array_like of int32, shape (k · bits / 32, n)
        Elements of a column one after another in its words, from the lowest bit on.
    qzeros : array_like of int32, shape (groups, n · bits / 32)
        Zero points, packed along rows.
    scales : array_like, shape (groups, n)
    g_idx : array_like of integers, shape (k,), optional
        The group of each input. Where inputs of a group are not neighbours ("desc_act"), rows of the result
        are sorted by group, and its `order` says the input of each.
    bits : 2, 3, 4 or 8
    group : int, optional
        Depths of a group; by default k / groups.
    checkpoint_format : "gptq" or "gptq_v2"
        "gptq" stores each zero point less one.

    Returns
    -------
    IntegerWeight
        ``.pack()`` makes the `PackedMatrix` (k, n), ``.dequantized()`` the floats.

    Raises
    ------
    LayoutMismatch, InvalidOperand, InvalidChoice
    """
    size = _bits(bits, (2, 3, 4, 8))
    word = check_word(checkpoint_format, "checkpoint_format", get_args(GptqFormat))
    q = _from_words(_words(qweight, "qweight"), size, "qweight")
    depth, n = q.shape
    zeros = _from_words(_words(qzeros, "qzeros").T, size, "qzeros").T
    if word == "gptq":
        zeros = (zeros + np.uint8(1)) & np.uint8((1 << size) - 1)
    scale = _scales(scales, "scales", (zeros.shape[0], n))
    if zeros.shape[1] != n:
        raise LayoutMismatch(
            layout="GPTQ", name="qzeros", found=f"{zeros.shape[1]} columns", required=f"{n}, as qweight"
        )
    length = _group(group, depth, len(scale))
    order = None if g_idx is None else _sorted_inputs(g_idx, depth, length)
    return IntegerWeight(
        q if order is None else q[order], scale, zeros.astype(np.float32), size, length, order
    )


@named_in_errors
@exchanging
def unpack_awq(
    qweight: ArrayLike, qzeros: ArrayLike, scales: ArrayLike, *, group: int | None = None
) -> IntegerWeight:
    """A weight of 4 bits that AWQ quantised, from the tensors of its checkpoint (version "gemm").

    Parameters
    ----------
    qweight : array_like of int32, shape (k, n / 8)
        Of each eight columns the nibbles are, from the lowest on, columns 0, 2, 4, 6, 1, 3, 5, 7.
    qzeros : array_like of int32, shape (groups, n / 8)
        Zero points, in the same order.
    scales : array_like, shape (groups, n)
    group : int, optional
        Depths of a group; by default k / groups.

    Returns
    -------
    IntegerWeight
        ``.pack()`` makes the `PackedMatrix` (k, n), ``.dequantized()`` the floats.

    Raises
    ------
    LayoutMismatch, InvalidOperand
    """
    q, zeros = (_awq_columns(_words(a, name)) for a, name in ((qweight, "qweight"), (qzeros, "qzeros")))
    scale = _scales(scales, "scales", (zeros.shape[0], q.shape[1]))
    if zeros.shape[1] != q.shape[1]:
        raise LayoutMismatch(
            layout="AWQ",
            name="qzeros",
            found=f"{zeros.shape[1]} columns",
            required=f"{q.shape[1]}, as qweight",
        )
    return IntegerWeight(q, scale, zeros.astype(np.float32), 4, _group(group, q.shape[0], len(scale)))


@named_in_errors
@exchanging
def unpack_hqq(
    w_q: ArrayLike,
    scale: ArrayLike,
    zero: ArrayLike,
    shape: Sequence[int],
    *,
    bits: int = 4,
    group: int = 64,
    axis: int = 1,
) -> IntegerWeight:
    """A weight that HQQ quantised, from its tensors and the entries of its ``meta``.

    Parameters
    ----------
    w_q : array_like of uint8
        Groups as rows, packed as "8bit_u8", "4bit_u8", "2bit_u8" or "1bit_u8" do: the first half (quarter,
        eighth) of the rows in the highest bits.
    scale, zero : array_like
        One of each for each group. Zero points are fractions: see `IntegerWeight.pack`.
    shape : two ints
        Of the weight: (out, in).
    bits : 8, 4, 2 or 1
    group : int
        Elements of a group, a divisor of in.
    axis : 1
        Groups of axis 0 have elements of several outputs, which no packed weight has.

    Returns
    -------
    IntegerWeight
        Its shape is (in, out). ``.pack(bits=8)`` makes the `PackedMatrix`, ``.dequantized()`` the floats.

    Raises
    ------
    LayoutMismatch, InvalidOperand, InvalidChoice, InvalidSequence, InvalidSize, UnsupportedArgument
    """
    size = _bits(bits, (8, 4, 2, 1))
    sizes = check_sizes(shape, "shape", "the sizes out and in of the weight")
    if len(sizes) != 2:
        raise InvalidSequence(name="shape", found=shown(shape), required="the sizes out and in of the weight")
    (out, depth), length = sizes, check_integer(group, "group", 1, MAX_SIZE)
    if as_integer(axis) != 1:
        remedy = "its groups cross outputs; quantise with axis=1"
        raise UnsupportedArgument(name="axis", value=shown(axis), remedy=remedy)
    packed = as_array(w_q, "w_q")
    if packed.dtype != np.uint8 or packed.ndim != 2:
        raise InvalidOperand(
            name="w_q", reason=f"found {packed.dtype} {packed.shape}, must be uint8 of two axes"
        )
    places = range(8 - size, -1, -size)
    rows = np.concatenate([packed >> np.uint8(at) & np.uint8((1 << size) - 1) for at in places])
    required = (out * depth // length, length)
    if depth % length or rows.shape != required:
        raise LayoutMismatch(
            layout="HQQ",
            name="w_q",
            found=f"rows {rows.shape}",
            required=f"{required} for {out}x{depth} weights",
        )
    scales, zeros = (
        _scales(values, name, None, rows.shape[0]).reshape(out, depth // length).T
        for values, name in ((scale, "scale"), (zero, "zero"))
    )
    return IntegerWeight(np.ascontiguousarray(rows.reshape(out, depth).T), scales, zeros, size, length)


# --- parts of layouts -----------------------------------------------------------------------------


def _bits(value: Any, allowed: tuple[int, ...]) -> int:
    found = as_integer(value)
    if found not in allowed:
        raise InvalidChoice(name="bits", found=shown(value), allowed=", ".join(map(str, allowed)))
    return found


def _words(value: Any, name: str) -> Array:
    """A matrix of 32-bit words, unsigned."""
    found = as_array(value, name)
    if found.dtype.newbyteorder("=") not in (np.int32, np.uint32) or found.ndim != 2:
        raise InvalidOperand(
            name=name, reason=f"found {found.dtype} {found.shape}, must be int32 of two axes"
        )
    return np.ascontiguousarray(found, found.dtype.newbyteorder("=")).view(np.uint32)


def _from_words(words: Array, bits: int, name: str) -> Array:
    """The elements of each column, which its words hold one after another from the lowest bit on.

    >>> _from_words(np.array([[0x87654321]], np.uint32), 4, "qweight").T
    array([[1, 2, 3, 4, 5, 6, 7, 8]], dtype=uint8)
    """
    period = math.lcm(_WORD, bits)  # bits after which an element starts with a word again
    words_of, elements = period // _WORD, period // bits
    if len(words) % words_of:
        required = f"a multiple of {words_of} for {bits} bits"
        raise LayoutMismatch(layout="GPTQ", name=name, found=f"{len(words)} words", required=required)
    found = np.empty((len(words) // words_of * elements, words.shape[1]), np.uint8)
    for number in range(elements):
        first, at = divmod(number * bits, _WORD)
        value = words[first::words_of] >> np.uint32(at)
        if at + bits > _WORD:
            value = value | words[first + 1 :: words_of] << np.uint32(_WORD - at)
        found[number::elements] = value & np.uint32((1 << bits) - 1)
    return found


def _awq_columns(words: Array) -> Array:
    """The nibbles of words, in the order of the columns."""
    found = np.empty((len(words), words.shape[1], len(_AWQ_ORDER)), np.uint8)
    for place, column in enumerate(_AWQ_ORDER):
        found[:, :, column] = words >> np.uint32(4 * place) & np.uint32(15)
    return found.reshape(len(words), -1)


def _scales(value: Any, name: str, shape: tuple[int, int] | None, size: int = 0) -> Array:
    """Scales or zero points as float32, of a shape or of some number of elements."""
    found = check_numbers(as_array(value, name), name)
    if found.shape != shape if shape is not None else found.size != size:
        required = f"shape {shape}" if shape is not None else f"{size} elements"
        raise LayoutMismatch(layout="scales", name=name, found=f"shape {found.shape}", required=required)
    return found.astype(np.float32)


def _group(value: Any, depth: int, groups: int) -> int:
    """Depths of a group."""
    if value is None:
        if not groups or depth % groups:
            required = f"a divisor of {depth} depths, or group= must say how many depths share a scale"
            raise LayoutMismatch(layout="scales", name="scales", found=f"{groups} groups", required=required)
        return max(1, depth // groups)
    return check_integer(value, "group", 1, MAX_SIZE)


def _sorted_inputs(g_idx: Any, depth: int, group: int) -> Array | None:
    """The inputs sorted by group; None if they are sorted already."""
    found = as_array(g_idx, "g_idx")
    if found.shape != (depth,) or found.dtype.kind not in "iu":
        reason = f"found {found.dtype} {found.shape}, must be integers, one for each of {depth} inputs"
        raise InvalidOperand(name="g_idx", reason=reason)
    expected = np.arange(depth) // group
    if np.array_equal(found, expected):
        return None
    order = np.argsort(found, kind="stable")
    if not np.array_equal(found[order], expected):
        raise LayoutMismatch(
            layout="GPTQ",
            name="g_idx",
            found="groups of other sizes",
            required=f"{group} inputs in each group",
        )
    return order
