"""Every failure a user can see: one class per cause, each with its message and the remedy in it."""

from __future__ import annotations

import reprlib
from typing import Any, ClassVar

import numpy as np
from numpy.exceptions import AxisError

#: Letters of a value that a message quotes.
_MOST_SHOWN = 100


class _Shown(reprlib.Repr):
    """Values in messages: in a few words, whatever they are and whether or not they can be printed."""

    def __init__(self) -> None:
        super().__init__()
        self.maxtuple = self.maxlist = 12
        self.maxstring = self.maxother = self.maxlong = _MOST_SHOWN

    def repr_int(self, x: int, level: int) -> str:  # noqa: ARG002
        """Integers, also long ones."""
        return str(_shown(x))

    def repr_instance(self, x: Any, level: int) -> str:  # noqa: ARG002 - as `reprlib` calls it
        """Anything but the kinds that have a limit of their own."""
        if isinstance(x, np.ndarray) and x.ndim:
            return f"an array of shape {x.shape} and dtype {x.dtype}"
        text = repr(x)
        return text if len(text) <= self.maxother else f"{text[: self.maxother]}..."


_SHOWN = _Shown()


def shown(value: object) -> str:
    """A short description of a value for messages.

    >>> shown("relu"), shown(10**5000), shown([1] * 20)
    ("'relu'", '2**16609 or more', '[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ...]')
    """
    try:
        return _SHOWN.repr(value)
    except Exception:  # its own methods, or the limit of Python on long integers
        return f"a value of type {type(value).__name__}"


#: Bits of the longest integer that a message prints digit by digit.
_PRINTED_BITS = 256


class TilewrightError(Exception):
    """Base of every error this package raises on purpose.

    A subclass declares ``message``, a format string; its fields are the keyword arguments of the
    constructor and stay readable as attributes.

    Examples
    --------
    >>> raise ShapeMismatch(a=(2, 3), b=(4, 5), inner_a=3, inner_b=4)
    Traceback (most recent call last):
    ...
    tilewright.errors.ShapeMismatch: matmul: a has shape (2, 3) and b has shape (4, 5): ...
    """

    message: ClassVar[str] = "{reason}"

    def __init__(self, **fields: object) -> None:
        try:
            text = self.message.format(**{name: _shown(value) for name, value in fields.items()})
        except Exception:  # a value that cannot be printed
            fields = {name: shown(value) for name, value in fields.items()}
            text = self.message.format(**fields)
        self.fields, self._said = fields, text
        super().__init__(text)

    def __getattr__(self, name: str) -> object:
        try:
            return self.__dict__["fields"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.fields)


def _shown(value: object) -> object:
    """A value as messages print it: Python refuses to print integers of several thousand digits.

    >>> _shown((3, 10**5000))
    (3, '2**16609 or more')
    """
    match value:
        case int() if value.bit_length() > _PRINTED_BITS:
            return f"{'-' if value < 0 else ''}2**{value.bit_length() - 1} or more"
        case tuple() | list() if any(isinstance(part, int | tuple | list) for part in value):
            return type(value)(map(_shown, value)) if type(value) in (tuple, list) else value
        case _:
            return value


def _rebuild(kind: type[TilewrightError], fields: dict[str, object]) -> TilewrightError:
    return kind(**fields)


# --- operands of a call -------------------------------------------------------------------------


class ShapeMismatch(TilewrightError, ValueError):
    """The inner sizes of a product differ."""

    message = (
        "matmul: a has shape {a} and b has shape {b}: the last axis of a is {inner_a} long, the "
        "axis of b it meets is {inner_b}; they must be equal (transpose or reshape one of them)"
    )


class BatchMismatch(TilewrightError, ValueError):
    """The batch axes of two operands do not broadcast."""

    message = (
        "{function}: batch axes {a} of a and {b} of b do not broadcast; "
        "axes before the last two must be equal, 1 or missing"
    )


class FactorAxes(TilewrightError, ValueError):
    """A factor of a symmetric or triangular product that is no matrix."""

    message = (
        "{function}: {name} has shape {found}, must have at least two axes: those of a matrix, behind any "
        "batch axes (a vector v is the column v[:, numpy.newaxis])"
    )


class FactorShapes(TilewrightError, ValueError):
    """The factors of a symmetric product differ in rows or columns."""

    message = (
        "{function}: a has shape {a} and b has shape {b}; the last two axes of both must be the same n and k "
        "(pass b.T where it is given transposed)"
    )


class TriangleNotSquare(TilewrightError, ValueError):
    """The triangular matrix of a product is not square."""

    message = (
        "trmm: a has shape {found}; its last two axes must be equal, as those of a triangular matrix are"
    )


class TriangleShape(TilewrightError, ValueError):
    """The triangular matrix of a product does not fit the other one."""

    message = (
        "trmm: a of shape {a} stands on the {side} of b of shape {b}: it must have as many rows and columns "
        "as b has {what} (or pass the other side)"
    )


class ScalarOperand(TilewrightError, ValueError):
    """An operand has no axes."""

    message = "matmul: operand {name} has 0 dimensions, needs at least 1; use numpy.multiply for scalars"


