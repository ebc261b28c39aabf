"""The main primitive of a contraction, and how its results are initialised."""

from __future__ import annotations

from enum import Enum
from typing import get_args

from tilewright.errors import InvalidChoice, shown
from tilewright.spec.arguments import as_text
from tilewright.spec.dtype import Use, dtypes_for
from tilewright.spec.functions import UnaryOp
from tilewright.spec.roles import DimensionRole
from tilewright.typing import FirstTouchName, MainName, UnaryName

#: Element types whose products by tables have kernels.
TABLE_DTYPES = dtypes_for(Use.SCATTERED)


class Main(Enum):
    """The main primitive of a binary contraction, which runs over its primitive dimensions.

    GEMM: one m, one n, one k (each may be missing: of length 1), operands where they stand. BRGEMM: the same
    and one more k outside of them, the batch, summed in registers. PACKED_GEMM: any number of each type,
    operands packed on the fly, block by block, by tables of offsets.
    """

    GEMM, BRGEMM, PACKED_GEMM = get_args(MainName)


class FirstTouch(Enum):
    """How out is initialised before the first product is added: not at all, by zeros, by a bias."""

    NONE, ZERO, BIAS = get_args(FirstTouchName)


#: How many primitive dimensions of each type a main primitive takes; None: any.
MOST_DIMENSIONS: dict[Main, dict[DimensionRole, int] | None] = {
    Main.GEMM: {DimensionRole.M: 1, DimensionRole.N: 1, DimensionRole.K: 1},
    Main.BRGEMM: {DimensionRole.M: 1, DimensionRole.N: 1, DimensionRole.K: 2},
    Main.PACKED_GEMM: None,
}


def parse_main(main: Main | UnaryOp | MainName | UnaryName) -> Main | UnaryOp:
    """A main primitive, or a function, by its word."""
    words: dict[str, Main | UnaryOp] = {member.value: member for member in (*Main, *UnaryOp)}
    if isinstance(main, (Main, UnaryOp)):
        return main
    found = as_text(main)
    if found is None or found not in words:
        raise InvalidChoice(name="main", found=shown(main), allowed=", ".join(words))
    return words[found]
