"""`tilewright.accelerate`: loop nests of Python and Numba functions replaced by kernels."""
