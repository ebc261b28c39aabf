"""DLPack: arrays of other libraries as NumPy views, including the element types that NumPy does not import.

Source: DLPack 1.1, dlpack.h and the Python specification (https://dmlc.github.io/dlpack/latest/).
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.spec.dtype import named_numpy_dtype

#: Names of unused capsules, and of used ones.
_VERSIONED, _UNVERSIONED, _USED = b"dltensor_versioned", b"dltensor", b"used_"
_CPU, _READ_ONLY = 1, 1
#: Element types by code and bits that `numpy.from_dlpack` refuses.
_EXTENDED = {(4, 16): "bfloat16", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2"}


class _Tensor(ctypes.Structure):
    """DLTensor; strides are in elements."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("device_number", ctypes.c_int32),
        ("axes", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


class _Owner:
    """Memory of a capsule, which is given back with the last view of it."""

    def __init__(self, capsule: Any) -> None:
        api = ctypes.pythonapi
        is_valid, pointer, rename = api.PyCapsule_IsValid, api.PyCapsule_GetPointer, api.PyCapsule_SetName
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        is_valid.argtypes = rename.argtypes = (ctypes.py_object, ctypes.c_char_p)
        versioned = bool(is_valid(capsule, _VERSIONED))
        name = _VERSIONED if versioned else _UNVERSIONED
        kind: Any = _Versioned if versioned else _Managed
        self._used = _USED + name  # the capsule points to this name
        self._capsule = capsule
        self._managed = kind.from_address(pointer(capsule, name))
        rename(capsule, self._used)
        tensor = self._managed.tensor
        dtype = _EXTENDED.get((tensor.code, tensor.bits))
        if tensor.device != _CPU or tensor.lanes != 1 or dtype is None:
            raise BufferError(f"device {tensor.device}, type {tensor.code} of {tensor.bits} bits")
        self.dtype: Any = named_numpy_dtype(dtype)
        size = tensor.bits // 8
        shape = tuple(tensor.shape[: tensor.axes])
        strides = tuple(size * step for step in tensor.strides[: tensor.axes]) if tensor.strides else None
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            "typestr": f"|u{size}" if size == 1 else f"<u{size}",
            "data": ((tensor.data or 0) + tensor.offset, not versioned or self._managed.flags & _READ_ONLY),
        }

    def __del__(self) -> None:
        managed = getattr(self, "_managed", None)
        if managed is not None and managed.deleter:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)(ctypes.addressof(managed))


def view(value: Any) -> Array:
    """An array in the memory of an object that exports DLPack.

    Read-only where the exporter says so, or cannot say.

    Raises
    ------
    BufferError, or what the exporter raises : if the elements are not in this memory, or of no known type.

    >>> view(np.arange(3.0))
    array([0., 1., 2.])
    """
    device = getattr(value, "__dlpack_device__", lambda: (_CPU, 0))()
    if device[0] != _CPU:
        raise BufferError(f"it is on device {tuple(device)}, not in host memory")
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError):
        try:
            capsule = value.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = value.__dlpack__()
        owner = _Owner(capsule)
        found: Array = np.asarray(owner)
        return found.view(owner.dtype)
