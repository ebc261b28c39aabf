"""Products with the meaning of the Array API standard, for NumPy's arrays and those of other libraries.

Source: Python array API standard, version 2025.12, https://data-apis.org/array-api/latest/.
"""

from tilewright.array_api import linalg
from tilewright.array_api.products import einsum, matmul, matrix_transpose, tensordot, vecdot

__all__ = ["einsum", "linalg", "matmul", "matrix_transpose", "tensordot", "vecdot"]
