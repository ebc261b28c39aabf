"""Kernels compiled ahead of time for C and C++: machine code, a header, a resolver that selects by CPU."""
