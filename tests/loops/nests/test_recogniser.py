"""The recogniser on nests written as text: what is found means what they do, look-alikes are refused."""

from __future__ import annotations

from itertools import permutations

import pytest
from nest_layouts import DENSE, SHARED, UNKNOWN, Row, of
from nest_oracle import Memory, evaluated, run_nest, run_product
from nest_text import Layout, nest_of
from recognised_nests import RECOGNISED
from refused_nests import REFUSED
from shares import looped, share

from tilewright.loops.nests.nest import (
    CountedLoop,
    Disjoint,
    Injective,
    MatrixProduct,
    Refusal,
    TriangularPart,
    Within,
)
from tilewright.loops.nests.polynomial import Symbol
from tilewright.loops.nests.recognise import contraction, recognise
from tilewright.loops.nests.text import product_text
from tilewright.spec.dtype import F32, I8, I32, DType

#: What the names in the nests stand for; leading dimensions are beyond every row.
NUMBERS = {"m": 3, "n": 4, "l": 5, "q": 2, "alpha": 3, "beta": -2, "ldA": 130, "ldB": 150, "ldC": 170}
#: The same with one size that leaves nothing to do.
EMPTY = [{**NUMBERS, name: size} for name in ("m", "n", "l") for size in (0, -1)]

#: The nest that others are variations of.
PLAIN = """
for i in range(m):
    for j in range(n):
        for k in range(l):
            C[i, j] += A[i, k] * B[k, j]
"""
GEMM = "C[m,n] += A[m,k]*B[k,n], m=m, n=n, k=l"
TEXTS = {row.name: row for row in (*RECOGNISED, *REFUSED)}


def found_in(text: str, layouts: dict[str, Layout]) -> tuple[CountedLoop, MatrixProduct | Refusal]:
    nest = nest_of(text, layouts)
    return nest, recognise(nest)


def same_results(nest: CountedLoop, product: MatrixProduct, numbers: dict[str, int]) -> None:
    """Runs both on the same memory, where the conditions of the product hold."""
    values = {Symbol(name): number for name, number in numbers.items()}
    for condition in product.conditions:
        if isinstance(condition, Within):
            low, value, high = (
                evaluated(p, values) for p in (condition.low, condition.value, condition.high)
            )
            if not low <= value < high:
                return
    original, replaced = Memory(), Memory()
    run_nest(nest, numbers, original)
    run_product(product, numbers, replaced)
    stored = {place: value for place, value in original.items() if Memory()[place] != value}
    changed = {place: value for place, value in replaced.items() if Memory()[place] != value}
    assert changed == stored


@pytest.mark.parametrize("row", RECOGNISED, ids=lambda row: row.name)
def test_recognised(row: Row) -> None:
    nest, product = found_in(row.text, row.layouts)
    assert isinstance(product, MatrixProduct), product
    assert product_text(product) == row.expected
    for numbers in [NUMBERS, *share(EMPTY, 3, RECOGNISED.index(row))]:
        same_results(nest, product, numbers)


@looped("row", REFUSED)
def test_refused(row: Row) -> None:
    _, refusal = found_in(row.text, row.layouts)
    assert isinstance(refusal, Refusal), refusal
    assert row.expected in refusal.reason


@pytest.mark.parametrize("order", list(permutations("ijk")), ids="".join)
def test_every_order_of_loops(order: tuple[str, ...]) -> None:
    sizes = dict(zip("ijk", "mnl", strict=True))
    loops = "".join(f"{' ' * depth}for {i} in range({sizes[i]}):\n" for depth, i in enumerate(order))
    nest, product = found_in(f"{loops}   C[i, j] += A[i, k] * B[k, j]", {})
    assert isinstance(product, MatrixProduct)
    assert product_text(product) == GEMM
    same_results(nest, product, NUMBERS)


