"""Operations other than products and attention: operands, exact result, how each system computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.records import dataclass
from tilewright.spec.dtype import parse_dtype

Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = tuple[Array, ...]
#: One call without arguments; `Way.read` makes an array of what the last one returned.
Call: TypeAlias = Callable[[], Any]


@dataclass(frozen=True)
class OperationShape:
    """One operation of some sizes: a row of the table.

    Attributes
    ----------
    operation : its name among those of all families.
    sizes : by name, in order.
    dtype : element type of the operands.
    option : what else decides what is computed, such as the subscripts of an einsum.
    """

    operation: str
    sizes: tuple[tuple[str, int], ...]
    dtype: str = "f32"
    option: str = ""

    def __getitem__(self, name: str) -> int:
        """A size."""
        return dict(self.sizes)[name]

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The element type of the arrays."""
        return np.dtype(parse_dtype(self.dtype).numpy)

    @property
    def item_bytes(self) -> int:
        """Bytes of an element."""
        return self.numpy_dtype.itemsize

    def normal(self, generator: np.random.Generator, *shape: int) -> Array:
        """Standard normal numbers."""
        drawn: Array = generator.standard_normal(shape, np.float32).astype(self.numpy_dtype, copy=False)
        return drawn


@dataclass(frozen=True)
class Way:
    """How one system computes an operation.

    Attributes
    ----------
    call : what is called, as a page names it.
    prepare : makes a call of operands, on so many threads. What is compiled is compiled by then.
    read : makes an array of a result.
    tolerance : the largest difference from the exact result where it is not the operation's: of weights that
        are rounded to few bits.
    """

    call: str
    prepare: Callable[[OperationShape, Arrays, int], Call]
    read: Callable[[Any], Array] = np.asarray
    tolerance: float | None = None


@dataclass(frozen=True)
class Operation:
    """One operation, of any sizes.

    Attributes
    ----------
    name : in requests and files.
    subject : the kind in titles.
    operands : random ones of a shape.
    exact : the result in float64, of operands in float64.
    ways : by system; tilewright's is among them.
    work : operations of one call; None where bytes or the call alone count.
    moved : bytes of operands and result, which any system reads or writes at least once; 0 where they do not
        matter.
    tolerance : the largest difference from `exact`, of the largest element of it.
    """

    name: str
    subject: str
    operands: Callable[[OperationShape, np.random.Generator], Arrays]
    exact: Callable[..., Array]
    ways: Mapping[str, Way]
    work: Callable[[OperationShape], int] | None
    moved: Callable[[OperationShape], int]
    tolerance: float = 1e-4


def wide(array: Array) -> Array:
    """An array in float64; complex128 of complex numbers, integers as they are."""
    if array.dtype.kind in "iub":
        return array
    found: Array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return found