class OutShape(TilewrightError, ValueError):
    """`out` has another shape than the result."""

    message = "out has shape {found}, the result has shape {required}; pass out of that shape"


class OutDtype(TilewrightError, TypeError):
    """`out` cannot hold the result without an unsafe cast."""

    message = (
        "out has dtype {found}, which cannot hold a {required} result under {casting!r} "
        "casting; pass out of dtype {required}, or to matmul dtype= to choose the result type"
    )

    def __init__(self, *, casting: str = "same_kind", **fields: object) -> None:
        super().__init__(casting=casting, **fields)


class OutOtherDtype(TilewrightError, TypeError):
    """`out` of a move of elements has another dtype."""

    message = (
        "transpose: out has dtype {found}, the array has {required}; elements are moved, not converted: "
        "pass out of that dtype"
    )


class OutReadOnly(TilewrightError, ValueError):
    """`out` is not writable."""

    message = "out is read-only; pass a writable array (out.copy(), or out.flags.writeable = True)"


class OutCount(TilewrightError, ValueError):
    """`out` is a tuple that does not hold exactly one array."""

    message = "{function}: out is a tuple of {found}, must be an array or a tuple of one"


class OutNotArray(TilewrightError, TypeError):
    """`out` is not a NumPy array."""

    message = "out is {found}, must be a numpy.ndarray"


class InvalidAxes(TilewrightError, ValueError):
    """The axes of a permutation are not one."""

    message = (
        "transpose: axes {found} do not permute the {ndim} axes of the array: {reason}; "
        "name each axis from 0 to {ndim} - 1 once, or pass None to reverse them"
    )


class NotAProblem(TilewrightError, TypeError):
    """`compile` is given something that is no problem record."""

    message = "compile takes a problem ({known}), found {found}"


class KernelNotCalled(TilewrightError, TypeError, NotImplementedError):
    """A kernel whose problem has no call with arrays is called."""

    message = (
        "kernel {kernel} takes pointers and strides, not arrays: call the function of tilewright that it is "
        "a part of, or its code by kernel.function; kernel.header says how"
    )


class NotExplained(TilewrightError, TypeError):
    """`explain` is asked about something that is neither a problem nor one of the functions it knows."""

    message = "explain takes a problem, or one of {known} and its arguments; found {found}"


class NotAccelerated(TilewrightError, TypeError):
    """`accelerate` is given something that is no function, or is asked about one that it has not seen."""

    message = (
        "accelerate takes a function written in Python or compiled by Numba, and accelerate.report what it "
        "returned; found {found}"
    )


class SourceMissing(TilewrightError, OSError):
    """The source of a function whose loops are to be read is not there."""

    message = (
        "accelerate reads the source of {name}, which Python does not find; write the function into a file, "
        "not into exec or an interactive session without source"
    )


class MissingOut(TilewrightError, ValueError):
    """beta is not 0 but there is no C to read."""

    message = "{function}: beta is {beta}, which adds to out, but no out is given; pass out= or beta=0"


class InvalidScalar(TilewrightError, TypeError):
    """alpha or beta is not a number that the element type takes."""

    message = "{name} is {found}, must be {required}"


class InvalidZeroPoint(TilewrightError, ValueError):
    """Invalid zero point: not an integer of its operand's type, or of the wrong shape."""

    message = "matmul_integer: {name} is {found}, must be {required}"


class InvalidThreads(TilewrightError, ValueError):
    """A number of threads that is none."""

    message = (
        "{name} is {found}, must be an integer from 1 to {most}; "
        "more threads than cores are allowed, but they take turns"
    )


class InvalidOperand(TilewrightError, ValueError):
    """An operand that NumPy cannot make an array of."""

    message = "operand {name} is not a rectangular array of numbers: {reason}"


class MaskedOperand(TilewrightError, TypeError):
    """An operand or `out` is a masked array."""

    message = (
        "{name} is a masked array, and masks are not looked at here; pass x.filled(0) where masked elements "
        "add nothing to sums, or x.data for the values behind the mask"
    )


class ForeignArray(TilewrightError, TypeError):
    """An array of a library that overrides NumPy's functions."""

    message = (
        "{name} is of type {kind}, whose library has its own functions on such arrays; convert it first, by "
        "numpy.asarray or the library's own way of bringing it into this process's memory"
    )


class ForeignKeyword(TilewrightError, TypeError):
    """A call that is left to the library of an operand has a keyword that NumPy's function lacks."""

    message = (
        "{function}: {name} is given, but the call belongs to the library of {kind}, an operand, which takes "
        "what numpy.{function} takes; convert the operand by numpy.asarray, or leave {name} out"
    )


class NoUfuncs(TilewrightError, TypeError):
    """An operand says that universal functions do not take it."""

    message = (
        "{function}: an operand of type {kind} does not support universal functions (its __array_ufunc__ is "
        "None); use the functions of its library, or convert it by numpy.asarray"
    )


