"""AMX in NumPy: eight tiles, and the instructions as the Intel SDM's pseudocode has them.

`AmxModel.imports` are C functions, by the names that `modelled` gives LLVM's intrinsics, so that any CPU runs
a kernel that was written for AMX.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from support import Array

ROWS, ROW_BYTES, COUNT = 16, 64, 8
_PREFIX, _MODEL = "llvm.x86.", "model_x86_"


def modelled(text: str) -> str:
    """A module's text with its AMX intrinsics replaced by calls of the model."""
    return text.replace(_PREFIX, _MODEL)


def flushed(values: Array) -> Array:
    """Subnormal float32 values as zeros of their sign."""
    least = np.finfo(np.float32).smallest_normal
    return np.where(np.abs(values) < least, np.copysign(np.float32(0), values), values)


class AmxModel:
    """The unit's state.

    Attributes
    ----------
    calls : the instructions that were executed, in order.
    errors : what the processor would have stopped at (an exception can't leave a C function).
    """

    def __init__(self) -> None:
        self.tiles = np.full((COUNT, ROWS, ROW_BYTES), 0xEE, np.uint8)
        self.configured = False
        self.calls: list[str] = []
        self.errors: list[str] = []
        self._kept: list[Any] = []

    def imports(self) -> dict[str, int]:
        """Address of each instruction, by name."""
        tile, pointer, stride = ctypes.c_int8, ctypes.c_void_p, ctypes.c_int64
        found: dict[str, tuple[Callable[..., None], tuple[Any, ...]]] = {
            "ldtilecfg": (self._configure, (pointer,)),
            "tilerelease": (self._release, ()),
            "tilezero": (self._zero, (tile,)),
            "tileloadd64": (self._load, (tile, pointer, stride)),
            "tilestored64": (self._store, (tile, pointer, stride)),
            "tdpbf16ps": (lambda *tiles: self._floats(bfloat16, *tiles), (tile,) * 3),
            "tdpfp16ps": (lambda *tiles: self._floats(np.float16, *tiles), (tile,) * 3),
        }
        for name, a, b in (("ss", "i1", "i1"), ("su", "i1", "u1"), ("us", "u1", "i1"), ("uu", "u1", "u1")):
            found[f"tdpb{name}d"] = (lambda *tiles, a=a, b=b: self._bytes(a, b, *tiles), (tile,) * 3)
        return {f"{_MODEL}{name}": self._address(name, *entry) for name, entry in found.items()}

    def _address(self, name: str, action: Callable[..., None], kinds: tuple[Any, ...]) -> int:
        def run(*arguments: Any) -> None:
            self.calls.append(name)
            try:
                if name != "ldtilecfg" and not self.configured:
                    raise ValueError("no configuration")
                action(*arguments)
            except Exception as error:
                self.errors.append(f"{name}{arguments}: {error!r}")

        function = ctypes.CFUNCTYPE(None, *kinds)(run)
        self._kept.append(function)
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    def _configure(self, address: int) -> None:
        block = np.frombuffer(ctypes.string_at(address, 64), np.uint8)
        assert address % 64 == 0
        lengths, rows = block[16:48].view("<u2"), block[48:]
        assert block[0] == 1
        assert not block[1:16].any()
        assert lengths.tolist() == [ROW_BYTES] * COUNT + [0] * COUNT
        assert rows.tolist() == [ROWS] * COUNT + [0] * COUNT
        self.tiles[...] = 0
        self.configured = True

    def _release(self) -> None:
        self.configured = False

    def _zero(self, tile: int) -> None:
        self.tiles[tile] = 0

    def _load(self, tile: int, address: int, stride: int) -> None:
        for row in range(ROWS):
            self.tiles[tile, row] = np.frombuffer(
                ctypes.string_at(address + row * stride, ROW_BYTES), np.uint8
            )

    def _store(self, tile: int, address: int, stride: int) -> None:
        for row in range(ROWS):
            ctypes.memmove(address + row * stride, self.tiles[tile, row].tobytes(), ROW_BYTES)

    def _operands(self, kind_a: Any, kind_b: Any, a: int, b: int) -> tuple[Array, Array]:
        """Of A (row, group, depth in it); of B (group, column, depth in it)."""
        left, right = self.tiles[a].view(kind_a), self.tiles[b].view(kind_b)
        return left.reshape(ROWS, 16, -1), right.reshape(16, 16, -1)

    def _bytes(self, kind_a: str, kind_b: str, acc: int, a: int, b: int) -> None:
        left, right = self._operands(kind_a, kind_b, a, b)
        total = np.einsum("mgp,gnp->mn", left.astype(np.int64), right.astype(np.int64))
        self.tiles[acc] = (self.tiles[acc].view("<i4") + total).astype(np.int32).view(np.uint8)

    def _floats(self, kind: Any, acc: int, a: int, b: int) -> None:
        """SDM: sums of even and of odd depths in turn, each in float32, then both onto the accumulator."""
        left, right = (operand.astype(np.float32) for operand in self._operands(kind, kind, a, b))
        if kind is bfloat16:
            left, right = flushed(left), flushed(right)
        with np.errstate(all="ignore"):
            sums = np.zeros((2, ROWS, 16), np.float64)
            for group in range(16):
                for part in range(2):
                    product = left[:, group, part, None].astype(np.float64) * right[None, group, :, part]
                    sums[part] = flushed((sums[part] + product).astype(np.float32))
            both = flushed((sums[0] + sums[1]).astype(np.float32))
            total = flushed(self.tiles[acc].view("<f4") + both)
        self.tiles[acc] = total.astype(np.float32).view(np.uint8)
