"""Functions of rows as code for short rows and code for long ones, whose sums have more precision."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.llvm.build import Function
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, value, window
from tilewright.micro.rows.across import LONG_TURN, AcrossRows
from tilewright.micro.rows.lines import LONG, AlongRows
from tilewright.spec.dtype import DType


def by_length(
    f: Function,
    isa: Isa,
    given: tuple[DType, Operands],
    along: Callable[[AlongRows], None],
    beside: Callable[[AcrossRows], None],
    *,
    alike: bool = False,
) -> None:
    """Writes the function twice, for short and for long rows; elements of rows, or of columns, are adjacent.

    Parameters
    ----------
    given : the type that is computed in, and the operands.
    along, beside : what is written inside the loops over rows; over columns of rows that are adjacent.
    alike : whether nothing is summed, so that one code serves rows of any length.
    """
    acc, operands = given
    columns = value(operands, "columns")
    by_rows = window(operands, "source").column.known == 1

    def write(*, long: bool) -> None:
        if by_rows:
            rows = AlongRows(f, isa, acc, operands, long=long)
            rows.stretched = long or alike
            for _ in rows.every():
                along(rows)
        else:
            beside(AcrossRows(f, isa, acc, operands, long=long))

    if alike:
        write(long=False)
        return
    if by_rows:
        many = f.icmp(">=", columns, LONG * isa.lanes(acc))
    else:
        many = f.icmp(">", columns, LONG_TURN * AcrossRows.block_of(isa))
    with f.branch(many) as (long, short):
        with long:
            write(long=True)
        with short:
            write(long=False)
