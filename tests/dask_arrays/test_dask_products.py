"""Products, einsums and layers of arrays in chunks, against those of whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("dask.array")
pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.bag as db

import tilewright as tw
import tilewright.dask as twd
from tilewright import errors
from tilewright.dask.chains import DEPTH, ChainStep, add_pieces

TYPES = ("f4", "f8", "f2", ml_dtypes.bfloat16, "i1", "u4", "i8", "c8", "c16", "?")


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """Tasks run one after the other in this thread."""
    with dask.config.set(scheduler="sync"):
        yield


def numbers(*shape: int, chunks: Any, dtype: Any = "f4", seed: int = 0) -> Any:
    """An array of small integers, whose products are exact in every type, in chunks."""
    drawn = np.random.default_rng(seed).integers(-2, 3, shape)
    return da.from_array(drawn.astype(dtype), chunks=chunks)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_products_of_every_type(dtype: Any) -> None:
    a, b = numbers(2, 5, 9, chunks=(1, 2, 4), dtype=dtype), numbers(9, 7, chunks=(5, 3), dtype=dtype, seed=1)
    found, expected = twd.matmul(a, b), tw.matmul(a.compute(), b.compute())
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    computed = found.compute()
    assert computed.dtype == expected.dtype
    assert np.array_equal(computed, expected)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((9,), (9, 4)),
        ((5, 9), (9,)),
        ((9,), (9,)),
        ((3, 1, 5, 9), (2, 9, 4)),
        ((0, 9), (9, 4)),
        ((5, 0), (0, 4)),
        ((2, 5, 9), (2, 9, 1)),
    ],
    ids=str,
)
def test_shapes_of_products(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = numbers(*a, chunks=2), numbers(*b, chunks=3, seed=1)
    assert np.array_equal(twd.matmul(left, right).compute(), left.compute() @ right.compute())


def test_empty_chunks_add_nothing() -> None:
    left = numbers(4, 8, chunks=((4,), (3, 0, 5)))
    right = numbers(8, 3, chunks=(4, 2), seed=1)
    assert 0 in left.chunks[1]
    assert np.array_equal(twd.matmul(left, right).compute(), left.compute() @ right.compute())


@pytest.mark.parametrize("bias", [(6,), (1, 6), (5, 1), ()], ids=str)
@pytest.mark.parametrize("activation", [None, "relu"])
def test_bias_and_activation(bias: tuple[int, ...], activation: Any) -> None:
    a, b = numbers(5, 9, chunks=2), numbers(9, 6, chunks=4, seed=1)
    extra = np.random.default_rng(2).integers(-9, 9, bias).astype(np.float32)
    expected = tw.matmul(a.compute(), b.compute(), bias=extra, activation=activation)
    plan = replace(twd.plan(a, b, workers=4), chunks=(2, 3, 2), replicas=2, depth=2)
    for given in (extra, da.from_array(extra, chunks=2 if bias else -1)):
        for own in (None, plan):
            found = twd.matmul(a, b, bias=given, activation=activation, plan=own)
            assert np.array_equal(found.compute(), expected)


def test_the_type_of_results() -> None:
    a = numbers(4, 300, chunks=(2, 7), dtype="i1")
    assert np.array_equal(
        twd.matmul(a, a.T, dtype="i4").compute(), tw.matmul(a.compute(), a.compute().T, dtype="i4")
    )
    half = da.full((2, 4096), 0.1, chunks=(1, 256), dtype="f2")
    exact = 4096 * float(np.float16(0.1)) ** 2
    assert twd.matmul(half, half.T).compute()[0, 0] == np.float16(exact)  # summed in float32, rounded once


def test_steps_leave_their_input_alone() -> None:
    """A step may run again: on the same sum it gives the same bits."""
    rng = np.random.default_rng(0)
    pieces = [rng.standard_normal((4, 4)).astype(np.float32) for _ in range(4)]
    step, before = ChainStep("", 2, "float32", "float32"), np.ones((4, 4), np.float32)
    kept = before.copy()
    before.flags.writeable = False
    first, again = (add_pieces(step, (4, 4), before, *pieces) for _ in range(2))
    assert np.array_equal(before, kept)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, before)


def test_depth_does_not_change_bits_and_names_are_deterministic() -> None:
    rng = np.random.default_rng(0)
    a = da.from_array(rng.standard_normal((12, 40)).astype(np.float32), chunks=5)
    plan = replace(twd.plan(a, a.T, workers=1), chunks=(5, 5, 5), replicas=1, depth=1)
    one, four = (twd.matmul(a, a.T, plan=replace(plan, depth=depth)) for depth in (1, 4))
    assert np.array_equal(one.compute(), four.compute())
    assert one.name == twd.matmul(a, a.T, plan=plan).name != four.name
    assert one.name.startswith("tilewright-matmul-")


def test_no_task_holds_more_than_its_pieces() -> None:
    """Optimised or not: a task has one sum and `depth` pieces of each operand, whatever the length of k."""
    a, b = numbers(4, 640, chunks=(2, 10)), numbers(640, 4, chunks=(10, 2))
    product = twd.matmul(a, b)
    (optimised,) = dask.optimize(product)
    for graph in (product.dask, optimised.dask):
        own = [task for key, task in dict(graph).items() if "tilewright" in str(key)]
        assert len(own) >= 4 * 64 // DEPTH
        assert max(len(task.dependencies) for task in own) <= 1 + 2 * DEPTH


SUBSCRIPTS: dict[str, tuple[tuple[int, ...], ...]] = {
    "ij,jk->ik": ((7, 9), (9, 5)),
    "ij,kj->ki": ((7, 9), (6, 9)),
    "ij,jk,kl->il": ((7, 9), (9, 5), (5, 6)),
    "bij,bjk->bik": ((3, 4, 5), (3, 5, 6)),
    "...ij,...jk": ((3, 1, 4, 5), (2, 5, 3)),
    "ii->i": ((8, 8),),
    "ii": ((8, 8),),
    "ij->": ((4, 9),),
    "ij->ji": ((4, 9),),
    "i,j->ij": ((4,), (5,)),
    "ij,ij->": ((4, 9), (4, 9)),
    "ij,j": ((4, 9), (1,)),
    "iij,jk->ik": ((4, 4, 5), (5, 3)),
}


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_einsum(subscripts: str) -> None:
    shapes = SUBSCRIPTS[subscripts]
    operands = [numbers(*shape, chunks=2 + at, seed=at) for at, shape in enumerate(shapes)]
    found = twd.einsum(subscripts, *operands)
    expected = np.einsum(subscripts, *(one.compute() for one in operands))
    assert found.shape == expected.shape
    assert np.array_equal(found.compute(), expected)


def test_einsum_of_lists_and_orders() -> None:
    a, b, c = numbers(4, 5, chunks=2), numbers(5, 6, chunks=3), numbers(6, 2, chunks=4)
    expected = a.compute() @ b.compute() @ c.compute()
    assert np.array_equal(twd.einsum(a, [0, 1], b, [1, 2], c, [2, 3], [0, 3]).compute(), expected)
    for optimize in (False, "greedy", [(1, 2), (0, 1)]):
        assert np.array_equal(twd.einsum("ij,jk,kl", a, b, c, optimize=optimize).compute(), expected)


@pytest.mark.parametrize("axes", [0, 1, 2, ([1, 2], [1, 0]), (2, 0)], ids=str)
def test_tensordot(axes: Any) -> None:
    a = numbers(3, 4, 5, chunks=2)
    b = numbers(
        *((5, 4, 6) if axes not in (0, 1, 2) else (5, 3) if axes == 1 else (4, 5, 2)), chunks=3, seed=1
    )
    expected = np.tensordot(a.compute(), b.compute(), axes)
    assert np.array_equal(twd.tensordot(a, b, axes).compute(), expected)


def test_linear_by_chunks_and_by_a_packed_weight() -> None:
    rng = np.random.default_rng(0)
    x = da.from_array(rng.standard_normal((3, 10, 16)).astype(np.float32), chunks=(1, 4, 5))
    weight, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((6, 16), (6,)))
    expected = tw.linear(x.compute(), weight, bias, "gelu")
    for given in (weight, da.from_array(weight, chunks=4), tw.pack(weight.T)):
        found = twd.linear(x, given, bias, "gelu")
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.compute(), expected, atol=1e-5)


def graph() -> tw.Graph:
    """A model of rows."""
    weight = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
    g = tw.Graph()
    g.output(g.gelu(g.linear(g.input("x", shape=("n", 6)), weight)))
    return g


def lengths(items: list[Any]) -> Any:
    """Inputs of sentences."""
    return np.array([[len(one)] * 6 for one in items], np.float32)


def test_graphs_are_mapped() -> None:
    model = graph()
    x = np.random.default_rng(1).standard_normal((11, 6)).astype(np.float32)
    expected = model.compile()(x)
    rows = da.concatenate(
        [da.from_array(x[:4], chunks=(4, 2)), da.zeros((0, 6), dtype="f4"), da.from_array(x[4:])]
    )
    np.testing.assert_allclose(twd.embed(model, rows).compute(), expected, rtol=1e-5)
    bag = twd.embed(model.compile(), db.from_sequence(list(x), npartitions=3))
    np.testing.assert_allclose(np.stack(bag.compute()), expected, rtol=1e-5)
    sentences = ["one", "of", "some", "sentences"]
    of_texts = model.compile()(lengths(sentences))
    np.testing.assert_allclose(
        twd.embed(model, da.from_array(np.array(sentences), 3), encode=lengths), of_texts, rtol=1e-5
    )
    found = twd.embed(model, db.from_sequence(sentences, npartitions=2), encode=lengths).compute()
    np.testing.assert_allclose(np.stack(found), of_texts, rtol=1e-5)


# --- errors, each before anything is computed -----------------------------------------------------


def refused(*_: Any) -> Any:
    """A chunk that nobody may ask for."""
    raise AssertionError("computed")


def lazy(*shape: int, dtype: Any = "f4") -> Any:
    """An array whose chunks cannot be computed."""
    return da.zeros(shape, chunks=2, dtype=dtype).map_blocks(
        refused, dtype=dtype, meta=np.empty((0,) * len(shape), dtype)
    )


def unknown() -> Any:
    """An array of unknown chunks."""
    return da.from_array(np.ones((4, 4), np.float32), chunks=2)[da.from_array(np.ones(4, bool), chunks=2)]


def masked() -> Any:
    return da.ma.masked_greater(da.ones((4, 4), chunks=2), 3)


def sparse_like() -> Any:
    class Other(np.matrix):
        """Chunks of another kind."""

    return da.ones((4, 4), chunks=2).map_blocks(refused, meta=Other(np.empty((0, 0))), dtype="f8")


WRONG: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "sizes": (lambda: twd.matmul(lazy(3, 4), lazy(5, 6)), errors.ShapeMismatch),
    "batches": (lambda: twd.matmul(lazy(2, 3, 4), lazy(3, 4, 5)), errors.BatchMismatch),
    "scalars": (lambda: twd.matmul(lazy(), lazy(3)), errors.ScalarOperand),
    "unknown chunks": (lambda: twd.matmul(unknown(), lazy(4, 4)), errors.UnknownChunks),
    "masked chunks": (lambda: twd.matmul(masked(), lazy(4, 4)), errors.MaskedOperand),
    "other chunks": (lambda: twd.matmul(lazy(4, 4), sparse_like()), errors.ChunkType),
    "objects": (lambda: twd.matmul(lazy(4, 4, dtype=object), lazy(4, 4)), errors.UnsupportedDtype),
    "a bag": (lambda: twd.matmul(db.from_sequence([1, 2]), lazy(4, 4)), errors.NotDaskArray),
    "text": (lambda: twd.matmul("a", lazy(4, 4)), errors.NotAnArray),
    "a long bias": (lambda: twd.matmul(lazy(4, 4), lazy(4, 4), bias=np.ones(3, "f4")), errors.StepShape),
    "an activation": (lambda: twd.matmul(lazy(4, 4), lazy(4, 4), activation="no"), errors.InvalidChoice),  # type: ignore[arg-type]
    "another plan": (
        lambda: twd.matmul(lazy(4, 4), lazy(4, 4), plan=twd.plan((5, 4), (4, 4), workers=1)),
        errors.InvalidPlan,
    ),
    "no plan": (lambda: twd.matmul(lazy(4, 4), lazy(4, 4), plan="2-D"), errors.InvalidPlan),  # type: ignore[arg-type]
    "memory": (lambda: twd.plan((4096, 4096), (4096, 4096), workers=4, memory_limit=1000), errors.PlanMemory),
    "workers": (lambda: twd.plan((4, 4), (4, 4), workers=0), errors.InvalidSize),
    "speed": (lambda: twd.plan((4, 4), (4, 4), workers=1, gbits=0), errors.InvalidScalar),
    "no sizes": (lambda: twd.plan((4,), (4, 4), workers=1), errors.InvalidOperand),
    "labels": (lambda: twd.einsum("ij,jk", lazy(3, 4), lazy(5, 6)), errors.LabelSizes),
    "subscripts": (lambda: twd.einsum("i!", lazy(3)), errors.MalformedSubscripts),
    "operands": (lambda: twd.einsum("i,i", lazy(3)), errors.OperandCount),
    "axes": (lambda: twd.tensordot(lazy(3, 4), lazy(5, 6), 1), errors.ContractionAxes),
    "a weight": (lambda: twd.linear(lazy(3, 4), lazy(5)), errors.InvalidOperand),
    "inputs of a layer": (lambda: twd.linear(lazy(3, 4), lazy(5, 6)), errors.ShapeMismatch),
    "a plan beside tiles": (
        lambda: twd.linear(
            lazy(3, 4), tw.pack(np.ones((4, 5), "f4")), plan=twd.plan((3, 4), (4, 5), workers=1)
        ),
        errors.UnsupportedArgument,
    ),
    "an input of a graph": (lambda: twd.embed(graph(), lazy(3, 5)), errors.GraphInput),
    "no graph": (lambda: twd.embed("model", lazy(3, 5)), errors.EmbedOutput),  # type: ignore[arg-type]
    "a keyword": (lambda: twd.matmul(lazy(3, 4), lazy(4, 5), out=1), errors.UnexpectedKeyword),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_operands(case: str) -> None:
    call, error = WRONG[case]
    with pytest.raises(error) as found:
        call()
    assert isinstance(found.value, errors.TilewrightError)


def test_functions_of_arrays_name_this_package() -> None:
    """They never gather the chunks of a lazy array."""
    with pytest.raises(errors.ForeignArray, match=r"tilewright\.dask"):
        tw.matmul(lazy(4, 4), lazy(4, 4))
    with pytest.raises(errors.ForeignArray, match=r"tilewright\.dask"):
        tw.einsum("ij->i", lazy(4, 4))
    with pytest.raises(errors.ForeignArray, match=r"tilewright\.dask"):
        tw.attention(*[lazy(1, 1, 4, 4)] * 3)
