"""The structures of XLA's foreign function interface that a handler reads and writes.

Source: xla/ffi/api/c_api.h of jaxlib, which `jax.ffi.include_dir()` contains; version 0.3. Fields are only
ever added to the ends of these structures, whose first field is their size in bytes.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum

#: The major version that the structures here belong to; others are refused.
MAJOR = 0


class ExecutionStage(IntEnum):
    """`XLA_FFI_ExecutionStage`: what a handler is called for."""

    EXECUTE = 3


class ErrorCode(IntEnum):
    """`XLA_FFI_Error_Code`."""

    INVALID_ARGUMENT = 3
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13


class AttributeType(IntEnum):
    """`XLA_FFI_AttrType`."""

    ARRAY = 1
    STRING = 4


#: `XLA_FFI_Extension_Metadata`: XLA asks a handler about itself.
METADATA = 1


class Extension(ctypes.Structure):
    """`XLA_FFI_Metadata_Extension`; of other kinds the first three fields."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("type", ctypes.c_int32),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.c_void_p),
    )


class ApiVersion(ctypes.Structure):
    """`XLA_FFI_Api_Version`."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("major_version", ctypes.c_int32),
        ("minor_version", ctypes.c_int32),
    )


class Metadata(ctypes.Structure):
    """`XLA_FFI_Metadata`, up to the traits."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("api_version", ApiVersion),
        ("traits", ctypes.c_uint32),
    )


class Api(ctypes.Structure):
    """`XLA_FFI_Api`, up to the function that handlers need."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("api_version", ApiVersion),
        ("internal_api", ctypes.c_void_p),
        ("error_create", ctypes.c_void_p),
    )


class ErrorCreate(ctypes.Structure):
    """`XLA_FFI_Error_Create_Args`."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("message", ctypes.c_void_p),
        ("errc", ctypes.c_int32),
    )


#: `XLA_FFI_Error_Create_Args_STRUCT_SIZE`: without the padding at the end.
ERROR_CREATE_BYTES = ErrorCreate.errc.offset + 4


class Buffers(ctypes.Structure):
    """`XLA_FFI_Args` and `XLA_FFI_Rets`."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("items", ctypes.c_void_p),
    )


class Attributes(ctypes.Structure):
    """`XLA_FFI_Attrs`; sorted by name."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("items", ctypes.c_void_p),
    )


class CallFrame(ctypes.Structure):
    """`XLA_FFI_CallFrame`, up to the attributes."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("api", ctypes.c_void_p),
        ("ctx", ctypes.c_void_p),
        ("stage", ctypes.c_int32),
        ("args", Buffers),
        ("rets", Buffers),
        ("attrs", Attributes),
    )


class XlaBuffer(ctypes.Structure):
    """`XLA_FFI_Buffer`."""

    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_void_p),
    )


class ArrayAttribute(ctypes.Structure):
    """`XLA_FFI_Array`."""

    _fields_ = (("dtype", ctypes.c_int32), ("size", ctypes.c_size_t), ("data", ctypes.c_void_p))


class TextAttribute(ctypes.Structure):
    """`XLA_FFI_ByteSpan`."""

    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_size_t))
