"""Symmetric products and products with triangular matrices."""
