"""`tilewright.einsum` as a builtin: a repeated call looks up what the first one decided.

Repeated calls on plain arrays are machine code (`native_entry.py`), all others this Python function.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from tilewright.llvm.builtin import Builtin
from tilewright.ops.einsum import call as implementation
from tilewright.ops.einsum.prepared import MOST_CALLS, calls
from tilewright.ops.einsum.run import EinsumOptions
from tilewright.ops.einsum.subscripts import interleaved
from tilewright.ops.gemm.gufuncs import refuse_keywords
from tilewright.spec.arguments import as_items, as_text
from tilewright.threads.pool import limited

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

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


def _einsum(
    subscripts: Any = (),
    /,
    *operands: Any,
    out: NDArray[Any] | None = None,
    dtype: DTypeLike | None = None,
    order: str = "K",
    casting: str = "safe",
    optimize: Any = "auto",
    threads: int | None = None,
    **unexpected: Any,
) -> Any:
    """The Python half of `einsum`: calls that machine code does not know yet, and every error."""
    if unexpected:
        refuse_keywords("einsum", unexpected)
    if threads is not None or (type(subscripts) is not str and type(subscripts) is not bytes):
        return _plainly((subscripts, *operands), threads, (out, dtype, order, casting, optimize))
    key: tuple[Any, ...] | None = None
    if out is dtype is None and type(optimize) is type(order) is type(casting) is str:
        if optimize != "auto" or order != "K" or casting != "safe":
            pass
        elif len(operands) == 2:  # as for more, in half the time
            a, b = operands
            if type(a) is type(b) is ndarray:
                key = (subscripts, a.shape, a.strides, a.dtype, b.shape, b.strides, b.dtype)
        elif all(type(x) is ndarray for x in operands):
            key = (subscripts, *[(x.shape, x.strides, x.dtype) for x in operands])
        known = None if key is None else calls.get(key)
        if known is not None:
            return known(*operands)
    options = EinsumOptions(out, dtype, order, casting, optimize)
    return implementation.einsum(subscripts, operands, options, key, _builtin)


#: The keywords of a call but `threads`, and what they are by default.
_KEYWORDS = ("out", "dtype", "order", "casting", "optimize")
_DEFAULTS = (None, None, "K", "safe", "auto")

#: The text of lists of labels, always the same object, so that machine code knows it. Emptied when full.
_texts: dict[tuple[Any, ...], str] = {}


def _plainly(arguments: tuple[Any, ...], threads: int | None, options: tuple[Any, ...]) -> Any:
    """The same call with text in place of labels in lists, and without `threads`: one for machine code."""
    subscripts = arguments[0]
    if isinstance(subscripts, (str, bytes)):  # of no other class, whose comparison may be its own
        text = as_text(subscripts) if isinstance(subscripts, str) else bytes(subscripts)
        arguments = (text, *arguments[1:])
    else:
        arguments = _with_text(arguments)
    given = zip(_KEYWORDS, options, _DEFAULTS, strict=True)
    named = {name: value for name, value, default in given if value is not default}
    if threads is None:
        return einsum(*arguments, **named)
    with limited(threads):
        return einsum(*arguments, **named)


#: Types of lists of labels, and of labels, that are a key.
_LISTS, _LABELS = frozenset({list, tuple}), frozenset({int, type(...)})


def _with_text(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Text and operands of the form ``einsum(a, [0, 1], b, [1, 2], [0, 2])``."""
    pairs, rest = divmod(len(arguments), 2)
    lists = arguments[1 : 2 * pairs : 2] + (arguments[-1:] if rest else ())
    if not _LISTS.issuperset(map(type, lists)):
        found = [(labels, as_items(labels)) for labels in lists]
        lists = tuple(labels if items is None else items for labels, items in found)
    # As a key 1.0 is 1, but it is no label; nothing else is looked up.
    plain = _LISTS.issuperset(map(type, lists)) and _LABELS.issuperset(map(type, chain(*lists)))
    key = (pairs, *map(tuple, lists)) if plain else ()
    text = _texts.get(key) if plain else None
    if text is None:
        operands = arguments[0 : 2 * pairs : 2]
        given = [value for pair in zip(operands, lists, strict=False) for value in pair]
        text, _ = interleaved([*given, *lists[pairs:]])
        if len(_texts) >= MOST_CALLS:
            _texts.clear()
        if plain:
            _texts[key] = text
    return (text, *arguments[0 : 2 * pairs : 2])


_builtin = Builtin(_einsum, "einsum", "tilewright", _EINSUM_DOC)

if TYPE_CHECKING:
    einsum = _einsum
else:
    einsum = _builtin.function
