"""Draws random calls whose operands all touch inaccessible pages; a program, as faults end a process.

    python tests/guard_pages/guard_cases.py --cases 10000 --seed 1
    python tests/guard_pages/guard_cases.py --seed 1 --only 4711

Every operand lies between two inaccessible pages, its lowest or its highest byte beside one of them, with
gaps between its elements, axes in any order, and steps of either sign. What surrounds it is NaN. Each result
is compared with NumPy's in float64, every byte around `out` and all operands with what they were. A case is
drawn from the seed and its number alone, so that any of them runs again by itself. The row is the host's, or
that of TILEWRIGHT_ISA. The exit status is the number of cases that failed, at most 100.
"""

from __future__ import annotations

import argparse
import os
import signal
import struct
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shared"))

import ml_dtypes
import numpy as np
from attention_cases import packed_call, paged_call, quantised_call, random_call
from support import Array, GuardedMemory

import tilewright as tw
from tilewright.ops.packing.matrix import PackedMatrix

FLOATS: tuple[Any, ...] = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
INTEGERS: tuple[Any, ...] = (np.int8, np.uint8, np.int16, np.int32, np.int64)
COMPLEX: tuple[Any, ...] = (np.complex64, np.complex128)
#: Types are drawn from these; most cases are of float32, which has the most kernels.
TYPES = (*FLOATS[:1] * 8, *FLOATS, *INTEGERS, *COMPLEX)

#: Units of the magnitude of what was added up by which a result may be off.
ULPS = 64.0


class Room:
    """Guarded memory for the operands of one case; the same pages serve the next one."""

    def __init__(self) -> None:
        self._free: dict[int, list[GuardedMemory]] = {}
        self._used: list[tuple[int, GuardedMemory]] = []
        self.placed: list[tuple[GuardedMemory, Array, Array]] = []

    def memory(self, size: int) -> GuardedMemory:
        """Pages that nothing else of this case uses."""
        wanted = max(4096, 1 << (max(size, 1) - 1).bit_length())
        found = self._free.setdefault(wanted, [])
        memory = found.pop() if found else GuardedMemory(wanted)
        self._used.append((wanted, memory))
        return memory

    def forget(self) -> None:
        """Pages of a case that failed serve no other: their bytes may be anything."""
        self._used.clear()

    def clear(self) -> None:
        """All memory is free again."""
        for size, memory in self._used:
            self._free[size].append(memory)
        self._used.clear()
        self.placed.clear()


