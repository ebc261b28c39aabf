"""Errors of attention, its caches and its gradients."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class AttentionAxes(TilewrightError, ValueError):
    """The number of axes of an attention operand does not match its layout."""

    speaker = "attention"
    message = "{name} has shape {found}, must have {required} axes: {layout}"


class AttentionDtype(TilewrightError, TypeError):
    """Unsupported dtype of an attention operand."""

    speaker = "attention"
    message = "{name} has dtype {found}, must be {required}; convert it with .astype{quantised}"

    def __init__(self, *, name: str, **fields: object) -> None:
        own = name in ("k", "v")
        quantised = ", or pass both quantised to int8, with key_scales and value_scales" if own else ""
        super().__init__(**{"name": name, "quantised": quantised} | fields)


class AttentionBatch(TilewrightError, ValueError):
    """Queries and keys have different batch sizes."""

    speaker = "attention"
    message = "{name} has {found} sequences, q has {required}; both must be equal, or one of them 1"


class HeadsMismatch(TilewrightError, ValueError):
    """The number of query heads is not a multiple of the number of key heads."""

    speaker = "attention"
    message = (
        "q has {heads} heads, which is not a multiple of the {kv_heads} heads of k and v; "
        "each of those serves the same number of query heads (check layout={layout!r})"
    )


class HeadSizeMismatch(TilewrightError, ValueError):
    """Queries and keys have different head sizes."""

    speaker = "attention"
    message = "a query has {found} elements and a key {required}; the last axes of q and k must be equal"


class KeysMismatch(TilewrightError, ValueError):
    """The shapes of keys and values differ in more than the last axis."""

    speaker = "attention"
    message = (
        "k has shape {k} and v has shape {v}; all axes must be equal but the "
        "last, the size of a key and of a value"
    )


class MaskShape(TilewrightError, ValueError):
    """The mask does not broadcast to the scores."""

    speaker = "attention"
    message = (
        "mask has shape {found}, which does not broadcast to {required}: "
        "(batch, heads, queries, keys) in every layout"
    )


class MaskDtype(TilewrightError, TypeError):
    """The mask is neither boolean nor of a supported float type."""

    speaker = "attention"
    message = (
        "mask has dtype {found}, must be bool (True where a key is visible) or one of {supported} "
        "(added to the scores); convert it with .astype(bool) if that is intended"
    )


class InvalidWindow(TilewrightError, ValueError):
    """Invalid window bounds."""

    speaker = "attention"
    message = (
        "window is {found}, must be (left, right): the number of keys that each query sees before "
        "and after its own position, non-negative integers, or None for all of them"
    )


class InvalidLengths(TilewrightError, ValueError):
    """Invalid sequence lengths."""

    speaker = "attention"
    message = "{name}{reason}; must be {required}"


class InvalidQueryOffset(TilewrightError, ValueError):
    """Invalid `q_offset`: not one integer for each sequence."""

    speaker = "attention"
    message = "q_offset{reason}; must be {required}: the position of the first query among the keys"


class InvalidOffsets(TilewrightError, ValueError):
    """Invalid offsets of packed sequences."""

    speaker = "attention"
    message = (
        "{name} {reason}; must be sequences + 1 integers, the first 0: the start of each "
        "sequence, and the end of the last one"
    )


class OffsetsNotIncreasing(TilewrightError, ValueError):
    """Offsets of packed sequences decrease."""

    speaker = "attention"
    message = "{name} decreases from {found} to {following} at sequence {sequence}; offsets must not decrease"


class OffsetsPastEnd(TilewrightError, ValueError):
    """Offsets of packed sequences exceed the number of rows."""

    speaker = "attention"
    message = "{name} ends at {found}, but {operand} has {required} rows; offsets must not exceed them"


class BlockTableShape(TilewrightError, ValueError):
    """Invalid block table: a row is missing, or too short for its sequence."""

    speaker = "attention"
    message = "block_table {reason}; must be {required}"


class BlockOutsideCache(TilewrightError, IndexError):
    """A block table entry is not a page of the cache."""

    speaker = "attention"
    message = (
        "block_table[{sequence}, {position}] is page {found}, the cache has pages 0 to {most}; "
        "entries after the last key of a sequence are ignored"
    )


class HeadVectorShape(TilewrightError, ValueError):
    """Invalid shape of slopes or sinks: not one for each head."""

    speaker = "attention"
    message = "{name} has shape {found}, must be {required}: one for each head of q"


class CacheNotArray(TilewrightError, TypeError):
    """The key or value cache is not a NumPy array."""

    speaker = "append_kv"
    message = "{name} is {found}, must be a numpy.ndarray: it is written in place"


class CacheReadOnly(TilewrightError, ValueError):
    """The key or value cache is read-only."""

    speaker = "append_kv"
    message = "{name} is read-only; pass a writable array"


class CacheFull(TilewrightError, ValueError):
    """The cache has no room for the appended keys."""

    speaker = "append_kv"
    message = (
        "sequence {sequence} has {found} keys, and the cache has no room for {count} more: it "
        "holds {capacity} for each sequence; pass a longer cache, or a block table of more pages"
    )


class AppendShape(TilewrightError, ValueError):
    """The shape of appended keys or values does not match the cache."""

    speaker = "append_kv"
    message = (
        "{name} has shape {found}, {cache} {required}; all axes must be equal but that of the "
        "sequence (and, for a paged cache, the first)"
    )


class AppendDtype(TilewrightError, TypeError):
    """Appended keys or values do not cast to the dtype of the cache."""

    speaker = "append_kv"
    message = (
        "{name} has dtype {found}, which does not cast to {required} under 'same_kind' casting; "
        "convert or quantise it like the cache"
    )


class AppendScales(TilewrightError, ValueError):
    """Caches of scales that do not fit the cache of keys or values, or rows that are not quantised."""

    speaker = "append_kv"
    message = "{name} {reason}; scales are those of floats that are quantised into a cache of int8"


class AttentionScales(TilewrightError, ValueError):
    """Invalid shape of the scales of quantised keys or values."""

    speaker = "attention"
    message = (
        "{name} has shape {found}, must be a number, (kv_heads,), (batch, kv_heads), or one for "
        "each token, {required}"
    )


class AttentionGradientShape(TilewrightError, ValueError):
    """Invalid shape of a saved result of attention or of its gradient."""

    speaker = "attention_backward"
    message = (
        "{name} has shape {found}, must be {required}, that of {like}; pass what "
        "attention(..., return_lse=True) returned, and the gradient of its result"
    )


class AttentionArguments(TilewrightError, TypeError):
    """Arguments of attention exclude each other, or one is missing."""

    speaker = "attention"
    message = "{found}; {remedy}"


class NoStates(TilewrightError, ValueError):
    """The list of states to merge is empty."""

    speaker = "merge_attention"
    message = "no states; pass at least one state as returned by attention_partial"


class StateShape(TilewrightError, ValueError):
    """States to merge have different shapes."""

    speaker = "merge_attention"
    message = (
        "{name} of state {number} has shape {found}, must be {required}: all states belong "
        "to the same queries, and row_max and row_sum are (batch, heads, queries) in every layout"
    )


class StateLayouts(TilewrightError, ValueError):
    """States to merge have different layouts."""

    speaker = "merge_attention"
    message = (
        "state {number} has layout {found!r}, must be {required!r}; call attention_partial "
        "with the same layout for all parts"
    )


class PackedState(TilewrightError, ValueError):
    """An array is no packed state of attention."""

    speaker = "AttentionState"
    message = (
        "packed has shape {found}, must be (..., d + 2): a result, its row_max and its row_sum in each row"
    )
