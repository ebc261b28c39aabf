"""Element types of a product: common type of the operands, and the type computed in."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.pieces import PIECE, pieces, report_copy
from tilewright.calls.recording import not_repeatable
from tilewright.errors import NoCommonDtype, UnsupportedDtype
from tilewright.spec.dtype import BF16, F32, F64, GEMM_DTYPES, Kind, find_numpy_dtype

_SUPPORTED = ", ".join(map(str, GEMM_DTYPES))

#: Kinds of numbers in NumPy's letters; each one contains those before it.
_KINDS = "buifc"
#: Letters of the kinds of types that NumPy has no letter for.
_LETTERS = {Kind.UNSIGNED: "u", Kind.SIGNED: "i", Kind.FLOAT: "f", Kind.COMPLEX: "c"}

#: NumPy's signed integers by width.
_SIGNED = {8: "int8", 16: "int16", 32: "int32", 64: "int64"}


@lru_cache(maxsize=256)
def kind_of(dtype: np.dtype[Any]) -> str:
    """The kind of a number type in NumPy's letters; NumPy reports "V" for types of ml_dtypes.

    >>> from tilewright.spec.dtype import BF16, U4
    >>> kind_of(BF16.numpy), kind_of(U4.numpy), kind_of(np.dtype("i2"))
    ('f', 'u', 'i')
    """
    found = find_numpy_dtype(dtype.newbyteorder("=")) if dtype.kind == "V" else None
    return dtype.kind if found is None else _LETTERS[found.kind]


@lru_cache(maxsize=512)
def same_kind(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """NumPy's "same_kind" casting, which types of ml_dtypes follow by their kinds.

    ml_dtypes allows complex to bfloat16 and refuses float16 to bfloat16.

    >>> from tilewright.spec.dtype import BF16, I4
    >>> same_kind(np.dtype("f2"), BF16.numpy), same_kind(np.dtype("f4"), I4.numpy)
    (True, False)
    """
    found = kind_of(source), kind_of(target)
    if "V" not in (source.kind, target.kind) or any(kind not in _KINDS for kind in found):
        return bool(np.can_cast(source, target, "same_kind"))
    return _KINDS.index(found[0]) <= _KINDS.index(found[1])


@lru_cache(maxsize=512)
def common_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any] | None:
    """The common type of several: NumPy's promotion, or the smallest containing type if NumPy defines none.

    None if a type is not numeric.

    >>> from tilewright.spec.dtype import BF16, I4, U4
    >>> common_dtype(BF16.numpy, np.dtype("f2")), common_dtype(I4.numpy, U4.numpy)
    (dtype('float32'), dtype('int8'))
    """
    promoted = promoted_dtype(*dtypes)
    if promoted is not None:
        return promoted
    found: np.dtype[Any] | None = dtypes[0].newbyteorder("=")
    for dtype in dtypes[1:]:
        if found is not None:
            found = promoted_dtype(found, dtype) or _without_promotion(found, dtype.newbyteorder("="))
    return found


def promoted_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any] | None:
    """NumPy's promotion, in native byte order, or None.

    Not cached: int64 and C's long long are equal as keys, but their scalars are of two types.
    """
    first = dtypes[0]
    if first.isnative and all(dtype is first for dtype in dtypes):
        return first
    try:
        return np.result_type(*dtypes).newbyteorder("=")
    except TypeError:
        return None


def _without_promotion(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any] | None:
    """The smallest type that contains two, one of which is a type of ml_dtypes that NumPy cannot promote."""
    first, second = sorted((a, b), key=lambda dtype: _KINDS.find(kind_of(dtype)))
    kinds = kind_of(first), kind_of(second)
    records = [find_numpy_dtype(dtype) for dtype in (first, second)]
    if any(kind not in _KINDS for kind in kinds):
        return None
    bits = [
        8 * dtype.itemsize if found is None else found.significand
        for dtype, found in zip((first, second), records, strict=True)
    ]
    match kinds:
        case "f", "f":
            own = [record for record in records if record is not None]
            wide = (one for one in (BF16, F32, F64) if all(map(one.holds, own)))
            return next(wide).numpy if len(own) == 2 else None
        case (("u" | "i"), "f"):
            return next(one.numpy for one in (BF16, F32, F64) if one.significand >= bits[0] or one is F64)
        case "u", "i":
            wanted = next((size for size in _SIGNED if size > bits[0]), None)
            return F64.numpy if wanted is None else np.dtype(_SIGNED[wanted])
        case _:
            return None


def no_common_dtype(*dtypes: np.dtype[Any]) -> UnsupportedDtype:
    """The error for operands without a common type."""
    names = " and ".join(map(str, dict.fromkeys(dtypes)))
    wanted = common_dtype(*dtypes)
    if wanted is None:
        return UnsupportedDtype(dtype=f"common to {names}", supported=_SUPPORTED)
    return NoCommonDtype(found=names, wanted=wanted)


@lru_cache(maxsize=512)
def computing_dtype(operands: tuple[np.dtype[Any], ...], result: np.dtype[Any]) -> np.dtype[Any]:
    """The type that operands are converted to, such that the result is rounded once, from the sums.

    It contains the operands and the result. It is the result's own type if that contains the operands; if
    both are integers, as wrapping sums have the same bits; and if the result's kind does not contain theirs,
    in which case operands are converted first, as in NumPy.

    >>> f32, f64, i32 = map(np.dtype, ("f4", "f8", "i4"))
    >>> computing_dtype((f64, f32), f32), computing_dtype((i32, i32), f32), computing_dtype((i32,), i32)
    (dtype('float64'), dtype('float64'), dtype('int32'))
    """
    kinds = [kind_of(dtype) for dtype in operands]
    own = kind_of(result)
    if own not in "fc" or any(kind not in _KINDS or _KINDS.find(kind) > _KINDS.find(own) for kind in kinds):
        return result
    common = common_dtype(*operands)
    if common is None or np.can_cast(common, result, "safe"):
        return result
    return common_dtype(common, result) or result


@lru_cache(maxsize=512)
def signed_dtype(operands: tuple[np.dtype[Any], ...], result: np.dtype[Any]) -> np.dtype[Any]:
    """The integer type that keeps the sign of sums: it contains the operands and a signed result.

    >>> signed_dtype((np.dtype("u2"), np.dtype("u2")), np.dtype("i2"))
    dtype('int32')
    """
    found = common_dtype(*operands, result)
    return np.dtype(np.int64) if found is None or kind_of(found) == "f" else found


def summed_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The accumulator type: float32 for 16-bit floats."""
    return F32.numpy if kind_of(dtype) == "f" and dtype.itemsize < F32.size else dtype


