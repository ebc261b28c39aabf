"""Calls of many public functions as lines of a program, for processes in which each is the first one."""

from __future__ import annotations

#: First calls of functions that share no kernel, each a line of a program that has the arrays of `ARRAYS`.
FUNCTIONS = (
    "tw.matmul(x, x)",
    "tw.matmul(x.astype(np.int8), x.astype(np.int8), dtype=np.int32)",
    "tw.matmul(x, x, bias=x[0], activation='gelu')",
    "tw.matmul(big, big, threads=2)",
    "tw.matmul(stack, stack)",
    "tw.linear(x, tw.quantize_weights(x, bits=4))",
    "tw.einsum('bij,bjk->bik', stack, stack)",
    "tw.einsum('ij->j', x)",
    "tw.einsum('aebf,dfce->abcd', four, four)",
    "tw.compile_einsum('ij,jk,kl->il', x, x, x)(x, x, x)",
    "tw.transpose(stack, (2, 0, 1))",
    "tw.compile(tw.Unary('relu', 8, 8))(x.T, np.empty_like(x).T)",
    "tw.compile(tw.einsum_contraction('ab,bc->ac', (8, 8), (8, 8)))(x, x, np.empty_like(x))",
    "tw.compile(tw.Gemm(8, 8, 8)).native(x, x, np.empty_like(x))",
    "tw.kron(x, x)",
    "tw.unpack(tw.pack(x))",
    "tw.mmt4d(np.ones((2, 3, 4, 1), np.float32), np.ones((2, 3, 4, 1), np.float32))",
    "tw.attention(stack[None], stack[None], stack[None])",
    "tw.softmax(stack, axis=1)",
    "tw.sum(stack, axis=0)",
    "tw.gelu(stack)",
    "tw.syr2k(x, x)",
    "tw.trmm(x, x)",
    "[tw.matmul(x, x) for _ in range(10_001)]",
)
ARRAYS = """
import faulthandler, os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)
os.environ["TILEWRIGHT_CACHE"] = "0"  # so that there is something to compile
import numpy as np, tilewright as tw
x, stack = np.ones((8, 8), np.float32), np.ones((3, 8, 8), np.float32)
big, four = np.ones((200, 200), np.float32), np.ones((3, 4, 3, 4), np.float32)
functions = [eval("lambda: " + line) for line in sys.argv[1:]]
"""


def third(number: int) -> tuple[str, ...]:
    """A third of the functions, in another order each: what is imported already depends on it.

    In `make test` each third meets one of the tests that do something at the same time.
    """
    return FUNCTIONS[number::3] if number % 2 else FUNCTIONS[number::3][::-1]
