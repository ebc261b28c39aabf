"""The problem of packing: one operand of a product copied into the tiles of a machine."""

from __future__ import annotations

from typing import ClassVar

from tilewright.records import dataclass
from tilewright.spec.arguments import parse_choice
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import GEMM_DTYPES, DType, accumulator, parse_dtype
from tilewright.spec.problem import Layout, Operand, ProductTypes, Role
from tilewright.spec.records import set_fields
from tilewright.typing import ElementType, RoleName


@dataclass(frozen=True, init=False)
class Packing:
    """panels = the matrix in tiles of the machine: [N1, K1, N0, K0] of B, [M1, K1, M0, K0] of A.

    Parameters
    ----------
    role : "b" or "a".
    dtype : element type of the matrix.
    other : that of the matrix it is multiplied with; by default the same.

    Tile sizes and the element type of the panels are those of the machine's multiply instruction. Sizes and
    strides are given at run time.

    Raises
    ------
    InvalidChoice, UnsupportedDtype

    Examples
    --------
    >>> Packing("b", "bf16").other.name
    'bf16'

    Source: IREE, Matrix Multiplication with MMT4D (2021), pack_2d_4d.
    """

    operation: ClassVar[str] = "packing"
    __repr__ = constructor_text
    role: Role
    dtype: DType
    other: DType

    def __init__(
        self,
        role: Role | RoleName = Role.B,
        dtype: DType | ElementType = "f32",
        other: DType | ElementType | None = None,
    ) -> None:
        kind = parse_dtype(dtype, GEMM_DTYPES)
        partner = kind if other is None else parse_dtype(other, GEMM_DTYPES)
        accumulator(kind, partner)  # refuses types that no product has
        set_fields(
            self,
            role=parse_choice(Role, role, "role"),
            dtype=kind,
            other=partner,
        )

    @property
    def types(self) -> ProductTypes:
        """The element types of a product with this operand; C is of the type of the sums."""
        a, b = (self.dtype, self.other) if self.role is Role.A else (self.other, self.dtype)
        return ProductTypes.parse(a, b)

    @property
    def operands(self) -> tuple[Operand, Operand]:
        """The matrix, and its panels."""
        return (
            Operand("source", None, None, self.dtype, Layout.STRIDED),
            Operand("panels", None, None, self.dtype, Layout.PACKED),
        )

    @property
    def flops(self) -> int | None:
        """None: nothing is computed."""
        return None

    @property
    def bytes(self) -> int | None:
        """None: sizes are given at run time."""
        return None
