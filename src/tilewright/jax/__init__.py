"""JAX: matmul, einsum and attention as primitives that run Tilewright's kernels, with vmap and gradients."""

from tilewright.jax.attention import attention
from tilewright.jax.handler import handler as _handler
from tilewright.jax.products import einsum, matmul

__all__ = ["attention", "einsum", "matmul"]

_handler()  # programs that JAX stored need it, without tracing
