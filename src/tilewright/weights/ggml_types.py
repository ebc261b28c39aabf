"""Element types of GGUF files: plain ones, and blocks of integers with scales and offsets.

An element of a block is s · u + o: u unsigned, s and o of its group of consecutive elements. Layouts as
`ggml-common.h` and the functions `dequantize_row_*` of `ggml-quants.c` have them (github.com/ggml-org/ggml).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.pieces import PIECE
from tilewright.ops.packing.words import spans
from tilewright.records import dataclass
from tilewright.weights.integer_weight import IntegerWeight


class DecodedBlocks(NamedTuple):
    """Blocks taken apart: integers (blocks, elements), scales and offsets (blocks, groups), float32.

    Offsets are None where they follow from the zero point of the type.
    """

    u: Array
    scales: Array
    offsets: Array | None = None


@dataclass(frozen=True)
class BlockType:
    """A quantised type.

    Attributes
    ----------
    name : as ggml has it.
    elements, bytes : of one block.
    bits : of one integer.
    groups : of one block, each with its own scale.
    parts : takes blocks (blocks, bytes) apart.
    zero : the integer that stands for 0; None where groups have offsets of their own.
    """

    name: str
    elements: int
    bytes: int
    bits: int
    groups: int
    parts: Callable[[Array], DecodedBlocks]
    zero: int | None = None

    @property
    def group(self) -> int:
        """Consecutive elements that share a scale."""
        return self.elements // self.groups

    def floats(self, blocks: Array) -> Array:
        """The float32 elements of blocks (blocks, bytes): (blocks, elements)."""
        found = np.empty((len(blocks), self.elements), np.float32)
        for some in spans(len(blocks), PIECE // self.elements):
            u, scales, offsets = self.parts(blocks[some])
            if offsets is None:
                offsets = scales * np.float32(-(self.zero or 0))  # exact: s has at most 19 bits
            to = found[some].reshape(len(u), self.groups, self.group)
            to[...] = scales[..., np.newaxis] * u.reshape(to.shape) + offsets[..., np.newaxis]
        return found

    def integers(self, blocks: Array, shape: tuple[int, int]) -> IntegerWeight:
        """The transpose of a weight (out, in) that is stored in blocks along its rows."""
        u = np.empty((len(blocks), self.groups, self.group), np.uint8)
        scales, zeros = (np.empty((len(blocks), self.groups), np.float32) for _ in range(2))
        for some in spans(len(blocks), PIECE // self.elements):
            part = self.parts(blocks[some])
            u[some] = part.u.reshape(len(part.u), self.groups, self.group)
            scales[some] = part.scales
            if part.offsets is None:
                zeros[some] = self.zero
                continue
            constant = part.scales == 0  # all elements are the offset: s = -o, u = 0, z = 1
            scales[some] -= np.where(constant, part.offsets, 0)
            with np.errstate(over="ignore", invalid="ignore"):  # of a file's infinities, or scales near 0
                zeros[some] = np.where(constant, 1, -part.offsets / np.where(constant, 1, part.scales))
            u[some][constant] = 0
        out, depth = shape
        return IntegerWeight(
            np.ascontiguousarray(u.reshape(out, depth).T),
            scales.reshape(out, depth // self.group).T,
            zeros.reshape(out, depth // self.group).T,
            self.bits,
            self.group,
        )


# --- fields of blocks -----------------------------------------------------------------------------


def _half(blocks: Array, at: int) -> Array:
    """A float16 of each block, as float32 (blocks, 1)."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(np.float32)


def _nibbles(blocks: Array, at: int, chunk: int, chunks: int = 1) -> Array:
    """Integers of 4 bits: of each chunk of bytes first all the low halves, then all the high ones."""
    found = np.empty((len(blocks), chunks, 2, chunk), np.uint8)
    packed = blocks[:, at : at + chunk * chunks].reshape(len(blocks), chunks, chunk)
    found[:, :, 0], found[:, :, 1] = packed & np.uint8(15), packed >> np.uint8(4)
    return found.reshape(len(blocks), -1)


def _bits(blocks: Array, at: int) -> Array:
    """The 32 bits of four bytes, lowest first."""
    return np.unpackbits(blocks[:, at : at + 4], axis=1, bitorder="little")


# --- types ----------------------------------------------------------------------------------------


def _q4_0(blocks: Array) -> DecodedBlocks:
    return DecodedBlocks(_nibbles(blocks, 2, 16), _half(blocks, 0))