class UnsafeCast(TilewrightError, TypeError):
    """The inputs cannot be cast to the requested dtype."""

    message = (
        "matmul: operand {name} has dtype {found}, which does not cast to {required} under "
        "{casting!r} casting; convert it with .astype({required!r}) if that is meant"
    )

    def __init__(self, *, casting: str = "same_kind", **fields: object) -> None:
        super().__init__(casting=casting, **fields)


class UnsupportedDtype(TilewrightError, TypeError):
    """No kernel for an element type."""

    message = "dtype {dtype} has no kernel; supported: {supported}; convert the operands with .astype"


class NoCommonDtype(UnsupportedDtype):
    """Operands of types that NumPy promotes to no common one."""

    message = (
        "{found} have no common dtype; pass dtype={wanted} where the function takes it, or convert an "
        "operand with .astype"
    )


class StepDtype(TilewrightError, TypeError):
    """A step of an epilogue that has no meaning on the type of the value."""

    message = "epilogue: {step} does not apply to {dtype}: {reason}"


class StepShape(TilewrightError, ValueError):
    """An operand of an epilogue that does not fit the result."""

    message = "matmul: {name} has shape {found}, must be {required}"


class StepOperands(TilewrightError, TypeError):
    """A kernel is called without an operand of its epilogue, or with one that it does not take."""

    message = "kernel {kernel}: the epilogue needs {required}, given: {found}; pass each operand by its name"


class UnsupportedArgument(TilewrightError, NotImplementedError):
    """A documented argument that this version does not carry out."""

    message = "matmul: argument {name}={value} is not supported by this version; {remedy}"


class PackedDtype(TilewrightError, TypeError):
    """An operand beside a packed matrix is of a type that the matrix was not packed for."""

    message = (
        "an operand of dtype {found} meets {packed}, which was packed for {required}; "
        "convert the operand with .astype, or pack the matrix in the operand's dtype"
    )


class PackedRole(TilewrightError, ValueError):
    """A packed matrix stands on the other side of a product."""

    message = (
        "a matrix packed in the role of {found} stands where {required} stands; "
        "pack it with role={required!r}"
    )


class ForeignPacked(TilewrightError, ValueError):
    """A packed matrix is in other tiles than a kernel takes."""

    message = (
        "{packed} has {found}, kernels of the row {row} take {required}; pack it on this machine, "
        "tilewright.pack(tilewright.unpack(packed)), or load it with repack=True"
    )


class NotPacked(TilewrightError, TypeError):
    """Something else where a packed matrix is required."""

    message = "{name} is {found}, must be a PackedMatrix (tilewright.pack makes one)"


class PackedFileNotFound(TilewrightError, OSError):
    """A file of a packed matrix is not there or cannot be read."""

    message = "cannot read the packed matrix {path}: {reason}"


class PackedNotWritable(TilewrightError, OSError):
    """A file of a packed matrix cannot be written."""

    message = "cannot write the packed matrix {path}: {reason}; choose another file"


class PackedFileTruncated(TilewrightError, ValueError):
    """A file of a packed matrix ends too early."""

    message = (
        "{path} has {found} bytes, a whole packed matrix {required}; copy it again, or pack and save again"
    )


class PackedFileDamaged(TilewrightError, ValueError):
    """A file is no packed matrix, or was altered."""

    message = "{path} is no intact packed matrix: {reason}; copy it again, or pack and save again"


class PackedVersion(TilewrightError, ValueError):
    """A file of a packed matrix in another format."""

    message = (
        "{path} is a packed matrix in format {found}, this version of tilewright reads {required}; "
        "pack and save it again"
    )


class TilesMismatch(TilewrightError, ValueError):
    """The depths of two operands in tiles differ."""

    message = (
        "mmt4d: lhs has shape {lhs}, whose depth is {lhs_depth} tiles, and rhs {rhs}, whose depth is "
        "{rhs_depth}: numbers and sizes of the tiles must be equal; pack both with the same K0"
    )


class ChainOperands(TilewrightError, ValueError):
    """More or fewer weights or biases than a chain has layers."""

    message = "kernel {kernel}: {found} {name} are given, it takes {required}, one for each layer"


class InvalidTiles(TilewrightError, ValueError):
    """Tile sizes that no tile has."""

    message = "tiles are {found}, must be {required}"


class SizeOverflow(TilewrightError, OverflowError):
    """A product of sizes exceeds 64 bits."""

    message = "{what} needs {found} elements, more than {limit}; split the problem"


class ScratchAllocation(TilewrightError, MemoryError):
    """The operating system did not give memory for packed panels."""

    message = (
        "could not allocate {size} bytes of scratch for packed panels: {reason}; free memory, or "
        "set TILEWRIGHT_L3_BYTES lower to use smaller panels"
    )


class CalledWhileImporting(TilewrightError, RuntimeError):
    """A signal handler or finaliser called the package while its thread was importing a part of it."""

    message = (
        "tilewright was called by a signal handler or finaliser that interrupted an import of its own "
        "thread; call the same function once before the handler is installed"
    )


# --- attention ----------------------------------------------------------------------------------


