"""Kernels compiled ahead of time for C and C++: machine code, a header, and what picks by the CPU."""
