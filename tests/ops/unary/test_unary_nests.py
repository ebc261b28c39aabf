"""Unary nests: golden tile IR, and the interpreter's result equal to `reference` for every machine."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from shares import looped
from tiers import crossed

from tilewright.errors import InvalidSize
from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Program, Traffic, UnaryMap
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine, targets
from tilewright.ops.unary.nest import Blocks, build_unary, choose_blocks, sizes_of
from tilewright.ops.unary.problem import Unary
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import Layout

Array: TypeAlias = NDArray[Any]

GOLDEN = Path(__file__).parent / "golden"
NESTS: dict[str, tuple[Unary, str]] = {
    "identity_cr": (Unary("identity", b="row"), "znver5"),
    "exp_cr": (Unary("exp", dtype="f64", b="row"), "apple-m1"),
    "relu_cc": (Unary("relu"), "neoverse-v2"),
    "zero_cr_static": (Unary("zero", 64, 48, b="row"), "haswell"),
    "identity_cr_static": (Unary("identity", 4, 4, b="row"), "neoverse-v2"),
    "square_cr_static_large": (Unary("square", 4096, 4096, "f64", b="row"), "cascadelake"),
    "identity_ss_static": (Unary("identity", 100, 7, "i8", a="strided", b="strided"), "x86-64-v2"),
}


def nest(problem: Unary, target: str, name: str = "kernel") -> Program:
    return build_unary(problem, choose_blocks(problem, find_machine(target)), name)


@pytest.mark.parametrize("name", NESTS)
def test_golden(name: str, *, update_golden: bool) -> None:
    problem, target = NESTS[name]
    program = nest(problem, target, name)
    text, path = print_program(program), GOLDEN / f"{name}.txt"
    if update_golden:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "changed; rewrite with pytest --update-golden"
    assert len(text.splitlines()) <= 40
    assert parse_program(text) == verify(program)


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(NESTS)


# --- the oracle -----------------------------------------------------------------------------------------

#: Blocks so small that matrices of a few elements take every path.
SMALL = Blocks(near=30, block=16, wide=24, stream_from=200, line_bytes=64)
SIZES = [(1, 1), (5, 3), (3, 11), (9, 4), (13, 15), (8, 24), (17, 33), (40, 5), (2, 100)]


def spread(rows: int, columns: int, leading: int, *, by_rows: bool) -> Array:
    """Where each element of a matrix stands in its buffer."""
    i, j = np.arange(rows)[:, None], np.arange(columns)
    return i * leading + j if by_rows else j * leading + i


def check(problem: Unary, blocks: Blocks, shape: tuple[int, int], gap: int, lead: int) -> None:
    """One problem in the interpreter; buffers end with their last elements, nothing else of B changes."""
    kind, (m, n) = problem.dtype.numpy, shape
    random = np.random.default_rng(m * 100 + n)
    values = random.integers(-9, 10, (m, n)) / (4 if problem.op.computes else 1)
    a = values.astype(kind)
    places = [spread(m, n, m + gap, by_rows=False)]
    by_rows = problem.b is Layout.ROW
    places.append(spread(m, n, (n if by_rows else m) + gap, by_rows=by_rows))
    flats = [np.full(lead + place.max() + 1, 99, kind)[lead:] for place in places]
    flats[0][places[0]] = a
    before = [flat.copy() for flat in flats]
    program = verify(build_unary(problem, blocks, "kernel"))
    given = {"ld_a": m + gap, "ld_b": (n if by_rows else m) + gap, "m": m, "n": n}
    assert set(program.sizes) <= set(given)
    interpret(program, {name: given[name] for name in program.sizes}, {}, {"a": flats[0], "b": flats[1]})
    found = flats[1][places[1]]
    np.testing.assert_array_equal(found, problem.reference(a).astype(kind))
    np.testing.assert_array_equal(flats[0], before[0], "A changed")
    before[1][places[1]] = found
    np.testing.assert_array_equal(flats[1], before[1], "bytes of B between its elements changed")


@pytest.mark.parametrize(("op", "b", "dtype"), crossed(UnaryOp, product(["col", "row"], ["f32", "f64"]), 2))
def test_every_path(op: UnaryOp, b: str, dtype: str) -> None:
    for number, (shape, hardcoded) in enumerate(product(SIZES, (False, True))):
        m, n = shape if hardcoded else (None, None)
        for blocks in (SMALL, replace(SMALL, stream_from=10**6)):
            check(Unary(op, m, n, dtype, b=b), blocks, shape, gap=number % 3 * 2, lead=number % 5)


@looped("target", targets())
def test_every_machine(target: str) -> None:
    for op, b, (dtype, shape) in product(
        ("identity", "gelu"), ("col", "row"), (("f32", (33, 70)), ("f64", (130, 65)))
    ):
        problem = Unary(op, dtype=dtype, b=b)
        check(problem, choose_blocks(problem, find_machine(target)), shape, gap=1, lead=3)


@pytest.mark.parametrize("dtype", ["i8", "i16", "i64", "c64", "c128"])
def test_moves_of_every_size(dtype: str) -> None:
    for op, b, shape in product(("zero", "identity"), ("col", "row"), SIZES):
        check(Unary(op, dtype=dtype, b=b), SMALL, shape, gap=1, lead=2)


@looped("steps_a", [(1, 40), (30, 1), (2, 90), (-1, 40), (40, -1)])
@looped("steps_b", [(1, 40), (30, 1), (3, 80), (-2, -90)])
def test_any_strides(steps_a: tuple[int, int], steps_b: tuple[int, int]) -> None:
    problem = Unary("identity", dtype="i32", a="strided", b="strided")
    program = verify(build_unary(problem, SMALL, "kernel"))
    m, n = 27, 25
    a = np.random.default_rng(0).integers(0, 1000, (m, n)).astype(np.int32)
    flats, origins, places = [], [], []
    for steps in (steps_a, steps_b):
        place = np.arange(m)[:, None] * steps[0] + np.arange(n) * steps[1]
        origins.append(-int(place.min()))
        places.append(place - place.min())
        flats.append(np.full(int(places[-1].max()) + 1, -1, np.int32))
    flats[0][places[0]] = a
    sizes = dict(zip(program.sizes, (*steps_a, *steps_b, m, n), strict=True))
    interpret(program, sizes, {}, {"a": (flats[0], origins[0]), "b": (flats[1], origins[1])})
    np.testing.assert_array_equal(flats[1][places[1]], a)
    assert (np.delete(flats[1], places[1].ravel()) == -1).all()


# --- the cut --------------------------------------------------------------------------------------------


def statements(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip().startswith("unary")]


def test_known_sizes_decide_the_way() -> None:
    """What compares two constants is decided when the nest is built; leading dimensions are not known."""
    for side, expected in ((64, ["near"]), (512, ["far", "far"]), (8192, ["stream", "far"])):
        text = print_program(nest(Unary("identity", side, side, b="row"), "znver5"))
        assert [line.split()[-1] for line in statements(text)] == expected
        assert text.split().count("if") == len(expected) - 1


def test_long_functions_run_over_each_block_again() -> None:
    """exp is not repeated for every vector of a square; it never goes past the caches."""
    program = nest(Unary("exp", 3000, 3000, b="row"), "znver5")
    found = statements(print_program(program))
    assert len(found) == 4
    for first, second in (found[:2], found[2:]):
        assert first.startswith("unary identity b[i * ld_b + j; ld_b, 1] = a[i + j * ld_a; 1, ld_a]")
        assert second.startswith("unary exp b[i * ld_b + j; ld_b, 1] = b[i * ld_b + j; ld_b, 1]")
    assert "stream" not in print_program(program)


def test_zero_has_no_source_and_no_transpose() -> None:
    text = print_program(nest(Unary("zero", b="row"), "znver5"))
    assert "a[" not in text
    assert "rows n columns m" in text


def test_parameters_follow_the_seed() -> None:
    assert sizes_of(Unary("relu", 3, 4)) == ("ld_a", "ld_b")
    assert sizes_of(Unary("relu", 3)) == sizes_of(Unary("relu")) == ("ld_a", "ld_b", "m", "n")
    strided = Unary("identity", 3, 4, a="strided", b="strided")
    assert sizes_of(strided) == ("rs_a", "cs_a", "rs_b", "cs_b")


@looped("target", targets())
@pytest.mark.parametrize("dtype", ["i8", "f32", "c128"])
def test_blocks_are_whole_lines(target: str, dtype: str) -> None:
    machine = find_machine(target)
    problem = Unary("identity", dtype=dtype)
    blocks = choose_blocks(problem, machine)
    assert blocks.block * problem.dtype.size % machine.l1.line == 0
    assert 2 * blocks.near * problem.dtype.size <= machine.l1.size
    last = machine.l3 or machine.l2
    assert blocks.stream_from * problem.dtype.size == last.size // 2


def test_blocks_check_themselves() -> None:
    with pytest.raises(InvalidSize, match="unary block is 0"):
        replace(SMALL, block=0)


def test_statements_say_their_traffic() -> None:
    found = {
        part.traffic
        for part in walk(nest(Unary("identity", b="row"), "znver5").body)
        if isinstance(part, UnaryMap)
    }
    assert found == set(Traffic)


def walk(body: tuple[Any, ...]) -> list[Any]:
    found: list[Any] = []
    for part in body:
        found.append(part)
        for name in ("body", "then", "otherwise"):
            found += walk(getattr(part, name, ()))
    return found
