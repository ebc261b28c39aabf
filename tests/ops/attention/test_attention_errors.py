"""Bad arguments of `tilewright.attention`: a class each, its values in the message, nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from shares import looped
from support import filled

import tilewright as tw
from tilewright.errors import (
    AttentionArguments,
    AttentionAxes,
    AttentionBatch,
    AttentionDtype,
    AttentionScales,
    BlockOutsideCache,
    BlockTableShape,
    HeadSizeMismatch,
    HeadsMismatch,
    HeadVectorShape,
    InvalidChoice,
    InvalidLengths,
    InvalidOffsets,
    InvalidOperand,
    InvalidQueryOffset,
    InvalidScalar,
    InvalidThreads,
    InvalidWindow,
    KeysMismatch,
    MaskDtype,
    MaskShape,
    OffsetsNotIncreasing,
    OffsetsPastEnd,
    OutDtype,
    OutNotArray,
    OutReadOnly,
    OutShape,
    TilewrightError,
)
from tilewright.typing import AttentionStrategyName

Q, K, V = filled((2, 4, 3, 8), seed=1), filled((2, 2, 5, 8), seed=2), filled((2, 2, 5, 6), seed=3)
ROWS_Q, ROWS_K, ROWS_V = Q[0], K[0], V[0]  # packed sequences: 3 and 5 rows
BYTES = K.astype(np.int8), V.astype(np.int8)


@dataclass
class Bad:
    """A call that is refused: arguments, the class it raises, words of its message."""

    arguments: tuple[Any, ...]
    kind: type[TilewrightError]
    builtin: type[Exception]
    words: tuple[str, ...]
    keywords: dict[str, Any] = field(default_factory=dict)


def table(*rows: list[int], lengths: Any = (5, 5)) -> dict[str, Any]:
    return {"block_table": np.array(rows), "kv_lengths": lengths}


def offsets(q: Any, k: Any = None) -> dict[str, Any]:
    return {"cu_seqlens_q": q, "cu_seqlens_k": k}


QKV, PACKED = (Q, K, V), (ROWS_Q, ROWS_K, ROWS_V)
BAD = [
    Bad((Q, K[:, :, :, :7], V), HeadSizeMismatch, ValueError, ("query has 8", "key 7")),
    Bad((Q[:, :3], K, V), HeadsMismatch, ValueError, ("3 heads", "2 heads", "'bhsd'")),
    Bad((Q[:, :1], K, V), HeadsMismatch, ValueError, ("1 heads", "2 heads")),
    Bad((Q, K[:, :0], V[:, :0]), HeadsMismatch, ValueError, ("4 heads", "0 heads")),
    Bad((Q, K, V[:, :1]), KeysMismatch, ValueError, ("(2, 2, 5, 8)", "(2, 1, 5, 6)")),
    Bad((Q, K, V[:, :, :4]), KeysMismatch, ValueError, ("(2, 2, 4, 6)",)),
    Bad((Q, K, V[:1]), KeysMismatch, ValueError, ("(1, 2, 5, 6)",)),
    Bad((np.concatenate([Q, Q[:1]]), K, V), AttentionBatch, ValueError, ("k has 2 sequences", "q has 3")),
    Bad((Q[0, 0, 0], K, V), AttentionAxes, ValueError, ("q has shape (8,)", "at least 2")),
    Bad((1.0, K, V), AttentionAxes, ValueError, ("q has shape ()",)),
    Bad((Q, K[0], V), AttentionAxes, ValueError, ("k has shape (2, 5, 8)", "as q 4")),
    Bad((Q[0], K, V), AttentionAxes, ValueError, ("k has shape (2, 2, 5, 8)", "as q 3")),
    Bad((Q.astype("i4"), K, V), AttentionDtype, TypeError, ("q has dtype int32", "bfloat16", ".astype")),
    Bad((Q.astype("i1"), *BYTES), AttentionDtype, TypeError, ("q has dtype int8",)),
    Bad((Q.astype("?"), K, V), AttentionDtype, TypeError, ("q has dtype bool",)),
    Bad((Q + 0j, K, V), AttentionDtype, TypeError, ("q has dtype complex64",)),
    Bad((Q.astype(object), K, V), AttentionDtype, TypeError, ("q has dtype object",)),
    Bad((Q, K.astype("i4"), V), AttentionDtype, TypeError, ("k has dtype int32", "both int8")),
    Bad((Q, BYTES[0], V), AttentionDtype, TypeError, ("k has dtype int8", "both int8")),
    Bad((Q, K, BYTES[1]), AttentionDtype, TypeError, ("v has dtype int8",)),
    Bad((Q, K, V.astype("u1")), AttentionDtype, TypeError, ("v has dtype uint8",)),
    Bad(([[1.0], [2.0, 3.0]], K, V), InvalidOperand, ValueError, ("q is invalid", "inhomogeneous")),
    Bad(QKV, InvalidChoice, ValueError, ("layout", "'sbhd'", "bhsd, bshd"), {"layout": "sbhd"}),
    Bad(QKV, InvalidChoice, ValueError, ("causal", "'left'", "lower_right"), {"causal": "left"}),
    Bad(QKV, InvalidChoice, ValueError, ("causal", "2"), {"causal": 2}),
    Bad(QKV, InvalidChoice, ValueError, ("strategy", "'fast'"), {"strategy": "fast"}),
    # masks
    Bad(QKV, MaskShape, ValueError, ("(4, 5)", "(2, 4, 3, 5)"), {"mask": np.ones((4, 5), bool)}),
    Bad(QKV, MaskShape, ValueError, ("(3, 6)",), {"mask": np.zeros((3, 6), "f4")}),
    Bad(QKV, MaskShape, ValueError, ("(3, 6)",), {**table([0], [1]), "mask": np.zeros((3, 6), "f4")}),
    Bad(QKV, MaskShape, ValueError, ("(3, 1, 3, 5)",), {"mask": np.ones((3, 1, 3, 5), bool)}),
    Bad(QKV, MaskShape, ValueError, ("(2, 1, 1, 1, 1)",), {"mask": np.ones((2, 1, 1, 1, 1), bool)}),
    Bad(QKV, MaskDtype, TypeError, ("int64", "bool", "float16"), {"mask": np.ones((3, 5), int)}),
    Bad(QKV, MaskDtype, TypeError, ("uint8",), {"mask": np.ones((3, 5), np.uint8)}),
    Bad(QKV, MaskDtype, TypeError, ("complex128",), {"mask": np.zeros((3, 5), complex)}),
    Bad(QKV, InvalidOperand, ValueError, ("mask is invalid",), {"mask": [[True], [True, False]]}),
    # windows and numbers
    *(
        Bad(QKV, InvalidWindow, ValueError, (repr(window), "(left, right)"), {"window": window})
        for window in [(-1, 0), (0, -2), (1.5, 2), 3, (1, 2, 3), ("1", 2), (True, 1), "12", (np.nan, 1)]
    ),
    # the place of the queries
    *(
        Bad(QKV, InvalidQueryOffset, ValueError, ("q_offset", words), {"q_offset": offset})
        for offset, words in [
            (1.5, "1.5"),
            ([0, 1, 2], "(3,)"),
            ([[0, 1]], "(1, 2)"),
            (True, "True"),
            ("1", "'1'"),
            ([0, 2**60 + 1], "[1] is 1152921504606846977"),
            (-(2**63), "-9223372036854775808"),
            (np.uint64(2**64 - 1), "18446744073709551615"),
            (2**64, "18446744073709551616"),
        ]
    ),
    *(
        Bad(QKV, AttentionArguments, TypeError, (causal, "q_offset"), {"causal": causal, "q_offset": 1})
        for causal in ("lower_right", "upper_left")
    ),
    Bad(QKV, InvalidScalar, TypeError, ("scale", "'1'", "real number"), {"scale": "1"}),
    Bad(QKV, InvalidScalar, TypeError, ("scale", "1j"), {"scale": 1j}),
    Bad(QKV, InvalidScalar, TypeError, ("softcap", "-1"), {"softcap": -1}),
    Bad(QKV, InvalidScalar, TypeError, ("softcap", "nan"), {"softcap": float("nan")}),
    Bad(QKV, InvalidScalar, TypeError, ("softcap", "inf"), {"softcap": float("inf")}),
    Bad(QKV, InvalidThreads, ValueError, ("threads", "is 0"), {"threads": 0}),
    Bad(QKV, HeadVectorShape, ValueError, ("alibi_slopes", "(3,)", "(4,)"), {"alibi_slopes": np.ones(3)}),
    Bad(QKV, HeadVectorShape, ValueError, ("sinks", "(2, 4)", "(4,)"), {"sinks": np.ones((2, 4))}),
    Bad(QKV, AttentionDtype, TypeError, ("sinks", "complex128"), {"sinks": np.ones(4) * 1j}),
    Bad(QKV, AttentionScales, ValueError, ("key_scales", "(3,)", "(2, 2, 5)"), {"key_scales": np.ones(3)}),
    Bad(QKV, AttentionScales, ValueError, ("(2, 2, 4)",), {"value_scales": np.ones((2, 2, 4))}),
    Bad(QKV, AttentionScales, ValueError, ("(1, 1, 1, 1, 1)",), {"value_scales": np.ones((1, 1, 1, 1, 1))}),
    Bad(QKV, AttentionDtype, TypeError, ("key_scales", "<U1"), {"key_scales": np.array("a")}),
    # lengths
    Bad(QKV, InvalidLengths, ValueError, ("q_lengths[1] is 4", "0 to 3"), {"q_lengths": [1, 4]}),
    Bad(QKV, InvalidLengths, ValueError, ("kv_lengths[0] is -1", "0 to 5"), {"kv_lengths": [-1, 4]}),
    Bad(QKV, InvalidLengths, ValueError, ("kv_lengths", "(3,)", "(2,)"), {"kv_lengths": [1, 2, 3]}),
    Bad(QKV, InvalidLengths, ValueError, ("kv_lengths", "1.5"), {"kv_lengths": [1.5, 2]}),
    # packed sequences
    Bad(PACKED, InvalidOffsets, ValueError, ("cu_seqlens_q", "begins with [1]"), offsets([1, 3], [0, 5])),
    Bad(PACKED, InvalidOffsets, ValueError, ("cu_seqlens_q", "begins with []"), offsets([], [0, 5])),
    Bad(PACKED, InvalidOffsets, ValueError, ("cu_seqlens_k",), offsets([0, 3], [[0, 5]])),
    Bad(PACKED, InvalidOffsets, ValueError, ("cu_seqlens_k", "2.5"), offsets([0, 3], [0, 2.5])),
    Bad(PACKED, OffsetsNotIncreasing, ValueError, ("from 3 to 2", "sequence 1"), offsets([0, 3, 2])),
    Bad(PACKED, OffsetsNotIncreasing, ValueError, ("cu_seqlens_k", "from 4"), offsets([0, 1, 2], [0, 4, 3])),
    Bad(PACKED, OffsetsPastEnd, ValueError, ("cu_seqlens_q", "4", "q has 3"), offsets([0, 4], [0, 5])),
    Bad(PACKED, OffsetsPastEnd, ValueError, ("cu_seqlens_k", "6", "k has 5"), offsets([0, 3], [0, 6])),
    Bad(PACKED, AttentionBatch, ValueError, ("k has 3", "q has 2"), offsets([0, 1, 3], [0, 1, 2, 5])),
    Bad(QKV, AttentionAxes, ValueError, ("q has shape", "packed"), offsets([0, 1, 3], [0, 1, 5])),
    Bad(
        PACKED, AttentionArguments, TypeError, ("cu_seqlens_k", "without cu_seqlens_q"), offsets(None, [0, 5])
    ),
    Bad(PACKED, AttentionArguments, TypeError, ("q_lengths and cu",), {**offsets([0, 3]), "q_lengths": [3]}),
    Bad(
        PACKED,
        AttentionArguments,
        TypeError,
        ("kv_lengths and cu",),
        {**offsets([0, 3], [0, 5]), "kv_lengths": [5]},
    ),
    # pages: two of five keys
    Bad(QKV, BlockOutsideCache, IndexError, ("[1, 0] is page 2", "0 to 1"), table([0], [2])),
    Bad(QKV, BlockOutsideCache, IndexError, ("[0, 0] is page -1",), table([-1], [1])),
    Bad(QKV, BlockTableShape, ValueError, ("(2,)",), {"block_table": [0, 1], "kv_lengths": [5, 5]}),
    Bad(QKV, BlockTableShape, ValueError, ("0.5",), {"block_table": [[0.5], [1]], "kv_lengths": [5, 5]}),
    Bad(QKV, InvalidLengths, ValueError, ("kv_lengths[1] is 6", "0 to 5"), table([0], [1], lengths=(5, 6))),
    Bad(QKV, AttentionArguments, TypeError, ("without kv_lengths",), {"block_table": [[0], [1]]}),
    Bad(QKV, AttentionBatch, ValueError, ("k has 3", "q has 2"), table([0], [1], [1], lengths=5)),
    Bad((ROWS_Q, ROWS_K, ROWS_V), AttentionAxes, ValueError, ("k has shape", "pages"), table([0])),
    Bad(
        (ROWS_Q, K, V),
        AttentionArguments,
        TypeError,
        ("cu_seqlens_k and block_table",),
        {**offsets([0, 3], [0, 5]), "block_table": [[0]]},
    ),
]


@looped("bad", BAD)
def test_refused_before_anything_is_written(bad: Bad) -> None:
    q = bad.arguments[0]
    shape = (*q.shape[:-1], 6) if isinstance(q, np.ndarray) else (2, 6)
    out = np.full(shape, 7, np.float32)
    with pytest.raises(bad.kind) as raised:
        tw.attention(*bad.arguments, **bad.keywords, out=out)
    assert isinstance(raised.value, bad.builtin)
    for word in bad.words:
        assert word in str(raised.value)
    assert (out == 7).all()


@pytest.mark.parametrize(
    ("out", "kind", "words"),
    [
        (np.zeros((2, 4, 3, 8), "f4"), OutShape, ("(2, 4, 3, 8)", "(2, 4, 3, 6)")),
        (np.zeros((2, 4, 3, 6), "i4"), OutDtype, ("int32", "float32")),
        ([[0.0]], OutNotArray, ("list",)),
    ],
)
def test_out_that_cannot_take_the_result(
    out: Any, kind: type[TilewrightError], words: tuple[str, ...]
) -> None:
    with pytest.raises(kind) as raised:
        tw.attention(*QKV, out=out)
    for word in words:
        assert word in str(raised.value)


def test_a_read_only_out() -> None:
    out = np.zeros((2, 4, 3, 6), np.float32)
    out.flags.writeable = False
    with pytest.raises(OutReadOnly):
        tw.attention(*QKV, out=out)


@pytest.mark.parametrize("strategy", ["decode", "blocks", "unfused"])
def test_entries_of_a_block_table_behind_the_last_key_are_not_looked_at(
    strategy: AttentionStrategyName,
) -> None:
    found = tw.attention(*QKV, **table([0, -1], [1, 99]), strategy=strategy)
    np.testing.assert_allclose(found, tw.attention(*QKV), rtol=1e-5)
