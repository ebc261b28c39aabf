"""Dask: products, attention, norms and graphs on arrays in chunks, with bounded memory and plans."""

from tilewright.dask.attention import attention
from tilewright.dask.einsums import einsum, tensordot
from tilewright.dask.embedding import embed
from tilewright.dask.planning import Plan, plan
from tilewright.dask.plugin import TilewrightPlugin, workers
from tilewright.dask.products import linear, matmul
from tilewright.dask.rows import layer_norm, rms_norm, softmax

__all__ = [
    "Plan",
    "TilewrightPlugin",
    "attention",
    "einsum",
    "embed",
    "layer_norm",
    "linear",
    "matmul",
    "plan",
    "rms_norm",
    "softmax",
    "tensordot",
    "workers",
]
