"""Writes small GGUF files, and dequantises them element by element.

Format: github.com/ggml-org/ggml, docs/gguf.md. The dequantisers are the loops of `dequantize_row_*` in
ggml-quants.c.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

#: Numbers of types of metadata, and their forms.
FORMS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
STRING, ARRAY = 8, 9


@dataclass(frozen=True)
class Tensor:
    """A tensor to be written: shape as NumPy has it, number of the type, bytes."""

    shape: tuple[int, ...]
    kind: int
    data: bytes


@dataclass(frozen=True)
class Value:
    """A value of metadata; of arrays the items, and `inner` is their type."""

    kind: int
    value: Any
    inner: int = 0


def text(words: str) -> bytes:
    raw = words.encode()
    return struct.pack("<Q", len(raw)) + raw


def _payload(value: Value) -> bytes:
    if value.kind == STRING:
        return text(value.value)
    if value.kind == ARRAY:
        items = (_payload(v if isinstance(v, Value) else Value(value.inner, v)) for v in value.value)
        return struct.pack("<IQ", value.inner, len(value.value)) + b"".join(items)
    return struct.pack(f"<{FORMS[value.kind]}", value.value)


def gguf_bytes(
    tensors: Mapping[str, Tensor],
    metadata: Sequence[tuple[str, Value]] = (),
    *,
    version: int = 3,
    alignment: int = 32,
) -> bytes:
    """A whole file; tensors in order, each aligned, the last one without padding after it."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, value in metadata:
        head += text(key) + struct.pack("<I", value.kind) + _payload(value)
    body = b""
    for name, tensor in tensors.items():
        body += b"\0" * (-len(body) % alignment)
        head += text(name) + struct.pack("<I", len(tensor.shape))
        head += b"".join(struct.pack("<Q", size) for size in reversed(tensor.shape))
        head += struct.pack("<IQ", tensor.kind, len(body))
        body += tensor.data
    return head + b"\0" * (-len(head) % alignment) + body


def write_gguf(path: Path, *arguments: Any, **named: Any) -> Path:
    path.write_bytes(gguf_bytes(*arguments, **named))
    return path


# --- blocks, element by element -------------------------------------------------------------------


def half(block: bytes, at: int) -> np.float32:
    return np.float32(np.frombuffer(block, "<f2", 1, at)[0])


def nibble(block: bytes, at: int, high: bool) -> int:
    return block[at] >> 4 if high else block[at] & 15


def q4_0(block: bytes) -> list[Any]:
    return [half(block, 0) * (nibble(block, 2 + j % 16, j >= 16) - 8) for j in range(32)]


def q4_1(block: bytes) -> list[Any]:
    return [half(block, 0) * nibble(block, 4 + j % 16, j >= 16) + half(block, 2) for j in range(32)]


def _fifth(block: bytes, at: int, j: int) -> int:
    return (int.from_bytes(block[at : at + 4], "little") >> j & 1) << 4


def q5_0(block: bytes) -> list[Any]:
    return [
        half(block, 0) * ((nibble(block, 6 + j % 16, j >= 16) | _fifth(block, 2, j)) - 16) for j in range(32)
    ]


def q5_1(block: bytes) -> list[Any]:
    return [
        half(block, 0) * (nibble(block, 8 + j % 16, j >= 16) | _fifth(block, 4, j)) + half(block, 2)
        for j in range(32)
    ]


def q8_0(block: bytes) -> list[Any]:
    return [half(block, 0) * np.frombuffer(block, np.int8, 1, 2 + j)[0] for j in range(32)]


def scale_and_minimum(block: bytes, j: int) -> tuple[int, int]:
    """`get_scale_min_k4`: q is at byte 4."""
    q = block[4:16]
    if j < 4:
        return q[j] & 63, q[j + 4] & 63
    return (q[j + 4] & 15) | (q[j - 4] >> 6) << 4, (q[j + 4] >> 4) | (q[j] >> 6) << 4


def _k(block: bytes, quant: Callable[[int, int], int]) -> list[Any]:
    found = []
    for group in range(8):
        scale, minimum = scale_and_minimum(block, group)
        d, m = half(block, 0) * np.float32(scale), half(block, 2) * np.float32(minimum)
        found += [d * np.float32(quant(group, place)) - m for place in range(32)]
    return found


def q4_k(block: bytes) -> list[Any]:
    return _k(block, lambda group, place: nibble(block, 16 + group // 2 * 32 + place, group % 2 == 1))


def q5_k(block: bytes) -> list[Any]:
    def quant(group: int, place: int) -> int:
        fifth = block[16 + place] >> group & 1
        return nibble(block, 48 + group // 2 * 32 + place, group % 2 == 1) + 16 * fifth

    return _k(block, quant)


def q6_k(block: bytes) -> list[Any]:
    """Two halves of 128; of each, ql has 64 bytes, qh 32 and the scales 8."""
    found: list[Any] = [0.0] * 256
    scales = np.frombuffer(block, np.int8, 16, 192)
    for part in range(2):
        low, high, scale = 64 * part, 128 + 32 * part, 8 * part
        for place in range(32):
            bits = block[high + place]
            quants = (
                nibble(block, low + place, False) | (bits & 3) << 4,
                nibble(block, low + place + 32, False) | (bits >> 2 & 3) << 4,
                nibble(block, low + place, True) | (bits >> 4 & 3) << 4,
                nibble(block, low + place + 32, True) | (bits >> 6 & 3) << 4,
            )
            for quarter, quant in enumerate(quants):
                factor = np.float32(scales[scale + place // 16 + 2 * quarter])
                found[128 * part + 32 * quarter + place] = half(block, 208) * factor * np.float32(quant - 32)
    return found


#: Number, elements, bytes and dequantiser of each quantised type, and where its float16 fields are.
TYPES: dict[str, tuple[int, int, int, Callable[[bytes], list[Any]], tuple[int, ...]]] = {
    "Q4_0": (2, 32, 18, q4_0, (0,)),
    "Q4_1": (3, 32, 20, q4_1, (0, 2)),
    "Q5_0": (6, 32, 22, q5_0, (0,)),
    "Q5_1": (7, 32, 24, q5_1, (0, 2)),
    "Q8_0": (8, 32, 34, q8_0, (0,)),
    "Q4_K": (12, 256, 144, q4_k, (0, 2)),
    "Q5_K": (13, 256, 176, q5_k, (0, 2)),
    "Q6_K": (14, 256, 210, q6_k, (208,)),
}


def random_blocks(name: str, shape: tuple[int, int], seed: int = 0) -> bytes:
    """Blocks of any bits, whose scales are between 0.01 and 1 and offsets between -4 and 0 of these."""
    kind, elements, size, _, halves = TYPES[name]
    rng = np.random.default_rng(seed + kind)
    blocks = rng.integers(0, 256, (shape[0] * shape[1] // elements, size)).astype(np.uint8)
    scale = rng.uniform(0.01, 1, len(blocks))
    signed = name in ("Q4_1", "Q5_1")  # an offset that is added; those of K types are taken off
    for at, factor in zip(halves, (1.0, -4.0 if signed else 0.3), strict=False):
        blocks[:, at : at + 2] = (scale * factor).astype("<f2")[:, np.newaxis].view(np.uint8)
    return blocks.tobytes()


def dequantised(name: str, data: bytes, shape: tuple[int, ...]) -> Array:
    """All blocks, one element after another."""
    _, _, size, block, _ = TYPES[name]
    found = [value for at in range(0, len(data), size) for value in block(data[at : at + size])]
    return np.array(found, np.float32).reshape(shape)
