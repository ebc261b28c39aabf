"""einsum, contraction trees, and their relatives of NumPy."""