def _q4_1(blocks: Array) -> DecodedBlocks:
    return DecodedBlocks(_nibbles(blocks, 4, 16), _half(blocks, 0), _half(blocks, 2))


def _q5_0(blocks: Array) -> DecodedBlocks:
    return DecodedBlocks(_nibbles(blocks, 6, 16) | _bits(blocks, 2) << np.uint8(4), _half(blocks, 0))


def _q5_1(blocks: Array) -> DecodedBlocks:
    u = _nibbles(blocks, 8, 16) | _bits(blocks, 4) << np.uint8(4)
    return DecodedBlocks(u, _half(blocks, 0), _half(blocks, 2))


def _q8_0(blocks: Array) -> DecodedBlocks:
    return DecodedBlocks(blocks[:, 2:34] ^ np.uint8(128), _half(blocks, 0))


def _scales_of_k(blocks: Array) -> tuple[Array, Array]:
    """Scales and offsets of the eight groups of Q4_K and Q5_K, as `get_scale_min_k4` reads them.

    Of twelve bytes the first four hold scales 0 to 3 and the next four minima 0 to 3, in their low six bits;
    their high two bits are those of scales and minima 4 to 7, whose low halves are in the last four.
    """
    first, second, third = (blocks[:, at : at + 4] for at in (4, 8, 12))
    high = np.uint8(0x30)
    scales = np.concatenate(
        [first & np.uint8(63), third & np.uint8(15) | first >> np.uint8(2) & high], axis=1
    )
    minima = np.concatenate(
        [second & np.uint8(63), third >> np.uint8(4) | second >> np.uint8(2) & high], axis=1
    )
    return _half(blocks, 0) * scales, -_half(blocks, 2) * minima


def _q4_k(blocks: Array) -> DecodedBlocks:
    return DecodedBlocks(_nibbles(blocks, 16, 32, 4), *_scales_of_k(blocks))


def _q5_k(blocks: Array) -> DecodedBlocks:
    fifth = np.unpackbits(blocks[:, 16:48, np.newaxis], axis=2, bitorder="little")  # [blocks, place, group]
    u = _nibbles(blocks, 48, 32, 4) | fifth.transpose(0, 2, 1).reshape(len(blocks), -1) << np.uint8(4)
    return DecodedBlocks(u, *_scales_of_k(blocks))


def _q6_k(blocks: Array) -> DecodedBlocks:
    low = _nibbles(blocks, 0, 64, 2)
    pairs = (
        blocks[:, 128:192].reshape(len(blocks), 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, np.newaxis]
    )
    high = (pairs & np.uint8(3)).reshape(len(blocks), -1) << np.uint8(4)
    scales = blocks[:, 192:208].view(np.int8).astype(np.float32)
    return DecodedBlocks(low | high, scales * _half(blocks, 208))


#: Quantised types by their numbers in files.
BLOCKS: dict[int, BlockType] = {
    2: BlockType("Q4_0", 32, 18, 4, 1, _q4_0, zero=8),
    3: BlockType("Q4_1", 32, 20, 4, 1, _q4_1),
    6: BlockType("Q5_0", 32, 22, 5, 1, _q5_0, zero=16),
    7: BlockType("Q5_1", 32, 24, 5, 1, _q5_1),
    8: BlockType("Q8_0", 32, 34, 8, 1, _q8_0, zero=128),
    12: BlockType("Q4_K", 256, 144, 4, 8, _q4_k),
    13: BlockType("Q5_K", 256, 176, 5, 8, _q5_k),
    14: BlockType("Q6_K", 256, 210, 6, 16, _q6_k, zero=32),
}
#: Types of single numbers.
PLAIN: dict[int, tuple[str, np.dtype[Any]]] = {
    0: ("F32", np.dtype("<f4")),
    1: ("F16", np.dtype("<f2")),
    24: ("I8", np.dtype("i1")),
    25: ("I16", np.dtype("<i2")),
    26: ("I32", np.dtype("<i4")),
    27: ("I64", np.dtype("<i8")),
    28: ("F64", np.dtype("<f8")),
    30: ("BF16", np.dtype(ml_dtypes.bfloat16)),
}
#: The types that tensors are read in, by name.
READABLE = dict.fromkeys((*(plain[0] for plain in PLAIN.values()), *(b.name for b in BLOCKS.values())))
