"""Embeddings: rows by their indices, of every type and layout; checked indices, threads, errors."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import LAYOUTS, Array, GuardedMemory, no_flags, rough, unaligned
from tiers import draws

import tilewright as tw
from tilewright.compiler.kernel import Kernel
from tilewright.errors import (
    EmbeddingTable,
    IndexPastEnd,
    InvalidFlag,
    InvalidIndices,
    InvalidScalar,
    InvalidSize,
    InvalidTileIr,
    OutOverlapsItself,
    OutReadOnly,
    OutShape,
    UnsupportedDtype,
)
from tilewright.ir.expressions import Constant, Name, Scalar
from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Buffer, Program, Slice, Space
from tilewright.ir.parse import parse_program
from tilewright.ir.primitives.gather import GatherRows
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.ops.embedding.cut import EmbeddingCut, choose_embedding
from tilewright.ops.embedding.nest import build_embedding
from tilewright.ops.embedding.problem import TABLE_DTYPES, Embedding
from tilewright.ops.rows.kernel import RowCall
from tilewright.spec.dtype import BF16, F16, F32, F64, I8, I64, DType

FLOATS = [F32, F64, BF16, F16]
#: Rows of tables, and lengths of rows: less than any vector, whole vectors, several and a rest.
ROWS, LENGTHS = 30, (1, 3, 16, 64, 133)


def places(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, ROWS, shape)


def bits(array: Array) -> Array:
    return array.view(f"u{array.itemsize}")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rows_are_copied_bit_by_bit(dtype: DType) -> None:
    for length in LENGTHS:
        pattern = np.random.default_rng(1).integers(0, 256, (ROWS, length * dtype.size), np.uint8)
        table = pattern.view(dtype.numpy)  # NaNs of any payload among them
        for shape in ((), (1,), (7,), (2, 3, 4)):
            indices = places(*shape)
            found = tw.embedding(table, indices)
            assert (found.dtype, found.shape) == (table.dtype, (*shape, length))
            assert np.array_equal(bits(found), bits(table)[indices])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_scaled_rows_are_rounded_once(dtype: DType) -> None:
    table, indices = rough((ROWS, 133)).astype(dtype.numpy), places(2, 5)
    computed: Any = np.float64 if dtype == F64 else np.float32
    for scale in (64**0.5, -3, np.float32(0.1), 0.0):
        found = tw.embedding(table, indices, scale=scale)
        assert found.dtype == table.dtype
        expected = (table[indices].astype(computed) * computed(scale)).astype(dtype.numpy)
        assert np.array_equal(found, expected)


def test_quantised_rows() -> None:
    rows = tw.quantize_rows(rough((ROWS, 133)))
    indices = places(2, 5)
    found = tw.embedding(rows, indices)
    assert found.dtype == np.float32
    assert np.array_equal(found, np.asarray(rows)[indices])
    factor = np.float32(0.1) * rows.scales[indices][..., np.newaxis]
    assert np.array_equal(tw.embedding(rows, indices, scale=0.1), rows.q[indices] * factor)
    rows.scales[indices[0, 0]] = np.nan
    assert np.isnan(tw.embedding(rows, indices)[0, 0]).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_strides(layout: str) -> None:
    table, indices = LAYOUTS[layout](rough((ROWS, 40))), LAYOUTS[layout](places(4, 6))
    expected = rough((ROWS, 40))[places(4, 6)]
    assert np.array_equal(tw.embedding(table, indices), expected)
    for other in LAYOUTS:
        out = LAYOUTS[other](np.full((4, 6, 40), np.nan, np.float32))
        assert tw.embedding(table, indices, out) is out
        assert np.array_equal(out, expected)
    rows = np.full((4, 2, 6, 50), np.nan, np.float32)[:, 0, :, :40]  # rows that are no one axis
    assert np.array_equal(tw.embedding(table, indices, rows), expected)


def test_types_of_indices_and_of_out() -> None:
    table, indices = rough((ROWS, 9)), places(3, 4)
    for kind in ("i1", "u1", "i2", "u4", "i8", "u8", ">i4"):
        assert np.array_equal(tw.embedding(table, indices.astype(kind)), table[indices])
    assert np.array_equal(tw.embedding(table, indices.tolist()), table[indices])
    assert np.array_equal(tw.embedding(table, 3), table[3])
    assert tw.embedding(table, []).shape == (0, 9)
    assert tw.embedding(table[:0], np.zeros((0, 2), int)).shape == (0, 2, 9)
    assert tw.embedding(table[:, :0], indices).shape == (3, 4, 0)
    wide, narrow = np.empty((3, 4, 9)), np.empty((3, 4, 9), np.float16)
    assert np.array_equal(tw.embedding(table, indices, wide), table[indices].astype(np.float64))
    assert np.array_equal(tw.embedding(table, indices, narrow), table[indices].astype(np.float16))
    for other in (table.astype(">f4"), unaligned(table)):
        assert np.array_equal(tw.embedding(other, indices), table[indices])


def test_out_may_overlap_the_table_or_the_indices() -> None:
    table = rough((ROWS, 8))
    backwards = np.arange(ROWS)[::-1].copy()
    memory = table.copy()
    assert np.array_equal(tw.embedding(memory, backwards, memory), table[::-1])
    words = np.arange(ROWS, dtype=np.int64)[::-1].copy()
    column = tw.embedding(table[:, :2].astype(np.float32).copy(), words, words.view("f4").reshape(-1, 2))
    assert np.array_equal(column, table[::-1, :2])


def test_threads_change_no_bit() -> None:
    table = rough((1000, 700))
    indices = np.random.default_rng(3).integers(0, 1000, 5000)
    for scale in (None, 0.3):
        one, three = (tw.embedding(table, indices, scale=scale, threads=count) for count in (1, 3))
        assert np.array_equal(one, three)
    long = rough((3, 200_001))
    assert np.array_equal(tw.embedding(long, [2, 0], threads=3), long[[2, 0]])


@draws(40)
@given(data=st.data())
def test_any_sizes(data: st.DataObject) -> None:
    rows, columns, count = (data.draw(st.integers(least, 70)) for least in (1, 0, 0))
    indices = np.array(
        data.draw(st.lists(st.integers(0, rows - 1), min_size=count, max_size=count)), np.int64
    )
    table = rough((rows, columns))
    assert np.array_equal(tw.embedding(table, indices), table[indices])


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("dtype", TABLE_DTYPES, ids=str)
def test_no_byte_outside_is_touched(dtype: DType, scaled: bool) -> None:
    problem = Embedding(dtype, scaled)
    kernel, kind = Kernel.compiled(problem), problem.result.numpy
    memories = [GuardedMemory(1 << 14) for _ in range(4)]
    for turn, columns in enumerate((1, 3, 8, 16, 17, 33, 64, 70, 133)):
        gap, at_end = (0, 3)[turn % 2], bool(turn % 2)
        indices = np.random.default_rng(turn).integers(0, 6, 5)
        indices[[0, -1]] = 0, 5
        content = (10 * rough((6, columns), np.float32, seed=turn)).astype(dtype.numpy)
        size, wide = dtype.size, np.dtype(kind).itemsize
        y = memories[0].place(np.zeros((5, columns), kind), ((columns + gap) * wide, wide), at_end=at_end)
        table = memories[1].place(content, ((columns + gap) * size, size), at_end=at_end)
        places = memories[2].place(indices, (8,), at_end=at_end)
        scales = memories[3].place(rough((6,), seed=turn), (4,), at_end=at_end)
        before = memories[0].outside(y)
        of_rows = [scales] if problem.quantised else []
        sizes = (5, columns, columns + gap, columns + gap)
        RowCall(kernel, [y, *of_rows, table, places], sizes, y.size, [2.0] * scaled).run()
        expected = problem.reference(content, indices, *of_rows, scale=2.0 if scaled else 1.0)
        np.testing.assert_allclose(y.astype(np.float64), expected, rtol=1e-6)
        assert np.array_equal(memories[0].outside(y), before)


def test_padding_raises_no_flag() -> None:
    table, rows, indices = rough((ROWS, 7)), tw.quantize_rows(rough((ROWS, 7))), places(5)
    out = np.empty((5, 7), np.float32)
    for one in (table, rows):
        tw.embedding(one, indices, out, scale=0.5)
        with no_flags():
            tw.embedding(one, indices, out, scale=0.5)


@pytest.mark.parametrize("dtype", ["f32", "i8"])
@pytest.mark.parametrize("target", tw.targets())
def test_the_oracle_gathers_every_row(target: str, dtype: str) -> None:
    problem = Embedding(dtype, scaled=True)
    machine = find_machine(target)
    program = verify(build_embedding(problem, choose_embedding(problem, machine), "kernel"))
    assert parse_program(print_program(program)) == program
    table = (9 * rough((6, 5))).astype(problem.dtype.numpy)
    scales, indices = rough((6,), seed=1), np.array([5, 0, 5, 2])
    arrays = {"table": table.ravel(), "indices": indices, "y": np.full(20, np.nan, np.float32)}
    if problem.quantised:
        arrays["scales"] = scales
    sizes = dict(zip(program.sizes, (4, 5, 5, 5), strict=True))
    interpret(program, sizes, {"scale": 0.5}, arrays, threads=3)
    expected = problem.reference(table, indices, *([scales] if problem.quantised else []), scale=0.5)
    np.testing.assert_allclose(arrays["y"].reshape(4, 5), expected, rtol=1e-6)


def test_windows_that_are_refused() -> None:
    one, zero, n = Constant(1), Constant(0), Name("n")
    kinds = {"to": F32, "source": F32, "indices": I64, "scales": F32, "bytes": I8, "wide": F64}

    def program(**changed: Any) -> Program:
        windows = {name: Slice(name, zero, (n, one)) for name in ("to", "source", "indices")}
        fields = {**windows, "rows": one, "columns": n, "scale": Scalar(2.0), "scales": None}
        buffers = tuple(Buffer(name, dtype, Space.ARGUMENT) for name, dtype in kinds.items())
        return Program("p", ("n",), (), buffers, (GatherRows(**{**fields, **changed}),))

    verify(program())
    scales = Slice("scales", zero, (one, one))
    verify(program(source=Slice("bytes", zero, (n, one)), scales=scales))
    for changed, words in (
        ({"source": Slice("source", zero, (one, n))}, "must be adjacent in source"),
        ({"to": Slice("to", zero, (one, n))}, "must be adjacent in to"),
        ({"source": Slice("wide", zero, (n, one))}, "to and source have one type"),
        ({"indices": Slice("source", zero, (n, one))}, "indices are 64-bit integers"),
        ({"scales": scales}, "scales of rows are float32, of rows of int8"),
    ):
        with pytest.raises(InvalidTileIr, match=words):
            verify(program(**changed))


def test_indices_are_checked_in_every_call() -> None:
    """In those too that machine code repeats: Python makes the call then, and nothing has been written."""
    table, out, indices = rough((ROWS, 8)), np.full((2, 5, 8), 7.0, np.float32), places(2, 5)
    for wrong in (-1, ROWS, 2**63 - 1, -(2**63)):
        for _ in range(3):
            indices[1, 3] = ROWS - 1
            assert np.array_equal(tw.embedding(table, indices, out), table[indices])
        out[...] = 7
        indices[1, 3] = wrong
        with pytest.raises(IndexPastEnd, match=rf"^embedding: indices\[1, 3\] is {wrong}, .* less than 30"):
            tw.embedding(table, indices, out)
        assert (out == 7).all()
    assert issubclass(IndexPastEnd, IndexError)


def test_errors() -> None:
    table, out = rough((ROWS, 8)), np.full((5, 8), 7.0, np.float32)
    for shape in ((8,), (2, 3, 4)):
        with pytest.raises(EmbeddingTable, match=r"must be \(rows, d\)"):
            tw.embedding(np.ones(shape), places(5), out)
    for kind in (bool, int, complex):
        with pytest.raises(UnsupportedDtype, match="i8 with scales, as QuantizedRows"):
            tw.embedding(table.astype(kind), places(5), out)
    for wrong in (np.zeros(5), np.zeros(5, bool)):
        with pytest.raises(InvalidIndices, match="indices has dtype"):
            tw.embedding(table, wrong, out)
    with pytest.raises(IndexPastEnd):
        tw.embedding(table[:0], places(5), out)
    with pytest.raises(InvalidScalar, match="scale"):
        tw.embedding(table, places(5), out, scale=1j)
    with pytest.raises(OutShape):
        tw.embedding(table, places(4), out)
    with pytest.raises(OutOverlapsItself):
        tw.embedding(table, places(5), np.lib.stride_tricks.as_strided(out, (5, 8), (4, 4)))
    assert (out == 7).all()
    out.flags.writeable = False
    with pytest.raises(OutReadOnly):
        tw.embedding(table, places(5), out)
    with pytest.raises(UnsupportedDtype):
        Embedding("i4")
    with pytest.raises(InvalidFlag, match="scaled"):
        Embedding("f32", "yes")
    with pytest.raises(InvalidSize, match="task_elements"):
        EmbeddingCut(0)


def test_a_header_names_every_parameter() -> None:
    kernel = tw.compile(Embedding("i8", scaled=True))
    for name in (
        "*y",
        "*scales",
        "*table",
        "*indices",
        " scale",
        *(f" {size}" for size in kernel.nest.sizes),
    ):
        assert name in kernel.header
