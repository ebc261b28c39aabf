"""Attention under JAX's transformations: bits of `tilewright.attention`, gradients, batches, refusals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from tiers import exhaustive

jax = pytest.importorskip("jax")
jax.config.update("jax_disable_most_optimizations", True)  # compiling is most of the time

import jax.numpy as jnp  # noqa: E402

import tilewright as tw  # noqa: E402
import tilewright.jax as twj  # noqa: E402
from tilewright import errors  # noqa: E402
from tilewright.jax.attention_reference import AttentionOptions, reference_attention  # noqa: E402
from tilewright.jax.handler import handler  # noqa: E402


def normal(*shape: int, seed: int = 0, dtype: str = "float32") -> Any:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def operands(
    layout: str = "bhsd", dtype: str = "float32", lead: tuple[int, ...] = (2,)
) -> tuple[Any, Any, Any]:
    """Queries of four heads, keys and values of two."""
    shapes = [(4, 5, 8), (2, 7, 8), (2, 7, 6)]
    if layout == "bshd":
        shapes = [(rows, heads, size) for heads, rows, size in shapes]
    q, k, v = (normal(*lead, *shape, seed=seed, dtype=dtype) for seed, shape in enumerate(shapes))
    return q, k, v


BOOLS = np.random.default_rng(5).random((2, 1, 5, 7)) > 0.4
BOOLS[0, 0, 1] = False  # a query that sees no key
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True, "layout": "bshd"},
    "upper left": {"causal": "upper_left", "scale": 0.3},
    "window": {"window": (3, 2), "softcap": 2.0},
    "bools": {"mask": BOOLS, "layout": "bshd"},
    "floats": {"mask": np.asarray(normal(4, 5, 7, seed=7))},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_same_bits_as_without_jax(case: dict[str, Any]) -> None:
    q, k, v = operands(case.get("layout", "bhsd"))
    expected = tw.attention(*map(np.asarray, (q, k, v)), **case)
    found = jax.jit(partial(twj.attention, **case))(q, k, v)
    np.testing.assert_array_equal(found, expected)


def reference(case: dict[str, Any]) -> Any:
    """Attention by its definition, with the options of a case."""
    mask = case.get("mask")
    options = AttentionOptions(**{name: value for name, value in case.items() if name != "mask"})
    if mask is not None:
        mask = jnp.asarray(mask).reshape((1,) * (4 - mask.ndim) + mask.shape)
    return lambda q, k, v: reference_attention(options, q, k, v, mask)[0]


@pytest.mark.parametrize(
    "name", ["window", "floats", *(pytest.param(one, marks=exhaustive) for one in CASES)]
)
def test_reference_is_the_same_function(name: str) -> None:
    case = CASES[name]
    given = operands(case.get("layout", "bhsd"))
    expected = tw.attention(*map(np.asarray, given), **case)
    np.testing.assert_allclose(jax.jit(reference(case))(*given), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["bools", *(pytest.param(name, marks=exhaustive) for name in CASES if name != "bools")]
)
def test_gradients_and_gradients_of_gradients(name: str) -> None:
    case = CASES[name]
    given = operands(case.get("layout", "bhsd"))
    direction = tuple(jnp.roll(one, 1, -1) for one in given)

    def derivatives(function: Any) -> Any:
        gradients = jax.grad(lambda *arrays: jnp.sin(function(*arrays)).sum(), argnums=(0, 1, 2))

        def second(*arrays: Any) -> Any:
            along = gradients(*arrays)
            return sum(jnp.vdot(one, other) for one, other in zip(along, direction, strict=True))

        return jax.jit(lambda *arrays: (gradients(*arrays), jax.grad(second, (0, 1, 2))(*arrays)))(*given)

    for found, expected in zip(
        derivatives(partial(twj.attention, **case)), derivatives(reference(case)), strict=True
    ):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_gradients_are_kernels() -> None:
    q, k, v = operands()

    def text(*arrays: Any, **options: Any) -> str:
        def loss(*given: Any) -> Any:
            return twj.attention(*given, **options).sum()

        return str(jax.jit(jax.grad(loss, argnums=(0, 1, 2))).lower(*arrays).as_text())

    assert "attention_backward" in text(q, k, v)
    assert "attention_backward" in text(q, k, v, mask=jnp.zeros((5, 7)))
    assert "attention_backward" not in text(*operands(dtype="float16"))


@pytest.mark.parametrize("dtype", ["bfloat16", pytest.param("float16", marks=exhaustive)])
def test_gradients_of_16_bits(dtype: str) -> None:
    given = operands(dtype=dtype)

    def gradients(function: Any) -> Any:
        def loss(*arrays: Any) -> Any:
            return (function(*arrays).astype(jnp.float32) ** 2).sum()

        return jax.jit(jax.grad(loss, argnums=(0, 1, 2)))(*given)

    for found, expected in zip(gradients(twj.attention), gradients(reference({})), strict=True):
        assert found.dtype == dtype
        values = [np.asarray(one, np.float32) for one in (found, expected)]
        np.testing.assert_allclose(values[0], values[1], rtol=0.05, atol=0.06)


def test_gradient_of_a_mask() -> None:
    q, k, v = operands()
    mask = normal(5, 7, seed=9)

    def gradient(function: Any) -> Any:
        return jax.jit(jax.grad(lambda mask: jnp.sin(function(mask)).sum()))(mask)

    def by_definition(mask: Any) -> Any:
        return reference_attention(AttentionOptions(), q, k, v, mask[None, None])[0]

    found = gradient(lambda mask: twj.attention(q, k, v, mask=mask))
    np.testing.assert_allclose(found, gradient(by_definition), rtol=1e-4, atol=1e-5)


AXES = [(0, 0, 0, None), (1, None, None, None), (None, 2, None, None), (0, 0, None, 0), (None, None, None, 0)]


@pytest.mark.parametrize("batch", [1, pytest.param(2, marks=exhaustive)])
@pytest.mark.parametrize(
    "axes", [AXES[0], AXES[2], *(pytest.param(axes, marks=exhaustive) for axes in (AXES[1], *AXES[3:]))]
)
def test_vmap_with_gradients(axes: tuple[int | None, ...], batch: int) -> None:
    members = 3
    mask = jnp.asarray(BOOLS[:batch])
    shared = [*operands(lead=(batch,)), mask]
    mapped = [
        one if axis is None else jnp.stack([jnp.roll(one, number, -1) for number in range(members)], axis)
        for one, axis in zip(shared, axes, strict=True)
    ]

    def function(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return twj.attention(q, k, v, mask=mask)

    def both(*given: Any) -> Any:
        gradients = jax.grad(lambda q, k, v: jnp.sin(function(q, k, v, given[3])).sum(), argnums=(0, 1, 2))
        return function(*given), *gradients(*given[:3])

    def each(*given: Any) -> Any:
        members_of = [
            [
                one if axis is None else jnp.take(one, number, axis)
                for one, axis in zip(given, axes, strict=True)
            ]
            for number in range(members)
        ]
        return [jnp.stack(values) for values in zip(*(both(*one) for one in members_of), strict=True)]

    found = jax.jit(jax.vmap(both, in_axes=axes))(*mapped)
    for one, expected in zip(found, jax.jit(each)(*mapped), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)
    text = jax.jit(jax.vmap(function, in_axes=axes)).lower(*mapped).as_text()
    assert text.count("stablehlo.custom_call @tilewright") == 1


def test_gradient_of_a_shared_operand_is_the_sum() -> None:
    q, k, v = operands()
    several = jnp.stack([q, 2 * q])

    def loss(k: Any) -> Any:
        return jnp.sin(jax.vmap(lambda q: twj.attention(q, k, v))(several)).sum()

    def loss_of(q: Any) -> Any:
        return jax.grad(lambda k: jnp.sin(twj.attention(q, k, v)).sum())(k)

    expected = jax.jit(lambda: loss_of(q) + loss_of(2 * q))()
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(k), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("lead", [(), (2, 3)])
def test_other_numbers_of_axes(lead: tuple[int, ...]) -> None:
    q, k, v = operands(lead=lead)
    expected = tw.attention(*map(np.asarray, (q, k, v)), causal=True)
    np.testing.assert_array_equal(twj.attention(q, k, v, causal=True), expected)


def test_one_head() -> None:
    q, k = normal(3, 4), normal(5, 4, seed=1)
    np.testing.assert_array_equal(
        twj.attention(q, k, k), tw.attention(np.asarray(q), np.asarray(k), np.asarray(k))
    )


def test_no_queries_and_no_keys() -> None:
    q, k, v = operands()
    assert twj.attention(q[:, :, :0], k, v).shape == (2, 4, 0, 6)
    nothing = jax.jit(jax.grad(lambda q: twj.attention(q, k[:, :, :0], v[:, :, :0]).sum()))(q)
    assert not np.asarray(nothing).any()


def test_nothing_goes_through_python() -> None:
    q, k, v = operands()
    jax.jit(jax.grad(lambda q: twj.attention(q, k, v, causal=True).sum()))(q)
    reasons = [
        program.reason for program in handler().programs.values() if "attention" in program.problem.function
    ]
    assert reasons
    assert set(reasons) == {""}


@pytest.mark.parametrize("jitted", [True, pytest.param(False, marks=exhaustive)])
@pytest.mark.parametrize(
    ("error", "options", "shapes"),
    [
        (errors.KeysMismatch, {}, ((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 5, 4))),
        (errors.HeadSizeMismatch, {}, ((1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 3, 5))),
        (errors.HeadsMismatch, {}, ((1, 3, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4))),
        (errors.AttentionAxes, {}, ((1, 2, 3, 4), (3, 4), (3, 4))),
        (errors.MaskShape, {"mask": np.ones((4, 3), bool)}, ((1, 2, 3, 4),) * 3),
        (errors.InvalidWindow, {"window": (-9, 2)}, ((1, 2, 3, 4),) * 3),
        (errors.InvalidScalar, {"scale": "much"}, ((1, 2, 3, 4),) * 3),
        (errors.InvalidChoice, {"layout": "sbhd"}, ((1, 2, 3, 4),) * 3),
    ],
)
def test_refused_while_jax_traces(error: type[Exception], options: Any, shapes: Any, jitted: bool) -> None:
    function = partial(twj.attention, **options)
    with pytest.raises(error):
        (jax.jit(function) if jitted else function)(*(normal(*shape) for shape in shapes))


def test_integers_are_refused() -> None:
    q, k, v = operands()
    with pytest.raises(errors.AttentionDtype):
        twj.attention(q, k.astype(jnp.int8), v.astype(jnp.int8))


def test_traced_options_are_refused() -> None:
    q, k, v = operands()
    with pytest.raises(errors.JaxTracedOption, match="static_argnames"):
        jax.jit(lambda scale: twj.attention(q, k, v, scale=scale))(0.5)
