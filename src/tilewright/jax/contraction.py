"""The primitive of products: two operands that share summed axes, bilinear, with batches as one more label.

Everything JAX does to a product is a product again: its derivatives, their transposes, and `vmap`, which adds
a label to the operands that have the axis, wherever it is. No operand is permuted for that: contractions read
axes in any order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.jax.library import ad, batching, jnp
from tilewright.jax.lowering import bind, call_primitive, result_type
from tilewright.ops.einsum.subscripts import LETTERS


class Labels(NamedTuple):
    """A label for each axis of two operands and of their product, each at most once in one of them."""

    a: str
    b: str
    out: str

    @property
    def summed(self) -> set[str]:
        """Labels that the product lacks."""
        return (set(self.a) | set(self.b)) - set(self.out)

    def unused(self) -> str:
        """A label that none of the three has."""
        return next(letter for letter in LETTERS if letter not in self.a + self.b + self.out)


def lettered(labels: Labels) -> Labels:
    """The same contraction with letters for whatever stands for labels."""
    letters: dict[str, str] = {}
    for label in "".join(labels):
        letters.setdefault(label, LETTERS[len(letters)])
    return Labels(*("".join(letters[label] for label in term) for term in labels))


def contract(a: Any, b: Any, labels: Labels, dtype: np.dtype[Any]) -> Any:
    """The product of two arrays in an element type, summed over the labels that the result lacks.

    Axes of one label have one size. What only one operand has is summed first; without a common summed label
    the product is one of elements, which XLA fuses with what is around it.
    """
    sizes = dict(zip(labels.a + labels.b, (*a.shape, *b.shape), strict=True))
    shape = tuple(sizes[label] for label in labels.out)
    if 0 in sizes.values():
        return jnp.zeros(shape, dtype)
    a, rest = _without(a, labels.a, labels.summed - set(labels.b), dtype)
    b, other = _without(b, labels.b, labels.summed - set(labels.a), dtype)
    labels = Labels(rest, other, labels.out)
    if not labels.summed:
        return _multiplied(a, b, labels, dtype)
    common = jnp.promote_types(a.dtype, b.dtype)
    return bind(contraction, a.astype(common), b.astype(common), labels=lettered(labels), dtype=dtype)


def _without(array: Any, labels: str, summed: set[str], dtype: np.dtype[Any]) -> tuple[Any, str]:
    """An operand summed over some of its labels, and the labels that are left."""
    if not summed:
        return array, labels
    axes = tuple(axis for axis, label in enumerate(labels) if label in summed)
    wide = summed_in(jnp.promote_types(array.dtype, dtype))
    return jnp.sum(array, axes, dtype=wide), "".join(label for label in labels if label not in summed)


def summed_in(dtype: Any) -> np.dtype[Any]:
    """The type in which sums of a type are computed: 16-bit floats in float32.

    >>> summed_in(np.dtype("float16")), summed_in(np.dtype("int8"))
    (dtype('float32'), dtype('int8'))
    """
    found = np.dtype(dtype)
    floats = jnp.issubdtype(found, jnp.floating) and found.itemsize < np.dtype(np.float32).itemsize
    return np.dtype(np.float32) if floats else found


def _multiplied(a: Any, b: Any, labels: Labels, dtype: np.dtype[Any]) -> Any:
    """The product of elements, with the axes of the result."""
    common = jnp.promote_types(jnp.promote_types(a.dtype, b.dtype), dtype)
    parts = []
    for array, term in ((a, labels.a), (b, labels.b)):
        order = [term.index(label) for label in labels.out if label in term]
        there = [axis for axis, label in enumerate(labels.out) if label not in term]
        parts.append(jnp.expand_dims(jnp.transpose(array.astype(common), order), there))
    if common == np.bool_:
        return parts[0] & parts[1]
    return (parts[0] * parts[1]).astype(dtype)


def _result(a: Any, b: Any, *, labels: Labels, dtype: np.dtype[Any]) -> Any:
    sizes = dict(zip(labels.a + labels.b, (*a.shape, *b.shape), strict=True))
    return result_type(tuple(sizes[label] for label in labels.out), dtype, a)


def _problem(*, labels: Labels, dtype: np.dtype[Any]) -> tuple[str, Any]:  # noqa: ARG001 - the result has it
    return "einsum", (("subscripts", f"{labels.a},{labels.b}->{labels.out}"),)


contraction = call_primitive("tilewright_contraction", _result, _problem, several=False)


def _cotangent_of_a(given: Any, a: Any, b: Any, *, labels: Labels, dtype: Any) -> Any:  # noqa: ARG001
    return contract(given, b, Labels(labels.out, labels.b, labels.a), a.aval.dtype)


def _cotangent_of_b(given: Any, a: Any, b: Any, *, labels: Labels, dtype: Any) -> Any:  # noqa: ARG001
    return contract(a, given, Labels(labels.a, labels.out, labels.b), b.aval.dtype)


def _batched(operands: Any, axes: Any, *, labels: Labels, dtype: np.dtype[Any]) -> Any:
    """One product with a label more, in front of the result's."""
    new = labels.unused()
    a, b = (
        term if axis is None else term[:axis] + new + term[axis:]
        for term, axis in zip(labels[:2], axes, strict=True)
    )
    return contract(operands[0], operands[1], Labels(a, b, new + labels.out), dtype), 0


ad.defbilinear(contraction, _cotangent_of_a, _cotangent_of_b)
batching.primitive_batchers[contraction] = _batched
