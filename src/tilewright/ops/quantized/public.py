"""Packing matrices, plain and quantised: `pack`, `unpack`, `quantize_weights`, `pack_quantized`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from numpy.typing import NDArray

from tilewright.calls.exchange import exchanging
from tilewright.calls.repeated import repeated
from tilewright.compiler.target import resolve_target
from tilewright.errors import UnsupportedArgument, shown
from tilewright.errors.callers import named_in_errors
from tilewright.machine.machine import Machine
from tilewright.ops.packing import call as plain
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.ops.quantized import quantise
from tilewright.spec.arguments import check_word
from tilewright.typing import ArrayLike, RoleName, RoundingName, WeightForm


@named_in_errors
@exchanging
def pack(
    b: ArrayLike,
    *,
    role: RoleName = "b",
    tiles: Sequence[int] | None = None,
    form: WeightForm | None = None,
    target: str | Machine | None = None,
) -> PackedMatrix:
    """Pack a matrix once into the tiles that products read, to multiply it often.

    Parameters
    ----------
    b : array_like
        Shape (k, n); in the role of A, (m, k). Any strides. Of a linear layer's weight (out, in) pass
        ``weight.T``.
    role : "b" or "a"
        The side of products on which it is used.
    tiles : two ints, optional
        Lanes and adjacent depths of one tile, (N0, K0) or (M0, K0), for `mmt4d`; by default those of the
        machine, which `matmul` takes.
    form : "bf16", "f16", "f8e4m3" or "f8e5m2", optional
        A weight is rounded to nearest and stored so, and multiplied with float32 (or bfloat16) as the float32
        value of each element. For integers see `quantize_weights`.
    target : optional
        As in `compile`: the machine whose tiles are taken.

    Returns
    -------
    PackedMatrix
        Its ``data4d`` is [N1, K1, N0, K0], or [M1, K1, M0, K0]. Depths that fill the last tile are zero.
        Lanes that fill it are zero where `tiles` are given; otherwise they repeat the last lane, so that
        products raise no floating-point flag of their own, and no product reads them into a result.

    Raises
    ------
    InvalidOperand, UnsupportedDtype, InvalidChoice, InvalidTiles, UnknownTarget

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> x, b = np.ones((2, 300), np.float32), np.ones((300, 50), np.float32)
    >>> packed = tw.pack(b)
    >>> bool((tw.matmul(x, packed) == x @ b).all())
    True
    >>> tw.pack(b, tiles=(8, 4)).data4d.shape
    (7, 75, 8, 4)

    Source: IREE, Matrix Multiplication with MMT4D (2021), pack_2d_4d.
    """
    if form is not None:
        kind = check_word(form, "form", get_args(WeightForm))
        if check_word(role, "role", get_args(RoleName)) != "b" or tiles is not None:
            name, value = ("role", role) if tiles is None else ("tiles", tiles)
            raise UnsupportedArgument(name=name, value=shown(value), remedy=f"pass form={kind!r} without it")
        return quantise.pack_floats(b, kind, resolve_target(target))
    return plain.pack(b, role=role, tiles=tiles, target=target)


@repeated
def unpack(packed: PackedMatrix) -> NDArray[Any]:
    """The matrix that was packed, bit for bit, C-contiguous, without the padding of its tiles.

    Raises
    ------
    NotPacked : for anything but a `PackedMatrix`.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.unpack(tw.pack(np.arange(6.0).reshape(2, 3)))
    array([[0., 1., 2.],
           [3., 4., 5.]])
    """
    return plain.unpack(packed)


@named_in_errors
@exchanging
def quantize_weights(
    w: ArrayLike,
    *,
    bits: int = 8,
    group: int | None = None,
    symmetric: bool = True,
    rounding: RoundingName = "nearest",
    inputs: ArrayLike | None = None,
    target: str | Machine | None = None,
) -> PackedMatrix:
    """Quantise a weight to packed 8- or 4-bit integers with scales: products read a fraction of the bytes.

    An element represents s · (u - z): u unsigned, s the scale and z the zero point of its column and group.
    Products of float32 and bfloat16 with it sum x · (u - z) exactly as floats, group by group, and multiply
    each group's sum by its scale; the float matrix is never materialised.

    Parameters
    ----------
    w : array_like
        Shape (k, n), converted to float32. Of a linear layer's weight (out, in) pass ``weight.T``.
    bits : 8 or 4
    group : 32, 64, 128, 256, 512 or 1024, optional
        Depths that share a scale, the last group the rest of k; None: one scale for each column.
    symmetric : bool
        Zero points are the middle of the range and s = max|w| / 127 (of 4 bits / 7); otherwise each group has
        its own, s = (max(w, 0) - min(w, 0)) / 255 (15) and z = round(-min(w, 0) / s). In float32, to nearest,
        ties to even.
    rounding : "nearest", "hqq" or "gptq"
        "nearest" as above. "hqq" fits scale and zero point of each group to its weights by half-quadratic
        optimisation: no group has a larger squared error than to nearest. "gptq" also rounds so that errors
        of one depth are made up for by later ones in products with `inputs`.
    inputs : array_like, shape (..., k), optional
        With "gptq": samples of what the weight is multiplied with.
    target : optional
        As in `compile`: the machine whose panels are taken.

    Returns
    -------
    PackedMatrix
        `unpack` returns the float32 matrix that it represents.

    Raises
    ------
    InvalidOperand, InvalidChoice, InvalidGroup, UnsupportedArgument

    Sources: Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models", 2023; Frantar et
    al., "GPTQ", arXiv:2210.17323.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> w = np.arange(-8.0, 8.0).reshape(4, 4)
    >>> packed = tw.quantize_weights(w, bits=8)
    >>> bool(abs(tw.unpack(packed) - w).max() <= 8 / 127 / 2)
    True
    """
    return quantise.quantize_weights(
        w,
        resolve_target(target),
        bits=bits,
        group=group,
        symmetric=symmetric,
        rounding=rounding,
        inputs=inputs,
    )


@named_in_errors
@exchanging
def pack_quantized(
    q: ArrayLike,
    scales: ArrayLike,
    zeros: ArrayLike | None = None,
    *,
    bits: int = 8,
    group: int | None = None,
    target: str | Machine | None = None,
) -> PackedMatrix:
    """A weight that is quantised already, by GPTQ, AWQ or the like, packed: see `quantize_weights`.

    Parameters
    ----------
    q : array_like of integers, shape (k, n)
        The weight is scales · (q - zeros). Of a signed dtype from -2^(bits-1), of an unsigned one from 0.
    scales : array_like, shape (groups, n)
        Converted to float32; of one group a column also (n,).
    zeros : array_like of integers, shape (groups, n), optional
        Zero points in the range of q; by default 0, of an unsigned q the middle of its range.
    bits, group, target : as in `quantize_weights`.

    Raises
    ------
    InvalidOperand, InvalidChoice, InvalidGroup
    ScaleShape : scales or zeros are not one for each group and column.
    QuantisedRange : elements or zero points are no integers of so many bits.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> q = np.array([[-8, 7], [0, 1]], np.int8)
    >>> tw.unpack(tw.pack_quantized(q, [0.5, 2.0], bits=4))
    array([[-4., 14.],
           [ 0.,  2.]], dtype=float32)
    """
    return quantise.pack_quantized(q, scales, zeros, resolve_target(target), bits=bits, group=group)
