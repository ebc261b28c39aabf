"""`tilewright opt`: loop nests in modules of LLVM IR, from any language, replaced by kernels."""
