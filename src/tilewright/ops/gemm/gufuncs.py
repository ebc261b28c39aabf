"""Products as NumPy's generalised universal functions: keywords, subclasses, arrays of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import DTypeLike

from tilewright.calls.foreign import (
    ANY_ORDER,
    SAME_KIND,
    as_array,
    foreign_operand,
    leave_to_numpy,
    wrapped,
)
from tilewright.calls.operands import Array
from tilewright.calls.pieces import as_type, contiguous
from tilewright.calls.promotion import same_kind, store
from tilewright.calls.recording import element, repeatable
from tilewright.errors import (
    AxesCount,
    AxisOutOfRange,
    ContractionAxes,
    CoreAxes,
    InvalidAxis,
    InvalidChoice,
    OutCount,
    OutDtype,
    OutShape,
    RepeatedAxis,
    UnsafeCast,
    shown,
)
from tilewright.ops.gemm.operands import check_array, result_dtype
from tilewright.spec.arguments import as_integer, as_text, check_flag, check_word
from tilewright.typing import Casting, Order


def memory_order(order: Any) -> str:
    """An order in memory as one capital letter; NumPy takes small ones, bytes and None, too.

    >>> memory_order("f"), memory_order(None)
    ('F', 'K')

    Raises
    ------
    InvalidChoice
    """
    if order is ANY_ORDER:
        return ANY_ORDER
    text = "K" if order is None else order.decode("latin-1") if type(order) is bytes else as_text(order)
    if text is not None and text.upper() in get_args(Order):
        return text.upper()
    raise InvalidChoice(name="order", found=shown(order), allowed=", ".join(get_args(Order)))


def in_order(found: Array, operands: Iterable[Array], order: str) -> Array:
    """A result in the requested memory order, or a scalar; "A" is "F" if all operands are in that order."""
    if np.ndim(found) == 0:
        return element(found)
    if order == "A":
        order = "F" if all(operand.flags.f_contiguous for operand in operands) else "C"
    if order == "K":
        return found
    if order == "F":
        return contiguous(found.T).T
    return contiguous(found)


def is_last(axis: Any) -> bool:
    """Return whether `axis` is the default, the last axis."""
    return type(axis) is int and axis == -1


class Options(NamedTuple):
    """Keywords of NumPy's generalised universal functions.

    Attributes
    ----------
    dtype : of the result.
    axes : which axes of a, b and the result are those of matrices and vectors: a list with a tuple, or an
        integer for one axis, for each; that of the result may be missing if it is a number.
    axis : of vectors, the same in both operands.
    keepdims : whether the result keeps the axis of the vectors, with length 1.
    casting : which conversions of operands and to `out` are allowed.
    order : in memory, of a result that is not `out`.
    subok : whether subclasses of arrays give results of their types.
    """

    dtype: DTypeLike | None = None
    axes: Any = None
    axis: Any = -1
    keepdims: Any = False
    casting: Any = SAME_KIND
    order: Any = ANY_ORDER
    subok: Any = True

    @property
    def plain(self) -> bool:
        """Return whether all options except `dtype` have their defaults."""
        return (
            self.axes is None
            and is_last(self.axis)
            and self.keepdims is False
            and self.casting is SAME_KIND
            and self.order is ANY_ORDER
            and self.subok is True
        )

    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        defaults = zip(self._fields, self, self._field_defaults.values(), strict=True)
        return {name: value for name, value, default in defaults if value is not default}

    def checked(self) -> Options:
        """The same options, validated.

        Raises
        ------
        InvalidChoice, InvalidFlag
        """
        return self._replace(
            casting=check_word(self.casting, "casting", get_args(Casting)),
            order=memory_order(self.order),
            keepdims=check_flag(self.keepdims, "keepdims"),
            subok=check_flag(self.subok, "subok"),
        )


class ProductFunction(NamedTuple):
    """One of the functions.

    Attributes
    ----------
    name : NumPy's and this package's.
    multiply : computes the product of a and b, into `out` or a new array, in `dtype`; axes of matrices and
        vectors are the last ones.
    cores : the number of these axes of a, b and the result; None: of matmul, which takes both.
    """

    name: str
    multiply: Callable[..., Any]
    cores: tuple[int, int, int] | None = None

    def check(self, a: Array, b: Array) -> None:
        """Refuses operands with fewer axes than the matrices and vectors have.

        Raises
        ------
        ContractionAxes
        """
        if self.cores is not None and (a.ndim < self.cores[0] or b.ndim < self.cores[1]):
            reason = f"a has {self.cores[0]} axes at least, b {self.cores[1]}"
            raise ContractionAxes(function=self.name, axes=(-1,), a=a.shape, b=b.shape, reason=reason)

    def cores_of(self, a: Array, b: Array) -> tuple[int, int, int]:
        """Numbers of core axes (of matrices and vectors) of the operands and of the result."""
        if self.cores is not None:
            return self.cores
        return min(a.ndim, 2), min(b.ndim, 2), (a.ndim > 1) + (b.ndim > 1)


def call(
    product: ProductFunction, a: Any, b: Any, out: Any, options: Options, ours: Iterable[str] = ()
) -> Any:
    """Compute a product of any operands, with any of the keywords.

    Parameters
    ----------
    ours : the names of keywords that were given and that NumPy's function does not have.

    Raises
    ------
    What `product.multiply` raises; OutCount, OutNotArray, OutShape, OutDtype, AxesCount, CoreAxes,
    InvalidAxis, AxisOutOfRange, RepeatedAxis, InvalidChoice, InvalidFlag, UnsafeCast, MaskedOperand,
    ForeignKeyword, NoUfuncs
        Each before `out` changes.
    """
    function = product.name
    always_array = out is Ellipsis
    out = None if always_array else _single(function, out)
    foreign = foreign_operand("__array_ufunc__", {"a": a, "b": b, "out": out})
    if foreign is not None:
        named = options.given() | ({} if out is None else {"out": out})
        return leave_to_numpy(function, foreign, (a, b), named, ours)
    options = options.checked()
    given = None if out is None else check_array(out)
    arrays = as_array(a, "a"), as_array(b, "b")
    product.check(*arrays)
    axes_a, axes_b, axes = _axes_of(product, options, product.cores_of(*arrays))
    first, second = _moved(function, arrays[0], axes_a), _moved(function, arrays[1], axes_b)
    target = None if given is None else _target(function, given, axes, keepdims=options.keepdims)
    first, second, direct = _cast(first, second, target, options)
    found = product.multiply(first, second, direct, dtype=options.dtype)
    repeatable()
    if given is not None:
        if target is not None and direct is None:
            store(np.asarray(found), target)
        return given
    if options.keepdims:
        found = np.asarray(found)[..., np.newaxis]
    found = in_order(_back(function, found, axes), arrays, options.order)
    return wrapped(function, (a, b), np.asarray(found) if always_array else found) if options.subok else found


def _single(function: str, out: Any) -> Any:
    """`out`, which NumPy also takes in a tuple."""
    if not isinstance(out, tuple):
        return out
    if len(out) != 1:
        raise OutCount(function=function, found=len(out))
    return out[0]


# --- axes ---------------------------------------------------------------------------------------

#: The axes of matrices or vectors in one array; None: the last ones.
_Axes: TypeAlias = tuple[int, ...] | None


def _axes_of(
    product: ProductFunction, options: Options, cores: tuple[int, int, int]
) -> tuple[_Axes, _Axes, _Axes]:
    """The core axes of a, b and the result."""
    function = product.name
    kept = 1 if options.keepdims else cores[2]
    axes, axis = options.axes, options.axis
    if axes is None:
        if is_last(axis):
            return None, None, None
        same = (_index(function, axis),)
        return same, same, same if kept else None
    if not isinstance(axes, list):
        raise InvalidAxis(function=function, name="axes", found=shown(axes), required="a list")
    if not is_last(axis):
        raise InvalidAxis(function=function, found=shown(axis), required="omitted where axes is given")
    if len(axes) != len(cores) and (product.cores is None or cores[2] or len(axes) != len(cores) - 1):
        raise AxesCount(function=function, found=len(axes))
    first, second, *rest = zip(axes, (*cores[:2], kept), strict=False)
    result = _entry(function, *rest[0]) if rest else ()
    return _entry(function, *first), _entry(function, *second), result or None


def _entry(function: str, entry: Any, count: int) -> tuple[int, ...]:
    """The entry of `axes` for one array: a given number of integers."""
    if not isinstance(entry, tuple):
        entry = (_index(function, entry),)
    found = tuple(_index(function, axis) for axis in entry)
    if len(found) != count:
        raise CoreAxes(function=function, found=entry, required=count)
    return found


def _index(function: str, axis: Any) -> int:
    found = as_integer(axis)
    if found is None:
        raise InvalidAxis(function=function, found=shown(axis), required="an integer")
    return found


def _numbers(function: str, axes: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """Axes of an array as numbers from 0 on, none twice."""
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise AxisOutOfRange(function=function, found=axis, ndim=ndim, last=ndim - 1)
    found = tuple(axis % ndim for axis in axes)
    if len(set(found)) != len(found):
        raise RepeatedAxis(function=function, found=axes[0], axes=axes)
    return found


def _moved(function: str, array: Array, axes: _Axes) -> Array:
    """The view of an array with some axes behind all others."""
    if axes is None:
        return array
    own = _numbers(function, axes, array.ndim)
    return array.transpose(*(axis for axis in range(array.ndim) if axis not in own), *own)


def _back(function: str, array: Array, axes: _Axes) -> Array:
    """The view of an array with its last axes where they are wanted."""
    if axes is None:
        return array
    own = _numbers(function, axes, array.ndim)
    return np.moveaxis(array, range(array.ndim - len(own), array.ndim), own)


def _target(function: str, out: Array, axes: _Axes, *, keepdims: bool) -> Array:
    """The view of `out` that receives the product."""
    if keepdims and out.ndim == 0:
        raise OutShape(found=out.shape, required="(..., 1)")
    found = _moved(function, out, axes)
    if keepdims:
        if found.shape[-1] != 1:
            raise OutShape(found=out.shape, required=(*found.shape[:-1], 1))
        found = found[..., 0]
    return found


# --- casting ------------------------------------------------------------------------------------


def _cast(a: Array, b: Array, out: Array | None, options: Options) -> tuple[Array, Array, Array | None]:
    """Operands that products take, and `out` where they may write there.

    Raises
    ------
    UnsafeCast, OutDtype : of "same_kind" products raise them.
    """
    casting: Any = options.casting
    if casting == SAME_KIND:
        return a, b, out
    computed = result_dtype(a, b, None, options.dtype)
    for name, array in (("a", a), ("b", b)):
        if not np.can_cast(array.dtype, computed, casting):
            raise UnsafeCast(name=name, found=array.dtype, required=str(computed), casting=casting)
    if out is not None and not np.can_cast(computed, out.dtype, casting):
        raise OutDtype(found=out.dtype, required=computed, casting=casting)
    if casting != "unsafe":
        return a, b, out
    a, b = (array if same_kind(array.dtype, computed) else as_type(array, computed) for array in (a, b))
    return a, b, out if out is None or same_kind(computed, out.dtype) else None