class AttentionAxes(TilewrightError, ValueError):
    """An operand of attention has another number of axes than its layout."""

    message = "attention: {name} has shape {found}, must have {required} axes: {layout}"


class AttentionDtype(TilewrightError, TypeError):
    """An operand of attention is of a type that has no softmax, such as integers."""

    message = (
        "attention: {name} has dtype {found}, must be {required}; convert it with .astype, "
        "or pass quantised keys and values as int8 with key_scales and value_scales"
    )


class AttentionBatch(TilewrightError, ValueError):
    """Queries and keys are of different numbers of sequences."""

    message = (
        "attention: {name} is of {found} sequences, q of {required}; both must be equal, or one of them 1"
    )


class HeadsMismatch(TilewrightError, ValueError):
    """The heads of keys don't divide those of queries."""

    message = (
        "attention: {heads} heads of q are no multiple of {kv_heads} heads of k and v; "
        "each of these serves equally many (check layout={layout!r})"
    )


class HeadSizeMismatch(TilewrightError, ValueError):
    """Queries and keys have different sizes."""

    message = (
        "attention: a query has {found} elements and a key {required}; the last axes of q and k must be equal"
    )


class KeysMismatch(TilewrightError, ValueError):
    """Keys and values are of different number."""

    message = (
        "attention: k has shape {k} and v has shape {v}; all axes but the last must be equal, "
        "which is the size of a key and of a value"
    )


class MaskShape(TilewrightError, ValueError):
    """A mask that does not broadcast to the scores."""

    message = (
        "attention: mask has shape {found}, which does not broadcast to {required}: "
        "(batch, heads, queries, keys) in every layout"
    )


class MaskDtype(TilewrightError, TypeError):
    """A mask that is neither logical nor a float."""

    message = (
        "attention: mask has dtype {found}, must be bool (True where a key is seen) or one of {supported} "
        "(added to the scores); convert it with .astype(bool) if that is meant"
    )


class InvalidWindow(TilewrightError, ValueError):
    """Bounds of a window that are none."""

    message = (
        "attention: window is {found}, must be (left, right): how many keys each query sees before and "
        "behind its own, integers from 0 on, or None for all of them"
    )


class InvalidLengths(TilewrightError, ValueError):
    """Lengths of sequences that these cannot have."""

    message = "attention: {name}{reason}; must be {required}"


class InvalidQueryOffset(TilewrightError, ValueError):
    """`q_offset` is not an integer for each sequence."""

    message = (
        "attention: q_offset{reason}; must be {required}: the position of the first query among the keys"
    )


class InvalidOffsets(TilewrightError, ValueError):
    """Offsets of packed sequences that are no row of integers from 0 on."""

    message = (
        "attention: {name} {reason}; must be integers (sequences + 1), the first 0: where each sequence "
        "begins, and where the last one ends"
    )


class OffsetsNotIncreasing(TilewrightError, ValueError):
    """A packed sequence ends before it begins."""

    message = (
        "attention: {name} goes from {found} down to {following} at sequence {sequence}; "
        "offsets must not decrease"
    )


class OffsetsPastEnd(TilewrightError, ValueError):
    """Packed sequences run past the data."""

    message = "attention: {name} ends at {found}, but {operand} has {required} rows; offsets must stay inside"


class BlockTableShape(TilewrightError, ValueError):
    """A block table that has no row for each sequence, or too few pages for one."""

    message = "attention: block_table {reason}; must be {required}"


class BlockOutsideCache(TilewrightError, IndexError):
    """A block table points to a page that the cache does not have."""

    message = (
        "attention: block_table[{sequence}, {position}] is page {found}, the cache has pages 0 to {most}; "
        "entries behind a sequence's last key are not looked at"
    )


class HeadVectorShape(TilewrightError, ValueError):
    """Slopes or sinks are not one for each head."""

    message = "attention: {name} has shape {found}, must be {required}: one for each head of q"


class CacheNotArray(TilewrightError, TypeError):
    """A cache that is to be written in place is not a NumPy array."""

    message = "append_kv: {name} is {found}, must be a numpy.ndarray: it is written in place"


class CacheReadOnly(TilewrightError, ValueError):
    """A cache that is to be written in place is read-only."""

    message = "append_kv: {name} is read-only; pass a writable array"


class CacheFull(TilewrightError, ValueError):
    """A sequence has no room for the keys that are appended."""

    message = (
        "append_kv: sequence {sequence} has {found} keys, the cache has no room for {count} more: it holds "
        "{capacity} of a sequence; pass a longer cache, or a block table of more pages"
    )


class AppendShape(TilewrightError, ValueError):
    """Keys or values that are appended do not fit those of the cache."""

    message = (
        "append_kv: {name} has shape {found}, {cache} {required}; all axes but that of the sequence must be "
        "equal (of a cache in pages also but the first)"
    )


class AppendDtype(TilewrightError, TypeError):
    """Keys or values that are appended are of a kind of number that the cache does not hold."""

    message = (
        "append_kv: {name} has dtype {found}, which does not cast to {required} under 'same_kind' casting; "
        "quantise or convert it as the cache is"
    )


