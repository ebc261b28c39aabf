"""Products by tables of offsets: every contraction without a permuted copy, against NumPy."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from support import GUARD_PAGES, Array, GuardedMemory, rough
from tiers import crossed
from uncompiled import uncompiled

import tilewright as tw
from tilewright.compiler.kernel import Kernel
from tilewright.ir.interpret import interpret
from tilewright.ir.parse import parse_program
from tilewright.ir.primitives.tables import NO_STEP
from tilewright.ir.text import print_program
from tilewright.ops.contraction.main import TABLE_DTYPES
from tilewright.ops.contraction.problem import table_contraction
from tilewright.ops.contraction.tables import panels
from tilewright.ops.contraction.tables.nest import TABLES
from tilewright.ops.contraction.tables.panels import PanelShape, ScatterPanels, cut_panels
from tilewright.ops.contraction.tables.roles import OrderedAxes, is_swapped, ordered
from tilewright.ops.contraction.tables.tables import Tables, run_tables, tables_of
from tilewright.ops.einsum.table_pair import TablePair
from tilewright.spec.axes import StridedAxis
from tilewright.spec.dtype import DTYPES
from tilewright.threads.pool import limited
from tilewright.typing import FirstTouchName

#: Subscripts and sizes: plain products, interleaved dimensions, sums over several, batches, outer products.
CONTRACTIONS: tuple[tuple[str, dict[str, int]], ...] = (
    ("ij,jk->ik", {"i": 50, "j": 60, "k": 70}),
    ("ij,jk->ki", {"i": 50, "j": 60, "k": 70}),
    ("ij,kj->ik", {"i": 37, "j": 1500, "k": 41}),
    ("abc,dcb->ad", {"a": 30, "b": 7, "c": 11, "d": 40}),
    ("aceg,bdge->abcd", {"a": 5, "b": 6, "c": 7, "d": 8, "e": 9, "g": 10}),
    ("apbq,qcpd->cadb", {"a": 6, "b": 25, "c": 13, "d": 16, "p": 5, "q": 3}),
    ("bij,bjk->bik", {"b": 3, "i": 20, "j": 30, "k": 40}),
    ("ibj,jkb->bki", {"b": 3, "i": 20, "j": 30, "k": 40}),
    ("abc,bd->acd", {"a": 13, "b": 17, "c": 19, "d": 23}),
    ("i,j->ij", {"i": 100, "j": 37}),
    ("ij,ij->", {"i": 20, "j": 37}),
    ("a,a->a", {"a": 50}),
    ("abcd,dbea->ec", {"a": 4, "b": 3, "c": 33, "d": 20, "e": 47}),
    ("abcd,dbea->ec", {"a": 37, "b": 2, "c": 33, "d": 50, "e": 47}),
    ("abcde,efbad->cf", {"a": 2, "b": 3, "c": 40, "d": 16, "e": 24, "f": 33}),
    ("dbea,ec->abcd", {"a": 20, "b": 3, "c": 5, "d": 35, "e": 7}),
    ("gdab,efgc->abcdef", {"a": 4, "b": 17, "c": 18, "d": 2, "e": 3, "f": 33, "g": 3}),
)
#: Lines of LLVM IR of the kernel for AVX-512, with a few to spare; there were 5,272 once. A sixth of them
#: close chains of sums.
MOST_LINES = 3200

each_contraction = pytest.mark.parametrize(
    ("subscripts", "sizes"), CONTRACTIONS, ids=[f"{c[0]}-{n}" for n, c in enumerate(CONTRACTIONS)]
)
each_dtype = pytest.mark.parametrize("dtype", [str(dtype) for dtype in TABLE_DTYPES])


@cache
def kernel_of(dtype: str, target: str = "host", first: FirstTouchName = "zero") -> Any:
    return tw.compile(table_contraction(dtype, first), target)


def axes_of(subscripts: str, arrays: tuple[Array, Array, Array]) -> list[StridedAxis]:
    """The dimensions of a contraction of arrays as they stand."""
    inputs, out = subscripts.split("->")
    labels = (*inputs.split(","), out)
    strides = [
        {label: step // array.itemsize for label, step in zip(names, array.strides, strict=True)}
        for names, array in zip(labels, arrays, strict=True)
    ]
    sizes = dict(zip("".join(labels), sum((array.shape for array in arrays), ()), strict=True))
    return [StridedAxis(size, *(found.get(label) for found in strides)) for label, size in sizes.items()]


def tables_for(kernel: Kernel, axes: OrderedAxes) -> Tables:
    return tables_of(kernel.problem.types.acc, kernel.machine, kernel.blocking, axes)


def prepared(
    subscripts: str, a: Array, b: Array, c: Array, target: str = "host", first: FirstTouchName = "zero"
) -> tuple[Any, ...]:
    """The kernel, its operands in order, and its tables."""
    name = next(name for name, dtype in DTYPES.items() if dtype.numpy == a.dtype)
    kernel = kernel_of(name, target, first)
    axes = axes_of(subscripts, (a, b, c))
    swapped = is_swapped(axes)
    operands = (b, a, c) if swapped else (a, b, c)
    return kernel, operands, tables_for(kernel, ordered(axes, swapped=swapped))


def contract(subscripts: str, a: Array, b: Array, c: Array, first: FirstTouchName = "zero") -> Array:
    kernel, operands, tables = prepared(subscripts, a, b, c, first=first)
    run_tables(kernel, operands, tables, tables.lengths)
    return c


def made(subscripts: str, sizes: dict[str, int], dtype: str, seed: int = 0) -> tuple[Array, Array, Array]:
    inputs, out = subscripts.split("->")
    kind = DTYPES[dtype].numpy
    a, b = (
        rough(tuple(sizes[label] for label in names), kind, seed + number)
        for number, names in enumerate(inputs.split(","))
    )
    sums = np.float64 if dtype == "f64" else np.float32
    return a, b, rough(tuple(sizes[label] for label in out), sums, seed + 2)


def exact(subscripts: str, a: Array, b: Array) -> Array:
    found: Array = np.asarray(np.einsum(subscripts, a.astype(np.float64), b.astype(np.float64)))
    return found


def close(found: Array, expected: Array, scale: Array, dtype: str) -> None:
    """Within the bound of promise 4, for at most 1,998 depths."""
    allowed = 2000 * (2.0**-53 if dtype == "f64" else 2.0**-24) * scale
    assert np.all(np.abs(found.astype(np.float64) - expected) <= allowed)


@pytest.mark.parametrize(
    ("subscripts", "sizes", "dtype"), crossed(CONTRACTIONS, map(str, TABLE_DTYPES), 2), ids=str
)
def test_contractions(subscripts: str, sizes: dict[str, int], dtype: str) -> None:
    a, b, c = made(subscripts, sizes, dtype)
    before = c.astype(np.float64)
    expected, scale = exact(subscripts, a, b), exact(subscripts, np.abs(a), np.abs(b))
    held = np.asarray(c)
    contract(subscripts, a, b, held)
    close(held, expected, scale, dtype)
    held[...] = before
    contract(subscripts, a, b, held, first="none")
    close(held, expected + before, scale + np.abs(before), dtype)


@each_dtype
@each_contraction
def test_panels_across_dimensions(
    subscripts: str, sizes: dict[str, int], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No panel ends with its dimension: lanes and columns without one distance, in vectors and one by one."""
    monkeypatch.setattr(panels, "_cuts", lambda *_, **__: False)
    a, b, c = made(subscripts, sizes, dtype)
    held = np.asarray(c)
    contract(subscripts, a, b, held)
    close(held, exact(subscripts, a, b), exact(subscripts, np.abs(a), np.abs(b)), dtype)


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v2"])
def test_other_rows(target: str) -> None:
    if tw.machine().arch != "x86_64":
        pytest.skip("rows of x86-64")
    for subscripts, sizes in CONTRACTIONS:
        a, b, c = made(subscripts, sizes, "f32")
        kernel, operands, tables = prepared(subscripts, a, b, np.asarray(c), target)
        run_tables(kernel, operands, tables, tables.lengths)
        close(operands[2], exact(subscripts, a, b), exact(subscripts, np.abs(a), np.abs(b)), "f32")


