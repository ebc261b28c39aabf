"""NumPy's own products on the kernels of this package, in the whole process; not `install`, a public name."""
