"""A user's program with mistakes: type checkers find each line that ends in `# wrong`."""
# pyright: strict

from typing import assert_type

import numpy as np

import tilewright as tw
from tilewright.typing import ActivationName

x = np.ones((4, 4), np.float32)
q = np.ones((1, 2, 3, 4), np.float32)

tw.linear(x, x, None, "swish")  # wrong
tw.matmul(x, x, activation="Relu")  # wrong
tw.matmul(x, x, acivation="relu")  # wrong
tw.matmul(x)  # wrong
tw.matmul(x, x, casting="same-kind")  # wrong
tw.matmul(object(), x)  # wrong
tw.einsum("ij,jk->ik", x, x, order="R")  # wrong
tw.einsum("ij,jk->ik", x, x, casting="any")  # wrong
tw.einsum("ij,jk->ik", x, x, outer=x)  # wrong
tw.attention(q, q)  # wrong
tw.attention(q, q, q, layout="sbhd")  # wrong
tw.attention(q, q, q, strategy="flash")  # wrong
tw.attention(q, q, q, causal="left")  # wrong
tw.attention(q, q, q, attn_mask=x)  # wrong
tw.attention(q, q, q, return_scores="logits")  # wrong
tw.attention(q, q, q, window=2)  # wrong
tw.attention_backward(q, q, q, q, q, q, layout="sbhd")  # wrong
tw.attention_partial(q, q, q, is_causal=True)  # wrong
tw.merge_attention([tw.attention_partial(q, q, q)], layout="")  # wrong
tw.pack(x, form="fp8")  # wrong
tw.pack(x, role="c")  # wrong
tw.quantize_weights(x, bits="8")  # wrong
tw.gelu(x, "erf")  # wrong
tw.trmm(x, x, side="top")  # wrong
tw.softmax(x, axis="rows")  # wrong
tw.layer_norm(x, epsilon=1e-5)  # wrong
tw.tensordot(x, x, axes="ij")  # wrong
tw.compile(tw.Gemm(), lowering="mlir")  # wrong
tw.Gemm(dtype="fp32")  # wrong
tw.Gemm(8, 8, 8, "f32", a="column")  # wrong
tw.Gemm(strategy="blocked")  # wrong
tw.Gemm(out_dtype="float")  # wrong
tw.BatchReduceGemm(4, 4, 4, c="rows")  # wrong
tw.BatchReduceGemm(4, 4, 4, batch="pointers")  # wrong
tw.Unary("sqrt", 4, 4)  # wrong
tw.Unary("relu", 4, 4, "bfloat")  # wrong
tw.Mmt4d(b_dtype="int3")  # wrong
tw.Attention(64, dtype="half")  # wrong
tw.Attention(64, schedule="flash")  # wrong
tw.Syrk(a="upper")  # wrong
tw.Syr2k(dtype="f128")  # wrong
tw.Trmm(side="top")  # wrong
tw.Dimension("b")  # wrong
tw.Dimension("m", "vector")  # wrong
tw.vecdot(x, x, order=0)  # wrong
tw.transpose(x, axes="10")  # wrong
tw.set_num_threads("all")  # wrong
tw.matmull(x, x)  # wrong
both = tw.attention(q, q, q, return_lse=True).shape  # wrong
name: ActivationName = "gelu_erf"  # wrong
assert_type(tw.layer_norm(x, return_stats=True), tuple[int, int])  # wrong