def test_the_code_stays_short() -> None:
    """LLVM takes 20 ms for a thousand lines: a first contraction waits for as many as there are."""
    assert len(uncompiled(table_contraction("f32"), "znver5").llvm_ir.splitlines()) <= MOST_LINES


def test_views_of_any_strides() -> None:
    """Reversed, spread, repeated by a stride of 0; C spread too, and what is between its elements stays."""
    a = rough((9, 14, 20))[::-1, 1::2, ::-2]
    b = np.broadcast_to(rough((10, 1, 7)), (10, 5, 7))[:, :, ::-1]
    whole = np.full((18, 3, 10), 7, np.float32)
    c = whole[::2, 1, ::2]
    found = np.zeros((9, 5), np.float32)
    contract("aij,jki->ak", a, b, found)
    close(found, exact("aij,jki->ak", a, b), exact("aij,jki->ak", np.abs(a), np.abs(b)), "f32")
    contract("aij,jki->ak", a, b, c)
    assert np.array_equal(c, found)
    whole[::2, 1, ::2] = 7
    assert np.all(whole == 7)


@each_contraction
def test_the_nest_means_the_same(subscripts: str, sizes: dict[str, int]) -> None:
    sizes = {label: min(size, 9) for label, size in sizes.items()}
    a, b, c = made(subscripts, sizes, "f32")
    held = np.array(c, order="C")
    kernel, operands, tables = prepared(subscripts, a, b, held)
    program = kernel.nest
    assert parse_program(print_program(program)) == program
    buffers = dict(zip(("in0", "in1", "out"), (array.reshape(-1) for array in operands), strict=True))
    buffers |= dict(zip(TABLES, tables.arrays, strict=True))
    sizes = dict(zip(program.sizes, (*tables.lengths, *tables.sizes.values()), strict=True))
    interpret(program, sizes, {}, buffers, threads=3)
    close(held, exact(subscripts, a, b), exact(subscripts, np.abs(a), np.abs(b)), "f32")


