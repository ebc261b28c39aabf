"""Fused attention as a problem: softmax(scale · Q·Kᵀ + …)·V of one head dimension, all sizes at run time."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from functools import lru_cache
from typing import get_args

from tilewright.errors import UnsupportedDtype
from tilewright.records import dataclass
from tilewright.spec.arguments import check_flag, check_integer, parse_choice
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import F32, I8, U8, DType, Use, dtypes_for, parse_dtype
from tilewright.spec.problem import RunTimeSizes
from tilewright.spec.records import set_fields
from tilewright.typing import ElementType, ScheduleName, ScoreStageName

#: Element types of queries, and so of results.
ATTENTION_DTYPES = dtypes_for(Use.ATTENTION)
#: Element types of masks: truths as bytes, and numbers that are added to the scores.
MASK_DTYPES = (U8, *ATTENTION_DTYPES)
#: Largest head: its tiles and panels stay in cache.
MAX_HEAD = 1024


class Schedule(Enum):
    """Schedules of attention: blocks of queries and keys, or few queries against a long cache."""

    BLOCKS, DECODE = get_args(ScheduleName)


class ScoreStage(Enum):
    """The stages of the scores, in order."""

    PRODUCT, SOFTCAP, MASK, SOFTMAX = get_args(ScoreStageName)


@dataclass(frozen=True, init=False)
class Attention(RunTimeSizes):
    """O = softmax(mask(scale · Q·Kᵀ))·V for every query of every head (MEATTEN, ICS 2024).

    Features are fixed at compile time; sizes, strides, offsets and bounds are given at run time, so one
    kernel serves every batch, number of heads and length.

    Parameters
    ----------
    head_dim, value_dim : elements of one query and key, and of one value (head_dim by default).
    dtype : type of queries and results: f32, f64, bf16 or f16. Softmax is computed in f32, in f64 for f64.
    kv_dtype : type of keys and values: `dtype`, or i8.
    bounded : each query sees a range of keys that moves with it: causal attention, windows.
    mask : element type of a mask, u8 for bool, or None.
    softcap : scores s become cap · tanh(s / cap).
    slopes : ALiBi: the distance between query and key times a slope of the head is subtracted.
    sinks : each head has a score that takes part in the sums and has no value.
    key_scales, value_scales : every key or value (token) has a scale.
    paged : keys and values are stored in pages, located through a block table.
    schedule : "blocks", or "decode" for few queries.
    partial : results have the type of the sums, because they are merged with those of other keys.

    Raises
    ------
    InvalidSize, InvalidChoice, UnsupportedDtype

    Examples
    --------
    >>> Attention(64).value_dim, str(Attention(128, dtype="bf16").acc)
    (64, 'f32')
    """

    __repr__ = constructor_text
    head_dim: int
    value_dim: int
    dtype: DType
    kv_dtype: DType
    bounded: bool
    mask: DType | None
    softcap: bool
    slopes: bool
    sinks: bool
    key_scales: bool
    value_scales: bool
    paged: bool
    schedule: Schedule
    partial: bool

    def __init__(
        self,
        head_dim: int,
        value_dim: int | None = None,
        dtype: DType | ElementType = "f32",
        *,
        kv_dtype: DType | ElementType | None = None,
        bounded: bool = False,
        mask: DType | ElementType | None = None,
        softcap: bool = False,
        slopes: bool = False,
        sinks: bool = False,
        key_scales: bool = False,
        value_scales: bool = False,
        paged: bool = False,
        schedule: Schedule | ScheduleName = Schedule.BLOCKS,
        partial: bool = False,
    ) -> None:
        value_dim = head_dim if value_dim is None else value_dim
        head_dim = check_integer(head_dim, "head_dim", 1, MAX_HEAD)
        value_dim = check_integer(value_dim, "value_dim", 1, MAX_HEAD)
        kind = parse_dtype(dtype, ATTENTION_DTYPES)
        stored = kind if kv_dtype is None else parse_dtype(kv_dtype, (*ATTENTION_DTYPES, I8))
        if stored not in (kind, I8):
            raise UnsupportedDtype(dtype=f"{stored} keys with {kind} queries", supported=f"{kind} and i8")
        set_fields(
            self,
            head_dim=head_dim,
            value_dim=value_dim,
            dtype=kind,
            kv_dtype=stored,
            bounded=check_flag(bounded, "bounded"),
            mask=None if mask is None else parse_dtype(mask, MASK_DTYPES),
            softcap=check_flag(softcap, "softcap"),
            slopes=check_flag(slopes, "slopes"),
            sinks=check_flag(sinks, "sinks"),
            key_scales=check_flag(key_scales, "key_scales"),
            value_scales=check_flag(value_scales, "value_scales"),
            paged=check_flag(paged, "paged"),
            schedule=parse_choice(Schedule, schedule, "schedule"),
            partial=check_flag(partial, "partial"),
        )

    def __hash__(self) -> int:
        """Computed once: every call looks for its kernel, and hashes of fields take microseconds."""
        found: int | None = self.__dict__.get("_hash")
        if found is None:
            found = hash(tuple(getattr(self, field.name) for field in fields(self)))
            set_fields(self, _hash=found)
        return found

    def __getstate__(self) -> dict[str, object]:
        """Without the hash, which another process computes otherwise."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def scheduled(self, schedule: Schedule) -> Attention:
        """The same problem with another schedule.

        >>> Attention(64, bounded=True).scheduled(Schedule.DECODE).features
        ('bounded',)
        """
        return _varied(self, "schedule", schedule)

    def unrounded(self) -> Attention:
        """The same problem with results in the type of the sums.

        >>> str(Attention(64, dtype="bf16").unrounded().out_dtype)
        'f32'
        """
        return _varied(self, "partial", True)

    @property
    def operation(self) -> str:
        """The operation: few queries take a schedule of their own."""
        return "attention_decode" if self.schedule is Schedule.DECODE else "attention"

    @property
    def out_dtype(self) -> DType:
        """The type of results."""
        return self.acc if self.partial else self.dtype

    @property
    def acc(self) -> DType:
        """The type of scores, sums and unfinished results."""
        return self.dtype if self.dtype.bits == 64 else F32

    @property
    def features(self) -> tuple[str, ...]:
        """The non-default options, as words of the kernel's name."""
        words = [f"kv{self.kv_dtype}"] if self.kv_dtype != self.dtype else []
        words += ["bounded"] * self.bounded
        words += [f"mask{self.mask}"] if self.mask else []
        flags = ("softcap", "slopes", "sinks", "key_scales", "value_scales", "paged", "partial")
        words += [name.replace("_", "") for name in flags if getattr(self, name)]
        return tuple(words)


