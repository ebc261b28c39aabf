"""The public function of embeddings, as a builtin whose repeated calls are machine code."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tilewright.ops.embedding.call import prepare_embedding
from tilewright.ops.rows.kernel import Request, served

if TYPE_CHECKING:
    from tilewright.calls.operands import Array
    from tilewright.ops.linear.activations import QuantizedRows
    from tilewright.typing import ArrayLike, OutArray


@served
def embedding(
    table: ArrayLike | QuantizedRows,
    indices: ArrayLike,
    out: OutArray | None = None,
    *,
    scale: float | None = None,
    threads: int | None = None,
) -> Request[Array]:
    """Rows of a table by their indices, as `torch.nn.functional.embedding`.

    Parameters
    ----------
    table : array_like, shape (rows, d)
        float32, float64, bfloat16 or float16; elements of rows adjacent, or it is copied in each call. Or
        `QuantizedRows`: int8 with a scale for each row.
    indices : array_like of integers, any shape
        From 0 to rows - 1, checked in every call; negative ones are refused.
    out : numpy.ndarray, optional
        Receives the result; of its shape.
    scale : float, optional
        Multiplies the result, in float32 (of float64 in float64) and before it is rounded.
    threads : int, optional
        The most threads of this call; as many as `set_num_threads` says by default.

    Returns
    -------
    numpy.ndarray, shape indices.shape + (d,), or `out`
        Of the table's type; float32 of quantised rows. Without `scale` the rows are copied bit by bit.

    Raises
    ------
    EmbeddingTable, InvalidIndices, IndexPastEnd, InvalidScalar, UnsupportedDtype, InvalidOperand, OutShape,
    OutDtype, OutReadOnly, OutNotArray, OutOverlapsItself, InvalidThreads
        Each before `out` changes.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> table = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> tw.embedding(table, [2, 0])
    array([[5., 6.],
           [1., 2.]])
    >>> tw.embedding(table, [1], scale=10.0)
    array([[30., 40.]])
    """
    return Request(partial(prepare_embedding, table, indices, out, scale), threads)
