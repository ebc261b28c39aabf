"""Unary primitives: B = op(A), element by element, with or without transposition."""
