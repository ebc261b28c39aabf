"""Dimensions of a tensor operation: role, execution, length, and a stride in each operand."""

from __future__ import annotations

from enum import Enum
from typing import Any, get_args

from tilewright.errors import ContractionDimension
from tilewright.records import dataclass
from tilewright.spec.arguments import check_size, check_stride, parse_choice
from tilewright.spec.constructor import constructor_text
from tilewright.spec.records import set_fields
from tilewright.spec.roles import DimensionRole
from tilewright.typing import DimensionRoleName, ExecutionName

#: The strides of a dimension.
STRIDES = ("in0", "in1", "out", "bias")


class ExecutionType(Enum):
    """How a dimension runs: as a loop, as tasks of threads, or inside of the main primitive."""

    SEQUENTIAL, PARALLEL, PRIMITIVE = get_args(ExecutionName)


@dataclass(frozen=True, init=False)
class Dimension:
    """One dimension of a tensor operation.

    Parameters
    ----------
    type : "c", "m", "n" or "k".
    execution : "sequential", "parallel" or "primitive".
    size : its length; None means given at run time.
    in0, in1, out : elements from one index to the next in each operand, of any sign; 0 where it lacks the
        dimension.
    bias : the same in the bias, where first touch copies one; 0 repeats.

    Raises
    ------
    InvalidChoice, InvalidSize
    ContractionDimension : if an operand that lacks the dimension has a stride, or a k runs in parallel.

    Examples
    --------
    >>> print(Dimension("m", "primitive", 32, in0=1, out=1))
    m primitive 32 in0=1 in1=0 out=1
    """

    __repr__ = constructor_text
    type: DimensionRole
    execution: ExecutionType
    size: int | None
    in0: int
    in1: int
    out: int
    bias: int

    def __init__(
        self,
        type: DimensionRole | DimensionRoleName,  # noqa: A002 - the glossary's word
        execution: ExecutionType | ExecutionName = ExecutionType.SEQUENTIAL,
        size: int | None = None,
        *,
        in0: int = 0,
        in1: int = 0,
        out: int = 0,
        bias: int = 0,
    ) -> None:
        what = parse_choice(DimensionRole, type, "type")
        how = parse_choice(ExecutionType, execution, "execution")
        strides = {
            name: check_stride(step, name) for name, step in (("in0", in0), ("in1", in1), ("out", out))
        }
        bias = check_stride(bias, "bias")
        for name, step in strides.items():
            if step and name not in what.operands:
                raise ContractionDimension(
                    type=what.value, found=f"a stride of {step} in {name}", required="0: it has none there"
                )
        if what is DimensionRole.K and (bias or how is ExecutionType.PARALLEL):
            found = "parallel" if not bias else f"a stride of {bias} in the bias"
            raise ContractionDimension(
                type=what.value, found=found, required="sequential or primitive, without a bias: it is summed"
            )
        set_fields(
            self,
            type=what,
            execution=how,
            size=check_size(size, "size"),
            **strides,
            bias=bias,
        )

    def __str__(self) -> str:
        size = "?" if self.size is None else self.size
        bias = f" bias={self.bias}" if self.bias else ""
        strides = f"in0={self.in0} in1={self.in1} out={self.out}{bias}"
        return f"{self.type.value} {self.execution.value} {size} {strides}"

    @property
    def is_primitive(self) -> bool:
        """Whether it runs inside of the main primitive."""
        return self.execution is ExecutionType.PRIMITIVE


def replace_size(dimension: Dimension, size: int | None) -> Dimension:
    """The same dimension of another length."""
    return _replaced(dimension, size=check_size(size, "size"))


def _replaced(dimension: Dimension, **changes: Any) -> Dimension:
    given = {name: value for name, value in dimension.__dict__.items() if name != "type"}
    return Dimension(dimension.type, **{**given, **changes})
