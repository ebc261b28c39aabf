"""Elementwise functions, and transposition through registers."""