@lru_cache(maxsize=256)
def _varied(problem: Attention, name: str, value: Schedule | bool) -> Attention:
    found = object.__new__(Attention)
    set_fields(found, **problem.__getstate__() | {name: value})
    return found


# --- the C signature -------------------------------------------------------------------------------

#: What the table of a call says of each sequence: element offsets of its operands, how many queries and keys
#: it has, and the keys low .. high that query 0 sees; every query sees one key further on. For slopes,
#: query 0 is at key keys - queries + shift.
ITEM_FIELDS = (
    *("q", "k", "v", "out", "mask", "state", "scales", "pages"),
    *("queries", "keys", "low", "high", "shift"),
)
#: Integers of one sequence in the table.
ITEM_SIZE = 16


def attention_sizes(problem: Attention) -> tuple[str, ...]:
    """Run-time sizes in the order of the C signature; strides are in elements.

    >>> attention_sizes(Attention(64))[:5]
    ('batch', 'kv_heads', 'group', 'queries', 'q_head')
    """
    sizes = ["batch", "kv_heads", "group", "queries"]
    sizes += [f"{array}_{axis}" for array in "qkvo" for axis in ("head", "row", "col")]
    sizes.append("state_head")
    sizes += ["mask_head", "mask_row", "mask_col"] if problem.mask else []
    sizes += ["scales_head"] if problem.key_scales or problem.value_scales else []
    sizes += ["page", "k_page", "v_page"] if problem.paged else []
    return tuple(sizes)


def attention_scalars(problem: Attention) -> tuple[str, ...]:
    """Run-time scalars in the order of the C signature."""
    return ("scale", "softcap") if problem.softcap else ("scale",)
