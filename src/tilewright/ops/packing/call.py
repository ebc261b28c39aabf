"""Packs matrices into tiles and unpacks them, in compiled code."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array, check_operand, data_address, element_strides, whole_strides
from tilewright.calls.pieces import PIECE, as_type, copied, copy_to
from tilewright.calls.recording import new_array, not_repeatable, repeatable
from tilewright.calls.repeated import repeated_method
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.target import resolve_target
from tilewright.errors import InvalidOperand, InvalidTiles, NotPacked, shown
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine
from tilewright.macro.packing import PanelForm
from tilewright.ops.gemm.operands import find_dtype
from tilewright.ops.packing.matrix import PackedForm, PackedMatrix, aligned_empty
from tilewright.ops.packing.problem import Packing
from tilewright.ops.packing.words import dequantised, repacked_weight, tiles_of
from tilewright.ops.transpose.call import transpose
from tilewright.spec.arguments import MAX_TILE, as_integers, as_items, parse_choice
from tilewright.spec.dtype import DType
from tilewright.spec.parts import Parts
from tilewright.spec.problem import Role
from tilewright.threads.pool import without_team

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Pointers and integers of the C signature.
_POINTERS, _INTEGERS = 2, 4


class PackingKernel(Kernel):
    """A kernel of a `Packing`: ``kernel(matrix, panels)``."""

    problem: Packing

    def form(self) -> PackedForm:
        """The packed form of this kernel's panels."""
        problem = self.problem
        return PackedForm(problem.role, problem.dtype, problem.other, self.blocking, self.machine.isa.name)

    @repeated_method
    def __call__(self, matrix: Array, panels: Array) -> Array:
        """Packs a matrix of any strides into a C-contiguous array of the panels' shape, and returns that.

        Raises
        ------
        OperandMismatch : if an array has another shape, dtype or layout, before the panels change.
        ForeignKernel : if the kernel was compiled for another machine.
        """
        source, target = self.problem.operands
        check_operand(self.name, source, matrix)
        lanes, depth = self.problem.role.lanes_and_depth(matrix.shape)
        required = self.blocking.shape(lanes, depth)
        if not isinstance(panels, np.ndarray):
            self._refuse(target, "type", type(panels).__name__, "numpy.ndarray")
        for what, found, needed in (
            ("dtype", panels.dtype, self.blocking.storage.cell.numpy),
            ("shape", panels.shape, required),
            ("writeable, contiguous =", (panels.flags.writeable, panels.flags.c_contiguous), (True, True)),
        ):
            if found != needed:
                self._refuse(target, what, found, needed)
        if np.may_share_memory(matrix, panels):
            self._refuse(target, "memory", "shared with the source", "separate from it")
        self.run(matrix, panels)
        repeatable()
        return panels

    def run(self, matrix: Array, panels: Array) -> None:
        """Packs a matrix that fits: some panels in each call, or some depths of one panel.

        Signal handlers run in between.
        """
        if not panels.size:
            return
        lanes, depth = self.problem.role.lanes_and_depth(matrix.shape)
        lane_step, depth_step = self.problem.role.lanes_and_depth(element_strides(matrix))
        a, to, size = data_address(matrix), data_address(panels), matrix.itemsize
        form, (across, deep) = self.blocking, self.blocking.parts.spread
        unit = form.lanes // math.gcd(form.lanes, across)  # lanes of the matrix that are whole panels
        step = max(unit, PIECE // max(depth, 1) // unit * unit)
        without_team(min(matrix.size, PIECE))
        if matrix.size > PIECE:
            not_repeatable("a matrix that is packed in pieces")
        one_panel = step * across == form.lanes
        deeper = max(form.unit, PIECE // unit // form.unit * form.unit) if one_panel else max(depth, 1)
        for lane in range(0, lanes, step):
            panel = to + lane * across // form.lanes * panels.strides[0]
            for first in range(0, max(depth, 1), deeper):
                source = a + (lane * lane_step + first * depth_step) * size
                into = panel + form.storage.bytes(first * deep * form.lanes)
                sizes = min(step, lanes - lane), min(deeper, depth - first)
                self.function(source, into, *sizes, lane_step, depth_step)


@cache
def packing_kernel(role: Role, dtype: DType, other: DType, machine: Machine) -> PackingKernel:
    """The kernel that packs an operand for a machine."""
    kernel: PackingKernel = kernel_for(Packing(role, dtype, other), machine)
    return kernel


def pack(
    b: Any,
    *,
    role: str = "b",
    tiles: Sequence[int] | None = None,
    target: str | Machine | None = None,
) -> PackedMatrix:
    """Implementation of `tilewright.pack`, which documents it."""
    array = as_array(b, "b")
    if array.ndim != 2:
        raise InvalidOperand(name="b", reason=f"it has {array.ndim} dimensions; pack takes a matrix")
    which, dtype = parse_choice(Role, role, "role"), find_dtype(array.dtype)
    if array.dtype != dtype.numpy or not whole_strides(array):
        array = copied(array, dtype.numpy)
    lanes, depth = which.lanes_and_depth(array.shape)
    if tiles is not None:
        return _pack_tiles(array, which, dtype, tiles)
    kernel = packing_kernel(which, dtype, dtype, resolve_target(target))
    panels = kernel.blocking
    data = aligned_empty(panels.shape(lanes, depth), panels.storage.cell.numpy)
    kernel.run(array, data)
    return PackedMatrix(kernel.form(), (array.shape[0], array.shape[1]), data)


def check_tiles(tiles: Sequence[int], required: str) -> tuple[int, ...]:
    """Tile sizes as integers of at least 1."""
    items = as_items(tiles)
    found = None if items is None else as_integers(items)
    if found is None or not all(0 < size <= MAX_TILE for size in found):
        raise InvalidTiles(found=shown(tiles), required=required)
    return found


def _pack_tiles(array: Array, role: Role, dtype: DType, tiles: Sequence[int]) -> PackedMatrix:
    """A matrix in tiles of the caller's sizes, missing lanes and depths zero."""
    required = "two integers of at least 1: lanes and adjacent depths of a tile"
    sizes = check_tiles(tiles, required)
    if len(sizes) != 2:
        raise InvalidTiles(found=sizes, required=required)
    panels = PanelForm(dtype, sizes[0], sizes[1], sizes[1])
    matrix = array if role is Role.A else array.T
    data = aligned_empty(panels.shape(*matrix.shape), dtype.numpy)
    move_into_tiles(matrix, data)
    return PackedMatrix(PackedForm(role, dtype, dtype, panels, ""), (array.shape[0], array.shape[1]), data)


def _parts(extent: int, tile: int) -> list[tuple[slice, slice, slice, int]]:
    """Whole tiles of an axis, then the cut one: elements, tiles, the part of each tile and its length."""
    whole = extent // tile
    found = []
    if whole:
        found.append((slice(0, whole * tile), slice(0, whole), slice(None), tile))
    if extent % tile:
        rest = extent % tile
        found.append((slice(whole * tile, extent), slice(whole, whole + 1), slice(0, rest), rest))
    return found


def move_into_tiles(matrix: Array, tiles: Array) -> None:
    """`pack_2d_4d` of Taei and Jacob 2021 in compiled moves: (rows, columns) to [R1, C1, R0, C0], padded."""
    (rows, columns), (_, _, r0, c0) = matrix.shape, tiles.shape
    if rows % r0:
        tiles[-1, :, rows % r0 :, :] = 0
    if columns % c0:
        tiles[:, -1, :, columns % c0 :] = 0
    for of_rows, row_tiles, in_rows, height in _parts(rows, r0):
        for of_columns, column_tiles, in_columns, width in _parts(columns, c0):
            part = matrix[of_rows, of_columns]
            cut = np.lib.stride_tricks.as_strided(
                part,
                (part.shape[0] // height, height, part.shape[1] // width, width),
                (height * part.strides[0], part.strides[0], width * part.strides[1], part.strides[1]),
                writeable=False,
            )
            transpose(cut, (0, 2, 1, 3), tiles[row_tiles, column_tiles, in_rows, in_columns])


def move_from_tiles(tiles: Array, matrix: Array) -> None:
    """`unpack_4d_2d` of Taei and Jacob 2021 by compiled moves: [R1, C1, R0, C0] without its padding."""
    (rows, columns), (_, _, r0, c0) = matrix.shape, tiles.shape
    for of_rows, row_tiles, in_rows, height in _parts(rows, r0):
        for of_columns, column_tiles, in_columns, width in _parts(columns, c0):
            part = matrix[of_rows, of_columns]
            cut = np.lib.stride_tricks.as_strided(
                part,
                (part.shape[0] // height, height, part.shape[1] // width, width),
                (height * part.strides[0], part.strides[0], width * part.strides[1], part.strides[1]),
            )
            transpose(tiles[row_tiles, column_tiles, in_rows, in_columns], (0, 2, 1, 3), cut)


def repacked(packed: PackedMatrix) -> PackedMatrix:
    """The same matrix in the tiles of this host."""
    form = packed.form
    if form.weights is not None:
        return repacked_weight(packed)
    kernel = packing_kernel(form.role, form.dtype, form.other, host_machine())
    data = aligned_empty(
        kernel.blocking.shape(*form.role.lanes_and_depth(packed.shape)), kernel.blocking.storage.cell.numpy
    )
    kernel.run(unpack(packed), data)
    return PackedMatrix(kernel.form(), packed.shape, data)


def unpack(packed: PackedMatrix) -> Array:
    """Implementation of `tilewright.unpack`, which documents it."""
    if not isinstance(packed, PackedMatrix):
        raise NotPacked(name="packed", found=type(packed).__name__)
    form = packed.form
    if form.weights is not None:
        return dequantised(packed)
    lanes, depth = form.role.lanes_and_depth(packed.shape)
    across, deep = form.panels.parts.spread
    stored = new_array((lanes * across, depth * deep), form.panels.storage.numpy)
    move_from_tiles(tiles_of(packed), stored)
    match form.panels.parts:
        case Parts.WHOLE:
            found = as_type(stored, form.dtype.numpy)
        case Parts.SPLIT:
            found = stored.view(form.dtype.numpy)
        case Parts.ROTATED:  # a lane's real part is in its first row, its imaginary part in its second
            found = new_array((lanes, depth), form.dtype.numpy)
            copy_to(found.real, stored[0::2, 0::2])
            copy_to(found.imag, stored[1::2, 0::2])
    matrix = found if form.role is Role.A else transpose(found)
    assert matrix.shape == packed.shape
    repeatable()
    return matrix
