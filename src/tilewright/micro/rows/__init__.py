"""Passes over rows: reductions and norms."""
