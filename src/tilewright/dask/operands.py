"""Operands in chunks: checked before anything is computed, with the same chunks along the same labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.dask.library import da, is_dask_collection
from tilewright.errors import ChunkType, MaskedOperand, NotDaskArray, UnknownChunks

#: How chunks of other libraries become arrays.
_REMEDIES = {"sparse": "lambda x: x.todense()", "cupy": "cupy.asnumpy", "scipy": "lambda x: x.toarray()"}

#: The sizes of the chunks of each label of a contraction.
Chunks = Mapping[str, tuple[int, ...]]


def chunked(value: Any, name: str) -> Any:
    """An operand as a Dask array of known chunks; an array in memory becomes one of a single chunk.

    Raises
    ------
    NotDaskArray, UnknownChunks, ChunkType, MaskedOperand, ForeignArray, NotAnArray, InvalidOperand
    """
    if not isinstance(value, da.Array):
        if is_dask_collection(value):
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            raise NotDaskArray(name=name, kind=kind)
        array = as_array(value, name)
        return da.from_array(array, chunks=-1, name=f"tilewright-operand-{da.core.tokenize(array)}")
    for axis, sizes in enumerate(value.chunks):
        if any(isnan(size) for size in sizes):
            raise UnknownChunks(name=name, axis=axis)
    _check_chunk_type(value, name)
    return value


def _check_chunk_type(array: Any, name: str) -> None:
    """Refuse chunks that are masked, sparse or on another device.

    Raises
    ------
    MaskedOperand, ChunkType
    """
    meta = array._meta  # noqa: SLF001 - what Dask's own functions ask for the type of chunks
    if isinstance(meta, np.ma.MaskedArray):
        raise MaskedOperand(name=name)
    if not isinstance(meta, (np.ndarray, np.generic)) or isinstance(meta, np.matrix):
        kind = f"{type(meta).__module__}.{type(meta).__qualname__}"
        library = kind.partition(".")[0]
        remedies = {
            "sparse": "lambda x: x.todense()",
            "cupy": "cupy.asnumpy",
            "scipy": "lambda x: x.toarray()",
        }
        raise ChunkType(name=name, kind=kind, remedy=remedies.get(library, "numpy.asarray"))


def common_chunks(
    operands: Sequence[Any], labels: Sequence[str], fixed: Chunks | None = None
) -> tuple[list[Any], dict[str, tuple[int, ...]]]:
    """The operands with equal chunks along each label, and those chunks.

    The chunks of the operand with the most bytes are kept, so that little is moved. Axes of length 1 beside
    longer ones repeat and keep their one chunk.

    Parameters
    ----------
    labels : one character for each axis of each operand.
    fixed : chunks of labels that are decided, as by a plan.
    """
    found: dict[str, tuple[int, ...]] = dict(fixed or {})
    for term, array in sorted(zip(labels, operands, strict=True), key=lambda pair: -pair[1].nbytes):
        for label, sizes in zip(term, array.chunks, strict=True):
            known = found.get(label)
            if known is None or (sum(known) == 1 and sum(sizes) != 1):
                found[label] = sizes
    equal = []
    for term, array in zip(labels, operands, strict=True):
        wanted = {
            axis: found[label] if array.shape[axis] == sum(found[label]) else (1,)
            for axis, label in enumerate(term)
        }
        equal.append(array if dict(enumerate(array.chunks)) == wanted else array.rechunk(wanted))
    return equal, found


def starts(sizes: Sequence[int]) -> list[int]:
    """Where each chunk of an axis begins.

    >>> starts((3, 2, 4))
    [0, 3, 5]
    """
    return [sum(sizes[:number]) for number in range(len(sizes))]


def one_chunk(array: Any, axes: Iterable[int]) -> Any:
    """An array with a single chunk along some axes."""
    wanted = {axis: -1 for axis in axes if array.numblocks[axis] != 1}
    return array.rechunk(wanted) if wanted else array
