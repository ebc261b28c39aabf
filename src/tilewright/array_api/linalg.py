"""The products of the standard's `linalg` extension."""

from tilewright.array_api.products import matmul, matrix_transpose, outer, tensordot, vecdot

__all__ = ["matmul", "matrix_transpose", "outer", "tensordot", "vecdot"]
