"""Tensors of model files as arrays; data in other files is read from the model's folder only."""

from __future__ import annotations

import math
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.errors import ExternalData, InvalidModel
from tilewright.onnx.library import onnx

#: Bits of the element types that share bytes in files.
_PACKED_BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4}
#: Elements of a tensor, at most: what an index of 64 bits reaches.
_MOST_ELEMENTS = 1 << 60


def element_dtype(code: int) -> np.dtype[Any] | None:
    """The NumPy dtype of an element type's number in model files; None for strings and unknown numbers."""
    try:
        found: np.dtype[Any] = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code))
    except (KeyError, ValueError, TypeError):
        return None
    return None if found.kind in "OUS" else found


def tensor_array(tensor: onnx.TensorProto, model: str, folder: Path | None) -> Array:
    """The array of a tensor.

    Parameters
    ----------
    model : what messages call the model.
    folder : where data in other files may lie; None if no model file is known.

    Raises
    ------
    InvalidModel : data that does not fit the tensor's type and shape.
    ExternalData
    """
    dtype = element_dtype(tensor.data_type)
    if dtype is None:
        raise InvalidModel(model=model, reason=f"tensor {tensor.name!r} has element type {tensor.data_type}")
    shape = tuple(tensor.dims)
    if any(length < 0 for length in shape) or math.prod(shape) > _MOST_ELEMENTS:
        raise InvalidModel(model=model, reason=f"tensor {tensor.name!r} has shape {shape}")
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return _external(tensor, dtype, shape, model, folder)
    try:
        found: Array = np.asarray(onnx.numpy_helper.to_array(tensor))
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidModel(model=model, reason=f"tensor {tensor.name!r}: {error}") from error
    if found.shape != shape or found.dtype != dtype:
        raise InvalidModel(model=model, reason=f"tensor {tensor.name!r} has no data of shape {shape}")
    return found


def _external(
    tensor: onnx.TensorProto, dtype: np.dtype[Any], shape: tuple[int, ...], model: str, folder: Path | None
) -> Array:
    """The array of a tensor whose data is in a file beside the model."""

    def refuse(reason: str) -> ExternalData:
        return ExternalData(model=model, name=tensor.name, reason=reason)

    entries = {entry.key: entry.value for entry in tensor.external_data}
    count = math.prod(shape)
    nbytes = -(-count * _PACKED_BITS.get(dtype.name, 8 * dtype.itemsize) // 8)
    if folder is None:
        raise refuse("the model was not read from a file; load it by its path")
    path = _inside(folder, entries.get("location", ""))
    if path is None:
        raise refuse(f"location {entries.get('location', '')!r} is no file in the model's folder")
    try:
        offset, length = int(entries.get("offset") or 0), int(entries.get("length") or nbytes)
    except ValueError as error:
        raise refuse("offset and length must be integers") from error
    if length != nbytes:
        raise refuse(f"{length} bytes, must be {nbytes} for shape {shape} of {dtype}")
    if offset < 0 or offset + nbytes > path.stat().st_size:
        raise refuse(f"bytes {offset} to {offset + nbytes} of a file of {path.stat().st_size}")
    try:
        raw = np.fromfile(path, np.uint8, nbytes, offset=offset)
    except OSError as error:
        raise refuse(error.strerror or str(error)) from error
    if raw.size != nbytes:
        raise refuse(f"the file ends after {raw.size} of {nbytes} bytes")
    if dtype.name in _PACKED_BITS:
        plain = onnx.TensorProto(data_type=tensor.data_type, dims=shape, raw_data=raw.tobytes())
        return np.asarray(onnx.numpy_helper.to_array(plain))
    return raw.view(dtype).reshape(shape)


def _inside(folder: Path, location: str) -> Path | None:
    """The file at a relative location, if it is in the folder once all links are followed."""
    relative = PurePosixPath(location)
    if not location or "\0" in location or relative.is_absolute() or ".." in relative.parts:
        return None
    path = (folder / relative).resolve()
    return path if path.is_relative_to(folder.resolve()) and path.is_file() else None
