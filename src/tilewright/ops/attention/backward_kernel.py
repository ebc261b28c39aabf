"""Calls of the kernels of attention's gradients on validated arrays."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.calls.operands import Array, data_address
from tilewright.compiler.kernel import Kernel
from tilewright.ops.attention.backward_cut import BACKWARD_FIELDS
from tilewright.ops.attention.backward_nest import backward_scalars
from tilewright.ops.attention.kernel import LENGTHS, Launch, element_steps


class BackwardCall(NamedTuple):
    """One kernel call on validated arrays.

    Attributes
    ----------
    q, k, v : views of four axes (batch, heads, rows, columns); the first axis of any array may be replaced by
        the offsets in `items`.
    out, dout : the result of attention and its gradient, columns contiguous.
    dq, dk, dv : output arrays of the gradients, columns contiguous.
    items : the table of `BACKWARD_FIELDS`, int64 of shape (batch, 16).
    lse, delta : float32 (batch, heads, queries), contiguous; the second is written.
    scale : factor of the scores.
    mask : four axes, with stride 0 along broadcast axes.
    slopes : one number per head.
    """

    q: Array
    k: Array
    v: Array
    out: Array
    dout: Array
    dq: Array
    dk: Array
    dv: Array
    items: Array
    lse: Array
    delta: Array
    scale: float
    softcap: float = 0.0
    mask: Array | None = None
    slopes: Array | None = None

    def launch(self, kernel: Kernel) -> Launch:
        """Every argument except array addresses: the same for all arrays of these shapes."""
        problem = kernel.problem
        heads, kv_heads = self.q.shape[1], self.k.shape[1]
        queries, keys = (int(self.items[:, BACKWARD_FIELDS.index(name)].max(initial=0)) for name in LENGTHS)
        sizes = [len(self.items), kv_heads, heads // kv_heads, queries, keys]
        for array in (self.q, self.k, self.v):
            sizes += element_steps(array, (1, 2, 3))
        for array in (self.out, self.dout, self.dq, self.dk, self.dv):
            sizes += element_steps(array, (1, 2))
        sizes.append(self.lse.shape[-1])
        if self.mask is not None:
            sizes += element_steps(self.mask, (1, 2, 3))
        scalars = (self.scale, self.softcap)[: len(backward_scalars(problem))]
        work = len(self.items) * heads * queries * keys * (3 * problem.head_dim + 2 * problem.value_dim)
        return Launch((*sizes, *scalars), work)

    def run(self, kernel: Kernel) -> None:
        """Gradients of arrays that are known to fit; `dq`, `dk`, `dv` and `delta` are written.

        Raises
        ------
        ForeignKernel : if the kernel was compiled for another machine.
        """
        needed = (self.q, self.k, self.v, self.out, self.dout, self.dq, self.dk, self.dv)
        arrays = (*needed, self.items, self.lse, self.delta, self.mask, self.slopes)
        self.launch(kernel).start(kernel, [data_address(array) for array in arrays if array is not None])
