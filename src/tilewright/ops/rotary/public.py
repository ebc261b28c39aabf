"""The public function of rotary embeddings, as a builtin whose repeated calls are machine code."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tilewright.ops.rotary.call import prepare_rotary
from tilewright.ops.rows.kernel import Request, served
from tilewright.spec.arguments import check_flag
from tilewright.spec.rotary import Pairing

if TYPE_CHECKING:
    from tilewright.calls.operands import Array
    from tilewright.typing import ArrayLike, AttentionLayoutName, OutArray


@served
def rotary(
    x: ArrayLike,
    cos: ArrayLike,
    sin: ArrayLike,
    positions: ArrayLike | None = None,
    *,
    interleaved: bool = False,
    layout: AttentionLayoutName = "bhsd",
    out: OutArray | None = None,
    threads: int | None = None,
) -> Request[Array]:
    """Rotary position embedding: pairs of elements of queries or keys, rotated by angles of their positions.

    Parameters
    ----------
    x : array_like, shape (batch, heads, sequence, d)
        Queries or keys, of any strides; in layout "bshd" (batch, sequence, heads, d). Without batch 3-D, of
        one head 2-D. float32, float64, bfloat16 or float16; integers become the floats that NumPy's functions
        make of them.
    cos, sin : array_like, shape (positions, pairs)
        Cosine and sine of the angle of each pair at each position, as `rotary_tables` makes them. The first
        2·pairs elements of a head are rotated, and those behind them stay.
    positions : array_like of integers, shape (batch, sequence) or what broadcasts to it, optional
        The row of the tables for each row of a sequence; by default the first rows. Checked in every call.
    interleaved : bool, optional
        Whether elements 2j and 2j + 1 are a pair (GPT-J, and the paper), or elements j and j + pairs
        (GPT-NeoX, Llama).
    layout : "bhsd" or "bshd"
    out : numpy.ndarray, optional
        Receives the result; of its shape. May be x itself, or share memory with an operand.
    threads : int, optional
        The most threads of this call; as many as `set_num_threads` says by default.

    Returns
    -------
    numpy.ndarray of x's shape, strides and type, or `out`
        (a, b) becomes (a·cos - b·sin, b·cos + a·sin), computed in float32 (of float64 in float64) and rounded
        once.

    Raises
    ------
    RotaryAxes, RotaryTables, RotaryPositions, InvalidIndices, IndexPastEnd, InvalidChoice, InvalidFlag,
    UnsupportedDtype, InvalidOperand, OutShape, OutDtype, OutReadOnly, OutNotArray, OutOverlapsItself,
    InvalidThreads
        Each before `out` changes.

    Notes
    -----
    Repeated calls are machine code where positions are in an array; a list or a number goes through Python.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> cos, sin = tw.rotary_tables(8, 4)
    >>> q = np.ones((1, 2, 3, 4), np.float32)
    >>> tw.rotary(q, cos, sin)[0, 0, 0]
    array([1., 1., 1., 1.], dtype=float32)
    >>> bool((tw.rotary(q, cos, sin, [[0, 1, 2]]) == tw.rotary(q, cos, sin)).all())
    True

    Source: Su et al., RoFormer, arXiv:2104.09864.
    """
    pairing = Pairing.INTERLEAVED if check_flag(interleaved, "interleaved") else Pairing.HALVES
    prepare = partial(prepare_rotary, x, (cos, sin), positions, out, pairing=pairing, layout=layout)
    return Request(prepare, threads)
