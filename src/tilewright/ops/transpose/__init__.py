"""Transposes: any permutation of the axes of an array."""
