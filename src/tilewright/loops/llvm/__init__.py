"""LLVM IR read as loop nests."""
