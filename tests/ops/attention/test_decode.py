"""Attention of few queries: its kernels against float64, on every row of this host."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from attention_calls import FEATURES, Made, Sizes, allowed, check, make, parameters
from shares import share
from support import GUARD_PAGES, Array, GuardedMemory
from tiers import crossed

import tilewright as tw
from tilewright.ir.interpret import interpret
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.machine.host import host_machine
from tilewright.ops.attention.cut import SPLIT, choose_decode
from tilewright.ops.attention.decode import build_decode
from tilewright.ops.attention.problem import Attention, Schedule
from tilewright.threads.pool import limited

each_feature = pytest.mark.parametrize("features", FEATURES, ids=lambda given: "-".join(given) or "plain")
DTYPES = ("f32", "f64", "bf16", "f16")
each_dtype = pytest.mark.parametrize("dtype", DTYPES)
DECODED: dict[str, Any] = {"schedule": "decode"}


@cache
def kernel_of(problem: Attention, target: str = "host") -> Any:
    return tw.compile(problem, target)


def ran(made: Made, target: str = "host") -> Made:
    made.call.run(kernel_of(made.problem, target))
    return made


#: Each feature with one type in `make test`; tests of one kernel take these.
each_kernel = pytest.mark.parametrize(("dtype", "features"), crossed(DTYPES, FEATURES, 4), ids=str)


@each_kernel
def test_every_feature(features: dict[str, Any], dtype: str) -> None:
    check(ran(make(Attention(20, 24, dtype, **features, **DECODED), Sizes(2, 2, 3, 2, 70))))


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v2"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_other_rows(target: str, dtype: str) -> None:
    """In `make test` each feature with one row and type."""
    if tw.machine().arch != "x86_64":
        pytest.skip("rows of x86-64")
    for features in share(FEATURES, 4, (target == "x86-64-v3") + 2 * (dtype == "bf16")):
        made = make(Attention(20, 24, dtype, **features, **DECODED), Sizes(1, 1, 3, 2, 37))
        check(ran(made, target))


@pytest.mark.parametrize(
    ("head", "dtype", "value"),
    crossed([1, 3, 16, 33, 64, 65, 128, 200], [("f32", None), ("bf16", None), ("f32", 7), ("bf16", 7)], 4),
)
def test_heads_of_any_size(head: int, value: int | None, dtype: str) -> None:
    check(ran(make(Attention(head, value or head, dtype, **DECODED), Sizes(1, 2, 3, 1, 33))))


@pytest.mark.parametrize("group", [1, 2, 3, 4, 7, 8, 65])
def test_any_number_of_rows(group: int) -> None:
    """Tiles of 4, 2 and 1 rows, and more rows than one pass over the keys takes."""
    for queries in (1, 2, 5, 70):
        for dtype in ("f32", "bf16"):
            problem = Attention(8, 6, dtype, bounded=True, sinks=True, **DECODED)
            check(ran(make(problem, Sizes(1, 1, group, queries, 90))))


@pytest.mark.parametrize("keys", [0, 1, 15, 16, 17, 31, 33, SPLIT - 1, SPLIT, SPLIT + 1, 3 * SPLIT + 5])
def test_keys_around_blocks_and_runs(keys: int) -> None:
    some: tuple[dict[str, Any], ...] = ({}, {"bounded": True}, {"paged": True, "sinks": True})
    for features in some:
        check(ran(make(Attention(8, **features, **DECODED), Sizes(2, 1, 2, 2, keys))))


@pytest.mark.parametrize("ranges", [(-5, 1), (3, 9), (0, 0), (4000, 4060), (-7, 5000), (2040, 2050)])
def test_ranges_of_keys(ranges: tuple[int, int]) -> None:
    """Windows before, inside, across two runs and behind the keys; a row that sees nothing is zeros."""
    for dtype in ("f32", "bf16"):
        problem = Attention(8, dtype=dtype, bounded=True, **DECODED)
        check(ran(make(problem, Sizes(1, 1, 2, 3, 4050), ranges=ranges)))


@pytest.mark.parametrize("together", [1, 2])
@each_feature
def test_the_nest_means_the_same(features: dict[str, Any], together: int) -> None:
    """Interpreted with NumPy in runs of 32 keys, with three threads last task first, and read back."""
    problem = Attention(5, 6, "f32", **features, **DECODED)
    machine = host_machine()
    cut = replace(choose_decode(problem, machine), split=32)
    program = build_decode(problem, cut, machine, "few")
    assert parse_program(print_program(program)) == program
    made = make(problem, Sizes(2, 2, 3, 2, 77))
    sizes, scalars, buffers = parameters(replace(made, problem=problem.scheduled(Schedule.BLOCKS)))
    splits = cut.splits(77)
    partials = np.full(cut.partials(2, 6, 2, splits), np.nan, np.float32)
    sizes |= {"splits": splits, "heads_together": together}
    interpret(program, sizes, scalars, {**buffers, "partials": partials}, threads=3)
    check(made)


@each_kernel
def test_threads_and_company_change_no_bit(features: dict[str, Any], dtype: str) -> None:
    """Nor do other sequences, of which one is longer."""
    problem = Attention(20, 24, dtype, **features, **DECODED)
    found = []
    for threads in (1, 2):
        with limited(threads):
            found.append(ran(make(problem, Sizes(2, 2, 2, 2, 2 * SPLIT + 100))).call.out.copy())
    assert found[0].tobytes() == found[1].tobytes()
    alone = make(problem, Sizes(2, 2, 2, 2, 2 * SPLIT + 100)).call
    items = alone.items[1:].copy()
    alone._replace(items=items).run(kernel_of(problem))
    queries = int(items[0, 8])
    assert alone.out[1, :, :queries].tobytes() == found[0][1, :, :queries].tobytes()


@each_dtype
def test_nan_of_what_is_masked_out_does_not_leak(dtype: str) -> None:
    """In keys and values; a key that a query sees gives NaN to this query, and to no other."""
    made = make(Attention(20, 24, dtype, mask="u8", **DECODED), Sizes(1, 1, 1, 6, 60))
    clean = ran(made).call.out.copy()
    assert made.call.mask is not None
    key = int(np.argmax((made.call.mask[0, 0].sum(axis=0) > 1) & (made.call.mask[0, 0].sum(axis=0) < 6)))
    sees = made.call.mask[0, 0, :, key] != 0
    for name in ("k", "v"):
        for bad in (np.nan, np.inf, -np.inf):
            again = make(made.problem, made.sizes)
            (again.call.k if name == "k" else again.call.v)[0, 0, key] = bad
            found = ran(again).call.out[0, 0]
            assert 0 < sees.sum() < sees.size
            assert found[~sees].tobytes() == clean[0, 0, ~sees].tobytes()
            if np.isnan(bad):
                assert np.isnan(found[sees].astype(np.float64)).all()


@each_dtype
def test_nan_in_a_query_stays_in_its_row(dtype: str) -> None:
    problem, sizes = Attention(20, 24, dtype, **DECODED), Sizes(1, 1, 3, 2, 60)
    clean = ran(make(problem, sizes)).call.out.copy()
    again = make(problem, sizes)
    again.call.q[0, 1, 0, 3] = np.nan
    found = ran(again).call.out
    assert np.isnan(found[0, 1, 0].astype(np.float64)).all()
    found[0, 1, 0] = clean[0, 1, 0]
    assert found.tobytes() == clean.tobytes()


@pytest.mark.skipif(not GUARD_PAGES, reason="needs guard pages")
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_nothing_outside_of_operands_is_touched(dtype: str, at_end: bool) -> None:
    held: list[tuple[GuardedMemory, Array]] = []

    def place(array: Array) -> Array:
        memory = GuardedMemory(array.nbytes)
        view = memory.place(array, array.strides, at_end=at_end)
        held.append((memory, view))
        return view

    # Kernels of `test_every_feature`, and some of shorter and longer heads.
    number = DTYPES.index(dtype)
    turn = number + 2 * at_end
    known = [Attention(20, 24, dtype, **features, **DECODED) for features in share(FEATURES, 4, turn)]
    short = [Attention(9, 7, dtype, **features, **DECODED) for features in share(FEATURES[::2], 6, number)]
    long = [
        Attention(40, 38, dtype, **features, **DECODED) for features in share(FEATURES[::2], 6, number + 3)
    ]
    for problem, keys in product((*known, *short, *long), (37, 5)):
        held.clear()
        made = make(problem, Sizes(1, 1, 3, 2, keys), place=place)
        before = [memory.outside(view) for memory, view in held]
        check(ran(made))
        for (memory, view), bytes_before in zip(held, before, strict=True):
            assert np.array_equal(memory.outside(view), bytes_before)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_as_near_as_blocks(dtype: str) -> None:
    made = make(Attention(64, dtype=dtype, **DECODED), Sizes(1, 2, 4, 1, 3000))
    out, _, _ = made.expected()
    error = np.abs(ran(made).call.out.astype(np.float64) - out).max()
    assert error < allowed(made.problem) / 4
