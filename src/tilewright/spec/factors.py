"""Factors of a product, alpha and beta, as kernels take them."""

from __future__ import annotations

from tilewright.errors import InvalidScalar, shown
from tilewright.spec.arguments import as_number, real_number
from tilewright.spec.dtype import DType


def factor(value: object, name: str, acc: DType) -> float:
    """alpha or beta as a kernel takes it: a float, or an integer of the sums' type, which wraps around.

    Raises
    ------
    InvalidScalar

    >>> from tilewright.spec.dtype import I32
    >>> factor(2.0, "alpha", I32), factor(2**32 - 1, "alpha", I32)
    (2, -1)
    """
    if not acc.is_integer:
        return value if type(value) is float else real_number(value, name)
    found = as_number(value)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if not isinstance(found, int):
        raise InvalidScalar(name=name, found=shown(value), required="an integer, as the elements are")
    half = 1 << acc.bits - 1
    return (found + half) % (2 * half) - half
