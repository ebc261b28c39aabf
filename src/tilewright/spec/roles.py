"""The role of a dimension in a contraction: batch, m, n or k, by the operands that have it."""

from __future__ import annotations

from enum import Enum
from typing import get_args

from tilewright.typing import DimensionRoleName


class DimensionRole(Enum):
    """Which of A, B and C have a dimension: all, A and C, B and C, A and B."""

    BATCH, M, N, K = get_args(DimensionRoleName)

    @classmethod
    def of(cls, in_a: bool, in_b: bool, in_c: bool) -> DimensionRole | None:
        """The role by presence; None for a dimension of a single operand.

        >>> DimensionRole.of(True, False, True), DimensionRole.of(False, False, True)
        (<DimensionRole.M: 'm'>, None)
        """
        return _BY_PRESENCE.get((in_a, in_b, in_c))

    @property
    def operands(self) -> tuple[str, ...]:
        """The operands that have it, as contractions call A, B and C."""
        return _OPERANDS[self]


_BY_PRESENCE = {
    (True, True, True): DimensionRole.BATCH,
    (True, False, True): DimensionRole.M,
    (False, True, True): DimensionRole.N,
    (True, True, False): DimensionRole.K,
}

_OPERANDS = {
    role: tuple(name for name, found in zip(("in0", "in1", "out"), presence, strict=True) if found)
    for presence, role in _BY_PRESENCE.items()
}
