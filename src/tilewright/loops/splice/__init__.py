"""Products found in LLVM IR become calls of kernels, in the function that had the loops."""
