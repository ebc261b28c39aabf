"""A toy operation as a problem: B = A ∘ A, a matrix of any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.spec.dtype import F32, DType
from tilewright.spec.problem import Layout, Operand


@dataclass(frozen=True)
class Squared:
    """B = A * A, element by element."""

    operation: ClassVar[str] = "squared"

    m: int | None = None
    n: int | None = None
    dtype: DType = F32

    @property
    def operands(self) -> tuple[Operand, ...]:
        """A (m, n) and B (m, n)."""
        return (
            Operand("a", self.m, self.n, self.dtype, Layout.ROW, "mn"),
            Operand("b", self.m, self.n, self.dtype, Layout.ROW, "mn"),
        )

    @property
    def flops(self) -> int | None:
        """One product for each element."""
        return None if self.m is None or self.n is None else self.m * self.n

    @property
    def bytes(self) -> int | None:
        """A read, B written."""
        return None if self.flops is None else 2 * self.flops * self.dtype.size