@pytest.mark.parametrize(
    ("layouts", "conditions"),
    [
        ({}, (Injective(),)),
        (DENSE, ()),
        ({**DENSE, "A": UNKNOWN["A"]}, ()),
        ({**DENSE, "C": UNKNOWN["C"]}, (Injective(),)),
        (UNKNOWN, (Disjoint("a"), Disjoint("b"), Injective())),
        (SHARED, (Disjoint("a"), Disjoint("b"), Injective())),
    ],
)
def test_conditions(layouts: dict[str, Layout], conditions: tuple[object, ...]) -> None:
    _, product = found_in(PLAIN, layouts)
    assert isinstance(product, MatrixProduct)
    assert product.conditions == conditions


@pytest.mark.parametrize(
    ("strides", "injective"),
    [((64, 1), True), ((63, 1), False), ((1, 48), True), ((1, 47), False), ((-64, 1), True), ((1, 1), False)],
)
def test_strides_of_numbers_prove_that_elements_differ(strides: tuple[int, int], injective: bool) -> None:
    text = PLAIN.replace("(m)", "(48)").replace("(n)", "(64)")
    _, product = found_in(text, {"C": Layout(strides=strides)})
    assert isinstance(product, MatrixProduct)
    assert (Injective() not in product.conditions) == injective


def test_fused_sizes_may_not_be_negative() -> None:
    _, product = found_in(TEXTS["stored in every iteration of two loops"].text, {})
    assert isinstance(product, MatrixProduct)
    (within,) = (condition for condition in product.conditions if isinstance(condition, Within))
    assert str(within.value) == "q"


@pytest.mark.parametrize(
    ("types", "allowed"), [((F32, F32, F32), False), ((I32, I32, I32), True), ((I8, I8, I8), True)]
)
def test_floats_need_permission(types: tuple[DType, DType, DType], allowed: bool) -> None:
    nest = nest_of(PLAIN, of(*types), fast=False)
    found = recognise(nest)
    assert isinstance(found, MatrixProduct) == allowed
    if isinstance(found, Refusal):
        assert found.reason == "sums f32 into C without permission to reassociate"


@pytest.mark.parametrize(
    ("row", "acc"),
    [
        ("memory", "f32"),
        ("widened", "f32"),
        ("halves in single precision", "f16"),
        ("sums in double precision", "f64"),
        ("bytes", "i32"),
        ("bytes into bytes", "i8"),
        ("products of bytes in 16 bits", "i32"),
    ],
)
def test_type_of_sums(row: str, acc: str) -> None:
    _, _, text, layouts = TEXTS[row]
    _, product = found_in(text, layouts)
    assert isinstance(product, MatrixProduct)
    assert str(product.acc) == acc


@pytest.mark.parametrize("row", ["outer product", "elementwise product", "rows of dot products"])
def test_contractions_that_are_no_matrix_products(row: str) -> None:
    _, _, text, layouts = TEXTS[row]
    nest = nest_of(text, layouts)
    found = contraction(nest)
    assert isinstance(found, MatrixProduct)
    same_results(nest, found, NUMBERS)


def test_triangles() -> None:
    _, lower = found_in(TEXTS["SYRK"].text, {})
    _, upper = found_in(TEXTS["SYRK, upper"].text, {})
    assert isinstance(lower, MatrixProduct)
    assert isinstance(upper, MatrixProduct)
    assert (lower.triangle, upper.triangle) == (TriangularPart.LOWER, TriangularPart.UPPER)


BACKWARDS = """
for i in range(m - 1, -1, -1):
    for j in range(n - 1, -1, -1):
        for k in range(l - 1, -1, -1):
            C[i, j] += A[i, k] * B[k, j]
"""


def test_loops_that_walk_memory_backwards_are_turned() -> None:
    nest, product = found_in(BACKWARDS, DENSE)
    assert isinstance(product, MatrixProduct)
    _, forwards = found_in(PLAIN, DENSE)
    assert isinstance(forwards, MatrixProduct)
    assert [(one.a, one.b, one.c) for one in product.dimensions] == [
        (one.a, one.b, one.c) for one in forwards.dimensions
    ]
    for numbers in (NUMBERS, *EMPTY):
        same_results(nest, product, numbers)