class AttentionScales(TilewrightError, ValueError):
    """Scales of quantised keys or values are not one for each head or token."""

    message = (
        "attention: {name} has shape {found}, must be a number, (kv_heads,), (batch, kv_heads), or one for "
        "each token, {required}"
    )


class AttentionGradientShape(TilewrightError, ValueError):
    """What attention gave, or the gradient of its result, has another shape than attention gives."""

    message = (
        "attention_backward: {name} has shape {found}, must be {required}, that of {like}; pass what "
        "attention(..., return_lse=True) returned, and the gradient of its result"
    )


class AttentionArguments(TilewrightError, TypeError):
    """Arguments of attention that contradict each other, or one without another that it needs."""

    message = "attention: {found}; {remedy}"


class NoStates(TilewrightError, ValueError):
    """There is nothing to merge."""

    message = "merge_attention: there is no state; pass at least one, as attention_partial returns it"


class StateShape(TilewrightError, ValueError):
    """States that are merged are of different queries."""

    message = (
        "merge_attention: {name} of state {number} has shape {found}, must be {required}: all states are of "
        "the same queries, and row_max and row_sum are (batch, heads, queries) in every layout"
    )


class StateLayouts(TilewrightError, ValueError):
    """Results of states that are merged have different layouts."""

    message = (
        "merge_attention: state {number} has layout {found!r}, must be {required!r}; call attention_partial "
        "with the same layout for all parts"
    )


# --- einsum -------------------------------------------------------------------------------------


class MalformedSubscripts(TilewrightError, ValueError):
    """Text that is no subscripts."""

    message = "einsum: {reason}\n    {subscripts}\n    {pointer}"


class OutputLabelRepeated(TilewrightError, ValueError):
    """A label stands twice in the result."""

    message = (
        "einsum: label {label!r} stands twice in the result; name each once\n    {subscripts}\n    {pointer}"
    )


class OutputLabelUnknown(TilewrightError, ValueError):
    """A label of the result that no operand has."""

    message = "einsum: label {label!r} of the result is none of an operand's\n    {subscripts}\n    {pointer}"


class EllipsisNotInOutput(TilewrightError, ValueError):
    """The axes of an ellipsis are missing from the result."""

    message = (
        "einsum: {subscripts}: '...' stands for {count} axes of the operands and is missing from the result; "
        "write it there, or give axes that are summed a label"
    )


class OperandCount(TilewrightError, ValueError):
    """More or fewer operands than subscripts."""

    message = "einsum: {subscripts}: {found} operands are given, the subscripts are of {required}"


class SublistLabel(TilewrightError, TypeError, ValueError):
    """Lists of labels that are none, in the form without text."""

    message = "einsum: {what}: found {found}, must be {required}"


class AxesWithoutLabels(TilewrightError, ValueError):
    """An operand has another number of axes than labels."""

    message = (
        "einsum: {subscripts}: operand {number} has shape {shape}, its subscripts {labels!r} name {count} "
        "axes; name every axis, or write '...' for the others"
    )


class LabelSizes(TilewrightError, ValueError):
    """Axes of one label have different lengths."""

    message = (
        "einsum: {subscripts}: label {label} is {size} long in operand {first} and {other} in operand "
        "{second}; axes of one label must be equal, or 1 in one of two operands"
    )


class InvalidPath(TilewrightError, ValueError, RuntimeError):
    """An order of contraction that is none."""

    message = "einsum: optimize, the order of contraction: found {found}: {reason}"


class ContractionDimension(TilewrightError, ValueError):
    """A dimension of a contraction that is none of its type."""

    message = "contraction: a dimension of type {type} has {found}, must be {required}"


class ContractionPrimitive(TilewrightError, ValueError):
    """Dimensions called primitive over which no primitive runs."""

    message = "contraction: {main}: found {found}, must be {required}"


class ContractionMemory(TilewrightError, ValueError):
    """An operand reaches beyond the array that was passed for it."""

    message = (
        "contraction: {name} has elements {low} to {high}, counted from the first one; the array passed has "
        "{found_low} to {found_high}: pass one that begins with element 0 and holds all of them"
    )


class MalformedTree(TilewrightError, ValueError):
    """Text that is no tree of contractions."""

    message = "einsum_tree: {reason}\n    {tree}\n    {pointer}"


class TreeDimensionRepeated(TilewrightError, ValueError):
    """A dimension stands twice in one list of a tree."""

    message = (
        "einsum_tree: dimension {number} stands twice in one list; name each once, and take a diagonal "
        "before (numpy.einsum('ii->i', a))\n    {tree}\n    {pointer}"
    )


class TreeDimensionUnknown(TilewrightError, ValueError):
    """A dimension of a node's result that nothing it is made of has."""

    message = (
        "einsum_tree: dimension {number} of the result is in nothing that the node is made of; name it "
        "there, or leave it out\n    {tree}\n    {pointer}"
    )


class TreeDimensionLost(TilewrightError, ValueError):
    """A dimension of one operand that neither the other one nor the result has."""

    message = (
        "einsum_tree: dimension {number} of one operand is missing from this result and from the other "
        "operand; name it in the result, or sum it before (numpy.sum)\n    {tree}\n    {pointer}"
    )


