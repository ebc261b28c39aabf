"""The products that tests of every element type take: each type alone, two types, and one into another."""

from __future__ import annotations

from tilewright.spec.dtype import GEMM_DTYPES
from tilewright.spec.problem import ProductTypes

#: A, B, C.
MIXED: tuple[tuple[str, str, str], ...] = (
    ("bf16", "bf16", "f32"),
    ("f16", "f16", "f32"),
    ("i8", "i8", "i32"),
    ("u8", "u8", "i32"),
    ("u8", "i8", "i32"),
    ("i8", "u8", "i32"),
    ("u8", "i8", "i16"),
    ("i16", "i16", "i32"),
    ("i4", "i4", "i32"),
    ("u4", "i8", "i32"),
    ("bf16", "f32", "f32"),
    ("f16", "bf16", "f16"),
    ("f32", "f32", "f16"),
    ("f64", "f64", "f32"),
    ("c128", "c128", "c64"),
    ("i32", "i64", "i8"),
    ("f8e4m3", "f8e4m3", "f32"),
    ("f8e4m3", "f8e5m2", "bf16"),
    ("f32", "f8e5m2", "f32"),
)
TYPES: tuple[ProductTypes, ...] = (
    *(ProductTypes.parse(dtype) for dtype in GEMM_DTYPES),
    *(ProductTypes.parse(*names) for names in MIXED),
)
