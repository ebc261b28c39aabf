"""Products under JAX's transformations: values, derivatives, batches, types, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import exhaustive

jax = pytest.importorskip("jax")
jax.config.update("jax_disable_most_optimizations", True)  # compiling is most of the time

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import tilewright.jax as twj  # noqa: E402
from tilewright import errors  # noqa: E402
from tilewright.jax.handler import handler  # noqa: E402
from tilewright.jax.problem import ArrayType  # noqa: E402

FLOATS = ("float32", "bfloat16", "float16", "float8_e4m3fn")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
WIDE = ("float64", "int64", "uint64", "complex128")


def whole(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    """Small integers in an element type: sums of their products are exact."""
    values = np.random.default_rng(seed).integers(-2, 3, shape)
    return jnp.asarray(values % 2 if dtype == "bool" else values).astype(dtype)


def normal(*shape: int, seed: int = 0) -> Any:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), jnp.float32)


def reference(text: str, *operands: Any) -> Any:
    return np.einsum(text, *(np.asarray(one, np.complex128) for one in operands))


def assert_same(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(found, np.complex128), np.asarray(expected, np.complex128))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "complex64", "bool"])
def test_element_types(dtype: str) -> None:
    a, b = whole(9, 7, dtype=dtype), whole(7, 5, dtype=dtype, seed=1)
    assert_same(jax.jit(twj.matmul)(a, b), np.asarray(jnp.matmul(a, b)))
    reasons = {
        program.reason
        for program in handler().programs.values()
        if program.problem.operands[0] == ArrayType(dtype, (9, 7))
    }
    assert reasons == ({"a step of NumPy"} if dtype == "bool" else {""})


def test_types_of_64_bits() -> None:
    with jax.enable_x64(True):
        for dtype in WIDE:
            a, b = whole(9, 7, dtype=dtype), whole(7, 5, dtype=dtype, seed=1)
            assert_same(jax.jit(twj.matmul)(a, b), jnp.matmul(a, b))


def test_mixed_types_are_promoted_as_jax_does() -> None:
    a, b = whole(3, 4, dtype="int8"), whole(4, 5, dtype="bfloat16")
    assert_same(twj.matmul(a, b), jnp.matmul(a, b))


def test_dtype_widens() -> None:
    a = jnp.full((2, 300), 100, jnp.int8)
    found = twj.matmul(a, a.T, dtype="int32")
    assert found.dtype == jnp.int32
    assert int(found[0, 0]) == 3_000_000


def assert_matmul(
    lead: tuple[tuple[int, ...], tuple[int, ...]], sizes: tuple[int, ...], matrices: str
) -> None:
    m, k, n = sizes
    a = whole(*lead[0], m, k) if matrices != "b" else whole(k)
    b = whole(*lead[1], k, n, seed=1) if matrices != "a" else whole(k, seed=1)
    assert_same(jax.jit(twj.matmul)(a, b), np.matmul(np.asarray(a), np.asarray(b)))


@pytest.mark.parametrize("matrices", ["both", "a", "b"])
@pytest.mark.parametrize("sizes", [(3, 1, 4), (2, 0, 5)])
def test_shapes_of_matmul(sizes: tuple[int, int, int], matrices: str) -> None:
    assert_matmul(((3, 1), (2,)), sizes, matrices)


@exhaustive
@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([((), ()), ((3,), ()), ((), (2,)), ((3, 1), (2,)), ((1,), (4,))]),
    st.tuples(*[st.integers(0, 40)] * 3),
    st.sampled_from(["both", "a", "b"]),
)
def test_random_shapes_of_matmul(
    lead: tuple[tuple[int, ...], tuple[int, ...]], sizes: tuple[int, int, int], matrices: str
) -> None:
    assert_matmul(lead, sizes, matrices)


EQUATIONS = {
    "ij,jk->ik": ((3, 4), (4, 5)),
    "ji,kj->ki": ((4, 3), (5, 4)),
    "bij,bkj->bik": ((2, 3, 4), (2, 5, 4)),
    "ibj,jkb->kbi": ((3, 2, 4), (4, 5, 2)),
    "...ij,...jk->...ik": ((2, 1, 3, 4), (6, 4, 5)),
    "ij,j": ((3, 4), (4,)),
    "i,i": ((4,), (4,)),
    "i,j->ij": ((3,), (4,)),
    "ij,ij->ij": ((3, 4), (3, 4)),
    "ii->i": ((3, 3),),
    "iij,jk->ki": ((3, 3, 4), (4, 5)),
    "ij->": ((3, 4),),
    "ijz,jk->ik": ((3, 4, 6), (4, 5)),
    "ij,jk->ik ": ((3, 1), (4, 5)),
    "ij,jk,kl,lm->im": ((3, 4), (4, 5), (5, 2), (2, 6)),
    "ab,bc,ca->": ((3, 4), (4, 5), (5, 3)),
    "ij,jk->ijk": ((3, 4), (4, 5)),
}


@pytest.mark.parametrize(("text", "shapes"), EQUATIONS.items())
def test_einsum(text: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    operands = [whole(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    found = jax.jit(lambda *arrays: twj.einsum(text, *arrays))(*operands)
    expected = reference(text, *operands)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(found), expected.real)


def test_einsum_with_lists_of_labels_and_a_path() -> None:
    a, b, c = whole(3, 4), whole(4, 5), whole(5, 2)
    assert_same(twj.einsum(a, [0, 1], b, [1, 2], [0, 2]), twj.matmul(a, b))
    for optimize in (False, "greedy", [(1, 2), (0, 1)], [(0, 1, 2)]):
        found = twj.einsum("ij,jk,kl->il", a, b, c, optimize=optimize)
        np.testing.assert_array_equal(found, reference("ij,jk,kl->il", a, b, c).real)


@pytest.mark.parametrize(
    "text",
    [
        "bij,bkj->ikb",
        "ijz,jk->ik",
        *(pytest.param(one, marks=exhaustive) for one in ("ij,j->i", "iij,jk->ki")),
    ],
)
def test_derivatives(text: str) -> None:
    operands = tuple(normal(*shape, seed=seed) for seed, shape in enumerate(_shapes(text)))

    def derivatives(product: Any) -> Any:
        def function(*arrays: Any) -> Any:
            return jnp.sin(product(text, *arrays))

        gradients = jax.grad(lambda *arrays: function(*arrays).sum(), argnums=(0, 1))

        def every(*arrays: Any) -> Any:
            reverse, curvature = jax.jvp(gradients, arrays, arrays)  # forward over reverse
            _, forward = jax.jvp(function, arrays, arrays)
            again = jax.grad(lambda *those: jnp.cos(gradients(*those)[0]).sum(), argnums=(0, 1))(*arrays)
            return [*reverse, *curvature, forward, *again]

        return jax.jit(every)(*operands)

    for found, expected in zip(derivatives(twj.einsum), derivatives(jnp.einsum), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@exhaustive
@pytest.mark.parametrize("text", ["ij,jk->ik", "bij,bkj->ikb"])
def test_derivatives_are_those_of_differences(text: str) -> None:
    operands = tuple(normal(*shape, seed=seed) for seed, shape in enumerate(_shapes(text)))
    check_grads(lambda *arrays: twj.einsum(text, *arrays), operands, 2, ["fwd", "rev"], atol=0.05, rtol=0.05)


def _shapes(text: str) -> list[tuple[int, ...]]:
    sizes = {"i": 3, "j": 4, "k": 5, "b": 2, "z": 6}
    return [tuple(sizes[label] for label in term) for term in text.partition("->")[0].split(",")]


def test_derivatives_of_complex_products_are_jaxs() -> None:
    a, b = (normal(3, 3, seed=seed) + 1j * normal(3, 3, seed=seed + 2) for seed in (0, 1))

    def gradient(product: Any) -> Any:
        return jax.grad(lambda *arrays: jnp.abs(product(*arrays)).sum(), argnums=(0, 1))(a, b)

    for found, expected in zip(gradient(twj.matmul), gradient(jnp.matmul), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_gradients_of_16_bits_have_the_type_of_the_operand() -> None:
    a, b = whole(3, 4, dtype="bfloat16"), whole(4, 5, dtype="bfloat16")
    to_a, to_b = jax.grad(lambda a, b: twj.matmul(a, b, dtype="float32").sum(), argnums=(0, 1))(a, b)
    assert to_a.dtype == to_b.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(to_a, np.float32)[0], np.asarray(b, np.float32).sum(1))


@pytest.mark.parametrize(
    ("axes", "shapes"),
    [
        ((0, 0), ((6, 3, 4), (6, 4, 5))),
        ((2, None), ((3, 4, 6), (4, 5))),
        ((None, 1), ((3, 4), (4, 6, 5))),
        ((1, 2), ((3, 6, 4), (4, 5, 6))),
    ],
)
def test_vmap_is_one_call(axes: tuple[int | None, int | None], shapes: Any) -> None:
    a, b = normal(*shapes[0]), normal(*shapes[1], seed=1)
    mapped = jax.vmap(twj.matmul, in_axes=axes)
    expected = jax.vmap(jnp.matmul, in_axes=axes)(a, b)
    np.testing.assert_allclose(jax.jit(mapped)(a, b), expected, rtol=1e-5, atol=1e-5)
    text = jax.jit(mapped).lower(a, b).as_text()
    assert text.count("stablehlo.custom_call @tilewright") == 1
    assert "while" not in text
    assert "transpose" not in text


def test_vmap_of_gradients_under_jit() -> None:
    a, b = normal(2, 7, 3, 4), normal(4, 5, 7, seed=1)

    def loss(product: Any) -> Any:
        def one(a: Any, b: Any) -> Any:
            return jnp.sin(product(a, b)).sum()

        inner = jax.vmap(jax.grad(one, argnums=(0, 1)), in_axes=(0, 2))
        return jax.jit(jax.vmap(inner, in_axes=(0, None)))(a, b)

    for found, expected in zip(loss(twj.matmul), loss(jnp.matmul), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@exhaustive
def test_jacobian_and_hessian() -> None:
    a, b = normal(3, 4), normal(4, 2, seed=1)
    for transform in (jax.jacfwd, jax.jacrev, jax.hessian):
        found, expected = (
            transform(lambda a, product=product: jnp.tanh(product(a, b)))(a)
            for product in (twj.matmul, jnp.matmul)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_control_flow_and_checkpoints() -> None:
    a = normal(4, 4)

    def power(product: Any) -> Any:
        step = jax.checkpoint(lambda value: jnp.tanh(product(value, a)))
        return jax.jit(jax.grad(lambda a: jax.lax.scan(lambda x, _: (step(x), None), a, length=3)[0].sum()))(
            a
        )

    np.testing.assert_allclose(power(twj.matmul), power(jnp.matmul), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("jitted", [True, pytest.param(False, marks=exhaustive)])
@pytest.mark.parametrize(
    ("error", "call"),
    [
        (errors.ShapeMismatch, lambda: (twj.matmul, whole(2, 3), whole(2, 3))),
        (errors.BatchMismatch, lambda: (twj.matmul, whole(2, 3, 3), whole(3, 3, 3))),
        (errors.ScalarOperand, lambda: (twj.matmul, whole(), whole(3))),
        (errors.UnsupportedDtype, lambda: (twj.matmul, whole(2, 2, dtype="int4"), whole(2, 2, dtype="int4"))),
        (errors.LabelSizes, lambda: (lambda a, b: twj.einsum("ij,jk", a, b), whole(2, 3), whole(2, 3))),
        (errors.OperandCount, lambda: (lambda a, b: twj.einsum("ij", a, b), whole(2, 3), whole(2, 3))),
        (errors.OutputLabelUnknown, lambda: (lambda a, b: twj.einsum("i,j->z", a, b), whole(2), whole(3))),
        (errors.UnsafeCast, lambda: (lambda a, b: twj.matmul(a, b, dtype="int32"), whole(2, 2), whole(2, 2))),
        (errors.EinsumCast, lambda: (lambda a: twj.einsum("ij->i", a, dtype="int8"), whole(2, 2))),
        (errors.InvalidPath, lambda: (lambda a: twj.einsum("i,i", a, a, optimize=[(0, 5)]), whole(3))),
    ],
)
def test_refused_while_jax_traces(error: type[Exception], call: Any, jitted: bool) -> None:
    function, *operands = call()
    with pytest.raises(error):
        (jax.jit(function) if jitted else function)(*operands)


def test_sizes_that_are_symbols_are_refused() -> None:
    shape = jax.export.symbolic_shape("n, 3")
    with pytest.raises(errors.JaxShapeUnknown, match="every size must be an integer"):
        jax.export.export(jax.jit(twj.matmul))(
            jax.ShapeDtypeStruct(shape, jnp.float32), jax.ShapeDtypeStruct((3, 2), jnp.float32)
        )
