"""Which primitive dimensions a contraction may have."""

from __future__ import annotations

from itertools import pairwise

from tilewright.errors import ContractionPrimitive
from tilewright.ops.contraction.dimension import Dimension
from tilewright.ops.contraction.main import MOST_DIMENSIONS, Main
from tilewright.spec.functions import UnaryOp
from tilewright.spec.roles import DimensionRole


def check_order(dimensions: tuple[Dimension, ...]) -> None:
    """Primitive dimensions are innermost."""
    for number, (outer, dimension) in enumerate(pairwise(dimensions), 1):
        if outer.is_primitive and not dimension.is_primitive:
            raise ContractionPrimitive(
                main="primitive dimensions",
                found=f"dimension {number} ({dimension}) inside of one",
                required="all the last ones: the primitive is what the loops run",
            )


def check_primitive(dimensions: tuple[Dimension, ...], main: Main | UnaryOp) -> None:
    """The primitive dimensions are some that the main primitive has a kernel for."""
    types = [dimension.type for dimension in dimensions if dimension.is_primitive]
    most = MOST_DIMENSIONS[main] if isinstance(main, Main) else {DimensionRole.BATCH: 2}
    if most is None:
        return
    for kind in DimensionRole:
        count, allowed = types.count(kind), most.get(kind, 0)
        if count > allowed:
            raise ContractionPrimitive(
                main=main.value,
                found=f"{count} primitive dimensions of type {kind.value}",
                required=f"at most {allowed}; fuse them, run the others as loops, or take packed_gemm",
            )
    if isinstance(main, UnaryOp) and any(d.type is not DimensionRole.BATCH for d in dimensions):
        raise ContractionPrimitive(
            main=main.value, found="dimensions that an operand lacks", required="all of type c"
        )
