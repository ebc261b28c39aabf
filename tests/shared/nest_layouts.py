"""Element types, layouts and places of the matrices in nests of loops, other than those of row-major f32."""

from __future__ import annotations

from typing import NamedTuple

from nest_text import Layout

from tilewright.spec.dtype import DType


class Row(NamedTuple):
    """A nest, and what the recogniser has to say of it: a product's text or a part of the reason."""

    name: str
    expected: str
    text: str
    layouts: dict[str, Layout] = {}  # noqa: RUF012 (nobody changes it)


COLUMNS = {name: Layout(strides=(1, f"ld{name}")) for name in "ABC"}
FLAT = {name: Layout(strides=(1,)) for name in "ABC"}
DENSE = {"A": Layout(strides=("l", 1)), "B": Layout(strides=("n", 1)), "C": Layout(strides=("n", 1))}
TENSORS = {
    "A": Layout(strides=(5000, 400, 20, 1)),
    "B": Layout(strides=(7000, 500, 25, 1)),
    "C": Layout(strides=(9000, 600, 30, 1)),
}
STACK = {name: Layout(strides=(5000, 50, 1)) for name in "ABC"}
SHARED = {
    name: Layout(strides=(100, 1), memory="W", offset=offset)
    for name, offset in zip("CAB", (0, 40, 7000), strict=True)
}
UNKNOWN = {name: Layout(strides=(f"ld{name}", 1), private=False) for name in "ABC"}


def of(c: DType, a: DType, b: DType) -> dict[str, Layout]:
    """Row-major matrices of some types."""
    kinds = zip("CAB", (c, a, b), strict=True)
    return {name: Layout(kind, (f"ld{name}", 1)) for name, kind in kinds}
