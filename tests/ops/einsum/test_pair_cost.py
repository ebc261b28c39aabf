"""Which way a pair of operands is multiplied, by its cost: one line for each kind of strides."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ops.einsum.labels import Axes, Roles, neighbours, run_of
from tilewright.ops.einsum.matmul_pair import MatmulPair
from tilewright.ops.einsum.pair import PairPlan, PairProblem, plan_pair
from tilewright.ops.einsum.strategies import PairCosts, PairMethod
from tilewright.ops.einsum.table_pair import TablePair
from tilewright.ops.sum_of_products.call import ProductsCall

#: A machine with two multiply-adds of 16 elements in a cycle, and 1 MiB of L2.
F32 = PairCosts(itemsize=4, rate=32.0, by_tables=True, l2_bytes=1 << 20)

#: Labels of both operands in the order of their memory, of the result ("*": its order is free), sizes; the
#: way, what is copied, and labels of loops.
WAYS: list[tuple[str, dict[str, int], PairMethod, str, str]] = [
    ("ij,jk->ik", {}, PairMethod.IN_PLACE, "", ""),
    ("ij,jk->ki", {}, PairMethod.IN_PLACE, "", ""),
    ("bij,bjk->bik", {}, PairMethod.IN_PLACE, "", ""),
    ("aij,jk->aik", {}, PairMethod.IN_PLACE, "", ""),
    # one factor repeats along what does not become one axis with the rest
    ("iaj,jk->aik", {}, PairMethod.LOOPS, "", "a"),
    ("ikj,kl->*ijl", {}, PairMethod.LOOPS, "", "i"),
    ("ji,akj->aki", {}, PairMethod.IN_PLACE, "", ""),
    ("kc,jcdi->*kjdi", {"k": 48, "j": 48}, PairMethod.LOOPS, "", "j"),
    # a batch that is adjacent is moved: each product would take an element of every line
    ("ijb,jkb->bik", {"b": 64}, PairMethod.IN_PLACE, "ab", ""),
    ("ijb,jkb->bik", {"i": 256, "j": 256, "k": 256, "b": 16}, PairMethod.IN_PLACE, "ab", ""),
    ("ij,jkb->bik", {"b": 64}, PairMethod.LOOPS, "b", "b"),
    # sums that are not one axis: small operands are copied, large ones are not
    ("ipq,qpk->ik", {"p": 8, "q": 8}, PairMethod.IN_PLACE, "a", ""),
    ("ipq,qpk->ik", {"i": 512, "k": 512, "p": 24, "q": 24}, PairMethod.TABLES, "", ""),
    ("aibj,jcid->abcd", dict.fromkeys("abcdij", 24), PairMethod.TABLES, "", ""),
]


@pytest.mark.parametrize(("subscripts", "sizes", "way", "moved", "loops"), WAYS)
def test_ways(subscripts: str, sizes: dict[str, int], way: PairMethod, moved: str, loops: str) -> None:
    text, _, output = subscripts.partition("->")
    labels = [*text.split(","), output.lstrip("*")]
    sizes = {**dict.fromkeys("".join(labels), 32), **sizes}
    a, b, c = (Axes.adjacent(own, sizes, F32.itemsize) for own in labels)
    price = F32.cheapest(Roles.of(*labels), a, b, None if "*" in output else c)
    assert (price.method, price.copied, price.loops) == (way, moved, loops)


def test_operands_without_elements() -> None:
    sizes = {"b": 0, "c": 0, "i": 3}
    a, b = Axes.adjacent("ibc", sizes, 4), Axes.adjacent("cb", sizes, 4)
    assert F32.cheapest(Roles.of("ibc", "cb", "i"), a, b).rows == "i"


def test_types_without_tables_are_copied() -> None:
    sizes = dict.fromkeys("abcdij", 24)
    a, b = Axes.adjacent("aibj", sizes, 4), Axes.adjacent("jcid", sizes, 4)
    price = F32._replace(by_tables=False).cheapest(Roles.of("aibj", "jcid", "abcd"), a, b)
    assert price.copied


def test_reading_apart_costs_more_beyond_the_cache() -> None:
    sizes = dict.fromkeys("bijk", 64)
    roles = Roles.of("ijb", "jkb", "bik")
    a, b = Axes.adjacent("ijb", sizes, 4), Axes.adjacent("jkb", sizes, 4)
    near, beyond = (
        next(iter(F32._replace(l2_bytes=size).candidates(roles, a, b))).cycles for size in (1 << 30, 1 << 10)
    )
    assert beyond > 2 * near


def test_axes_that_are_one() -> None:
    a = Axes.of("ijk", (2, 3, 4), (120, 40, 4))
    c = Axes.of("ij", (2, 3), (4, 8))
    assert run_of("ijk", a, None) == ("k", "ij")
    assert (run_of("ij", a, None), run_of("ij", a, c)) == (("ij", ""), ("i", "j"))
    assert neighbours("ijk", (a, None)) == ("ij", "k")


#: Products in loops, into results whose axes are not one where the operand's are.
LOOPS = ["iaj,jk->aik", "ikj,kl->ijl", "ji,akj->aki", "baij,jk->aibk", "ijk,jl->kil", "bipj,bjkq->bpqik"]


@pytest.mark.parametrize("subscripts", LOOPS)
def test_loops_compute_what_numpy_does(subscripts: str) -> None:
    sizes = dict(zip("abijklpq", (3, 2, 18, 5, 17, 19, 2, 3), strict=True))
    random = np.random.default_rng(0)
    terms = subscripts.partition("->")[0]
    given = [random.integers(-4, 5, [sizes[label] for label in term]) * 1.0 for term in terms.split(",")]
    expected = np.einsum(subscripts, *given)
    np.testing.assert_array_equal(tw.einsum(subscripts, *given), expected)
    for order in "CF":
        out = np.full(expected.shape, np.nan, order=order)  # type: ignore[call-overload]
        tw.einsum(subscripts, *given, out=out)
        np.testing.assert_array_equal(out, expected)


def planned(subscripts: str, sizes: dict[str, int], dtype: str = "f4") -> PairPlan:
    """What is decided for C-contiguous operands."""
    first, second, out = subscripts.replace("->", ",").split(",")
    a, b = (np.zeros([sizes[label] for label in own], np.dtype(dtype)) for own in (first, second))
    return plan_pair(PairProblem.of((first, second, out), a, b))


@pytest.mark.parametrize("subscripts", ["b,ab->a", "b,ba->a", "ab,b->a", "ba,b->a"])
def test_a_matrix_comes_before_a_long_vector(subscripts: str) -> None:
    """Its rows are then read several at a time: twice as fast from L3."""
    found = planned(subscripts, {"a": 1600, "b": 600})
    assert isinstance(found, MatmulPair)
    assert found.transposed is (subscripts[1] == ",")


def test_a_matrix_that_would_be_copied_is_multiplied_by_elements() -> None:
    """Two summed axes are not one where the matrix stands: copying it takes longer than reading it."""
    found = planned("cd,bcad->ba", {"a": 37, "b": 41, "c": 22, "d": 27})
    assert isinstance(found, ProductsCall)


@pytest.mark.parametrize(("b", "expected"), [(5, MatmulPair), (200, ProductsCall)])
def test_short_runs_of_elements_are_matrices(b: int, expected: type) -> None:
    """Rows of 17 times 5 adjacent elements, of which a kernel of elements walks on 5 in this result."""
    assert isinstance(planned("cdab,cd->adb", {"a": 17, "b": b, "c": 406, "d": 22}, "f8"), expected)


@pytest.mark.parametrize(
    ("subscripts", "turned"),
    [("ka,kn->an", True), ("ka,kn->na", True), ("kn,ka->an", False), ("kn,ka->na", False)],
)
def test_few_columns_become_rows(subscripts: str, turned: bool) -> None:
    """The longer side is that of vectors, where it is adjacent: 1.8 times as fast."""
    found = planned(subscripts, {"a": 4000, "k": 300, "n": 12})
    assert isinstance(found, MatmulPair)
    assert found.transposed is turned


def test_what_decides_is_in_the_problem() -> None:
    """Kernels of tables and of elements take one type, aligned; the latter write contiguous results."""
    labels = ("aib", "bja", "ij")
    a, b = np.zeros((200, 64, 200), np.float32), np.zeros((200, 64, 200), np.float32)  # beyond any L2
    assert isinstance(plan_pair(PairProblem.of(labels, a, b)), TablePair)
    wide, swapped = b.astype(np.float64), b.astype(b.dtype.newbyteorder())
    unaligned = np.zeros(b.nbytes + 1, np.int8)[1:].view(b.dtype).reshape(b.shape)
    for other in (wide, swapped, unaligned):
        assert isinstance(plan_pair(PairProblem.of(labels, a, other)), MatmulPair)
    assert isinstance(plan_pair(PairProblem.of(labels, a, b, dtype=wide.dtype)), MatmulPair)
    x = np.zeros((40, 50), np.float32)
    rows = ("ij", "ij", "i")
    for taken in (None, np.zeros(40, x.dtype)):
        assert isinstance(plan_pair(PairProblem.of(rows, x, x, taken)), ProductsCall)
    for out in (np.zeros(80, x.dtype)[::2], np.zeros(40)):
        assert isinstance(plan_pair(PairProblem.of(rows, x, x, out)), MatmulPair)
    apart = np.zeros(x.nbytes + 1, np.int8)[1:].view(x.dtype).reshape(x.shape)
    assert isinstance(plan_pair(PairProblem.of(rows, x, apart)), MatmulPair)
