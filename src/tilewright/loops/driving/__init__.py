"""`tilewright cc`: runs compiler commands and replaces loop nests in their LLVM IR."""
