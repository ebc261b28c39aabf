"""Half-quadratic quantisation: scales and zero points fitted to each group, without data.

Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models", 2023, minimise the p-norm of
the rounding errors, p < 1, which few large errors (outliers) dominate less than in the 2-norm. A second
variable takes the large errors up, and the minimisation alternates between it and the zero point:

    e <- shrink(w - s (u - z)),   z <- mean(u - (w - e) / s),   u <- elements of w to nearest

Four things differ here. Zero points stay integers, which packed weights have. The scale is fitted too, by
least squares, since an integer zero point alone rarely moves: s <- <w - e, u - z> / <u - z, u - z>. p is 1/2
and not 0.7: a square root takes a fraction of the time of a power, for the same errors to 0.2 %. And where it
helps, the iteration starts from several ranges; of all steps of a group, the one with the least squared error
is kept, so that no group becomes worse than by rounding to nearest.
"""

from __future__ import annotations

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.pieces import PIECE
from tilewright.ops.packing.words import spans
from tilewright.ops.quantized.affine import grouped, scale_and_zero, to_nearest
from tilewright.spec.weights import Weights

#: Weight of the quadratic term, for errors in units of the scale, and its growth from step to step. Of 1, 3,
#: 10 and 1e9, 3 gave the least error for normal and for Student-t weights of 4 bits.
_BETA, _GROWTH = 3.0, 1.01
#: Steps from each start. With zero points, groups of 32 weights of a model and 4 bits: relative error 0.0815
#: to nearest, 0.0789 with 3 steps, 0.0787 with 6.
_STEPS = 6
#: Shares of the full range that the iteration starts from. Symmetric weights of 4 bits of a model, group 64:
#: relative error 0.110 to nearest, 0.104 from the full range, 0.097 from all three.
_STARTS = (1.0, 0.85, 0.7)
#: Depths of a group that starts from the full range only: with zero points the other starts take three times
#: as long, and 0.2 % off the errors of groups of 32, 1 % of 128.
_SHORT = 128


def _starts(form: Weights) -> tuple[float, ...]:
    """Shares of the full range that the fit of a group starts from."""
    return _STARTS[:1] if form.zeros and 0 < form.group <= _SHORT else _STARTS


def half_quadratic(w: Array, form: Weights) -> tuple[Array, Array, Array]:
    """Unsigned elements (k, n), scales and zero points (groups, n) of a float32 matrix."""
    depth, columns = w.shape
    shape = (form.groups(depth), columns)
    u, scales = np.empty(w.shape, np.uint8), np.ones(shape, np.float32)
    zeros = np.full(shape, form.elements.middle, np.float32)
    for number, part in grouped(w, form):
        groups, length, _ = part.shape
        some, first = slice(number, number + groups), number * form.group
        to = u[first : first + groups * length].reshape(part.shape)
        for across in spans(columns, max(1, PIECE // (groups * length))):
            values = part[:, :, across]
            scale, zero = fitted(values, form)
            to[:, :, across] = to_nearest(values, scale[:, np.newaxis], zero[:, np.newaxis], form)
            scales[some, across], zeros[some, across] = scale, zero
    return u, scales, zeros


def fitted(values: Array, form: Weights) -> tuple[Array, Array]:
    """Scales and zero points (groups, n) of groups (groups, depths, n)."""
    low, high = values.min(axis=1), values.max(axis=1)
    full, zero = scale_and_zero(low, high, form)
    units = values / full[:, np.newaxis]  # so that squares neither overflow nor vanish
    best_scale, best_zero = np.ones_like(full), zero
    least = np.full(full.shape, np.inf, np.float32)
    for start in map(np.float32, _starts(form)):
        scale, zero = scale_and_zero(low / full * start, high / full * start, form)
        beta = _BETA
        for _ in range(_STEPS + 1):
            wide = zero[:, np.newaxis]
            offsets = to_nearest(units, scale[:, np.newaxis], wide, form) - wide
            error = units - scale[:, np.newaxis] * offsets
            squared = np.square(error).sum(axis=1)
            better = squared < least
            least = np.where(better, squared, least)
            best_scale, best_zero = np.where(better, scale, best_scale), np.where(better, zero, best_zero)
            target = units - _shrunk(error / scale[:, np.newaxis], beta) * scale[:, np.newaxis]
            scale, zero = _next(target, offsets, scale, zero, form)
            beta *= _GROWTH
    return best_scale * full, best_zero


def _shrunk(error: Array, beta: float) -> Array:
    """The proximal operator of the norm of p = 1/2: errors less |e|^(p-1) / beta, small ones 0."""
    size = np.abs(error)
    root = np.sqrt(np.maximum(size, np.finfo(np.float32).tiny))  # 0 has no reciprocal
    large: Array = np.maximum(size - np.float32(1 / beta) / root, 0)
    return np.copysign(large, error)


def _next(target: Array, offsets: Array, scale: Array, zero: Array, form: Weights) -> tuple[Array, Array]:
    """The zero point, then the scale, that suit elements u = offsets + zero best."""
    if form.zeros:
        mean = (offsets - target / scale[:, np.newaxis]).mean(axis=1) + zero
        found = np.clip(np.rint(mean), 0, (1 << form.elements.bits) - 1)
        offsets, zero = offsets + (zero - found)[:, np.newaxis], found
    product, square = (target * offsets).sum(axis=1), np.square(offsets).sum(axis=1)
    fits = (product > 0) & (square > 0)
    return np.where(fits, product / np.where(fits, square, 1), scale), zero