def test_threads_change_no_bit() -> None:
    a, b, _ = made("aceg,bdge->abcd", dict.fromkeys("abcdeg", 14), "f32")
    found = []
    for threads in (1, 2):
        with limited(threads):
            found.append(contract("aceg,bdge->abcd", a, b, np.empty((14,) * 4, np.float32)))
    assert found[0].tobytes() == found[1].tobytes()


def test_nothing_to_sum_or_to_write() -> None:
    c = np.full((3, 4), 5, np.float32)
    contract("ij,jk->ik", np.ones((3, 0), np.float32), np.ones((0, 4), np.float32), c, first="none")
    assert np.all(c == 5)
    contract("ij,jk->ik", np.ones((3, 0), np.float32), np.ones((0, 4), np.float32), c)
    assert not c.any()
    empty = np.zeros((0, 4), np.float32)
    contract("ij,jk->ik", np.ones((0, 3), np.float32), np.ones((3, 4), np.float32), empty)


def test_c_is_not_read_when_it_is_replaced() -> None:
    for subscripts, sizes in CONTRACTIONS[:6]:
        a, b, c = made(subscripts, sizes, "f32")
        assert np.isfinite(contract(subscripts, a, b, np.full_like(c, np.nan))).all()


@pytest.mark.skipif(not GUARD_PAGES, reason="needs guard pages")
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
@pytest.mark.parametrize("across", [False, True])
def test_nothing_outside_of_operands_is_touched(
    dtype: str, at_end: bool, across: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if across:  # panels end nowhere but at the last lane
        monkeypatch.setattr(panels, "_cuts", lambda *_, **__: False)
    for subscripts, sizes in CONTRACTIONS:
        arrays = made(subscripts, {label: min(size, 31) for label, size in sizes.items()}, dtype)
        held = []
        for array in map(np.asarray, arrays):
            memory = GuardedMemory(array.nbytes)
            held.append((memory, memory.place(array, array.strides, at_end=at_end)))
        a, b, c = (view for _, view in held)
        before = [memory.outside(view) for memory, view in held]
        expected, scale = exact(subscripts, a, b), exact(subscripts, np.abs(a), np.abs(b))
        contract(subscripts, a, b, c)
        close(c, expected, scale, dtype)
        for (memory, view), outside in zip(held, before, strict=True):
            assert np.array_equal(memory.outside(view), outside)


def test_tables() -> None:
    kernel = kernel_of("f32")
    mr, nr = kernel.blocking.mr, kernel.blocking.nr
    rows, columns = [StridedAxis(2, 100, None, 9)], [StridedAxis(3, None, 1, 1)]
    tables = tables_for(kernel, OrderedAxes((), rows, columns, [StridedAxis(2, 5, 7, None)]))
    named = dict(zip(TABLES, tables.arrays, strict=True))
    assert [tables.sizes[name] for name in ("batch", "m", "n", "k")] == [1, mr, nr, 2]
    assert named["am"].tolist() == [0] + [100] * (mr - 1)
    assert [named[name].tolist() for name in ("m_count", "n_count", "am_step", "cn_step")] == [
        [2],
        [3],
        [100],
        [1],
    ]
    assert named["ak_run"].tolist() == [2, 1]


class TestPanels:
    """How lanes are cut, for tiles of 14 x 32 with vectors of 16."""

    def panels(self, axes: list[StridedAxis], depth: int = 100, others: int = 1000) -> ScatterPanels:
        return cut_panels(axes, "b", PanelShape(32, 16, depth, 16, 32), others)

    def test_a_dimension_that_no_panel_divides_ends_one(self) -> None:
        found = self.panels([StridedAxis(2, None, 1000, 90), StridedAxis(80, None, 1, 1)])
        assert found.counts.tolist() == [32, 32, 16] * 2
        assert found.steps.tolist() == found.c_steps.tolist() == [1] * 6

    def test_neighbours_that_follow_each_other_are_one(self) -> None:
        assert self.panels([StridedAxis(2, None, 84, 84), StridedAxis(84, None, 1, 1)]).counts.tolist() == [
            32
        ] * 5 + [8]

    def test_a_short_dimension_does_not_end_panels_of_deep_products(self) -> None:
        axes = [StridedAxis(40, None, 1000, 90), StridedAxis(9, None, 1, 1)]
        found = self.panels(axes)
        assert found.counts.tolist() == [32] * 11 + [8]
        assert NO_STEP in found.steps
        assert self.panels(axes, depth=1).counts.tolist() == [9] * 40

    def test_the_operand_s_adjacent_dimension_follows(self) -> None:
        """Panels that follow each other are one element apart."""
        found = self.panels(
            [
                StridedAxis(20, None, 1, 700),
                StridedAxis(3, None, 5000, 90),
                StridedAxis(32, None, 40, 1),
            ]
        )
        assert found.shifts.tolist() == [*range(20, 1, -1), 0] * 3

    def test_nothing(self) -> None:
        assert len(self.panels([StridedAxis(0, None, 1, 1)]).counts) == 0


@each_contraction
def test_new_results_in_the_order_of_their_operands(subscripts: str, sizes: dict[str, int]) -> None:
    """Every place of every element is written, whatever order of memory suits the product."""
    a, b, _ = made(subscripts, sizes, "f32")
    inputs, out = subscripts.split("->")
    first, second = inputs.split(",")
    order = dict.fromkeys(first + second)
    shape = tuple(sizes[label] for label in out)
    by_tables = TablePair((first, second, out), tuple(sizes[label] for label in order), shape)
    close(
        np.asarray(by_tables.compute(a, b)),
        exact(subscripts, a, b),
        exact(subscripts, np.abs(a), np.abs(b)),
        "f32",
    )
