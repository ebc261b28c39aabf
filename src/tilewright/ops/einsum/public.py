"""`tilewright.einsum` as a builtin, whose repeated calls are machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from tilewright.calls.repeated import Repeated
from tilewright.ops.einsum import call
from tilewright.ops.einsum.run import EinsumOptions
from tilewright.ops.einsum.subscripts import interleaved
from tilewright.threads.pool import limited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike, NDArray

    from tilewright.typing import ArrayLike, Casting, Order, OutArray

_EINSUM_DOC = """\
einsum(subscripts, /, *operands, out=None, dtype=None, order='K', casting='safe', optimize='auto',
       threads=None)
--

Sums of products of elements, named by labels of axes: `numpy.einsum` on compiled kernels.

Parameters
----------
subscripts : str
    Labels of each operand's axes, one letter each, and of the result's: ``"ij,jk->ik"``. Without "->" the
    result has the labels that occur once, in alphabetical order. "..." stands for all axes without a
    label, which broadcast. A label twice on one operand is its diagonal; one that the result lacks is
    summed. In place of text and operands also ``einsum(a, [0, 1], b, [1, 2], [0, 2])``, with any sequences
    of integers.
operands : array_like
    Any number, strides, byte order. An axis of length 1 repeats along a longer one of its label.
out : numpy.ndarray, optional
    Receives the result; exactly of its shape, any strides. May share memory with operands.
dtype : optional
    Element type of the result. By default NumPy's promotion of operands and `out`. As in `matmul`, operands
    are not rounded to a narrower result; steps are computed in the type that operands and result have in
    common.
order : "K", "C", "F" or "A", also in small letters
    Order in memory of a result that is not `out`; "K": any, mostly C.
casting : "safe", "no", "equiv", "same_kind" or "unsafe"
    What may be converted to the type of the result, and from that to `out`.
optimize : bool, str, tuple or list
    The order in which three or more operands meet: "auto" or True, "greedy", "optimal" or another search
    of opt_einsum's, in a tuple with the most elements of an intermediate result; False: from left to
    right; or a path, as `numpy.einsum_path` and `opt_einsum.contract_path` return it.
threads : int, optional
    As in `matmul`.

Returns
-------
numpy.ndarray, a scalar where the result has no axes, or `out`
    Of one operand of which nothing is summed a view, that can be written if the operand can. Of operands
    whose library has functions of its own (``__array_function__``) what `numpy.einsum` returns.

Raises
------
MalformedSubscripts, OutputLabelUnknown, OutputLabelRepeated, EllipsisNotInOutput
    The first three point at the place in the text.
OperandCount, AxesWithoutLabels, LabelSizes, SublistLabel, InvalidOperand, InvalidPath, InvalidChoice,
EinsumCast, UnsupportedDtype, NoCommonDtype, OutShape, OutReadOnly, OutNotArray, OutOverlapsItself,
InvalidThreads, MaskedOperand, UnexpectedKeyword
    Each before `out` changes.

Notes
-----
Each pair of operands is a `matmul`, of the operands where they stand if axes that play one role can be
walked with one stride; otherwise one is copied first. Sums of one operand, products without a sum and
those of rows with rows are kernels of their own where adjacent elements make vectors. Results between steps
of 16-bit floats stay in float32, and the result is rounded once. Unlike NumPy's, `dtype` and `order` also
apply where the result could be a view. All that was decided, the path included, is kept for the next call
with such operands.

Examples
--------
>>> import numpy as np, tilewright as tw
>>> a, b = np.ones((2, 3)), np.ones((3, 4))
>>> tw.einsum("ij,jk->ki", a, b).shape
(4, 2)
>>> tw.einsum("ii", np.eye(3))
np.float64(3.0)
"""


@overload
def _einsum(
    subscripts: str | bytes,
    /,
    *operands: ArrayLike,
    out: OutArray | None = None,
    dtype: DTypeLike | None = None,
    order: Order = "K",
    casting: Casting = "safe",
    optimize: Any = "auto",
    threads: int | None = None,
) -> NDArray[Any]: ...
@overload
def _einsum(
    operand: ArrayLike,
    labels: Sequence[int],
    /,
    *others: ArrayLike | Sequence[int],
    out: OutArray | None = None,
    dtype: DTypeLike | None = None,
    order: Order = "K",
    casting: Casting = "safe",
    optimize: Any = "auto",
    threads: int | None = None,
) -> NDArray[Any]: ...
def _einsum(
    subscripts: Any = (),
    /,
    *operands: Any,
    out: Any = None,
    dtype: DTypeLike | None = None,
    order: Order = "K",
    casting: Casting = "safe",
    optimize: Any = "auto",
    threads: int | None = None,
) -> Any:
    """The Python half of `einsum`: the first call of each kind, and every error."""
    if isinstance(subscripts, bytes):
        text, given = bytes(subscripts).decode("latin-1"), [*operands]
    elif isinstance(subscripts, str):
        text, given = str.__str__(subscripts), [*operands]  # a class of its own may have its own comparison
    else:
        text, given = interleaved((subscripts, *operands))
    with limited(threads):
        return call.einsum(text, given, EinsumOptions(out, dtype, order, casting, optimize))


if TYPE_CHECKING:
    einsum = _einsum
else:
    einsum = Repeated(_einsum, "einsum", "tilewright", _EINSUM_DOC).function