class Draw:
    """One case: its random numbers, and the places of its operands."""

    def __init__(self, seed: int, number: int, room: Room) -> None:
        self.rng, self.room = np.random.default_rng([seed, number]), room
        self.said: list[str] = []

    # --- choices ----------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def one_of(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def size(self, most: int = 40) -> int:
        """Mostly small; at times none, or beside a power of two, where tiles end."""
        if self.chance(0.03):
            return 0
        if self.chance(0.25):
            return max(1, min(most, int(2 ** self.rng.integers(0, 8)) + int(self.rng.integers(-1, 2))))
        return int(self.rng.integers(1, most))

    def dtype(self) -> Any:
        return TYPES[int(self.rng.integers(len(TYPES)))]

    # --- operands ---------------------------------------------------------------------------

    def values(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Small integers, whose sums are exact in all types but those of 16 bits."""
        kind = np.dtype(dtype)
        low = 0 if kind.kind == "u" else -3
        found = self.rng.integers(low, 4, shape)
        if kind.kind == "c":
            found = found + 1j * self.rng.integers(-3, 4, shape)
        return found.astype(kind)

    def place(self, values: Array) -> Array:
        """A copy of an array beside a guard, its axes in any order and its elements with gaps."""
        axes = list(range(values.ndim))
        if self.chance(0.5):
            self.rng.shuffle(axes)
        steps, step = [0] * values.ndim, values.itemsize
        for axis in reversed(axes):
            if self.chance(0.15):
                step *= self.one_of(2, 3)
            steps[axis] = -step if self.chance(0.1) else step
            step = step * max(values.shape[axis], 1)
            if self.chance(0.25):
                step += values.itemsize * int(self.rng.integers(1, 8))
        memory, at_end = self.room.memory(step + values.itemsize), self.chance(0.6)
        found = self._put(memory, values, tuple(steps), at_end=at_end)
        self.room.placed.append((memory, found, values.copy()))
        self.said.append(f"{values.dtype}{values.shape} steps {tuple(steps)}{' at the end' * at_end}")
        return found

    @staticmethod
    def _put(memory: GuardedMemory, values: Array, steps: tuple[int, ...], *, at_end: bool) -> Array:
        if values.size:
            return memory.place(values, steps, at_end=at_end)
        memory.bytes[...] = memory.PATTERN  # an array without elements may begin behind the last byte
        edge = memory.bytes[memory.bytes.size if at_end else 0 :][:0]
        return np.lib.stride_tricks.as_strided(edge.view(values.dtype), values.shape, steps)

    def operand(self, *shape: int, dtype: Any) -> Array:
        return self.place(self.values(shape, dtype))

    def out(self, shape: tuple[int, ...], dtype: Any, share: float = 0.5) -> Array | None:
        """At times an array for the result, full of what is no result."""
        if not self.chance(share):
            return None
        return self.place(np.full(shape, 77, dtype))

    # --- checks -----------------------------------------------------------------------------

    def surroundings(self, out: Array | None) -> list[Array]:
        """The bytes around `out`."""
        return [memory.outside(found) for memory, found, _ in self.room.placed if found is out and found.size]

    def check(
        self, result: Any, expected: Any, out: Array | None, before: list[Array], scale: Any = None
    ) -> None:
        """The values, the operands, and the bytes around the result."""
        assert out is None or result is out, "out is not what was returned"
        self.unchanged(out, before)
        near(np.asarray(result), expected, scale)

    def unchanged(self, out: Array | None, before: list[Array]) -> None:
        """The operands, and the bytes around the result."""
        for memory, array, given in self.room.placed:
            if array is out:
                assert not array.size or np.array_equal(memory.outside(array), before[0]), "bytes around out"
            else:
                assert np.array_equal(_bits(array), _bits(given)), "an operand changed"


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(np.uint8)


def wide(array: Any) -> Array:
    """In the type of references."""
    found = np.asarray(array)
    if found.dtype.kind in "biu":
        return found.astype(np.int64)
    return found.astype(np.complex128 if found.dtype.kind == "c" else np.float64)


def near(found: Array, expected: Any, scale: Any = None) -> None:
    """Equal integers; floats within some units of the magnitude of what was added up."""
    exact = np.asarray(expected)
    assert found.shape == exact.shape, f"shape {found.shape}, not {exact.shape}"
    if found.dtype.kind in "biu":
        assert np.array_equal(found, exact.astype(found.dtype)), "other integers"
        return
    finfo: Any = np.finfo if found.dtype.kind == "c" else ml_dtypes.finfo
    unit = float(finfo(found.dtype).eps)
    magnitude = np.maximum(abs(exact), 1.0 if scale is None else scale)
    wrong = ~((abs(wide(found) - exact) <= ULPS * unit * magnitude) | (wide(found) == exact))
    assert not wrong.any(), f"{np.count_nonzero(wrong)} of {wrong.size} elements differ"


# --- cases: each draws a call, runs and checks it ---------------------------------------------------

ACTIVATIONS: dict[str | None, Callable[[Array], Array]] = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


def threads(draw: Draw) -> dict[str, Any]:
    return {"threads": int(draw.one_of(1, 2))} if draw.chance(0.3) else {}


def matmul(draw: Draw) -> None:
    """Matrices, vectors and batches, with factors and what is added to `out`."""
    dtype, m, n, k = draw.dtype(), draw.size(), draw.size(), draw.size(70)
    kind = draw.one_of("matrices", "matrices", "row", "column", "batch", "shared")
    batch = {"batch": (draw.size(5),), "shared": (draw.size(4), draw.size(3))}.get(kind, ())
    shape_a = (k,) if kind == "row" else (*batch, m, k)
    shape_b = (k,) if kind == "column" else (*(() if kind == "shared" else batch), k, n)
    a, b = draw.operand(*shape_a, dtype=dtype), draw.operand(*shape_b, dtype=dtype)
    exact = np.matmul(wide(a), wide(b))
    size = np.matmul(abs(wide(a)), abs(wide(b)))
    out = draw.out(exact.shape, dtype)
    factors: dict[str, Any] = {}
    if draw.chance(0.3):
        factors["alpha"] = draw.one_of(2, -1)
        if out is not None and draw.chance(0.6):
            factors["beta"] = draw.one_of(1, 2)
    if draw.chance(0.3) and not factors and np.dtype(dtype).kind == "f" and kind in ("matrices", "batch"):
        name = draw.one_of(*ACTIVATIONS)
        bias = draw.operand(n, dtype=dtype)
        before = draw.surroundings(out)
        found = tw.matmul(a, b, out, bias=bias, activation=name, **threads(draw))
        draw.check(found, ACTIVATIONS[name](exact + wide(bias)), out, before, size + 3)
        return
    exact = factors.get("alpha", 1) * exact + factors.get("beta", 0) * 77
    before = draw.surroundings(out)
    found = tw.matmul(a, b, out, **factors, **threads(draw))
    draw.check(found, exact, out, before, 2 * size + 154)


def packed(draw: Draw) -> None:
    """A packed weight, in words or in tiles, all of its arrays beside guards."""
    m, n, k = draw.size(), draw.size(), draw.size(150)
    x = draw.operand(m, k, dtype=np.float32)
    w = draw.operand(k, n, dtype=np.float32)
    forms: list[Callable[[], PackedMatrix]] = [
        lambda: tw.pack(w),
        lambda: tw.pack(w, form="bf16"),
        lambda: tw.pack(w, form="f16"),
        lambda: tw.quantize_weights(w, bits=8),
        lambda: tw.quantize_weights(w, bits=4, group=32),
        lambda: tw.quantize_weights(w, bits=4, group=64, symmetric=False),
    ]
    made = draw.one_of(*forms)()
    unpacked = wide(tw.unpack(made))

    def beside(array: Array) -> Array:
        memory = draw.room.memory(array.nbytes)
        steps = np.empty(array.shape, array.dtype).strides
        found = Draw._put(memory, array, steps, at_end=True)
        draw.room.placed.append((memory, found, array.copy()))
        return found

    vectors = MappingProxyType({name: beside(vector) for name, vector in made.vectors.items()})
    again = PackedMatrix(made.form, made.shape, beside(made.data4d), vectors)
    bias, out = (
        (draw.operand(n, dtype=np.float32) if draw.chance(0.5) else None),
        draw.out((m, n), np.float32),
    )
    name = draw.one_of(*ACTIVATIONS)
    exact = wide(x) @ unpacked + (0 if bias is None else wide(bias))
    size = abs(wide(x)) @ abs(unpacked) + 3
    before = draw.surroundings(out)
    found = tw.linear(x, again, bias, name, out=out, **threads(draw))
    draw.check(found, ACTIVATIONS[name](exact), out, before, size)


def linear(draw: Draw) -> None:
    """A layer on rows of several axes."""
    dtype, m, n, k = draw.one_of(*FLOATS), draw.size(), draw.size(), draw.size(70)
    x, weight = draw.operand(draw.size(4), m, k, dtype=dtype), draw.operand(n, k, dtype=dtype)
    bias, out = draw.operand(n, dtype=dtype), draw.out((len(x), m, n), dtype)
    name = draw.one_of(*ACTIVATIONS)
    exact, size = wide(x) @ wide(weight).T + wide(bias), abs(wide(x)) @ abs(wide(weight)).T + 3
    before = draw.surroundings(out)
    found = tw.linear(x, weight, bias, name, out=out, **threads(draw))
    draw.check(found, ACTIVATIONS[name](exact), out, before, size)


def einsum(draw: Draw) -> None:
    """Random labels: of each operand some, in any order, of the result some of those."""
    dtype = draw.one_of(*TYPES[:11], *INTEGERS, *COMPLEX)
    labels = "abcdef"[: int(draw.rng.integers(2, 6))]
    sizes = {label: draw.size(9) for label in labels}
    count = int(draw.rng.integers(1, 4))
    terms = ["".join(draw.rng.permutation([one for one in labels if draw.chance(0.6)])) for _ in range(count)]
    known = sorted(set("".join(terms)))
    output = "".join(draw.rng.permutation([label for label in known if draw.chance(0.5)]))
    subscripts = f"{','.join(terms)}->{output}"
    draw.said.append(subscripts)
    arrays = [draw.operand(*(sizes[label] for label in term), dtype=dtype) for term in terms]
    exact = np.einsum(subscripts, *map(wide, arrays))
    size = np.einsum(subscripts, *(abs(wide(array)) for array in arrays))
    out = draw.out(exact.shape, dtype)
    # Sums of 16 bits round between steps; those of narrow integers wrap.
    before = draw.surroundings(out)
    given: dict[str, Any] = {} if out is None else {"out": out}
    how = draw.one_of("einsum", "einsum", "compiled")
    if how == "compiled":
        found = tw.compile_einsum(subscripts, *arrays)(*arrays, out=out)
    else:
        found = tw.einsum(subscripts, *arrays, **given)
    draw.check(found, exact, out, before, size + 1)


def contraction(draw: Draw) -> None:
    """A kernel of known sizes and strides, which runs as a schedule says."""
    dtype = draw.one_of(np.float32, np.float32, np.float64)
    subscripts = draw.one_of("ij,jk->ik", "ij,jk->ki", "bij,bjk->bik", "iaj,jb->iab", "aij,akj->ik", "ij->ji")
    inputs = subscripts.partition("->")[0]
    sizes = {label: max(1, draw.size(24)) for label in "abijk"}
    arrays = [draw.operand(*(sizes[x] for x in term), dtype=dtype) for term in inputs.split(",")]
    exact = np.einsum(subscripts, *map(wide, arrays))
    out = draw.place(np.full(exact.shape, 77, dtype))
    steps = [step // out.itemsize for step in out.strides]
    kernel: Any = tw.compile(tw.einsum_contraction(subscripts, *arrays, out_strides=steps))
    before = draw.surroundings(out)
    draw.check(kernel(*arrays, out), exact, out, before, abs(exact) + 100)


def native(draw: Draw) -> None:
    """A kernel's builtin on the layouts that it was compiled for."""
    dtype = draw.one_of("f32", "f32", "f64", "i8", "bf16")
    problem = tw.Gemm(
        dtype=dtype, a=draw.one_of("row", "col", "strided"), b=draw.one_of("row", "col", "strided")
    )
    kernel: Any = tw.compile(problem)
    m, n, k = draw.size(), draw.size(), draw.size(70)
    kinds = [problem.dtype.numpy, problem.dtype.numpy, kernel.types.c.numpy]

    def laid(shape: tuple[int, int], layout: str, kind: Any) -> Array:
        values = draw.values(shape, kind)
        if layout == "strided":
            return draw.place(values)
        gap = int(draw.rng.integers(0, 5))
        long, at_end = shape[1 if layout == "row" else 0] + gap, draw.chance(0.6)
        steps = (long * values.itemsize, values.itemsize)
        memory = draw.room.memory(values.itemsize * (long + 1) * (max(shape) + 1))
        found = Draw._put(memory, values, steps if layout == "row" else steps[::-1], at_end=at_end)
        draw.room.placed.append((memory, found, values.copy()))
        return found

    a = laid((m, k), problem.a.value, kinds[0])
    b = laid((k, n), problem.b.value, kinds[1])
    c = laid((m, n), problem.c.value, kinds[2])
    exact, size = wide(a) @ wide(b), abs(wide(a)) @ abs(wide(b)) + 1
    before = draw.surroundings(c)
    (kernel.native if draw.chance(0.7) else kernel)(a, b, c)
    draw.check(c, exact, c, before, size)


def attention(draw: Draw) -> None:
    """Any keywords, every array of them beside guards."""
    dtype = draw.one_of(*FLOATS[:1] * 4, *FLOATS)
    maker = draw.one_of(random_call, random_call, packed_call, paged_call, quantised_call)
    call = maker(draw.rng, dtype)
    expected, expected_lse = call.expected()
    q, k, v = (draw.place(array) for array in (call.q, call.k, call.v))
    keywords: dict[str, Any] = {
        name: draw.place(value) if isinstance(value, np.ndarray) else value
        for name, value in call.keywords.items()
    }
    draw.said.append(f"{maker.__name__} {sorted(keywords)}")
    out = draw.out(expected.shape, dtype)
    strategy = draw.one_of("auto", "auto", "blocks", "decode", "unfused")
    before = draw.surroundings(out)
    found, lse = tw.attention(
        q, k, v, **keywords, out=out, return_lse=True, strategy=strategy, **threads(draw)
    )
    scale = np.nanmax(abs(expected), initial=1.0)
    draw.check(found, expected, out, before, scale)
    np.testing.assert_allclose(lse, expected_lse, rtol=1e-2, atol=1e-2)


def _softmax(x: Array, axis: int) -> Array:
    powers = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
    found: Array = powers / powers.sum(axis=axis, keepdims=True)
    return found


def _normed(x: Array, axis: int) -> Array:
    found: Array = (x - x.mean(axis=axis, keepdims=True)) / np.sqrt(x.var(axis=axis, keepdims=True) + 1e-5)
    return found


def rows(draw: Draw) -> None:
    """Functions along an axis."""
    dtype, ndim = draw.one_of(*FLOATS), int(draw.rng.integers(1, 4))
    shape = tuple(max(1, draw.size(70 if axis == ndim - 1 else 12)) for axis in range(ndim))
    x, axis = draw.operand(*shape, dtype=dtype), int(draw.rng.integers(-ndim, ndim))
    weight = draw.operand(shape[axis], dtype=dtype)
    across = wide(weight).reshape([-1 if at == axis % ndim else 1 for at in range(ndim)])
    out = draw.out(shape, dtype)
    before, exact = draw.surroundings(out), wide(x)
    match draw.one_of("softmax", "log_softmax", "layer_norm", "rms_norm"):
        case "softmax":
            found, exact = tw.softmax(x, axis, out), _softmax(exact, axis)
        case "log_softmax":
            least = exact.max(axis=axis, keepdims=True)
            exact = exact - least - np.log(np.exp(exact - least).sum(axis=axis, keepdims=True))
            found = tw.log_softmax(x, axis, out)
        case "layer_norm":
            found, exact = tw.layer_norm(x, weight, axis=axis, out=out), _normed(exact, axis) * across
        case _:
            exact = exact / np.sqrt((exact**2).mean(axis=axis, keepdims=True) + 1e-5) * across
            found = tw.rms_norm(x, weight, axis=axis, eps=1e-5, out=out)
    draw.check(found, exact, out, before, 16.0)


def reduction(draw: Draw) -> None:
    """Sums, means and extremes."""
    dtype, ndim = draw.one_of(*FLOATS, np.int32, np.int64), int(draw.rng.integers(1, 4))
    x = draw.operand(*(max(1, draw.size(60)) for _ in range(ndim)), dtype=dtype)
    axis = None if draw.chance(0.2) else int(draw.rng.integers(-ndim, ndim))
    name = draw.one_of("sum", "mean", "max", "min")
    if np.dtype(dtype).kind == "i":
        name = draw.one_of("max", "min")
    exact = getattr(np, name)(wide(x), axis=axis)
    before: list[Array] = []
    draw.said.append(f"{name} axis {axis}")
    draw.check(getattr(tw, name)(x, axis=axis), exact, None, before, abs(wide(x)).sum(axis=axis) / 16 + 4)


def elements(draw: Draw) -> None:
    """Functions of single elements."""
    functions: dict[str, Callable[[Array], Array]] = {
        "exp": np.exp,
        "tanh": np.tanh,
        "relu": lambda x: np.maximum(x, 0),
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "silu": lambda x: x / (1 + np.exp(-x)),
    }
    dtype, ndim, name = draw.one_of(*FLOATS), int(draw.rng.integers(1, 4)), draw.one_of(*functions)
    x = draw.operand(*(draw.size(40) for _ in range(ndim)), dtype=dtype)
    out = draw.out(x.shape, dtype)
    before = draw.surroundings(out)
    draw.said.append(name)
    draw.check(getattr(tw, name)(x, out=out), functions[name](wide(x)), out, before)


def transpose(draw: Draw) -> None:
    """Elements moved, byte for byte."""
    dtype, ndim = draw.one_of(*TYPES, bool, "S3", "f4,i2"), int(draw.rng.integers(1, 5))
    shape = tuple(draw.size(40 if ndim < 3 else 9) for _ in range(ndim))
    values = draw.rng.integers(0, 2, shape).astype(dtype)
    x, axes = draw.place(values), [int(axis) for axis in draw.rng.permutation(ndim)]
    out = draw.place(np.zeros(values.transpose(axes).shape, dtype)) if draw.chance(0.5) else None
    before = draw.surroundings(out)
    found = tw.transpose(x, axes, out)
    assert np.array_equal(found, values.transpose(axes)), "other elements"
    draw.unchanged(out, before)


def triangles(draw: Draw) -> None:
    """Half of a product, and products with half of a matrix."""
    dtype, n, k = draw.one_of(np.float32, np.float32, np.float64, np.complex64), draw.size(), draw.size(60)
    lower = draw.chance(0.5)
    half = np.tril if lower else np.triu
    match draw.one_of("syrk", "syr2k", "trmm"):
        case "trmm":
            a, b = draw.operand(n, n, dtype=dtype), draw.operand(n, k, dtype=dtype)
            exact, size = half(wide(a)) @ wide(b), half(abs(wide(a))) @ abs(wide(b))
            out = draw.out((n, k), dtype)
            before = draw.surroundings(out)
            draw.check(tw.trmm(a, b, out, lower=lower, **threads(draw)), exact, out, before, size + 1)
        case name:
            a, b = draw.operand(n, k, dtype=dtype), draw.operand(n, k, dtype=dtype)
            exact = wide(a) @ (wide(a) if name == "syrk" else wide(b)).T
            exact = exact if name == "syrk" else exact + exact.T
            out = draw.out((n, n), dtype)
            rest = np.full((n, n), 77 if out is not None else 0)
            before = draw.surroundings(out)
            given = (a,) if name == "syrk" else (a, b)
            found = getattr(tw, name)(*given, out, lower=lower, **threads(draw))
            mask = half(np.ones((n, n), bool))
            draw.check(found, np.where(mask, exact, rest), out, before, 18 * k + 77)


def relatives(draw: Draw) -> None:
    """tensordot and its relatives, and tiles."""
    dtype, m, n, k = draw.dtype(), draw.size(), draw.size(), draw.size()
    match draw.one_of("tensordot", "inner", "vecdot", "matvec", "vecmat", "kron", "mmt4d"):
        case "tensordot":
            a, b = draw.operand(m, k, 3, dtype=dtype), draw.operand(3, k, n, dtype=dtype)
            found, exact = (
                tw.tensordot(a, b, ((1, 2), (1, 0))),
                np.tensordot(wide(a), wide(b), ((1, 2), (1, 0))),
            )
        case "inner":
            a, b = draw.operand(m, k, dtype=dtype), draw.operand(n, k, dtype=dtype)
            found, exact = tw.inner(a, b), np.inner(wide(a), wide(b))
        case "vecdot":
            a, b = draw.operand(m, k, dtype=dtype), draw.operand(m, k, dtype=dtype)
            found, exact = tw.vecdot(a, b), (wide(a).conj() * wide(b)).sum(axis=-1)
        case "matvec":
            a, b = draw.operand(m, n, k, dtype=dtype), draw.operand(m, k, dtype=dtype)
            found, exact = tw.matvec(a, b), (wide(a) @ wide(b)[..., None])[..., 0]
        case "vecmat":
            a, b = draw.operand(m, k, dtype=dtype), draw.operand(m, k, n, dtype=dtype)
            found, exact = tw.vecmat(a, b), (wide(a).conj()[:, None] @ wide(b))[:, 0]
        case "kron":
            a, b = draw.operand(m, 3, dtype=dtype), draw.operand(2, n, dtype=dtype)
            found, exact = tw.kron(a, b), np.kron(wide(a), wide(b))
        case _:
            kind, sizes = draw.one_of(np.float32, np.float64), [max(1, draw.size(6)) for _ in range(6)]
            m1, n1, k1, m0, n0, k0 = sizes
            a, b = draw.operand(m1, k1, m0, k0, dtype=kind), draw.operand(n1, k1, n0, k0, dtype=kind)
            found, exact = tw.mmt4d(a, b), np.einsum("aijb,cidb->acjd", wide(a), wide(b))
    draw.check(found, exact, None, [], 9 * max(k, 40) + 1)


#: How often each kind is drawn.
CASES: dict[Callable[[Draw], None], int] = {
    matmul: 6,
    packed: 3,
    linear: 2,
    einsum: 5,
    contraction: 2,
    native: 2,
    attention: 4,
    rows: 3,
    reduction: 2,
    elements: 1,
    transpose: 2,
    triangles: 2,
    relatives: 2,
}
KINDS = [case for case, weight in CASES.items() for _ in range(weight)]


# --- runs -------------------------------------------------------------------------------------------


def run_case(seed: int, number: int, room: Room) -> str | None:
    """One case: why it failed, None if it did not."""
    draw = Draw(seed, number, room)
    case = draw.one_of(*KINDS)
    try:
        case(draw)
    except Exception as error:  # whatever it is, the case and its number are what is needed
        room.forget()
        where = traceback.extract_tb(error.__traceback__)[-1]
        operands = "; ".join(draw.said)
        return f"{case.__name__}: {type(error).__name__}: {error} ({where.name}:{where.lineno}) {operands}"
    finally:
        room.clear()
    return None


def run_some(seed: int, numbers: range, pipe: int) -> None:
    """Cases in this process; each number, and why a case failed, go to the parent before and after it."""
    room = Room()
    for number in numbers:
        os.write(pipe, struct.pack("<qI", number, 0))
        reason = run_case(seed, number, room)
        if reason is not None:
            text = reason.encode()[:3000]
            os.write(pipe, struct.pack("<qI", number, len(text)) + text)


def messages(pipe: int) -> Iterator[tuple[int, str]]:
    """What a child says, until it ends."""
    with os.fdopen(pipe, "rb") as stream:
        while head := stream.read(12):
            number, length = struct.unpack("<qI", head)
            yield number, stream.read(length).decode(errors="replace")


def run_in_children(seed: int, cases: range) -> Iterator[tuple[int, str]]:
    """Cases in children of this process, a new one behind each that a fault ended; what failed."""
    while cases:
        receiving, sending = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(receiving)
            run_some(seed, cases, sending)
            os._exit(0)
        os.close(sending)
        last = cases.start
        for last, reason in messages(receiving):
            if reason:
                yield last, reason
        _, status = os.waitpid(child, 0)
        if not status:
            return
        ended = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"status {status}"
        yield last, f"the process ended with {ended}"
        cases = range(last + 1, cases.stop)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1000, help="how many cases")
    parser.add_argument("--seed", type=int, default=0, help="what they are drawn from")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--only", type=int, help="one case, in this process, with its traceback")
    options = parser.parse_args()
    if options.only is not None:
        draw = Draw(options.seed, options.only, Room())
        case = draw.one_of(*KINDS)
        try:
            case(draw)
        finally:
            sys.stdout.write("\n  ".join([case.__name__, *draw.said]) + "\n")
        return 0
    failed = Counter[str]()
    for number, reason in run_in_children(options.seed, range(options.first, options.first + options.cases)):
        failed[reason.partition(":")[0]] += 1
        sys.stdout.write(f"case {number}: {reason}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{options.cases} cases, {failed.total()} failed\n")
    return min(failed.total(), 100)


if __name__ == "__main__":
    sys.exit(main())
