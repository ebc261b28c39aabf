"""Lowering of tile IR to LLVM IR: the only package in which `ir`, `micro` and `llvm` meet."""
