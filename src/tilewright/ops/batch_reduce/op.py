"""Batch-reduce GEMM declared: its cut, nest, kernel names and C parameters."""

from __future__ import annotations

from tilewright.compiler.operation import Compilation, Op, layouts_text, matrix_meaning
from tilewright.ops.batch_reduce.kernel import BatchReduceKernel
from tilewright.ops.batch_reduce.nest import build_batch_reduce, cover_of
from tilewright.ops.batch_reduce.problem import BatchMode, BatchReduceGemm
from tilewright.spec.arguments import unchecked
from tilewright.spec.problem import parse_types


def _stem(problem: BatchReduceGemm) -> str:
    marks = "" if problem.beta else "_replace"
    marks += "" if problem.batch is BatchMode.STRIDE else f"_{problem.batch.value}"
    sizes = f"{problem.m}x{problem.n}x{problem.k}x{problem.count}"
    return f"brgemm_{problem.types.name}_{sizes}_{layouts_text(problem)}{marks}"


def _formula(problem: BatchReduceGemm) -> str:
    return f"C = {'C + ' if problem.beta else ''}sum of A[i] * B[i], i from 0 to {problem.count - 1}."


def _meaning(state: Compilation, name: str) -> str:
    problem: BatchReduceGemm = state.problem
    if name.startswith("br_stride_"):
        one = f"from one {name[-1].upper()} to the next"
        if problem.batch is BatchMode.AHEAD:
            return f"{one}, which is prefetched"
        return one + "; not read" * (problem.batch is BatchMode.ADDRESS or problem.count == 1)
    text = matrix_meaning(state, name)
    if name not in ("a", "b"):
        return text
    if problem.batch is BatchMode.ADDRESS:
        return f"{problem.count} pointers to {text}"
    return text if problem.count == 1 else f"the first of {problem.count} {text}"


def _of(
    m: int,
    n: int,
    k: int,
    count: int = 1,
    dtype: str = "f32",
    out_dtype: str | None = None,
    a: str = "col",
    b: str = "col",
    c: str = "col",
    beta: int = 1,
    batch: str = "stride",
) -> BatchReduceGemm:
    """Write the code for a batch-reduce GEMM: C = beta·C + the sum of `count` products, all sizes hardcoded.

    Parameters
    ----------
    m : rows of C.
    n : columns of C.
    k : depth.
    count : products summed by one call.
    dtype : element type of A and B, such as f32, bf16, i8, c64; of each, such as u8i8.
    out_dtype : element type of C; by default the wider of A's and B's.
    a : layout of A: row or col.
    b : layout of B.
    c : layout of C.
    beta : 1 adds to C, 0 replaces it.
    batch : stride; address: operands behind pointers; or ahead: the next product is prefetched.
    """
    types = parse_types(dtype, out_dtype)
    words = {name: unchecked(word) for name, word in (("a", a), ("b", b), ("c", c), ("batch", batch))}
    return BatchReduceGemm(*(m, n, k, count, types.a), b_dtype=types.b, out_dtype=types.c, beta=beta, **words)


BATCH_REDUCE = Op(
    problem=BatchReduceGemm,
    cut=cover_of,
    nest=build_batch_reduce,
    stem=_stem,
    kernel=BatchReduceKernel,
    formula=_formula,
    meaning=_meaning,
    arguments=_of,
    pointers=lambda problem: ("a", "b") if problem.batch is BatchMode.ADDRESS else (),
)