class TreeSizeMissing(TilewrightError, ValueError):
    """A dimension of a tree has no size."""

    message = "einsum_tree: dimension {number} has no size; sizes has those of: {known}"


class TreeSize(TilewrightError, ValueError, TypeError):
    """The size of a dimension is no length."""

    message = "einsum_tree: the size of dimension {number} is {found}, must be an integer from 0 on"


class ContractionOperands(TilewrightError, ValueError):
    """Subscripts of no or of several pairs of operands."""

    message = (
        "einsum_contraction: {subscripts!r} is of {found} operands, must be one or two; "
        "tilewright.einsum finds the order in which more of them meet"
    )


class ContractionText(TilewrightError, ValueError):
    """Text that is no contraction."""

    message = "contraction text, line {line}: {found!r}: {reason}"


class CompiledOperand(TilewrightError, ValueError):
    """An operand of a compiled einsum has another shape than the one it was compiled for."""

    message = (
        "{name}: operand {number} has shape {found}, compiled for {required}; pass an array of that shape, "
        "or compile again for this one"
    )


class EinsumCast(TilewrightError, TypeError):
    """An operand or `out` is of a type that does not convert to or from that of the result."""

    message = (
        "einsum: {name} does not cast from {found} to {required} under {casting!r} casting; "
        "pass dtype=, an out of another dtype, or casting='same_kind' or 'unsafe' if that is meant"
    )


class OutOverlapsItself(TilewrightError, ValueError):
    """Several elements of `out` stand in one place."""

    message = (
        "out has shape {shape} and strides {strides}, which put several elements in one place; "
        "pass an array of memory of its own (numpy.empty)"
    )


class ContractionAxes(TilewrightError, ValueError):
    """Axes over which two arrays cannot be summed."""

    message = "{function}: axes {axes} of shapes {a} and {b}: {reason}"


# --- functions of arrays ------------------------------------------------------------------------


class AxisOutOfRange(TilewrightError, AxisError):
    """An axis that the array does not have."""

    message = (
        "{function}: axis {found} is not one of an array of {ndim} axes; pass integers from -{ndim} to {last}"
    )

    def __init__(self, *, found: int, ndim: int, **fields: object) -> None:
        super().__init__(found=found, ndim=ndim, **fields)
        self.axis, self.ndim = found, ndim
        self.args = (self._said,)

    def __str__(self) -> str:
        return str(self.args[0])


class CoreAxes(TilewrightError, AxisError):
    """More or fewer axes than the matrices and vectors of a product have."""

    message = "{function}: axes {found} of one array, must be {required}: those of its matrices or vectors"

    def __init__(self, **fields: object) -> None:
        super().__init__(**fields)
        self.args = (self._said,)


class AxesCount(TilewrightError, ValueError):
    """`axes` does not say something of each array."""

    message = (
        "{function}: axes is a list of {found}, must hold those of a, of b and of the result, which may be "
        "missing if it is a number"
    )


class EmptyReduction(TilewrightError, ValueError):
    """There is no largest or smallest of no elements."""

    message = "{function}: no elements along axes {axes} of an array of shape {shape}; pass at least one"


class RepeatedAxis(TilewrightError, ValueError):
    """One axis is named twice."""

    message = "{function}: axis {found} is named twice in {axes}; name each axis once"


class InvalidAxis(TilewrightError, TypeError):
    """An axis that is no integer."""

    message = "{function}: axis is {found}, must be {required}"


class NormOperandShape(TilewrightError, ValueError):
    """A weight or bias that does not have the shape of the axes that are normalised."""

    message = "{function}: {name} has shape {found}, must be {required}: the lengths of the axes normalised"


class NegativeEps(TilewrightError, ValueError):
    """An eps under the root that is negative or no number."""

    message = "{function}: eps is {found}, must be 0 or a positive number"


# --- problems and options -----------------------------------------------------------------------


class InvalidSize(TilewrightError, ValueError):
    """A problem size out of range."""

    message = "{name} is {found}, must be {required}"


class InvalidFlag(TilewrightError, TypeError):
    """A switch that is neither on nor off."""

    message = "{name} is {found}, must be True or False"


class InvalidText(TilewrightError, TypeError):
    """Something else where text is required."""

    message = "{name} is {found}, must be text"


class InvalidSequence(TilewrightError, TypeError):
    """Something else where a sequence is required, or a sequence of other things."""

    message = "{name} is {found}, must be {required}"


class InvalidFileName(TilewrightError, TypeError, ValueError):
    """Invalid file name."""

    message = "{name} is {found}, must be the name of a file: text, bytes or os.PathLike, without NUL"


class UnexpectedKeyword(TilewrightError, TypeError):
    """A keyword that a function does not have."""

    message = "{function}: unexpected keyword {name!r}: {remedy}"


class InvalidChoice(TilewrightError, ValueError):
    """A word that is not one of the choices."""

    message = "{name} is {found}, must be one of: {allowed}"


