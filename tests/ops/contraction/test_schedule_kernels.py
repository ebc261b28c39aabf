"""Kernels of contractions that nobody scheduled: results, run-time sizes, what `explain` and the text say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import filled
from tiers import crossed, draws

import tilewright as tw
from tilewright.ops.contraction.main import Main
from tilewright.typing import UnaryName

#: Subscripts and shapes, each of another primitive, layout or type of dimension.
PRODUCTS: dict[str, tuple[tuple[int, ...], ...]] = {
    "ij,jk->ik": ((33, 40), (40, 50)),
    "ji,kj->ki": ((40, 33), (50, 40)),
    "bij,bkj->bik": ((5, 17, 30), (5, 18, 30)),
    "aibj,ajbk->ik": ((3, 20, 4, 6), (3, 6, 4, 34)),
    "axby,xcyd->acbd": ((5, 6, 7, 8), (6, 9, 8, 10)),
    "ij,j->i": ((33, 40), (40,)),
    "i,i->": ((70,), (70,)),
    "i,j->ij": ((9,), (40,)),
    "ij,ij->ij": ((9, 40), (9, 40)),
    "ii,ij->j": ((20, 20), (20, 30)),
    "ij,kl->ik": ((4, 5), (6, 7)),
}


@pytest.mark.parametrize(("subscripts", "dtype"), crossed(PRODUCTS, ["f4", "f8", "i4", "c8"], 2))
def test_products(subscripts: str, dtype: str) -> None:
    arrays = [filled(shape, dtype, seed) for seed, shape in enumerate(PRODUCTS[subscripts])]
    expected = np.einsum(subscripts, *arrays)
    contraction = tw.einsum_contraction(subscripts, *arrays)
    out = np.full(expected.shape, 7, dtype)
    found = tw.compile(contraction)(*arrays, out)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("main", ["identity", "relu"])
@pytest.mark.parametrize("subscripts", ["abc->cba", "abc->bac", "abc->abc", "a->a", "abcd->dbca", "aab->ba"])
def test_one_operand(subscripts: str, main: UnaryName) -> None:
    sizes = {"a": 12, "b": 35, "c": 21, "d": 3}
    array = filled(tuple(sizes[label] for label in subscripts.partition("->")[0]), "f4")
    expected = np.einsum(subscripts, array)
    expected = np.maximum(expected, 0) if main == "relu" else expected
    out = np.full(expected.shape, np.nan, np.float32)
    found = tw.compile(tw.einsum_contraction(subscripts, array, main=main))(array, out)
    np.testing.assert_array_equal(found, expected)


@draws(25)
@given(st.data())
def test_random_subscripts(data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.sampled_from("cmnk"), min_size=1, max_size=5))
    names = "abcde"[: len(labels)]
    sizes = {name: data.draw(st.sampled_from([1, 2, 3, 5, 16, 17, 0])) for name in names}
    terms = []
    for role in ("cmk", "cnk", "cmn"):
        own = [name for name, kind in zip(names, labels, strict=True) if kind in role]
        terms.append("".join(data.draw(st.permutations(own))))
    subscripts = "{},{}->{}".format(*terms)
    shapes = [tuple(sizes[label] for label in term) for term in terms[:2]]
    arrays = [filled(shape, "f8", seed) for seed, shape in enumerate(shapes)]
    expected = np.asarray(np.einsum(subscripts, *arrays))
    out = np.full(expected.shape, np.nan)
    found = tw.compile(tw.einsum_contraction(subscripts, *arrays, last="relu"))(*arrays, out)
    np.testing.assert_allclose(found, np.maximum(expected, 0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i32"])
@pytest.mark.parametrize("sizes", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)])
def test_sizes_of_nothing(sizes: tuple[int, int, int], dtype: str) -> None:
    i, j, k = sizes
    kernel = tw.compile(tw.einsum_contraction("ij,jk->ik", (i, j), (j, k), dtype=dtype))
    kind = kernel.problem.dtype.numpy
    found = kernel(np.ones((i, j), kind), np.ones((j, k), kind), np.full((i, k), 7, kind))
    np.testing.assert_array_equal(found, np.zeros((i, k), kind))


@pytest.mark.parametrize("order", ["mnk", "knm", "nkm"])
def test_sizes_of_run_time(order: str) -> None:
    """They are given in the order of the dimensions, whatever the schedule is."""
    dimensions = {
        "m": tw.Dimension("m", in0=50, out=60),
        "n": tw.Dimension("n", in1=1, out=1),
        "k": tw.Dimension("k", in0=1, in1=60),
    }
    sizes = {"m": 20, "n": 37, "k": 29}
    contraction = tw.Contraction(dimensions[kind] for kind in order)
    a, b = filled((20, 50), "f4", 0), filled((29, 60), "f4", 1)
    out = np.full((20, 60), np.nan, np.float32)
    kernel = tw.compile(contraction)
    kernel(a, b, out, sizes=[sizes[kind] for kind in order])
    np.testing.assert_allclose(out[:, :37], a[:, :29] @ b[:, :37], rtol=1e-4, atol=1e-4)
    assert np.isnan(out[:, 37:]).all()


def test_contractions_share_code() -> None:
    """What tables hold is no part of a program: of other sizes and strides nothing is compiled."""
    kernels = [
        tw.compile(tw.einsum_contraction(subscripts, *shapes), "znver5")
        for subscripts, shapes in (
            ("ij,jk->ik", [(1600, 1600), (1600, 1600)]),
            ("axby,xcyd->acbd", [(24, 24, 32, 32), (24, 24, 32, 32)]),
            ("ij,jk->ki", [(1600, 1600), (1600, 1600)]),
        )
    ]
    first, second, turned = (kernel.name for kernel in kernels)
    assert first == second != turned
    assert kernels[0].object_code == kernels[1].object_code
    assert f"program {first}" in kernels[0].tile_ir
    assert first in kernels[0].llvm_ir


def test_what_is_scheduled_stays() -> None:
    given_ = tw.Contraction(
        [
            tw.Dimension("k", "sequential", 4, in0=32, in1=4),
            tw.Dimension("m", "primitive", 32, in0=1, out=1),
            tw.Dimension("n", "primitive", 4, in1=1, out=32),
        ],
        main="gemm",
    )
    assert tw.compile(given_).problem == given_
    found = tw.schedule(given_)
    assert [dimension for dimension in found.loops if dimension.type.value == "k"] == []


def test_other_machines() -> None:
    contraction = tw.einsum_contraction("ij,jk->ik", (1600, 1600), (1600, 1600))
    for target in ("haswell", "neoverse-v2", "pwr10"):
        assert tw.schedule(contraction, target).main in (Main.PACKED_GEMM, Main.GEMM)
        assert tw.compile(contraction, target).problem == tw.schedule(contraction, target)


def test_explain() -> None:
    found = tw.explain(tw.einsum_contraction("ij,jk->ik", (64, 64), (64, 64)), "znver5")
    assert found.strategy == "register tiles on operands in place"
    assert found.decisions[0].startswith("yes  gemm of m=64 n=64 k=64: ")
    assert found.decisions[1].startswith("no   ")
    assert any(line.startswith("m primitive 64") for line in found.notes)
    assert "a schedule was found: no dimension had one" in found.notes
    assert found.figures[0] == "524,288 flops, 49,152 bytes at least"
    given_ = tw.explain(tw.schedule(tw.einsum_contraction("abc->cba", (9, 9, 9))), "znver5")
    assert (given_.decisions, "as given" in given_.notes) == ((), True)
    assert given_.strategy == "loops over c: identity of blocks of two dimensions"
