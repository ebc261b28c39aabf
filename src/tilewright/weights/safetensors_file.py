"""`load_safetensors`: the tensors of safetensors files, mapped into memory, as arrays and packed matrices.

The library `safetensors` validates each file. Its NumPy interface refuses bfloat16 and float8, so tensors are
views of the mapped file at the offsets of the header, in the types of ml_dtypes.

Format: https://huggingface.co/docs/safetensors. 8 bytes: little-endian length of the header; the header, JSON
with type, shape and offsets of each tensor by name; the tensors, without gaps.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.calls.operands import Array
from tilewright.errors import PackageMissing, WeightFileDamaged, WeightFileNotFound
from tilewright.errors.callers import named_in_errors
from tilewright.preparing import importing
from tilewright.reading import open_regular, read_bounded
from tilewright.spec.arguments import MAX_SIZE, check_path
from tilewright.typing import WeightPrecision
from tilewright.weights.mapped import map_file, view
from tilewright.weights.pack_request import PackChoice, PackRequest, name_patterns, selected_names
from tilewright.weights.tensors import StoredTensor, TensorFile, unsupported_type

#: Element types by their names in headers.
TYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "F8_E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "F8_E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "F8_E8M0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "C64": np.dtype("<c8"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}

#: How the index of a sharded model ends.
_INDEX = ".safetensors.index.json"
#: Bytes of an index at most: one of 100,000 tensors has ten million.
_LONGEST_INDEX = 1 << 28
#: Bytes of the length in front of a header.
_LENGTH = 8


@named_in_errors
def load_safetensors(
    path: str | os.PathLike[str],
    *,
    pack: PackChoice = False,
    precision: WeightPrecision | None = None,
    names: str | Sequence[str] | None = None,
) -> TensorFile:
    """The tensors of a model in safetensors files, by name; each is read when it is asked for.

    Parameters
    ----------
    path : str or path
        A file, the index of a sharded model (``model.safetensors.index.json``), or a folder that has one of
        them.
    pack : bool, str or callable
        Which matrices become packed: `PackedMatrix` of ``weight.T``, which `linear` takes. True: every tensor
        of two axes whose name ends in "weight", embeddings aside ("embed", "embd", "wte", "wpe" and
        "shared.weight" in its name). A pattern such as ``"*.mlp.*.weight"``, or a function of a name: those
        tensors of two axes.
    precision : "f32", "bf16", "i8-weights" or "i4-weights", optional
        In which matrices are packed. "i8-weights": one scale a column; "i4-weights": groups of 128 depths
        with zero points. None: as stored.
    names : str or sequence of str, optional
        Names of tensors or patterns of them: all others are left out, and files without any are not opened.

    Returns
    -------
    TensorFile
        A mapping. Arrays are read-only views of the mapped file, of bfloat16 and float8 in the types of
        ml_dtypes. Packed matrices are made when they are asked for first.

    Raises
    ------
    PackageMissing : the package `safetensors` is not installed.
    WeightFileNotFound, WeightFileDamaged, UnknownTensor, InvalidChoice, UnsupportedArgument
    TensorTypeUnsupported : when a tensor of 4 or 6 bits is asked for.

    Examples
    --------
    >>> model = tw.load_safetensors("model.safetensors", pack=True, precision="i8-weights")  # doctest: +SKIP
    >>> y = tw.linear(x, model["model.layers.0.mlp.up_proj.weight"])  # doctest: +SKIP
    """
    where = check_path(path)
    request, patterns = PackRequest.parse(pack, precision), name_patterns(names)
    source = _model_file(where)
    tensors: dict[str, StoredTensor] = {}
    metadata: dict[str, str] = {}
    for shard, expected in _shards(source, patterns):
        found, said = _tensors(shard, request)
        chosen = found if expected is None else expected
        for name in chosen:
            if name not in found:
                reason = f"the index says that {name} is in {shard}, which does not have it"
                raise WeightFileDamaged(path=source, format="safetensors", reason=reason)
            tensors[name] = found[name]
        metadata |= said
    if patterns is not None:
        tensors = {name: tensors[name] for name in selected_names(source, patterns, tensors)}
    return TensorFile(source, tensors, metadata)


def _model_file(path: str) -> str:
    """The file of tensors, or the index, that a path names."""
    folder = Path(path)
    if not folder.is_dir():
        return path
    inside = sorted(str(one) for one in folder.iterdir())
    for kind in (_INDEX, ".safetensors"):
        found = [one for one in inside if one.endswith(kind)]
        usual = [one for one in found if Path(one).name == f"model{kind}"]
        if len(found) == 1 or usual:
            return (usual or found)[0]
    reason = f"the folder has neither one *{_INDEX} nor one *.safetensors"
    raise WeightFileNotFound(path=path, reason=reason)


def _shards(source: str, patterns: tuple[str, ...] | None) -> Iterator[tuple[str, list[str] | None]]:
    """The files of a model that are needed, with the names of the tensors that the index has for each."""
    if not source.endswith(".json"):
        yield source, None
        return
    placed = _weight_map(source)
    wanted = list(placed) if patterns is None else selected_names(source, patterns, placed)
    shards: dict[str, list[str]] = {}
    for name in wanted:
        shards.setdefault(placed[name], []).append(name)
    for shard, expected in shards.items():
        yield str(Path(source).with_name(shard)), expected


def _weight_map(path: str) -> dict[str, str]:
    """Name of tensor: name of file, beside the index."""
    try:
        with open_regular(path, _LONGEST_INDEX) as stream:
            placed = json.loads(read_bounded(stream, _LONGEST_INDEX))["weight_map"]
    except OSError as error:
        raise WeightFileNotFound(path=path, reason=error.strerror or str(error)) from error
    except (LookupError, ValueError, TypeError, RecursionError) as error:
        reason = f"it has no weight_map ({type(error).__name__}: {error!s:.100})"
        raise WeightFileDamaged(path=path, format="safetensors index", reason=reason) from error
    if not isinstance(placed, dict):
        raise WeightFileDamaged(path=path, format="safetensors index", reason="weight_map is no mapping")
    for name, shard in placed.items():
        if not isinstance(shard, str) or not _is_file_name(shard):
            reason = f"tensor {name} is in {shard!r:.100}, which is not the name of a file beside the index"
            raise WeightFileDamaged(path=path, format="safetensors index", reason=reason)
    return placed


def _is_file_name(text: str) -> bool:
    """Whether text names a file of a folder, and cannot lead out of it."""
    return text not in ("", ".", "..") and not set("/\\\0") & set(text)


def _check_by_library(path: str) -> None:
    """Have the library `safetensors` validate a file.

    Raises
    ------
    PackageMissing, WeightFileDamaged, WeightFileNotFound
    """
    try:
        with importing:
            from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise PackageMissing(
            purpose="reading safetensors files", package="safetensors", install="tilewright[weights]"
        ) from error
    try:
        with safe_open(path, framework="numpy"):
            pass
    except SafetensorError as error:
        raise WeightFileDamaged(path=path, format="safetensors", reason=str(error)) from error
    except OSError as error:
        raise WeightFileNotFound(path=path, reason=error.strerror or str(error)) from error


def _tensors(path: str, request: PackRequest) -> tuple[dict[str, StoredTensor], dict[str, str]]:
    """The tensors and the metadata of one file.

    The file may have been replaced since the library looked at it, so offsets are checked here too: nothing
    outside of the mapped bytes may be read.
    """
    data = map_file(path)
    if data.size:  # the library maps files too, and says of an empty one only that it cannot
        _check_by_library(path)
    size = int.from_bytes(data[:_LENGTH].tobytes(), "little")
    start = _LENGTH + size
    if data.size < _LENGTH or start > data.size:
        reason = f"its header needs {start} bytes, it has {data.size}"
        raise WeightFileDamaged(path=path, format="safetensors", reason=reason)
    try:
        header = json.loads(data[_LENGTH:start].tobytes())
        said = dict(header.pop("__metadata__", None) or {})
        found = {name: _tensor(name, entry, path, data, start) for name, entry in header.items()}
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, WeightFileDamaged):
            raise
        reason = f"its header is not understood ({type(error).__name__}: {error!s:.100})"
        raise WeightFileDamaged(path=path, format="safetensors", reason=reason) from error
    return {name: _packed(tensor, request) for name, tensor in found.items()}, said


def _tensor(name: str, entry: Any, path: str, data: Array, start: int) -> StoredTensor:
    """One entry of a header, checked against the bytes of the file."""
    kind, shape, (first, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    numbers = (*shape, first, end)
    if any(type(number) is not int or not 0 <= number <= MAX_SIZE for number in numbers):
        raise ValueError(f"tensor {name} has sizes {numbers!r:.100}")
    if not first <= end <= data.size - start:
        raise ValueError(f"tensor {name} ends at byte {start + end} of {data.size}")
    dtype = TYPES.get(kind)
    if dtype is None:
        return StoredTensor(name, shape, str(kind), path, partial(_refuse, path, name, str(kind)))
    if int(np.prod(shape, dtype=object)) * dtype.itemsize != end - first:
        raise ValueError(f"tensor {name} has {end - first} bytes for {kind} of shape {shape}")
    return StoredTensor(name, shape, kind, path, partial(view, data, start + first, shape, dtype))


def _refuse(path: str, name: str, kind: str) -> Array:
    raise unsupported_type(path, name, kind, TYPES)


def _packed(tensor: StoredTensor, request: PackRequest) -> StoredTensor:
    """The tensor, with the function that packs it where the request wants it packed."""
    if not request.wants(tensor.name, tensor.shape):
        return tensor
    return tensor.to_be_packed(lambda: request.pack(tensor.array()))