class InvalidGroup(TilewrightError, ValueError):
    """Depths that cannot share one scale."""

    message = "a group of {group} depths is not supported; pass one of {allowed}, or None for one a column"


class ScaleShape(TilewrightError, ValueError):
    """Scales or zero points are not one for each group and column."""

    message = "{name} have shape {found}, must be {required}: one for each group of depths and each column"


class QuantisedWeight(TilewrightError, ValueError):
    """Quantised rows meet a weight that integers cannot multiply."""

    message = (
        "quantised rows meet {found}; they take a weight of 8 bits with one scale a column and no zero "
        "points: tilewright.quantize_weights(w, bits=8)"
    )


class QuantisedRange(TilewrightError, ValueError):
    """Integers that do not fit the bits of a quantised weight."""

    message = (
        "{name} of {bits} bits must be integers from {low} to {high}; clip or shift them, or pass more bits"
    )


class UnknownTarget(TilewrightError, ValueError):
    """A target name that no row has."""

    message = "unknown target {found}, which is neither host nor triple:cpu:+features; known: {known}"


class InvalidTarget(TilewrightError, ValueError):
    """A target spelled as a triple and a CPU that are not, or for which LLVM makes no 64-bit code."""

    message = (
        "target {found}: {reason}; write triple:cpu or triple:cpu:+feature,-feature, "
        "such as aarch64-linux-gnu:neoverse-n2:+sve"
    )


class UnknownTriple(TilewrightError, ValueError):
    """A triple that LLVM has no back end for."""

    message = "LLVM knows no target triple {found}: {reason}; `cc -dumpmachine` prints that of a compiler"


class UnknownCpu(TilewrightError, ValueError):
    """A CPU that LLVM does not know."""

    message = "LLVM knows no CPU {found} of {triple}; nearest: {nearest}"


class UnknownFeature(TilewrightError, ValueError):
    """A CPU feature that LLVM does not know."""

    message = "LLVM knows no feature {found} of {triple}; nearest: {nearest}"


class FeatureNeeded(TilewrightError, ValueError):
    """A feature is changed that the platform's calling convention needs as it is."""

    message = (
        "feature {found} cannot be asked for: calls on {triple} need {needed}; leave it out, or choose a "
        "narrower row (TILEWRIGHT_ISA, isa=)"
    )


class UnknownIsa(TilewrightError, ValueError):
    """An ISA row name that does not exist."""

    message = "unknown ISA row {found}; known: {known}"


class IsaNotOnHost(TilewrightError, RuntimeError):
    """An ISA row whose instructions this CPU lacks."""

    message = "ISA row {isa} needs {features}, which this CPU lacks; choose one of: {usable}"


class ForeignKernel(TilewrightError, RuntimeError):
    """A kernel for another CPU is called."""

    message = (
        "kernel {kernel} was compiled for {target} and cannot run on this CPU ({host}); "
        "compile it with target=None"
    )


class OperandMismatch(TilewrightError, ValueError):
    """An array does not fit the kernel it is given to."""

    message = "kernel {kernel}: operand {name} has {what} {found}, must be {required}"


class LeadingDimension(TilewrightError, ValueError):
    """A leading dimension shorter than the rows or columns it separates."""

    message = (
        "kernel {kernel}: operand {name} has leading dimension {found}, must be at least {required} "
        "elements; pass an array that does not overlap itself"
    )


class InvalidSetting(TilewrightError, ValueError):
    """An environment variable or override with an impossible value."""

    message = "{name}={found} is not {required}"


class NoVectorUnit(TilewrightError, RuntimeError):
    """No ISA row fits a CPU."""

    message = "no ISA row fits {cpu} ({triple}); rows: {rows}"


# --- libraries of kernels ------------------------------------------------------------------------


class SpecUnreadable(TilewrightError, OSError):
    """A list of kernels that is not there, or is not TOML."""

    message = "cannot read the list of kernels {path}: {reason}"


class InvalidSpec(TilewrightError, ValueError):
    """A list of kernels with something in it that no kernel has."""

    message = "{path}, {where}: {reason}"


class NoResolver(TilewrightError, ValueError):
    """A target for which no program can choose at run time."""

    message = (
        "target {target} ({triple}) cannot be in a library: {reason}; targets are those of Linux on {known}"
    )


class UntestableFeature(TilewrightError, ValueError):
    """Code that depends on a feature which a program cannot see at run time."""

    message = (
        "target {target} is compiled with {features}, which no bit shows to a program on {arch}; "
        "choose a target without, such as triple:cpu:-feature"
    )


class MixedTargets(TilewrightError, ValueError):
    """Targets of different architectures in one library."""

    message = "targets {targets} are of {found}; a library is of one architecture, write one for each"


class TargetNeverChosen(TilewrightError, ValueError):
    """Two targets, one of which no CPU would take."""

    message = "target {target} runs on no CPU that does not take {other} before it; leave one of them out"


class InvalidTargetList(TilewrightError, ValueError):
    """A list of targets in which one is missing or named twice."""

    message = "targets are {found}: {reason}; write a comma list such as x86-64-v2,x86-64-v3"


