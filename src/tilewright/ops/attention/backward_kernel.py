"""Kernels of attention's gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tilewright.calls.operands import Array, data_address
from tilewright.compiler.kernel import Kernel
from tilewright.ops.attention.backward_cut import BACKWARD_FIELDS
from tilewright.ops.attention.backward_nest import backward_scalars
from tilewright.ops.attention.backward_problem import AttentionBackward
from tilewright.ops.attention.kernel import Launch, element_steps
from tilewright.threads.pool import call_team


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


class AttentionBackwardKernel(Kernel):
    """A kernel of an `AttentionBackward`."""

    problem: AttentionBackward

    def launch(self, call: BackwardCall) -> Launch:
        """Every argument of a call except array addresses: the same for all arrays of these shapes."""
        problem = self.problem
        heads, kv_heads = call.q.shape[1], call.k.shape[1]
        queries, keys = (int(call.items[:, BACKWARD_FIELDS.index(name)].max(initial=0)) for name in LENGTHS)
        sizes = [len(call.items), kv_heads, heads // kv_heads, queries, keys]
        for array in (call.q, call.k, call.v):
            sizes += element_steps(array, (1, 2, 3))
        for array in (call.out, call.dout, call.dq, call.dk, call.dv):
            sizes += element_steps(array, (1, 2))
        sizes.append(call.lse.shape[-1])
        if call.mask is not None:
            sizes += element_steps(call.mask, (1, 2, 3))
        scalars = (call.scale, call.softcap)[: len(backward_scalars(problem))]
        work = len(call.items) * heads * queries * keys * (3 * problem.head_dim + 2 * problem.value_dim)
        return Launch((*sizes, *scalars), work)

    def start(self, launch: Launch, addresses: Iterable[int]) -> None:
        """Runs on the arrays at some addresses, in the order of `BackwardCall`'s fields."""
        with self.pool.block() as scratch, call_team(launch.work) as team:
            self.function(*addresses, *launch.numbers, scratch, team)

    def run(self, call: BackwardCall) -> None:
        """Gradients of arrays that are known to fit; `dq`, `dk`, `dv` and `delta` are written.

        Raises
        ------
        ForeignKernel : if the kernel was compiled for another machine.
        """
        needed = (call.q, call.k, call.v, call.out, call.dout, call.dq, call.dk, call.dv)
        arrays = (*needed, call.items, call.lse, call.delta, call.mask, call.slopes)
        self.start(self.launch(call), [data_address(array) for array in arrays if array is not None])


#: Table columns that hold sizes.
LENGTHS = ("queries", "keys")
