"""Kernels of mmt4d, and the operation on arrays of four axes."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array, refuse
from tilewright.calls.kernel import ArrayKernel
from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array, data_address
from tilewright.calls.pieces import copy_to
from tilewright.calls.promotion import same_kind, store
from tilewright.calls.recording import constant, new_array, repeatable
from tilewright.calls.repeated import repeated, repeated_method
from tilewright.errors import (
    InvalidOperand,
    OutDtype,
    OutReadOnly,
    OutShape,
    TilesMismatch,
)
from tilewright.ops.gemm.operands import find_dtype
from tilewright.ops.mmt4d.problem import TILE_COUNTS, Mmt4d
from tilewright.ops.packing.matrix import PackedMatrix, aligned_empty
from tilewright.ops.packing.words import tiles_of
from tilewright.ops.transpose.call import transpose
from tilewright.spec.arguments import check_number, out_array
from tilewright.typing import ArrayLike

#: Bytes of an array that starts on a page.
LARGE = 1 << 16

_AXES = {"lhs": ("m1", "k1", "m0", "k0"), "rhs": ("n1", "k1", "n0", "k0"), "out": ("m1", "n1", "m0", "n0")}


class Mmt4dKernel(ArrayKernel):
    """A kernel of an `Mmt4d`: ``kernel(lhs, rhs, out, beta=0)``."""

    problem: Mmt4d

    @repeated_method
    def __call__(self, lhs: Array, rhs: Array, out: Array, *, beta: int = 0) -> Array:
        """out = lhs · rhsᵀ + beta · out on C-contiguous tiles of the problem's sizes and types.

        Raises
        ------
        OperandMismatch : if an array has another shape, dtype or layout, before out changes.
        ForeignKernel : if the kernel was compiled for another machine.
        """
        self.run(lhs, rhs, out, beta)
        repeatable()
        return out

    def run(self, lhs: Array, rhs: Array, out: Array, beta: int) -> None:
        """The same as part of another call."""
        adds = int(check_number(beta, "beta") != 0)
        counts = self._check((lhs, rhs, out))
        work = lhs.size * rhs.shape[0] * rhs.shape[2]
        self.launch((*map(data_address, (lhs, rhs, out)), *counts, adds), work)

    def _check(self, arrays: tuple[Array, ...]) -> tuple[int, ...]:
        known = {name: getattr(self.problem, name) for name in (*TILE_COUNTS, "m0", "n0", "k0")}
        for operand, array in zip(self.problem.operands, arrays, strict=True):
            if not isinstance(array, np.ndarray):
                self._refuse(operand, "type", type(array).__name__, "numpy.ndarray")
            for what, found, required in (
                ("dtype", array.dtype, operand.dtype.numpy),
                ("dimensions", array.ndim, 4),
            ):
                if found != required:
                    self._refuse(operand, what, found, required)
            if not (array.flags.c_contiguous and array.flags.aligned):
                self._refuse(operand, "layout", "strided or unaligned", "C-contiguous and aligned")
            for axis, size in zip(_AXES[operand.name], array.shape, strict=True):
                if known[axis] is None:
                    known[axis] = size
                if known[axis] != size:
                    self._refuse(operand, f"{axis} =", size, known[axis])
        self.check_written(*arrays)
        return tuple(known[name] for name in TILE_COUNTS)


@cache
def mmt4d_kernel(tiles: tuple[int, int, int], lhs: np.dtype[Any], rhs: np.dtype[Any]) -> Mmt4dKernel:
    """The kernel for some tile sizes and element types on this host; any numbers of tiles."""
    kernel: Mmt4dKernel = kernel_for(Mmt4d(*tiles, find_dtype(lhs), b_dtype=find_dtype(rhs)))
    return kernel


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """New tiles, which start on a page if there are several pages of them."""
    if math.prod(shape) * dtype.itemsize <= LARGE:
        return new_array(shape, dtype)
    return aligned_empty(shape, dtype)


def _tiles(value: Any, name: str) -> Array:
    """An operand as an array of four axes."""
    if isinstance(value, PackedMatrix):
        return tiles_of(value)
    array = as_array(value, name)
    if array.ndim != 4:
        raise InvalidOperand(name=name, reason=f"it has {array.ndim} dimensions, tiles have 4")
    return array


def _contiguous(array: Array) -> Array:
    """The tiles one behind the other, in native byte order."""
    if array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative:
        return array
    copied = _empty(array.shape, array.dtype.newbyteorder("="))
    if array.dtype.isnative:
        return transpose(array, tuple(range(4)), copied)
    copy_to(copied, array)
    return copied


@repeated
def mmt4d(
    lhs4d: ArrayLike | PackedMatrix, rhs4d: ArrayLike | PackedMatrix, out4d: Array | None = None
) -> Array:
    """The product of tiled matrices, the second one transposed: linalg.mmt4d of MLIR.

    out[m1, n1] += Σ over k1 of lhs[m1, k1] @ rhs[n1, k1].T, each of these a tile.

    Parameters
    ----------
    lhs4d : array_like, shape (M1, K1, M0, K0)
    rhs4d : array_like, shape (N1, K1, N0, K0)
        Any tile sizes. Those of the machine (``tw.pack(b).tiles``) and their multiples are read in
        place; tiles that are not whole vectors, or of element types that the machine does not multiply,
        are packed again.
    out4d : numpy.ndarray of shape (M1, N1, M0, N0), optional
        The product is added to it, as in linalg.mmt4d. Without it the result is a new array.

    Returns
    -------
    numpy.ndarray of shape (M1, N1, M0, N0), or `out4d`
        float32 for floats of up to 32 bits, int32 for integers of up to 16; `out4d` may also be narrower, and
        is rounded once.

    Raises
    ------
    InvalidOperand, TilesMismatch, UnsupportedDtype, OutShape, OutDtype, OutReadOnly, OutNotArray
        Each before `out4d` changes.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> a, b = np.ones((10, 6), np.float32), np.ones((6, 7), np.float32)
    >>> lhs, rhs = tw.pack(a, role="a", tiles=(4, 2)), tw.pack(b, tiles=(8, 2))
    >>> tw.mmt4d(lhs, rhs).shape
    (3, 1, 4, 8)

    Source: IREE, Matrix Multiplication with MMT4D (2021).
    """
    lhs, rhs = _tiles(lhs4d, "lhs4d"), _tiles(rhs4d, "rhs4d")
    (m1, k1, m0, k0), (n1, k1_rhs, n0, k0_rhs) = lhs.shape, rhs.shape
    if (k1, k0) != (k1_rhs, k0_rhs):
        raise TilesMismatch(
            lhs=lhs.shape, rhs=rhs.shape, lhs_depth=f"{k1}x{k0}", rhs_depth=f"{k1_rhs}x{k0_rhs}"
        )
    shape = (m1, n1, m0, n0)
    if out4d is not None:
        _check_out(out4d, shape)
    if 0 in (m0, n0, k0):  # tiles without elements: sums of nothing
        m0, n0, k0 = max(m0, 1), max(n0, 1), max(k0, 1)
    kernel = mmt4d_kernel((m0, n0, k0), lhs.dtype.newbyteorder("="), rhs.dtype.newbyteorder("="))
    dtype = kernel.problem.out_dtype.numpy
    if out4d is None:
        out: Array = _empty(shape, dtype)
    elif out4d.dtype.kind in "OSU" or not same_kind(dtype, out4d.dtype):
        raise OutDtype(found=out4d.dtype, required=dtype)
    else:
        out = out4d
    shared = any(np.may_share_memory(out, array) for array in (lhs, rhs))
    plain = out.dtype == dtype and out.flags.c_contiguous and out.flags.aligned and not shared
    target = out
    if not plain:
        target = _empty(shape, dtype)
        copy_to(target, out, "unsafe")
    repeatable()
    if out.size == 0:
        return out
    if lhs.size == 0 or rhs.size == 0:
        if out4d is None:
            copy_to(out, constant(np.zeros((), dtype)))
        return out
    kernel.run(_contiguous(lhs), _contiguous(rhs), target, int(out4d is not None))
    if target is not out:
        store(target, out)
    return out


def _check_out(out: Any, shape: tuple[int, ...]) -> None:
    refuse(out_array(out), "out4d")
    if out.shape != shape:
        raise OutShape(found=out.shape, required=shape)
    if not out.flags.writeable:
        raise OutReadOnly
