"""Errors of attention, its caches and its gradients."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


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
