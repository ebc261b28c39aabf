"""Modules of LLVM IR, of any language, whose loop nests become products of matrices: `tilewright opt`."""