def rounds_twice(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Return whether NumPy would convert through float32, as ml_dtypes does from float64 to bfloat16."""
    return target.kind == "V" and kind_of(source) == "f" and source.itemsize > F32.size


def narrowed(array: Array, dtype: np.dtype[Any]) -> Array:
    """An array in another type, rounded once; returned unchanged if it already has that type.

    >>> from tilewright.spec.dtype import BF16
    >>> narrowed(np.array([1 + 2.0**-8 + 2.0**-40]), BF16.numpy)
    array([1.00781], dtype=bfloat16)
    """
    if array.dtype == dtype:
        return array
    if array.size > PIECE:
        found: Array = np.empty_like(array, dtype=dtype, subok=False)
        store(array, found)
        return found
    with np.errstate(over="ignore"):  # as in results of kernels
        return (_to_odd(array) if rounds_twice(array.dtype, dtype) else array).astype(dtype)


def _to_odd(array: Array) -> Array:
    """float64 to float32, rounded to odd: a second rounding then equals a single one (`Convert`)."""
    with np.errstate(over="ignore", invalid="ignore"):
        near = array.astype(np.float32)
        error = array - near
    bits = near.view(np.int32)
    even = np.isfinite(error) & (error != 0) & (bits & 1 == 0)
    outwards = (error > 0) == (bits >= 0)
    moved: Array = np.where(even, np.where(outwards, bits + 1, bits - 1), bits).astype(np.int32)
    return moved.view(np.float32)


def store(found: Array, out: Array) -> None:
    """Copies a result into `out`, whose type has been checked; it is rounded once."""
    if out.size > PIECE:
        whole = np.broadcast_to(found, out.shape)
        for part in pieces(out.shape, out.strides):
            store(whole[part], out[part])
        return
    twice = rounds_twice(found.dtype, out.dtype)
    if twice:
        not_repeatable("a result that is rounded from 64 to 16 bits when it is stored into out")
    report_copy(out, found, quiet=not np.can_cast(found.dtype, out.dtype, "safe"))
    with np.errstate(all="ignore"):
        np.copyto(out, narrowed(found, out.dtype) if twice else found, casting="unsafe")
