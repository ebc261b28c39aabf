"""The text of contractions: a table that parses back, and what is refused."""

from __future__ import annotations

import pytest

from tilewright.errors import ContractionText
from tilewright.ops.contraction.dimension import Dimension
from tilewright.ops.contraction.problem import Contraction

ROW = Dimension("m", "parallel", 64, in0=-1, out=1, bias=3)
DEPTH = Dimension("k", "primitive", in0=64, in1=1)

TEXTS = {
    "contraction dtype=f32 in1_dtype=f32 out_dtype=f32 main=packed_gemm first=bias last=relu\n"
    "m parallel  64 in0=-1 in1=0 out=1 bias=3\n"
    "k primitive ?  in0=64 in1=1 out=0 bias=0": Contraction([ROW, DEPTH], first="bias", last="relu"),
    "contraction dtype=bf16 in1_dtype=bf16 out_dtype=f32 main=gemm first=none\n"
    "k primitive ? in0=64 in1=1 out=0": Contraction(
        [DEPTH], "bf16", out_dtype="f32", main="gemm", first="none"
    ),
    "contraction dtype=f64 in1_dtype=f64 out_dtype=f64 main=gelu first=zero": Contraction(
        [], "f64", main="gelu"
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_text(text: str) -> None:
    assert str(TEXTS[text]) == text
    assert Contraction.parse(text) == TEXTS[text]


def test_spaces_and_defaults() -> None:
    assert Contraction.parse("\n contraction\n\n  k   primitive ? in1=1   in0=64 \n") == Contraction([DEPTH])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: '': the first word must be 'contraction'"),
        ("gemm\nm primitive 4", "line 1: 'gemm'"),
        ("contraction main=gem", "line 1: .*main is 'gem'"),
        ("contraction size=4", "line 1: .*'size=4' is none of dtype="),
        ("contraction\n\nm primitive", "line 3: 'm primitive': a dimension is its type"),
        ("contraction\nm primitive 4.5", "line 2: .*'4.5'"),
        ("contraction\nm often 4", "line 2: .*execution is 'often'"),
        ("contraction\nm primitive 4 in2=1", "line 2: .*'in2=1' is none of in0="),
        ("contraction\nm primitive 4 in0=1 in0=2", "line 2: .*'in0=2' is none of .* each once"),
        ("contraction\nm primitive 4 in1=1", "line 2: .*a stride of 1 in in1"),
    ],
)
def test_what_is_no_contraction(text: str, message: str) -> None:
    with pytest.raises(ContractionText, match=message):
        Contraction.parse(text)
