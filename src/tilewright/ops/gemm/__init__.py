"""GEMM: C = alpha·A·B + beta·C."""
