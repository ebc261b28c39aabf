"""Files mapped into memory: typed views of their bytes, checked against the length of the file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.errors import WeightFileNotFound
from tilewright.reading import open_regular


def map_file(path: str) -> Array:
    """The bytes of a regular file, read-only, mapped into memory; of an empty one, no bytes.

    Raises
    ------
    WeightFileNotFound
    """
    try:
        with open_regular(path) as stream:
            length = os.fstat(stream.fileno()).st_size
            if not length:
                return np.empty(0, np.uint8)
            return np.asarray(np.memmap(stream, dtype=np.uint8, mode="r", shape=(length,)))
    except OSError as error:
        raise WeightFileNotFound(path=path, reason=error.strerror or str(error)) from error


def view(data: Array, start: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array in the bytes of a file; the caller has checked that they are there."""
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    assert 0 <= start <= start + size <= data.size
    found: Array = data[start : start + size].view(dtype).reshape(shape)
    return found
