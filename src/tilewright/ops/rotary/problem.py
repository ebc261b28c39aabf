"""Rotary embeddings: pairs of elements of every row, rotated by angles of the row's position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tilewright.records import dataclass
from tilewright.spec.arguments import parse_choice
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import F32, FUNCTION_DTYPES, DType, parse_dtype
from tilewright.spec.problem import RunTimeSizes
from tilewright.spec.records import set_fields
from tilewright.spec.rotary import Pairing, rotary_meaning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.typing import ElementType, PairingName


@dataclass(frozen=True, init=False)
class Rotary(RunTimeSizes):
    """y = x with pairs of elements of each row rotated by angles whose cosines and sines are in tables.

    All sizes and strides are given at run time; so is a row of the tables for each row of x.

    Parameters
    ----------
    dtype : element type of x and y: f32, f64, bf16 or f16. Computed in f32, of f64 in f64, rounded once.
    tables : element type of cosines and sines; by default the type that is computed in.
    pairing : "halves" (GPT-NeoX, Llama): element j and the one half of the rotated ones further on;
        "interleaved" (GPT-J): elements 2j and 2j + 1.

    Raises
    ------
    InvalidChoice, UnsupportedDtype

    Examples
    --------
    >>> import numpy as np
    >>> problem = Rotary("f64", pairing="interleaved")
    >>> problem.reference(np.array([[1.0, 2.0]]), np.array([[0.0]]), np.array([[1.0]]))
    array([[-2.,  1.]])

    Source: Su et al., RoFormer, arXiv:2104.09864.
    """

    operation: ClassVar[str] = "rotary"
    __repr__ = constructor_text
    dtype: DType
    tables: DType
    pairing: Pairing

    def __init__(
        self,
        dtype: DType | ElementType = "f32",
        tables: DType | ElementType | None = None,
        pairing: Pairing | PairingName = Pairing.HALVES,
    ) -> None:
        element = parse_dtype(dtype, FUNCTION_DTYPES)
        computed = element if element.bits > F32.bits else F32
        set_fields(
            self,
            dtype=element,
            tables=computed if tables is None else parse_dtype(tables, FUNCTION_DTYPES),
            pairing=parse_choice(Pairing, pairing, "pairing"),
        )

    def reference(self, x: NDArray[Any], cos: NDArray[Any], sin: NDArray[Any]) -> NDArray[Any]:
        """The meaning of the problem in float64; `cos` and `sin` have a row for each of x."""
        return rotary_meaning(x, cos, sin, self.pairing)
