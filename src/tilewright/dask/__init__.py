"""Dask: products, attention, norms and graphs on arrays in chunks, with bounded memory and plans."""

from tilewright.dask.planning import Plan, plan
from tilewright.dask.products import linear, matmul

__all__ = ["Plan", "linear", "matmul", "plan"]
