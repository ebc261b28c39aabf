"""The file of cases that harness.c reads: operands as bytes, what they must be afterwards, and the call.

Integers are 64 bits, numbers are doubles, both little-endian; byte strings are padded to eights.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
from support import Array

from tilewright.spec.dtype import DType

MAGIC = int.from_bytes(b"CASES1\0", "little")
#: What gaps hold: of inputs NaN in every float type; of results a number, as NaN would stay when added to.
UNREAD = 0xFF
UNWRITTEN = 0x41
INTEGERS = 40
#: Regions are whole pages of every target.
PAGE = 64 << 10


class Signature(IntEnum):
    """How a kernel is called: as `lower` lays out the arguments of each kind of problem."""

    GEMM = 0
    BATCH_REDUCE = 1
    UNARY = 2
    #: By a function of the harness's table that spreads arrays of pointers, integers and numbers.
    ADAPTED = 3


class Values(IntEnum):
    """How the elements of results are compared: bytes, numbers, or the lower four bits of each byte.

    Zeros of both signs are equal numbers, and so are all NaN.
    """

    BYTES = 0
    F16 = 1
    BF16 = 2
    F32 = 3
    F64 = 4
    LOW_HALF = 5
    F8E4M3 = 6
    F8E5M2 = 7

    @classmethod
    def of(cls, dtype: DType) -> Values:
        """Of an element type; complex numbers are compared by their parts."""
        if dtype.is_integer:
            return cls.LOW_HALF if dtype.significand < dtype.bits else cls.BYTES
        return cls[dtype.real.name.upper()]


class Scalars(IntEnum):
    """What alpha and beta are."""

    F32 = 0
    F64 = 1
    I32 = 2
    I64 = 3

    @classmethod
    def of(cls, dtype: DType) -> Scalars:
        """Of the type of the sums."""
        return cls[dtype.name.upper()]


@dataclass(frozen=True)
class Placed:
    """One operand between guard pages.

    Attributes
    ----------
    content : its bytes, gaps between lines included.
    origin : bytes from the first one to element (0, 0).
    argument : which pointer of the call it is; None if pointers lead to it.
    at_end : whether its last byte is beside the guard page behind, or its first beside the one in front.
    expected : its bytes after the call; None if they must stay.
    allowed : what each element may differ by, as doubles; empty where the case says it for all of them.
    target : the operand to which pointers lead; None for data.
    values : how it is compared; None as the case says.
    element : bytes of what is compared; 0 as the case says.
    workspace : whatever it holds afterwards is right, but not what stands around it.
    """

    content: bytes
    origin: int = 0
    argument: int | None = None
    at_end: bool = False
    expected: bytes | None = None
    target: int | None = None
    allowed: bytes = b""
    values: Values | None = None
    element: int = 0
    workspace: bool = False

    def packed(self, values: Values, element: int) -> bytes:
        """As the harness reads it, where the case compares elements of some bytes."""
        kind, target = (2 * self.workspace, 0) if self.target is None else (1, self.target)
        argument = -1 if self.argument is None else self.argument
        changes = 0 if self.expected is None else 2 if self.allowed else 1
        compared = (values if self.values is None else self.values, self.element or element)
        fields = (kind, argument, self.at_end, self.origin, target, len(self.content), changes)
        head = struct.pack("<9q", *fields, *compared)
        return head + _padded(self.content) + _padded(self.expected or b"") + self.allowed


@dataclass(frozen=True)
class Case:
    """One call.

    Attributes
    ----------
    label : what the harness prints if it fails.
    kernel : number in the table of kernels.
    element : bytes of what is compared: an element of the result, or a part of it.
    values : how it is compared.
    scalars : the type of alpha and beta.
    relative, absolute : what a value may differ by, where its operand does not say it.
    """

    label: str
    kernel: int
    signature: Signature
    element: int
    integers: tuple[int, ...]
    operands: tuple[Placed, ...]
    alpha: float = 1.0
    beta: float = 0.0
    values: Values = Values.BYTES
    scalars: Scalars = Scalars.F32
    relative: float = 0.0
    absolute: float = 0.0
    scratch_bytes: int = 0

    def packed(self) -> bytes:
        """As the harness reads it."""
        label = self.label.encode()
        integers = self.integers + (0,) * (INTEGERS - len(self.integers))
        head = struct.pack(
            f"<3q2d{INTEGERS}q2d2q",
            self.kernel,
            self.signature,
            self.scalars,
            self.relative,
            self.absolute,
            *integers,
            self.alpha,
            self.beta,
            self.scratch_bytes,
            len(self.operands),
        )
        placed = b"".join(operand.packed(self.values, self.element) for operand in self.operands)
        return struct.pack("<q", len(label)) + _padded(label) + head + placed


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 8)


def image(array: Array, strides: tuple[int, ...], gap: int = UNREAD) -> tuple[bytes, int]:
    """An array laid out with strides in elements: the bytes from its lowest to its highest, and the origin.

    >>> image(np.zeros((2, 1), np.int8), (3, 1), UNWRITTEN)
    (b'\\x00AA\\x00', 0)
    """
    if not array.size:
        return b"", 0
    steps = tuple(stride * array.itemsize for stride in strides)
    reach = [(size - 1) * step for size, step in zip(array.shape, steps, strict=True)]
    origin = -sum(min(0, distance) for distance in reach)
    extent = origin + sum(max(0, distance) for distance in reach) + array.itemsize
    memory = np.full(extent, gap, np.uint8)
    np.ndarray(array.shape, array.dtype, memory, origin, steps)[...] = array
    return memory.tobytes(), origin


def write_cases(path: Path, cases: Iterable[Case], slack_bytes: int = 0) -> int:
    """Writes the file; returns the number of cases.

    `slack_bytes` keep operands at the end away from the guard page, see `Emulator.slack_bytes`.
    """
    count, region, scratch = 0, PAGE, PAGE
    head = struct.Struct("<5q")
    with path.open("wb") as file:
        file.write(bytes(head.size))
        for case in cases:
            file.write(case.packed())
            count += 1
            region = max(region, *(len(operand.content) for operand in case.operands))
            scratch = max(scratch, case.scratch_bytes)
        file.seek(0)
        whole = (-(-size // PAGE) * PAGE for size in (region + slack_bytes, scratch))
        file.write(head.pack(MAGIC, count, next(whole), slack_bytes, next(whole)))
    return count
