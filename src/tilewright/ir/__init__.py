"""Tile IR: the one loop language between a problem and LLVM."""
