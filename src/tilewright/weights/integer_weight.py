"""Quantised weights as integers with scales and zero points: the common form of all stored layouts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.pieces import PIECE
from tilewright.errors import FractionalZeros, InputsReordered, InvalidGroup, ScaleShape
from tilewright.machine.machine import Machine
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.ops.packing.words import spans
from tilewright.ops.quantized.public import pack_quantized
from tilewright.records import dataclass
from tilewright.spec.arguments import as_integer, check_flag
from tilewright.spec.weights import GROUPS


@dataclass(frozen=True, eq=False)
class IntegerWeight:
    """A quantised weight (k, n): row i stands for scales · (q - zeros) of its group, i // group.

    Attributes
    ----------
    q : unsigned elements, uint8 (k, n).
    scales, zeros : float32 (groups, n); zero points may be fractions.
    bits : of one element.
    group : depths that share a scale.
    order : None; or, for each row of q, the input that it multiplies, where rows are in the order of their
        groups and not of the inputs.
    """

    q: Array
    scales: Array
    zeros: Array
    bits: int
    group: int
    order: Array | None = None

    def __post_init__(self) -> None:
        depth, n = self.q.shape
        required = (max(1, -(-depth // self.group)), n)
        for name, values in (("scales", self.scales), ("zeros", self.zeros)):
            if values.shape != required:
                raise ScaleShape(name=name, found=values.shape, required=required)

    @property
    def shape(self) -> tuple[int, int]:
        """Depth and columns: (k, n)."""
        depth, n = self.q.shape
        return depth, n

    def dequantized(self) -> Array:
        """The float32 matrix (k, n), in the order of the inputs."""
        depth, n = self.shape
        found = np.empty((depth, n), np.float32)
        for rows in spans(depth, max(1, PIECE // max(n, 1))):
            number = np.arange(rows.start, rows.stop) // self.group
            part = self.scales[number] * (self.q[rows] - self.zeros[number])
            found[rows if self.order is None else self.order[rows]] = part
        return found

    def pack(
        self, *, bits: int | None = None, reordered: bool = False, target: str | Machine | None = None
    ) -> PackedMatrix:
        """The weight as products take it: `pack_quantized`.

        Parameters
        ----------
        bits : 4 or 8, optional
            Of a packed element; by default 4 if elements have at most 4, else 8. Elements of 4 bits in 8 are
            multiplied by up to 16, which brings fractional zero points to within 1/32 of a scale.
        reordered : bool
            Accept rows in the order of their groups: products must then take ``x[..., weight.order]``.
        target : optional
            As in `compile`.

        Raises
        ------
        FractionalZeros : zero points are not integers of that many bits.
        InputsReordered : the weight has an order, and `reordered` is false.
        InvalidGroup : groups are not multiples of 32 depths.
        """
        if self.order is not None and not check_flag(reordered, "reordered"):
            raise InputsReordered(depth=self.shape[0])
        chosen = as_integer((4 if self.bits <= 4 else 8) if bits is None else bits)
        regrouped = _in_packed_groups(self)
        if not _has_integer_zeros(regrouped):
            regrouped = _widened(regrouped, 8 if chosen == 8 else 4)
        return pack_quantized(
            regrouped.q,
            regrouped.scales,
            regrouped.zeros.astype(np.uint8),
            bits=bits if chosen is None else chosen,  # type: ignore[arg-type]
            group=None if regrouped.group >= regrouped.shape[0] else regrouped.group,
            target=target,
        )


def _has_integer_zeros(weight: IntegerWeight) -> bool:
    """Whether every zero point is an integer in the range of elements."""
    zeros = weight.zeros
    whole = np.array_equal(zeros, np.rint(zeros))
    return bool(whole and zeros.min(initial=0) >= 0 and zeros.max(initial=0) < 1 << weight.bits)


def _in_packed_groups(weight: IntegerWeight) -> IntegerWeight:
    """The same weight in groups of a size in `GROUPS`: each group is split into equal ones."""
    depth = weight.shape[0]
    if weight.group >= depth or weight.group in GROUPS:
        return weight
    fitting = [size for size in GROUPS if weight.group % size == 0]
    if not fitting:
        raise InvalidGroup(group=weight.group, allowed="multiples of 32")
    group = fitting[-1]
    groups, times = -(-depth // group), weight.group // group
    scales, zeros = (np.repeat(values, times, axis=0)[:groups] for values in (weight.scales, weight.zeros))
    return replace(weight, scales=scales, zeros=zeros, group=group)


def _widened(weight: IntegerWeight, bits: int) -> IntegerWeight:
    """The same weight with elements f · q + c of more bits; zero points are rounded to nearest.

    f and c are integers of each group. f is as large as the range of elements and zero point allows, and at
    most 2^(bits - old bits).

    Raises
    ------
    FractionalZeros : elements have as many bits already, or a zero point is too far from them.
    """
    wide, most = (1 << bits) - 1, (1 << weight.bits) - 1
    low, high = np.minimum(weight.zeros, 0), np.maximum(weight.zeros, most)
    factor = np.minimum(np.floor(wide / (high - low)), 1 << max(bits - weight.bits, 0)).astype(np.float32)
    if weight.bits >= bits or not (factor >= 1).all():  # NaN too
        again = "quantise weight.dequantized() with tilewright.quantize_weights"
        wider = "call pack(bits=8), where they are within 1/32 of a scale, or "
        raise FractionalZeros(bits=bits, remedy=again if bits == 8 else wider + again)
    added = np.minimum(np.ceil(-low * factor), wide - most * factor)
    zeros = np.clip(np.rint(factor * weight.zeros + added), 0, wide)
    q = np.empty_like(weight.q)
    for rows in spans(weight.shape[0], max(1, PIECE // max(weight.shape[1], 1))):
        number = np.arange(rows.start, rows.stop) // weight.group
        q[rows] = weight.q[rows] * factor[number] + added[number]
    return replace(weight, q=q, scales=weight.scales / factor, zeros=zeros, bits=bits)