# --- the intermediate representation ------------------------------------------------------------


class BlockNotMultiple(TilewrightError, ValueError):
    """A cache block that register tiles do not fill."""

    message = "blocking: {block} is {size}, must be a multiple of {of} = {unit}"


class NoRegisterTile(TilewrightError, ValueError):
    """No register tile satisfies the constraints."""

    message = "no register tile fits {registers} vector registers of {lanes} lanes for {dtype} on {isa}"


class InvalidTileIr(TilewrightError, ValueError):
    """Tile IR that breaks a rule of `ir.verify`."""

    message = "tile IR: {where}: {reason}"


class TileIrSyntax(TilewrightError, ValueError):
    """Text that is not tile IR."""

    message = "tile IR text, line {line}: {reason}: {text}"


class CompilationFailed(TilewrightError, RuntimeError):
    """LLVM rejected a generated module."""

    message = (
        "LLVM rejected the module of {kernel}: {reason}; "
        "please report this with the output of `tilewright emit --emit llvm`"
    )


# --- measuring and the command line --------------------------------------------------------------


class PackageMissing(TilewrightError, ImportError):
    """An optional package is not installed."""

    message = "{purpose} needs the package {package}, which is not installed; run: pip install {install}"


class ToolMissing(TilewrightError, FileNotFoundError):
    """A program of another package is not on the PATH."""

    message = "{purpose} needs {tool}, which is not on the PATH; Debian and Ubuntu: apt-get install {package}"


class NoInnerLoop(TilewrightError, ValueError):
    """A kernel without a loop is asked for the cycles of one."""

    message = (
        "kernel {kernel} has no loop that multiplies vectors: it is straight code; choose a larger depth"
    )


class ModelFailed(TilewrightError, RuntimeError):
    """llvm-mca has no model of a CPU, or does not read its assembly."""

    message = (
        "llvm-mca {version} cannot model {cpu} ({triple}): {reason}; install one of a newer LLVM, "
        "or choose a target with a CPU that it models (triple:cpu:+features)"
    )


class WorkerFailed(TilewrightError, RuntimeError):
    """A process that measures one system ended or reported a failure."""

    message = "measuring {system} failed: {reason}"


class WrongResult(TilewrightError, ArithmeticError):
    """A system under measurement returned a product outside the rounding bound."""

    message = (
        "{system} computed {problem} wrongly: row {row}, column {column} is {found}, float64 gives "
        "{expected}, the bound on the difference is {bound}; nothing was timed"
    )


class WrongMove(TilewrightError, ArithmeticError):
    """A system under measurement did not transpose."""

    message = "{system} did not transpose a {shape} array of {dtype}; nothing was timed"


class CompilerUnknown(TilewrightError, ValueError):
    """A program that is driven but writes no LLVM IR, as far as is known."""

    message = (
        "cannot replace loops in what {found} compiles; the command behind -- is one of clang, clang++, "
        "zig cc, zig c++, flang or rustc, also with a version as in clang-19"
    )


class CompilerMissing(TilewrightError, FileNotFoundError):
    """A program that a command names is not there."""

    message = "there is no program {program}; install it, or name it with its folder"


class OptionNotDriven(TilewrightError, ValueError):
    """An option that asks for passes of a compiler which do not run where its front end stops."""

    message = (
        "{option} is done by passes of {compiler} that do not run when loops are replaced; leave the option "
        "out, or compile this source by {compiler} alone"
    )


class RustcNotDriven(TilewrightError, ValueError):
    """A command of rustc that ends in something whose code is not handed to a linker."""

    message = (
        "rustc is driven by way of its linker: {option} is {found}, must be of {allowed}; for a library "
        "write its LLVM IR with --emit=llvm-bc and run `tilewright opt`"
    )


class InputNotReadable(TilewrightError, OSError):
    """A file named on the command line cannot be read."""

    message = "cannot read {path}: {reason}; name a file that exists, or - for standard input"


class NotAModule(TilewrightError, ValueError):
    """A source that LLVM cannot read, or whose code breaks the rules of LLVM IR."""

    message = (
        "{name} is not a module that LLVM {version} reads: {reason}; "
        "it takes text (.ll) and bitcode (.bc) of LLVM 15 to {version}, as `clang -emit-llvm` writes it"
    )


class OptimiserFailed(TilewrightError, RuntimeError):
    """LLVM ended the process that optimised a module, or it could not be started."""

    message = "{name} could not be optimised: {reason}; nothing was written"


class TargetNotOfModule(TilewrightError, ValueError):
    """A target of another architecture than the module's."""

    message = (
        "--target {found} is {arch}, {name} is for {triple}; name a machine of that architecture, "
        "or none: then functions are compiled for the CPUs that they name themselves"
    )


class BinaryToTerminal(TilewrightError, ValueError):
    """Object code would be written to a terminal."""

    message = "object code is binary and standard output is a terminal; write it to a file with -o FILE"


class OutputNotWritable(TilewrightError, OSError):
    """A file asked for on the command line cannot be written."""

    message = "cannot write {path}: {reason}; choose another file"
