"""Batch-reduce GEMM: C = beta·C + sum of A_b·B_b, all sizes fixed."""
