"""`load_gguf`: the tensors of a GGUF file, mapped into memory, as arrays and packed matrices."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from functools import partial

from tilewright.calls.operands import Array
from tilewright.errors import FractionalZeros
from tilewright.errors.callers import named_in_errors
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.spec.arguments import check_path
from tilewright.spec.weights import GROUPS
from tilewright.typing import WeightPrecision
from tilewright.weights.ggml_types import BLOCKS, PLAIN, READABLE, BlockType
from tilewright.weights.gguf_header import HeaderReader, TensorInfo
from tilewright.weights.mapped import map_file, view
from tilewright.weights.pack_request import PackChoice, PackRequest, name_patterns, selected_names
from tilewright.weights.tensors import StoredTensor, TensorFile, unsupported_type


@named_in_errors
def load_gguf(
    path: str | os.PathLike[str],
    *,
    pack: PackChoice = False,
    precision: WeightPrecision | None = None,
    names: str | Sequence[str] | None = None,
) -> TensorFile:
    """The tensors of a GGUF file, by name; each is read when it is asked for.

    Parameters
    ----------
    path : str or path
        A little-endian file of version 2 or 3.
    pack, precision, names
        As in `load_safetensors`. With no precision, integers stay integers: Q4_0, Q5_0 and Q8_0 are packed
        exactly, in groups of 32; Q4_1, Q5_1, Q4_K and Q5_K in 8 bits, with zero points to 1/32 of a step of
        4 bits (1/16 of 5); other quantised types as float32.

    Returns
    -------
    TensorFile
        A mapping, whose `metadata` is that of the file: numbers, text, lists, and arrays of NumPy where a
        list has numbers. Arrays of F32, F16, BF16, F64 and integers are read-only views of the mapped file;
        those of quantised types are dequantised to float32. Shapes are NumPy's, of linear layers (out, in).

    Raises
    ------
    WeightFileNotFound, WeightFileTruncated, WeightFileDamaged
    UnknownTensor, InvalidChoice, UnsupportedArgument
    TensorTypeUnsupported : when a tensor of another type is asked for.

    Examples
    --------
    >>> model = tw.load_gguf("model-Q8_0.gguf", pack=True)  # doctest: +SKIP
    >>> y = tw.linear(x, model["blk.0.ffn_up.weight"])  # doctest: +SKIP

    Source: github.com/ggml-org/ggml, docs/gguf.md.
    """
    where = check_path(path)
    request, patterns = PackRequest.parse(pack, precision), name_patterns(names)
    data = map_file(where)
    reader = HeaderReader(where, data)
    metadata, entries = reader.read()
    tensors = {entry.name: _stored(entry, reader, request) for entry in entries}
    if patterns is not None:
        tensors = {name: tensors[name] for name in selected_names(where, patterns, tensors)}
    return TensorFile(where, tensors, metadata)


def _stored(entry: TensorInfo, reader: HeaderReader, request: PackRequest) -> StoredTensor:
    """A tensor whose bytes are all there."""
    what, size = f"tensor {entry.name:.100}", math.prod(entry.shape)
    native: Callable[[], PackedMatrix] | None = None
    array: Callable[[], Array]
    if entry.type in PLAIN:
        name, dtype = PLAIN[entry.type]
        reader.needs(entry.offset + size * dtype.itemsize, what)
        array = partial(view, reader.data, entry.offset, entry.shape, dtype)
    elif entry.type in BLOCKS:
        kind = BLOCKS[entry.type]
        name = kind.name
        if not entry.shape or entry.shape[-1] % kind.elements:
            reader.refuse(f"{what} of shape {entry.shape} is no rows of {name}'s {kind.elements} elements")
        count = size // kind.elements
        reader.needs(entry.offset + count * kind.bytes, what)
        blocks = partial(view, reader.data, entry.offset, (count, kind.bytes), reader.data.dtype)
        array = partial(_dequantised, kind, blocks, entry.shape)
        if request.precision is None and kind.group in GROUPS:
            native = partial(_packed_integers, kind, blocks, entry.shape, request)
    else:
        name = f"number {entry.type}"
        reader.needs(entry.offset, what)
        array = partial(_refuse, reader.path, entry.name, name)
    found = StoredTensor(entry.name, entry.shape, name, reader.path, array)
    if not request.wants(entry.name, entry.shape):
        return found
    return found.to_be_packed(native or (lambda: request.pack(array())))


def _dequantised(kind: BlockType, blocks: Callable[[], Array], shape: tuple[int, ...]) -> Array:
    found: Array = kind.floats(blocks()).reshape(shape)
    found.flags.writeable = False  # as tensors that are views of the file
    return found


def _packed_integers(
    kind: BlockType, blocks: Callable[[], Array], shape: tuple[int, ...], request: PackRequest
) -> PackedMatrix:
    """The integers as they are; with offsets in 8 bits, or as floats where a zero point is far from them."""
    out, depth = shape
    weight = kind.integers(blocks(), (out, depth))
    if kind.zero is not None:
        return weight.pack()
    try:
        return weight.pack(bits=8)
    except FractionalZeros:
        return request.pack(_dequantised(kind, blocks, shape))


def _refuse(path: str, name: str, found: str) -> Array:
    raise unsupported_type(path, name, found, READABLE)
