"""Bias and activation of plain arrays: the few checks that are left, where `matmul` met the types before."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.spec.epilogue import Along, Bias
from tilewright.spec.problem import ProductTypes

#: The kernels of one floating type, with a bias for each column or none, by dtype, activation, with bias.
_kernels: dict[tuple[np.dtype[Any], str | None, bool], GemmKernel] = {}


def remember(kernel: GemmKernel, types: ProductTypes, activation: str | None) -> None:
    """The kernel of a call of `matmul`, if calls of plain arrays may find it again."""
    biases = [step for step, _, _ in kernel.problem.steps if isinstance(step, Bias)]
    if types.uniform and not types.a.is_integer and all(step.along is Along.COLUMN for step in biases):
        _kernels[types.a.numpy, activation, bool(biases)] = kernel


def plain(a: Any, b: Any, out: Any, bias: Any, activation: str | None) -> Array | None:
    """activation(a @ b + bias) of aligned matrices, contiguous but for a transpose of b; None for others.

    The general path handles everything else, errors included, and takes several times as long.
    """
    if not (type(a) is type(b) is np.ndarray and a.ndim == b.ndim == 2):
        return None
    kernel = _kernels.get((a.dtype, activation, bias is not None))
    (m, k), (depth, n) = a.shape, b.shape
    if kernel is None or b.dtype != a.dtype or depth != k or 0 in (m, k) or n < 2:
        return None
    ways = b.flags
    if not (a.flags.c_contiguous and a.flags.aligned and ways.aligned):
        return None
    if not (ways.c_contiguous or ways.f_contiguous):
        return None
    operands = []
    if bias is not None:
        if type(bias) is not np.ndarray or bias.shape != (n,) or bias.dtype != a.dtype:
            return None
        if not (bias.flags.c_contiguous and bias.flags.aligned):
            return None
        operands.append(bias[np.newaxis])
    if out is None:
        out = np.empty((m, n), a.dtype)
    elif not _fits(out, (m, n), (a, b, *operands)):
        return None
    with kernel.pool.block() as scratch:
        kernel.run(a, b, out, 1.0, 0.0, scratch, operands)
    result: Array = out
    return result


def _fits(out: Any, shape: tuple[int, int], inputs: tuple[Array, ...]) -> bool:
    """Return whether a kernel may write into `out`: a plain array that fits and overlaps no input."""
    return (
        type(out) is np.ndarray
        and out.shape == shape
        and out.dtype == inputs[0].dtype
        and out.flags.carray
        and not any(np.may_share_memory(out, array) for array in inputs)
    )
