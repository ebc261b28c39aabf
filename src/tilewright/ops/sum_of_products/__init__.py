"""Sums of elementwise products: einsums without a matrix product."""
