"""Primitives of JAX that are one custom call: prepared while JAX lowers them, run by the handler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.extend.core import Primitive

from tilewright.calls.foreign import as_array
from tilewright.errors import InvalidOperand, JaxShapeUnknown
from tilewright.jax.handler import TARGET, handler
from tilewright.jax.library import jax, jnp, mlir
from tilewright.jax.problem import ArrayType, Problem


def find_problem(function: str, operands: Sequence[Any], results: Sequence[Any], options: Any) -> Problem:
    """The problem of a primitive on arrays, or on what JAX has for them while it traces."""
    types = [tuple(ArrayType.of(one) for one in side) for side in (operands, results)]
    return Problem(function, types[0], types[1], tuple(options))


def call_primitive(
    name: str, results: Callable[..., Any], problem: Callable[..., tuple[str, Any]], *, several: bool
) -> Any:
    """A primitive that the handler computes.

    Parameters
    ----------
    results : the shapes and types of the results, of those of the operands and the parameters.
    problem : the function of the problem and its options, of the parameters.
    several : whether the primitive has a list of results.
    """
    primitive = Primitive(name)
    primitive.multiple_results = several

    def lower(context: Any, *operands: Any, **parameters: Any) -> Any:
        function, options = problem(**parameters)
        found = find_problem(function, context.avals_in, context.avals_out, options)
        handler().find(found)
        key = np.array(found.key, np.int64)
        return jax.ffi.ffi_lowering(TARGET)(context, *operands, key=key, problem=found.text)

    def bind(*operands: Any, names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
        return primitive.bind(*operands, **dict(zip(names, values, strict=True)))

    compiled = jax.jit(bind, static_argnames=("names", "values"))

    def run(*operands: Any, **parameters: Any) -> Any:
        return compiled(*operands, names=tuple(parameters), values=tuple(parameters.values()))

    primitive.def_impl(run)
    primitive.def_abstract_eval(results)
    mlir.register_lowering(primitive, lower, platform="cpu")
    return primitive


def operand(value: Any, name: str) -> Any:
    """An operand as an array of JAX; Python's numbers keep the weak types that JAX gives them.

    Raises
    ------
    MaskedOperand, ForeignArray, NotAnArray, InvalidOperand
    """
    if isinstance(value, jax.Array) or hasattr(type(value), "__jax_array__"):
        return jnp.asarray(value)
    try:
        return jnp.asarray(value if type(value) in (bool, int, float, complex) else as_array(value, name))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidOperand(name=name, reason=str(error)) from error


def checked_shape(value: Any, name: str) -> tuple[int, ...]:
    """The shape of an operand in integers.

    Raises
    ------
    JaxShapeUnknown : for sizes that are symbols, as `jax.export` has them.
    """
    shape = tuple(value.shape)
    if not all(type(size) is int for size in shape):
        raise JaxShapeUnknown(name=name, shape=shape)
    return shape


def _varying(value: Any) -> frozenset[Any]:
    """Axes of a mesh along which a value inside of `jax.shard_map` differs."""
    kind = jax.typeof(value) if isinstance(value, jax.Array) else value
    manual = getattr(kind, "mat", kind)  # up to JAX 0.9 the type itself has the axes
    found: frozenset[Any] = getattr(manual, "varying", getattr(manual, "vma", frozenset()))
    return found


def bind(primitive: Any, *operands: Any, **parameters: Any) -> Any:
    """Binds a primitive to operands that vary along the same axes of a mesh."""
    axes = frozenset[Any]().union(*map(_varying, operands))
    if axes:
        operands = tuple(
            jax.lax.pcast(one, tuple(axes - _varying(one)), to="varying") if axes - _varying(one) else one
            for one in operands
        )
    return primitive.bind(*operands, **parameters)


def result_type(shape: tuple[int, ...], dtype: Any, operand: Any) -> Any:
    """The type of a result, which varies along the axes of a mesh that operands do."""
    if _varying(operand):
        return operand.update(shape=shape, dtype=np.dtype(dtype), weak_type=False)
    return jax.core.ShapedArray(shape, dtype)
