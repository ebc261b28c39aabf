"""Tensor contractions given dimension by dimension."""
