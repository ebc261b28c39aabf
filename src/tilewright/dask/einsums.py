"""`einsum` and `tensordot` of Dask arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.dask.chains import ChainStep, ChunkedContraction, contract
from tilewright.dask.operands import chunked
from tilewright.dask.products import accumulator
from tilewright.errors.callers import named_in_errors
from tilewright.ops.einsum.order import find_path
from tilewright.ops.einsum.products import contracted_axes
from tilewright.ops.einsum.public import einsum as einsum_of_arrays
from tilewright.ops.einsum.subscripts import Indexing, interleaved, lay_over, parse
from tilewright.spec.arguments import as_text

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@named_in_errors
def einsum(*operands: Any, dtype: DTypeLike | None = None, optimize: Any = "auto") -> Any:
    """`tilewright.einsum` of Dask arrays; lazy, with one accumulator for each chunk of a result.

    Parameters
    ----------
    operands : subscripts and arrays, or arrays with lists of labels, as of `tilewright.einsum`. Where chunks
        along a label differ, the operand of fewer bytes is rechunked.
    dtype, optimize : as of `tilewright.einsum`. Of more than two operands, two at a time are contracted, in
        the order that `optimize` finds for the whole sizes.

    Returns
    -------
    dask.array.Array

    Raises
    ------
    NotDaskArray, UnknownChunks, ChunkType, and what `tilewright.einsum` raises; before anything is computed.

    Examples
    --------
    >>> import dask.array as da, tilewright.dask as twd
    >>> x = da.ones((4, 6), chunks=(2, 3))
    >>> twd.einsum("ij,ij->i", x, x).compute()
    array([6., 6., 6., 6.])
    """
    if not operands or as_text(operands[0]) is None:
        subscripts, given = interleaved(operands)
    else:
        subscripts, given = operands[0], list(operands[1:])
    arrays = [chunked(array, f"operand {number}") for number, array in enumerate(given)]
    return _einsum("einsum", subscripts, arrays, dtype, optimize)


@named_in_errors
def tensordot(a: Any, b: Any, axes: int | Sequence[int | Sequence[int]] = 2) -> Any:
    """`tilewright.tensordot` of Dask arrays; lazy, with one accumulator for each chunk of the result.

    Parameters
    ----------
    a, b : dask.array.Array or array_like
    axes : as of `tilewright.tensordot`.

    Returns
    -------
    dask.array.Array

    Raises
    ------
    ContractionAxes, and as `einsum`.
    """
    a, b = chunked(a, "a"), chunked(b, "b")
    axes_a, axes_b = contracted_axes(axes, a, b)
    labels_a, labels_b = list(_LETTERS[: a.ndim]), list(_LETTERS[a.ndim : a.ndim + b.ndim])
    for own, other in zip(axes_a, axes_b, strict=True):
        labels_b[other] = labels_a[own]
    kept = [one for one in (*labels_a, *labels_b) if not (one in labels_a and one in labels_b)]
    subscripts = f"{''.join(labels_a)},{''.join(labels_b)}->{''.join(kept)}"
    return _einsum("tensordot", subscripts, [a, b], None, False)


def _einsum(name: str, subscripts: str, arrays: list[Any], dtype: Any, optimize: Any) -> Any:
    """An einsum of checked operands, in steps of at most two where a path has such."""
    indexing = lay_over(parse(subscripts), [array.shape for array in arrays])
    result, acc = _types(subscripts, arrays, dtype)
    path = find_path(indexing, optimize)
    left, terms = list(arrays), list(indexing.inputs)
    if not path:
        path = ((0,),)
    for number, places in enumerate(path):
        own = [terms[place] for place in places]
        used = [left[place] for place in places]
        for place in sorted(places, reverse=True):
            del terms[place], left[place]
        last = number == len(path) - 1
        output = indexing.output if last else _kept(own, [*terms, indexing.output], indexing)
        one = Indexing(tuple(own), output, indexing.sizes)
        out = result if last else acc
        left.append(_step(name, one, used, acc, out))
        terms.append(output)
    return left[0]


def _kept(own: Sequence[str], others: Sequence[str], indexing: Indexing) -> str:
    """The labels of an intermediate result: those of its operands that are needed later."""
    wanted = set("".join(others))
    labels = dict.fromkeys("".join(own))
    assert wanted <= indexing.sizes.keys()
    return "".join(label for label in labels if label in wanted)


def _step(name: str, indexing: Indexing, arrays: list[Any], acc: Any, out: Any) -> Any:
    """One contraction as chains of tasks."""
    subscripts = f"{','.join(_plain(indexing.inputs, indexing))}->{_plain([indexing.output], indexing)[0]}"
    product = len(arrays) == len("ab") and _is_matmul(indexing.inputs[0], indexing.inputs[1], indexing.output)
    step = ChainStep("" if product else subscripts, len(arrays), acc.name, out.name)
    meta = np.empty((0,) * len(indexing.output), out)
    return contract(arrays, ChunkedContraction(name, tuple(indexing.inputs), indexing.output, step, meta))


def _plain(terms: Sequence[str], indexing: Indexing) -> list[str]:
    """Labels as letters that NumPy knows: those of an ellipsis have others."""
    letters = dict(zip(sorted(indexing.sizes), _LETTERS, strict=False))
    return ["".join(letters[label] for label in term) for term in terms]


def _is_matmul(a: str, b: str, output: str) -> bool:
    """Return whether labels are those of a product of matrices with equal batch axes in front.

    >>> _is_matmul("bij", "bjk", "bik"), _is_matmul("ij", "kj", "ik"), _is_matmul("ij", "jk", "ki")
    (True, False, False)
    """
    if min(len(a), len(b), len(output)) < len("mk"):
        return False
    batch, m, k, own, n = a[:-2], a[-2], a[-1], b[-2], b[-1]
    labels = {*batch, m, k, n}
    distinct = len(labels) == len(batch) + len("mkn")
    return distinct and k == own and b[:-2] == batch and output == batch + m + n


def _types(subscripts: str, arrays: Sequence[Any], dtype: Any) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """The types of the result and of sums, as an einsum of arrays with one element has them."""
    ones = [np.zeros((1,) * array.ndim, array.dtype) for array in arrays]
    found = einsum_of_arrays(subscripts, *ones, dtype=dtype).dtype
    natural = found if dtype is None else einsum_of_arrays(subscripts, *ones).dtype
    return found, accumulator(natural, found)
