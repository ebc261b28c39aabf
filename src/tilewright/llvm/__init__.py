"""LLVM and nothing about GEMM: building functions, target machines, linking and freeing code."""
