"""Attention and its gradients declared: cuts, nests, kernel names and C parameters."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Compilation, Op
from tilewright.ops.attention.backward_problem import AttentionBackward
from tilewright.ops.attention.problem import Attention
from tilewright.preparing import Late
from tilewright.spec.arguments import unchecked

if TYPE_CHECKING:
    from tilewright.ir.nodes import Program
    from tilewright.ops.attention.backward_cut import BackwardBlocking
    from tilewright.ops.attention.cut import AttentionBlocking, DecodeCut

_print_program = Late("tilewright.ir.text:print_program")

#: Meanings of the arguments that no rule describes.
_MEANINGS = {
    "items": "16 numbers of each sequence: where its q, k, v, out, mask, state, scales and pages begin, in "
    "elements, then queries, keys, low, high, and with slopes shift: query 0 is at key "
    "keys - queries + shift; of gradients shift takes the place of pages, and dout, dq, dk, dv follow high",
    "row_max": "largest score of each query, for whom the state is kept",
    "row_sum": "sum of e^(score - row_max) of each query",
    "mask": "batch x heads x queries x keys, any strides: 0 hides a key, or numbers that are added",
    "slopes": "one for each head",
    "sinks": "one for each head",
    "lse": "logarithm of the sum of e^score of each query",
    "delta": "for the sum of dout * out of each query",
    "key_scales": "one for each key",
    "value_scales": "one for each value",
    "pages": "numbers of pages",
    "batch": "sequences",
    "kv_heads": "heads of k and v",
    "group": "heads of q for each head of k",
    "queries": "the most of a sequence",
    "keys": "the most of a sequence",
    "page": "keys of a page",
    "scale": "of the scores",
    "softcap": "scores are softcap * tanh(score / softcap)",
}
_AXES = {"head": "head", "row": "row", "col": "column", "page": "page"}


def _text(program: Program, name: str, known: dict[str, str]) -> str:
    """The meaning of a parameter, by name where it is known; strides are often not read."""
    found = (_MEANINGS | known).get(name)
    if name in {buffer.name for buffer in program.arguments}:
        return found or f"batch x heads x rows x columns of {program.buffer(name).dtype}, any strides"
    if name in program.scalars:
        return _MEANINGS[name]
    array, _, axis = name.rpartition("_")
    text = found or f"of {array}, from one {_AXES.get(axis, axis)} to the next"
    used = set(re.findall(r"\w+", _print_program(program).split("argument", maxsplit=1)[1]))
    if name in used:
        return text
    return f"not read: columns of {array} are adjacent" if axis == "col" else f"{text}; not read"


def _meaning(state: Compilation, name: str) -> str:
    problem: Attention = state.problem
    return _text(state.program, name, {} if problem.paged else {"v_col": "1: columns of v are adjacent"})


def _decode_meaning(state: Compilation, name: str) -> str:
    cut: DecodeCut = state.blocking
    return _text(
        state.program,
        name,
        {
            "partials": "space for batch * kv_heads * group * queries * splits * "
            f"{cut.partials(1, 1, 1, 1)} numbers",
            "heads_together": "heads of keys that one task takes side by side: 1, or more where those of one "
            "key are adjacent",
            "splits": f"runs of {cut.split} keys that the longest sequence has, at least 1",
        },
    )


def _backward_meaning(state: Compilation, name: str) -> str:
    problem: AttentionBackward = state.problem
    rows = f"batch x heads x rows x columns of {problem.dtype}, columns adjacent"
    return _text(state.program, name, dict.fromkeys(("out", "dout", "dq", "dk", "dv"), rows))


def _range(problem: Attention | AttentionBackward) -> str:
    return ", query i over the keys low + i to high + i" if problem.bounded else ""


def _stem(problem: Attention) -> str:
    words = "_".join((*problem.features, problem.schedule.value))
    return f"attention_{problem.dtype}_{problem.head_dim}x{problem.value_dim}_{words}"


def _backward_stem(problem: AttentionBackward) -> str:
    words = "_".join((f"{problem.head_dim}x{problem.value_dim}", *problem.features))
    return f"attention_backward_{problem.dtype}_{words}"


def _of(
    head_dim: int = 64,
    value_dim: int | None = None,
    dtype: str = "f32",
    kv_dtype: str | None = None,
    mask: str | None = None,
    bounded: bool = False,
    softcap: bool = False,
    slopes: bool = False,
    sinks: bool = False,
    scales: bool = False,
    paged: bool = False,
    schedule: str = "blocks",
) -> Attention:
    """Write the code for fused attention of any lengths.

    Parameters
    ----------
    head_dim : elements of a query and of a key (head size).
    value_dim : elements of a value; by default as many.
    dtype : f32, f64, bf16 or f16.
    kv_dtype : element type of keys and values: i8.
    mask : element type of a mask; u8 for a boolean mask.
    bounded : causal or windowed attention.
    softcap : soft-capped scores.
    slopes : ALiBi slopes.
    sinks : attention sinks: each head has one extra score without a value.
    scales : scales for keys and values.
    paged : paged keys and values.
    schedule : blocks, or decode for few queries.
    """
    return Attention(
        head_dim,
        value_dim,
        unchecked(dtype),
        kv_dtype=unchecked(kv_dtype),
        mask=unchecked(mask),
        bounded=bounded,
        softcap=softcap,
        slopes=slopes,
        sinks=sinks,
        key_scales=scales,
        value_scales=scales,
        paged=paged,
        schedule=unchecked(schedule),
    )


def _strategy(state: Compilation) -> str:
    cut: AttentionBlocking = state.blocking
    return (
        f"blocks of {cut.b1} queries past blocks of {cut.b2} keys, in register tiles of {cut.mr}x{cut.nr}; "
        "softmax between the two products of a tile of rows"
    )


def _decode_strategy(_: Compilation) -> str:
    return "few queries: keys and values are read once, in place, in runs whose results are merged"


def _backward_strategy(state: Compilation) -> str:
    cut: BackwardBlocking = state.blocking
    return (
        f"blocks of {cut.b1} queries and {cut.b2} keys, register tiles of {cut.mr}x{cut.nr}; a task a head "
        "of keys, five products a block; where these are too few, blocks of queries and then of keys, seven"
    )


ATTENTION = Op(
    problem=Attention,
    cut=Late("tilewright.ops.attention.cut:choose_attention"),
    nest=Late("tilewright.ops.attention.nest:build_attention"),
    stem=_stem,
    kernel=Kernel,
    formula=lambda problem: f"out = softmax(scale * q * k^T) * v of every head{_range(problem)}.",
    overlap=lambda _: "Results overlap no operand; offsets and strides are in elements.",
    meaning=_meaning,
    arguments=_of,
    written=lambda _: ("out", "row_max", "row_sum", "partials"),
    strategy=_strategy,
    bounds=Late("tilewright.ops.attention.cut:bounds_of_attention"),
    example=Late("tilewright.ops.attention.example:attention_example"),
)
DECODE = replace(
    ATTENTION,
    cut=Late("tilewright.ops.attention.cut:choose_decode"),
    nest=Late("tilewright.ops.attention.decode:build_decode"),
    meaning=_decode_meaning,
    bounds=None,
    strategy=_decode_strategy,
)
BACKWARD = replace(
    ATTENTION,
    problem=AttentionBackward,
    cut=Late("tilewright.ops.attention.backward_cut:choose_backward"),
    nest=Late("tilewright.ops.attention.backward_nest:build_backward"),
    stem=_backward_stem,
    formula=lambda problem: (
        f"Gradients of out = softmax(scale * q * k^T) * v of every head{_range(problem)}."
    ),
    meaning=_backward_meaning,
    bounds=None,
    strategy=_backward_strategy,
    arguments=None,
    written=lambda _: ("dq", "dk", "dv", "delta"),
)
