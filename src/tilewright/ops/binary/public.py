"""The public functions of pairs of elements, as builtins whose repeated calls are machine code."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tilewright.ops.binary.call import prepare_halves, prepare_pairs
from tilewright.ops.rows.kernel import Request, served
from tilewright.spec.arguments import check_flag, parse_choice
from tilewright.spec.binary_functions import BinaryOp
from tilewright.spec.epilogue import ACTIVATIONS
from tilewright.spec.functions import UnaryOp

if TYPE_CHECKING:
    from tilewright.calls.operands import Array
    from tilewright.typing import ActivationName, ArrayLike, OutArray


@served
def gated(
    x: ArrayLike,
    gate: ArrayLike | None = None,
    activation: ActivationName | None = "silu",
    out: OutArray | None = None,
    *,
    gate_first: bool = True,
    threads: int | None = None,
) -> Request[Array]:
    """x · activation(gate): the gate of SwiGLU, GeGLU and their relatives, in one pass.

    Parameters
    ----------
    x, gate : array_like
        Of shapes that broadcast, any strides. float32, float64, bfloat16 or float16; two types become the one
        that holds both, integers the floats that NumPy's functions make of them. Without `gate`, x has both
        along its last axis, of shape (..., 2n), as one product with two merged weights makes them.
    activation : str, optional
        "silu" (SwiGLU), "gelu" (GeGLU), "gelu_tanh", "relu" (ReGLU), "sigmoid" (GLU), "tanh"; None for the
        product alone.
    out : numpy.ndarray, optional
        Receives the result; of its shape. May be an operand, or share memory with one.
    gate_first : bool, optional
        Whether the first half of a merged x is the gate, or the second one. Not read where `gate` is given.
    threads : int, optional
        The most threads of this call; as many as `set_num_threads` says by default.

    Returns
    -------
    numpy.ndarray of the operands' type, or `out`
        Computed in float32 (of float64 in float64) and rounded once; NaN where an operand is NaN.

    Raises
    ------
    GateHalves, PairShapes, InvalidChoice, UnsupportedDtype, InvalidOperand, OutShape, OutDtype, OutReadOnly,
    OutNotArray, OutOverlapsItself, InvalidThreads
        Each before `out` changes.

    Notes
    -----
    Libraries differ in which half is the gate: the first one in vLLM, llama.cpp and Phi-3, the second one in
    `torch.nn.functional.glu`.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.gated(np.array([2.0, 3.0]), np.array([-1.0, 4.0]), "relu")
    array([ 0., 12.])
    >>> tw.gated(np.array([-1.0, 4.0, 2.0, 3.0]), activation="relu")
    array([ 0., 12.])

    Source: Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202.
    """
    first = check_flag(gate_first, "gate_first")
    op = None if activation is None else parse_choice(UnaryOp, activation, "activation", ACTIVATIONS)
    if gate is None:
        return Request(partial(prepare_halves, x, op, out, gate_first=first), threads)
    pair = partial(prepare_pairs, BinaryOp.MULTIPLY, x, gate, out, op, names=("x", "gate"))
    return Request(pair, threads)
