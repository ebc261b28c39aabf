"""Runs products with weights whose operands touch inaccessible pages; a program that a fault ends alone.

    python guarded_weights.py {i8|i4g32|i4g64z|bf16|f16} {f32|bf16}
    python guarded_weights.py rows {f32|bf16}

In `make test` any two sizes of a product meet in every combination, with some values of the third.

Every operand lies at the end of its memory, then at its start: x, words, scales, zero points and the result.
What columns behind the last one have instead of scales is NaN. The row is the host's, or TILEWRIGHT_ISA's.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
import sys
from types import MappingProxyType
from typing import Any

import numpy as np
from shares import share
from support import Array, GuardedMemory

import tilewright as tw
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.ops.quantized.rows import row_function
from tilewright.spec.weights import Weights

ROWS, DEPTHS = (*range(1, 10), 33), (1, 7, 8, 31, 33, 64, 97, 130, 1100)
COLUMNS = (1, 15, 16, 31, 32, 33, 64, 100, 128, 129, 161)
BYTES = 1 << 19
RESULT_BYTES = 4 * max(ROWS) * max(COLUMNS)
#: Of the numbers of rows, `make test` runs one in so many for a weight, with the next weight the next ones.
SHARED = 3


class Place:
    """Guarded memory for one array after the other."""

    def __init__(self, size: int = BYTES) -> None:
        self.memory = GuardedMemory(size)

    def take(self, content: Array, *, at_end: bool) -> Array:
        """A copy of an array that ends, or begins, at a guard."""
        size, room = content.nbytes, self.memory.bytes
        part = room[room.size - size :] if at_end else room[:size]
        found: Array = part.view(content.dtype).reshape(content.shape)
        found[...] = content
        return found


def weight(form: Weights, k: int, n: int, random: np.random.Generator) -> PackedMatrix:
    """A weight of small integers with scales that are powers of two."""
    w = random.integers(-7, 8, (k, n)).astype(np.float32)
    if not form.elements.scaled:
        return tw.pack(w, form=form.elements.value)
    groups = form.groups(k)
    zeros = random.integers(-3, 4, (groups, n)) if form.zeros else None
    scales = 2.0 ** random.integers(-2, 2, (groups, n))
    q = w.astype(np.int8)
    return tw.pack_quantized(q, scales, zeros, bits=form.elements.bits, group=form.group or None)


def rows(dtype: str) -> None:
    """Quantises rows, and multiplies them with a weight of 8 bits."""
    kind, places, count = tw.Gemm(dtype=dtype).dtype, [*(Place() for _ in range(6)), Place(RESULT_BYTES)], 0
    random, ends = np.random.default_rng(0), itertools.cycle((True, False))
    function = row_function(kind)
    for k, n in itertools.product((0, *DEPTHS), COLUMNS):
        packed, m, at_end = weight(Weights.parse("i8"), k, n, random), int(random.integers(1, 12)), next(ends)
        x = random.integers(-127, 128, (m, k)).astype(kind.numpy)
        x[:, :1] = 127
        made: list[Array] = [
            np.full((m, k), 99, np.int8),
            np.full(m, np.nan, np.float32),
            np.full(m, 99, np.int32),
        ]
        given, q, scales, sums = (
            place.take(content, at_end=at_end) for place, content in zip(places, [x, *made], strict=False)
        )
        function(given.ctypes.data, k, m, k, q.ctypes.data, k, scales.ctypes.data, sums.ctypes.data)
        exact = x.astype(np.int64)
        if not (np.array_equal(q, exact) and (scales == 1).all() and np.array_equal(sums, exact.sum(axis=1))):
            raise SystemExit(f"wrong rows: {m}x{k} {dtype}")
        words = places[4].take(packed.data4d, at_end=at_end)
        vectors = {"scales": places[5].take(packed.vectors["scales"], at_end=at_end)}
        c = places[6].take(np.full((m, n), np.nan, np.float32), at_end=at_end)
        before = places[6].memory.outside(c)
        again = PackedMatrix(packed.form, packed.shape, words, MappingProxyType(vectors))
        tw.matmul(tw.QuantizedRows(q, scales, sums), again, out=c)
        for part in (words, *vectors.values()):
            part.flags.writeable = True
        if not np.array_equal(c, exact @ tw.unpack(packed).astype(np.float64)):
            raise SystemExit(f"wrong product of rows: {m}x{n}x{k}")
        if not np.array_equal(places[6].memory.outside(c), before):
            raise SystemExit(f"bytes outside C changed: {m}x{n}x{k}")
        count += 1
    sys.stdout.write(f"{count} products\n")


def main(name: str, dtype: str) -> None:
    """Runs every combination of sizes and prints their number."""
    if name == "rows":
        rows(dtype)
        return
    form, random = Weights.parse(name), np.random.default_rng(0)
    kind, places, count = tw.Gemm(dtype=dtype).dtype.numpy, [Place() for _ in range(4)], 0
    result = Place(RESULT_BYTES)
    kernel: Any = tw.compile(tw.Gemm(dtype=dtype, out_dtype="f32", weights=form))
    ends = itertools.cycle((True, False))
    for number, (k, n) in enumerate(itertools.product(DEPTHS, COLUMNS)):
        packed = weight(form, k, n, random)
        w = tw.unpack(packed).astype(np.float64)
        vectors = {name: np.array(vector) for name, vector in packed.vectors.items()}
        for vector in vectors.values():
            vector[-1, :, (n - 1) % vector.shape[2] + 1 :] = np.nan
        for m in share(ROWS, SHARED, number):
            at_end = next(ends)
            x = random.integers(-3, 4, (m, k)).astype(kind)
            given = places[0].take(x, at_end=at_end)
            words = places[1].take(packed.data4d, at_end=at_end)
            c = result.take(np.full((m, n), np.nan, np.float32), at_end=at_end)
            beside = {
                name: place.take(vector, at_end=at_end)
                for place, (name, vector) in zip(places[2:], vectors.items(), strict=False)
            }
            before = result.memory.outside(c)
            kernel(given, PackedMatrix(packed.form, packed.shape, words, MappingProxyType(beside)), c)
            words.flags.writeable = True
            if not np.array_equal(c, x.astype(np.float64) @ w):
                raise SystemExit(f"wrong product: {m}x{n}x{k} {name}")
            if not np.array_equal(result.memory.outside(c), before):
                raise SystemExit(f"bytes outside C changed: {m}x{n}x{k} {name}")
            count += 1
    sys.stdout.write(f"{count} products\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
