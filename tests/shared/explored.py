"""One problem of each operation, for what pages say and measure of it."""

from __future__ import annotations

from typing import Any

import tilewright as tw
from tilewright.ops.contraction.tables.problem import TableProduct
from tilewright.spec.weights import Weights

#: One problem of each operation; those that compile in a tenth of a second run in `make test`.
PROBLEMS: dict[str, Any] = {
    "brgemm": tw.BatchReduceGemm(16, 6, 64),
    "brgemm pointers": tw.BatchReduceGemm(16, 6, 64, 4, batch="address"),
    "contraction": tw.einsum_contraction("abc,cd->abd", (4, 6, 8), (8, 5)),
    "unary": tw.Unary("relu", 64, 48),
    "gemm": tw.Gemm(100, 100, 100),
    "gemm i8": tw.Gemm(dtype="i8", out_dtype="i32"),
    "gemm c64": tw.Gemm(dtype="c64", a="col", c="col"),
    "gemm epilogue": tw.Gemm(epilogue="bias,gelu"),
    "linear i4": tw.Gemm(64, 128, 256, b="packed", weights=Weights.parse("i4g64")),
    "attention": tw.Attention(64, bounded=True),
    "attention decode": tw.Attention(64, schedule="decode"),
    "attention backward": tw.AttentionBackward(64),
    "tables": tw.einsum_contraction("acbd,dfce->abef", (10, 12, 8, 20), (20, 40, 12, 16)),
    "table product": TableProduct(),
    "rows": tw.RowFunction("softmax"),
    "elementwise": tw.Elementwise("gelu"),
    "binary": tw.BinaryFunction("multiply"),
    "rotary": tw.Rotary("f32"),
    "embedding": tw.Embedding("f32"),
    "packing": tw.Packing(),
    "mmt4d": tw.Mmt4d(m0=8, n0=8, k0=1),
    "chain": tw.LinearChain([64, 128, 64]),
    "syrk": tw.Syrk(),
    "syr2k": tw.Syr2k(),
    "trmm": tw.Trmm(),
    "products": tw.SumOfProducts("along"),
}
